//! The simulated world: a store, replicas with clocks of their own, a network, job processes.

mod driving;
mod faults;
mod guardian;
mod host;
mod network;
mod premises;
mod runs;
mod sight;
mod tables;
mod witness;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use soloist::driver::{Dispatcher, Place, Request};
use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{Replica, RunId};
use soloist::scheduler::policy::Tags;
use soloist::scheduler::time::Timestamp;
use soloist::scheduler::{Attempt, EndedHow, Event, Purpose, Reload, Settings};
use uuid::Uuid;

use self::driving::{HostClocks, Listener};
use self::host::Host;
pub use self::network::Network;
pub use self::premises::{Premises, Real, StoreClock};
pub use self::runs::Run;
use self::tables::{Tables, digest_of, revision_of};
pub use self::witness::{Arrow, Phase, Witness};
pub use crate::chance::Chance;
use crate::happening::Happening;

/// When every world begins: 2026-11-20T22:00:00Z.
pub const GENESIS_MS: i64 = 1_795_212_000_000;

/// What happens in a world with a witness, at most: some ten thousand things do.
const EVENTS_AT_MOST: u64 = 100_000;

/// How an attempt ends.
pub type Fate = fn(&mut Chance, &Attempt) -> EndedHow;

/// What becomes of each attempt that nobody ends: after how long it ends, and how.
pub type Plot = Box<dyn Fn(&Attempt) -> (Duration, EndedHow)>;

/// How long a job's attempt runs.
pub type Length = fn(&mut Chance) -> Duration;

/// A fleet, its store and what lies between them.
pub struct World {
    /// All that is drawn in it.
    pub chance: Chance,
    /// What may go wrong on the way.
    pub network: Network,
    /// Since it began.
    pub now: Duration,
    /// All attempts that were started.
    pub runs: BTreeMap<RunId, Run>,
    /// Those that have not ended.
    alive: BTreeSet<RunId>,
    /// Until when the store keeps each lease for its holder, by the world's time.
    deadlines: HashMap<RunId, Duration>,
    /// By their numbers.
    pub replicas: Vec<SimReplica>,
    /// What the ledger has told of definitions, and whether it keeps to it.
    pub tables: Tables,
    store: Premises,
    /// The store's clock is ahead of the world's time by this.
    clock_shift_ms: i64,
    /// And goes faster than that by this.
    clock_ppm: i64,
    /// It answers nobody.
    store_is_down: bool,
    /// Looks on at every step, in worlds that have one.
    pub witness: Option<Box<Witness>>,
    /// The table that replicas start with.
    pub jobs: Vec<Arc<Job>>,
    length: Length,
    /// How attempts end that nobody ends.
    pub fate: Fate,
    /// Takes the place of `length` and `fate`.
    pub plot: Option<Plot>,
    queue: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    sequence: u64,
}

/// A replica, its host and its clocks.
pub struct SimReplica {
    dispatcher: Option<Dispatcher>,
    host: Host,
    clocks: Arc<HostClocks>,
    listener: Listener,
    /// What it told people.
    pub notices: Vec<String>,
    /// It has ended as it was asked to.
    pub finished: bool,
    cut_off: bool,
    deaf: bool,
    life: u64,
    /// The next of its wake-ups that is in the queue; later ones are in vain.
    wakes_at: Option<Duration>,
    /// Until then, by the world's time, it gets no CPU.
    frozen_until: Duration,
    /// It dies when it has performed so many effects more.
    dies_after: Option<u64>,
    tags: Tags,
    max_running: Option<u32>,
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
    /// One over a store in memory, without replicas yet.
    pub fn new(seed: u64, jobs: Vec<Job>, length: Length) -> Self {
        Self::on(Premises::new(None), seed, jobs, length)
    }

