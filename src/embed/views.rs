//! How jobs and replicas stand, for whoever asks a [`Handle`](crate::Handle).
//!
//! Must never: show what the ledger doesn't say.

use crate::scheduler::job::Job;
use crate::scheduler::lease::Outcome;
use crate::scheduler::time::Timestamp;
use crate::store::{
    self, AttemptRecord, COUNT_LIMIT, JobState, RangeLine, ReplicaState, Snapshot, Standing,
};

/// How all jobs and replicas of a namespace stand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The store's time at which this was so.
    pub now: Timestamp,
    /// All jobs that the ledger knows, by name.
    pub jobs: Vec<JobStatus>,
    /// All replicas that were heard of in the last day, by name.
    pub replicas: Vec<ReplicaStatus>,
}

impl Status {
    /// The job of this name.
    pub fn job(&self, name: &str) -> Option<&JobStatus> {
        self.jobs.iter().find(|job| job.name == name)
    }
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobStatus {
    /// Its name.
    pub name: String,
    /// Its pause, if it is paused.
    pub paused: Option<Paused>,
    /// Its newest attempt; none where it never ran. With shards, the one that says most: one that
    /// runs before one that failed, before one that succeeded.
    pub last: Option<LastAttempt>,
    /// How many of its occurrences wait for their turn.
    pub waiting: usize,
    /// When it is due next by its schedule; none where that is never, where it is disabled, and where
    /// this program doesn't have it.
    pub next: Option<Timestamp>,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paused {
    /// Since when.
    pub since: Timestamp,
    /// Who asked for it.
    pub by: String,
}

/// The newest attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastAttempt {
    /// The instant that it is for.
    pub scheduled_at: Timestamp,
    /// Its number; 0 where it is not started yet.
    pub attempt: u32,
    /// Its fencing token.
    pub fencing_token: u64,
    /// The name of the replica that runs or ran it.
    pub replica: String,
    /// Since when it is as it is.
    pub since: Timestamp,
    /// How it is.
    pub state: State,
}

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It runs, under a lease until then; one in the past means that its replica is gone.
    Running {
        /// By the store's clock.
        until: Timestamp,
    },
    /// It ended, and another attempt follows at that instant at the earliest.
    Again {
        /// How it ended.
        outcome: Outcome,
        /// The earliest instant of the next.
        at: Timestamp,
    },
    /// It waits for its first attempt.
    Waiting,
    /// It ended.
    Ended(Outcome),
}

/// A replica, as the store last heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaStatus {
    /// Its name.
    pub name: String,
    /// Its id, which is new at each start.
    pub id: String,
    /// The name of its host.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// The version of soloist in it.
    pub version: String,
    /// How many attempts it runs.
    pub running: u32,
    /// It shuts down.
    pub draining: bool,
    /// It was heard of lately enough to be taken for alive.
    pub alive: bool,
    /// When it was heard of.
    pub seen_at: Timestamp,
}

/// A line of the ledger: an attempt that ended, an occurrence that never started, or all that did not
/// start in a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedAttempt {
    /// The job's name.
    pub job: String,
    /// The instant that it was for.
    pub scheduled_at: Timestamp,
    /// Its number; 0 where none was made.
    pub attempt: u32,
    /// Its fencing token; 0 where none was made.
    pub fencing_token: u64,
    /// Its id.
    pub run_id: String,
    /// Which shard, and of how many; none where the job has none.
    pub shard: Option<(u32, u32)>,
    /// The name of the replica that ran it, or wrote the line.
    pub replica: String,
    /// When it was granted, by the store's clock.
    pub started_at: Timestamp,
    /// When its end was written down, by the store's clock.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// In words: the error of the function, or why it was cut short or never started.
    pub reason: Option<String>,
    /// Another attempt follows, at this instant at the earliest; none where this is the last word.
    pub next_attempt_at: Option<Timestamp>,
    /// The line stands for all instants of the job's schedule after this one, up to and with
    /// `scheduled_at`, as of what was missed in an outage or skipped in a pause; none for a line of
    /// one occurrence.
    pub since: Option<Timestamp>,
    /// How many those are, counted up to 1000; none for a line of one occurrence, and where the
    /// schedule of that time can't be told any more.
    pub occurrences: Option<usize>,
}

impl EndedAttempt {
    /// None for a line that stands for nothing: what was settled while nothing was due leaves one
    /// as well.
    pub(super) fn of(line: AttemptRecord, table: &[Job]) -> Option<Self> {
        let own = table.iter().find(|job| job.name == line.job);
        let range = RangeLine::of(&line, own);
        let occurrences = range.and_then(|range| range.count(COUNT_LIMIT));
        (occurrences != Some(0)).then(|| Self::with(line, occurrences))
    }

    fn with(line: AttemptRecord, occurrences: Option<usize>) -> Self {
        Self {
            since: line.detail.since,
            occurrences,
            job: line.job.into(),
            scheduled_at: line.scheduled_at,
            attempt: line.attempt,
            fencing_token: line.token.get(),
            run_id: line.run_id.to_string(),
            shard: line.detail.shard,
            replica: line.replica,
            started_at: line.started_at,
            ended_at: line.ended_at,
            outcome: line.outcome,
            reason: line.detail.reason,
            next_attempt_at: line.detail.next_attempt_at,
        }
    }
}

pub(super) fn status(snapshot: Snapshot, now: Timestamp, table: &[Job]) -> Status {
    let jobs = snapshot.jobs.iter();
    let replicas = snapshot.replicas.into_iter();
    Status {
        now,
        jobs: jobs.map(|state| job_status(state, now, table)).collect(),
        replicas: replicas.map(|state| replica_status(state, now)).collect(),
    }
}

fn job_status(state: &JobState, now: Timestamp, table: &[Job]) -> JobStatus {
    let own = table.iter().find(|job| job.name == state.job);
    let enabled = own.filter(|job| job.enabled);
    JobStatus {
        name: state.job.as_str().to_owned(),
        paused: state.paused.as_ref().map(|pause| Paused {
            since: pause.since,
            by: pause.by.clone(),
        }),
        last: state.last().map(last_attempt),
        waiting: state.waiting.len(),
        next: enabled.and_then(|job| job.schedule.next_after(now)),
    }
}

fn last_attempt(last: &store::LastAttempt) -> LastAttempt {
    LastAttempt {
        scheduled_at: last.scheduled_at,
        attempt: last.attempt,
        fencing_token: last.token.get(),
        replica: last.replica.clone(),
        since: last.since,
        state: match last.standing {
            Standing::Running { deadline } => State::Running { until: deadline },
            Standing::Again { outcome, at } => State::Again { outcome, at },
            Standing::Idle => State::Waiting,
            Standing::Ended(outcome) => State::Ended(outcome),
        },
    }
}

fn replica_status(state: ReplicaState, now: Timestamp) -> ReplicaStatus {
    ReplicaStatus {
        alive: state.is_alive(now),
        id: state.replica.id.to_string(),
        name: state.replica.name,
        host: state.info.host,
        pid: state.info.pid,
        version: state.info.version,
        running: state.info.running,
        draining: state.info.draining,
        seen_at: state.seen_at,
    }
}
