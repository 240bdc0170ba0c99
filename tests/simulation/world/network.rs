//! The way from a replica to the store and back.

use std::time::Duration;

use soloist::scheduler::lease::Caller;
use soloist::scheduler::time::BootTime;
use soloist::scheduler::{Effect, Event};
use soloist::store::{ReplicaInfo, StoreEvent};

use super::{CALL_TIMEOUT, World};
use crate::calls::failure;
use crate::happening::Happening;

impl World {
    /// A replica calls the store.
    pub(super) fn send(
        &mut self,
        number: usize,
        call: Effect,
        caller: Caller,
        info: ReplicaInfo,
        sent: BootTime,
    ) {
        let life = self.replicas[number].life;
        let at = self.now + self.delay();
        let cut_off = self.replicas[number].cut_off;
        if cut_off || self.chance.percent(self.network.lose_request) {
            return self.fail(number, life, call, sent);
        }
        let arrive = Happening::Arrive {
            replica: number,
            life,
            effect: Box::new(call),
            caller: Box::new(caller),
            info: Box::new(info),
            sent,
        };
        self.push(at, arrive);
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(50 + self.chance.below(self.network.slowest_ms * 1000 + 1))
    }

    /// A call reaches the store, whether or not its sender still lives.
    pub(super) fn arrive(
        &mut self,
        replica: usize,
        life: u64,
        effect: Effect,
        caller: &Caller,
        info: &ReplicaInfo,
        sent: BootTime,
    ) {
        let lost = self.chance.percent(self.network.lose_reply);
        let event = self.store.ask(replica, &effect, caller, info, sent);
        self.note_leases(&event);
        self.tables.note(&event, caller, info, self.now);
        self.spread_news();
        if lost {
            return self.fail(replica, life, effect, sent);
        }
        let at = self.now + self.delay();
        self.push(
            at,
            Happening::Deliver {
                replica,
                life,
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
                let event = Box::new(match news {
                    StoreEvent::Opening => Event::Opening,
                    StoreEvent::StopAsked => Event::StopAsked,
                    StoreEvent::PauseChanged => Event::PauseChanged,
                    StoreEvent::Reconnected => Event::Disturbed,
                });
                let life = self.replicas[replica].life;
                let at = self.now + self.delay();
                self.push(
                    at,
                    Happening::Deliver {
                        replica,
                        life,
                        event,
                    },
                );
            }
        }
    }

    /// The sender hears nothing and gives up.
    fn fail(&mut self, replica: usize, life: u64, effect: Effect, sent: BootTime) {
        let event = failure(effect, sent);
        let at = self.now + CALL_TIMEOUT;
        self.push(
            at,
            Happening::Deliver {
                replica,
                life,
                event: Box::new(event),
            },
        );
    }
}
