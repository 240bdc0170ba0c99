//! The store's side: one request, the ledger and the time in; an answer and the new ledger out. It
//! follows `src/store/rules`, step by step and by the same names, for one job without shards.
//!
//! Must never: read what a replica knows and did not send, nor anything of the laws' memory but to
//! write it.

use super::laws::Breach;
use super::setup::{CALL_TIMEOUT, GRACE, Guard, Setup, TTL, Wipe};
use super::state::{
    AHEAD, Answer, Current, Ledger, Memory, Outcome, PARTS, Request, START, Sighting, Standing,
    Verb,
};

/// One request in the making.
pub(super) struct Step<'s> {
    setup: &'s Setup,
    ledger: &'s mut Ledger,
    memory: &'s mut Memory,
    /// Boot time, for the laws.
    boot: u8,
    now: u8,
    caller: u8,
    /// What is left of a grace window by the caller's own clock.
    held_back: u8,
    /// It is the master that was left.
    former: bool,
    /// The ledger had a record of the job when it was asked.
    known: bool,
}

/// Where and when a request is heard.
#[derive(Clone, Copy)]
pub(super) struct Hearing {
    /// By boot time.
    pub(super) boot: u8,
    /// By the store's clock.
    pub(super) clock: u8,
    /// By whom it was sent.
    pub(super) caller: u8,
    /// What is left of a grace window by the caller's own clock.
    pub(super) held_back: u8,
    /// It is the master that was left.
    pub(super) former: bool,
}

/// When an occurrence is due, by the store's clock.
pub(super) fn due(setup: &Setup, occurrence: u8) -> u8 {
    AHEAD + START + setup.due[occurrence as usize]
}

/// The store's time at a moment of its clock: after a small step back it stands still.
pub(super) fn time(setup: &Setup, ledger: &Ledger, clock: u8) -> u8 {
    match setup.jump {
        super::setup::Jump::FarBack => clock,
        _ => clock.max(ledger.clock),
    }
}

impl<'s> Step<'s> {
    /// Begins a call: notices a loss of data and a far step back of the clock.
    pub(super) fn begin(
        setup: &'s Setup,
        ledger: &'s mut Ledger,
        memory: &'s mut Memory,
        request: &Request,
        hearing: Hearing,
    ) -> Self {
        let now = time(setup, ledger, hearing.clock);
        let grace = if setup.has(Guard::Grace) { GRACE } else { 0 };
        if ledger.clock > now {
            ledger.clock = now;
            ledger.grace_until = now + grace;
        }
        if !ledger.noticed {
            ledger.noticed = true;
            ledger.grace_until = ledger.grace_until.max(now + grace);
            if setup.has(Guard::BornMoves) || !ledger.known {
                ledger.born = now;
            }
        }
        if ledger.token == 0 && request.floor > 0 {
            ledger.token = request.floor;
            ledger.grace_until = ledger.grace_until.max(now + grace);
        }
        Self {
            setup,
            known: ledger.known,
            ledger,
            memory,
            boot: hearing.boot,
            now,
            caller: hearing.caller,
            held_back: hearing.held_back,
            former: hearing.former,
        }
    }

    /// The store's time.
    pub(super) fn now(&self) -> u8 {
        self.now
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, request: &Request) -> Answer {
        match request.verb {
            Verb::Claim | Verb::TakeOver => self.claim(request),
            Verb::Renew => self.renew(request),
            Verb::Release => self.release(request),
        }
    }

    fn grace(&self) -> u8 {
        let left = self.ledger.grace_until.saturating_sub(self.now);
        match self.setup.has(Guard::HeldBack) {
            true => left.max(self.held_back),
            false => left,
        }
    }

    fn in_grace(&self) -> Option<Answer> {
        let wait = self.grace();
        (wait > 0).then_some(Answer::Grace(wait))
    }

