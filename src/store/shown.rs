//! Records and replicas as readers of the store see them.
//!
//! Must never: leave out what decides; `status` and `why` are told from here.

use std::time::Duration;

use super::engine::Window;
use super::rules::{Paused, Record, State};
use super::{
    JobState, LastAttempt, NeverStarted, ObservedLease, Opening, PastSuspension, ReplicaState,
    Scope, Standing, WaitingOccurrence,
};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Definition, Peer, Untold};
use crate::scheduler::time::Timestamp;

/// The replicas that are taken for alive at `now`.
pub(super) fn peers<'r>(
    replicas: impl Iterator<Item = &'r ReplicaState>,
    now: Timestamp,
) -> Vec<Peer> {
    let peer = |state: &ReplicaState| Peer {
        id: state.replica.id,
        name: state.replica.name.clone(),
        tags: state.info.tags.clone(),
        declines: state.info.declines,
        draining: state.info.draining,
        table: state.table(),
        beat: state.info.beat,
        alive_for: Duration::from_millis(state.info.alive_ms),
    };
    let alive = replicas.filter(|state| state.is_alive(now));
    let mut peers: Vec<Peer> = alive.map(peer).collect();
    peers.sort_by_key(|peer| peer.id);
    peers
}

/// What an observer sees of records: leases to watch, and what anybody may claim.
pub(super) fn shown(
    records: &[(JobName, Record)],
    scope: Scope,
    now: Timestamp,
) -> (Vec<ObservedLease>, Vec<Opening>) {
    let until = Window::of(scope, now).until;
    let mut leases = Vec::new();
    let mut openings = Vec::new();
    for (job, record) in records {
        openings.extend(record.openings(job, now));
        leases.extend(record.leases(until).map(|held| ObservedLease {
            job: job.clone(),
            held,
        }));
    }
    (leases, openings)
}

/// News whose tellers were not heard of for long.
pub(super) fn untold(records: &[(JobName, Record)], now: Timestamp) -> Vec<Untold> {
    let news = records.iter().flat_map(|(job, record)| {
        let alert = record.alert.iter();
        alert.flat_map(move |alert| alert.untold(job, now))
    });
    news.collect()
}

impl ReplicaState {
    /// It was heard of lately enough to be taken for alive.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.seen_at + Duration::from_millis(self.info.alive_ms) >= now
    }

    /// One in a test, that has a table and is alive for a second from then on.
    #[cfg(test)]
    pub(crate) fn with_table(name: &str, table: &Definition, seen_at: Timestamp) -> Self {
        Self {
            replica: crate::scheduler::lease::Replica {
                id: uuid::Uuid::nil(),
                name: name.to_owned(),
            },
            info: super::ReplicaInfo {
                digest: table.digest.clone(),
                revision: table.revision,
                alive_ms: 1000,
                ..super::ReplicaInfo::default()
            },
            seen_at,
        }
    }

    /// Its table.
    pub fn table(&self) -> Definition {
        Definition {
            digest: self.info.digest.clone(),
            revision: self.info.revision,
        }
    }
}

impl Record {
    /// The record as `status` shows it.
    pub(super) fn to_state(&self, job: &JobName) -> JobState {
        let waiting = self.waiting.iter().map(|one| WaitingOccurrence {
            scheduled_at: one.scheduled_at,
            origin: one.origin,
            by: one.by.clone(),
            since: one.since,
            start_by: one.start_by,
        });
        let joins = self.joins.iter().filter(|join| !join.dead);
        let suspensions = self.suspensions.iter().map(|one| PastSuspension {
            since: one.since,
            until: one.until,
            reason: one.words.clone(),
        });
        JobState {
            job: job.clone(),
            settled_until: self.settled_until,
            force: self.force.clone(),
            schedule: self.schedule.clone(),
            paused: self.paused.as_ref().map(Paused::shown),
            disabled: self.disabled,
            suspensions: suspensions.collect(),
            attempts: self.attempts(),
            waiting: waiting.collect(),
            joins: joins
                .map(|join| (join.scheduled_at, join.arrived.clone()))
                .collect(),
            never_started: self
                .unstarted
                .iter()
                .map(|one| NeverStarted {
                    scheduled_at: one.scheduled_at,
                    outcome: one.outcome,
                    cause: one.cause,
                    within: one.within.clone(),
                })
                .collect(),
            triggers: self.triggered.iter().map(|(_, at)| *at).collect(),
        }
    }

    fn attempts(&self) -> Vec<LastAttempt> {
        let slots = self.current.iter().flat_map(|current| {
            let slots = current.slots.iter();
            slots.map(move |slot| (current, slot))
        });
        slots
            .map(|(current, slot)| LastAttempt {
                scheduled_at: current.scheduled_at,
                origin: current.origin,
                by: current.by.clone(),
                attempt: slot.attempt,
                run_id: slot.run_id,
                token: slot.token,
                replica: slot.holder.name.clone(),
                since: slot.since,
                late: slot.late,
                standing: match slot.state {
                    State::Idle => Standing::Idle,
                    State::Running => Standing::Running {
                        deadline: slot.deadline,
                    },
                    State::Again(outcome) => Standing::Again {
                        outcome,
                        at: slot.deadline,
                    },
                    State::Ended(outcome) => Standing::Ended(outcome),
                },
            })
            .collect()
    }
}
