//! Somebody who looks on at every step of a world: what happened in it, and whether it may.
//!
//! Must never: change anything, or draw from the world's chance.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::{JobName, OnCrash};
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Origin, Outcome, RenewalAnswer, RunId,
};
use soloist::scheduler::time::Timestamp;
use soloist::scheduler::{Attempt, Effect, EndedHow, Event};
use soloist::store::memory::Glance;
use soloist::store::{JobState, Standing};

use super::World;
use super::runs::Run;
use crate::happening::Sent;

/// How a shard of an occurrence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The ledger has nothing of it.
    Due,
    /// It waits for its turn.
    Waiting,
    /// It is its turn, and nobody has it yet.
    Idle,
    /// Somebody has its lease.
    Running,
    /// It ended, and another attempt follows.
    Again,
    /// It ended for good, with this.
    Ended(Outcome),
    /// It is over, and no part of the record any more.
    Settled,
}

/// A step of one shard of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arrow {
    /// As it was.
    pub from: Phase,
    /// What was asked of the store.
    pub by: &'static str,
    /// As it is.
    pub to: Phase,
}

/// What was seen.
#[derive(Default)]
pub struct Witness {
    /// How often things happened.
    pub tally: BTreeMap<&'static str, u64>,
    /// Steps of occurrences, and how often each was taken.
    pub arrows: HashMap<Arrow, u64>,
    /// Things that came to pass: wake-ups, arrivals, answers, ends.
    pub events: u64,
    /// What people read who want to know, if they do.
    pub story: Option<Vec<String>>,
    /// Data were lost: what was started may be started as if it were new.
    pub data_were_lost: bool,
    /// The store's clock was set back: what has begun may lie ahead of it.
    pub clock_was_set: bool,
    /// How the ledger stood when it was looked at last.
    last: Glance,
    highest: HashMap<JobName, FencingToken>,
    granted: BTreeSet<RunId>,
    deadlines: HashMap<RunId, Timestamp>,
    started: BTreeSet<(String, Timestamp, u32, u32)>,
    may_run_again: BTreeSet<(String, Timestamp, u32)>,
}

fn phase(state: Option<&JobState>, at: Timestamp, shard: usize) -> (Phase, Option<RunId>) {
    let Some(state) = state else {
        return (Phase::Due, None);
    };
    let one = state.attempts.get(shard);
    if let Some(one) = one.filter(|one| one.scheduled_at == at) {
        let phase = match one.standing {
            Standing::Idle => Phase::Idle,
            Standing::Running { .. } => Phase::Running,
            Standing::Again { .. } => Phase::Again,
            Standing::Ended(outcome) => Phase::Ended(outcome),
        };
        return (phase, Some(one.run_id));
    }
    let waits = state.waiting.iter().any(|one| one.scheduled_at == at);
    match (waits, at <= state.settled_until) {
        (true, _) => (Phase::Waiting, None),
        (false, true) => (Phase::Settled, None),
        (false, false) => (Phase::Due, None),
    }
}

fn name_of(effect: &Effect) -> &'static str {
    match effect {
        Effect::Register(_) => "register",
        Effect::Claim(_) => "claim",
        Effect::Renew(_) => "renew",
        Effect::Release(_) => "release",
        Effect::Sweep => "sweep",
        _ => "look",
    }
}

/// Which of their calls replicas die in front of.
pub(super) fn death_before(effect: &Effect) -> &'static str {
    match effect {
        Effect::Register(_) => "killed before it registers",
        Effect::Claim(_) => "killed before it claims",
        Effect::Renew(_) => "killed before it renews",
        Effect::Release(_) => "killed before it releases",
        _ => "killed before it looks",
    }
}

