//! A storm: one seed draws a fleet, its table, and faults of every kind, several at a time, at any
//! moment. Then everything is healed, and the fleet has to be well again.
//!
//! ```text
//!   seed ─▶ scene: replicas, clocks, jobs ─▶ faults ─▶ all healed ─▶ judged ─▶ one more crash,
//!                                              │                                 judged again
//!                       each step is looked at by the world's witness
//! ```
//!
//! Must never: pass over a broken law. Whatever is wrong is a panic, and its seed replays it.

mod faults;
mod judge;
mod scene;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use soloist::scheduler::lease::Order;
use soloist::scheduler::time::Timestamp;
use soloist::store::memory::Image;

use self::faults::Heal;
use crate::accounts::Life;
use crate::world::{Witness, World};

/// What a storm may have in it beside what each has: chance decides. What is left out leaves laws
/// that hold without it only.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    /// The store loses what it acknowledged.
    loses_data: bool,
    /// Its clock is set.
    sets_clock: bool,
    /// The table is edited and rolled out.
    edits: bool,
}

/// A world in trouble.
struct Storm {
    world: World,
    kinds: Kinds,
    /// What ends a fault, and when.
    heals: Vec<(Duration, Heal)>,
    /// How often the table was edited.
    edition: u64,
    lives: Vec<Life>,
    /// Orders, to be sent again.
    orders: Vec<Order>,
    /// All clocks run as true as NTP would have them.
    clocks_are_true: bool,
    /// When the last of the faults that end by themselves is over.
    calm_at: Duration,
}

/// What came of it.
pub struct Passed {
    /// What happened.
    pub witness: Box<Witness>,
    /// How long it was for those in it.
    pub simulated: Duration,
    /// Attempts that were started.
    pub attempts: u64,
    /// Those that succeeded.
    pub completed: u64,
}

/// A law that did not hold.
pub struct Broken {
    /// Which, and where.
    pub law: String,
    /// All that happened before, where somebody wanted to know.
    pub story: Vec<String>,
}

/// How many faults a storm has.
const FAULTS: (u64, u64) = (6, 14);

/// From one fault to the next, at most.
const BETWEEN_MS: u64 = 12_000;

/// How long a fleet has, when all is healed, to be as it should.
const RECOVERY: Duration = Duration::from_secs(90);

/// How much longer that takes by a store whose clock stands still until it has made up for steps back,
/// or lives through a time again in which all is settled.
const CLOCK_RECOVERY: Duration = Duration::from_secs(180);

/// Goes through the storm of a seed. With `story`, all that happens in it is written down.
///
/// # Errors
/// When a law is broken.
pub fn pass_through(seed: u64, story: bool) -> Result<Passed, Broken> {
    let mut storm = Storm::drawn(seed, story);
    let outcome = catch_unwind(AssertUnwindSafe(|| storm.rage()));
    let witness = storm.world.witness.take().expect("each storm has one");
    if let Err(panic) = outcome {
        return Err(Broken {
            law: words_of(&*panic),
            story: witness.story.unwrap_or_default(),
        });
    }
    let runs = storm.world.runs.values();
    Ok(Passed {
        witness,
        simulated: storm.world.now,
        attempts: runs.len() as u64,
        completed: runs.filter(|run| run.completed).count() as u64,
    })
}

/// What a panic has to say.
pub(crate) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let formatted = panic.downcast_ref::<String>().map(String::as_str);
    let words = formatted.or(panic.downcast_ref::<&str>().copied());
    words.unwrap_or("a panic without words").to_owned()
}

impl Storm {
    /// From its first moment to its last.
    fn rage(&mut self) {
        self.begin();
        let (least, most) = FAULTS;
        let faults = least + self.world.chance.below(most - least + 1);
        for _ in 0..faults {
            let wait = self.millis(BETWEEN_MS);
            self.pass(wait);
            self.strike();
        }
        self.heal_all();
        if self.kinds.sets_clock {
            self.pass(CLOCK_RECOVERY);
        }
        self.pass(RECOVERY);
        self.judge();
        self.lose_answers();
        self.crash_a_holder();
        self.judge();
    }

    /// Lets time pass, in which faults end that are to.
    fn pass(&mut self, time: Duration) {
        let until = self.world.now + time;
        loop {
            let due = self.heals.iter().map(|(at, _)| *at).min();
            let Some(at) = due.filter(|at| *at <= until) else {
                break;
            };
            self.world.run_for(at.saturating_sub(self.world.now));
            let found = self.heals.iter().position(|(due, _)| *due == at);
            let (_, heal) = self.heals.swap_remove(found.expect("it is there"));
            self.heal(heal);
        }
        self.world.run_for(until.saturating_sub(self.world.now));
    }

    fn number(&mut self) -> usize {
        let replicas = self.world.replicas.len() as u64;
        self.world.chance.below(replicas) as usize
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.world.chance.below(most))
    }

    /// What the store held, to fall back to.
    fn image(&self) -> Image {
        self.world.image()
    }

    fn store_now(&self) -> Timestamp {
        self.world.store_now()
    }
}

#[cfg(test)]
mod tests;
