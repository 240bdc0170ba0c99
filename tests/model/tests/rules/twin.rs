//! The real store, asked what the model's store is asked: requests, times and tokens as the real
//! ones, and answers as the model's.
//!
//! Must never: know what the model is going to answer, but for which number a token has there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use soloist::clock::Clock;
use soloist::scheduler::job::{JobName, OnCrash as RealOnCrash};
use soloist::scheduler::lease::{
    Caller, Claim, ClaimAnswer, Definition, Enrolment, FencingToken, Grant, Held, Occurrence,
    Outcome as RealOutcome, Release, Renewal, RenewalAnswer, Replica, RunId, Scope, Seen,
    Sighting as RealSighting,
};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::store::memory::{Image, MemoryStore};
use soloist::store::{ReplicaInfo, Store};
use soloist_model::protocol::setup::{GRACE, Jump, OnCrash, Setup, TTL, Wipe};
use soloist_model::protocol::state::{
    AHEAD, Answer, Outcome, PARTS, Request, START, Sighting, State, Verb,
};
use soloist_model::protocol::{Action, asked};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

/// The store's clock, in milliseconds.
#[derive(Debug, Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn boot(&self) -> BootTime {
        BootTime::default()
    }
}

/// A real store beside the model's.
pub(crate) struct Twin {
    setup: Setup,
    clock: Arc<Hand>,
    store: MemoryStore,
    runtime: Runtime,
    empty: Image,
    saved: Image,
    /// The model's tokens, and the real ones.
    tokens: HashMap<u8, u64>,
    asked: usize,
}

impl Twin {
    pub(crate) fn new(setup: Setup) -> Self {
        let clock = Arc::new(Hand::default());
        let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let empty = store.image();
        let mut twin = Self {
            saved: empty.clone(),
            setup,
            clock,
            store,
            runtime,
            empty,
            tokens: HashMap::new(),
            asked: 0,
        };
        twin.enrol();
        twin.saved = twin.store.image();
        twin
    }

    /// How many questions the real store was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// The job is known since half a tick before the first one.
    fn enrol(&mut self) {
        let at = self.millis_of(AHEAD + START) - self.tick() / 2;
        self.clock.0.store(at, Ordering::Relaxed);
        let enrolment = Enrolment {
            job: job(),
            schedule: String::new(),
            enabled: true,
            definition: Definition::default(),
            over: None,
            change: None,
            retention: self.claim_of(0, &Request::default()).retention,
            again: false,
            seen: Seen::default(),
        };
        let caller = self.caller(0, &Request::default(), 0);
        let call = self
            .store
            .register(&caller, std::slice::from_ref(&enrolment));
        self.runtime
            .block_on(call)
            .expect("the memory store answers");
    }

    /// Does what an action asks of the store. `expected` says which number a new token has in the
    /// model.
    pub(crate) fn take(
        &mut self,
        state: &State,
        action: Action,
        expected: Option<Answer>,
    ) -> Option<Answer> {
        let clock = self.millis_of(state.now + state.offset);
        self.clock.0.store(clock, Ordering::Relaxed);
        match action {
            Action::Save => self.saved = self.store.image(),
            Action::Wipe if self.setup.wipe == Wipe::Empty => {
                self.store.fall_back_to(self.empty.clone());
            }
            Action::Wipe => self.store.fall_back_to(self.saved.clone()),
            Action::Look(at) | Action::TakeOver(at) => self.look(state, at),
            _ => {}
        }
        let (at, request) = asked(state, action)?;
        self.asked += 1;
        let held_back = state.replicas[at as usize]
            .held_back
            .saturating_sub(state.now);
        let caller = self.caller(at, &request, held_back);
        Some(self.ask(at, &caller, &request, expected))
    }

    fn look(&self, state: &State, at: u8) {
        let floor = state.replicas[at as usize].floor;
        let looking = Request {
            floor,
            ..Request::default()
        };
        let caller = self.caller(at, &looking, 0);
        let info = ReplicaInfo::default();
        let call = self.store.observe(&caller, &info, Scope::All);
        self.runtime
            .block_on(call)
            .expect("the memory store answers");
    }

    fn ask(
        &mut self,
        at: u8,
        caller: &Caller,
        request: &Request,
        expected: Option<Answer>,
    ) -> Answer {
        let claim = self.claim_of(at, request);
        let grant = self.grant_of(request);
        match request.verb {
            Verb::Claim | Verb::TakeOver => {
                let call = self.store.claim(caller, std::slice::from_ref(&claim));
                let answers = self
                    .runtime
                    .block_on(call)
                    .expect("the memory store answers");
                self.answer_to_claim(answers.answer[0].clone(), expected)
            }
            Verb::Renew => {
                let renewal = Renewal {
                    last_deadline: self.instant(request.deadline),
                    ..Renewal::of(&claim, &grant)
                };
                let call = self.store.renew(caller, std::slice::from_ref(&renewal));
                let answers = self
                    .runtime
                    .block_on(call)
                    .expect("the memory store answers");
                match &answers.answer[0] {
                    RenewalAnswer::Renewed { deadline, .. } => {
                        Answer::Renewed(self.parts(*deadline))
                    }
                    RenewalAnswer::Lost => Answer::Refused,
                }
            }
            Verb::Release => {
                let release = Release::of(&claim, &grant, outcome(request.outcome));
                let call = self.store.release(caller, std::slice::from_ref(&release));
                self.runtime
                    .block_on(call)
                    .expect("the memory store answers");
                // To whoever gives it back, a lease that is another's is one that is over.
                Answer::Released
            }
        }
    }

