//! The replica's side: what it may ask, and what an answer means to it. It follows
//! `src/scheduler/{claims,held,watch,margins,store_clock}`.
//!
//! When it does what it may do is left open: at any moment, or never. So what holds here holds
//! whatever the timers, the back-off and the order of replicas are.
//!
//! Must never: look at the ledger; it knows what it was told.

use super::setup::{CALL_TIMEOUT, GRACE, Guard, INTERVAL, Jump, KILL_MARGIN, Setup, TTL};
use super::state::{
    Answer, Call, Doing, Life, Outcome, PARTS, Replica, Reply, Request, Seen, Sighting, StoreClock,
    Verb,
};
use super::store::send_by;

impl Replica {
    /// One that has just come up, and has heard of the store once.
    pub(super) fn fresh(offset: u8) -> Self {
        let offset = offset as i8;
        Self {
            life: Life::Alive,
            healthy: 1,
            clock: StoreClock {
                low: offset,
                high: offset,
                since: offset as u8,
            },
            ..Self::default()
        }
    }

    /// Whether it has nothing to do and may begin something.
    pub(super) fn is_free(&self, setup: &Setup) -> bool {
        let idle = self.life == Life::Alive && self.doing == Doing::Idle;
        idle && self.run < setup.runs && !self.jumped
    }

    /// Whether it may claim an occurrence: by its idea of the store's clock that is due.
    pub(super) fn may_claim(&self, setup: &Setup, now: u8, occurrence: u8, due: u8) -> bool {
        let reached = (now + setup.early) as i8 + self.clock.low;
        self.is_free(setup) && self.done & (1 << occurrence) == 0 && reached >= due as i8
    }

    /// Draws a new request to claim an occurrence.
    pub(super) fn begin_claim(&mut self, occurrence: u8, watched: Option<Sighting>, now: u8) {
        self.doing = Doing::Claiming;
        self.occurrence = occurrence;
        self.run += 1;
        self.watched = watched;
        // Older ones are only asked about from now on.
        self.done |= (1 << occurrence) - 1;
        self.ask_claim(now);
    }

    /// Sends its claim, or sends it again.
    pub(super) fn ask_claim(&mut self, now: u8) {
        let (verb, watched) = match self.watched {
            Some(watched) => (Verb::TakeOver, watched),
            None => (Verb::Claim, Sighting::default()),
        };
        let reached = now.saturating_add_signed(self.clock.low);
        self.call = Call::Asked(Request {
            verb,
            occurrence: self.occurrence,
            run: self.run,
            token: watched.token,
            deadline: watched.deadline,
            sent: now,
            send_by: send_by(reached),
            floor: self.floor,
            ..Request::default()
        });
    }

    /// Whether it may renew its lease: a renewal would make it last longer.
    pub(super) fn may_renew(&self, setup: &Setup, now: u8) -> bool {
        self.doing == Doing::Running
            && self.call == Call::None
            && now < self.kill_at
            && trust_until(setup, now, TTL, now) > self.kill_at
    }

    /// Asks something about its lease.
    pub(super) fn ask(&mut self, verb: Verb, now: u8) {
        let renews = verb == Verb::Renew;
        self.call = Call::Asked(Request {
            verb,
            occurrence: self.occurrence,
            run: self.run,
            token: self.token,
            attempt: self.attempt,
            deadline: if renews { self.deadline } else { 0 },
            outcome: self.outcome,
            sent: now,
            floor: self.floor,
            ..Request::default()
        });
    }

    /// Its attempt is over, and that is to be told.
    pub(super) fn end(&mut self, outcome: Outcome) {
        self.doing = Doing::Ending;
        self.outcome = outcome;
        self.hang_up();
    }

    /// Its attempt is ended from outside.
    pub(super) fn kill(&mut self, setup: &Setup) {
        self.end(match setup.runs_once() {
            true => Outcome::Lost,
            false => Outcome::HandedOver,
        });
    }

    /// Gives up the call that is under way. The request may arrive all the same.
    pub(super) fn hang_up(&mut self) {
        if let Call::Asked(request) = self.call {
            self.stray = self.stray.or(Some(request));
        }
        self.call = Call::None;
    }

    /// Whether its job has to be dead by now.
    pub(super) fn is_overdue(&self, setup: &Setup, now: u8) -> bool {
        let running = self.life == Life::Alive && self.doing == Doing::Running;
        running && now >= self.kill_at + KILL_MARGIN && setup.has(Guard::Guardian)
    }

    /// Takes in an answer. Says whether a job starts.
    pub(super) fn hear(&mut self, setup: &Setup, reply: Reply, now: u8) -> bool {
        self.call = Call::None;
        self.heard(setup, reply.sent, reply.store_now, now);
        match reply.verb {
            Verb::Claim | Verb::TakeOver => return self.hear_of_claim(setup, reply, now),
            Verb::Renew => self.hear_of_renewal(setup, reply, now),
            Verb::Release => self.settle(),
        }
        false
    }

