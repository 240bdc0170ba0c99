//! The simulated world: a store, replicas with clocks of their own, a network, job processes.

mod faults;
mod guardian;
mod network;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use soloist::clock::Clock;
use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{AttemptDetail, FencingToken, Output, Replica, RunId};
use soloist::scheduler::policy::Tags;
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::scheduler::{
    Attempt, Effect, EndedHow, Ending, Event, Notice, Purpose, Scheduler, Settings,
};
use soloist::store::memory::MemoryStore;
use soloist::store::{AttemptRecord, Store};
use uuid::Uuid;

pub(crate) use crate::chance::Chance;
use crate::happening::Happening;

/// When every world begins: 2026-11-20T22:00:00Z.
const GENESIS_MS: i64 = 1_795_212_000_000;

/// How long a call waits for its answer, as the driver has it.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The store's clock: the world's time plus a shift that a test may move.
#[derive(Debug, Default)]
struct StoreClock {
    millis: AtomicI64,
    shift: AtomicI64,
}

impl Clock for StoreClock {
    fn wall(&self) -> Timestamp {
        let millis = self.millis.load(Ordering::Relaxed) + self.shift.load(Ordering::Relaxed);
        Timestamp::from_millis(GENESIS_MS + millis)
    }

    fn boot(&self) -> BootTime {
        unreachable!("a store has no boot clock")
    }
}

/// What may go wrong, in per cent of calls, and how slow the network is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    pub(crate) lose_request: u64,
    pub(crate) lose_reply: u64,
    pub(crate) slowest_ms: u64,
}

/// How long a job's attempt runs.
pub(crate) type Length = fn(&mut Chance) -> Duration;

/// By when the guardian ends an attempt, by the world's time.
#[derive(Clone, Copy, Debug)]
struct Guarded {
    stop_at: Duration,
    kill_at: Duration,
    /// It was sent TERM, and no later guard helps it.
    ending: bool,
}

/// An attempt as the checker sees it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) job: String,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) token: FencingToken,
    pub(crate) replica: usize,
    /// In which life of the replica.
    life: u64,
    /// What its guardian holds, by the world's time.
    guard: Guarded,
    pub(crate) started: Duration,
    pub(crate) ended: Option<Duration>,
    pub(crate) completed: bool,
}

pub(crate) struct World {
    pub(crate) chance: Chance,
    pub(crate) network: Network,
    pub(crate) now: Duration,
    pub(crate) runs: BTreeMap<RunId, Run>,
    /// Until when the store keeps each lease for its holder, by the world's time.
    deadlines: HashMap<RunId, Duration>,
    pub(crate) replicas: Vec<SimReplica>,
    pub(crate) store: Arc<MemoryStore>,
    store_clock: Arc<StoreClock>,
    jobs: Vec<Arc<Job>>,
    length: Length,
    queue: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    sequence: u64,
}

pub(crate) struct SimReplica {
    scheduler: Option<Scheduler>,
    /// Its boot clock is ahead of the world's time by this.
    boot_offset: Duration,
    pub(crate) notices: Vec<String>,
    pub(crate) finished: bool,
    cut_off: bool,
    life: u64,
    /// The next of its wake-ups that is in the queue; later ones are in vain.
    wakes_at: Option<Duration>,
    /// Until then, by the world's time, it gets no CPU.
    frozen_until: Duration,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at {:?}:", self.now)?;
        for run in self.runs.values() {
            writeln!(
                f,
                "  {} {} attempt {} token {} on r{}: {:?} to {:?}{}",
                run.job,
                run.scheduled_at,
                run.attempt,
                run.token,
                run.replica,
                run.started,
                run.ended,
                if run.completed { ", completed" } else { "" }
            )?;
        }
        Ok(())
    }
}