    fn claim(&mut self, claim: &Request) -> Answer {
        if let Some(answer) = self.replay(claim) {
            return answer;
        }
        if self.setup.has(Guard::RequestDeadline) && self.now > claim.send_by {
            return Answer::NotNow;
        }
        if let Some(current) = self.current_at(claim.occurrence) {
            return self.claim_current(claim, current);
        }
        if due(self.setup, claim.occurrence) > self.now {
            return Answer::NotNow;
        }
        if self.is_settled(claim.occurrence) {
            return Answer::Finished;
        }
        self.claim_new(claim)
    }

    fn is_settled(&self, occurrence: u8) -> bool {
        self.known && occurrence < self.ledger.settled && self.setup.has(Guard::Memory)
    }

    fn current_at(&self, occurrence: u8) -> Option<Current> {
        let current = self.ledger.current;
        current.filter(|current| current.occurrence == occurrence)
    }

    /// The same request once more: the same answer, with what is left by now.
    fn replay(&self, claim: &Request) -> Option<Answer> {
        let current = self.current_at(claim.occurrence)?;
        let same = current.holder == self.caller && current.run == claim.run;
        if !same || !self.setup.has(Guard::Replay) {
            return None;
        }
        if current.standing != Standing::Running {
            return Some(Answer::Finished);
        }
        let remaining = (current.deadline / PARTS).saturating_sub(self.now);
        Some(Answer::Granted {
            token: current.token,
            attempt: current.attempt,
            deadline: current.deadline,
            remaining,
        })
    }

