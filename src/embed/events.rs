//! What happens at a replica, as a stream: made of what the driver tells people.
//!
//! Must never: hold the driver up. Who doesn't listen loses events, and is told how many.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::context::CancelReason;
use crate::driver::{Moment, Observer};
use crate::scheduler::lease::{FencingToken, Occurrence, Outcome};
use crate::scheduler::time::Timestamp;
use crate::scheduler::{self, Notice};

/// How many events wait for whoever listens.
const WAITING_LIMIT: usize = 1024;

/// Which attempt an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AttemptId {
    /// The job's name.
    pub job: String,
    /// The instant that it is for.
    pub scheduled_at: Timestamp,
    /// Its number, from 1.
    pub attempt: u32,
    /// Its fencing token.
    pub fencing_token: u64,
}

/// Something that happened at this replica. More kinds may come with later versions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The store knows all jobs: from here on what is due is claimed.
    Ready {
        /// How many.
        jobs: usize,
        /// The next instant at which one is due.
        next: Option<Timestamp>,
    },
    /// An attempt begins here.
    Started {
        /// Which.
        attempt: AttemptId,
        /// Another replica had it before, and vanished.
        takeover: bool,
    },
    /// An attempt here runs for longer than its job's `warn_after`.
    Slow {
        /// Which.
        attempt: AttemptId,
        /// What it runs longer than.
        warn_after: Duration,
    },
    /// An attempt here is told to end. That it ran over its timeout is told when it has ended.
    Stopping {
        /// Which.
        attempt: AttemptId,
        /// Why.
        reason: CancelReason,
    },
    /// An attempt ended here, and the ledger has it.
    Ended {
        /// Which.
        attempt: AttemptId,
        /// How.
        outcome: Outcome,
        /// In words, where there are any: the function's error, or why it was cut short.
        reason: Option<String>,
        /// After how long another attempt is to follow a failure.
        retry_after: Option<Duration>,
    },
    /// An attempt ended here after its lease had run out, or without the store being told in time:
    /// the ledger doesn't have this end, and another replica may have started the next attempt.
    Unrecorded {
        /// Which.
        attempt: AttemptId,
        /// How it ended, as far as that is known.
        outcome: Option<Outcome>,
    },
    /// The holder of an occurrence vanished, and it may not run again.
    Lost {
        /// The job's name.
        job: String,
        /// Its instant.
        scheduled_at: Timestamp,
    },
    /// An occurrence does not start, by a policy.
    Skipped {
        /// The job's name.
        job: String,
        /// Its instant.
        scheduled_at: Timestamp,
        /// By which policy, in a word: `overlap`, `paused`, `queue_full`, …
        cause: String,
    },
    /// An occurrence waits for its turn.
    Waiting {
        /// The job's name.
        job: String,
        /// Its instant.
        scheduled_at: Timestamp,
    },
    /// An occurrence could not be claimed in time by anybody.
    Missed {
        /// The job's name.
        job: String,
        /// Its instant.
        scheduled_at: Timestamp,
    },
    /// Somebody paused a job, or ended a pause; [`Status`](crate::Status) says which.
    PausesChanged,
    /// Other replicas have newer definitions of these jobs, or none any more: this one leaves them
    /// alone.
    OutOfForce {
        /// Their names.
        jobs: Vec<String>,
    },
    /// This replica's definitions of these jobs count again.
    InForceAgain {
        /// Their names.
        jobs: Vec<String>,
    },
    /// Nothing is started for so long: the ledger is new, lost data, or its clock stepped back.
    Grace {
        /// For how long.
        wait: Duration,
    },
    /// The store stopped answering. Attempts run on as long as their leases last.
    StoreAway {
        /// Why, as far as known; without secrets.
        cause: String,
    },
    /// The store answers again.
    StoreBack {
        /// After how long.
        after: Duration,
    },
    /// A shutdown began.
    Draining {
        /// How many attempts still run.
        running: usize,
    },
    /// So many events were lost to this stream, as nobody took them.
    Lagged {
        /// How many.
        lost: u64,
    },
}

/// A stream of events. It ends when the scheduler has ended.
///
/// Up to 1024 of them wait for whoever listens; of more, the newer ones are lost, and
/// [`Event::Lagged`] says how many.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// The next event; none once the scheduler has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }

    /// One that has come already; none where there is none, or the scheduler has ended.
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.try_recv().ok()
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(context)
    }
}

/// Who listens.
#[derive(Clone, Default)]
pub(super) struct Subscribers(Arc<Mutex<Listeners>>);

#[derive(Default)]
struct Listeners {
    all: Vec<Listener>,
    over: bool,
}

struct Listener {
    sender: mpsc::Sender<Event>,
    lost: u64,
}

impl Subscribers {
    pub(super) fn subscribe(&self) -> Events {
        let (sender, receiver) = mpsc::channel(WAITING_LIMIT);
        let mut listeners = self.listeners();
        if !listeners.over {
            listeners.all.push(Listener { sender, lost: 0 });
        }
        Events(receiver)
    }

    pub(super) fn tell(&self, event: &Event) {
        self.listeners().all.retain_mut(|one| one.tell(event));
    }

