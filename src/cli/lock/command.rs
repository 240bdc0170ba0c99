//! A command under its leases: started, watched, and ended as it did.
//!
//! Must never: let the command run for longer than the leases are trusted. That is the guardian's to
//! see to, also when this process is killed or stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::super::args::{LockArgs, OnLost};
use super::super::{Exit, SIGNALED, complain, now};
use super::signals::{Asked, Signals};
use super::telling::Teller;
use crate::clock::{Clock as _, SystemClock};
use crate::leases::{Lease, Leases};
use crate::runner::{OutputMode, Runner};
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::{FencingToken, RunId};
use crate::scheduler::margins::Margins;
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::time::short_duration;
use crate::scheduler::{Attempt, EndedHow, Ending, Guard};

/// What the command's attempt is called where the runner tells of it.
const ATTEMPT_NAME: &str = "lock";

/// SIGTERM, which each stop of the command begins with.
const TERM: i32 = 15;

/// How long a lease may take to be renewed of which too little was left when it was heard of.
const RENEWAL_LIMIT: Duration = Duration::from_secs(1);

/// How long the store is asked who has a lease that was lost.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// A command and what it runs under.
pub(super) struct Command<'a> {
    pub(super) held: Vec<Lease>,
    pub(super) told: BTreeMap<String, String>,
    pub(super) args: &'a LockArgs,
    pub(super) leases: &'a Leases,
}

/// How it went.
struct Course {
    /// None where what watched it has ended.
    ending: Option<Ending>,
    /// The first signal that told it to stop.
    stopped_by: Option<i32>,
    is_lost: bool,
}

