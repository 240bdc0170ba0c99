//! Named leases beside bare Redis, in one run on one server: how long a hand-over takes in round
//! trips, and how many are acquired and released beside how many scripts that server runs.
//!
//! Must never: print a figure without what it is to be held against.

use std::process::Command;
use std::time::{Duration, Instant};

use soloist::Leases;
use soloist::leases::Acquisition;
use test_support::redis::RedisServer;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How often a lease is handed over, and the server is asked.
const TIMES: usize = 10_000;

/// How many ask at once where it is about how many.
const AT_ONCE: usize = 50;

/// For how long.
const LASTS: Duration = Duration::from_secs(5);

/// What a lock that can do no more needs of a server: one script.
const PLAIN: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', '15000')";

/// Compares, and prints the ratios.
pub(crate) fn compare() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bare = runtime.block_on(round_trips(&server));
    let handed = runtime.block_on(hand_overs(&server));
    println!("named leases on one redis-server, {TIMES} times each:");
    println!("{:30} {:>9} {:>9}", "", "p50 µs", "p99 µs");
    tell("a bare round trip (PING)", &bare);
    tell("a hand-over to who waits", &handed);
    println!(
        "{:30} {:>9.1} {:>9.1}",
        "ratio",
        ratio(&handed, &bare, 50),
        ratio(&handed, &bare, 99)
    );
    let own = runtime.block_on(pairs(&server, AT_ONCE));
    let alone = runtime.block_on(pairs(&server, 1));
    let scripts = evalsha(&server);
    println!("acquired and released a second, {AT_ONCE} at once in one process: {own:.0}");
    println!("                                one after the other: {alone:.0}");
    println!("EVALSHA a second, redis-benchmark -c {AT_ONCE}: {scripts:.0}");
    println!("ratio: {:.2} and {:.3}", own / scripts, alone / scripts);
}

fn tell(what: &str, took: &[Duration]) {
    println!(
        "{what:30} {:>9.0} {:>9.0}",
        micros(at(took, 50)),
        micros(at(took, 99))
    );
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    let index = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(index).copied().unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn ratio(one: &[Duration], other: &[Duration], percent: usize) -> f64 {
    micros(at(one, percent)) / micros(at(other, percent))
}

/// By the same crate as the store's.
async fn round_trips(server: &RedisServer) -> Vec<Duration> {
    let client = redis::Client::open(server.url()).expect("a URL");
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.expect("a server");
    let mut took = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let asked = Instant::now();
        let answer: String = redis::cmd("PING")
            .query_async(&mut connection)
            .await
            .expect("PONG");
        took.push(asked.elapsed());
        assert_eq!(answer, "PONG");
    }
    took.sort();
    took
}

async fn client(server: &RedisServer) -> Leases {
    let client = Leases::open(&server.url(), "bench").await;
    client.expect("a server that can be used")
}

/// Two clients that wait for each other: from just before one gives it back to when the other has
/// it.
async fn hand_overs(server: &RedisServer) -> Vec<Duration> {
    let (told, mut given_back) = mpsc::unbounded_channel();
    let mut all = JoinSet::new();
    for _ in 0..2 {
        let asked = client(server).await.lease("handed");
        all.spawn(take_turns(asked, told.clone()));
    }
    drop(told);
    all.join_all().await;
    let mut instants = Vec::new();
    while let Some(instant) = given_back.recv().await {
        instants.push(instant);
    }
    // Each was given back after it was had, and had after it was given back by the one before.
    instants.sort_by_key(|(had, _)| *had);
    let mut took: Vec<Duration> = instants
        .windows(2)
        .map(|pair| pair[1].0.saturating_duration_since(pair[0].1))
        .collect();
    took.sort();
    took
}

async fn take_turns(asked: Acquisition, told: mpsc::UnboundedSender<(Instant, Instant)>) {
    for _ in 0..TIMES / 2 {
        let lease = asked.clone().acquire().await.expect("its turn");
        let had = Instant::now();
        // Time for the other one to stand in line.
        tokio::time::sleep(Duration::from_millis(1)).await;
        told.send((had, Instant::now())).expect("somebody counts");
        drop(lease);
    }
}

/// How many are acquired and released a second, each of so many tasks with a name of its own.
async fn pairs(server: &RedisServer, at_once: usize) -> f64 {
    let client = client(server).await;
    let begun = Instant::now();
    let mut all = JoinSet::new();
    for number in 0..at_once {
        let asked = client.lease(&format!("own-{number}"));
        all.spawn(async move {
            let mut count = 0_u32;
            while begun.elapsed() < LASTS {
                let lease = asked.clone().acquire().await.expect("nobody else wants it");
                lease.release().await;
                count += 1;
            }
            count
        });
    }
    let count: u32 = all.join_all().await.into_iter().sum();
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// How many scripts the server runs a second for redis-benchmark.
fn evalsha(server: &RedisServer) -> f64 {
    let digest = server.command(&["SCRIPT", "LOAD", PLAIN]);
    let port = server.port().to_string();
    let at_once = AT_ONCE.to_string();
    let output = Command::new("redis-benchmark")
        .args([
            "-p", &port, "-c", &at_once, "-n", "200000", "-r", "100000", "--csv",
        ])
        .args([
            "EVALSHA",
            digest.trim(),
            "1",
            "plain:__rand_int__",
            "holder",
        ])
        .output()
        .expect("redis-benchmark, which comes with redis-server");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    let field = last
        .rsplit("\",\"")
        .nth(6)
        .or_else(|| last.split("\",\"").nth(1));
    let digits = field.unwrap_or_default().trim_matches('"');
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no figure in {text}"))
}
