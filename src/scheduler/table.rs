//! The cron table and what of it is due: jobs in the order of their next occurrence.
//!
//! An occurrence is claimed at its instant, or somewhat later: after its random delay; and by a
//! replica that can't run the job only when it is too late for any other, so that what no
//! replica could run is written down.
//!
//! Must never: look at jobs that are not due. Cost goes with what falls due, not with the size
//! of the table.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::job::{Job, JobName};
use super::lease::{
    Claim, Dependent, Dependents, Enrolment, JobDigests, Occurrence, Origin, RunId,
};
use super::poked::Poked;
use super::policy::{CatchUp, Tags, matches};
use super::spread::Spread;
use super::time::Timestamp;

/// How long after the last instant at which another replica could have started an occurrence
/// one that can't run it writes down that nobody did.
pub(super) const UNPLACED_DELAY: Duration = Duration::from_secs(1);

/// How long after its instant an occurrence is still claimed with `catch_up = "none"`.
const PROMPT: Duration = Duration::from_secs(1);

/// The jobs, and a queue of those that are armed.
#[derive(Debug, Default)]
pub(super) struct Table {
    jobs: HashMap<JobName, Arc<Entry>>,
    /// By the instant at which they are to be claimed.
    due: BTreeMap<Timestamp, Vec<Armed>>,
    /// What is not in the queue before somebody outside says that it is time.
    poked: Poked,
    /// The shortest and the longest lease of any job. Every call to the store asks for them.
    ttls: Option<(Duration, Duration)>,
    enabled: usize,
    /// Jobs that the table has no more, and of which a claim may still be granted.
    retired: HashMap<JobName, Arc<Entry>>,
}

/// A job of the table, and what this replica has to do with it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) job: Arc<Job>,
    /// The jobs that come after it.
    pub(super) dependents: Dependents,
    /// This replica has the tags that the job asks for.
    pub(super) runs_here: bool,
}

/// A job in the queue.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) job: JobName,
    /// Its next instant.
    pub(super) next: Timestamp,
    /// The instant before that one, or what was settled when it was armed.
    pub(super) after: Timestamp,
}

/// A job whose instant has come.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) entry: Arc<Entry>,
    /// The newest of its instants that have come.
    pub(super) scheduled_at: Timestamp,
    /// The oldest of them, when there is more than one: this replica fell behind.
    pub(super) passed_over: Option<Timestamp>,
    /// What it armed the job after.
    pub(super) follows: Timestamp,
}

impl Due {
    /// A number by which those that fall due together are put in an order.
    pub(super) fn turn(&self) -> u64 {
        let occurrence = self.entry.occurrence(self.scheduled_at);
        Spread::of("turn", &occurrence).number()
    }
}

impl Entry {
    /// When this replica claims an occurrence.
    pub(super) fn claim_at(&self, at: Timestamp) -> Timestamp {
        match self.runs_here {
            true => at + self.job.delay(at),
            false => self.job.start_by(at) + UNPLACED_DELAY,
        }
    }

    /// Whether it is due, and enrolled, as another entry of the job is.
    fn is_due_as(&self, other: &Entry) -> bool {
        let when = |entry: &Entry| {
            let job = &entry.job;
            (
                entry.runs_here,
                job.random_delay,
                job.starting_deadline,
                job.catch_up,
                job.waits_for_poke,
            )
        };
        when(self) == when(other) && Enrolment::of(&self.job) == Enrolment::of(&other.job)
    }

    fn occurrence(&self, at: Timestamp) -> Occurrence {
        Occurrence {
            job: self.job.name.clone(),
            scheduled_at: at,
        }
    }

    /// The newest instant that is to be claimed by `now`, not before `first`, which is.
    fn newest_due(&self, first: Timestamp, now: Timestamp) -> Timestamp {
        let schedule = &self.job.schedule;
        let is_due = |at: &Timestamp| self.claim_at(*at) <= now;
        if schedule.next_after(first).filter(is_due).is_none() {
            return first;
        }
        let least = match self.runs_here {
            true => Duration::ZERO,
            false => self.job.starting_deadline + UNPLACED_DELAY,
        };
        let mut newest = schedule.last_before(now - least + Duration::from_millis(1));
        // The delay is shorter than the gap between two instants, so that few are looked at.
        while let Some(at) = newest.filter(|at| *at > first && !is_due(at)) {
            newest = schedule.last_before(at);
        }
        newest.map_or(first, |at| at.max(first))
    }

    /// A claim to an occurrence, or a shard of it. The schedule's, where this replica can't be
    /// sure that older ones were claimed, is followed by [`Self::catch_up`].
    pub(super) fn claim(&self, at: Timestamp, origin: Origin, shard: u32, run_id: RunId) -> Claim {
        let job = &self.job;
        let start_by = match origin {
            Origin::Schedule => self.job.start_by(at),
            // How late these may be is a matter of the ledger.
            _ => Timestamp::from_millis(i64::MAX),
        };
        let prompt = at + self.job.delay(at) + PROMPT;
        Claim {
            origin,
            shard,
            shards: job.shards,
            definition: job.definition.digest.clone(),
            on_crash: job.on_crash,
            max_attempts: job.max_attempts,
            concurrency: job.concurrency,
            claim_by: match job.catch_up {
                CatchUp::None if origin == Origin::Schedule => prompt.min(start_by),
                _ => start_by,
            },
            start_by,
            ttl: job.lease_ttl,
            unplaced: !self.runs_here,
            retention: job.retention,
            dependents: self.dependents.clone(),
            telling: job.telling(),
            ..Claim::new(self.occurrence(at), run_id)
        }
    }

