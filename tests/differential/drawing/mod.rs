//! Draws a sequence, call by call: each of what was heard before, from a replica that may be late,
//! mistaken, or ask for what is not its own.
//!
//! Must never: leave out an argument that a caller may choose.

mod asking;
mod claims;
mod keeping;
mod tables;

use std::time::Duration;

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Caller, Dependent, Dependents, FencingToken, Replica, Retention, Telling, Topic,
};
use soloist::scheduler::time::Timestamp;

use crate::chance::Chance;
use crate::memories::Memories;
use crate::steps::{Asked, Call, Reply, Step, Trouble, What};
use crate::words;

/// 2026-11-20T22:00:00Z, in milliseconds.
pub(crate) const BEGINNING: i64 = 1_795_212_000_000;

/// How many namespaces a sequence has.
pub(crate) const NAMESPACES: usize = 2;

/// How many ways there are into each.
pub(crate) const WAYS: usize = 2;

const REPLICAS: usize = 4;

/// So many jobs have some sequences, one more than go into a batch and are shown to an observer.
const CROWD: usize = 129;

/// The highest token that a caller says it has seen: some grants below the last one there is.
const HIGHEST_FLOOR: u64 = FencingToken::MAX.get() - (1 << 20);

const HOUR_MS: i64 = 3_600_000;

/// How many steps a sequence of this seed has. In the long ones a job ends more often than its
/// outputs are kept.
pub(crate) fn steps(seed: u64) -> u64 {
    match is_long(seed) {
        true => 3000,
        false => 120,
    }
}

fn is_long(seed: u64) -> bool {
    seed % 80 == 40
}

/// What is drawn, and by which habits.
pub(crate) struct Drawing {
    chance: Chance,
    now: Timestamp,
    jobs: Vec<JobName>,
    callers: Vec<Caller>,
    memories: [Memories; NAMESPACES],
    /// What happens to the stores, beside calls.
    troubles: Vec<Trouble>,
    /// Two calls may come at once.
    crossing: bool,
    /// The clock steps back at times, and no job keeps its past by age: what was written before a
    /// step back lies ahead, and is kept by each engine for as long as suits it.
    steps_back: bool,
}

/// What the engine of a sequence can go through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habits {
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) crossing: bool,
}

impl Drawing {
    pub(crate) fn new(seed: u64, habits: &Habits) -> Self {
        let mut chance = Chance::new(seed);
        let jobs = match chance.below(24) {
            _ if is_long(seed) => words::one_job(),
            0 => words::jobs(CROWD),
            few => words::jobs(2 + (few as usize) / 3),
        };
        let callers = (0..REPLICAS).map(|number| Caller {
            replica: Replica {
                id: chance.uuid(),
                name: words::text(&mut chance),
            },
            quarantine: Duration::from_secs(10 * number as u64),
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        });
        let callers = callers.collect();
        let troubled = chance.one_in(4);
        let steps_back = chance.one_in(2);
        Self {
            now: Timestamp::from_millis(BEGINNING + chance.below(1000) as i64),
            jobs,
            callers,
            memories: Default::default(),
            troubles: match troubled {
                true => habits.troubles.clone(),
                false => Vec::new(),
            },
            crossing: habits.crossing,
            steps_back,
            chance,
        }
    }

    /// The jobs that a sequence may have asked for.
    pub(crate) fn jobs(&self) -> &[JobName] {
        &self.jobs
    }

    /// The next step.
    pub(crate) fn step(&mut self) -> Step {
        self.pass_time();
        let what = match self.chance.below(40) {
            0 if !self.troubles.is_empty() => What::Trouble(self.trouble()),
            kind => {
                let mut one = self.asked();
                // While a ledger knows of no grant, whoever knows of one takes it for lost: a
                // grant at the same time doesn't end that, and one that came before would.
                let is_granted = self.memories[one.namespace].is_granted;
                let may_cross = self.crossing && is_granted && one.call.is_one_step();
                if !may_cross || kind > 3 {
                    return self.at_now(What::Alone(one));
                }
                one.call.leave_one();
                let other = self.asked_beside(&one);
                What::Together(one, other)
            }
        };
        self.at_now(what)
    }

    fn at_now(&self, what: What) -> Step {
        Step { at: self.now, what }
    }

    /// Hears what came of a call.
    pub(crate) fn learn(&mut self, asked: &Asked, reply: &Reply) {
        self.memories[asked.namespace].learn(asked, reply);
    }

    fn trouble(&mut self) -> Trouble {
        // A restart takes as long as a thousand calls.
        let rare = self.chance.one_in(10);
        let all = self.troubles.iter().copied();
        let all: Vec<Trouble> = all.filter(|one| rare || *one != Trouble::Restart).collect();
        let one = self.chance.of(&all).or(self.troubles.first());
        let one = *one.expect("there is one");
        if one != Trouble::FailOver {
            let memories = self.memories.iter_mut();
            memories.for_each(|memories| memories.is_granted = false);
        }
        one
    }

