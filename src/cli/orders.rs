//! `soloist trigger`, `pause`, `resume` and `kill`: what people ask of a job, whichever replica
//! it concerns.
//!
//! ```text
//!  asker: who asks ─┐
//!  table, if any ───┴▶ orders: enrol, order, again until answered ─▶ told ─▶ stdout
//!                                              └─▶ waiting ─▶ progress ─▶ a line each
//! ```
//!
//! Must never: talk to a replica. What the store has written down is done by whoever is there,
//! now or later.

use std::time::Duration;

use futures_util::StreamExt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

use super::args::{AskingArgs, Global, KillArgs, PauseArgs, TriggerArgs, WaitingArgs};
use super::history::parse_name;
use super::run::name_of_host;
use super::settings::Settings;
use super::{Exit, complain, output, print, print_error, store};
use crate::orders::{Request, Said, Sender, Told, Wire, absence, tell};
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{OrderAnswer, OrderKind, Outcome};
use crate::scheduler::policy::Tags;
use crate::scheduler::time::Timestamp;
use crate::store::Store;

mod asker;
mod progress;
mod waiting;

use progress::Progress;
use waiting::{End, Pace, Wait};

/// Asks for an occurrence now.
pub(super) fn trigger(global: &Global, args: &TriggerArgs) -> Result<Exit, Exit> {
    let jobs = std::slice::from_ref(&args.job);
    carry_out(
        global,
        OrderKind::Trigger,
        jobs,
        &args.asking,
        Some(&args.waiting),
    )
}

/// Has nothing more of some jobs start.
pub(super) fn pause(global: &Global, args: &PauseArgs) -> Result<Exit, Exit> {
    carry_out(global, OrderKind::Pause, &args.jobs, &args.asking, None)
}

/// Ends pauses.
pub(super) fn resume(global: &Global, args: &PauseArgs) -> Result<Exit, Exit> {
    carry_out(global, OrderKind::Resume, &args.jobs, &args.asking, None)
}

/// Ends what runs of a job.
pub(super) fn kill(global: &Global, args: &KillArgs) -> Result<Exit, Exit> {
    let jobs = std::slice::from_ref(&args.job);
    carry_out(
        global,
        OrderKind::Kill,
        jobs,
        &args.asking,
        Some(&args.waiting),
    )
}