impl Witness {
    /// Compares how everything stood with how it stands.
    fn compare(&mut self, by: &'static str, before: &Glance, after: &Glance) {
        for state in after.jobs() {
            let was = before.job(&state.job);
            if was.is_some_and(|was| Arc::ptr_eq(was, state)) {
                continue;
            }
            let both = was.into_iter().chain([state]);
            let mut shards = BTreeSet::new();
            for one in both {
                let attempts = one.attempts.iter().enumerate();
                shards.extend(attempts.map(|(shard, one)| (one.scheduled_at, shard)));
                shards.extend(one.waiting.iter().map(|one| (one.scheduled_at, 0)));
            }
            for (at, shard) in shards {
                let (from, had) = phase(was.map(Arc::as_ref), at, shard);
                let (to, has) = phase(Some(state.as_ref()), at, shard);
                let is_over = matches!(from, Phase::Ended(_) | Phase::Settled);
                let is_past = matches!(to, Phase::Due | Phase::Settled);
                if is_over && is_past {
                    // The record has no room for it any more.
                    continue;
                }
                if from != to || (to == Phase::Running && had != has) {
                    *self.arrows.entry(Arrow { from, by, to }).or_default() += 1;
                }
            }
        }
    }

    /// A grant that was not there before.
    fn granted(&mut self, claim: &Claim, grant: &Grant, grace: Duration, before: &Glance) {
        let job = &claim.occurrence.job;
        let due = claim.occurrence.scheduled_at;
        let highest = self.highest.entry(job.clone()).or_default();
        assert!(
            grant.token > *highest,
            "{job} {due}: token {} after {highest}",
            grant.token
        );
        *highest = grant.token;
        assert!(
            grace.is_zero(),
            "{job} {due}: granted {grace:?} before the window is over"
        );
        assert!(
            grant.attempt <= claim.max_attempts,
            "{job} {due}: attempt {} of {}",
            grant.attempt,
            claim.max_attempts
        );
        let was = before.job(job).map(Arc::as_ref);
        let (phase, _) = phase(was, due, claim.shard as usize);
        assert!(
            !matches!(phase, Phase::Ended(_)),
            "{job} {due}: granted although it is over: {phase:?}"
        );
        let paused = was.and_then(|state| state.paused.as_ref());
        let of_pause = paused.is_some_and(|pause| pause.since < due);
        assert!(
            !of_pause || claim.origin != Origin::Schedule || phase != Phase::Due,
            "{job} {due}: granted although the job is paused"
        );
        self.deadlines.insert(claim.run_id, grant.deadline);
        // By the policy that it is granted with; its replica may have another table by its start.
        if claim.on_crash != OnCrash::Skip {
            let shard = (job.to_string(), due, claim.shard);
            self.may_run_again.insert(shard);
        }
    }
}

impl World {
    /// Something happened that a storm is to have seen.
    pub fn tally(&mut self, what: &'static str) {
        if let Some(witness) = &mut self.witness {
            *witness.tally.entry(what).or_default() += 1;
        }
    }

    /// Writes down what is told, where somebody wants to read it.
    pub fn tell_story(&mut self, told: impl FnOnce() -> String) {
        let now = self.now;
        let story = self.witness.as_mut().and_then(|one| one.story.as_mut());
        if let Some(story) = story {
            story.push(format!("{now:>14.3?}  {}", told()));
        }
    }

    /// A replica that is to die in the middle of its turn does so now.
    pub(super) fn dies_before(&mut self, number: usize, what: &'static str) -> bool {
        let Some(left) = &mut self.replicas[number].dies_after else {
            return false;
        };
        if *left > 0 {
            *left -= 1;
            return false;
        }
        self.tally(what);
        self.tell_story(|| format!("r{number} {what}"));
        self.crash(number);
        true
    }

    /// How the ledger stands before a call that may change it.
    pub(super) fn witnessed(&mut self, effect: &Effect) -> Option<Glance> {
        match name_of(effect) {
            "look" => None,
            _ => self.witnessed_order(),
        }
    }

    /// The same before an order.
    pub(super) fn witnessed_order(&mut self) -> Option<Glance> {
        let witness = self.witness.as_mut()?;
        let last = std::mem::take(&mut witness.last);
        Some(self.store.glance(&last))
    }

    /// What an order changed.
    pub(super) fn witness_order(&mut self, before: Option<Glance>) {
        if let (Some(before), Some(witness)) = (before, &mut self.witness) {
            witness.last = self.store.glance(&before);
            let after = witness.last.clone();
            witness.compare("order", &before, &after);
        }
    }

