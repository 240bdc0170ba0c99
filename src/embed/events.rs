//! What happens at a replica, as a stream: made of what the driver tells people.
//!
//! Must never: hold the driver up. Who doesn't listen loses events, and is told how many.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};

use super::context::CancelReason;
use super::stretch::{Told, stretches, written};
use crate::driver::{Moment, Observer};
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{FencingToken, Occurrence, Outcome, Written};
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

/// Something that happened at this replica. More kinds may come with later versions, and kinds may
/// have more to say: match them with `..`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The store knows all jobs: from here on what is due is claimed.
    #[non_exhaustive]
    Ready {
        /// How many.
        jobs: usize,
        /// The next instant at which one is due.
        next: Option<Timestamp>,
    },
    /// An attempt begins here.
    #[non_exhaustive]
    Started {
        /// Which.
        attempt: AttemptId,
        /// Another replica had it before, and vanished.
        takeover: bool,
    },
    /// An attempt here runs for longer than its job's `warn_after`.
    #[non_exhaustive]
    Slow {
        /// Which.
        attempt: AttemptId,
        /// What it runs longer than.
        warn_after: Duration,
    },
    /// An attempt here is told to end. That it ran over its timeout is told when it has ended.
    #[non_exhaustive]
    Stopping {
        /// Which.
        attempt: AttemptId,
        /// Why.
        reason: CancelReason,
    },
    /// An attempt ended here, and the ledger has it.
    #[non_exhaustive]
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
    #[non_exhaustive]
    Unrecorded {
        /// Which.
        attempt: AttemptId,
        /// How it ended, as far as that is known.
        outcome: Option<Outcome>,
    },
    /// The holder of an occurrence vanished, and it may not run again.
    #[non_exhaustive]
    Lost {
        /// The job's name.
        job: String,
        /// Its instant.
        scheduled_at: Timestamp,
    },
    /// An occurrence does not start, by a policy; or, where it says `since`, all of a stretch of time,
    /// such as a pause: that is told when the pause is over, by the replica that wrote it down.
    #[non_exhaustive]
    Skipped {
        /// The job's name.
        job: String,
        /// Its instant; the end of the stretch of time.
        scheduled_at: Timestamp,
        /// By which policy, in a word: `overlap`, `paused`, `queue_full`, …
        cause: String,
        /// It is all instants of the job's schedule after this one, up to and with `scheduled_at`;
        /// none for one occurrence.
        since: Option<Timestamp>,
        /// How many those are, counted up to 1000; none for one occurrence, and where the schedule of
        /// that time can't be told any more.
        occurrences: Option<usize>,
    },
    /// An occurrence waits for its turn.
    #[non_exhaustive]
    Waiting {
        /// The job's name.
        job: String,
        /// Its instant.
        scheduled_at: Timestamp,
    },
    /// An occurrence could not be claimed in time by anybody; or, where it says `since`, all of a
    /// stretch of time in which nobody was there. The replica tells it that wrote it down.
    #[non_exhaustive]
    Missed {
        /// The job's name.
        job: String,
        /// Its instant; the end of the stretch of time.
        scheduled_at: Timestamp,
        /// It is all instants of the job's schedule after this one, up to and with `scheduled_at`;
        /// none for one occurrence.
        since: Option<Timestamp>,
        /// How many those are, counted up to 1000; none for one occurrence, and where the schedule of
        /// that time can't be told any more.
        occurrences: Option<usize>,
    },
    /// Somebody paused a job, or ended a pause; [`Status`](crate::Status) says which.
    PausesChanged,
    /// Other replicas have newer definitions of these jobs, or none any more: this one leaves them
    /// alone.
    #[non_exhaustive]
    OutOfForce {
        /// Their names.
        jobs: Vec<String>,
    },
    /// This replica's definitions of these jobs count again.
    #[non_exhaustive]
    InForceAgain {
        /// Their names.
        jobs: Vec<String>,
    },
    /// Nothing is started for so long: the ledger is new, lost data, or its clock stepped back.
    #[non_exhaustive]
    Grace {
        /// For how long.
        wait: Duration,
    },
    /// The store stopped answering. Attempts run on as long as their leases last.
    #[non_exhaustive]
    StoreAway {
        /// Why, as far as known; without secrets.
        cause: String,
    },
    /// The store answers again.
    #[non_exhaustive]
    StoreBack {
        /// After how long.
        after: Duration,
    },
    /// A shutdown began.
    #[non_exhaustive]
    Draining {
        /// How many attempts still run.
        running: usize,
    },
    /// So many events were lost to this stream, as nobody took them. Told before what came after
    /// them, or as the last one.
    #[non_exhaustive]
    Lagged {
        /// How many.
        lost: u64,
    },
}