    /// A world over a store of some other kind.
    pub fn on(store: Premises, seed: u64, jobs: Vec<Job>, length: Length) -> Self {
        store.set_clock(Timestamp::from_millis(GENESIS_MS));
        Self {
            store,
            clock_shift_ms: 0,
            clock_ppm: 0,
            store_is_down: false,
            witness: None,
            plot: None,
            alive: BTreeSet::new(),
            fate: |_, _| EndedHow::Succeeded,
            chance: Chance::new(seed),
            network: Network {
                slowest_ms: 5,
                ..Network::default()
            },
            now: Duration::ZERO,
            runs: BTreeMap::new(),
            deadlines: HashMap::new(),
            replicas: Vec::new(),
            tables: Tables::default(),
            jobs: jobs.into_iter().map(Arc::new).collect(),
            length,
            queue: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Starts a replica and gives its number.
    pub fn start(&mut self) -> usize {
        self.start_with(Tags::new(), None)
    }

    /// Starts one that has tags and a limit.
    pub fn start_with(&mut self, tags: Tags, max_running: Option<u32>) -> usize {
        self.start_on(tags, max_running, 0)
    }

    /// The same on a host whose boot clock goes faster than time by so many parts per million.
    pub fn start_on(&mut self, tags: Tags, max_running: Option<u32>, ppm: i64) -> usize {
        let number = self.replicas.len();
        let booted_before = Duration::from_millis(self.chance.below(1_000_000_000));
        self.replicas.push(SimReplica {
            dispatcher: None,
            host: Host::booted(booted_before, ppm),
            clocks: Arc::default(),
            listener: Listener::default(),
            notices: Vec::new(),
            finished: false,
            cut_off: false,
            deaf: false,
            life: 0,
            wakes_at: None,
            frozen_until: Duration::ZERO,
            dies_after: None,
            tags,
            max_running,
        });
        self.revive(number);
        number
    }

    /// Starts a replica that crashed anew: another identity, the same host.
    pub fn revive(&mut self, number: usize) {
        let mut own = Chance::new(self.chance.draw());
        let mut id = [0; 16];
        id[..8].copy_from_slice(&own.draw().to_le_bytes());
        id[8..].copy_from_slice(&own.draw().to_le_bytes());
        let replica = Replica {
            id: Uuid::from_bytes(id),
            name: format!("r{number}"),
        };
        let settings = Settings {
            replica,
            shutdown_grace: Duration::from_secs(5),
            purpose: Purpose::Table,
            tags: self.replicas[number].tags.clone(),
            max_running: self.replicas[number].max_running,
            digest: digest_of(&self.jobs),
            revision: revision_of(&self.jobs),
        };
        let entropy = Box::new(move || {
            let mut bytes = [0; 10];
            bytes[..8].copy_from_slice(&own.draw().to_le_bytes());
            bytes[8..].copy_from_slice(&own.draw().to_le_bytes()[..2]);
            bytes
        });
        let place = Place {
            host: format!("host-{number}"),
            pid: u32::try_from(self.replicas[number].life).expect("a short simulation"),
        };
        self.read_clocks(number);
        let listens = self.listens();
        let one = &mut self.replicas[number];
        let clock = Arc::clone(&one.clocks);
        let jobs = self.jobs.clone();
        let mut dispatcher = Dispatcher::new(settings, jobs, clock, entropy, place);
        if listens {
            dispatcher.observe(Box::new(one.listener.clone()));
        }
        one.dispatcher = Some(dispatcher);
        one.life += 1;
        one.wakes_at = None;
        one.finished = false;
        one.dies_after = None;
        self.turn(number);
    }

    /// Has a replica go on with another table.
    pub fn reload(&mut self, number: usize, jobs: &[Arc<Job>]) {
        let one = &self.replicas[number];
        let reload = Reload {
            jobs: jobs.to_vec(),
            digest: digest_of(jobs),
            revision: revision_of(jobs),
            tags: one.tags.clone(),
            max_running: one.max_running,
            shutdown_grace: Duration::from_secs(5),
        };
        self.ask(number, Request::Reload(Box::new(reload)));
    }

    /// Asks a replica to stop.
    pub fn drain(&mut self, number: usize) {
        self.ask(number, Request::Drain);
    }

    /// Lets a time pass that chance draws out.
    pub fn run_for_about(&mut self, seconds: u64, and_at_most_ms: u64) {
        let more = Duration::from_millis(self.chance.below(and_at_most_ms));
        self.run_for(Duration::from_secs(seconds) + more);
    }

    /// Lets time pass.
    pub fn run_for(&mut self, length: Duration) {
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
        self.set_store_clock();
    }

    fn set_store_clock(&self) {
        // Cut to milliseconds once: a clock that goes wrong has no coarser ones.
        let nanos = i128::try_from(self.now.as_nanos()).expect("a short simulation");
        let gone = nanos * (1_000_000 + i128::from(self.clock_ppm)) / 1_000_000;
        let millis = i64::try_from(gone / 1_000_000).expect("a short simulation");
        let reads = GENESIS_MS + millis + self.clock_shift_ms;
        self.store.set_clock(Timestamp::from_millis(reads));
    }

    fn push(&mut self, at: Duration, happening: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence, happening)));
    }

    fn lives(&self, replica: usize, life: u64) -> bool {
        self.replicas[replica].life == life
    }

    /// When what is to happen gets CPU again, if it has none.
    fn thaws_at(&self, happening: &Happening) -> Option<Duration> {
        let until = match happening {
            Happening::Wake { replica, .. }
            | Happening::Deliver { replica, .. }
            | Happening::News { replica, .. } => {
                let one = &self.replicas[*replica];
                one.frozen_until.max(one.host.suspended_until)
            }
            // What runs there, and its guardian.
            Happening::EndOfRun { replica, .. } => self.replicas[*replica].host.suspended_until,
            Happening::GuardDue { run } => {
                let run = &self.runs[run];
                self.replicas[run.replica].host.suspended_until
            }
            Happening::Arrive(_) => return None,
        };
        Some(until).filter(|until| *until > self.now)
    }

    fn happen(&mut self, happening: Happening) {
        if let Some(until) = self.thaws_at(&happening) {
            return self.push(until, happening);
        }
        if let Some(witness) = &mut self.witness {
            witness.events += 1;
            assert!(witness.events < EVENTS_AT_MOST, "it goes in circles");
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
                let mut events = vec![*event];
                events.extend(self.delivered_with(replica, life));
                self.give_all(replica, events);
            }
            Happening::News {
                replica,
                life,
                news,
            } if self.lives(replica, life) => self.give_news(replica, news),
            Happening::EndOfRun {
                run,
                replica,
                life,
                how,
            } => {
                self.end_run(run, replica, life, how);
            }
            Happening::Arrive(call) => self.arrive(&call),
            Happening::GuardDue { run } => self.guard_due(run),
            Happening::Wake { .. } | Happening::Deliver { .. } | Happening::News { .. } => {}
        }
    }

    /// What reaches a replica at the same moment: its driver takes all of it in at once.
    fn delivered_with(&mut self, number: usize, of_life: u64) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(Reverse((at, _, Happening::Deliver { replica, life, .. }))) =
            self.queue.peek()
        {
            if (*at, *replica, *life) != (self.now, number, of_life) {
                break;
            }
            if let Some(Reverse((.., Happening::Deliver { event, .. }))) = self.queue.pop() {
                events.push(*event);
            }
        }
        events
    }
}
