//! Attempts as functions of this program: a task each.
//!
//! Must never: wait for a function.

use std::collections::HashMap;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use super::attempt::{self, Function, Setting};
use super::context::LeaseInUse;
use super::course::Limits;
use crate::clock::Clock;
use crate::driver::{Attempts, OnEnd};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{AttemptDetail, Output, RunId};
use crate::scheduler::{Attempt, EndedHow, Ending, Guard, StopReason};

/// Runs the functions of jobs.
pub(super) struct Functions {
    functions: HashMap<JobName, Function>,
    replica: Arc<str>,
    clock: Arc<dyn Clock>,
    /// Where functions run, if not where they are started and watched over.
    runtime: Option<Handle>,
    running: HashMap<RunId, Running>,
    /// Whoever watches over an attempt has one as well: it is closed when nobody does.
    watches: mpsc::Sender<Infallible>,
}

/// Those who watch over attempts.
pub(super) struct Watches(mpsc::Receiver<Infallible>);

impl Watches {
    /// Completes when nothing is started any more and nothing of what was runs.
    pub(super) async fn over(mut self) {
        // Nothing is ever sent.
        let _closed = self.0.recv().await;
    }
}

struct Running {
    lease: Arc<LeaseInUse>,
    limits: watch::Sender<Limits>,
}

impl Functions {
    pub(super) fn new(
        functions: HashMap<JobName, Function>,
        replica: &str,
        clock: Arc<dyn Clock>,
        runtime: Option<Handle>,
    ) -> (Self, Watches) {
        let (watches, receiver) = mpsc::channel(1);
        let functions = Self {
            functions,
            replica: replica.into(),
            clock,
            runtime,
            running: HashMap::new(),
            watches,
        };
        (functions, Watches(receiver))
    }

    fn stop_at_latest(&self, running: &Running, reason: StopReason, grace: Duration) {
        // At once, and not by way of the task that watches: the runtime may have no thread for it.
        running.lease.cancel(reason.into());
        let at = self.clock.boot() + grace;
        running.limits.send_modify(|limits| {
            limits.kill_at = Some(limits.kill_at.map_or(at, |before| before.min(at)));
        });
    }
}

impl Attempts for Functions {
    fn start(&mut self, attempt: Attempt, on_end: OnEnd) {
        let run_id = attempt.run_id;
        let Some(function) = self.functions.get(&attempt.job.name).cloned() else {
            // Each job of the table came with one.
            on_end(failed("no function of this program has the job's name"));
            return;
        };
        let lease = Arc::new(LeaseInUse::new(Arc::clone(&self.clock), attempt.guard));
        let limits = watch::Sender::new(Limits {
            guard: attempt.guard,
            kill_at: None,
        });
        let setting = Setting {
            attempt,
            replica: Arc::clone(&self.replica),
            lease: Arc::clone(&lease),
            limits: limits.subscribe(),
            clock: Arc::clone(&self.clock),
            runtime: self.runtime.clone(),
        };
        self.running.insert(run_id, Running { lease, limits });
        let watch = self.watches.clone();
        tokio::spawn(async move {
            let _until_told = watch;
            // An attempt whose end is never told would keep its lease for ever.
            let run = attempt::run(function, setting);
            let ended = AssertUnwindSafe(run).catch_unwind().await;
            on_end(ended.unwrap_or_else(|_| failed("whoever watched over it failed")));
        });
    }

    fn stop(&mut self, run_id: RunId, reason: StopReason, grace: Duration) {
        if let Some(running) = self.running.get(&run_id) {
            self.stop_at_latest(running, reason, grace);
        }
    }

    fn guard(&mut self, run_id: RunId, guard: Guard) {
        if let Some(running) = self.running.get(&run_id) {
            running.lease.trust(guard);
            running.limits.send_modify(|limits| limits.guard = guard);
        }
    }

    fn forget(&mut self, run_id: RunId) {
        self.running.remove(&run_id);
    }

    fn kill_all(&mut self) {
        for running in self.running.values() {
            self.stop_at_latest(running, StopReason::Draining, Duration::ZERO);
        }
    }
}

