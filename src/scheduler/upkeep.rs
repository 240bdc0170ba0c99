//! The ledger's upkeep: it is told again and again which jobs a table has, and looks now and then
//! whether there are some that none has had for long.
//!
//! ```text
//!  a batch ─▶ a batch ─▶ … ─▶ all of the table: a round
//!  round ─▶ round ─▶ sweep        calm: no clock jumped, no store away, no host asleep in between
//!    ▲        disturbed │
//!    └──────────────────┘
//! ```
//!
//! Whoever sweeps goes by marks that say when a table had a job, by the store's clock. After a
//! calm round of its own, and another one that gave all others the time for theirs, no job of a
//! live replica has an old mark, whatever the clock did before.
//!
//! Must never: enrol a large table at once, or sweep on the strength of what was seen before a
//! disturbance.

use std::collections::HashMap;
use std::time::Duration;

use super::job::JobName;
use super::lease::{BATCH_LIMIT, Enrolment};
use super::time::BootTime;
use super::{CallResult, Effect, Notice, Purpose, Scheduler};

/// How long it takes to tell the ledger of the whole table again. A mark is renewed when it is a
/// week old, so that this could be longer; but a replica has to live for two rounds to sweep.
const ROUND: Duration = Duration::from_secs(6 * 3600);

/// How many rounds in a row have to be calm before a sweep.
const CALM_ROUNDS: u32 = 2;

/// From one sweep of a replica to the next, at least: marks are of days. It comes with the first
/// batch after that, so that a table of one batch is swept for once a day.
const SWEEP_INTERVAL: Duration = Duration::from_secs(21 * 3600);

/// How long after a sweep that failed the next one comes.
const SWEEP_RETRY: Duration = Duration::from_secs(3600);

/// Where the upkeep stands.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// Until when the ledger need not be told of a job again.
    fresh_until: HashMap<JobName, BootTime>,
    /// Jobs that the ledger is still to be told of in this round, the next one last.
    left: Vec<JobName>,
    /// From one batch to the next.
    pace: Duration,
    next_batch: BootTime,
    /// Rounds that were calm, up to now.
    calm: u32,
    sweep_at: BootTime,
    sweeping: bool,
}

impl Upkeep {
    /// Of a replica that enrols all of its table at its start.
    pub(super) fn new(now: BootTime) -> Self {
        Self {
            fresh_until: HashMap::new(),
            left: Vec::new(),
            pace: ROUND,
            // What is left of this round is nothing, and the next begins when it would be over.
            next_batch: now + ROUND,
            calm: 0,
            sweep_at: now,
            sweeping: false,
        }
    }

    /// The store was away, or a clock jumped: what was seen so far proves nothing.
    pub(super) fn disturbed(&mut self) {
        self.calm = 0;
        self.left.clear();
        self.fresh_until.clear();
    }

    /// The ledger was told of a job, and needs not to be told again until then.
    pub(super) fn told(&mut self, job: &JobName, fresh_until: BootTime) {
        self.fresh_until.insert(job.clone(), fresh_until);
    }

    /// The table has lost some jobs.
    pub(super) fn forget(&mut self, of: impl Fn(&JobName) -> bool) {
        self.fresh_until.retain(|job, _| !of(job));
        self.left.retain(|job| !of(job));
    }

    /// The store was away for so long.
    pub(super) fn was_away(&mut self, length: Duration) {
        if length >= ROUND {
            self.disturbed();
        }
    }

    /// When something is to be done next.
    pub(super) fn next_wakeup(&self) -> BootTime {
        self.next_batch
    }

    /// The jobs that are to be enrolled now. `all` is the table, by name.
    fn next_batch(&mut self, now: BootTime, all: impl FnOnce() -> Vec<JobName>) -> Vec<JobName> {
        if now < self.next_batch {
            return Vec::new();
        }
        // A host that was asleep is late by more than any replica that was not.
        if now.saturating_since(self.next_batch) > ROUND {
            self.disturbed();
        }
        if self.left.is_empty() {
            let due = |job: &JobName| self.fresh_until.get(job).is_none_or(|until| *until <= now);
            self.left = all();
            self.left.retain(due);
            self.left.reverse();
            let batches = self.left.len().div_ceil(BATCH_LIMIT).max(1);
            self.pace = ROUND / u32::try_from(batches).unwrap_or(u32::MAX);
        }
        let kept = self.left.len().saturating_sub(BATCH_LIMIT);
        let mut batch = self.left.split_off(kept);
        batch.reverse();
        self.next_batch = now + self.pace;
        if self.left.is_empty() {
            self.calm = self.calm.saturating_add(1);
        }
        batch
    }

    /// Whether to sweep now. The last batch of a round may be on its way, so that a round more
    /// than counts has to be over.
    fn begin_sweep(&mut self, now: BootTime) -> bool {
        let sweep = self.calm > CALM_ROUNDS && now >= self.sweep_at && !self.sweeping;
        self.sweeping |= sweep;
        sweep
    }

    fn swept(&mut self, worked: bool, now: BootTime) {
        self.sweeping = false;
        self.sweep_at = now
            + match worked {
                true => SWEEP_INTERVAL,
                false => SWEEP_RETRY,
            };
    }
}