impl Command<'_> {
    pub(super) async fn run(
        mut self,
        name: String,
        signals: &mut Signals,
        teller: &mut Teller,
    ) -> Result<Exit, Exit> {
        let too_short = |guard: &Guard| guard.stop_at <= SystemClock.boot();
        if self.guard().as_ref().is_some_and(too_short) {
            // Its grant was heard of late, and it is being renewed. Where that fails, so be it.
            let _ = timeout(RENEWAL_LIMIT, changed(&mut self.held)).await;
        }
        let Some(guard) = self.guard().filter(|guard| !too_short(guard)) else {
            let message = "not run: its lease was lost at once";
            return Err(complain(Exit::Failed, message, None));
        };
        let attempt = self.attempt(guard)?;
        let course = self.watch(attempt, name, signals, teller).await;
        let Some(ending) = &course.ending else {
            let message = "what watched the command has ended, and the command with it";
            return Err(complain(Exit::Failed, message, None));
        };
        if course.is_lost {
            let why = self.cause_of_loss(teller).await;
            let message = format!(
                "the lease was lost while the command ran, in {}: {why}",
                teller.place()
            );
            return Ok(complain(Exit::Failed, &message, None));
        }
        // What is held is given back by whoever closes the client, all at once.
        Ok(exit_of(ending, course.stopped_by))
    }

    async fn watch(
        &mut self,
        attempt: Attempt,
        name: String,
        signals: &mut Signals,
        teller: &mut Teller,
    ) -> Course {
        let (told, mut ended) = oneshot::channel();
        let on_end = move |ending| {
            // Whoever waits for it lives as long as the runtime.
            let _ = told.send(ending);
        };
        let running = Runner::of_commands(name).start(attempt, OutputMode::InheritAll, on_end);
        let mut is_lost = false;
        let mut stopped_by = None;
        let ending = loop {
            tokio::select! {
                ending = &mut ended => break ending.ok(),
                () = changed(&mut self.held), if !is_lost => match self.guard() {
                    Some(guard) => running.guard(guard),
                    None => {
                        // The store says that it is somebody else's. Where it could not be
                        // renewed in time, the guardian has ended the command by now.
                        is_lost = true;
                        running.kill_now();
                    }
                },
                asked = signals.next() => match asked {
                    Asked::Stop(signal) => {
                        let again = stopped_by.is_some();
                        stopped_by.get_or_insert(signal);
                        running.stop(if again { Duration::ZERO } else { self.args.kill_grace });
                    }
                    Asked::PassOn(signal) => running.pass_on(signal),
                    Asked::Suspend => teller.say(
                        "not stopped, as the command's lease would run out; Ctrl-C ends both",
                    ),
                },
                never = teller.while_running() => match never {},
            }
        };
        // The guardian, too, ends it when its lease is not renewed in time.
        let was_ended = ending
            .as_ref()
            .is_some_and(|ending| ending.how == EndedHow::Stopped);
        let is_held = self.held.iter().all(|lease| lease.check().is_ok());
        Course {
            is_lost: is_lost || !is_held || (was_ended && stopped_by.is_none()),
            ending,
            stopped_by,
        }
    }

    /// Until when the command may run; none where a lease is lost.
    fn guard(&self) -> Option<Guard> {
        let trusted: Option<Vec<_>> = self.held.iter().map(Lease::trusted_until).collect();
        let kill_at = trusted?.into_iter().min()?;
        let grace = match self.args.on_lost {
            OnLost::Term => Margins::of(self.args.ttl).stop_grace(self.args.kill_grace),
            OnLost::Kill => Duration::ZERO,
        };
        Some(Guard {
            stop_at: kill_at - grace,
            kill_at,
        })
    }

    fn attempt(&self, guard: Guard) -> Result<Attempt, Exit> {
        let broken = |error: String| complain(Exit::Failed, &error, None);
        let name = JobName::new(ATTEMPT_NAME).map_err(|error| broken(error.to_string()))?;
        let schedule = Schedule::parse(
            "@manual",
            ATTEMPT_NAME,
            TimeZone::UTC,
            DstGap::default(),
            DstFold::default(),
        );
        let schedule = schedule.map_err(|error| broken(error.message))?;
        let mut job = Job::new(name, schedule, Program::Command(self.args.command.clone()));
        job.kill_grace = self.args.kill_grace;
        job.command.env = self.told.clone();
        Ok(Attempt {
            job: Arc::new(job),
            scheduled_at: now(),
            shard: 0,
            shards: 1,
            run_id: RunId::new(Uuid::new_v4()),
            number: 1,
            token: self.token(),
            guard,
        })
    }

    /// That of the newest grant.
    fn token(&self) -> FencingToken {
        let tokens = self.held.iter().map(Lease::token);
        tokens.max().unwrap_or_default()
    }

    /// Why a lease was lost, as far as it can be told.
    async fn cause_of_loss(&self, teller: &Teller) -> String {
        let seen = teller.seen();
        if seen.refused {
            let whose = self.who_has_it().await;
            return format!("the store says that it is not this one's any more; {whose}");
        }
        match (seen.away, seen.answered_at) {
            (Some((_, why)), Some(answered_at)) => {
                let silent = SystemClock.boot().saturating_since(answered_at);
                format!(
                    "it was last renewed {} ago, and since then {why}",
                    short_duration(silent)
                )
            }
            _ => "it was not renewed in time, as this process or its host stood still".to_owned(),
        }
    }

    /// Who has the names now.
    async fn who_has_it(&self) -> String {
        let Ok(Ok(states)) = timeout(LOOK_LIMIT, self.leases.names()).await else {
            return "somebody else may have it".to_owned();
        };
        let own = |name| self.held.iter().any(|lease| lease.names().contains(name));
        let states = states.iter().filter(|state| own(&state.name));
        let holders: Vec<String> = states
            .flat_map(|state| &state.held)
            .map(|held| format!("`{}` is {}'s now", held.name, held.by))
            .collect();
        match holders.is_empty() {
            true => "nobody has it now: its data were lost, or set back".to_owned(),
            false => holders.join(", "),
        }
    }
}

/// Completes when any of them was renewed, or lost.
async fn changed(held: &mut [Lease]) {
    let each = held.iter_mut().map(|lease| Box::pin(lease.changed()));
    futures_util::future::select_all(each).await;
}

/// The command's own code; 128 and the number of the signal that ended it, as shells have it. Where it
/// was told to stop and ended by that, by the signal that told so.
fn exit_of(ending: &Ending, stopped_by: Option<i32>) -> Exit {
    let detail = &ending.detail;
    let ended_by_signal = match (detail.exit_code, detail.signal) {
        // So say shells, and the JVM, of TERM.
        (Some(code), _) => code == SIGNALED + TERM,
        (None, Some(_)) => true,
        // It was stopped before it was started.
        (None, None) => ending.how == EndedHow::Stopped,
    };
    if let Some(signal) = stopped_by.filter(|_| ended_by_signal) {
        return Exit::BySignal(signal);
    }
    let code = match (detail.exit_code, detail.signal) {
        (Some(code), _) => Some(code),
        (None, Some(signal)) => Some(SIGNALED + signal),
        (None, None) => None,
    };
    let code = code.and_then(|code| u8::try_from(code).ok());
    match (code, ending.how) {
        (Some(code), _) => Exit::OfJob(code),
        (None, EndedHow::Succeeded) => Exit::Done,
        (None, _) => {
            let reason = detail.reason.as_deref().unwrap_or("it could not be run");
            complain(Exit::OfJob(126), reason, None)
        }
    }
}
