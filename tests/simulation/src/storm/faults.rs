//! What strikes a storm's fleet, and what ends it.

use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::dependents_of;
use soloist::scheduler::job::{Job, JobName};
use soloist::scheduler::lease::{Order, OrderKind, RunId};
use soloist::store::memory::Image;
use uuid::Uuid;

use super::Storm;
use crate::world::Network;

/// How the store may be set: forward by two minutes or a day, back by more and by less than is
/// waited out.
const SETS_MS: [i64; 4] = [120_000, 86_400_000, -150_000, -20_000];

/// How long nothing is granted after a loss of data, at most: the longest
/// lease, a call, and until somebody notices.
const LONGEST_WINDOW: Duration = Duration::from_secs(25);

/// Hosts' wall clocks.
const WALLS_MS: [i64; 4] = [300_000, -300_000, 700, 31_536_000_000];

/// The end of a fault.
pub(super) enum Heal {
    Revive(usize),
    Reconnect(usize),
    Network,
    /// The store answers again, with what it held, with an older state of it, or with nothing.
    StoreUp(Option<Kept>),
    Resume(JobName),
    /// The next replica gets the newest table.
    RollOut(usize),
}

/// What a store has left when it answers again.
pub(super) enum Kept {
    All,
    Older(Box<Image>),
    Nothing,
}

impl Storm {
    fn later(&mut self, most_ms: u64, heal: Heal) {
        let at = self.world.now + Duration::from_millis(1) + self.millis(most_ms);
        self.heals.push((at, heal));
    }

    /// One fault, of any kind.
    pub(super) fn strike(&mut self) {
        match self.world.chance.below(24) {
            0 | 1 => self.crash(),
            2 | 3 => self.crash_in_a_turn(),
            4 => self.crash_all(),
            5 => self.drain(),
            6 => self.freeze(),
            7 | 8 => self.suspend(),
            9 => self.cut_off(),
            10 | 11 => self.spoil_network(),
            12 => self.stop_store(),
            13 => self.fail_over(),
            14 => self.set_store_clock(),
            15 => self.set_wall(),
            16 | 17 => self.edit_table(),
            18 => self.trigger(),
            19 => self.pause(),
            20 => self.kill_job(),
            21 => self.abort(),
            22 => self.set_store_clock(),
            _ => self.order_again(),
        }
    }

    fn happened(&mut self, what: &'static str) {
        self.world.tally(what);
        self.world.tell_story(|| format!("*** {what}"));
    }

    fn crash(&mut self) {
        let number = self.number();
        if self.world.is_alive(number) {
            self.happened("replica killed");
            self.world.crash(number);
            self.later(40_000, Heal::Revive(number));
        }
    }

    fn crash_in_a_turn(&mut self) {
        let number = self.number();
        if self.world.is_alive(number) {
            let effects = self.world.chance.below(12);
            self.world.kill_after(number, effects);
            self.later(60_000, Heal::Revive(number));
        }
    }

    fn crash_all(&mut self) {
        self.happened("all replicas killed");
        for number in 0..self.world.replicas.len() {
            self.world.crash(number);
            self.later(60_000, Heal::Revive(number));
        }
    }

    fn drain(&mut self) {
        let number = self.number();
        if self.world.is_alive(number) {
            self.happened("replica told to stop");
            if self.world.chance.percent(40) {
                self.kill_soon(number);
            }
            self.world.drain(number);
            self.later(30_000, Heal::Revive(number));
        }
    }

    /// It dies in front of one of its next effects.
    fn kill_soon(&mut self, number: usize) {
        let effects = self.world.chance.below(6);
        self.world.kill_after(number, effects);
        self.later(60_000, Heal::Revive(number));
    }

    /// Told to stop twice: it kills what it runs, and is gone.
    fn abort(&mut self) {
        let number = self.number();
        if self.world.is_alive(number) {
            self.happened("replica told to end at once");
            self.world.abort(number);
            self.later(40_000, Heal::Revive(number));
        }
    }

    fn freeze(&mut self) {
        let number = self.number();
        if self.world.is_alive(number) {
            let length = self.millis(40_000);
            self.happened("daemon frozen");
            self.world.freeze(number, length);
            self.calm_at = self.calm_at.max(self.world.now + length);
        }
    }

