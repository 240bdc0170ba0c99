//! Whether a fleet is well, when all that ailed it is healed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::{Job, OnCrash};
use soloist::scheduler::lease::{Order, OrderKind, Outcome};
use soloist::scheduler::policy::Concurrency;
use soloist::store::Standing;

use super::Storm;
use crate::accounts::check_lines;
use crate::world::Run;

/// How long after the end of a lease somebody has taken it over: the watch's delay, and a turn.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(1);

/// How often the store is heard by nobody, for how long, and at most how long it is heard between.
const MUTED: u32 = 4;
const MUTED_FOR: Duration = Duration::from_millis(400);
const MUTED_EACH_MS: u64 = 5_000;

/// The longest period of a table, with what a job may be late by.
const PERIOD: Duration = Duration::from_secs(65);

/// How long it is tried to find somebody whose crash can be judged.
const SEARCH: Duration = Duration::from_secs(20);

impl Storm {
    /// The laws of a fleet that is well.
    pub(super) fn judge(&self) {
        let world = &self.world;
        for (number, one) in world.replicas.iter().enumerate() {
            assert!(
                world.is_alive(number) && !one.finished,
                "r{number} does not run"
            );
        }
        let snapshot = world.snapshot();
        assert!(
            snapshot.grace.is_zero(),
            "the grace window lasts for {:?} more",
            snapshot.grace
        );
        self.no_lease_is_stuck();
        self.what_runs_has_its_lease();
        self.nobody_is_behind();
        self.the_fleet_works();
        self.each_instant_has_one_fate();
    }

    fn no_lease_is_stuck(&self) {
        for state in self.world.snapshot().jobs {
            let one_table_has_it = self.world.jobs.iter().find(|job| job.name == state.job);
            let Some(job) = one_table_has_it else {
                continue;
            };
            for one in &state.attempts {
                let Standing::Running { deadline } = one.standing else {
                    continue;
                };
                let over_for = self.store_now().saturating_since(deadline);
                let most = TAKEN_OVER_WITHIN + job.lease_ttl;
                assert!(
                    over_for <= most || !is_placeable(job),
                    "a lease that ran out {over_for:?} ago: {state:#?}"
                );
            }
        }
    }

    /// No ghost runs: what is alive has its lease in the ledger.
    fn what_runs_has_its_lease(&self) {
        let jobs = self.world.snapshot().jobs;
        for (run_id, run) in self.world.runs_alive() {
            let state = jobs.iter().find(|state| state.job.as_str() == run.job);
            let mut attempts = state.iter().flat_map(|state| &state.attempts);
            assert!(
                attempts.any(|one| one.run_id == run_id),
                "it runs without a lease: {run:#?}\n{state:#?}"
            );
        }
    }

    fn nobody_is_behind(&self) {
        let jobs = self.world.snapshot().jobs;
        let judged = |job: &&Arc<Job>| job.after.is_empty() && job.enabled;
        for job in self.world.jobs.iter().filter(judged) {
            let state = jobs.iter().find(|state| state.job == job.name);
            let Some(state) = state else {
                panic!("nobody knows {}", job.name);
            };
            let behind = self.store_now().saturating_since(state.settled_until);
            assert!(
                behind < PERIOD + job.starting_deadline,
                "{} is {behind:?} behind\n{state:#?}",
                job.name
            );
        }
    }

    fn the_fleet_works(&self) {
        let from = self.world.now.saturating_sub(PERIOD);
        let runs = self.world.runs.values();
        let lately = runs.filter(|run| run.ended.is_none_or(|ended| ended > from));
        // Where its clock was set back, all may be settled for as long.
        let set_back = self
            .world
            .witness
            .as_ref()
            .is_some_and(|one| one.clock_was_set);
        let any = !set_back && self.world.jobs.iter().any(|job| is_placeable(job));
        assert!(lately.count() > 0 || !any, "nothing ran for {PERIOD:?}");
    }

