//! The scripts against the rules: the same random requests to Redis and to its twin in memory,
//! whose clock is set to what Redis said the time was. Every answer, and all that is kept, has
//! to be equal to the last digit.
//!
//! The server's own clock is made to step, so that leases run out, grace windows open and time
//! stands still without anybody waiting. Tokens go by the callers' floor here, above any clock:
//! Redis counts them in microseconds, of which the twin hears only the milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use soloist::clock::Clock;
use soloist::scheduler::job::{JobName, OnCrash};
use soloist::scheduler::lease::{
    AttemptDetail, Captured, Claim, ClaimAnswer, FencingToken, MeasuredOf, Observation, Origin,
    Outcome, Output, PeakMemory, Release, Renewal, Retention, RunId, Scope, Sighting, Usage,
};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::store::memory::MemoryStore;
use soloist::store::redis::RedisStore;
use soloist::store::{Answered, Caller, Store, StoreError};
use test_support::clock_shim::SteppingClock;
use test_support::redis::RedisServer;
use uuid::Uuid;

use crate::world::{caller, claim, fresh_store, impatient, info, job};

/// How many requests one seed sends.
const STEPS: u32 = 1_500;

/// Above any clock until the year 2112.
const FLOOR: FencingToken = FencingToken::new(1 << 52);

/// Steps of the clock are multiples of this: one back is waited out, two back open a grace
/// window, and no sum of them comes near the limit between the two, a minute.
const CLOCK_STEP_MS: i64 = 40_000;

/// What is expected of both stores.
const ANSWERS: &str = "a store that answers";

const JOBS: u64 = 6;
const REPLICAS: u64 = 3;

/// Requests that the two stores are asked about again are picked from the last so many.
const REMEMBERED: usize = 24;

/// How many kinds of answers there are to a claim, and which of them is the grace window.
const KINDS: usize = 9;
const GRACE_KIND: usize = 7;

#[derive(Debug, Default)]
struct TwinClock(AtomicI64);

impl Clock for TwinClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
    fn boot(&self) -> BootTime {
        BootTime::default()
    }
}

/// Whether the server's clock steps back too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    Forward,
    BothWays,
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let index = usize::try_from(self.below(from.len() as u64));
        from[index.expect("below a length")].clone()
    }

    fn pick_any<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| self.pick(from))
    }
}

/// The two stores, and what was learnt from them so far.
struct Pair {
    redis: RedisStore,
    twin: MemoryStore,
    clock: Arc<TwinClock>,
    random: Random,
    steps: Steps,
    callers: Vec<Caller>,
    began: Timestamp,
    now: Timestamp,
    claims: Vec<Claim>,
    held: Vec<Release>,
    sightings: Vec<Sighting>,
    answers: [u32; KINDS],
}

impl Pair {
    async fn new(server: &RedisServer, seed: u64, steps: Steps) -> Self {
        let redis = fresh_store(server).await;
        let clock = Arc::new(TwinClock::default());
        let twin = MemoryStore::new(clock.clone());
        let first = impatient();
        twin.observe(&first, &info(), Scope::Overdue)
            .await
            .expect(ANSWERS);
        twin.depart(&first).await.expect(ANSWERS);
        let began = redis.snapshot().await.expect(ANSWERS);
        for replica in began.answer.replicas {
            // The twin has never heard of who opened the namespace.
            let gone = Caller {
                replica: replica.replica,
                ..caller("")
            };
            redis.depart(&gone).await.expect(ANSWERS);
        }
        let caller = |n| Caller {
            token_floor: FLOOR,
            quarantine: Duration::from_secs(20),
            ..caller(&format!("replica-{n}"))
        };
        Self {
            redis,
            twin,
            clock,
            random: Random(seed),
            steps,
            callers: (0..REPLICAS).map(caller).collect(),
            began: began.now,
            now: began.now,
            claims: Vec::new(),
            held: Vec::new(),
            sightings: Vec::new(),
            answers: [0; KINDS],
        }
    }

    /// Tells the twin when Redis answered.
    fn at<T>(&mut self, answered: Result<Answered<T>, StoreError>) -> Answered<T> {
        let answered = answered.expect(ANSWERS);
        self.now = answered.now;
        self.clock
            .0
            .store(answered.now.as_millis(), Ordering::Relaxed);
        answered
    }

