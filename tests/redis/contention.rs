//! Several stores of one server at work on the same few jobs at once, by random operations: what
//! they were told, and what is kept, have to fit together afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Outcome, ReleaseAnswer, RunId,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::redis::RedisStore;
use soloist::store::{AttemptRecord, Caller, Standing, Store};
use test_support::redis::{RedisServer, fresh_namespace};
use uuid::Uuid;

use crate::world::{caller, claim, persist, printed, release, renewal, store_in};

const STORES: u64 = 4;
/// Workers of each store, over one connection.
const WORKERS: u64 = 3;
/// Batches that each worker claims.
const BATCHES: u32 = 60;
const JOBS: u64 = 3;
/// Occurrences are so far apart: all workers want the same one at a time.
const PERIOD_MS: i64 = 5;
const MANY_LINES: usize = 100_000;

/// A grant as its receiver saw it.
#[derive(Clone, Debug)]
struct Won {
    claim: Claim,
    grant: Grant,
    /// Numbers of a count that all share: who heard before another asked was first.
    asked: u64,
    heard: u64,
}

impl Won {
    /// Which attempt of which occurrence.
    fn which(&self) -> (Timestamp, u32) {
        (self.claim.occurrence.scheduled_at, self.grant.attempt)
    }
}

/// What all workers were told.
#[derive(Debug, Default)]
struct Heard {
    count: AtomicU64,
    won: Mutex<Vec<Won>>,
    released: Mutex<Vec<(RunId, Outcome)>>,
}

impl Heard {
    fn tick(&self) -> u64 {
        self.count.fetch_add(1, Ordering::SeqCst)
    }
}

struct Worker {
    store: Arc<RedisStore>,
    caller: Caller,
    heard: Arc<Heard>,
    random: u64,
    calls: u64,
}

impl Worker {
    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// The occurrence that is due now, of some jobs.
    fn draw(&mut self) -> Vec<Claim> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = i64::try_from(since.expect("after 1970").as_millis()).expect("before 2262");
        let due = Timestamp::from_millis(now / PERIOD_MS * PERIOD_MS);
        let mut claims: Vec<Claim> = (0..JOBS).map(|n| claim(&format!("job-{n}"), due)).collect();
        let left_out = self.below(2 * JOBS);
        if left_out < JOBS {
            claims.remove(usize::try_from(left_out).expect("a small number"));
        }
        for claim in &mut claims {
            claim.max_attempts = u32::MAX;
            claim.retention.limit = u32::MAX;
        }
        claims
    }

    async fn ask(&mut self, claims: &[Claim]) -> Vec<ClaimAnswer> {
        self.calls += 1;
        let asked = self.heard.tick();
        let asking = persist(|| self.store.claim(&self.caller, claims));
        let answers = asking.await.answer;
        let heard = self.heard.tick();
        for (claim, answer) in claims.iter().zip(&answers) {
            if let ClaimAnswer::Granted(grant) = answer {
                let (claim, grant) = (claim.clone(), *grant);
                let won = Won {
                    claim,
                    grant,
                    asked,
                    heard,
                };
                self.heard.won.lock().expect("no panic").push(won);
            }
        }
        answers
    }

    async fn work(mut self) -> u64 {
        for _ in 0..BATCHES {
            let claims = self.draw();
            let answers = self.ask(&claims).await;
            for (claim, answer) in claims.iter().zip(answers) {
                match answer {
                    ClaimAnswer::Granted(grant) => self.run(claim, &grant).await,
                    ClaimAnswer::Held(held) | ClaimAnswer::Overlap(held) if self.below(2) == 0 => {
                        let mut takeover = claim.clone();
                        takeover.occurrence.scheduled_at = held.scheduled_at;
                        takeover.run_id = RunId::new(Uuid::new_v4());
                        takeover.watched = Some(held.sighting);
                        let answer = self.ask(std::slice::from_ref(&takeover)).await.remove(0);
                        if let ClaimAnswer::Granted(grant) = answer {
                            self.run(&takeover, &grant).await;
                        }
                    }
                    _ => {}
                }
            }
        }
        self.calls
    }

    /// Renews, ends, hands over or abandons what was granted.
    async fn run(&mut self, claim: &Claim, grant: &Grant) {
        if self.below(2) == 0 {
            self.calls += 1;
            let renewals = [renewal(claim, grant)];
            persist(|| self.store.renew(&self.caller, &renewals)).await;
        }
        let outcome = match self.below(6) {
            0 => return,
            1 | 2 => Outcome::HandedOver,
            _ => Outcome::Succeeded,
        };
        let mut release = release(claim, grant, outcome);
        release.output = printed(b"x");
        self.calls += 1;
        let releases = [release];
        let released = persist(|| self.store.release(&self.caller, &releases)).await;
        if released.answer == [ReleaseAnswer::Released] {
            let mut all = self.heard.released.lock().expect("no panic");
            all.push((claim.run_id, outcome));
        }
    }
}

