//! What happens to the scheduler, what it wants done, and what it wants told.

use std::sync::Arc;
use std::time::Duration;

use super::drift::{Difference, Mixture};
use super::job::{Job, JobName};
use super::lease::{
    Answered, AttemptDetail, Cause, Claim, ClaimAnswer, Closing, Definition, Enrolment,
    FencingToken, Grant, Held, JobDigests, Observation, Occurrence, Outcome, Output, Pause,
    PublishedTable, Registration, Release, ReleaseAnswer, Renewal, RenewalAnswer, RunId, Scope,
};
use super::store_clock::ClockJump;
use super::time::{BootTime, Timestamp};

/// What came of a call to the store: its answer, or why there was none.
pub type CallResult<T> = Result<Answered<T>, String>;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A [`Effect::Register`] came back.
    Registered {
        /// What was asked.
        jobs: Vec<Enrolment>,
        /// When it was sent.
        sent: BootTime,
        /// In the order of `jobs`.
        result: CallResult<Vec<Registration>>,
    },
    /// A [`Effect::Claim`] came back.
    Claimed {
        /// What was asked.
        claims: Vec<Claim>,
        /// When it was sent.
        sent: BootTime,
        /// In the order of `claims`.
        result: CallResult<Vec<ClaimAnswer>>,
    },
    /// A [`Effect::Renew`] came back.
    Renewed {
        /// What was asked.
        renewals: Vec<Renewal>,
        /// When it was sent.
        sent: BootTime,
        /// In the order of `renewals`.
        result: CallResult<Vec<RenewalAnswer>>,
    },
    /// A [`Effect::Release`] came back.
    Released {
        /// Which attempts were released.
        runs: Vec<RunId>,
        /// When it was sent.
        sent: BootTime,
        /// In the order of `runs`.
        result: CallResult<Vec<ReleaseAnswer>>,
    },
    /// A [`Effect::Observe`] came back.
    Observed {
        /// What was asked.
        scope: Scope,
        /// When it was sent.
        sent: BootTime,
        /// What was seen.
        result: CallResult<Observation>,
    },
    /// A [`Effect::Sweep`] came back.
    Swept {
        /// The jobs that were forgotten.
        result: CallResult<Vec<JobName>>,
    },
    /// A [`Effect::Publish`] came back.
    Published {
        /// When it was sent.
        sent: BootTime,
        /// Whether others see it.
        result: CallResult<()>,
    },
    /// A [`Effect::ReadTable`] came back.
    TableRead {
        /// Which table.
        digest: String,
        /// What it says of each job; none where nobody has published it.
        result: Result<Option<JobDigests>, String>,
    },
    /// An attempt ended, or could not be started.
    AttemptEnded {
        /// Which.
        run_id: RunId,
        /// How.
        ending: Ending,
    },
    /// Something may be claimed: another replica handed it over, its turn came, or somebody
    /// asked for it.
    Opening,
    /// Somebody asked for the end of attempts, maybe of this replica's.
    StopAsked,
    /// Somebody paused a job, or ended its pause.
    PauseChanged,
    /// The store was away, or this host's clocks were set or stood still: look at everything
    /// anew.
    Disturbed,
    /// No new work; let what runs end, then finish.
    DrainRequested,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// In a word.
    pub how: EndedHow,
    /// What else is known.
    pub detail: AttemptDetail,
    /// What it printed.
    pub output: Output,
}

/// How an attempt ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedHow {
    /// By itself, with a success code.
    Succeeded,
    /// By itself, otherwise; or it could not be started.
    Failed,
    /// It was stopped for running over its timeout.
    TimedOut,
    /// It was stopped: an [`Effect::Stop`] asked for it, or its [`Guard`] came to its end.
    Stopped,
    /// Nothing of it ran, for no fault of the job's: another replica may run it, also where it may
    /// run at most once.
    NotStarted,
}