    async fn step(&mut self, clock: &SteppingClock, shift: &mut i64) {
        let mut caller = self.random.pick(&self.callers);
        match self.random.below(20) {
            0..7 => self.claim(&mut caller).await,
            7..11 => self.renew(&caller).await,
            11..14 => self.release(&caller).await,
            14..16 => self.observe(&caller).await,
            16 => self.register(&caller).await,
            17 => self.depart(&caller).await,
            18 => self.compare().await,
            _ => {
                let back = i64::from(self.steps == Steps::BothWays) * 2;
                let count = i64::try_from(self.random.below(4)).expect("below 4") - back;
                *shift = (*shift + count * CLOCK_STEP_MS).max(0);
                clock.set(*shift);
            }
        }
    }

    async fn claim(&mut self, caller: &mut Caller) {
        let count = 1 + self.random.below(4);
        let claims: Vec<Claim> = (0..count).map(|_| self.any_claim()).collect();
        let claims = of_different_jobs(claims, |claim| &claim.occurrence.job);
        if self.random.one_in(16) {
            caller.send_by = Some(self.about_now(2_000));
        }
        let answer = self.redis.claim(caller, &claims).await;
        let answer = self.at(answer);
        let expected = self.twin.claim(caller, &claims).await.expect(ANSWERS);
        assert_eq!(answer, expected, "{caller:?} {claims:#?}");
        for (claim, answer) in claims.into_iter().zip(answer.answer) {
            self.learn(&claim, &answer);
            self.claims.push(claim);
        }
        let surplus = self.claims.len().saturating_sub(REMEMBERED);
        self.claims.drain(..surplus);
    }

    fn learn(&mut self, claim: &Claim, answer: &ClaimAnswer) {
        let kind = match answer {
            ClaimAnswer::Granted(_) => 0,
            ClaimAnswer::Held(_) => 1,
            ClaimAnswer::Overlap(_) => 2,
            ClaimAnswer::Finished => 3,
            ClaimAnswer::Early { .. } => 4,
            ClaimAnswer::TooLate => 5,
            ClaimAnswer::Closed => 6,
            ClaimAnswer::Grace { .. } => GRACE_KIND,
            ClaimAnswer::RequestExpired => 8,
        };
        self.answers[kind] += 1;
        match answer {
            ClaimAnswer::Granted(grant) => {
                let release = crate::world::release(claim, grant, Outcome::Succeeded);
                self.held.push(release);
                let surplus = self.held.len().saturating_sub(REMEMBERED);
                self.held.drain(..surplus);
            }
            ClaimAnswer::Held(held) | ClaimAnswer::Overlap(held) => {
                self.sightings.push(held.sighting);
                let mut takeover = claim.clone();
                takeover.occurrence.scheduled_at = held.scheduled_at;
                takeover.watched = Some(held.sighting);
                self.claims.push(takeover);
            }
            _ => {}
        }
        let surplus = self.sightings.len().saturating_sub(REMEMBERED);
        self.sightings.drain(..surplus);
    }

    /// A new claim; or one that was sent before, as it was, or in somebody else's name.
    fn any_claim(&mut self) -> Claim {
        let mut claim = match self.random.pick_any(&self.claims) {
            Some(claim) if self.random.one_in(2) => claim,
            _ => self.new_claim(),
        };
        if self.random.one_in(2) {
            claim.run_id = self.run_id();
        }
        if self.random.one_in(4) {
            claim.watched = self.random.pick_any(&self.sightings);
        }
        claim
    }

    fn new_claim(&mut self) -> Claim {
        let name = format!("job-{}", self.random.below(JOBS));
        // Redis knows when its ledger began, and its twin doesn't.
        let due = self
            .about_now(6_000)
            .max(self.began + Duration::from_millis(1));
        let mut claim = claim(&name, due);
        let spread = self.random.pick(&[2_000, 90_000]);
        claim.start_by = due + Duration::from_millis(self.random.below(spread));
        claim.max_attempts = u32::try_from(1 + self.random.below(4)).expect("below 5");
        claim.ttl = Duration::from_millis(1 + self.random.below(60_000));
        claim.retention = self.retention();
        if self.random.one_in(4) {
            claim.origin = Origin::Manual;
        }
        if self.random.one_in(3) {
            claim.on_crash = OnCrash::Skip;
        }
        claim
    }

