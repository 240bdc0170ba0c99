//! One fault in the life of a fleet: three replicas at work, the fault, its end, and the judgement.
//!
//! Must never: end before the fault has had its time to do harm: all jobs run again first, and
//! what could overlap had the time to.

use std::time::{Duration, Instant};

use test_support::account::{Occurrence, SECOND};
use test_support::fleet::{Fleet, Replica, SOON, now_ns};
use test_support::machine::stood_still;
use test_support::process::Signal;

use crate::Scenario;
use crate::figures::{Figures, Reach, recovery, unaccounted};
use crate::report::{self, Row};
use crate::table::{GRACE, TTL, table};

/// What a machine with more to do than its two cores can takes for itself.
const SLACK: Duration = Duration::from_secs(1);

/// How far attempts to connect may be apart.
const BACK_OFF: Duration = Duration::from_millis(500);

/// Where the machine itself stood still for longer than this, leases may run out as well.
const STILL: Duration = Duration::from_millis(500);

/// How long a job may be busy with what it was at, until its next occurrence starts: the longest
/// run, and the longest period.
const BUSY: Duration = Duration::from_secs(8);

/// Replicas at work.
pub(crate) struct Scene {
    scenario: &'static Scenario,
    fleet: Fleet,
    replicas: Vec<Replica>,
    struck: i128,
    lifted: i128,
    /// How long the machine had stood still when all began, and when the fault struck.
    stood_still: Duration,
    stood_still_at_strike: Duration,
    /// What `struck` may be late by: the fault took so long to do, or to tell.
    struck_late: Duration,
}

/// What is demanded beyond what always is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    /// Nothing new starts for so long after the fault.
    still: Duration,
    /// After the outage the first new occurrence starts within this and a second, and what attempts to
    /// connect are apart.
    recovery: Duration,
    /// How long it may take until it is noticed where to go.
    notice: Duration,
    /// Leases run out meanwhile, so that attempts are ended and taken over.
    takeovers: bool,
    /// What was due before the end of the outage may be gone with the ledger.
    ledger_kept: bool,
    /// Grants are forgotten that were given during the outage, or so long before it: `rerun` jobs
    /// may run again what ran then.
    forgets: Option<Duration>,
}

impl Law {
    /// It is the same server with the same data: all goes on at once.
    pub(crate) fn at_once() -> Self {
        Self {
            still: Duration::ZERO,
            recovery: Duration::ZERO,
            notice: Duration::ZERO,
            takeovers: false,
            ledger_kept: true,
            forgets: None,
        }
    }

    /// The server may have lost something: nothing starts for the length of a lease.
    pub(crate) fn after_a_grace() -> Self {
        Self {
            still: TTL,
            recovery: GRACE,
            ..Self::at_once()
        }
    }

    pub(crate) fn noticed_within(self, notice: Duration) -> Self {
        Self { notice, ..self }
    }

    pub(crate) fn still_for(self, still: Duration) -> Self {
        Self { still, ..self }
    }

    pub(crate) fn with_takeovers(self) -> Self {
        Self {
            takeovers: true,
            ..self
        }
    }

    pub(crate) fn with_the_ledger_lost(self) -> Self {
        Self {
            ledger_kept: false,
            ..self
        }
    }

    pub(crate) fn forgetting(self, before: Duration) -> Self {
        Self {
            forgets: Some(before),
            ..self
        }
    }
}

impl Scene {
    /// Three replicas on one store; returns when all jobs have run.
    pub(crate) fn begin(scenario: &'static Scenario, store: &str) -> Self {
        Self::begin_with(scenario, store, store, "")
    }

    /// The same, with one replica that goes another way, and more to say in the table.
    pub(crate) fn begin_with(
        scenario: &'static Scenario,
        store: &str,
        of_one: &str,
        scheduler: &str,
    ) -> Self {
        let fleet = Fleet::new(store, &table(scheduler));
        let replicas = vec![
            fleet.start_on(of_one, "a"),
            fleet.start("b"),
            fleet.start("c"),
        ];
        replicas.iter().for_each(Replica::wait_until_ready);
        let scene = Self {
            scenario,
            fleet,
            replicas,
            struck: 0,
            lifted: 0,
            stood_still: stood_still(),
            stood_still_at_strike: Duration::ZERO,
            struck_late: Duration::ZERO,
        };
        scene.wait_until_all_started_after(now_ns());
        scene
    }

    /// The fault strikes: it counts from the moment at which it is done.
    pub(crate) fn strike<T>(&mut self, fault: impl FnOnce() -> T) -> T {
        let before = now_ns();
        let told = fault();
        self.struck = now_ns();
        self.lifted = self.struck;
        self.stood_still_at_strike = stood_still();
        self.struck_late = time(self.struck - before);
        told
    }

    /// The fault is over when this is.
    pub(crate) fn lift<T>(&mut self, cure: impl FnOnce() -> T) -> T {
        let told = cure();
        self.lifted = now_ns();
        told
    }

    /// Waits for so long after the fault.
    pub(crate) fn hold(&self, time: Duration) {
        let end = self.struck + ns(time);
        std::thread::sleep(self::time(end - now_ns()));
    }

