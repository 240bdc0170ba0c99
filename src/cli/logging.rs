//! The log: lines for people or JSON for machines, on stderr, so that stdout is the result's. Where
//! that is systemd's journal and no format was asked for, lines as it wants them.
//!
//! What jobs write comes under the target `soloist::output`, a line an event, and can be turned
//! off by it: `--log-level info,soloist::output=off`.

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use super::args::{Command, Global, LogFormat};
use super::{Exit, complain, journal, stderr_has_colour};
use crate::config::nearest;

/// The words for how much is logged, from least to most.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

const DEFAULT_LEVEL: &str = "info";

/// How many lines wait for whoever reads stderr. Beyond these they are dropped: a reader that
/// stands still must not hold up a renewal.
const LINES_WAITING: usize = 16_384;

/// How often it is looked whether lines were dropped.
const LOSS_INTERVAL: Duration = Duration::from_secs(10);

/// Dropped at the end of the process, it tells of lines that were lost and has the last ones
/// written.
pub(super) struct LogEnd {
    losses: Arc<Mutex<Losses>>,
    _written: WorkerGuard,
}

impl Drop for LogEnd {
    fn drop(&mut self) {
        tell_of_losses(&self.losses);
    }
}

/// Lines that were dropped, and of how many people were told.
struct Losses {
    dropped: ErrorCounter,
    told: usize,
}

impl Losses {
    /// Tells how many there are that nobody was told of. A line that tells so may be dropped like
    /// any other: then it is said again.
    fn tell(&mut self, tell: impl FnOnce(usize)) {
        let lines = self.dropped.dropped_lines();
        if lines > self.told {
            tell(lines - self.told);
            if self.dropped.dropped_lines() == lines {
                self.told = lines;
            }
        }
    }
}

fn tell_of_losses(losses: &Mutex<Losses>) {
    let mut losses = losses.lock().unwrap_or_else(PoisonError::into_inner);
    losses.tell(|lines| {
        tracing::warn!(
            lines,
            "the log was not read as fast as it grew: {lines} lines were left out"
        );
    });
}

/// Tells of lines that were dropped while the process goes on.
fn watch_losses(losses: &Arc<Mutex<Losses>>) {
    let losses = Arc::downgrade(losses);
    let watch = move || {
        loop {
            std::thread::sleep(LOSS_INTERVAL);
            let Some(losses) = losses.upgrade() else {
                return;
            };
            tell_of_losses(&losses);
        }
    };
    // Without it, it is told at the end.
    let _ = std::thread::Builder::new()
        .name("log-losses".to_owned())
        .spawn(watch);
}

/// Starts the log of this process. What waits is written when the answer is dropped.
pub(super) fn start(global: &Global, command: &Command) -> Result<LogEnd, Exit> {
    let level = global.log_level.as_deref().map(str::trim);
    let level = level
        .filter(|level| !level.is_empty())
        .unwrap_or(default_level(command));
    let filter = read_filter(level).map_err(|(message, hint)| {
        let message = format!("`--log-level` or SOLOIST_LOG_LEVEL: {message}");
        complain(Exit::Usage, &message, Some(&hint))
    })?;
    let (writer, end) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LINES_WAITING)
        .thread_name("log")
        .finish(io::stderr());
    let dropped = writer.error_counter();
    // Complaints about a log that can't be written would go to the same stderr, and panic.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(stderr_has_colour())
        .log_internal_errors(false);
    match global.log_format {
        None if journal::is_stderr() => builder.event_format(journal::Lines::new()).init(),
        None | Some(LogFormat::Text) => builder.with_target(false).init(),
        Some(LogFormat::Json) => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .init(),
    }
    let losses = Arc::new(Mutex::new(Losses { dropped, told: 0 }));
    if matches!(command, Command::Run(_)) {
        watch_losses(&losses);
    }
    Ok(LogEnd {
        losses,
        _written: end,
    })
}