/// Something to be done.
#[derive(Debug)]
pub enum Effect {
    /// Make jobs known to the store; comes back as [`Event::Registered`].
    Register(Vec<Enrolment>),
    /// Claim occurrences; comes back as [`Event::Claimed`].
    Claim(Vec<Claim>),
    /// Renew leases; comes back as [`Event::Renewed`].
    Renew(Vec<Renewal>),
    /// Give leases back; comes back as [`Event::Released`].
    Release(Vec<Release>),
    /// Say that this replica lives, and look; comes back as [`Event::Observed`].
    Observe(Scope),
    /// Have the ledger forget jobs that no table has had for long; comes back as
    /// [`Event::Swept`].
    Sweep,
    /// Show others this replica's table; comes back as [`Event::Published`].
    Publish(PublishedTable),
    /// Find out what another replica's table says; comes back as [`Event::TableRead`].
    ReadTable(String),
    /// Start an attempt; its end comes back as [`Event::AttemptEnded`], always.
    Start(Attempt),
    /// End an attempt: TERM, and KILL after `grace` at the latest. Said again, the shorter
    /// grace counts.
    Stop {
        /// Which.
        run_id: RunId,
        /// Why.
        reason: StopReason,
        /// From TERM to KILL.
        grace: Duration,
    },
    /// Let an attempt run for longer than its last guard said: its lease was renewed. While it
    /// is being ended for a drain too, as its grace may outlast the lease that it had then; not
    /// once it is being ended for its lease.
    Guard {
        /// Which.
        run_id: RunId,
        /// Until when.
        guard: Guard,
    },
    /// Tell people.
    Report(Notice),
    /// All is done: take this replica off the list and end.
    Finish,
}

/// One execution of an occurrence.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What to run.
    pub job: Arc<Job>,
    /// For which instant.
    pub scheduled_at: Timestamp,
    /// Which shard of it, from 0.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// Its id.
    pub run_id: RunId,
    /// Its number, counted from 1 over all replicas.
    pub number: u32,
    /// Handed to the job.
    pub token: FencingToken,
    /// Until when it may run at first; an [`Effect::Guard`] follows each renewal of its lease.
    pub guard: Guard,
}

/// Until when an attempt may run by the lease that it runs under. Whoever holds it ends the
/// attempt by it without being told to: a replica that is frozen tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// When TERM is due, so that the grace is over at `kill_at`. Not after it.
    pub stop_at: BootTime,
    /// When KILL must have been sent. The store's deadline is later by what KILL takes to act
    /// and two hosts' clocks may drift apart.
    pub kill_at: BootTime,
}

/// Why an attempt is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its lease could not be renewed and is about to run out.
    LeaseExpiring,
    /// Its lease is somebody else's.
    LeaseLost,
    /// This replica is draining and `shutdown_grace` is over.
    Draining,
    /// A newer occurrence takes its place.
    Replaced,
    /// Somebody asked for it.
    Killed,
}

impl StopReason {
    /// In words, for logs and the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            StopReason::LeaseExpiring => "the lease could not be renewed in time",
            StopReason::LeaseLost => "the lease was lost",
            StopReason::Draining => "the replica was shutting down",
            StopReason::Replaced => "a newer occurrence takes its place",
            StopReason::Killed => "it was killed",
        }
    }
}

