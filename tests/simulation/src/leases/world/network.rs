//! The network between clients and their store.
//!
//! Must never: bring an answer to a client that waits for it no longer.

use futures_util::FutureExt as _;
use soloist::scheduler::lease::{Answered, LeaseAnswer};
use soloist::store::{LeaseStore, StoreError};

use super::{Call, Message, World};

impl World {
    /// Sends a message as the network has it.
    pub(super) fn carry(&mut self, message: impl Fn() -> Message) {
        let times = if self.chance.percent(self.faults.doubled) {
            2
        } else {
            1
        };
        for _ in 0..times {
            if self.chance.percent(self.faults.lost) {
                continue;
            }
            let delay = match self.chance.percent(self.faults.late) {
                true => self.chance.below(2000),
                false => self.chance.below(5),
            };
            self.post(delay, message());
        }
    }

    pub(super) fn post(&mut self, delay: u64, message: Message) {
        self.number += 1;
        self.messages
            .insert((self.now_ms + delay, self.number), message);
    }

    pub(super) fn arrive(&mut self, message: Message) {
        match message {
            Message::Request(call) => {
                let asked = self.store.ask(&call.caller, &call.requests);
                let result = asked
                    .now_or_never()
                    .expect("the memory store waits for nothing");
                if !self.clients[call.client].deaf {
                    self.carry(|| Message::Answer(call.clone(), result.clone()));
                }
            }
            Message::Answer(call, result) => self.answered(call, result),
            Message::TimeOut(call) => {
                let away = StoreError::Unreachable {
                    place: "here".to_owned(),
                    cause: "lost".to_owned(),
                };
                self.answered(call, Err(away));
            }
        }
    }

    pub(super) fn answered(
        &mut self,
        call: Call,
        result: Result<Answered<Vec<LeaseAnswer>>, StoreError>,
    ) {
        let client = &self.clients[call.client];
        if client.life != call.life || client.open.get(&call.kind) != Some(&call.number) {
            return;
        }
        if client.frozen_until > self.now_ms {
            let wait = client.frozen_until - self.now_ms;
            self.post(wait, Message::Answer(call, result));
            return;
        }
        let now = self.boot();
        let client = &mut self.clients[call.client];
        client.open.remove(&call.kind);
        client
            .holds
            .answered(call.kind, &call.requests, result, call.sent, now);
        self.settle(call.client);
    }
}
