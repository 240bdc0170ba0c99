//! The pure core: given the time and an event, it decides what is to be done.
//!
//! Nothing in here reads a clock, touches a socket or a file, starts a process, spawns a
//! task or logs. Everything it knows of the world comes in as an [`Event`] and a boot time;
//! everything it wants goes out as an [`Effect`]. A test drives it through years in
//! milliseconds.
//!
//! ```text
//!            Event, now                      Effect
//!  driver ─────────────▶ Scheduler ───────────────────▶ driver
//!                         ├ table        what is due, by the store's clock
//!                         ├ claims       on their way to the store
//!                         ├ held         leases of this replica: renew, stop, release
//!                         ├ watch        leases of others: take over the dead
//!                         └ store_clock  what time it is at the store
//! ```

mod claims;
mod effect;
mod held;
pub mod job;
pub mod lease;
pub mod margins;
pub mod schedule;
mod store_clock;
mod table;
pub mod time;
mod timers;
mod watch;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

pub use self::effect::{Attempt, CallResult, Effect, EndedHow, Ending, Event, Notice, StopReason};
pub use self::store_clock::ClockJump;

use self::claims::Claims;
use self::held::{HeldLeases, Stop};
use self::job::{Job, JobName};
use self::lease::{
    Answered, BATCH_LIMIT, Caller, Claim, ClaimAnswer, FencingToken, Grant, Observation,
    Occurrence, Origin, Registration, Replica, RunId, Scope, Sighting,
};
use self::margins::Margins;
use self::store_clock::StoreClock;
use self::table::{Due, Table};
use self::time::{BootTime, Timestamp};
use self::watch::{Takeover, Watch};

/// How long a failed registration waits before it is sent again.
const REGISTER_RETRY: Duration = Duration::from_secs(1);

/// The ledger may have occurrences settled this far ahead of now before people are told.
const SETTLED_AHEAD_TOLERATED: Duration = Duration::from_secs(60);

/// Where random bytes come from: ids are drawn and waits are spread with them.
pub type Entropy = Box<dyn FnMut() -> [u8; 10] + Send>;

/// What a scheduler has to know beside its jobs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who this is.
    pub replica: Replica,
    /// How long running attempts may go on after a drain was asked for.
    pub shutdown_grace: Duration,
}

/// The decisions of one replica.
pub struct Scheduler {
    settings: Settings,
    entropy: Entropy,
    table: Table,
    clock: StoreClock,
    claims: Claims,
    held: HeldLeases,
    watch: Watch,
    registration: Registrations,
    token_floor: FencingToken,
    away_since: Option<BootTime>,
    grace_told: bool,
    draining: bool,
    finished: bool,
    effects: VecDeque<Effect>,
}

/// Jobs that the store doesn't know of yet.
struct Registrations {
    waiting: Vec<JobName>,
    in_flight: usize,
    retry_at: BootTime,
}

impl Scheduler {
    /// A scheduler of `jobs` that has done nothing yet.
    pub fn new(
        settings: Settings,
        jobs: impl IntoIterator<Item = Arc<Job>>,
        entropy: Entropy,
        now: BootTime,
    ) -> Self {
        let table = Table::new(jobs);
        let registration = Registrations {
            waiting: table.names(),
            in_flight: 0,
            retry_at: now,
        };
        Self {
            settings,
            entropy,
            watch: Watch::new(table.shortest_ttl(), now),
            table,
            clock: StoreClock::default(),
            claims: Claims::default(),
            held: HeldLeases::default(),
            registration,
            token_floor: FencingToken::default(),
            away_since: None,
            grace_told: false,
            draining: false,
            finished: false,
            effects: VecDeque::new(),
        }
    }

    /// Takes in what happened. Follow one or several of these by [`Self::advance`].
    pub fn handle(&mut self, event: Event, now: BootTime) {
        match event {
            Event::Registered { jobs, sent, result } => self.registered(&jobs, sent, result, now),
            Event::Claimed {
                claims,
                sent,
                result,
            } => self.claimed(claims, sent, result, now),
            Event::Renewed {
                renewals,
                sent,
                result,
            } => {
                let answers = self.heard(sent, now, result);
                for (index, renewal) in renewals.iter().enumerate() {
                    let answer = answers
                        .as_ref()
                        .and_then(|all| all.answer.get(index).copied());
                    let stop = self.held.renewed(renewal, answer, sent, now);
                    stop.into_iter().for_each(|stop| self.stop(stop));
                }
            }
            Event::Released { runs, sent, result } => {
                let answers = self.heard(sent, now, result);
                let answers = answers.as_ref().map(|all| all.answer.as_slice());
                let dice = self.dice();
                let notices = self.held.released(&runs, answers, now, dice);
                notices.into_iter().for_each(|notice| self.report(notice));
            }
            Event::Observed {
                scope,
                sent,
                result,
            } => self.observed(scope, sent, result, now),
            Event::AttemptEnded { run_id, ending } => self.held.ended(run_id, ending, now),
            Event::HandedOver => self.watch.look_now(Scope::Overdue, now),
            Event::Disturbed => self.watch.look_now(Scope::All, now),
            Event::DrainRequested => self.drain(now),
        }
    }

