//! Where a world's ledger lies: in memory, or in a real store whose clock the world sets.
//!
//! A real store tells its news in real time, when a world has long gone on. So it has a twin in
//! memory that is asked all that it is asked, and replicas hear the twin's news, by the world's
//! time. Its answers are its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::FutureExt;
use soloist::clock::Clock;
use soloist::driver::{Call, Patience};
use soloist::scheduler::Event;
use soloist::scheduler::lease::{Caller, Order, OrderAnswer};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::store::memory::{Glance, Image, MemoryStore};
use soloist::store::{AttemptRecord, Snapshot, Store, StoreError, StoreEvent};
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

/// A store's clock, which stands still wherever it was set.
#[derive(Debug, Default)]
pub struct StoreClock(AtomicI64);

impl StoreClock {
    /// From now on it reads this.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::Relaxed);
    }
}

impl Clock for StoreClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn boot(&self) -> BootTime {
        unreachable!("a store has no boot clock")
    }
}

/// A store that is more than memory.
pub struct Real {
    /// A way in for each replica; what has fewer shares them.
    pub ways: Vec<Arc<dyn Store>>,
    /// Sets its clock.
    pub set_clock: Box<dyn Fn(Timestamp)>,
    /// What its calls run on.
    pub runtime: Runtime,
}

/// The store of a world.
pub struct Premises {
    clock: Arc<StoreClock>,
    memory: MemoryStore,
    news: broadcast::Receiver<StoreEvent>,
    real: Option<Real>,
}

fn at_once<T>(call: impl Future<Output = T>) -> T {
    let answer = call.now_or_never();
    answer.expect("the memory store answers at once")
}

impl Premises {
    /// In memory, beside a real one where there is one.
    pub fn new(real: Option<Real>) -> Self {
        let clock = Arc::new(StoreClock::default());
        let memory = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        Self {
            news: memory.events(),
            memory,
            clock,
            real,
        }
    }

    pub(super) fn set_clock(&self, now: Timestamp) {
        if now == self.clock.wall() {
            return;
        }
        self.clock.set(now);
        if let Some(real) = &self.real {
            (real.set_clock)(now);
        }
    }

    /// Carries out a call of a replica.
    pub(super) fn ask(&self, replica: usize, call: &Call) -> Event {
        let event = at_once(call.make(&self.memory, Patience::Endless));
        let Some(real) = &self.real else {
            return event;
        };
        let way = &real.ways[replica % real.ways.len()];
        let answered = call.make(&**way, Patience::Endless);
        real.runtime.block_on(answered)
    }

    /// What its sender is told of a call that nobody answers.
    pub(super) fn unanswered(&self, call: &Call) -> Event {
        at_once(call.make(&self.memory, Patience::None))
    }

    /// Takes a replica off the list.
    pub(super) fn depart(&self, caller: &Caller) {
        expect(at_once(self.memory.depart(caller)));
        if let Some(real) = &self.real {
            expect(real.runtime.block_on(real.ways[0].depart(caller)));
        }
    }

    /// Carries out an order of a person.
    pub(super) fn order(&self, caller: &Caller, order: Order) -> OrderAnswer {
        let orders = [order];
        let answered = at_once(self.memory.order(caller, &orders));
        let answered = match &self.real {
            None => answered,
            Some(real) => real.runtime.block_on(real.ways[0].order(caller, &orders)),
        };
        expect(answered).answer.remove(0)
    }

    /// How its jobs stand.
    pub(super) fn glance(&self, last: &Glance) -> Glance {
        assert!(
            self.real.is_none(),
            "memory alone is looked at without a call"
        );
        self.memory.glance(last)
    }

    /// What its clock reads.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// What the store holds.
    pub(super) fn image(&self) -> Image {
        self.memory.image()
    }

    /// The store loses what was written since an image, or everything.
    pub(super) fn lose_data(&self, to: Option<Image>) {
        assert!(self.real.is_none(), "only memory forgets here");
        let empty = || MemoryStore::new(Arc::clone(&self.clock) as Arc<dyn Clock>).image();
        self.memory.fall_back_to(to.unwrap_or_else(empty));
    }

    /// What the store announced since it was asked last.
    pub(super) fn next_news(&mut self) -> Option<StoreEvent> {
        self.news.try_recv().ok()
    }

    pub(super) fn history(&self) -> Vec<AttemptRecord> {
        expect(match &self.real {
            None => at_once(self.memory.history(None, usize::MAX)),
            Some(real) => real
                .runtime
                .block_on(real.ways[0].history(None, usize::MAX)),
        })
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let answered = match &self.real {
            None => at_once(self.memory.snapshot()),
            Some(real) => real.runtime.block_on(real.ways[0].snapshot()),
        };
        expect(answered).answer
    }
}

fn expect<T>(answer: Result<T, StoreError>) -> T {
    answer.expect("a store that nobody harms answers")
}