    /// The store answered something.
    pub(super) fn heard(&mut self, setup: &Setup, sent: u8, store_now: u8, now: u8) {
        if self.healthy == 0 {
            self.healthy = now + 1;
        }
        if setup.clock_steps() {
            self.jumped |= self.clock.learn(sent, store_now, now) && setup.has(Guard::HeldBack);
        }
    }

    /// A look showed the ledger's birth and what is left of its grace window. Of a window that began
    /// since it looked last, and that the clock jumped into, nobody knows how much is left.
    pub(super) fn looked(&mut self, born: u8, grace: u8, now: u8) {
        let jumped = std::mem::take(&mut self.jumped);
        let left = match jumped && self.born != born {
            true => GRACE,
            false => grace,
        };
        self.born = born;
        self.held_back = self.held_back.max(now + left);
    }

    fn hear_of_claim(&mut self, setup: &Setup, reply: Reply, now: u8) -> bool {
        match reply.answer {
            Answer::Granted {
                token,
                attempt,
                deadline,
                remaining,
            } => {
                self.token = token;
                self.attempt = attempt;
                self.deadline = deadline;
                self.floor = self.floor.max(token);
                self.kill_at = trust_until(setup, reply.sent, remaining, now);
                if now < self.kill_at {
                    self.doing = Doing::Running;
                    return true;
                }
                // Granted too late: another replica may.
                self.end(Outcome::HandedOver);
            }
            Answer::Held(sighting) => {
                self.settle();
                self.see(sighting, now);
            }
            Answer::NotNow => {}
            Answer::Grace(wait) => self.held_back = self.held_back.max(reply.sent + wait),
            _ => self.settle(),
        }
        false
    }

    fn hear_of_renewal(&mut self, setup: &Setup, reply: Reply, now: u8) {
        match reply.answer {
            Answer::Renewed(deadline) => {
                let until = trust_until(setup, reply.sent, TTL, now);
                self.kill_at = self.kill_at.max(until);
                self.deadline = deadline;
            }
            // Somebody else may be running it.
            _ => self.kill(setup),
        }
    }

    /// An occurrence is none of its business any more.
    fn settle(&mut self) {
        self.done |= 1 << self.occurrence;
        self.doing = Doing::Idle;
    }

    /// Notes a lease of another: since when it is as it is.
    pub(super) fn see(&mut self, sighting: Sighting, now: u8) {
        self.floor = self.floor.max(sighting.token);
        if self.seen.is_none_or(|seen| seen.sighting != sighting) {
            self.seen = Some(Seen {
                sighting,
                since: now,
            });
        }
    }

    /// The lease that it may take over now, by what it has watched, at a look that says what the
    /// store's time is.
    pub(super) fn takeover(&self, setup: &Setup, now: u8, store_now: u8) -> Option<Sighting> {
        let Seen { sighting, since } = self.seen?;
        let unchanged = since == 0 || now >= since + TTL;
        let over = sighting.deadline <= store_now * PARTS;
        let passed = over && self.clock.believes(setup, sighting.deadline, now);
        let healthy = self.healthy > 0 && now + 1 >= self.healthy + INTERVAL;
        let may = healthy || !setup.has(Guard::HealthyConnection);
        (may && (unchanged || passed)).then_some(sighting)
    }

    /// Whether the call that is under way has taken longer than it may.
    pub(super) fn is_waiting_too_long(&self, now: u8) -> bool {
        let sent = match self.call {
            Call::None => return false,
            Call::Asked(request) => request.sent,
            Call::Answered(reply) => reply.sent,
        };
        self.life == Life::Alive && now > sent + CALL_TIMEOUT
    }
}

/// Until when a lease may be trusted of which `remaining` was left at some moment after `sent`.
fn trust_until(setup: &Setup, sent: u8, remaining: u8, now: u8) -> u8 {
    let from = match setup.has(Guard::SentTime) {
        true => sent,
        false => now,
    };
    let margin = match setup.has(Guard::KillMargin) {
        true => KILL_MARGIN,
        false => 0,
    };
    (from + remaining).saturating_sub(margin)
}

impl StoreClock {
    /// Takes in what the store's clock said at some moment between two of this host's. Says whether
    /// it has stepped forward.
    fn learn(&mut self, sent: u8, store_now: u8, heard: u8) -> bool {
        let low = store_now as i8 - heard as i8;
        let high = store_now as i8 - sent as i8;
        let both = (self.low.max(low), self.high.min(high));
        if both.0 <= both.1 {
            (self.low, self.high) = both;
            return false;
        }
        let forward = low > self.high;
        (self.low, self.high, self.since) = (low, high, store_now);
        forward
    }

    /// Whether a deadline has passed by a clock that ran true since the lease was renewed.
    fn believes(&self, setup: &Setup, deadline: u8, now: u8) -> bool {
        let renewed_at = deadline.saturating_sub(TTL * PARTS);
        let trusted = self.since * PARTS <= renewed_at;
        let passed = (now as i8 + self.low) as i16 * i16::from(PARTS) >= i16::from(deadline);
        trusted && passed || setup.jump == Jump::Never || !setup.has(Guard::TrustedClock)
    }
}