    /// The fault took so long to tell, and counts from then on: nothing was started any more.
    pub(crate) fn told_after(&mut self, time: Duration) {
        let still = stood_still() - self.stood_still_at_strike;
        let told = self.struck + ns(time + still);
        if told >= self.lifted {
            eprintln!("NOT SHOWN, as the machine stood still for {still:?}: that nothing starts");
        }
        self.struck = told.min(self.lifted);
        self.struck_late += still;
        let mut runs = self.fleet.runs();
        runs.retain(|run| (self.struck..self.lifted).contains(&run.started_ns));
        assert!(
            runs.is_empty(),
            "started all the same: {runs:#?}\nthe machine stood still for {still:?}\n{}",
            self.told()
        );
    }

    /// Waits for recovery, ends the fleet, and judges.
    pub(crate) fn end(mut self, law: Law) {
        self.wait_until_all_started_after(self.lifted + ns(law.recovery + law.notice));
        let reach = Reach {
            struck: self.struck,
            lifted: self.lifted,
            // What falls due in the last moment is for the next start of a fleet.
            until: now_ns() - SECOND,
        };
        self.wait_until_all_is_accounted_for(&reach, law.ledger_kept);
        for replica in &self.replicas {
            replica.signal(Signal::TERM);
        }
        for replica in &mut self.replicas {
            let status = replica.wait(SOON);
            assert!(status.success(), "{status}: {}", replica.tail());
        }
        let figures = Figures::of(&self.fleet, &reach, law.ledger_kept);
        self.judge(&law, figures);
    }

    fn judge(&self, law: &Law, figures: Figures) {
        let still = stood_still() - self.stood_still;
        let row = Row {
            scenario: self.scenario,
            outage: time(self.lifted - self.struck),
            ledger_kept: law.ledger_kept,
            figures,
        };
        let broken = self.verdict(law, &row, still);
        report::add(row);
        assert!(
            broken.is_empty(),
            "{}\nthe machine stood still for {still:?}\n{}",
            broken.join("\n"),
            self.told()
        );
    }

    /// What replicas and the ledger have to say.
    fn told(&self) -> String {
        let replicas = self.replicas.iter().map(Replica::tail);
        let lines = self.fleet.output(&["history", "-n", "100000"]).1;
        replicas.chain([lines]).collect::<Vec<_>>().join("\n---\n")
    }

    /// What doesn't hold. What must come in time may be as late as the machine stood still; what must
    /// never be is asked of a machine that stands still as well.
    fn verdict(&self, law: &Law, row: &Row, still: Duration) -> Vec<String> {
        let figures = &row.figures;
        let (first, last) = (figures.first, figures.last);
        // Without an outage, there is nothing to start before the next second.
        let outage = row
            .outage
            .max(time(SECOND - self.struck.rem_euclid(SECOND)));
        let first_within = outage + law.notice + law.recovery + BACK_OFF + SLACK + still;
        let takeovers = law.takeovers || still > STILL;
        if takeovers != law.takeovers {
            eprintln!("NOT SHOWN, as the machine stood still for {still:?}: that no lease is lost");
        }
        let taken_over = if takeovers { GRACE } else { Duration::ZERO };
        let last_within = first_within + taken_over + BUSY;
        let rerun = &figures.rerun;
        let mut forgotten = figures.forgotten.clone();
        forgotten.retain(|occurrence| !self.may_be_forgotten(law, occurrence));
        let demands = [
            (
                figures.overlaps.is_empty(),
                format!("beside: {:#?}", figures.overlaps),
            ),
            (
                figures.skip_twice.is_empty(),
                format!("twice: {:?}", figures.skip_twice),
            ),
            (
                forgotten.is_empty(),
                format!("again as if new: {forgotten:?}"),
            ),
            (
                takeovers || rerun.is_empty(),
                format!("taken over: {rerun:?}"),
            ),
            (figures.lost.is_empty(), format!("lost: {:?}", figures.lost)),
            (
                figures.before_the_ledger.is_empty(),
                format!("lost with the ledger: {:?}", figures.before_the_ledger),
            ),
            (
                figures.tokens_out_of_order.is_empty(),
                format!("no higher token: {:#?}", figures.tokens_out_of_order),
            ),
            (
                first + self.struck_late >= law.still,
                format!("first {first:?} < {:?}", law.still),
            ),
            (
                first <= first_within,
                format!("first {first:?} > {first_within:?}"),
            ),
            (
                last <= last_within,
                format!("last {last:?} > {last_within:?}"),
            ),
        ];
        let broken = demands.into_iter().filter(|(holds, _)| !holds);
        broken.map(|(_, what)| what).collect()
    }

    /// Whether it was due in the time of which grants are forgotten, or so shortly before that it
    /// still ran.
    fn may_be_forgotten(&self, law: &Law, (_, due): &Occurrence) -> bool {
        let due = i128::from(*due) * SECOND;
        law.forgets.is_some_and(|before| {
            let from = self.struck - ns(before + TTL);
            (from..=self.lifted + ns(law.notice)).contains(&due)
        })
    }

    /// Who makes up for all that it missed is not done when it has started again. What stays away
    /// for longer than this is lost, which the judgement says.
    fn wait_until_all_is_accounted_for(&self, reach: &Reach, ledger_kept: bool) {
        let end = Instant::now() + SOON;
        while Instant::now() < end && !unaccounted(&self.fleet, reach, ledger_kept).is_empty() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn wait_until_all_started_after(&self, at: i128) {
        let end = Instant::now() + SOON + SOON;
        while recovery(&self.fleet.runs(), at).is_none() {
            assert!(
                Instant::now() < end,
                "not all jobs run: {:#?}\n{}",
                self.fleet.runs(),
                self.told()
            );
            // A file that others append to: there is nothing to wait on.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// None where it is over.
fn time(ns: i128) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

fn ns(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).expect("a short time")
}