    fn suspend(&mut self) {
        let number = self.number();
        let length = self.millis(40_000);
        self.happened("host suspended");
        self.world.suspend(number, length);
        self.calm_at = self.calm_at.max(self.world.now + length);
    }

    fn cut_off(&mut self) {
        let number = self.number();
        self.happened("replica cut off");
        self.world.cut_off(number, true);
        self.later(40_000, Heal::Reconnect(number));
    }

    fn spoil_network(&mut self) {
        let chance = &mut self.world.chance;
        let slowest_ms = [5, 50, 300][chance.below(3) as usize];
        let mut network = Network {
            slowest_ms,
            ..Network::default()
        };
        let much = [5, 20, 50, 100][chance.below(4) as usize];
        match chance.below(6) {
            0 => network.lose_request = much,
            1 => network.lose_reply = much,
            2 => network.duplicate = much,
            3 => network.late = much.min(50),
            4 => network.lag = much,
            _ => {
                network.lose_request = 5;
                network.lose_reply = 5;
                network.duplicate = 10;
                network.late = 5;
            }
        }
        self.happened("network spoiled");
        self.world.network = network;
        self.later(40_000, Heal::Network);
    }

    /// The server is restarted: with its data, with what it had saved, or with nothing.
    fn stop_store(&mut self) {
        let kept = match self.world.chance.below(3) {
            0 if self.kinds.loses_data => Kept::Nothing,
            1 if self.kinds.loses_data => Kept::Older(Box::new(self.image())),
            _ => Kept::All,
        };
        if matches!(kept, Kept::Older(_)) {
            // What it had not saved.
            let behind = self.millis(10_000);
            self.pass(behind);
        }
        self.happened("store stopped");
        self.world.take_store_down(true);
        self.later(20_000, Heal::StoreUp(Some(kept)));
    }

    /// A replica of the store becomes its master, and lacks what it had not heard of.
    fn fail_over(&mut self) {
        if !self.kinds.loses_data {
            return self.crash();
        }
        let image = self.image();
        let behind = self.millis(3_000);
        self.pass(behind);
        self.take_up(
            Kept::Older(Box::new(image)),
            "failed over to a copy that lacks something",
        );
    }

    fn take_up(&mut self, kept: Kept, lacks: &'static str) {
        let before = self.world.glance();
        let what = match &kept {
            Kept::All => "store restarted with its data",
            Kept::Older(_) => lacks,
            Kept::Nothing => "store restarted without its data",
        };
        let image = match kept {
            Kept::All => Some(self.image()),
            Kept::Older(image) => Some(*image),
            Kept::Nothing => None,
        };
        self.world.lose_data(image);
        if before == self.world.glance() {
            return self.happened("store restarted with its data");
        }
        if let Some(witness) = &mut self.world.witness {
            witness.data_were_lost = true;
        }
        self.happened(what);
    }

    fn set_store_clock(&mut self) {
        if !self.kinds.sets_clock {
            return self.suspend();
        }
        // A ledger that is lost, and lived through again by a clock that was set back, knows
        // nothing of what ran at the time: that is promised to nobody.
        let kinds = if self.kinds.loses_data { 2 } else { 4 };
        let by = SETS_MS[self.world.chance.below(kinds) as usize];
        if let Some(witness) = &mut self.world.witness {
            witness.clock_was_set = true;
        }
        self.happened(match by {
            1.. => "store's clock set forward",
            -60_000.. => "store's clock set back, and waited out",
            _ => "store's clock set back",
        });
        self.world.step_store_clock(by);
    }

    fn set_wall(&mut self) {
        let number = self.number();
        let ahead = WALLS_MS[self.world.chance.below(4) as usize];
        self.happened("host's wall clock set");
        self.world.set_wall(number, ahead);
    }

    /// Another table, replica by replica; one of them may never get it.
    fn edit_table(&mut self) {
        if !self.kinds.edits {
            return self.trigger();
        }
        self.happened("table edited");
        self.world.jobs = self.edited();
        for number in 0..self.world.replicas.len() {
            if self.world.chance.percent(80) {
                self.later(15_000, Heal::RollOut(number));
            }
        }
    }