fn failed(reason: &str) -> Ending {
    Ending {
        how: EndedHow::Failed,
        detail: AttemptDetail::reason(reason),
        output: Output::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jiff::tz::TimeZone;
    use uuid::Uuid;

    use super::*;
    use crate::clock::ManualClock;
    use crate::embed::Context;
    use crate::embed::context::CancelReason;
    use crate::scheduler::job::{Job, Program};
    use crate::scheduler::lease::FencingToken;
    use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
    use crate::scheduler::time::Timestamp;

    const SECOND: Duration = Duration::from_secs(1);

    /// What came of attempts, and what they saw.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl Seen {
        fn add(&self, what: impl Into<String>) {
            self.0.lock().unwrap().push(what.into());
        }

        fn all(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    fn attempt(clock: &ManualClock) -> Attempt {
        let name = JobName::new("a").unwrap();
        let (zone, gap, fold) = (TimeZone::UTC, DstGap::default(), DstFold::default());
        let schedule = Schedule::parse("@daily", "a", zone, gap, fold).unwrap();
        let now = clock.boot();
        Attempt {
            job: Arc::new(Job::new(name, schedule, Program::Function)),
            scheduled_at: Timestamp::from_second(0),
            shard: 0,
            shards: 1,
            run_id: RunId::new(Uuid::nil()),
            number: 1,
            token: FencingToken::new(7),
            guard: Guard {
                stop_at: now + 10 * SECOND,
                kill_at: now + 14 * SECOND,
            },
        }
    }

    /// Starts an attempt that nobody says anything to afterwards, as of a driver that is stuck.
    fn start(clock: &ManualClock, seen: &Seen, function: Function) -> Functions {
        let ended = seen.clone();
        let on_end = move |ending: Ending| ended.add(format!("{:?}", ending.how));
        start_with(clock, Box::new(on_end), function)
    }

    fn start_with(clock: &ManualClock, on_end: OnEnd, function: Function) -> Functions {
        let job = JobName::new("a").unwrap();
        let functions = HashMap::from([(job, function)]);
        let (mut functions, _) = Functions::new(functions, "one", Arc::new(clock.clone()), None);
        functions.start(attempt(clock), on_end);
        functions
    }

    #[tokio::test]
    async fn a_guard_ends_a_function_though_its_driver_is_stuck() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let (seen, notes) = (Seen::default(), Seen::default());
        let noting = notes.clone();
        let _stuck = start(
            &clock,
            &seen,
            Arc::new(move |ctx: Context| {
                let notes = noting.clone();
                Box::pin(async move {
                    notes.add(ctx.cancelled().await.as_str());
                    std::future::pending().await
                })
            }),
        );
        clock.advance(10 * SECOND).await;
        assert_eq!(notes.all(), [CancelReason::LeaseExpiring.as_str()]);
        assert!(seen.all().is_empty());
        clock.advance(4 * SECOND).await;
        assert_eq!(seen.all(), ["Stopped"]);
    }

    #[tokio::test]
    async fn a_renewal_moves_the_guard_and_what_check_goes_by() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let (seen, notes) = (Seen::default(), Seen::default());
        let (noting, ticking) = (notes.clone(), clock.clone());
        let mut functions = start(
            &clock,
            &seen,
            Arc::new(move |ctx: Context| {
                let (notes, clock) = (noting.clone(), ticking.clone());
                Box::pin(async move {
                    clock.sleep(20 * SECOND).await;
                    let checked = ctx.check();
                    notes.add(format!("{checked:?} {:?}", ctx.lease_left()));
                    Ok(())
                })
            }),
        );
        clock.advance(5 * SECOND).await;
        let renewed = Guard {
            stop_at: clock.boot() + 20 * SECOND,
            kill_at: clock.boot() + 24 * SECOND,
        };
        functions.guard(RunId::new(Uuid::nil()), renewed);
        clock.advance(20 * SECOND).await;
        assert_eq!(notes.all(), ["Ok(()) 9s"]);
        assert_eq!(seen.all(), ["Succeeded"]);
    }

    #[tokio::test]
    async fn a_function_that_never_awaited_finds_its_lease_over() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let (seen, notes) = (Seen::default(), Seen::default());
        let (noting, ticking) = (notes.clone(), clock.clone());
        let _stuck = start(
            &clock,
            &seen,
            Arc::new(move |ctx: Context| {
                let (notes, clock) = (noting.clone(), ticking.clone());
                Box::pin(async move {
                    // In the place of work that blocks: no other task has a turn meanwhile.
                    clock.jump(14 * SECOND);
                    notes.add(format!("{:?}", ctx.check().is_err()));
                    Ok(())
                })
            }),
        );
        clock.settle().await;
        assert_eq!(notes.all(), ["true"]);
        assert_eq!(seen.all(), ["Stopped"], "another replica may run it");
    }

    #[tokio::test]
    async fn who_panics_as_its_lease_is_over_has_not_failed() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let seen = Seen::default();
        let ticking = clock.clone();
        let _stuck = start(
            &clock,
            &seen,
            Arc::new(move |ctx: Context| {
                let clock = ticking.clone();
                Box::pin(async move {
                    clock.jump(14 * SECOND);
                    ctx.check().unwrap();
                    Ok(())
                })
            }),
        );
        clock.settle().await;
        assert_eq!(seen.all(), ["Stopped"], "another replica may run it");
    }

    /// The whole process may stand still after the watch has looked at the lease.
    #[test]
    fn what_begins_when_its_lease_is_over_does_not_run() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let (seen, notes) = (Seen::default(), Seen::default());
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
        };
        let (own, programs) = (runtime(), runtime());
        let noting = notes.clone();
        let function: Function = Arc::new(move |_| {
            noting.add("ran");
            Box::pin(async { Ok(()) })
        });
        let functions = HashMap::from([(JobName::new("a").unwrap(), function)]);
        let (shared, runs_on) = (Arc::new(clock.clone()), programs.handle().clone());
        let (mut functions, _) = Functions::new(functions, "one", shared, Some(runs_on));
        let ended = seen.clone();
        own.block_on(async {
            let on_end = move |ending: Ending| ended.add(format!("{:?}", ending.how));
            functions.start(attempt(&clock), Box::new(on_end));
            clock.settle().await;
        });
        clock.jump(14 * SECOND);
        programs.block_on(clock.settle());
        own.block_on(clock.settle());
        assert_eq!(notes.all(), [""; 0]);
        assert_eq!(seen.all(), ["Stopped"], "another replica may run it");
    }

    /// It may have ended by the time that the watch hears when it is to be over.
    #[tokio::test]
    async fn who_is_killed_is_not_said_to_have_lost_its_lease_however_fast_it_ends() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let seen = Seen::default();
        let ended = seen.clone();
        let functions = start_with(
            &clock,
            Box::new(move |ending| {
                ended.add(format!("{:?} {:?}", ending.how, ending.detail.reason))
            }),
            Arc::new(|ctx: Context| {
                Box::pin(async move {
                    ctx.cancelled().await;
                    Ok(())
                })
            }),
        );
        clock.settle().await;
        let running = functions.running.values().next().unwrap();
        running.lease.cancel(CancelReason::Killed);
        clock.settle().await;
        assert_eq!(seen.all(), ["Stopped None"]);
    }
}