    /// Has a claim settle what was due before it, as `catch_up` says. What of it others have
    /// settled already stays as it is.
    pub(super) fn catch_up(&self, claim: &mut Claim, now: Timestamp) {
        let schedule = &self.job.schedule;
        let mut oldest = claim.occurrence.scheduled_at;
        if let CatchUp::All { limit } = self.job.catch_up
            && self.runs_here
        {
            let before =
                std::iter::successors(schedule.last_before(oldest), |at| schedule.last_before(*at));
            let in_time = |at: &Timestamp| self.job.start_by(*at) >= now;
            let others = limit.saturating_sub(1) as usize;
            claim.backlog = before.take(others).take_while(in_time).collect();
            claim.backlog.reverse();
            oldest = claim.backlog.first().copied().unwrap_or(oldest);
        }
        claim.missed_until = schedule.last_before(oldest);
    }
}

impl Table {
    /// A table of jobs, none of them armed, on a replica with `tags`.
    pub(super) fn new(jobs: impl IntoIterator<Item = Arc<Job>>, tags: &Tags) -> Self {
        let jobs: HashMap<_, _> = jobs
            .into_iter()
            .map(|job| (job.name.clone(), job))
            .collect();
        let children = children(&jobs);
        let entry = |job: &Arc<Job>| Entry {
            job: job.clone(),
            dependents: dependents(&job.name, &jobs, &children, 0),
            runs_here: matches(&job.run_on, tags),
        };
        let ttls = || jobs.values().map(|job| job.lease_ttl);
        Self {
            ttls: ttls().min().zip(ttls().max()),
            enabled: jobs.values().filter(|job| job.enabled).count(),
            jobs: jobs
                .iter()
                .map(|(name, job)| (name.clone(), Arc::new(entry(job))))
                .collect(),
            due: BTreeMap::new(),
            poked: Poked::default(),
            retired: HashMap::new(),
        }
    }

    /// The jobs that another table has not.
    pub(super) fn names_missing_in(&self, other: &Table) -> Vec<JobName> {
        let missing = self
            .jobs
            .keys()
            .filter(|name| !other.jobs.contains_key(*name));
        missing.cloned().collect()
    }

    /// Becomes another table. What stays as it was stays in the queue; the rest, and those in
    /// `unknown`, are to be enrolled. Of what is no more the entry is kept where a claim may
    /// still be granted.
    pub(super) fn replace(
        &mut self,
        other: Table,
        unknown: &HashSet<JobName>,
        is_claimed: impl Fn(&JobName) -> bool,
    ) -> Vec<Enrolment> {
        let mut before = std::mem::replace(&mut self.jobs, other.jobs);
        (self.ttls, self.enabled) = (other.ttls, other.enabled);
        let mut enrolments = Vec::new();
        let mut stays = HashSet::new();
        for (name, entry) in &self.jobs {
            let former = before.remove(name);
            match former.filter(|_| !unknown.contains(name)) {
                Some(former) if former.is_due_as(entry) => _ = stays.insert(name.clone()),
                _ => enrolments.push(Enrolment::of(&entry.job)),
            }
        }
        self.disarm(|job| !stays.contains(job));
        self.retired.retain(|name, _| is_claimed(name));
        before.retain(|name, _| is_claimed(name));
        self.retired.extend(before);
        enrolments.sort_by(|one, other| one.job.cmp(&other.job));
        enrolments
    }

    /// What a claim that was granted is to run: the job's entry, or its last one where the table
    /// has lost it since it was claimed.
    pub(super) fn granted(&self, name: &JobName) -> Option<&Arc<Entry>> {
        self.jobs.get(name).or_else(|| self.retired.get(name))
    }

    /// How many jobs are not disabled.
    pub(super) fn len(&self) -> usize {
        self.enabled
    }

    /// A job, disabled or not.
    pub(super) fn entry(&self, name: &JobName) -> Option<&Arc<Entry>> {
        self.jobs.get(name)
    }

    /// A job that is not disabled.
    pub(super) fn get(&self, name: &JobName) -> Option<&Arc<Entry>> {
        self.jobs.get(name).filter(|entry| entry.job.enabled)
    }

    /// What the ledger is told of all jobs, by name.
    pub(super) fn enrolments(&self) -> Vec<Enrolment> {
        let mut all: Vec<_> = self
            .jobs
            .values()
            .map(|entry| Enrolment::of(&entry.job))
            .collect();
        all.sort_by(|one, other| one.job.cmp(&other.job));
        all
    }