/// A stream of events. It ends when the scheduler has ended.
///
/// Up to 1024 of them wait for whoever listens; of more, the newer ones are lost, and
/// [`Event::Lagged`] says how many, at the end of the stream at the latest.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<Told>,
    lost: Lost,
}

/// How many events were lost and not told of yet.
type Lost = Arc<AtomicU64>;

impl Events {
    /// The next event; none once the scheduler has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        while let Some(told) = self.receiver.recv().await {
            if let Some(event) = told.event() {
                return Some(event);
            }
        }
        self.lost_at_last()
    }

    /// One that has come already; none where there is none, or the scheduler has ended.
    pub fn try_next(&mut self) -> Option<Event> {
        loop {
            match self.receiver.try_recv() {
                Ok(told) => match told.event() {
                    Some(event) => return Some(event),
                    None => continue,
                },
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => return self.lost_at_last(),
            }
        }
    }

    /// What was lost and has no event after it, once no more can come.
    fn lost_at_last(&self) -> Option<Event> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then_some(Event::Lagged { lost })
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            match self.receiver.poll_recv(context) {
                Poll::Ready(Some(told)) => {
                    if let Some(event) = told.event() {
                        return Poll::Ready(Some(event));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(self.lost_at_last()),
                Poll::Pending => return Poll::Pending,
            }
        }
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
    sender: mpsc::Sender<Told>,
    lost: Lost,
}

impl Subscribers {
    pub(super) fn subscribe(&self) -> Events {
        let (sender, receiver) = mpsc::channel(WAITING_LIMIT);
        let lost = Lost::default();
        let mut listeners = self.listeners();
        if !listeners.over {
            let lost = Arc::clone(&lost);
            listeners.all.push(Listener { sender, lost });
        }
        Events { receiver, lost }
    }

    pub(super) fn tell(&self, event: Event) {
        self.pass_on(&Told::Event(event));
    }

    /// Tells of what this replica wrote down of stretches of time. `job` is what it has under a name.
    pub(super) fn tell_stretches(
        &self,
        lines: &[Written],
        job: impl Fn(&JobName) -> Option<Arc<Job>>,
    ) {
        for line in stretches(lines) {
            let job = job(&line.job);
            self.pass_on(&Told::Stretch(Arc::new(line.clone()), job));
        }
    }

    fn pass_on(&self, told: &Told) {
        self.listeners().all.retain_mut(|one| one.tell(told));
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
    fn tell(&mut self, told: &Told) -> bool {
        if self.lost.load(Ordering::Relaxed) > 0 {
            // Two places, or none: what was lost is told before what came after it.
            if self.sender.capacity() < 2 {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return !self.sender.is_closed();
            }
            let lost = self.lost.swap(0, Ordering::Relaxed);
            let _ = self.sender.try_send(Told::Event(Event::Lagged { lost }));
        }
        match self.sender.try_send(told.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
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
    fn event(&mut self, event: &scheduler::Event, moment: Moment<'_>) {
        if matches!(event, scheduler::Event::PauseChanged) {
            self.tell(Event::PausesChanged);
        }
        self.tell_stretches(written(event), |name| moment.scheduler.job(name));
    }

    fn notice(&mut self, notice: &Notice, _: Moment<'_>) {
        let told = of_attempt(notice).or_else(|| of_occurrence(notice));
        if let Some(event) = told.or_else(|| of_replica(notice)) {
            self.tell(event);
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
            return Some(Event::Missed {
                job,
                scheduled_at,
                since: None,
                occurrences: None,
            });
        }
        _ => return None,
    };
    let (job, scheduled_at) = parts(occurrence);
    Some(Event::Skipped {
        job,
        scheduled_at,
        cause: cause.to_owned(),
        since: None,
        occurrences: None,
    })
}

fn of_replica(notice: &Notice) -> Option<Event> {
    let names = |jobs: &[JobName]| jobs.iter().map(|job| job.as_str().to_owned()).collect();
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