impl Scheduler {
    /// Tells the ledger of some jobs again, and has it forget others, when it is time to.
    pub(super) fn keep_up(&mut self, now: BootTime) {
        if !self.may_keep_up() {
            return;
        }
        let table = &self.table;
        let batch = self.upkeep.next_batch(now, || table.names());
        let again = batch.iter().filter_map(|name| self.table.get(name));
        let again = again.map(|entry| Enrolment::of(&entry.job)).collect();
        self.ask_about(again);
        if self.upkeep.begin_sweep(now) {
            self.effects.push_back(Effect::Sweep);
        }
    }

    /// When [`Self::keep_up`] has to be called next; once all that is on its way has come back.
    pub(super) fn keep_up_at(&self) -> Option<BootTime> {
        self.may_keep_up().then(|| self.upkeep.next_wakeup())
    }

    fn may_keep_up(&self) -> bool {
        let idle = self.registration.waiting.is_empty() && self.registration.in_flight == 0;
        idle && self.settings.purpose == Purpose::Table && !self.draining
    }

    /// A sweep came back. It may take long, and says nothing of the store's time.
    pub(super) fn swept(&mut self, result: CallResult<Vec<JobName>>, now: BootTime) {
        self.upkeep.swept(result.is_ok(), now);
        match result {
            Ok(answered) if answered.answer.is_empty() => {}
            Ok(answered) => self.report(Notice::Forgotten {
                jobs: answered.answer,
            }),
            Err(cause) => self.report(Notice::NotSwept { cause }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> BootTime {
        BootTime::since_boot(Duration::from_secs(hours * 3600))
    }

    fn names(count: usize) -> Vec<JobName> {
        let name = |number| JobName::new(&format!("job-{number:05}")).unwrap();
        (0..count).map(name).collect()
    }

    /// Goes on for some hours; answers the batches and the sweeps, each with when it came.
    fn pass(
        upkeep: &mut Upkeep,
        jobs: usize,
        hours: std::ops::Range<u64>,
    ) -> (Vec<(BootTime, usize)>, Vec<BootTime>) {
        let (mut batches, mut sweeps) = (Vec::new(), Vec::new());
        let mut now = at(hours.start);
        while now < at(hours.end) {
            let batch = upkeep.next_batch(now, || names(jobs));
            if !batch.is_empty() {
                batches.push((now, batch.len()));
            }
            if upkeep.begin_sweep(now) {
                sweeps.push(now);
                upkeep.swept(true, now);
            }
            now = upkeep.next_wakeup().max(now + Duration::from_secs(1));
        }
        (batches, sweeps)
    }

    #[test]
    fn a_large_table_is_told_in_batches_that_lie_apart() {
        let mut upkeep = Upkeep::new(at(0));
        let (batches, _) = pass(&mut upkeep, 10_000, 0..13);
        let round = &batches[..79];
        assert_eq!(round.iter().map(|(_, jobs)| jobs).sum::<usize>(), 10_000);
        assert!(round[78].0 <= at(12));
        let apart = batches
            .windows(2)
            .map(|two| two[1].0.saturating_since(two[0].0));
        assert!(apart.min() > Some(Duration::from_secs(4 * 60)));
    }

    #[test]
    fn a_round_leaves_out_what_the_ledger_remembers_until_that_is_in_doubt() {
        let mut upkeep = Upkeep::new(at(0));
        for name in &names(300)[..290] {
            upkeep.told(name, at(100));
        }
        let (batches, _) = pass(&mut upkeep, 300, 0..7);
        assert_eq!(batches, [(at(6), 10)]);
        upkeep.disturbed();
        let (batches, _) = pass(&mut upkeep, 300, 7..17);
        assert_eq!(batches.iter().map(|(_, jobs)| jobs).sum::<usize>(), 300);
    }

    #[test]
    fn a_sweep_comes_after_two_calm_rounds_and_then_each_day() {
        for jobs in [1, 10_000] {
            let mut upkeep = Upkeep::new(at(0));
            let (_, sweeps) = pass(&mut upkeep, jobs, 0..(24 * 5));
            assert!(sweeps[0] >= at(18) && sweeps[0] <= at(25), "{sweeps:?}");
            assert!(sweeps.len() >= 4, "{sweeps:?}");
            let apart = sweeps.windows(2).map(|two| two[1].saturating_since(two[0]));
            assert!(apart.min() >= Some(SWEEP_INTERVAL));
        }
    }

    #[test]
    fn after_a_disturbance_there_is_no_sweep_until_two_more_rounds_were_calm() {
        let mut upkeep = Upkeep::new(at(0));
        pass(&mut upkeep, 300, 0..100);
        for wake_at in [100, 1000] {
            // A clock jumps; or the host sleeps for a month.
            if wake_at == 100 {
                upkeep.disturbed();
            }
            let (_, sweeps) = pass(&mut upkeep, 300, wake_at..(wake_at + 100));
            let after = sweeps[0].saturating_since(at(wake_at));
            assert!(after >= ROUND * CALM_ROUNDS, "{after:?}");
        }
    }

    #[test]
    fn a_short_outage_is_no_disturbance_and_a_long_one_is() {
        let mut upkeep = Upkeep::new(at(0));
        pass(&mut upkeep, 1, 0..20);
        upkeep.was_away(Duration::from_secs(60));
        assert!(upkeep.calm > 0);
        upkeep.was_away(ROUND);
        assert_eq!(upkeep.calm, 0);
    }
}
