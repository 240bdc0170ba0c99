//! The way from a replica to the store and back.

use std::time::Duration;

use soloist::driver::Call;
use tokio::sync::broadcast::error::RecvError;

use super::World;
use crate::happening::{Happening, Sent};

/// How late a call may reach the store that its sender gave up, or a copy of one.
const LATEST_MS: u64 = 30_000;

/// What may go wrong, in per cent of calls, and how slow the network is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// Calls that never arrive.
    pub lose_request: u64,
    /// Calls that are carried out, and nobody hears of it.
    pub lose_reply: u64,
    /// Calls that arrive once more, later.
    pub duplicate: u64,
    /// Calls that arrive when their sender has given up, as at a server that stood still.
    pub late: u64,
    /// News of which the listener is told no more than that it missed some.
    pub lag: u64,
    /// The longest way there, or back.
    pub slowest_ms: u64,
}

impl World {
    /// A replica calls the store.
    pub(super) fn send(&mut self, replica: usize, call: Call) {
        let mut call = Sent {
            replica,
            life: self.replicas[replica].life,
            call,
            awaited: true,
        };
        let at = self.now + self.delay();
        if self.replicas[replica].cut_off {
            self.tally("call of a replica that is cut off");
            return self.fail(&call);
        }
        if self.chance.percent(self.network.lose_request) {
            self.tally("request lost");
            return self.fail(&call);
        }
        if self.percent(self.network.late) {
            self.fail(&call);
            call.awaited = false;
            let late = call.call.timeout() + Duration::from_millis(self.chance.below(LATEST_MS));
            return self.push(self.now + late, Happening::Arrive(call));
        }
        if self.percent(self.network.duplicate) {
            let again = at + Duration::from_millis(self.chance.below(LATEST_MS));
            let copy = Sent {
                awaited: false,
                ..call.clone()
            };
            self.push(again, Happening::Arrive(copy));
        }
        self.push(at, Happening::Arrive(call));
    }

    /// Draws for what has a chance only: rows of `tests/tables` go by the draws of worlds without it.
    fn percent(&mut self, chance: u64) -> bool {
        chance > 0 && self.chance.percent(chance)
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(50 + self.chance.below(self.network.slowest_ms * 1000 + 1))
    }

    /// A call reaches the store, whether or not its sender still lives.
    pub(super) fn arrive(&mut self, call: &Sent) {
        if self.store_is_down {
            self.tally("call to a store that is down");
            if call.awaited {
                self.fail(call);
            }
            return;
        }
        if !call.awaited {
            self.tally("request late, or twice");
        }
        let lost = call.awaited && self.chance.percent(self.network.lose_reply);
        let lost = lost || (call.awaited && self.replicas[call.replica].deaf);
        let before = self.witnessed(call.call.effect());
        let event = self.store.ask(call.replica, &call.call);
        self.note_leases(&event);
        self.tables.note(&event, &call.call, self.now);
        self.witness_answer(before, call, &event);
        self.spread_news();
        if !call.awaited {
            return;
        }
        if lost {
            self.tally("reply lost");
            return self.fail(call);
        }
        let at = self.now + self.delay();
        self.push(
            at,
            Happening::Deliver {
                replica: call.replica,
                life: call.life,
                event: Box::new(event),
            },
        );
    }

    /// What the store announces reaches every replica, or is lost.
    pub(super) fn spread_news(&mut self) {
        while let Some(news) = self.store.next_news() {
            for replica in 0..self.replicas.len() {
                let cut_off = self.replicas[replica].cut_off;
                if cut_off || self.chance.percent(self.network.lose_reply) {
                    continue;
                }
                let life = self.replicas[replica].life;
                let at = self.now + self.delay();
                // Who is slow to listen hears that it has missed some.
                let lags = self.percent(self.network.lag);
                let news = match lags {
                    true => Err(RecvError::Lagged(1)),
                    false => Ok(news),
                };
                if lags {
                    self.tally("news missed");
                }
                self.push(
                    at,
                    Happening::News {
                        replica,
                        life,
                        news,
                    },
                );
            }
        }
    }

    /// The sender hears nothing and gives up.
    fn fail(&mut self, call: &Sent) {
        let event = self.store.unanswered(&call.call);
        let at = self.now + call.call.timeout();
        self.push(
            at,
            Happening::Deliver {
                replica: call.replica,
                life: call.life,
                event: Box::new(event),
            },
        );
    }
}