/// Something that people want to know.
#[derive(Debug)]
pub enum Notice {
    /// This replica won an occurrence and starts an attempt.
    Started {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Under what.
        grant: Grant,
        /// It was another replica's before, which vanished.
        takeover: bool,
        /// Its id.
        run_id: RunId,
        /// Which shard of it, from 0.
        shard: u32,
    },
    /// An attempt of this replica ended and its lease was given back.
    Ended {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Its number.
        attempt: u32,
        /// Its token.
        token: FencingToken,
        /// How it ended.
        outcome: Outcome,
        /// After how long another attempt is to follow a failure.
        retry_after: Option<Duration>,
        /// What else is known.
        detail: AttemptDetail,
    },
    /// An occurrence of a job of which people want to be told is over, by the word of the store.
    /// One replica alone hears it.
    Over {
        /// What is over, and what people are to be told of it.
        closing: Box<Closing>,
        /// What the attempt printed that ended it.
        output: Output,
    },
    /// An attempt of this replica runs for longer than `warn_after`. Said once an attempt.
    Slow {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Its number.
        attempt: u32,
        /// Its token.
        token: FencingToken,
        /// Its id.
        run_id: RunId,
        /// What it runs longer than.
        warn_after: Duration,
    },
    /// An attempt of this replica is being stopped.
    Stopping {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Its number.
        attempt: u32,
        /// Its token.
        token: FencingToken,
        /// Why.
        reason: StopReason,
    },
    /// An attempt ended when its lease was somebody else's already: its end is not recorded.
    Superseded {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Its number.
        attempt: u32,
        /// Its token.
        token: FencingToken,
    },
    /// This replica is about to end, and the store could not be told how an attempt ended
    /// before its lease ran out: it will be taken for lost.
    Unreleased {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Its number.
        attempt: u32,
        /// Its token.
        token: FencingToken,
        /// How it ended.
        outcome: Outcome,
        /// What else is known.
        detail: AttemptDetail,
    },
    /// An occurrence was skipped: an earlier one of the job is unfinished.
    Skipped {
        /// Which occurrence.
        occurrence: Occurrence,
        /// What stands in its way.
        unfinished: Held,
    },
    /// An occurrence does not start, by a policy.
    NotStarted {
        /// Which occurrence.
        occurrence: Occurrence,
        /// Which policy.
        cause: Cause,
    },
    /// An occurrence waits for its turn.
    Waiting {
        /// Which occurrence.
        occurrence: Occurrence,
    },
    /// A job has another schedule than the ledger knew.
    ScheduleChanged {
        /// Which.
        job: JobName,
        /// What it was.
        from: String,
        /// What it is now.
        to: String,
    },
    /// An occurrence could not be claimed in time.
    Missed {
        /// Which occurrence.
        occurrence: Occurrence,
    },
    /// An occurrence whose holder vanished may not run again.
    Closed {
        /// Which occurrence.
        occurrence: Occurrence,
    },
    /// Occurrences fell due in a row while this replica could not look; the newest is claimed.
    FellBehind {
        /// Whose.
        job: JobName,
        /// The first that is passed over.
        first: Timestamp,
        /// The one that is claimed.
        newest: Timestamp,
    },
    /// The ledger has a job's occurrences settled until an instant in the future: a clock was
    /// wrong, or the store's stepped back. Until then it doesn't run.
    SettledAhead {
        /// Whose.
        job: JobName,
        /// Until when.
        until: Timestamp,
    },
    /// The store lost data: jobs that it knew were enrolled anew.
    LedgerLost {
        /// How many it did not know any more.
        jobs: usize,
    },
    /// The store had lost the pause of a job, and was told of it again.
    PauseCameBack {
        /// Of which.
        job: JobName,
        /// Since when it is paused, and by whom.
        pause: Pause,
    },
    /// A job was not in the ledger before.
    NewJob {
        /// Which.
        job: JobName,
    },
    /// The ledger forgot jobs that no table has had for long.
    Forgotten {
        /// Which.
        jobs: Vec<JobName>,
    },
    /// The ledger could not be asked to forget what no table has. It is asked again.
    NotSwept {
        /// Why, as far as known.
        cause: String,
    },
    /// Nothing is granted for now: the ledger is new, or lost data, or the store's clock
    /// stepped back.
    Grace {
        /// For how long.
        wait: Duration,
    },
    /// The store stopped answering.
    StoreAway {
        /// Why, as far as known.
        cause: String,
    },
    /// The store answers again.
    StoreBack {
        /// How long it did not.
        after: Duration,
    },
    /// The store's clock or this host's boot clock jumped.
    ClockJumped(ClockJump),
    /// This host's wall clock is far from the store's; or it is over.
    ClockSkewed {
        /// By how much it is ahead, in milliseconds.
        ahead_ms: i64,
        /// It was, and is no longer.
        over: bool,
    },
    /// All jobs are known to the store; from here on what is due is claimed.
    Ready {
        /// How many.
        jobs: usize,
        /// The next instant at which one is due.
        next: Option<Timestamp>,
    },
    /// Other replicas have a table that differs from this replica's.
    Drift {
        /// Which.
        table: Definition,
        /// It is the newer one.
        is_newer: bool,
        /// It has the `revision` of this replica's: it was forgotten to raise that.
        same_revision: bool,
        /// The names of those who have it.
        replicas: Vec<String>,
        /// In what it differs.
        difference: Difference,
    },
    /// No replica has that table any more.
    DriftOver {
        /// Which.
        table: Definition,
    },
    /// Some tables have a `revision` and some have none: not told again while that lasts.
    RevisionsMixed(Mixture),
    /// Of these jobs there are newer definitions than this replica's: it leaves them to others.
    Outdated {
        /// Which.
        jobs: Vec<JobName>,
        /// The names of those who have a newer one, as far as known.
        replicas: Vec<String>,
    },
    /// A newer table has these jobs no more: this replica runs them no more, as long as a replica
    /// lives that has that table.
    Withdrawn {
        /// Which.
        jobs: Vec<JobName>,
        /// The names of those who have that table.
        replicas: Vec<String>,
    },
    /// This replica's definitions of these jobs count again.
    InForceAgain {
        /// Which.
        jobs: Vec<JobName>,
    },
    /// Another table took the place of the one before.
    Reloaded {
        /// How many jobs it has that are not disabled.
        jobs: usize,
        /// How many are enrolled anew: they are new, or the ledger is to know something else.
        changed: usize,
        /// How many are not there any more.
        removed: usize,
    },
    /// A drain began.
    Draining {
        /// How many attempts are still running.
        running: usize,
    },
}