    /// The jobs themselves, by name.
    pub(super) fn sorted(&self) -> Vec<Arc<Job>> {
        let mut jobs: Vec<_> = self.jobs.values().map(|entry| entry.job.clone()).collect();
        jobs.sort_by(|one, other| one.name.cmp(&other.name));
        jobs
    }

    /// What it says of each job, in short.
    pub(super) fn digests(&self) -> JobDigests {
        let digest = |entry: &Arc<Entry>| entry.job.definition.digest.clone();
        let all = self.jobs.iter();
        all.map(|(name, entry)| (name.clone(), digest(entry)))
            .collect()
    }

    /// All jobs, by name.
    pub(super) fn names(&self) -> Vec<JobName> {
        let mut names: Vec<_> = self.jobs.keys().cloned().collect();
        names.sort();
        names
    }

    /// The longest lease of any job.
    pub(super) fn longest_ttl(&self) -> Option<Duration> {
        self.ttls.map(|(_, longest)| longest)
    }

    /// The shortest lease of any job.
    pub(super) fn shortest_ttl(&self) -> Option<Duration> {
        self.ttls.map(|(shortest, _)| shortest)
    }

    /// Puts a job into the queue with its first occurrence after `after`.
    pub(super) fn arm(&mut self, name: &JobName, after: Timestamp) {
        let Some(entry) = self.get(name).cloned() else {
            return;
        };
        if let Some(next) = entry.job.schedule.next_after(after) {
            let job = name.clone();
            let armed = Armed { job, next, after };
            let released = match entry.job.waits_for_poke {
                true => self.poked.hold(armed),
                false => Some(armed),
            };
            self.queue(&entry, released);
        }
    }

    fn queue(&mut self, entry: &Entry, armed: Option<Armed>) {
        if let Some(armed) = armed {
            let at = entry.claim_at(armed.next);
            self.due.entry(at).or_default().push(armed);
        }
    }

    /// The timer of a job outside is at work; it was `wall` there, and is `now` at the store.
    pub(super) fn poke(&mut self, name: &JobName, wall: Timestamp, now: Timestamp) {
        if self.poked.waits_beyond(name, wall.max(now)) {
            return;
        }
        let Some(entry) = self.get(name).cloned() else {
            return;
        };
        let until = entry.released_until(wall, now);
        let released = self.poked.release(name, until);
        self.queue(&entry, released);
    }

    /// Takes jobs out of the queue.
    pub(super) fn disarm(&mut self, which: impl Fn(&JobName) -> bool) {
        self.due.retain(|_, armed| {
            armed.retain(|one| !which(&one.job));
            !armed.is_empty()
        });
        self.poked.disarm(which);
    }

    /// The next instant at which anything is to be claimed.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.keys().next().copied()
    }

    /// The same for people: also of jobs that wait for somebody else's timer.
    pub(super) fn next_instant(&self) -> Option<Timestamp> {
        let waiting = self.poked.next().into_iter();
        self.next_due().into_iter().chain(waiting).min()
    }

    /// Takes what is to be claimed by `now` and arms it for its next occurrence.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut taken = Vec::new();
        while let Some(entry) = self.due.first_entry().filter(|entry| *entry.key() <= now) {
            let (_, jobs) = entry.remove_entry();
            for armed in jobs {
                let Some(entry) = self.get(&armed.job).cloned() else {
                    continue;
                };
                let first = armed.next;
                let newest = entry.newest_due(first, now);
                self.arm(&armed.job, newest);
                taken.push(Due {
                    entry,
                    scheduled_at: newest,
                    passed_over: (newest > first).then_some(first),
                    follows: armed.after,
                });
            }
        }
        taken
    }
}

/// The jobs of a table that come after one of them, for whoever orders something of it without
/// running the table.
pub fn dependents_of(name: &JobName, table: &[Job]) -> Dependents {
    let named = |job: &Job| (job.name.clone(), Arc::new(job.clone()));
    let jobs: HashMap<_, _> = table.iter().map(named).collect();
    dependents(name, &jobs, &children(&jobs), 0)
}

/// The jobs that come directly after each job, in order.
fn children(jobs: &HashMap<JobName, Arc<Job>>) -> HashMap<JobName, Vec<JobName>> {
    let mut children: HashMap<JobName, Vec<JobName>> = HashMap::new();
    for job in jobs.values() {
        for parent in &job.after {
            children
                .entry(parent.clone())
                .or_default()
                .push(job.name.clone());
        }
    }
    children.values_mut().for_each(|names| names.sort());
    children
}

/// All that comes after a job. A configuration has no cycles; `depth` keeps what came to be
/// without one from running for ever.
fn dependents(
    name: &JobName,
    jobs: &HashMap<JobName, Arc<Job>>,
    children: &HashMap<JobName, Vec<JobName>>,
    depth: usize,
) -> Dependents {
    let names = children.get(name).into_iter().flatten();
    let known = names.filter_map(|name| jobs.get(name));
    known
        .filter(|_| depth < jobs.len())
        .map(|job| Dependent {
            job: job.name.clone(),
            after: job.after.clone(),
            enabled: job.enabled,
            starting_deadline: job.starting_deadline,
            retention: job.retention,
            dependents: dependents(&job.name, jobs, children, depth + 1),
        })
        .collect()
}
