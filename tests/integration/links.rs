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
command = [PROBE, "12000"]
lease_ttl = "8s"

[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1"]
lease_ttl = "8s"
"#;

/// From the death of one connection to when the next may die, of each replica. Renewals are sent
/// more often, and one of two finds a link: a job is told to stop after three that failed.
const BETWEEN_DEATHS: Duration = Duration::from_millis(2500);

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
    let mut deaths = 0_usize;
    let mut links = relays.each_ref().map(Link::of);
    let of = |job: &str| -> Vec<_> {
        let runs = fleet.runs().into_iter();
        runs.filter(|run| run.job == job).collect()
    };
    let ended = |runs: &[Run]| runs.iter().filter(|run| run.ended_ns.is_some()).count();
    while ended(&of("long")) < 2 {
        assert!(began.elapsed() < 3 * SOON, "{:#?}", of("long"));
        deaths += links
            .iter_mut()
            .map(|link| usize::from(link.died()))
            .sum::<usize>();
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = began.elapsed();
    for replica in &mut replicas {
        replica.drain();
    }
    let (long, tick) = (of("long"), of("tick"));
    eprintln!(
        "{deaths} dead connections in {took:.1?}: {} attempts of 12 s ended by themselves, {} runs of each second",
        ended(&long),
        tick.len()
    );
    assert!(deaths >= 9, "{deaths} deaths are few");
    assert_each_ran_once([&long, &tick]);
}

/// A link that dies again and again.
struct Link<'a> {
    relay: &'a Relay,
    harmed: u64,
    /// When the next death may come, where none is being waited for.
    next: Option<Instant>,
}

impl<'a> Link<'a> {
    fn of(relay: &'a Relay) -> Self {
        let (harmed, next) = (relay.harmed(), Some(Instant::now()));
        Self {
            relay,
            harmed,
            next,
        }
    }

    /// Whether the death that was waited for has come. The next is brought about in its time.
    fn died(&mut self) -> bool {
        match self.next {
            Some(at) if at <= Instant::now() => {
                // Whatever is asked next about that job, renewals among it, is never answered.
                self.relay.stall_connection_at_request("long");
                self.next = None;
                false
            }
            None if self.relay.harmed() > self.harmed => {
                self.harmed = self.relay.harmed();
                self.next = Some(Instant::now() + BETWEEN_DEATHS);
                true
            }
            _ => false,
        }
    }
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