    fn job(&mut self) -> Arc<Job> {
        let count = self.world.jobs.len() as u64;
        let number = self.world.chance.below(count) as usize;
        Arc::clone(&self.world.jobs[number])
    }

    fn order(&mut self, job: &Job, what: OrderKind) {
        if self.world.is_store_down() {
            return;
        }
        let table: Vec<Job> = self.world.jobs.iter().map(|job| (**job).clone()).collect();
        let order = Order {
            job: job.name.clone(),
            what,
            by: "alice@desk".to_owned(),
            id: RunId::new(Uuid::from_u128(u128::from(self.world.chance.draw()))),
            retention: job.retention,
            dependents: dependents_of(&job.name, &table),
        };
        self.orders.push(order.clone());
        let answer = self.world.order(order);
        self.world
            .tell_story(|| format!("*** {what:?} of {}: {answer:?}", job.name));
    }

    fn trigger(&mut self) {
        let job = self.job();
        self.happened("triggered");
        self.order(&job, OrderKind::Trigger);
    }

    fn pause(&mut self) {
        let job = self.job();
        self.happened("paused");
        self.order(&job, OrderKind::Pause);
        self.later(30_000, Heal::Resume(job.name.clone()));
    }

    fn kill_job(&mut self) {
        let job = self.job();
        let name = job.name.as_str();
        let mut runs = self.world.runs_alive();
        let holder = runs.find_map(|(_, run)| (run.job == name).then_some(run.replica));
        drop(runs);
        self.happened("killed by a person");
        self.order(&job, OrderKind::Kill);
        if let Some(holder) = holder
            && self.world.chance.percent(30)
        {
            self.kill_soon(holder);
        }
    }

    /// Whoever gave an order heard no answer, and gives it again.
    fn order_again(&mut self) {
        let count = self.orders.len() as u64;
        let number = self.world.chance.below(count) as usize;
        let Some(order) = self.orders.get(number).cloned() else {
            return self.trigger();
        };
        if !self.world.is_store_down() {
            self.happened("order given again");
            self.world.order(order);
        }
    }

    /// Ends a fault.
    pub(super) fn heal(&mut self, heal: Heal) {
        match heal {
            Heal::Revive(number) => {
                self.world.crash(number);
                self.world.revive(number);
                self.world
                    .tell_story(|| format!("    r{number} starts anew"));
            }
            Heal::Reconnect(number) => self.world.cut_off(number, false),
            Heal::Network => {
                self.world.network = Network {
                    slowest_ms: 5,
                    ..Network::default()
                };
            }
            Heal::StoreUp(kept) => {
                if let Some(kept) = kept {
                    self.take_up(kept, "store restarted from an older state");
                }
                self.world.take_store_down(false);
            }
            Heal::Resume(name) => {
                let jobs = self.world.jobs.clone();
                if let Some(job) = jobs.iter().find(|job| job.name == name) {
                    self.happened("resumed");
                    self.order(job, OrderKind::Resume);
                }
            }
            Heal::RollOut(number) => {
                let jobs = self.world.jobs.clone();
                if self.world.is_alive(number) {
                    self.happened("table read again");
                }
                self.world.reload(number, &jobs);
            }
        }
    }

    /// Ends all faults. Everybody runs, with the newest table, and nothing is paused.
    pub(super) fn heal_all(&mut self) {
        self.world.tell_story(|| "*** all is healed".to_owned());
        for (_, heal) in std::mem::take(&mut self.heals) {
            match heal {
                // In their turn, below.
                Heal::Revive(_) | Heal::RollOut(_) | Heal::Resume(_) => {}
                other => self.heal(other),
            }
        }
        self.pass(self.calm_at.saturating_sub(self.world.now));
        let jobs = self.world.jobs.clone();
        for number in 0..self.world.replicas.len() {
            self.world.spare(number);
            match self.world.is_alive(number) && !self.world.is_draining(number) {
                true => self.world.reload(number, &jobs),
                false => self.heal(Heal::Revive(number)),
            }
        }
        // A pause that ends in the window after a loss of data may come back with one who had not
        // heard of its end.
        self.pass(LONGEST_WINDOW);
        for job in &jobs {
            self.order(job, OrderKind::Resume);
        }
    }
}