    /// Does what has come due.
    pub fn advance(&mut self, now: BootTime) {
        if self.finished {
            return;
        }
        self.tend_leases(now);
        if !self.draining {
            self.register_waiting(now);
            self.claim_due(now);
        }
        while let Some(claims) = self.claims.take_ready(now) {
            self.effects.push_back(Effect::Claim(claims));
        }
        if self.draining && self.held.len() == 0 && self.claims.in_flight() == 0 {
            self.finished = true;
            self.effects.push_back(Effect::Finish);
        } else if let Some(scope) = self.watch.begin_look(now) {
            self.effects.push_back(Effect::Observe(scope));
        }
    }

    /// What is to be done next; none when all is done for now.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Self::advance`] has to be called next, whatever happens.
    pub fn next_wakeup(&self) -> Option<BootTime> {
        if self.finished {
            return None;
        }
        let working = !self.draining;
        let due = self.table.next_due().filter(|_| working);
        let registration = (!self.registration.waiting.is_empty() && working)
            .then_some(self.registration.retry_at);
        [
            due.and_then(|due| self.clock.boot_time_of(due)),
            registration,
            self.claims.next_wakeup(),
            self.held.next_wakeup(),
            self.watch.next_wakeup(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Under which conditions a call that may take `timeout` is made.
    pub fn caller(&self, now: BootTime, timeout: Duration) -> Caller {
        let longest = self.table.longest_ttl().unwrap_or(margins::SHORTEST_TTL);
        Caller {
            replica: self.settings.replica.clone(),
            quarantine: longest + Margins::of(longest).call_timeout(),
            token_floor: self.token_floor,
            send_by: self.clock.reached(now).map(|reached| reached + timeout),
        }
    }

    /// The store's time, as far as it is known.
    pub fn store_time(&self, now: BootTime) -> Option<Timestamp> {
        self.clock.reached(now)
    }

    /// How many attempts run here.
    pub fn running(&self) -> usize {
        self.held.running()
    }

    /// How many jobs the table has.
    pub fn jobs(&self) -> usize {
        self.table.len()
    }

    /// No new work is taken.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    fn report(&mut self, notice: Notice) {
        self.effects.push_back(Effect::Report(notice));
    }

    fn stop(&mut self, stop: Stop) {
        self.report(stop.notice);
        let Stop {
            run_id,
            reason,
            grace,
            ..
        } = stop;
        self.effects.push_back(Effect::Stop {
            run_id,
            reason,
            grace,
        });
    }

    fn dice(&mut self) -> u8 {
        (self.entropy)()[0]
    }

    fn draw_run_id(&mut self, at: Timestamp) -> RunId {
        let millis = u64::try_from(at.as_millis()).unwrap_or(0);
        let random = (self.entropy)();
        RunId::new(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Takes note of how a call went: what time it is at the store, and whether it is there.
    fn heard<T>(
        &mut self,
        sent: BootTime,
        now: BootTime,
        result: CallResult<T>,
    ) -> Option<Answered<T>> {
        match result {
            Err(cause) => {
                self.watch.failed();
                if self.away_since.is_none() {
                    self.away_since = Some(now);
                    self.report(Notice::StoreAway { cause });
                }
                None
            }
            Ok(answered) => {
                self.watch.heard(now);
                if let Some(since) = self.away_since.take() {
                    self.report(Notice::StoreBack {
                        after: now.saturating_since(since),
                    });
                    self.watch.look_now(Scope::All, now);
                }
                if let Some(jump) = self.clock.learn(sent, now, answered.now) {
                    self.report(Notice::ClockJumped(jump));
                    self.watch.look_now(Scope::All, now);
                }
                Some(answered)
            }
        }
    }

    fn register_waiting(&mut self, now: BootTime) {
        if now < self.registration.retry_at || self.registration.in_flight > 0 {
            return;
        }
        let waiting = std::mem::take(&mut self.registration.waiting);
        for batch in waiting.chunks(BATCH_LIMIT) {
            self.registration.in_flight += 1;
            self.effects.push_back(Effect::Register(batch.to_vec()));
        }
    }

    fn registered(
        &mut self,
        jobs: &[JobName],
        sent: BootTime,
        result: CallResult<Vec<Registration>>,
        now: BootTime,
    ) {
        self.registration.in_flight -= 1;
        let Some(answered) = self.heard(sent, now, result) else {
            self.registration.waiting.extend_from_slice(jobs);
            self.registration.retry_at = now + REGISTER_RETRY;
            return;
        };
        for (name, registration) in jobs.iter().zip(&answered.answer) {
            self.arm(name, *registration, answered.now, now);
        }
        if self.registration.in_flight == 0 && self.registration.waiting.is_empty() {
            let (jobs, next) = (self.table.len(), self.table.next_due());
            self.report(Notice::Ready { jobs, next });
        }
    }

    /// Puts a job into the queue. Of what fell due since the ledger last settled anything of
    /// it, the newest is claimed; a job that is new to the ledger never runs its past.
    fn arm(&mut self, name: &JobName, known: Registration, store_now: Timestamp, now: BootTime) {
        if known.new {
            self.report(Notice::NewJob { job: name.clone() });
        }
        let ahead = known.settled_until.saturating_since(store_now);
        if ahead > SETTLED_AHEAD_TOLERATED {
            let (job, until) = (name.clone(), known.settled_until);
            self.report(Notice::SettledAhead { job, until });
        }
        let Some(job) = self.table.get(name).cloned() else {
            return;
        };
        let newest = job
            .schedule
            .last_before(store_now + Duration::from_millis(1));
        let missed = newest.filter(|newest| !known.new && *newest > known.settled_until);
        if let Some(scheduled_at) = missed
            && !self.draining
        {
            let claim = self.draw_claim(&job, scheduled_at, None);
            self.claims.add(claim, now);
        }
        self.table.arm(name, store_now.max(known.settled_until));
    }

    fn claim_due(&mut self, now: BootTime) {
        let Some(store_now) = self.clock.reached(now) else {
            return;
        };
        for Due {
            job,
            scheduled_at,
            passed_over,
        } in self.table.take_due(store_now)
        {
            if let Some(first) = passed_over {
                let (job, newest) = (job.name.clone(), scheduled_at);
                self.report(Notice::FellBehind { job, first, newest });
            }
            let claim = self.draw_claim(&job, scheduled_at, None);
            self.claims.add(claim, now);
        }
    }

    fn draw_claim(&mut self, job: &Job, due: Timestamp, steal: Option<Sighting>) -> Claim {
        Claim {
            occurrence: Occurrence {
                job: job.name.clone(),
                scheduled_at: due,
            },
            origin: Origin::Schedule,
            run_id: self.draw_run_id(due),
            on_crash: job.on_crash,
            max_attempts: job.max_attempts,
            start_by: due + job.starting_deadline,
            ttl: job.lease_ttl,
            steal,
            retention: job.retention,
        }
    }

    fn claimed(
        &mut self,
        claims: Vec<Claim>,
        sent: BootTime,
        result: CallResult<Vec<ClaimAnswer>>,
        now: BootTime,
    ) {
        let answered = self.heard(sent, now, result);
        let mut answers = answered
            .map(|all| all.answer.into_iter())
            .into_iter()
            .flatten();
        for claim in claims {
            self.claims.landed(claim.run_id);
            match answers.next() {
                Some(answer) => self.answered(claim, answer, sent, now),
                None if self.draining => self.claims.settle(claim.run_id),
                None => {
                    let dice = self.dice();
                    self.claims.retry(claim.run_id, now, dice);
                }
            }
        }
    }

    fn answered(&mut self, claim: Claim, answer: ClaimAnswer, sent: BootTime, now: BootTime) {
        let id = claim.run_id;
        let occurrence = claim.occurrence.clone();
        match answer {
            ClaimAnswer::Granted(grant) => {
                self.claims.settle(id);
                self.granted(claim, grant, sent, now);
            }
            ClaimAnswer::Early { wait } => self.again(id, now + wait, now),
            ClaimAnswer::Grace { wait } => {
                if !std::mem::replace(&mut self.grace_told, true) {
                    self.report(Notice::Grace { wait });
                }
                self.again(id, now + wait, now);
            }
            ClaimAnswer::RequestExpired => {
                let dice = self.dice();
                self.claims.retry(id, now, dice);
            }
            ClaimAnswer::Held(held) => {
                self.claims.settle(id);
                self.watch.see(&occurrence.job, &held, &self.clock, now);
            }
            ClaimAnswer::Overlap(held) => {
                self.claims.settle(id);
                self.watch.see(&occurrence.job, &held, &self.clock, now);
                self.report(Notice::Skipped {
                    occurrence,
                    unfinished: held,
                });
            }
            ClaimAnswer::Finished => self.claims.settle(id),
            ClaimAnswer::TooLate => {
                self.claims.settle(id);
                self.report(Notice::Missed { occurrence });
            }
            ClaimAnswer::Closed => {
                self.claims.settle(id);
                self.report(Notice::Closed { occurrence });
            }
        }
    }

    /// Sends a claim again at a known instant, unless there is no time left for it.
    fn again(&mut self, id: RunId, at: BootTime, now: BootTime) {
        match self.draining {
            true => self.claims.settle(id),
            false => self.claims.postpone(id, at.max(now)),
        }
    }

    fn granted(&mut self, claim: Claim, grant: Grant, sent: BootTime, now: BootTime) {
        self.token_floor = self.token_floor.max(grant.token);
        self.grace_told = false;
        let Some(job) = self.table.get(&claim.occurrence.job).cloned() else {
            return;
        };
        let (occurrence, run_id) = (claim.occurrence.clone(), claim.run_id);
        let startable = self.held.granted(job.clone(), claim, grant, sent, now);
        if !startable || self.draining {
            let reason = if startable {
                "the replica was shutting down"
            } else {
                "granted too late"
            };
            self.held.never_started(run_id, reason, now);
            return;
        }
        let takeover = grant.attempt > 1;
        let scheduled_at = occurrence.scheduled_at;
        self.report(Notice::Started {
            occurrence,
            grant,
            takeover,
        });
        let (number, token) = (grant.attempt, grant.token);
        let attempt = Attempt {
            job,
            scheduled_at,
            run_id,
            number,
            token,
        };
        self.effects.push_back(Effect::Start(attempt));
    }

    fn observed(
        &mut self,
        scope: Scope,
        sent: BootTime,
        result: CallResult<Observation>,
        now: BootTime,
    ) {
        let Some(Answered {
            now: store_now,
            answer,
        }) = self.heard(sent, now, result)
        else {
            self.watch.look_failed(scope, now);
            return;
        };
        let highest = answer
            .leases
            .iter()
            .map(|lease| lease.held.sighting.token)
            .max();
        self.token_floor = self.token_floor.max(highest.unwrap_or_default());
        let ours: HashSet<FencingToken> = self.held.tokens().collect();
        let table = &self.table;
        let takeovers = self
            .watch
            .looked(&answer, scope, store_now, &self.clock, now, |lease| {
                !ours.contains(&lease.held.sighting.token) && table.get(&lease.job).is_some()
            });
        if !self.draining {
            takeovers
                .into_iter()
                .for_each(|takeover| self.take_over(takeover, now));
        }
    }

    fn take_over(&mut self, takeover: Takeover, now: BootTime) {
        let Takeover { occurrence, steal } = takeover;
        if self.claims.is_pending(&occurrence) {
            return;
        }
        let Some(job) = self.table.get(&occurrence.job).cloned() else {
            return;
        };
        let claim = self.draw_claim(&job, occurrence.scheduled_at, steal);
        self.claims.add(claim, now);
    }

    fn tend_leases(&mut self, now: BootTime) {
        loop {
            let work = self.held.due(now);
            if work.is_empty() {
                return;
            }
            work.stops.into_iter().for_each(|stop| self.stop(stop));
            for batch in work.renewals.chunks(BATCH_LIMIT) {
                self.effects.push_back(Effect::Renew(batch.to_vec()));
            }
            if !work.releases.is_empty() {
                self.effects.push_back(Effect::Release(work.releases));
            }
        }
    }

    fn drain(&mut self, now: BootTime) {
        if self.draining {
            return;
        }
        self.draining = true;
        self.claims.drop_waiting();
        self.held.drain(now + self.settings.shutdown_grace);
        self.report(Notice::Draining {
            running: self.held.running(),
        });
        // Others see at once that this replica takes nothing more.
        self.watch.look_now(Scope::Overdue, now);
    }
}

/// An id for a replica: random, new at each start.
pub fn draw_replica_id(random: [u8; 16]) -> Uuid {
    uuid::Builder::from_random_bytes(random).into_uuid()
}
