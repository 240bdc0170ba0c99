//! What a test may do to a world.

use std::time::Duration;

use soloist::scheduler::lease::{Caller, FencingToken, Order, OrderAnswer, Replica};
use soloist::scheduler::time::Timestamp;
use soloist::store::memory::Image;
use uuid::Uuid;

use super::World;

impl World {
    /// `kill -9`: the daemon is gone, and with it, by the guardian, what it ran.
    pub(crate) fn crash(&mut self, number: usize) {
        self.replicas[number].scheduler = None;
        self.replicas[number].life += 1;
        let now = self.now;
        let runs = &mut self.runs;
        self.alive.retain(|id| {
            let run = runs.get_mut(id).expect("it was started");
            if run.replica == number {
                run.ended = Some(now);
            }
            run.ended.is_none()
        });
    }

    /// SIGSTOP to the daemon, and SIGCONT after a while; what it runs runs on.
    pub(crate) fn freeze(&mut self, number: usize, length: Duration) {
        self.replicas[number].frozen_until = self.now + length;
    }

    /// A person asks for something.
    pub(crate) fn order(&mut self, order: Order) -> OrderAnswer {
        let caller = Caller {
            replica: Replica {
                id: Uuid::nil(),
                name: order.by.clone(),
            },
            quarantine: Duration::from_secs(16),
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        let answer = self.store.order(&caller, order);
        self.spread_news();
        answer
    }

    /// The store can't be reached from now on by any replica (or can again).
    pub(crate) fn partition(&mut self, on: bool) {
        self.network.lose_request = if on { 100 } else { 0 };
    }

    /// One replica can't reach the store from now on (or can again).
    pub(crate) fn cut_off(&mut self, number: usize, on: bool) {
        self.replicas[number].cut_off = on;
    }

    /// The store's wall clock steps.
    pub(crate) fn step_store_clock(&mut self, by_ms: i64) {
        self.clock_shift_ms += by_ms;
        self.set_store_clock();
    }

    /// What the store's clock reads.
    pub(crate) fn store_now(&self) -> Timestamp {
        self.store.now()
    }

    /// What the store holds now, to fall back to.
    pub(crate) fn image(&self) -> Image {
        self.store.image()
    }

    /// The store loses what was written since an image, or everything. Nobody is told.
    pub(crate) fn lose_data(&mut self, to: Option<Image>) {
        self.store.lose_data(to);
    }

    /// From now on the store does what it is told, and nobody hears that it did (or again).
    pub(crate) fn mute_store(&mut self, on: bool) {
        self.network.lose_reply = if on { 100 } else { 0 };
    }
}