    /// A claim to the occurrence that was granted last.
    fn claim_current(&mut self, claim: &Request, current: Current) -> Answer {
        let may_take = match self.setup.has(Guard::CompareAndSteal) {
            true => {
                let watched = claim.token == current.token && claim.deadline == current.deadline;
                claim.verb == Verb::TakeOver && watched
            }
            false => current.deadline <= self.now * PARTS,
        };
        match current.standing {
            Standing::Ended if self.setup.has(Guard::Memory) => return Answer::Finished,
            Standing::Running if !may_take => return Answer::Held(sighting(&current)),
            Standing::Running | Standing::Again | Standing::Ended => {}
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        let once = self.setup.runs_once();
        let may_have_run = match current.standing {
            Standing::Running => once,
            Standing::Again => once && current.since <= self.ledger.born,
            Standing::Ended => false,
        };
        if may_have_run || current.attempt >= self.setup.attempts {
            self.end(current);
            return Answer::Finished;
        }
        self.grant(claim, current.attempt + 1)
    }

    /// A claim to an occurrence that nobody had yet.
    fn claim_new(&mut self, claim: &Request) -> Answer {
        let occurrence = claim.occurrence;
        let at = due(self.setup, occurrence);
        let paused = self.ledger.paused_since > 0;
        let suspended = self.ledger.suspended & (1 << occurrence) > 0;
        if suspended || paused && self.ledger.paused_since < at {
            return Answer::Finished;
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        if !self.known {
            self.begin_record(occurrence);
        }
        self.write_off_lost();
        if self.is_settled(occurrence) {
            return Answer::Finished;
        }
        self.settle_before(occurrence);
        if self.may_have_run(at) || paused {
            self.fate(occurrence);
            self.settle_before(occurrence + 1);
            return Answer::Finished;
        }
        if let Some(current) = self.open() {
            self.fate(occurrence);
            self.settle_before(occurrence + 1);
            return Answer::Held(sighting(&current));
        }
        if self.setup.has(Guard::Memory) {
            self.settle_before(occurrence);
            self.ledger.settled = self.ledger.settled.max(occurrence + 1);
            self.ledger.known = true;
        }
        self.grant(claim, 1)
    }

    /// A job that the ledger doesn't know has nothing to settle up to now, but what is claimed.
    fn begin_record(&mut self, claimed: u8) {
        let occurrences = 0..self.setup.occurrences as u8;
        for past in occurrences.filter(|at| due(self.setup, *at) <= self.now) {
            self.ledger.settled = self.ledger.settled.max(past + 1);
            if past != claimed {
                self.ledger.fated |= 1 << past;
            }
        }
    }

    /// The occurrence that is under way, or to be tried again.
    fn open(&self) -> Option<Current> {
        let current = self.ledger.current;
        current.filter(|current| current.standing != Standing::Ended)
    }

    /// Whether an occurrence of which nothing is written may have run all the same.
    fn may_have_run(&self, at: u8) -> bool {
        let born = self.ledger.born;
        if !self.known && at <= born {
            return true;
        }
        let forgotten = match self.setup.has(Guard::BornInclusive) {
            true => at <= born,
            false => at < born,
        };
        let Wipe::Election { lives, .. } = self.setup.wipe else {
            return forgotten && self.setup.runs_once();
        };
        let unsure_until = self.ledger.grace_until.max(born + lives + 1);
        let twin = self.ledger.elected && self.setup.has(Guard::Twin) && at <= unsure_until;
        (forgotten || twin) && self.setup.runs_once()
    }

    /// What was due before an occurrence, and that nobody claimed, is missed.
    fn settle_before(&mut self, occurrence: u8) {
        for missed in self.ledger.settled..occurrence {
            if self.ledger.fated & (1 << missed) == 0 {
                self.fate(missed);
            }
        }
        self.ledger.settled = self.ledger.settled.max(occurrence);
        self.ledger.known = true;
    }

    /// Writes down what can't be told any more.
    fn write_off_lost(&mut self) {
        let until = std::mem::take(&mut self.ledger.lost_until);
        let occurrences = 0..self.setup.occurrences;
        let lost = occurrences.filter(|at| due(self.setup, *at as u8) <= until);
        if let Some(last) = lost.max() {
            self.settle_before(last as u8 + 1);
        }
    }

    /// An occurrence has its fate: one.
    fn fate(&mut self, occurrence: u8) {
        let bit = 1 << occurrence;
        if self.ledger.fated & bit > 0 {
            Breach::TwoFates.note(self.memory);
        }
        self.ledger.fated |= bit;
    }

    fn end(&mut self, current: Current) {
        self.fate(current.occurrence);
        let ended = Current {
            standing: Standing::Ended,
            ..current
        };
        self.ledger.current = Some(ended);
    }

    fn grant(&mut self, claim: &Request, attempt: u8) -> Answer {
        let known = self.ledger.token.max(self.ledger.record_token);
        let token = match self.setup.tokens {
            super::setup::Tokens::Real if self.setup.has(Guard::TokenByTime) => {
                (known.max(claim.floor) + 1).max(self.now * PARTS)
            }
            _ => known + 1,
        };
        self.note_grant(claim, attempt, token);
        self.ledger.token = token;
        self.ledger.record_token = token;
        self.ledger.clock = self.ledger.clock.max(self.now);
        let deadline = (self.now + TTL) * PARTS;
        self.ledger.current = Some(Current {
            occurrence: claim.occurrence,
            standing: Standing::Running,
            holder: self.caller,
            run: claim.run,
            token,
            attempt,
            deadline,
            since: 0,
        });
        Answer::Granted {
            token,
            attempt,
            deadline,
            remaining: TTL,
        }
    }

    /// What the laws remember of a grant.
    fn note_grant(&mut self, claim: &Request, attempt: u8, token: u8) {
        let at = claim.occurrence as usize;
        if self.memory.granted[at] >= attempt {
            Breach::SameAttempt.note(self.memory);
        }
        // Whoever lost its lease before a loss of data may hand it over after it. Nobody may know that
        // another attempt has finished meanwhile, and with `rerun` that is no reason to stop at one.
        let loses_data = self.setup.budget.wipes > 0;
        let brought_back = loses_data && !self.setup.runs_once() && attempt > 1;
        if self.memory.finished & (1 << at) > 0 && !brought_back {
            Breach::FinishedAgain.note(self.memory);
        }
        if self.memory.token >= token {
            Breach::TokenFell.note(self.memory);
        }
        if self.boot < self.memory.quiet_until && !self.former {
            Breach::GrantedInGrace.note(self.memory);
        }
        if self.now < due(self.setup, claim.occurrence) {
            Breach::BeforeDue.note(self.memory);
        }
        let paused = self.ledger.paused_since > 0;
        if attempt == 1 && (paused || self.ledger.suspended & (1 << at) > 0) {
            Breach::InPause.note(self.memory);
        }
        self.memory.granted[at] = self.memory.granted[at].max(attempt);
        self.memory.token = self.memory.token.max(token);
    }

    fn renew(&mut self, renewal: &Request) -> Answer {
        let mine = self.standing_of(renewal) == Some(Standing::Running);
        if !mine && !self.reassert(renewal) {
            return Answer::Refused;
        }
        self.ledger.token = self.ledger.token.max(renewal.token);
        let Some(current) = self.ledger.current.as_mut() else {
            return Answer::Refused;
        };
        let next = (self.now + TTL) * PARTS;
        let last = current.deadline.max(renewal.deadline);
        let before = current.deadline;
        current.deadline = match self.setup.has(Guard::RisingDeadline) {
            true => next.max(last + 1),
            false => next,
        };
        if mine && current.deadline <= before {
            Breach::DeadlineFell.note(self.memory);
        }
        Answer::Renewed(current.deadline)
    }

    /// How the occurrence of a lease stands, where it is still that lease's.
    fn standing_of(&self, lease: &Request) -> Option<Standing> {
        let current = self.ledger.current?;
        let same = current.occurrence == lease.occurrence
            && current.holder == self.caller
            && current.run == lease.run;
        let matches = current.token == lease.token && (same || !self.setup.has(Guard::FullMatch));
        matches.then_some(current.standing)
    }

    /// Inside a grace window a holder may write anew what the store lost.
    fn reassert(&mut self, lease: &Request) -> bool {
        if self.grace() == 0 {
            return false;
        }
        let same = self.current_at(lease.occurrence);
        let over = same.is_some_and(|current| current.standing == Standing::Ended);
        let newest = same.map_or(self.ledger.record_token, |current| current.token);
        if over || newest >= lease.token {
            return false;
        }
        if same.is_none() && !self.known {
            self.ledger.settled = lease.occurrence;
            self.ledger.lost_until = self.ledger.lost_until.max(self.ledger.born);
            self.ledger.known = true;
        }
        self.settle_before(lease.occurrence);
        self.ledger.settled = self.ledger.settled.max(lease.occurrence + 1);
        self.ledger.record_token = self.ledger.record_token.max(lease.token);
        self.ledger.current = Some(Current {
            occurrence: lease.occurrence,
            standing: Standing::Running,
            holder: self.caller,
            run: lease.run,
            token: lease.token,
            attempt: lease.attempt,
            deadline: self.now * PARTS,
            since: 0,
        });
        true
    }

    fn release(&mut self, release: &Request) -> Answer {
        let since = match self.standing_of(release) {
            Some(Standing::Running) => self.now,
            Some(Standing::Again | Standing::Ended) => return Answer::Released,
            // It may have been heard before the loss too, and what follows it may have run.
            None if self.reassert(release) => self.now.min(self.ledger.born),
            None => return Answer::Refused,
        };
        self.ledger.token = self.ledger.token.max(release.token);
        let Some(current) = self.ledger.current else {
            return Answer::Refused;
        };
        if release.outcome == Outcome::HandedOver {
            self.ledger.current = Some(Current {
                standing: Standing::Again,
                since,
                ..current
            });
        } else {
            self.end(current);
            if release.outcome == Outcome::Succeeded {
                self.memory.finished |= 1 << release.occurrence;
            }
        }
        Answer::Released
    }
}

/// What names a lease as it is.
pub(super) fn sighting(current: &Current) -> Sighting {
    Sighting {
        occurrence: current.occurrence,
        token: current.token,
        deadline: current.deadline,
    }
}

/// When a claim that is sent at a moment of the store's clock does nothing any more.
pub(super) fn send_by(clock: u8) -> u8 {
    clock + CALL_TIMEOUT
}
