//! What a test may do to a world.

use std::time::Duration;

use soloist::scheduler::Event;
use soloist::scheduler::lease::{Caller, FencingToken, Order, OrderAnswer, Replica};
use soloist::scheduler::time::Timestamp;
use soloist::store::memory::Image;
use uuid::Uuid;

use super::World;

impl World {
    /// `kill -9`: the daemon is gone, and with it, by the guardian, what it ran.
    pub fn crash(&mut self, number: usize) {
        self.replicas[number].dispatcher = None;
        self.replicas[number].life += 1;
        self.kill_runs_of(number);
    }

    /// What a replica runs is killed, and nobody is told.
    pub(super) fn kill_runs_of(&mut self, number: usize) {
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
    pub fn freeze(&mut self, number: usize, length: Duration) {
        let one = &mut self.replicas[number];
        one.frozen_until = one.frozen_until.max(self.now + length);
    }

    /// `kill -9` when it has performed so many effects more, in the middle of a turn.
    pub fn kill_after(&mut self, number: usize, effects: u64) {
        self.replicas[number].dies_after = Some(effects);
    }

    /// The host is suspended, with all that runs on it. Its boot clock goes on.
    pub fn suspend(&mut self, number: usize, length: Duration) {
        let host = &mut self.replicas[number].host;
        host.suspended_until = host.suspended_until.max(self.now + length);
    }

    /// The host's wall clock is set.
    pub fn set_wall(&mut self, number: usize, ahead_ms: i64) {
        self.replicas[number].host.wall_shift_ms = ahead_ms;
        self.give(number, Event::Disturbed);
    }

    /// A replica that was to die in the middle of a turn, and did not, lives on.
    pub fn spare(&mut self, number: usize) {
        self.replicas[number].dies_after = None;
    }

    /// The store's clock goes faster than time by so many parts per million.
    pub fn drift_store(&mut self, ppm: i64) {
        self.clock_ppm = ppm;
    }

    /// The store answers nobody from now on (or again).
    pub fn take_store_down(&mut self, on: bool) {
        self.store_is_down = on;
    }

    /// Whether the store answers nobody.
    pub fn is_store_down(&self) -> bool {
        self.store_is_down
    }

    /// A person asks for something.
    pub fn order(&mut self, order: Order) -> OrderAnswer {
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
        let before = self.witnessed_order();
        let answer = self.store.order(&caller, order);
        self.witness_order(before);
        self.spread_news();
        answer
    }

    /// The store can't be reached from now on by any replica (or can again).
    pub fn partition(&mut self, on: bool) {
        self.network.lose_request = if on { 100 } else { 0 };
    }

    /// One replica can't reach the store from now on (or can again).
    pub fn cut_off(&mut self, number: usize, on: bool) {
        self.replicas[number].cut_off = on;
    }

    /// The store does what one replica tells it from now on, which doesn't hear so (or again).
    pub fn deafen(&mut self, number: usize, on: bool) {
        self.replicas[number].deaf = on;
    }

    /// The store's wall clock steps.
    pub fn step_store_clock(&mut self, by_ms: i64) {
        self.clock_shift_ms += by_ms;
        self.set_store_clock();
    }

    /// What the store's clock reads.
    pub fn store_now(&self) -> Timestamp {
        self.store.now()
    }

    /// What the store holds now, to fall back to.
    pub fn image(&self) -> Image {
        self.store.image()
    }

    /// The store loses what was written since an image, or everything. Nobody is told.
    pub fn lose_data(&mut self, to: Option<Image>) {
        self.store.lose_data(to);
    }

    /// From now on the store does what it is told, and nobody hears that it did (or again).
    pub fn mute_store(&mut self, on: bool) {
        self.network.lose_reply = if on { 100 } else { 0 };
    }
}