impl World {
    pub(crate) fn new(seed: u64, jobs: Vec<Job>, length: Length) -> Self {
        let store_clock = Arc::new(StoreClock::default());
        let clock: Arc<dyn Clock> = Arc::clone(&store_clock) as Arc<dyn Clock>;
        Self {
            chance: Chance::new(seed),
            network: Network {
                slowest_ms: 5,
                ..Network::default()
            },
            now: Duration::ZERO,
            runs: BTreeMap::new(),
            deadlines: HashMap::new(),
            replicas: Vec::new(),
            store: Arc::new(MemoryStore::new(clock)),
            store_clock,
            jobs: jobs.into_iter().map(Arc::new).collect(),
            length,
            queue: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Starts a replica and gives its number.
    pub(crate) fn start(&mut self) -> usize {
        let number = self.replicas.len();
        let boot_offset = Duration::from_millis(self.chance.below(1_000_000_000));
        self.replicas.push(SimReplica {
            scheduler: None,
            boot_offset,
            notices: Vec::new(),
            finished: false,
            cut_off: false,
            life: 0,
            wakes_at: None,
            frozen_until: Duration::ZERO,
        });
        self.revive(number);
        number
    }

    /// Starts a replica that crashed anew: another identity, the same host.
    pub(crate) fn revive(&mut self, number: usize) {
        let mut own = Chance::new(self.chance.next());
        let mut id = [0; 16];
        id[..8].copy_from_slice(&own.next().to_le_bytes());
        id[8..].copy_from_slice(&own.next().to_le_bytes());
        let replica = Replica {
            id: Uuid::from_bytes(id),
            name: format!("r{number}"),
        };
        let settings = Settings {
            replica,
            shutdown_grace: Duration::from_secs(5),
            purpose: Purpose::Table,
            tags: Tags::new(),
            max_running: None,
        };
        let entropy = Box::new(move || {
            let mut bytes = [0; 10];
            bytes[..8].copy_from_slice(&own.next().to_le_bytes());
            bytes[8..].copy_from_slice(&own.next().to_le_bytes()[..2]);
            bytes
        });
        let boot = self.boot(number);
        let one = &mut self.replicas[number];
        one.scheduler = Some(Scheduler::new(settings, self.jobs.clone(), entropy, boot));
        one.life += 1;
        one.wakes_at = None;
        one.finished = false;
        self.turn(number);
    }

    /// Who runs something now.
    pub(crate) fn holder(&self) -> Option<usize> {
        let mut alive = self.runs.values().filter(|run| run.ended.is_none());
        alive.next().map(|run| run.replica)
    }

    pub(crate) fn drain(&mut self, number: usize) {
        self.give(number, Event::DrainRequested);
    }

    pub(crate) fn is_alive(&self, number: usize) -> bool {
        self.replicas[number].scheduler.is_some()
    }

    /// The ledger, newest first.
    pub(crate) fn history(&self) -> Vec<AttemptRecord> {
        let history = self.store.history(None, usize::MAX).now_or_never();
        history
            .expect("the memory store answers at once")
            .expect("and always")
    }

    /// Lets a time pass that chance draws out.
    pub(crate) fn run_for_about(&mut self, seconds: u64, and_at_most_ms: u64) {
        let more = Duration::from_millis(self.chance.below(and_at_most_ms));
        self.run_for(Duration::from_secs(seconds) + more);
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, length: Duration) {
        let end = self.now + length;
        while let Some(Reverse((at, ..))) = self.queue.peek() {
            if *at > end {
                break;
            }
            let Some(Reverse((at, _, happening))) = self.queue.pop() else {
                break;
            };
            self.pass_to(at);
            self.happen(happening);
        }
        self.pass_to(end);
    }

    fn pass_to(&mut self, at: Duration) {
        self.now = self.now.max(at);
        let millis = i64::try_from(self.now.as_millis()).expect("a short simulation");
        self.store_clock.millis.store(millis, Ordering::Relaxed);
    }

    fn boot(&self, number: usize) -> BootTime {
        BootTime::since_boot(self.now + self.replicas[number].boot_offset)
    }

    fn push(&mut self, at: Duration, happening: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence, happening)));
    }

    fn lives(&self, replica: usize, life: u64) -> bool {
        self.replicas[replica].life == life
    }

    /// When a replica gets CPU again, if it has none.
    fn thaws_at(&self, happening: &Happening) -> Option<Duration> {
        let (Happening::Wake { replica, .. } | Happening::Deliver { replica, .. }) = happening
        else {
            return None;
        };
        Some(self.replicas[*replica].frozen_until).filter(|until| *until > self.now)
    }

    fn happen(&mut self, happening: Happening) {
        if let Some(until) = self.thaws_at(&happening) {
            return self.push(until, happening);
        }
        match happening {
            Happening::Wake { replica, life } if self.lives(replica, life) => {
                let now = self.now;
                let one = &mut self.replicas[replica];
                if one.wakes_at.take_if(|next| *next <= now).is_some() {
                    self.turn(replica);
                }
            }
            Happening::Deliver {
                replica,
                life,
                event,
            } if self.lives(replica, life) => {
                self.give(replica, *event);
            }
            Happening::EndOfRun {
                run,
                replica,
                life,
                how,
            } => {
                self.end_run(run, replica, life, how);
            }
            Happening::Arrive {
                replica,
                life,
                effect,
                caller,
                sent,
            } => {
                self.arrive(replica, life, *effect, &caller, sent);
            }
            Happening::GuardDue { run } => self.guard_due(run),
            Happening::Wake { .. } | Happening::Deliver { .. } => {}
        }
    }

    fn end_run(&mut self, run_id: RunId, replica: usize, life: u64, how: EndedHow) {
        let now = self.now;
        let Some(run) = self.runs.get_mut(&run_id).filter(|run| run.ended.is_none()) else {
            return;
        };
        run.ended = Some(now);
        run.completed = how == EndedHow::Succeeded;
        let ending = Ending {
            how,
            detail: AttemptDetail::default(),
            output: Output::default(),
        };
        let event = Box::new(Event::AttemptEnded { run_id, ending });
        self.happen(Happening::Deliver {
            replica,
            life,
            event,
        });
    }

    fn give(&mut self, number: usize, event: Event) {
        let boot = self.boot(number);
        if let Some(scheduler) = &mut self.replicas[number].scheduler {
            scheduler.handle(event, boot);
            self.turn(number);
        }
    }

    /// One turn of the driver's loop.
    fn turn(&mut self, number: usize) {
        let boot = self.boot(number);
        let Some(mut scheduler) = self.replicas[number].scheduler.take() else {
            return;
        };
        scheduler.advance(boot);
        let mut finished = false;
        while let Some(effect) = scheduler.poll_effect() {
            finished |= matches!(effect, Effect::Finish);
            self.perform(number, effect, &scheduler, boot);
        }
        let life = self.replicas[number].life;
        if let Some(wakeup) = scheduler.next_wakeup() {
            let after = wakeup.saturating_since(boot);
            assert!(
                after > Duration::ZERO || wakeup <= boot,
                "a wake-up is an instant of this replica's boot clock"
            );
            // What is due at once waits for the next microsecond, so that time passes.
            let at = self.now + after.max(Duration::from_micros(1));
            if self.replicas[number].wakes_at.is_none_or(|next| at < next) {
                self.replicas[number].wakes_at = Some(at);
                let replica = number;
                self.push(at, Happening::Wake { replica, life });
            }
        }
        self.replicas[number].finished |= finished;
        if finished {
            self.replicas[number].life += 1;
        } else {
            self.replicas[number].scheduler = Some(scheduler);
        }
    }

    fn perform(&mut self, number: usize, effect: Effect, scheduler: &Scheduler, boot: BootTime) {
        let life = self.replicas[number].life;
        match effect {
            Effect::Start(attempt) => self.start_run(number, life, &attempt),
            Effect::Stop { run_id, grace, .. } => {
                // Some jobs heed TERM sooner or later, and some never do.
                let after = match self.chance.percent(50) {
                    true => Duration::from_millis(self.chance.below(grace.as_millis() as u64 + 1)),
                    false => grace,
                };
                let how = EndedHow::Stopped;
                let end = Happening::EndOfRun {
                    run: run_id,
                    replica: number,
                    life,
                    how,
                };
                self.push(self.now + after, end);
            }
            Effect::Guard { run_id, guard } => self.guard(run_id, guard),
            Effect::Report(notice) => self.note(number, &notice),
            Effect::Finish => {}
            call => {
                let caller = scheduler.caller(boot, CALL_TIMEOUT);
                self.send(number, call, caller, boot);
            }
        }
    }

    fn note(&mut self, number: usize, notice: &Notice) {
        let line = format!("{:?} {notice:?}", self.now);
        self.replicas[number].notices.push(line);
    }

    fn start_run(&mut self, number: usize, life: u64, attempt: &Attempt) {
        let run = Run {
            job: attempt.job.name.to_string(),
            scheduled_at: attempt.scheduled_at,
            attempt: attempt.number,
            token: attempt.token,
            replica: number,
            life,
            guard: self.by_the_worlds_time(number, attempt.guard),
            started: self.now,
            ended: None,
            completed: false,
        };
        self.runs.insert(attempt.run_id, run);
        self.guard(attempt.run_id, attempt.guard);
        let length = (self.length)(&mut self.chance);
        let how = EndedHow::Succeeded;
        let end = Happening::EndOfRun {
            run: attempt.run_id,
            replica: number,
            life,
            how,
        };
        self.push(self.now + length, end);
    }

    /// Attempts of each job that are alive now.
    pub(crate) fn alive(&self) -> HashMap<&str, usize> {
        let mut alive = HashMap::new();
        for run in self.runs.values().filter(|run| run.ended.is_none()) {
            *alive.entry(run.job.as_str()).or_default() += 1;
        }
        alive
    }
}
