//! The file against its twin in memory: the same requests by the same clock have to get the
//! same answers to the letter, whatever the order.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use soloist::clock::Clock;
use soloist::scheduler::job::{JobName, OnCrash};
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Origin, Outcome, Retention, Scope, Sighting,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::memory::MemoryStore;
use soloist::store::sqlite::SqliteStore;
use soloist::store::{Store, StoreError};
use tempfile::TempDir;

use crate::bench::{Peer, claim, enrolment, info, job, release, renewal, run_id};
use crate::fixtures::clock::TestClock;

const SEQUENCES: u64 = 1000;
const REQUESTS: usize = 25;

/// xorshift64* (Vigna 2014): all chance comes from the seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % limit
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let length = u64::try_from(all.len()).ok().filter(|length| *length > 0)?;
        all.get(self.below(length) as usize)
    }
}

/// Both stores, and what the requests of a sequence are drawn from.
struct Twins {
    chance: Chance,
    clock: Arc<TestClock>,
    memory: MemoryStore,
    file: SqliteStore,
    peers: Vec<Peer>,
    claims: Vec<Claim>,
    grants: Vec<(Claim, Grant)>,
    sightings: Vec<(JobName, Timestamp, Sighting)>,
    /// How many requests were granted, taken over, refused: a test that only ever hears one
    /// answer proves little.
    heard: Heard,
}

#[derive(Debug, Default)]
struct Heard {
    granted: u32,
    taken_over: u32,
    refused: u32,
    grace: u32,
}

fn same<T: PartialEq + Debug>(
    asked: impl Debug,
    memory: Result<T, StoreError>,
    file: Result<T, StoreError>,
) -> T {
    let (memory, file) = (
        memory.expect("memory answers"),
        file.expect("the file answers"),
    );
    assert_eq!(
        file, memory,
        "to {asked:?}, the file (left) and memory (right)"
    );
    file
}

impl Twins {
    fn new(directory: &TempDir, seed: u64) -> Self {
        let clock = Arc::new(TestClock::new());
        let memory = MemoryStore::new(clock.clone());
        let path = directory.path().join("soloist.db");
        let file = SqliteStore::open(&path, &format!("s{seed}"), clock.clone());
        let unused: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        let peers = (0..3).map(|number| {
            let mut peer = Peer::new(Arc::clone(&unused), &format!("r{number}"));
            peer.caller.quarantine = Duration::from_secs(10 * number);
            peer
        });
        Self {
            chance: Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            clock,
            memory,
            file: file.expect("a thread can be started"),
            peers: peers.collect(),
            claims: Vec::new(),
            grants: Vec::new(),
            sightings: Vec::new(),
            heard: Heard::default(),
        }
    }

    fn pass_time(&mut self) {
        let step = match self.chance.below(100) {
            0..2 => -3_600_000,
            2 => -10_000,
            3 => 25 * 3_600_000,
            4..40 => 0,
            _ => self.chance.below(3000) as i64,
        };
        self.clock.step_ms(step);
    }

    fn outcome(&mut self) -> Outcome {
        let all = [
            Outcome::Succeeded,
            Outcome::Failed,
            Outcome::HandedOver,
            Outcome::Cancelled,
        ];
        *self.chance.of(&all).expect("there are some")
    }

    fn draw_claim(&mut self) -> Claim {
        if self.chance.below(4) == 0
            && let Some(again) = self.chance.of(&self.claims)
        {
            return again.clone();
        }
        let now = self.clock.wall();
        let back = Duration::from_secs(self.chance.below(6));
        // Of one job the number of lines decides what is kept, of the other their age.
        let (name, retention) = match self.chance.below(2) {
            0 => ("by-count", (4, Duration::from_secs(1 << 30))),
            _ => ("by-age", (1000, Duration::from_secs(60))),
        };
        let due = Timestamp::from_second((now + Duration::from_secs(1) - back).as_second());
        let mut drawn = claim(&job(name), due);
        drawn.retention = Retention {
            limit: retention.0,
            age: retention.1,
        };
        drawn.ttl = Duration::from_secs(1 + self.chance.below(10));
        drawn.max_attempts = 1 + self.chance.below(4) as u32;
        drawn.start_by = due + Duration::from_secs(self.chance.below(20));
        drawn.claim_by = drawn.start_by;
        if self.chance.below(4) == 0 {
            drawn.on_crash = OnCrash::Skip;
        }
        if self.chance.below(5) == 0 {
            drawn.origin = Origin::RunOnce;
        }
        if self.chance.below(2) == 0
            && let Some((job, due, sighting)) = self.chance.of(&self.sightings)
        {
            drawn.occurrence.job = job.clone();
            drawn.occurrence.scheduled_at = *due;
            drawn.watched = Some(*sighting);
        }
        drawn
    }