    /// Another call, at the same time as `one`.
    fn asked_beside(&mut self, one: &Asked) -> Asked {
        let mut other = self.asked_of(one.namespace);
        while !other.call.is_one_step() {
            other = self.asked_of(one.namespace);
        }
        other.call.leave_one();
        other.way = (one.way + 1) % WAYS;
        other
    }

    fn pass_time(&mut self) {
        let step = match self.chance.below(200) {
            // Beyond what is waited out, and within.
            0 => -HOUR_MS,
            1 => -60_000,
            2 => -59_999,
            3..5 => -(self.chance.below(20_000) as i64),
            // A replica is forgotten after a day, a job after a month.
            5 => 25 * HOUR_MS,
            6 => 31 * 24 * HOUR_MS,
            7..10 => self.chance.below(120_000) as i64,
            // As long as some limits, to the millisecond.
            10..16 => [1000, 20_000, 60_000][self.chance.index(3)],
            16..80 => 0,
            _ => self.chance.below(3000) as i64,
        };
        let step = match self.steps_back {
            true => step,
            false => step.abs(),
        };
        self.now = Timestamp::from_millis(self.now.as_millis() + step);
    }

    fn asked(&mut self) -> Asked {
        // Mostly in one of them, so that it comes far.
        let namespace = usize::from(self.chance.one_in(4));
        self.asked_of(namespace)
    }

    fn asked_of(&mut self, namespace: usize) -> Asked {
        let call = self.call(namespace);
        Asked {
            namespace,
            way: self.chance.index(WAYS),
            caller: self.caller(namespace),
            call,
        }
    }

    fn call(&mut self, of: usize) -> Call {
        match self.chance.below(100) {
            0..9 => self.register(of),
            9..36 => self.claim(of),
            36..48 => self.renew(of),
            48..66 => self.release(of),
            66..74 => self.order(of),
            74..78 => self.deliver(of),
            78..86 => self.observe(of),
            86..88 => self.publish(of),
            88 => self.table(of),
            89 => Call::Depart,
            90 => Call::Sweep,
            91 => Call::Snapshot,
            92..96 => self.history(),
            _ => self.output(of),
        }
    }

    fn caller(&mut self, of: usize) -> Caller {
        let index = self.chance.index(REPLICAS);
        let mut caller = self.callers[index].clone();
        let seconds = |chance: &mut Chance| Duration::from_secs(chance.below(5));
        match self.chance.below(30) {
            0 => caller.send_by = Some(self.now - Duration::from_millis(1)),
            1 => caller.send_by = Some(self.now),
            2..5 => caller.send_by = Some(self.now + seconds(&mut self.chance)),
            5 => caller.held_back = seconds(&mut self.chance),
            6 if self.chance.one_in(40) => {
                let floor = HIGHEST_FLOOR - self.chance.below(1 << 51);
                caller.token_floor = FencingToken::new(floor);
            }
            7..20 => caller.token_floor = FencingToken::new(self.memories[of].token),
            _ => {}
        }
        caller
    }

    fn job(&mut self) -> JobName {
        let job = self.chance.of(&self.jobs);
        job.expect("there are some").clone()
    }

    /// A time a little before or after now, on the second.
    fn about_now(&mut self) -> Timestamp {
        let back = Duration::from_secs(self.chance.below(6));
        let at = self.now + Duration::from_secs(1) - back;
        Timestamp::from_second(at.as_second())
    }

    fn retention(&mut self, job: &JobName) -> Retention {
        // Of one job the number of lines decides what is kept, of the next their age; and now and
        // then the table is another one.
        let kind = job.as_str().len() as u64 + u64::from(self.chance.one_in(8));
        let (limit, age) = match kind % 4 {
            0 => (1 + self.chance.below(4) as u32, 1 << 30),
            1 if !self.steps_back => (1000, 60),
            2 if !self.steps_back => (3, 20),
            1 => (2, 1 << 30),
            _ => return Retention::LONGEST,
        };
        let age = Duration::from_secs(age);
        Retention { limit, age }
    }

    fn telling(&mut self) -> Option<Telling> {
        let chance = &mut self.chance;
        chance.some(2, |chance| Telling {
            to: words::some(chance),
            topics: Topic::ALL
                .into_iter()
                .filter(|_| chance.below(4) > 0)
                .collect(),
            repeat: Duration::from_secs([1, 60, 86_400][chance.index(3)]),
        })
    }

    /// What comes after a job: those with the next names, and what comes after those.
    fn dependents(&mut self, job: &JobName, depth: u32) -> Dependents {
        let first = self.jobs.iter().position(|one| one == job).unwrap_or(0) + 1;
        let rest = self.jobs.len().saturating_sub(first).min(3);
        if depth == 0 || rest == 0 || self.chance.below(3) > 0 {
            return Dependents::default();
        }
        let one = self.jobs[first + self.chance.index(rest)].clone();
        let mut after = vec![job.clone()];
        if self.chance.one_in(3) {
            after.push(self.jobs[0].clone());
            after.dedup();
        }
        Dependents::from([Dependent {
            after,
            enabled: self.chance.below(5) > 0,
            starting_deadline: Duration::from_secs(self.chance.below(60)),
            retention: self.retention(&one),
            dependents: self.dependents(&one, depth - 1),
            job: one,
        }])
    }
}
