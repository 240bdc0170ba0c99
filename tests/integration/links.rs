//! Replicas whose links to the store die under them.

use std::time::{Duration, Instant};

use test_support::probe::Run;
use test_support::redis::RedisServer;
use test_support::relay::Relay;

use crate::fleet::{Fleet, Replica, SOON};
use crate::together;

const TABLE: &str = r#"
[jobs.long]
schedule = "* * * * * *"
command = [PROBE, "8000"]
lease_ttl = "5s"

[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1"]
lease_ttl = "5s"
"#;

/// From the death of one connection to that of the next, of each replica. A renewal goes out
/// more often.
const BETWEEN_DEATHS: Duration = Duration::from_millis(1500);

#[test]
fn leases_outlive_links_that_die_again_and_again() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let relays = ["a", "b", "c"].map(|_| Relay::to(redis.port()));
    let mut replicas: Vec<Replica> = relays
        .iter()
        .zip(["a", "b", "c"])
        .map(|(relay, name)| fleet.start_on(&relay.url(), name))
        .collect();
    replicas.iter().for_each(Replica::wait_until_ready);

    let began = Instant::now();
    let mut deaths = 0;
    let of = |job: &str| -> Vec<_> {
        let runs = fleet.runs().into_iter();
        runs.filter(|run| run.job == job).collect()
    };
    while of("long")
        .iter()
        .filter(|run| run.ended_ns.is_some())
        .count()
        < 2
    {
        assert!(began.elapsed() < 2 * SOON, "{:#?}", of("long"));
        for relay in &relays {
            // Whatever is asked next about that job, renewals among it, is never answered.
            relay.stall_connection_at_request("long");
            deaths += 1;
        }
        std::thread::sleep(BETWEEN_DEATHS);
    }
    let took = began.elapsed();
    for replica in &mut replicas {
        replica.drain();
    }
    let (long, tick) = (of("long"), of("tick"));
    let ended: Vec<_> = long.iter().filter(|run| run.ended_ns.is_some()).collect();
    eprintln!(
        "up to {deaths} dead connections in {took:.1?}: {} attempts of 8 s ended by themselves, {} runs of each second",
        ended.len(),
        tick.len()
    );
    assert_each_ran_once([&long, &tick]);
}

/// Nothing was begun anew, or twice, but for what the drain cut short.
fn assert_each_ran_once(jobs: [&[Run]; 2]) {
    let runs = || jobs.into_iter().flatten();
    let cut: Vec<_> = runs().filter(|run| run.ended_ns.is_none()).collect();
    assert!(cut.len() <= 1, "{cut:#?}");
    let again: Vec<_> = runs().filter(|run| run.attempt > 1).collect();
    assert!(again.len() <= cut.len(), "{again:#?}");
    for pair in jobs.iter().flat_map(|runs| runs.windows(2)) {
        assert!(
            pair[0].scheduled_at < pair[1].scheduled_at,
            "twice: {pair:?}"
        );
    }
}
