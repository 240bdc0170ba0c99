//! One scheduler by hand, where the order of answers matters more than chance.

use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{
    Answered, AttemptDetail, Claim, ClaimAnswer, FencingToken, Grant, Lineage, Observation, Output,
    Registration, Renewal, Replica, RunId, Scope,
};
use soloist::scheduler::policy::Tags;
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::scheduler::{Attempt, Effect, EndedHow, Ending, Event, Purpose, Scheduler, Settings};
use uuid::Uuid;

/// The store reads this when the host's boot clock reads zero.
pub const GENESIS: Timestamp = Timestamp::from_second(1_795_212_000);
/// How long leases last.
pub const TTL: Duration = Duration::from_secs(15);
const TOKEN: FencingToken = FencingToken::new(7);

/// A scheduler, and what time it is.
pub struct Hand {
    /// The real one.
    pub scheduler: Scheduler,
    /// Since the host was booted.
    pub now: Duration,
}

impl Hand {
    /// Registered, with nothing due yet.
    pub fn new(job: Job, purpose: Purpose) -> Self {
        let settings = Settings {
            replica: Replica {
                id: Uuid::nil(),
                name: "r".to_owned(),
            },
            shutdown_grace: Duration::from_secs(5),
            purpose,
            tags: Tags::new(),
            max_running: None,
            digest: String::new(),
            revision: None,
        };
        let mut drawn = 0u8;
        let entropy = Box::new(move || {
            drawn = drawn.wrapping_add(1);
            [drawn; 10]
        });
        let jobs = [Arc::new(job)];
        let scheduler = Scheduler::new(settings, jobs, entropy, BootTime::default());
        let mut hand = Self {
            scheduler,
            now: Duration::ZERO,
        };
        let registered = hand.turn().into_iter().find_map(|effect| match effect {
            Effect::Register(jobs) => Some(jobs),
            _ => None,
        });
        let known = Registration {
            fresh_for: Duration::ZERO,
            settled_until: GENESIS,
            new: false,
            former_schedule: None,
            outdated: None,
            force: None,
            openings: Vec::new(),
            paused: None,
            pause_came_back: false,
            born: GENESIS,
        };
        hand.tell(Event::Registered {
            jobs: registered.expect("it registers first"),
            sent: BootTime::default(),
            result: Ok(Answered::new(GENESIS, vec![known])),
        });
        hand
    }

    /// What its boot clock reads.
    pub fn boot(&self) -> BootTime {
        BootTime::since_boot(self.now)
    }

    /// An answer of the store, given now.
    pub fn answered<T>(&self, answer: T) -> Result<Answered<Vec<T>>, String> {
        Ok(Answered::new(GENESIS + self.now, vec![answer]))
    }

    /// Feeds an event.
    pub fn tell(&mut self, event: Event) {
        self.scheduler.handle(event, self.boot());
    }

    /// One turn of the driver's loop.
    pub fn turn(&mut self) -> Vec<Effect> {
        self.scheduler.advance(self.boot());
        std::iter::from_fn(|| self.scheduler.poll_effect()).collect()
    }

    /// Goes on to the next wake-ups until something wanted comes of one.
    pub fn until<T>(&mut self, wanted: impl Fn(Effect) -> Option<T>) -> T {
        for _ in 0..100 {
            if let Some(found) = self.turn().into_iter().find_map(&wanted) {
                return found;
            }
            let next = self.scheduler.next_wakeup().expect("something is to come");
            self.now = self.now.max(next.as_duration());
        }
        panic!("it never came");
    }

    /// A look finds nothing, in a ledger that began then.
    pub fn look(&mut self, born: Timestamp) {
        let now = GENESIS + self.now;
        let nothing = Observation {
            leases: Vec::new(),
            openings: Vec::new(),
            untold: Vec::new(),
            next_look: None,
            peers: Vec::new(),
            grace: Duration::ZERO,
            token: TOKEN,
            born,
            tables: Lineage::default(),
            published: Vec::new(),
        };
        self.tell(Event::Observed {
            scope: Scope::All,
            sent: self.boot(),
            result: Ok(Answered::new(now, nothing)),
        });
    }

    /// An attempt that runs, of whatever is claimed next.
    pub fn run(&mut self) -> Claim {
        self.start().0
    }

    /// The same, with what was started.
    pub fn start(&mut self) -> (Claim, Attempt) {
        let claim = self.until(|effect| match effect {
            Effect::Claim(claims) => claims.into_iter().next(),
            _ => None,
        });
        let grant = ClaimAnswer::Granted(Grant {
            token: TOKEN,
            attempt: 1,
            failures: 0,
            shards: 1,
            deadline: GENESIS + self.now + TTL,
            remaining: TTL,
            replayed: false,
        });
        self.tell(Event::Claimed {
            claims: vec![claim.clone()],
            sent: self.boot(),
            result: self.answered(grant),
        });
        let attempt = self.until(|effect| match effect {
            Effect::Start(attempt) => Some(attempt),
            _ => None,
        });
        (claim, attempt)
    }

    /// An attempt ends.
    pub fn end(&mut self, run_id: RunId, how: EndedHow) {
        let ending = Ending {
            how,
            detail: AttemptDetail::default(),
            output: Output::default(),
        };
        self.tell(Event::AttemptEnded { run_id, ending });
    }

    /// The store doesn't answer.
    pub fn fail(&mut self, effect: Effect) {
        let sent = self.boot();
        let cause = || "no answer".to_owned();
        let event = match effect {
            Effect::Release(releases) => Event::Released {
                runs: releases.iter().map(|release| release.run_id).collect(),
                sent,
                result: Err(cause()),
            },
            Effect::Renew(renewals) => Event::Renewed {
                renewals,
                sent,
                result: Err(cause()),
            },
            Effect::Observe(scope) => Event::Observed {
                scope,
                sent,
                result: Err(cause()),
            },
            _ => return,
        };
        self.tell(event);
    }
}

/// The first renewal of a call that is one.
pub fn renewal(effect: Effect) -> Option<Renewal> {
    match effect {
        Effect::Renew(renewals) => renewals.into_iter().next(),
        _ => None,
    }
}