    pub(super) fn end(&self) {
        let mut listeners = self.listeners();
        listeners.over = true;
        listeners.all.clear();
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// False when nobody listens any more.
    fn tell(&mut self, event: &Event) -> bool {
        if self.lost > 0 {
            // Two places, or none: what was lost is told before what came after it.
            if self.sender.capacity() < 2 {
                self.lost += 1;
                return !self.sender.is_closed();
            }
            let lost = std::mem::take(&mut self.lost);
            let _ = self.sender.try_send(Event::Lagged { lost });
        }
        match self.sender.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost += 1;
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscribers")
    }
}

impl Observer for Subscribers {
    fn event(&mut self, event: &scheduler::Event, _: Moment<'_>) {
        if matches!(event, scheduler::Event::PauseChanged) {
            self.tell(&Event::PausesChanged);
        }
    }

    fn notice(&mut self, notice: &Notice, _: Moment<'_>) {
        let told = of_attempt(notice).or_else(|| of_occurrence(notice));
        if let Some(event) = told.or_else(|| of_replica(notice)) {
            self.tell(&event);
        }
    }
}

fn id(occurrence: &Occurrence, attempt: u32, token: FencingToken) -> AttemptId {
    AttemptId {
        job: occurrence.job.as_str().to_owned(),
        scheduled_at: occurrence.scheduled_at,
        attempt,
        fencing_token: token.get(),
    }
}

fn of_attempt(notice: &Notice) -> Option<Event> {
    Some(match notice {
        Notice::Started {
            occurrence,
            grant,
            takeover,
            ..
        } => Event::Started {
            attempt: id(occurrence, grant.attempt, grant.token),
            takeover: *takeover,
        },
        Notice::Slow {
            occurrence,
            attempt,
            token,
            warn_after,
            ..
        } => Event::Slow {
            attempt: id(occurrence, *attempt, *token),
            warn_after: *warn_after,
        },
        Notice::Stopping {
            occurrence,
            attempt,
            token,
            reason,
        } => Event::Stopping {
            attempt: id(occurrence, *attempt, *token),
            reason: (*reason).into(),
        },
        other => return of_end(other),
    })
}

fn of_end(notice: &Notice) -> Option<Event> {
    Some(match notice {
        Notice::Ended {
            occurrence,
            attempt,
            token,
            outcome,
            retry_after,
            detail,
        } => Event::Ended {
            attempt: id(occurrence, *attempt, *token),
            outcome: *outcome,
            reason: detail.reason.clone(),
            retry_after: *retry_after,
        },
        Notice::Superseded {
            occurrence,
            attempt,
            token,
        } => Event::Unrecorded {
            attempt: id(occurrence, *attempt, *token),
            outcome: None,
        },
        Notice::Unreleased {
            occurrence,
            attempt,
            token,
            outcome,
            ..
        } => Event::Unrecorded {
            attempt: id(occurrence, *attempt, *token),
            outcome: Some(*outcome),
        },
        _ => return None,
    })
}

fn of_occurrence(notice: &Notice) -> Option<Event> {
    let parts = |occurrence: &Occurrence| {
        let job = occurrence.job.as_str().to_owned();
        (job, occurrence.scheduled_at)
    };
    let (occurrence, cause) = match notice {
        Notice::Skipped { occurrence, .. } => (occurrence, "overlap"),
        Notice::NotStarted { occurrence, cause } => (occurrence, cause.as_str()),
        Notice::Closed { occurrence } => {
            let (job, scheduled_at) = parts(occurrence);
            return Some(Event::Lost { job, scheduled_at });
        }
        Notice::Waiting { occurrence } => {
            let (job, scheduled_at) = parts(occurrence);
            return Some(Event::Waiting { job, scheduled_at });
        }
        Notice::Missed { occurrence } => {
            let (job, scheduled_at) = parts(occurrence);
            return Some(Event::Missed { job, scheduled_at });
        }
        _ => return None,
    };
    let (job, scheduled_at) = parts(occurrence);
    Some(Event::Skipped {
        job,
        scheduled_at,
        cause: cause.to_owned(),
    })
}

fn of_replica(notice: &Notice) -> Option<Event> {
    let names = |jobs: &[crate::scheduler::job::JobName]| {
        jobs.iter().map(|job| job.as_str().to_owned()).collect()
    };
    Some(match notice {
        Notice::Ready { jobs, next } => Event::Ready {
            jobs: *jobs,
            next: *next,
        },
        Notice::Outdated { jobs, .. } | Notice::Withdrawn { jobs, .. } => {
            Event::OutOfForce { jobs: names(jobs) }
        }
        Notice::InForceAgain { jobs } => Event::InForceAgain { jobs: names(jobs) },
        Notice::Grace { wait } => Event::Grace { wait: *wait },
        Notice::StoreAway { cause } => Event::StoreAway {
            cause: cause.clone(),
        },
        Notice::StoreBack { after } => Event::StoreBack { after: *after },
        Notice::Draining { running } => Event::Draining { running: *running },
        _ => return None,
    })
}
