//! `soloist run-once`: a job here and now, under its lease, its output on the terminal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::args::{Global, RunOnceArgs};
use super::settings::Settings;
use super::{Exit, SIGNALED, complain, print_error, run, store};
use crate::clock::SystemClock;
use crate::config::{Config, Strictness};
use crate::daemon::signals::{self, Hangup};
use crate::driver::{Driver, Processes, entropy};
use crate::runner::OutputMode;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{AttemptDetail, Outcome};
use crate::scheduler::{self, Notice, Purpose};

/// What became of the run.
#[derive(Debug)]
enum Fate {
    Ended(Outcome, AttemptDetail),
    Refused(String),
    /// It ran, and its lease was another replica's before it ended.
    LeaseLost,
}

type FateCell = Arc<Mutex<Option<Fate>>>;

/// Runs a job once, and ends as its command did.
pub(super) fn run(global: &Global, args: &RunOnceArgs) -> Result<Exit, Exit> {
    let mut config = Settings::load(global, Strictness::Start)?.config;
    let job = find(&config, &args.job)?;
    // `enabled` is about the schedule: what a person asks for by name is run.
    for asked_for in config.jobs.iter_mut().filter(|known| known.name == job) {
        asked_for.enabled = true;
    }
    let runtime = store::runtime()?;
    let exit = runtime.block_on(once(config, job, args.replica.as_deref()));
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

fn find(config: &Config, name: &str) -> Result<JobName, Exit> {
    let found = config.jobs.iter().find(|job| job.name.as_str() == name);
    found.map(|job| job.name.clone()).ok_or_else(|| {
        let known: Vec<&str> = config.jobs.iter().map(|job| job.name.as_str()).collect();
        let hint = format!("the table has {}", known.join(", "));
        complain(
            Exit::Usage,
            &format!("no job is called `{name}`"),
            Some(&hint),
        )
    })
}

async fn once(config: Config, job: JobName, replica: Option<&str>) -> Result<Exit, Exit> {
    let (sender, requests) = mpsc::channel(2);
    signals::listen(Hangup::End, sender).map_err(|cause| {
        let message = format!("failed to listen for signals: {cause}");
        complain(Exit::Failed, &message, None)
    })?;
    let store = store::open(&config.scheduler)?;
    store
        .ready()
        .await
        .map_err(|error| store::refused(&error))?;
    let settings = scheduler::Settings {
        replica: run::replica(&config.scheduler, replica)?,
        // Ctrl-C on the terminal means now.
        shutdown_grace: Duration::ZERO,
        purpose: Purpose::Once(job),
        digest: config.digest(),
        revision: config.scheduler.revision,
        tags: config.scheduler.tags,
        // It was asked for here and now.
        max_running: None,
    };
    let fate = FateCell::default();
    let processes = Processes::new(settings.replica.name.clone(), OutputMode::Inherit);
    let clock = Arc::new(SystemClock);
    let driver = Driver::new(
        settings,
        config.jobs,
        store,
        Box::new(processes),
        clock,
        entropy(),
    );
    let driver = driver.map_err(|cause| {
        let message = format!("failed to set the timers: {cause}");
        complain(Exit::Failed, &message, None)
    })?;
    let listener = Box::new(listener(Arc::clone(&fate)));
    driver.observed_by(listener).run(requests).await;
    let fate = fate.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(exit_of(fate))
}

fn listener(fate: FateCell) -> impl FnMut(&Notice) + Send {
    move |notice| {
        let known = match notice {
            Notice::Ended {
                outcome, detail, ..
            }
            | Notice::Unreleased {
                outcome, detail, ..
            } => Fate::Ended(*outcome, detail.clone()),
            Notice::Superseded { .. } => Fate::LeaseLost,
            Notice::Skipped { unfinished, .. } => Fate::Refused(format!(
                "it is busy: the occurrence of {} is unfinished (`soloist status` says who has it)",
                unfinished.scheduled_at
            )),
            Notice::NotStarted { cause, .. } => {
                Fate::Refused(format!("skipped ({})", cause.as_str()))
            }
            Notice::Missed { .. } => Fate::Refused("the store was not there in time".to_owned()),
            _ => return,
        };
        *fate.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

fn exit_of(fate: Option<Fate>) -> Exit {
    match fate {
        Some(Fate::Ended(outcome, detail)) => exit_of_command(outcome, &detail),
        Some(Fate::Refused(why)) => complain(Exit::Failed, &format!("not run: {why}"), None),
        Some(Fate::LeaseLost) => {
            let message = "its lease was lost while it ran, and its end is not recorded";
            complain(Exit::Failed, message, None)
        }
        None => complain(Exit::Failed, "not run: stopped before it was granted", None),
    }
}

/// The command's own code; 128 and the number of the signal that ended it, as shells have it.
fn exit_of_command(outcome: Outcome, detail: &AttemptDetail) -> Exit {
    if outcome != Outcome::Succeeded {
        let reason = detail.reason.as_deref().map(|reason| format!(": {reason}"));
        print_error(&format!("{outcome}{}\n", reason.unwrap_or_default()));
    }
    let code = match (detail.exit_code, detail.signal) {
        (Some(code), _) => Some(code),
        (None, Some(signal)) => Some(SIGNALED + signal),
        (None, None) => None,
    };
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(0) if outcome != Outcome::Succeeded => Exit::Failed,
        Some(code) => Exit::OfJob(code),
        // A request has no code.
        None if outcome == Outcome::Succeeded => Exit::Done,
        None => Exit::Failed,
    }
}