    async fn claim(&mut self, peer: &Peer) {
        let claim = self.draw_claim();
        let mut caller = peer.caller.clone();
        match self.chance.below(10) {
            0 => caller.send_by = Some(self.clock.wall() - Duration::from_secs(1)),
            1 => caller.token_floor = FencingToken::new((1 << 51) + self.chance.below(1 << 20)),
            _ => {}
        }
        let claims = std::slice::from_ref(&claim);
        let memory = self.memory.claim(&caller, claims).await;
        let file = self.file.claim(&caller, claims).await;
        let answer = same(&claim, memory, file).answer.remove(0);
        match answer {
            ClaimAnswer::Granted(grant) => {
                self.heard.granted += 1;
                self.heard.taken_over += u32::from(claim.watched.is_some());
                self.grants.push((claim.clone(), grant));
            }
            ClaimAnswer::Held(held) | ClaimAnswer::Overlap(held) => {
                let name = claim.occurrence.job.clone();
                self.sightings
                    .push((name, held.scheduled_at, held.sighting));
            }
            ClaimAnswer::Grace { .. } => self.heard.grace += 1,
            _ => self.heard.refused += 1,
        }
        self.claims.push(claim);
    }

    async fn renew(&mut self, peer: &Peer) {
        let Some((claim, grant)) = self.chance.of(&self.grants).cloned() else {
            return;
        };
        let mut renewal = renewal(&claim, &grant);
        if self.chance.below(10) == 0 {
            renewal.run_id = run_id();
        }
        let renewals = std::slice::from_ref(&renewal);
        let memory = self.memory.renew(&peer.caller, renewals).await;
        same(
            &renewal,
            memory,
            self.file.renew(&peer.caller, renewals).await,
        );
    }

    async fn release(&mut self, peer: &Peer) {
        let Some((claim, grant)) = self.chance.of(&self.grants).cloned() else {
            return;
        };
        let mut told = release(&claim, &grant, self.outcome());
        if self.chance.below(2) == 0 {
            told.output.stderr.head = b"printed\n".to_vec();
            told.output.stderr.total = 8;
        }
        let releases = std::slice::from_ref(&told);
        let memory = self.memory.release(&peer.caller, releases).await;
        same(
            &told,
            memory,
            self.file.release(&peer.caller, releases).await,
        );
        let (job, run) = (&claim.occurrence.job, claim.run_id);
        let memory = self.memory.output(job, run).await;
        same("output", memory, self.file.output(job, run).await);
    }

    async fn observe(&mut self, peer: &Peer) {
        let scope = if self.chance.below(2) == 0 {
            Scope::All
        } else {
            Scope::Overdue
        };
        let memory = self.memory.observe(&peer.caller, &info(), scope).await;
        let seen = same(
            scope,
            memory,
            self.file.observe(&peer.caller, &info(), scope).await,
        );
        for lease in seen.answer.leases {
            self.sightings
                .push((lease.job, lease.held.scheduled_at, lease.held.sighting));
        }
    }

    async fn request(&mut self) {
        self.pass_time();
        let number = self.chance.below(3) as usize;
        let peer = self.peers[number].clone();
        match self.chance.below(20) {
            0 => {
                let jobs = [enrolment(&job("by-age"))];
                let memory = self.memory.register(&peer.caller, &jobs).await;
                same(
                    "register",
                    memory,
                    self.file.register(&peer.caller, &jobs).await,
                );
            }
            1 => {
                let memory = self.memory.depart(&peer.caller).await;
                same("depart", memory, self.file.depart(&peer.caller).await);
            }
            2..4 => self.observe(&peer).await,
            4..7 => self.renew(&peer).await,
            7..11 => self.release(&peer).await,
            _ => self.claim(&peer).await,
        }
    }

    async fn compare_all(&self) {
        same(
            "snapshot",
            self.memory.snapshot().await,
            self.file.snapshot().await,
        );
        for job in [None, Some(job("by-count")), Some(job("by-age"))] {
            let memory = self.memory.history(job.as_ref(), usize::MAX).await;
            same(
                &job,
                memory,
                self.file.history(job.as_ref(), usize::MAX).await,
            );
        }
    }
}

#[tokio::test]
async fn a_thousand_random_sequences_get_the_same_answers_from_file_and_memory() {
    // Where there is a file system in memory, it is only the answers that count here.
    let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    let directory = directory.expect("a temporary directory can be made");
    let mut heard = Heard::default();
    for seed in 1..=SEQUENCES {
        let mut twins = Twins::new(&directory, seed);
        for _ in 0..REQUESTS {
            twins.request().await;
        }
        twins.compare_all().await;
        heard.granted += twins.heard.granted;
        heard.taken_over += twins.heard.taken_over;
        heard.refused += twins.heard.refused;
        heard.grace += twins.heard.grace;
    }
    eprintln!("{heard:?}");
    let each = [heard.granted, heard.taken_over, heard.refused, heard.grace];
    assert!(each.into_iter().all(|count| count > 50), "{heard:?}");
}