/// How often two steps met over a record: each step reads once, and each that is written writes
/// the group and the records. What a busy machine had sent again
/// is among them.
fn conflicts(server: &RedisServer, calls: u64) -> u64 {
    let stats = server.commandstats();
    let of = |name: &str| stats.get(name).map_or(0, |stat| stat.calls);
    let (scripts, written) = (of("evalsha") + of("eval"), of("hset") / 2);
    scripts.saturating_sub(calls + written)
}

fn by_job(won: &[Won]) -> BTreeMap<JobName, Vec<&Won>> {
    let mut jobs: BTreeMap<JobName, Vec<&Won>> = BTreeMap::new();
    for one in won {
        let job = one.claim.occurrence.job.clone();
        jobs.entry(job).or_default().push(one);
    }
    for grants in jobs.values_mut() {
        grants.sort_by_key(|one| one.grant.token);
    }
    jobs
}

/// Grants of a job, in the order of their tokens.
fn check_grants(grants: &[&Won]) {
    for (a, b) in grants.iter().zip(&grants[1..]) {
        assert!(a.grant.token < b.grant.token, "{a:?} {b:?}");
        assert!(
            a.which() < b.which(),
            "granted twice, or tokens fell: {a:?} {b:?}"
        );
        let next_attempt = a.claim.occurrence == b.claim.occurrence;
        let attempt = if next_attempt { a.grant.attempt + 1 } else { 1 };
        assert_eq!(b.grant.attempt, attempt, "{a:?} {b:?}");
    }
    for (n, a) in grants.iter().enumerate() {
        let wrong = grants[n..].iter().find(|b| b.heard < a.asked);
        assert!(wrong.is_none(), "a token fell: {wrong:?} {a:?}");
    }
}

/// Each grant that is over has its one line, and each end that was acknowledged is in it.
fn check_lines(
    lines: &[AttemptRecord],
    won: &[Won],
    released: &[(RunId, Outcome)],
    running: &BTreeSet<FencingToken>,
) {
    let mut outcomes: BTreeMap<RunId, Vec<Outcome>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.attempt > 0) {
        outcomes.entry(line.run_id).or_default().push(line.outcome);
    }
    for one in won {
        let count = outcomes.get(&one.claim.run_id).map_or(0, Vec::len);
        let expected = usize::from(!running.contains(&one.grant.token));
        assert_eq!(count, expected, "{one:?}");
    }
    for (run_id, outcome) in released {
        assert_eq!(outcomes.get(run_id), Some(&vec![*outcome]), "{run_id}");
    }
    let granted: BTreeSet<RunId> = won.iter().map(|one| one.claim.run_id).collect();
    assert!(outcomes.keys().all(|run_id| granted.contains(run_id)));
}

async fn running(store: &RedisStore) -> BTreeSet<FencingToken> {
    let snapshot = persist(|| store.snapshot()).await;
    let newest = snapshot.answer.jobs.into_iter();
    let newest = newest.filter_map(|state| state.last().cloned());
    newest
        .filter(|last| matches!(last.standing, Standing::Running { .. }))
        .map(|last| last.token)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_steps_that_meet_one_counts_and_nothing_is_lost_or_doubled() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let heard = Arc::new(Heard::default());
    let first = store_in(&server, &namespace).await;
    server.command(&["CONFIG", "RESETSTAT"]);
    let mut workers = Vec::new();
    for number in 0..STORES {
        let store = RedisStore::open(&server.url(), &namespace).expect("a good URL");
        let store = Arc::new(store);
        for worker in 0..WORKERS {
            let worker = Worker {
                store: Arc::clone(&store),
                caller: caller(&format!("store-{number}-{worker}")),
                heard: Arc::clone(&heard),
                random: number * WORKERS + worker,
                calls: 0,
            };
            workers.push(tokio::spawn(worker.work()));
        }
    }
    let mut calls = 0;
    for worker in workers {
        calls += worker.await.expect("no worker panics");
    }
    let conflicts = conflicts(&server, calls);

    let won = heard.won.lock().expect("no panic").clone();
    let released = heard.released.lock().expect("no panic").clone();
    println!(
        "{calls} calls, {} grants, {} ends, {conflicts} times somebody was faster",
        won.len(),
        released.len()
    );
    assert!(conflicts > 20 && won.len() > 30, "nothing was contended");
    for grants in by_job(&won).values() {
        check_grants(grants);
    }
    let lines = persist(|| first.history(None, MANY_LINES)).await;
    check_lines(&lines, &won, &released, &running(&first).await);
    for (run_id, _) in released.iter().rev().take(20) {
        let line = lines.iter().find(|line| line.run_id == *run_id).unwrap();
        let output = first.output(&line.job, *run_id).await.unwrap();
        assert_eq!(output, Some(printed(b"x")), "{line:?}");
    }
}