    fn answer_to_claim(&mut self, answer: ClaimAnswer, expected: Option<Answer>) -> Answer {
        match answer {
            ClaimAnswer::Granted(grant) => {
                if let Some(Answer::Granted { token, .. }) = expected {
                    self.tokens.entry(token).or_insert(grant.token.get());
                }
                Answer::Granted {
                    token: self.model_token(grant.token),
                    attempt: small(i64::from(grant.attempt)),
                    deadline: self.parts(grant.deadline),
                    remaining: self.ticks(grant.remaining),
                }
            }
            ClaimAnswer::Held(held) | ClaimAnswer::Overlap(held) => self.held(&held),
            ClaimAnswer::Early { .. } | ClaimAnswer::RequestExpired => Answer::NotNow,
            ClaimAnswer::Grace { wait } => Answer::Grace(self.ticks(wait)),
            ClaimAnswer::Waiting | ClaimAnswer::NoRoom | ClaimAnswer::Outdated { .. } => {
                unreachable!("nothing queues, all have room and one table")
            }
            ClaimAnswer::Skipped(_)
            | ClaimAnswer::Suspended { .. }
            | ClaimAnswer::Finished
            | ClaimAnswer::TooLate
            | ClaimAnswer::Closed => Answer::Finished,
        }
    }

    fn held(&self, held: &Held) -> Answer {
        let occurrences = 0..self.setup.occurrences;
        let mut occurrences = occurrences.map(|at| small(at as i64));
        let is_it = |at: &u8| self.due(*at) == held.scheduled_at;
        Answer::Held(Sighting {
            occurrence: occurrences.find(is_it).expect("one of the model's"),
            token: self.model_token(held.sighting.token),
            deadline: self.parts(held.sighting.deadline),
        })
    }

    fn caller(&self, at: u8, request: &Request, held_back: u8) -> Caller {
        Caller {
            replica: Replica {
                id: Uuid::from_u128(u128::from(at) + 1),
                name: format!("replica {at}"),
            },
            quarantine: self.duration(GRACE),
            token_floor: self.real_token(request.floor),
            send_by: Some(Timestamp::from_millis(self.millis_of(request.send_by))),
            held_back: self.duration(held_back),
        }
    }

    fn claim_of(&self, at: u8, request: &Request) -> Claim {
        let occurrence = Occurrence {
            job: job(),
            scheduled_at: self.due(request.occurrence),
        };
        let run_id = u128::from(at) << 8 | u128::from(request.run);
        let far = Timestamp::from_millis(i64::from(u32::MAX) * 1000);
        let takes_over = request.verb == Verb::TakeOver;
        Claim {
            on_crash: match self.setup.on_crash {
                OnCrash::Skip => RealOnCrash::Skip,
                OnCrash::Rerun => RealOnCrash::Rerun,
            },
            max_attempts: u32::from(self.setup.attempts),
            claim_by: far,
            start_by: far,
            ttl: self.duration(TTL),
            watched: takes_over.then(|| RealSighting {
                token: self.real_token(request.token),
                deadline: self.instant(request.deadline),
            }),
            missed_until: (request.occurrence > 0).then(|| self.due(request.occurrence - 1)),
            ..Claim::new(occurrence, RunId::new(Uuid::from_u128(run_id)))
        }
    }

    fn grant_of(&self, request: &Request) -> Grant {
        Grant {
            token: self.real_token(request.token),
            attempt: u32::from(request.attempt),
            failures: 0,
            shards: 1,
            deadline: self.instant(request.deadline),
            remaining: Duration::ZERO,
            replayed: false,
        }
    }

    fn due(&self, occurrence: u8) -> Timestamp {
        let ticks = AHEAD + START + self.setup.due[usize::from(occurrence)];
        Timestamp::from_millis(self.millis_of(ticks))
    }

    /// Milliseconds of a tick: a step far back has to be one by the real rules too.
    fn tick(&self) -> i64 {
        match self.setup.jump {
            Jump::FarBack => 100_000,
            Jump::Never | Jump::Forward | Jump::Back => 1_000,
        }
    }

    fn millis_of(&self, ticks: u8) -> i64 {
        i64::from(ticks) * self.tick()
    }

    fn duration(&self, ticks: u8) -> Duration {
        Duration::from_millis(self.millis_of(ticks).unsigned_abs())
    }

    fn ticks(&self, duration: Duration) -> u8 {
        small(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX) / self.tick())
    }

    /// A part of a tick is a millisecond.
    fn instant(&self, parts: u8) -> Timestamp {
        Timestamp::from_millis(self.millis_of(parts / PARTS) + i64::from(parts % PARTS))
    }

    fn parts(&self, instant: Timestamp) -> u8 {
        let millis = instant.as_millis();
        small(millis / self.tick() * i64::from(PARTS) + millis % self.tick())
    }

    /// Zero is none; one that the model never drew is above all.
    fn real_token(&self, token: u8) -> FencingToken {
        let known = self.tokens.get(&token).copied();
        FencingToken::new(known.unwrap_or_default())
    }

    fn model_token(&self, token: FencingToken) -> u8 {
        let mut known = self.tokens.iter();
        let known = known.find(|(_, real)| **real == token.get());
        known.map_or(u8::MAX, |(model, _)| *model)
    }
}

fn job() -> JobName {
    JobName::new("a").expect("a name")
}

fn outcome(outcome: Outcome) -> RealOutcome {
    match outcome {
        Outcome::Succeeded => RealOutcome::Succeeded,
        Outcome::HandedOver => RealOutcome::HandedOver,
        Outcome::Lost => RealOutcome::Lost,
    }
}

fn small(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