/// What is logged where nobody says. Lines of a log would come to stand in the middle of a
/// picture that is drawn in place, which shows what is wrong by itself.
fn default_level(command: &Command) -> &'static str {
    match command {
        Command::Status(args) if args.watch.is_some() && io::stderr().is_terminal() => "off",
        // They look and go, and show what they find: that the server keeps nothing is in `status`.
        Command::Status(_) | Command::History(_) | Command::Why(_) | Command::Logs(_) => "warn",
        // So with those that write something down and go.
        Command::Trigger(_) | Command::Pause(_) | Command::Resume(_) | Command::Kill(_) => "warn",
        // The command's own output is what counts.
        Command::Lock(args) if args.quiet => "error",
        Command::Lock(_) => {
            // It says itself that the store is away.
            "warn,soloist::store::redis::health=error,soloist::store::redis::link=error"
        }
        // What of the store is to be said is in the verdict.
        Command::Verify(_) => "error",
        // What it runs is told, and not how the store is set up.
        Command::RunOnce(_) => "info,soloist::store::redis::health=warn",
        _ => DEFAULT_LEVEL,
    }
}

/// Reads a filter; on failure message and hint. The library takes any word for the name of a
/// module, so that `inof` would silence everything: such words are refused here.
fn read_filter(text: &str) -> Result<EnvFilter, (String, String)> {
    let directives: Vec<_> = text.split(',').map(str::trim).collect();
    for directive in &directives {
        let (module, level) = match directive.split_once('=') {
            Some((module, level)) => (Some(module), level),
            None if directive.contains("::") || *directive == "soloist" => {
                (Some(*directive), "info")
            }
            None => (None, *directive),
        };
        let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        if !is_level || module == Some("") {
            let longer = LEVELS.into_iter().find(|known| level.starts_with(known));
            let hint = match longer.or_else(|| nearest(level, LEVELS)) {
                Some(near) if !is_level => format!("did you mean `{near}`?"),
                _ => format!("the levels are {}", LEVELS.join(", ")),
            };
            return Err((format!("`{directive}` is no level"), hint));
        }
    }
    EnvFilter::builder()
        .parse(directives.join(","))
        .map_err(|error| {
            let hint = "for example `info` or `info,soloist::output=off`";
            (format!("`{text}` is no filter: {error}"), hint.into())
        })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Says that it was given something, and takes nothing until it may.
    struct Stuck {
        given: mpsc::Sender<()>,
        go_on: mpsc::Receiver<()>,
    }

    impl io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.given.send(());
            // Its end is as good as a word.
            let _ = self.go_on.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_were_dropped_are_told_once_and_again_where_that_was_dropped_too() {
        let (may_go_on, go_on) = mpsc::channel();
        let (given, was_given) = mpsc::channel();
        let (writer, end) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(1)
            .finish(Stuck { given, go_on });
        let write = |lines: usize| {
            for _ in 0..lines {
                io::Write::write_all(&mut writer.clone(), b"x\n").unwrap();
            }
        };
        // The first is out of the way, so that one of the others waits and the rest is dropped.
        write(1);
        was_given.recv().expect("a line");
        write(20);
        let dropped = writer.error_counter();
        let mut losses = Losses { dropped, told: 0 };
        let mut told = Vec::new();
        losses.tell(|lines| {
            told.push(lines);
            write(1);
        });
        losses.tell(|lines| told.push(lines));
        losses.tell(|lines| told.push(lines));
        assert_eq!(told, [19, 20]);
        drop(may_go_on);
        drop(end);
    }

    #[test]
    fn levels_alone_and_by_module_are_filters() {
        for text in [
            "off",
            "INFO",
            "debug",
            "info,soloist::output=off",
            "warn, soloist=trace",
            "soloist::output",
        ] {
            assert!(read_filter(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_misspelt_level_does_not_silence_the_log() {
        for (text, hint) in [
            ("inof", "did you mean `info`?"),
            ("warning", "did you mean `warn`?"),
            ("verbose", "the levels are"),
            ("info,soloist=loud", "the levels are"),
            ("info,,", "the levels are"),
            ("=info", "the levels are"),
        ] {
            let (_, told) = read_filter(text).expect_err(text);
            assert!(told.starts_with(hint), "{text}: {told}");
        }
    }
}
