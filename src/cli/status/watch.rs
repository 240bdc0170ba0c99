//! `soloist status --watch`: the state of everything, again and again.
//!
//! ```text
//!  ask the store ──▶ frame ──▶ a terminal: over the last one, cut to its size
//!     ▲                        else: below the last one; JSON: a document a line
//!     └── rest: until the time has come; a terminal that changed its size is drawn again
//! ```
//!
//! A store that is away is part of the picture: its error stands above what was seen last. The
//! table is read once.
//!
//! Must never: ask more than once a second, or change a terminal so that somebody who is killed
//! would leave it changed.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGWINCH};
use signal_hook_tokio::Signals;
use tokio::sync::oneshot;

use super::{Exit, render};
use crate::cli::{complain, now, store};
use crate::config::{Config, SchedulerConfig, format_duration};
use crate::scheduler::time::Timestamp;
use crate::store::{Store, StoreError};
use crate::views::status::Status;

mod screen;

use screen::Size;

/// What is watched, and how it is shown.
struct Watch<'w> {
    scheduler: &'w SchedulerConfig,
    table: Option<&'w Config>,
    store: Arc<dyn Store>,
    every: Duration,
    shape: Shape,
    /// What the store said last, and when.
    last: Option<(Timestamp, String)>,
    /// What is on the terminal.
    frame: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A terminal that knows where its cursor goes.
    Screen,
    /// Frames below each other.
    Text,
    /// A document a line.
    Json,
}

/// What a line of JSON is while the store is away.
#[derive(Serialize)]
struct Away {
    now: String,
    store: String,
    error: String,
}

/// Shows frames until Ctrl-C, or until nobody reads them.
pub(super) fn run(
    scheduler: &SchedulerConfig,
    table: Option<&Config>,
    json: bool,
    seconds: u32,
) -> Result<Exit, Exit> {
    let runtime = store::runtime()?;
    runtime.block_on(async {
        let signals = Signals::new([SIGINT, SIGWINCH]).map_err(|error| {
            let message = format!("failed to listen for signals: {error}");
            complain(Exit::Failed, &message, None)
        })?;
        let watch = Watch {
            scheduler,
            table,
            store: store::open(scheduler)?,
            every: Duration::from_secs(seconds.max(1).into()),
            shape: Shape::of_stdout(json),
            last: None,
            frame: String::new(),
        };
        Ok(watch.follow(signals).await)
    })
}

impl Shape {
    fn of_stdout(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match json {
            true => Shape::Json,
            false if io::stdout().is_terminal() && !dumb => Shape::Screen,
            false => Shape::Text,
        }
    }
}

impl Watch<'_> {
    async fn follow(mut self, mut signals: Signals) -> Exit {
        let mut unread = nobody_reads();
        let mut is_first = true;
        loop {
            tokio::select! {
                () = self.look() => {}
                () = interrupted(&mut signals) => return Exit::Done,
                () = &mut unread => return Exit::Done,
            }
            if let Err(end) = self.show(is_first) {
                return end;
            }
            is_first = false;
            let rest = tokio::time::sleep(self.every);
            tokio::pin!(rest);
            loop {
                tokio::select! {
                    () = &mut rest => break,
                    () = &mut unread => return Exit::Done,
                    signal = signals.next() => match signal {
                        Some(SIGWINCH) => if let Err(end) = self.show(true) {
                            return end;
                        },
                        _ => return Exit::Done,
                    },
                }
            }
        }
    }

    /// Makes the next frame.
    async fn look(&mut self) {
        let store = Arc::clone(&self.store);
        let asked = store::ask(store, async |store| store.snapshot().await).await;
        self.frame = match asked {
            Ok(answered) => {
                let jobs = self.table.map(|table| &table.jobs[..]);
                let status = Status::of(self.scheduler, jobs, self.store.place(), &answered);
                if self.shape == Shape::Json {
                    line(&status)
                } else {
                    let text = render(&status);
                    self.last = Some((now(), text.clone()));
                    text
                }
            }
            Err(error) => self.away(&error),
        };
    }

    fn away(&self, error: &StoreError) -> String {
        if self.shape == Shape::Json {
            return line(&Away {
                now: now().to_string(),
                store: self.store.place(),
                error: error.to_string(),
            });
        }
        let every = format_duration(self.every);
        let mut text = format!("! {error}\n! asked again every {every}; it is {}\n", now());
        // Below each other, the last frame is there already.
        if let (Shape::Screen, Some((at, last))) = (self.shape, &self.last) {
            text += &format!("! what follows was seen at {at}\n\n{last}");
        }
        text
    }

    fn show(&self, is_first: bool) -> Result<(), Exit> {
        let text = match self.shape {
            Shape::Screen => screen::draw(&self.frame, Size::of_stdout(), is_first),
            // Nothing is drawn again where nothing is drawn over.
            Shape::Text if is_first => self.frame.clone(),
            Shape::Text => format!("---\n{}", self.frame),
            Shape::Json => self.frame.clone(),
        };
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        written
            .and_then(|()| stdout.flush())
            .map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => Exit::Done,
                _ => {
                    let message = format!("failed to write to stdout: {error}");
                    complain(Exit::Failed, &message, None)
                }
            })
    }
}

fn line(value: &impl Serialize) -> String {
    // What is serialized has neither maps with odd keys nor values that can fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Completes at Ctrl-C; a size that changes before there is anything to see is no news.
async fn interrupted(signals: &mut Signals) {
    while let Some(signal) = signals.next().await {
        if signal == SIGINT {
            return;
        }
    }
    std::future::pending().await
}

/// Completes when the reader of stdout is gone: `| head` is to end with what it has seen, and not
/// with the frame after. The thread ends with the process.
fn nobody_reads() -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    let (tell, told) = oneshot::channel();
    let wait = move || {
        let stdout = io::stdout();
        // Asked for nothing, it tells of errors and of hang-ups alone.
        let mut stdout = [PollFd::new(&stdout, PollFlags::empty())];
        loop {
            match poll(&mut stdout, None) {
                Ok(_) => break tell.send(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break Ok(()),
            }
        }
    };
    // Without it the next write tells.
    let _ = std::thread::Builder::new().spawn(wait);
    Box::pin(async {
        if told.await.is_err() {
            std::future::pending().await
        }
    })
}