    /// What a call changed, and whether it may.
    pub(super) fn witness_answer(&mut self, before: Option<Glance>, call: &Sent, event: &Event) {
        let (Some(before), Some(witness)) = (before, &mut self.witness) else {
            return;
        };
        let after = self.store.glance(&before);
        let grace = after.grace;
        witness.compare(name_of(call.call.effect()), &before, &after);
        witness.last = after;
        let number = call.replica;
        let tells = witness.story.is_some();
        let mut told = Vec::new();
        if let Event::Claimed { claims, result, .. } = event {
            let answers = result.iter().flat_map(|told| &told.answer);
            for (claim, answer) in claims.iter().zip(answers) {
                if tells {
                    told.push(format!("claim of {:?} {answer:?}", claim.occurrence));
                }
                let ClaimAnswer::Granted(grant) = answer else {
                    continue;
                };
                if witness.granted.insert(claim.run_id) {
                    witness.granted(claim, grant, grace, &before);
                }
            }
        }
        if let Event::Renewed {
            renewals, result, ..
        } = event
        {
            let answers = result.iter().flat_map(|told| &told.answer);
            for (renewal, answer) in renewals.iter().zip(answers) {
                if tells {
                    told.push(format!("renewal of {:?} {answer:?}", renewal.occurrence));
                }
                if let RenewalAnswer::Renewed { deadline, .. } = answer {
                    let last = witness.deadlines.insert(renewal.run_id, *deadline);
                    assert!(
                        last.is_none_or(|last| last < *deadline),
                        "{:?}: deadline {deadline} after {last:?}",
                        renewal.occurrence
                    );
                }
            }
        }
        if let Event::Released { runs, result, .. } = event
            && tells
        {
            told.push(format!("release of {runs:?} {result:?}"));
        }
        for line in told {
            self.tell_story(|| format!("r{number}'s {line}"));
        }
    }

    /// Whether an attempt may start now.
    pub(super) fn witness_start(&mut self, run: &Run, attempt: &Attempt) {
        if self.witness.is_none() {
            return;
        }
        self.tell_story(|| {
            format!(
                "r{} STARTS {} {} attempt {} shard {} token {}",
                run.replica, run.job, run.scheduled_at, run.attempt, run.shard, run.token
            )
        });
        let alive: Vec<_> = self
            .alive
            .iter()
            .map(|id| &self.runs[id])
            .cloned()
            .collect();
        for other in alive.iter().filter(|other| other.job == run.job) {
            if other.scheduled_at == run.scheduled_at && other.shard != run.shard {
                continue;
            }
            let stands_still = self.replicas[other.replica].host.suspended_until > self.now;
            assert!(
                stands_still && other.guard.kill_at <= self.now,
                "two alive at once\n{other:#?}\n{run:#?}"
            );
            self.tally("start beside an attempt on a host that is suspended");
        }
        let same = |other: &&Run| {
            (&other.job, other.scheduled_at, other.shard) == (&run.job, run.scheduled_at, run.shard)
        };
        let mut earlier = self.runs.values().filter(same);
        let cut_short =
            earlier.find(|other| !matches!(other.how, Some(EndedHow::Failed | EndedHow::TimedOut)));
        let cut_short = cut_short.cloned();
        let early = run.scheduled_at.saturating_since(self.store.now());
        let skips = attempt.job.on_crash == OnCrash::Skip;
        let Some(witness) = &mut self.witness else {
            return;
        };
        assert!(
            early.is_zero() || witness.clock_was_set,
            "started {early:?} early: {run:#?}"
        );
        let shard = (run.job.clone(), run.scheduled_at, run.shard);
        let key = (run.job.clone(), run.scheduled_at, run.shard, run.attempt);
        let is_new = witness.started.insert(key);
        if !skips {
            witness.may_run_again.insert(shard.clone());
        }
        // Its policy may have been another one before the table was edited.
        let once = skips && !witness.may_run_again.contains(&shard);
        assert!(
            is_new || (witness.data_were_lost && !once),
            "the same attempt starts twice: {run:#?}"
        );
        assert!(
            cut_short.is_none() || !once,
            "it may have run before: {cut_short:#?}\n{run:#?}"
        );
    }

    /// An attempt has ended.
    pub(super) fn witness_end(&mut self, run: &Run) {
        self.tell_story(|| {
            format!(
                "r{} ENDS {} {} attempt {} shard {} completed {}",
                run.replica, run.job, run.scheduled_at, run.attempt, run.shard, run.completed
            )
        });
    }
}