    /// Lines are trimmed by an id that goes by the clock, so after a step back they may go
    /// later than the twin's: age is tested where there is none.
    fn retention(&mut self) -> Retention {
        let age = match self.steps {
            Steps::Forward => Duration::from_millis(self.random.below(120_000)),
            Steps::BothWays => Duration::from_secs(30 * 86_400),
        };
        let limit = self.random.pick(&[0, 1, 3, 10, 1000]);
        Retention { limit, age }
    }

    async fn renew(&mut self, caller: &Caller) {
        let count = 1 + self.random.below(3);
        let releases: Vec<_> = (0..count).filter_map(|_| self.any_held()).collect();
        let releases = of_different_jobs(releases, |release| &release.occurrence.job);
        let renewals: Vec<Renewal> = releases
            .into_iter()
            .map(|release| Renewal {
                occurrence: release.occurrence,
                origin: release.origin,
                run_id: release.run_id,
                token: release.token,
                attempt: release.attempt,
                on_crash: release.on_crash,
                ttl: Duration::from_millis(1 + self.random.below(60_000)),
                last_deadline: self.about_now(60_000),
            })
            .collect();
        let renewals = of_different_jobs(renewals, |renewal| &renewal.occurrence.job);
        let answer = self.redis.renew(caller, &renewals).await;
        let answer = self.at(answer);
        let expected = self.twin.renew(caller, &renewals).await.expect(ANSWERS);
        assert_eq!(answer, expected, "{caller:?} {renewals:#?}");
    }

    async fn release(&mut self, caller: &Caller) {
        let count = 1 + self.random.below(2);
        let releases: Vec<_> = (0..count).filter_map(|_| self.any_held()).collect();
        let releases = of_different_jobs(releases, |release| &release.occurrence.job);
        let answer = self.redis.release(caller, &releases).await;
        let answer = self.at(answer);
        let expected = self.twin.release(caller, &releases).await.expect(ANSWERS);
        assert_eq!(answer, expected, "{caller:?} {releases:#?}");
    }

    /// Something that was granted; now and then with a detail that is not true.
    fn any_held(&mut self) -> Option<Release> {
        let mut release = self.random.pick_any(&self.held)?;
        match self.random.below(12) {
            0 => release.token = FencingToken::new(release.token.get() + self.random.below(3)),
            1 => release.run_id = self.run_id(),
            2 => release.occurrence.scheduled_at = self.about_now(5_000),
            3 => release.occurrence.job = job(&format!("job-{}", self.random.below(JOBS))),
            _ => {}
        }
        release.outcome = self.random.pick(&[
            Outcome::Succeeded,
            Outcome::Failed,
            Outcome::TimedOut,
            Outcome::Lost,
            Outcome::Cancelled,
            Outcome::HandedOver,
            Outcome::HandedOver,
        ]);
        release.detail = AttemptDetail {
            exit_code: Some(3).filter(|_| self.random.one_in(2)),
            signal: None,
            reason: Some("a \"word\"\n, a | and 日".to_owned()).filter(|_| self.random.one_in(2)),
            usage: self.usage(),
        };
        release.output = self.output();
        release.retention = self.retention();
        Some(release)
    }

    fn usage(&mut self) -> Option<Usage> {
        let cpu = Some(Duration::from_micros(self.random.next())).filter(|_| self.random.one_in(2));
        let of = self
            .random
            .pick(&[MeasuredOf::AllProcesses, MeasuredOf::LargestProcess]);
        let bytes = self.random.next();
        let peak_memory = Some(PeakMemory { bytes, of }).filter(|_| self.random.one_in(2));
        Some(Usage { cpu, peak_memory }).filter(|_| self.random.one_in(2))
    }

    fn output(&mut self) -> Output {
        let mut captured = || {
            let head: Vec<u8> = (0..self.random.below(4))
                .map(|_| self.random.next() as u8)
                .collect();
            let total = head.len() as u64;
            Captured {
                head,
                tail: Vec::new(),
                total,
            }
        };
        Output {
            stdout: captured(),
            stderr: captured(),
        }
    }

