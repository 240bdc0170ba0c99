//! Servers in memory, and whether messages to them go astray.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use test_support::redis_model::{Data, ModelServer, Reply, Scripts};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{millis_below, throw};
use crate::store::engine::Part;
use crate::store::redis::RedisStore;
use crate::store::redis::keys::{self, Keys};
use crate::store::redis::quorum::QuorumStore;

/// The time of the servers' clocks when all begins.
pub(super) const BEGAN_US: i64 = 1_795_000_000_000_000;

/// Nothing goes astray at all.
pub(super) const CALM: u64 = u64::MAX;

/// What a line that two bring is refused with.
const IS_THERE: &str = "equal or smaller than the target stream top item";

const NAMESPACE: &str = "shop";

/// All servers of one ledger.
pub(super) struct Servers {
    pub(super) all: Vec<Node>,
    scripts: Scripts,
    began: Instant,
    /// Of a hundred messages, so many have a fate of their own.
    trouble: AtomicU64,
    broken: Mutex<Option<String>>,
    digest: AtomicU64,
}

/// One server.
pub(super) struct Node {
    model: Mutex<ModelServer>,
    /// What it would find on its disk.
    saved: Mutex<Data>,
    /// Rises when it is started again: all connections end.
    pub(super) starts: watch::Sender<u64>,
    /// It does nothing until then.
    thaws_at: Mutex<Instant>,
    skew_us: i64,
}

/// What a server has when it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Nothing,
    Old,
    All,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_id() -> String {
    format!("{:020}{:020}", throw(u64::MAX), throw(u64::MAX))
}

impl Servers {
    pub(super) fn start(count: usize) -> Arc<Self> {
        let node = |_| Node {
            model: Mutex::new(ModelServer {
                data: Data::default(),
                run_id: run_id(),
            }),
            saved: Mutex::default(),
            starts: watch::Sender::new(0),
            thaws_at: Mutex::new(Instant::now()),
            skew_us: i64::try_from(throw(20_000)).expect("a small number"),
        };
        Arc::new(Self {
            all: (0..count).map(node).collect(),
            scripts: Scripts::default(),
            began: Instant::now(),
            trouble: AtomicU64::new(CALM),
            broken: Mutex::default(),
            digest: AtomicU64::new(0),
        })
    }

    /// A store in them.
    pub(super) fn store(self: &Arc<Self>) -> QuorumStore {
        let member = |number| {
            let way = Arc::new(super::wire::Way::new(Arc::clone(self), number));
            RedisStore::reached_by(way, NAMESPACE, Part::Jobs, 0).expect("a namespace")
        };
        let members = (0..self.all.len()).map(member).collect();
        QuorumStore::new("redis+quorum://model".to_owned(), members)
    }

    pub(super) fn set_trouble(&self, percent: u64) {
        self.trouble.store(percent, Ordering::Relaxed);
    }

    /// Nothing goes wrong from now on.
    pub(super) fn calm_down(&self) {
        self.set_trouble(CALM);
        let now = Instant::now();
        self.all.iter().for_each(|node| *lock(&node.thaws_at) = now);
    }

    pub(super) fn trouble(&self) -> u64 {
        self.trouble.load(Ordering::Relaxed)
    }

    /// What a server was asked that no server answers.
    pub(super) fn check(&self) -> Result<(), String> {
        lock(&self.broken).clone().map_or(Ok(()), Err)
    }

    /// Has a server carry out a command.
    pub(super) fn call(&self, number: usize, words: &[Vec<u8>]) -> Reply {
        let node = &self.all[number];
        let passed = i64::try_from(self.began.elapsed().as_micros()).expect("not for ever");
        let now_us = BEGAN_US + passed + node.skew_us;
        let reply = lock(&node.model).call(words, now_us, &self.scripts);
        if let Reply::Error(error) = &reply
            && !error.contains(IS_THERE)
        {
            let words = words.iter().map(|word| String::from_utf8_lossy(word));
            let told = format!("{error}: {:?}", words.collect::<Vec<_>>());
            lock(&self.broken).get_or_insert(told);
        }
        self.note(number, now_us, words.len());
        reply
    }

    /// Takes what came about into the digest (FNV-1a).
    fn note(&self, number: usize, now_us: i64, words: usize) {
        let mut digest = self.digest.load(Ordering::Relaxed);
        for part in [number as u64, now_us.unsigned_abs(), words as u64] {
            digest = (digest ^ part).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest.store(digest, Ordering::Relaxed);
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest.load(Ordering::Relaxed)
    }
}

impl Node {
    pub(super) fn freeze(&self, time: Duration) {
        *lock(&self.thaws_at) = Instant::now() + time;
    }

    pub(super) fn thaws_at(&self) -> Instant {
        *lock(&self.thaws_at)
    }

    /// Writes its disk.
    pub(super) fn save(&self) {
        *lock(&self.saved) = lock(&self.model).data.clone();
    }

    pub(super) fn restart(&self, kept: Kept) {
        let mut model = lock(&self.model);
        model.run_id = run_id();
        match kept {
            Kept::Nothing => model.data = Data::default(),
            Kept::Old => model.data = lock(&self.saved).clone(),
            Kept::All => {}
        }
        drop(model);
        self.starts.send_modify(|starts| *starts += 1);
        self.freeze(millis_below(throw(300)));
    }

    /// It is the process that took its last step.
    pub(super) fn counts(&self) -> bool {
        let model = lock(&self.model);
        let field = |name| model.data.field(&Keys::new(NAMESPACE).jobs, name);
        field(keys::BALLOT).is_some() && field(keys::MEMBER).as_ref() == Some(&model.run_id)
    }

    /// That of its last step.
    pub(super) fn ballot(&self) -> Option<String> {
        let jobs = Keys::new(NAMESPACE).jobs;
        lock(&self.model).data.field(&jobs, keys::BALLOT)
    }
}
