//! What is said of a lease while it is held: renewals, orders to stop, and the release.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    AttemptDetail, Claim, Dependents, FencingToken, Grant, Occurrence, Origin, Outcome, Output,
    Retention, RunId, Telling,
};
use crate::scheduler::job::OnCrash;
use crate::scheduler::time::Timestamp;

/// A request to keep a lease for another TTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Which occurrence.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// Which shard of it; must match.
    pub shard: u32,
    /// In how many shards it runs, to write the record anew if the store lost it.
    pub shards: u32,
    /// Which attempt; must match.
    pub run_id: RunId,
    /// Its token; must match.
    pub token: FencingToken,
    /// Its number; likewise.
    pub attempt: u32,
    /// How many attempts before it failed; likewise.
    pub failures: u32,
    /// What becomes of it if the holder vanishes; likewise.
    pub on_crash: OnCrash,
    /// How long it is to last from now.
    pub ttl: Duration,
    /// The last deadline heard of: the new one is later even on a clock that stands still.
    pub last_deadline: Timestamp,
    /// How much of the job's past is kept.
    pub retention: Retention,
}

impl Renewal {
    /// The first renewal of what a claim was granted.
    pub fn of(claim: &Claim, grant: &Grant) -> Self {
        Self {
            occurrence: claim.occurrence.clone(),
            origin: claim.origin,
            shard: claim.shard,
            shards: claim.shards,
            run_id: claim.run_id,
            token: grant.token,
            attempt: grant.attempt,
            failures: grant.failures,
            on_crash: claim.on_crash,
            ttl: claim.ttl,
            last_deadline: grant.deadline,
            retention: claim.retention,
        }
    }
}

/// What the store says to a [`Renewal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewalAnswer {
    /// It lasts until the deadline.
    Renewed {
        /// The new deadline by the store's clock.
        deadline: Timestamp,
        /// What is left until then.
        remaining: Duration,
        /// The attempt is to end all the same: its lease lasts until it has.
        stop: Option<StopOrder>,
    },
    /// It is somebody else's, or closed: the attempt has to end now.
    Lost,
}

/// An order to the holder of a lease, whoever it is, to end its attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    /// What for.
    pub why: StopFor,
    /// Who asked: a person, or the occurrence that takes its place.
    pub by: String,
    /// When, by the store's clock.
    pub at: Timestamp,
}

/// What an attempt is to end for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopFor {
    /// A newer occurrence, by `concurrency_policy = "replace"`.
    Replaced,
    /// `soloist kill`.
    Killed,
}

/// A request to give a lease back, with how the attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Which occurrence.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// Which shard of it; must match.
    pub shard: u32,
    /// In how many shards it runs.
    pub shards: u32,
    /// Which attempt; must match.
    pub run_id: RunId,
    /// Its token; must match.
    pub token: FencingToken,
    /// Its number.
    pub attempt: u32,
    /// How many of its attempts failed, this one with them.
    pub failures: u32,
    /// What becomes of the occurrence if it is lost.
    pub on_crash: OnCrash,
    /// How it ended. [`Outcome::HandedOver`] leaves the occurrence open for the next attempt.
    pub outcome: Outcome,
    /// Set where another attempt is to follow a failure, after this wait.
    pub retry_after: Option<Duration>,
    /// What is known of the end.
    pub detail: AttemptDetail,
    /// What the attempt printed.
    pub output: Output,
    /// How much of the job's past is kept.
    pub retention: Retention,
    /// The jobs that come after this one.
    pub dependents: Dependents,
    /// What people want to be told of the job; none where they want to be told nothing.
    pub telling: Option<Telling>,
}

impl Release {
    /// The release of what a claim was granted, with nothing said of the end but its outcome,
    /// and no attempt to follow a failure.
    pub fn of(claim: &Claim, grant: &Grant, outcome: Outcome) -> Self {
        Self {
            occurrence: claim.occurrence.clone(),
            origin: claim.origin,
            shard: claim.shard,
            shards: claim.shards,
            run_id: claim.run_id,
            token: grant.token,
            attempt: grant.attempt,
            failures: grant.failures + u32::from(outcome.is_failure()),
            on_crash: claim.on_crash,
            outcome,
            retry_after: None,
            detail: AttemptDetail::default(),
            output: Output::default(),
            retention: claim.retention,
            dependents: claim.dependents.clone(),
            telling: claim.telling.clone(),
        }
    }
}

/// What the store says to a [`Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// Done, now or by an earlier sending of the same request.
    Released,
    /// The lease was somebody else's by then; the occurrence's fate is theirs to tell.
    Superseded,
}