    async fn observe(&mut self, caller: &Caller) {
        let scope = self.random.pick(&[Scope::Overdue, Scope::All]);
        let answer = self.redis.observe(caller, &info(), scope).await;
        let answer = self.at(answer);
        let expected = self
            .twin
            .observe(caller, &info(), scope)
            .await
            .expect(ANSWERS);
        assert_eq!(answer, expected, "{caller:?} {scope:?}");
        self.see(&answer.answer);
    }

    fn see(&mut self, observation: &Observation) {
        let seen = observation.leases.iter().map(|lease| lease.held.sighting);
        self.sightings.extend(seen);
    }

    async fn register(&mut self, caller: &Caller) {
        let jobs: Vec<_> = (0..JOBS)
            .filter(|_| self.random.one_in(3))
            .map(|n| job(&format!("job-{n}")))
            .collect();
        let answer = self.redis.register(caller, &jobs).await;
        let answer = self.at(answer);
        let expected = self.twin.register(caller, &jobs).await.expect(ANSWERS);
        assert_eq!(answer, expected, "{jobs:?}");
    }

    async fn depart(&mut self, caller: &Caller) {
        self.redis.depart(caller).await.expect(ANSWERS);
        self.twin.depart(caller).await.expect(ANSWERS);
    }

    /// All that is kept.
    async fn compare(&mut self) {
        let snapshot = self.redis.snapshot().await;
        let snapshot = self.at(snapshot);
        assert_eq!(snapshot, self.twin.snapshot().await.expect(ANSWERS));
        let limit = self.random.pick(&[1000, 1000, 2, 0]);
        let one = job("job-1");
        let lines = self.redis.history(Some(&one), limit).await.expect(ANSWERS);
        assert_eq!(
            lines,
            self.twin.history(Some(&one), limit).await.expect(ANSWERS)
        );
        let lines = self.redis.history(None, 1000).await.expect(ANSWERS);
        assert_eq!(lines, self.twin.history(None, 1000).await.expect(ANSWERS));
        for release in &self.held {
            // An attempt has one end; with details that are not true it may come to two.
            if lines
                .iter()
                .filter(|line| line.run_id == release.run_id)
                .count()
                > 1
            {
                continue;
            }
            let (job, run_id) = (&release.occurrence.job, release.run_id);
            let output = self.redis.output(job, run_id).await.expect(ANSWERS);
            assert_eq!(output, self.twin.output(job, run_id).await.expect(ANSWERS));
        }
    }

    fn about_now(&mut self, spread_ms: u64) -> Timestamp {
        let offset = i64::try_from(self.random.below(spread_ms)).expect("a few minutes");
        let ahead = i64::try_from(spread_ms / 8).expect("a few minutes");
        Timestamp::from_millis(self.now.as_millis() - offset + ahead)
    }

    fn run_id(&mut self) -> RunId {
        RunId::new(Uuid::from_u64_pair(self.random.next(), self.random.next()))
    }
}

async fn run(seeds: [u64; 2], steps: Steps) {
    let mut answers = [0; KINDS];
    for seed in seeds {
        println!("seed {seed}");
        for (sum, count) in answers.iter_mut().zip(run_one(seed, steps).await) {
            *sum += count;
        }
    }
    println!("answers of each kind: {answers:?}");
    for (kind, &count) in answers.iter().enumerate() {
        // Only a step back of the clock opens a grace window here.
        let expected = kind != GRACE_KIND || steps == Steps::BothWays;
        assert_eq!(count > 0, expected, "kind {kind} of {answers:?}");
    }
}

async fn run_one(seed: u64, steps: Steps) -> [u32; KINDS] {
    let clock = SteppingClock::new();
    let server = RedisServer::options()
        .environment(clock.environment())
        .start();
    let mut pair = Pair::new(&server, seed, steps).await;
    let mut shift = 0;
    for _ in 0..STEPS {
        pair.step(&clock, &mut shift).await;
    }
    pair.compare().await;
    pair.answers
}

#[tokio::test]
async fn scripts_say_what_the_rules_say_while_the_clock_goes_forward() {
    run([1, 2], Steps::Forward).await;
}

#[tokio::test]
async fn scripts_say_what_the_rules_say_while_the_clock_steps_both_ways() {
    run([3, 4], Steps::BothWays).await;
}

/// A batch as stores take it: the first of each job.
fn of_different_jobs<T>(mut items: Vec<T>, job: impl Fn(&T) -> &JobName) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    items.retain(|item| seen.insert(job(item).clone()));
    items
}
