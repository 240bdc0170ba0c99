//! Schedulers of one fleet by one manual clock, and what their jobs wrote down.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist::{
    Builder, Context, EndedAttempt, Error, Event, Events, Job, ManualClock, Scheduler, SharedStore,
};

/// How long is waited for what takes a moment.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// What a job's function returns here.
pub(crate) type Done = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Does something where it is dropped, however that comes about.
pub(crate) struct OnDrop<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A clock, a store by it, and what was written down.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: SharedStore,
    pub(crate) notes: Notes,
}

/// What jobs wrote down, in order.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0
            .lock()
            .expect("no test panics with it")
            .push(note.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no test panics with it").clone()
    }
}

impl World {
    /// One in which it is this instant.
    pub(crate) fn at(instant: &str) -> Self {
        let clock = ManualClock::at(instant.parse().expect("an instant"));
        Self {
            store: SharedStore::memory_at(clock.clone()),
            clock,
            notes: Notes::default(),
        }
    }

    pub(crate) fn replica(&self, name: &str) -> Builder {
        Scheduler::builder()
            .clock(self.clock.clone())
            .store_in(&self.store)
            .namespace("shop")
            .replica(name)
    }

    /// A job that writes down its name, its instant and its attempt.
    pub(crate) fn noting(&self, name: &str, schedule: &str) -> Job {
        let notes = self.notes.clone();
        Job::new(name, schedule, move |ctx: Context| {
            let notes = notes.clone();
            async move {
                notes.add(note(&ctx));
                Ok::<_, Error>(())
            }
        })
    }

    /// A job of which each attempt does this.
    pub(crate) fn doing<F, R>(&self, name: &str, schedule: &str, run: F) -> Job
    where
        F: Fn(Context, Notes, ManualClock) -> R + Send + Sync + 'static,
        R: Future<Output = Done> + Send + 'static,
    {
        let (notes, clock) = (self.notes.clone(), self.clock.clone());
        Job::new(name, schedule, move |ctx| {
            run(ctx, notes.clone(), clock.clone())
        })
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds)).await;
    }
}

pub(crate) fn note(ctx: &Context) -> String {
    format!("{} {} #{}", ctx.job(), ctx.scheduled_at(), ctx.attempt())
}

/// The next event of a kind, and not for ever.
pub(crate) async fn until(events: &mut Events, is: impl Fn(&Event) -> bool) -> Event {
    let found = async {
        loop {
            let event = events.next().await.expect("the scheduler lives");
            if is(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(SOON, found).await.expect("an event")
}

/// All events that have come.
pub(crate) fn come(events: &mut Events) -> Vec<Event> {
    std::iter::from_fn(|| events.try_next()).collect()
}

/// The only line of a job.
pub(crate) async fn only_line(scheduler: &Scheduler, job: &str) -> EndedAttempt {
    let mut lines = scheduler.history(Some(job), 10).await.expect("the ledger");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.remove(0)
}