    /// The sum rule, where nothing was forgotten on purpose and the schedules are those of before.
    fn each_instant_has_one_fate(&self) {
        let kinds = self.kinds;
        if kinds.loses_data || kinds.edits || kinds.sets_clock {
            return;
        }
        let jobs = self.world.jobs.iter().filter(|job| job.after.is_empty());
        let known = self.world.snapshot().jobs;
        let history = self.world.history();
        for (life, job) in self.lives.iter().zip(jobs) {
            let state = known.iter().find(|state| state.job == job.name);
            let lines = history.iter().filter(|line| line.job == job.name);
            let lines: Vec<_> = lines.cloned().collect();
            check_lines(state.expect("it is known"), &lines, life, job);
        }
    }

    /// In a fleet that is well the store is heard by nobody for a moment, again and again: no lease
    /// is lost by that, also none of which nobody heard that it was granted.
    pub(super) fn lose_answers(&mut self) {
        let since = self.store_now();
        // Of a ledger whose clock was set back, some may be from later than now.
        let known: BTreeSet<_> = self
            .world
            .history()
            .iter()
            .map(|line| line.run_id)
            .collect();
        for _ in 0..MUTED {
            self.world.mute_store(true);
            self.pass(MUTED_FOR);
            self.world.mute_store(false);
            let wait = self.millis(MUTED_EACH_MS);
            self.pass(wait);
        }
        self.pass(Duration::from_secs(20));
        let mut lines = self.world.history().into_iter();
        let lost = lines.find(|line| {
            let is_new = line.ended_at > since && line.started_at > since;
            // It may also be closed so as no attempts are left.
            let reason = line.detail.reason.as_deref().unwrap_or_default();
            let is_lost = line.outcome == Outcome::Lost && reason.contains("not heard of");
            is_lost && is_new && !known.contains(&line.run_id)
        });
        assert!(lost.is_none(), "lost by a lost answer: {lost:#?}");
    }

    /// In a fleet that is well a holder is killed: somebody takes its occurrence over in time.
    pub(super) fn crash_a_holder(&mut self) {
        let until = self.world.now + SEARCH;
        let (run, job) = loop {
            if let Some(found) = self.holder_to_crash() {
                break found;
            }
            if self.world.now >= until {
                return;
            }
            self.pass(Duration::from_millis(250));
        };
        self.world.tally("holder killed in a fleet that is well");
        self.world
            .tell_story(|| format!("*** r{} is killed, and watched", run.replica));
        self.world.crash(run.replica);
        let killed = self.world.now;
        // Who can't believe the store's clock watches a lease for its whole length, from the first
        // look on that shows it: when it has run out by that clock.
        let watch = match self.clocks_are_true {
            true => Duration::ZERO,
            false => job.lease_ttl + job.lease_ttl / 6,
        };
        self.pass(job.lease_ttl + watch + TAKEN_OVER_WITHIN);
        let same = |other: &&Run| {
            other.job == run.job
                && other.scheduled_at == run.scheduled_at
                && other.shard == run.shard
        };
        let mut others = self.world.runs.values().filter(same);
        assert!(
            others.any(|other| other.attempt > run.attempt && other.started >= killed),
            "nobody took it over: {run:#?}"
        );
        self.world.revive(run.replica);
        self.pass(Duration::from_secs(5));
    }

    /// An attempt that another replica may take over, whatever befalls its holder.
    fn holder_to_crash(&self) -> Option<(Run, Arc<Job>)> {
        let mut alive = self.world.runs_alive();
        let jobs = &self.world.jobs;
        alive.find_map(|(_, run)| {
            let job = jobs.iter().find(|job| job.name.as_str() == run.job)?;
            let fits = job.on_crash == OnCrash::Rerun
                && job.concurrency != Concurrency::Replace
                && job.run_on.is_empty()
                && job.enabled
                && run.attempt < job.max_attempts
                && run.started + Duration::from_secs(1) < self.world.now
                && self.world.has_room_beside(run.replica)
                && !self.is_asked_to_stop(run);
            fits.then(|| (run.clone(), Arc::clone(job)))
        })
    }

    /// A person wanted it to end: it is not run again.
    fn is_asked_to_stop(&self, run: &Run) -> bool {
        let killed = |order: &Order| order.what == OrderKind::Kill && order.job.as_str() == run.job;
        self.orders.iter().any(killed)
    }
}

/// It falls due by itself, and some replica may run it.
fn is_placeable(job: &Job) -> bool {
    job.enabled && job.run_on.is_empty() && job.after.is_empty()
}
