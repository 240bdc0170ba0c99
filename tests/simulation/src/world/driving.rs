//! A replica's driver in virtual time: the real dispatcher, with hands that reach into the world.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist::clock::Clock;
use soloist::driver::{Call, Dispatcher, Hands, Moment, Observer, Request, Turn};
use soloist::scheduler::lease::RunId;
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::scheduler::{Attempt, EndedHow, Event, Guard, Notice, StopReason};
use soloist::store::StoreEvent;
use tokio::sync::broadcast::error::RecvError;

use super::{GENESIS_MS, World};
use crate::happening::Happening;

/// A host's clocks as its replica reads them. They stand still while it acts.
#[derive(Debug, Default)]
pub(super) struct HostClocks {
    boot_nanos: AtomicU64,
    wall_ms: AtomicI64,
}

impl HostClocks {
    pub(super) fn set(&self, boot: BootTime, wall_ms: i64) {
        let nanos = boot.as_duration().as_nanos();
        let nanos = u64::try_from(nanos).expect("a short simulation");
        self.boot_nanos.store(nanos, Ordering::Relaxed);
        self.wall_ms.store(wall_ms, Ordering::Relaxed);
    }
}

impl Clock for HostClocks {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.wall_ms.load(Ordering::Relaxed))
    }

    fn boot(&self) -> BootTime {
        BootTime::since_boot(Duration::from_nanos(
            self.boot_nanos.load(Ordering::Relaxed),
        ))
    }
}

/// Hears what a replica tells people.
#[derive(Clone, Default)]
pub(super) struct Listener(Arc<Mutex<Vec<String>>>);

impl Listener {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panics with it"))
    }
}

impl Observer for Listener {
    fn notice(&mut self, notice: &Notice, _: Moment<'_>) {
        let mut told = self.0.lock().expect("nobody panics with it");
        told.push(format!("{notice:?}"));
    }
}

/// What a replica does reaches into the world, until it dies.
struct WorldHands<'w> {
    world: &'w mut World,
    number: usize,
    life: u64,
}

impl WorldHands<'_> {
    /// It is dead, or dies now, in front of this.
    fn dies_before(&mut self, what: &'static str) -> bool {
        !self.world.lives(self.number, self.life) || self.world.dies_before(self.number, what)
    }
}

impl Hands for WorldHands<'_> {
    fn call(&mut self, call: Call) {
        if !self.dies_before(super::witness::death_before(call.effect())) {
            self.world.send(self.number, call);
        }
    }

    fn start(&mut self, attempt: Attempt) {
        if !self.dies_before("killed before it starts what it was granted") {
            self.world.start_run(self.number, self.life, &attempt);
        }
    }

    fn stop(&mut self, run_id: RunId, _: StopReason, grace: Duration) {
        if self.dies_before("killed before it stops an attempt") {
            return;
        }
        // Some jobs heed TERM sooner or later, and some never do.
        let after = match self.world.chance.percent(50) {
            true => {
                let most = u64::try_from(grace.as_millis()).expect("a while");
                Duration::from_millis(self.world.chance.below(most + 1))
            }
            false => grace,
        };
        let end = Happening::EndOfRun {
            run: run_id,
            replica: self.number,
            life: self.life,
            how: EndedHow::Stopped,
        };
        self.world.push(self.world.now + after, end);
    }

    fn guard(&mut self, run_id: RunId, guard: Guard) {
        if !self.dies_before("killed before it tells of a renewed lease") {
            self.world.guard(run_id, guard);
        }
    }

    fn kill_all(&mut self) {
        if self.world.lives(self.number, self.life) {
            self.world.kill_runs_of(self.number);
        }
    }
}

impl World {
    /// Hands something to a replica, if it lives, and lets it act.
    pub(super) fn tell(
        &mut self,
        number: usize,
        tell: impl FnOnce(&mut Dispatcher, &mut dyn Hands) -> bool,
    ) {
        self.read_clocks(number);
        let Some(mut dispatcher) = self.replicas[number].dispatcher.take() else {
            return;
        };
        let life = self.replicas[number].life;
        let mut hands = WorldHands {
            world: self,
            number,
            life,
        };
        if tell(&mut dispatcher, &mut hands) {
            return self.has_ended(number);
        }
        let turn = dispatcher.turn(&mut hands);
        self.hear_notices(number);
        if !self.lives(number, life) {
            // It died in the middle of it.
            return;
        }
        match turn {
            Turn::Wait(until) => {
                self.wake(number, until);
                self.replicas[number].dispatcher = Some(dispatcher);
            }
            Turn::Over if self.dies_before(number, "killed before it signs off") => {}
            Turn::Over => {
                self.depart(&dispatcher.caller());
                self.has_ended(number);
            }
        }
    }

    /// Asks a replica for something, as signals do.
    pub fn ask(&mut self, number: usize, request: Request) {
        self.tell(number, |dispatcher, hands| {
            dispatcher.take_request(request, hands)
        });
    }

    /// Asks a replica to kill what it runs and to end, as a second signal does.
    pub fn abort(&mut self, number: usize) {
        self.ask(number, Request::Abort);
    }

    /// Something happened to a replica.
    pub(super) fn give(&mut self, number: usize, event: Event) {
        self.give_all(number, [event]);
    }

    /// Several things happened at once.
    pub(super) fn give_all(&mut self, number: usize, events: impl IntoIterator<Item = Event>) {
        self.tell(number, |dispatcher, _| {
            events
                .into_iter()
                .for_each(|event| dispatcher.take_in(event));
            false
        });
    }

    /// A replica hears what the store announces, or that it has missed some of it.
    pub(super) fn give_news(&mut self, number: usize, news: Result<StoreEvent, RecvError>) {
        self.tell(number, |dispatcher, _| {
            dispatcher.take_in_news(news);
            false
        });
    }

    /// It is time.
    pub(super) fn turn(&mut self, number: usize) {
        self.tell(number, |_, _| false);
    }

    fn has_ended(&mut self, number: usize) {
        self.replicas[number].finished = true;
        self.replicas[number].life += 1;
    }

    fn wake(&mut self, number: usize, until: Option<BootTime>) {
        let Some(until) = until else { return };
        let (now, one) = (self.now, &mut self.replicas[number]);
        // What is due at once waits for the next microsecond, so that time passes.
        let soonest = now + Duration::from_micros(1);
        let at = one.host.world_time(until).max(soonest);
        if one.wakes_at.is_none_or(|next| at < next) {
            one.wakes_at = Some(at);
            let life = one.life;
            let replica = number;
            self.push(at, Happening::Wake { replica, life });
        }
    }

    pub(super) fn read_clocks(&self, number: usize) {
        let one = &self.replicas[number];
        let now = i64::try_from(self.now.as_millis()).expect("a short simulation");
        let wall = GENESIS_MS + now + one.host.wall_shift_ms;
        one.clocks.set(one.host.boot(self.now), wall);
    }

    fn hear_notices(&mut self, number: usize) {
        let told = self.replicas[number].listener.heard();
        for notice in told {
            self.tell_story(|| format!("r{number} tells: {notice}"));
            if self.witness.is_none() {
                let line = format!("{:?} {notice}", self.now);
                self.replicas[number].notices.push(line);
            }
        }
    }

    /// Whether anybody wants to know what replicas tell.
    pub(super) fn listens(&self) -> bool {
        let witness = self.witness.as_ref();
        witness.is_none_or(|witness| witness.story.is_some())
    }
}