fn carry_out(
    global: &Global,
    what: OrderKind,
    jobs: &[String],
    asking: &AskingArgs,
    waiting: Option<&WaitingArgs>,
) -> Result<Exit, Exit> {
    let jobs = names(jobs)?;
    let (scheduler, config) = Settings::load_for_store(global)?;
    let table = config.map_or_else(Vec::new, |config| config.jobs);
    let by = asking.by.clone().unwrap_or_else(asker::name);
    let request = Request {
        what,
        jobs: &jobs,
        by: &by,
        id: None,
    };
    let waiting = waiting.filter(|waiting| waiting.wait);
    let runtime = store::runtime()?;
    let exit = runtime.block_on(async {
        let store = store::open(&scheduler)?;
        let office = Office {
            store: &*store,
            table: &table,
            json: asking.json,
        };
        office.carry_out(request, waiting).await
    });
    // What is left are calls to a store that doesn't answer.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Each job once, in the order in which they were named.
fn names(texts: &[String]) -> Result<Vec<JobName>, Exit> {
    let mut names = Vec::with_capacity(texts.len());
    for text in texts {
        let name = parse_name(text)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Where orders are taken.
struct Office<'o> {
    store: &'o dyn Store,
    table: &'o [Job],
    json: bool,
}

impl Office<'_> {
    async fn carry_out(
        &self,
        request: Request<'_>,
        waiting: Option<&WaitingArgs>,
    ) -> Result<Exit, Exit> {
        let sender = Sender::new(self.store, self.table, name_of_host());
        let all = sender.send(request).await.map_err(|cause| {
            let exit = store::exit_of(&cause);
            let hint = match sender.has_sent() {
                true => "whether it was written down is not known: `soloist status` shows it",
                false => {
                    "it was not written down: give the order again when the store can be reached"
                }
            };
            let hint = (exit == Exit::StoreUnreachable).then_some(hint);
            complain(exit, &cause.to_string(), hint)
        })?;
        let names = self.names(&all).await;
        let mut exit = Exit::Done;
        let mut shown = Vec::with_capacity(all.len());
        for said in &all {
            let told = tell(request, said, &names);
            if let Told::Done(text) = &told {
                self.say(text);
            }
            exit = complain_of(&told).or(exit);
            let mut wire = Wire::of(request, said, &told);
            match waiting {
                Some(waiting) => {
                    let waited = self.wait(request, said, waiting).await?;
                    exit = waited.exit.or(exit);
                    wire = wire.ended(waited.outcome, waited.last_words);
                }
                None => wire = wire.noted(self.note(said).await),
            }
            shown.push(wire);
        }
        if self.json {
            let one_job = matches!(request.what, OrderKind::Trigger | OrderKind::Kill);
            let printed = match shown.first().filter(|_| one_job) {
                Some(one) => output::json(one),
                None => output::json(&shown),
            };
            return Ok(exit.or(printed));
        }
        Ok(exit)
    }

    fn say(&self, text: &str) {
        if !self.json {
            let _ = print(format!("{text}\n"));
        }
    }

    /// All names that there are, where one of those that were asked for is none of them.
    async fn names(&self, all: &[Said]) -> Vec<String> {
        let is_unknown = |said: &Said| said.answer == OrderAnswer::Unknown;
        if !all.iter().any(is_unknown) {
            return Vec::new();
        }
        let table = self.table.iter().map(|job| job.name.to_string());
        let mut names: Vec<String> = table.collect();
        // A hint is all that hangs on it.
        if let Ok(snapshot) = self.store.snapshot().await {
            let ledger = snapshot.answer.jobs.iter();
            names.extend(ledger.map(|state| state.job.to_string()));
        }
        names
    }

    /// The tags that a job asks for; none where the table here doesn't have it.
    fn run_on(&self, job: &JobName) -> Tags {
        let known = self.table.iter().find(|known| known.name == *job);
        known.map_or_else(Tags::new, |known| known.run_on.clone())
    }

    /// What somebody who doesn't wait should know: that nobody is there who would start it.
    async fn note(&self, said: &Said) -> Option<String> {
        if !matches!(said.answer, OrderAnswer::Triggered { .. }) {
            return None;
        }
        let snapshot = self.store.snapshot().await.ok()?;
        let job = &said.job;
        let absence = absence(snapshot.now, &snapshot.answer, job, &self.run_on(job))?;
        self.say(&format!("{job}: {absence}"));
        Some(absence)
    }

    async fn wait(
        &self,
        request: Request<'_>,
        said: &Said,
        waiting: &WaitingArgs,
    ) -> Result<Waited, Exit> {
        let (OrderAnswer::Triggered { scheduled_at } | OrderAnswer::Killed { scheduled_at, .. }) =
            said.answer
        else {
            return Ok(Waited::default());
        };
        let job = &said.job;
        let progress = Progress::new(job.clone(), scheduled_at, self.run_on(job))
            .ordered(request.what, said.now);
        let wait = Wait::new(self.store, progress, waiting.timeout, Pace::default());
        let mut waited = Waited::default();
        let end = wait.end(stop_signal()?, |line| {
            self.say(&format!("{job}: {line}"));
            waited.last_words = Some(line.to_owned());
        });
        let end = end.await;
        waited.exit = exit_of(&end, job, scheduled_at, request.what);
        if let End::Over(outcome) = end {
            waited.outcome = Some(outcome);
        }
        Ok(waited)
    }
}

/// What came of a wait.
struct Waited {
    exit: Exit,
    outcome: Option<Outcome>,
    /// The last line that was told.
    last_words: Option<String>,
}

impl Default for Waited {
    fn default() -> Self {
        Self {
            exit: Exit::Done,
            outcome: None,
            last_words: None,
        }
    }
}

/// How the command ends for an answer; what is wrong goes to stderr.
fn complain_of(told: &Told) -> Exit {
    match told {
        Told::Done(_) => Exit::Done,
        Told::Refused { message, hint } => complain(Exit::Failed, message, Some(hint)),
    }
}

/// How the command ends, after what is wrong was said on stderr.
fn exit_of(end: &End, job: &JobName, at: Timestamp, what: OrderKind) -> Exit {
    let goes_on = "the ledger has it, and replicas see to it; `soloist status` shows it";
    match end {
        End::Over(Outcome::Succeeded) => Exit::Done,
        End::Over(_) if what == OrderKind::Kill => Exit::Done,
        End::Over(_) => Exit::Failed,
        End::Forgotten => {
            let message = format!("`{job}` is over, but how it ended is not kept any more");
            let hint = "`history_limit` or `history_age` of the job cut it off";
            complain(Exit::Failed, &message, Some(hint))
        }
        End::Lost => {
            let (asked, open, again) = match what {
                OrderKind::Kill => ("told to end", "ended", "to kill it again does no harm"),
                _ => (
                    "triggered",
                    "ran",
                    "to trigger it again may run it a second time",
                ),
            };
            let message = format!(
                "the store lost its data after `{job}` was {asked}: nothing is known of the occurrence of {at} any more, nor whether it {open}"
            );
            let hint = format!(
                "see what `soloist history {job}` and `soloist why {job} {at}` have; {again}"
            );
            complain(Exit::Failed, &message, Some(&hint))
        }
        End::TimedOut => {
            let message = format!("`{job}` was not over in time, and goes on");
            complain(Exit::Failed, &message, Some(goes_on))
        }
        End::StoreLost(cause) => store::refused(cause),
        End::Stopped => {
            print_error(&format!("stopped waiting, and nothing else: {goes_on}\n"));
            Exit::Failed
        }
    }
}

/// Completes at the first signal that would end this process.
fn stop_signal() -> Result<impl Future<Output = ()>, Exit> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| {
        let message = format!("failed to listen for signals: {error}");
        complain(Exit::Failed, &message, None)
    })?;
    Ok(async move {
        if signals.next().await.is_none() {
            std::future::pending().await
        }
    })
}
