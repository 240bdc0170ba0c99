//! A Redis whose clock is set while three replicas work on it: under a lease that is renewed, and
//! again at the moment at which a holder dies.

use std::time::Duration;

use test_support::clock_shim::SteppingClock;
use test_support::machine::while_it_runs;
use test_support::probe::Run;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON, instant_ns, now_ns, sleep_until_ns};
use crate::together;

const TTL: Duration = Duration::from_secs(3);

/// `long` is held for longer than all of this takes; `tick` has a grant a second, so that the
/// ledger knows what time it was.
const TABLE: &str = r#"
[defaults]
lease_ttl = "3s"

[jobs.long]
schedule = "* * * * * *"
command = [PROBE, "300000", "alone"]

[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1", "alone"]
"#;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// By how much the clock is set, each time; without a step first.
const STEPS: [i64; 11] = [
    0, 500, -500, 5_000, -5_000, 30_000, -30_000, 150_000, -150_000, DAY_MS, -DAY_MS,
];

/// How many fleets work at once.
const AT_ONCE: usize = 3;

/// What a watcher waits for beyond a lease, and what a busy machine takes for itself.
const MARGIN: Duration = Duration::from_secs(1);

/// How long nothing is granted after a step back that is not waited out: a lease and the time-out
/// of a call.
const GRACE: Duration = Duration::from_millis(3_300);

/// After this long, whoever wanted the lease of a live holder would have it.
const HARM: Duration = Duration::from_secs(7);

/// What came of a step.
struct Outcome {
    by: i64,
    /// From the holder's death, and the second step, to the start of the next attempt.
    taken_over_after: Duration,
    /// By the server's clock, of what fell due after the first step until the second; none where
    /// all instants of that time had run before.
    latest_start: Option<Duration>,
}

#[test]
fn a_clock_of_the_server_that_steps_costs_no_live_lease_and_freezes_no_dead_one() {
    let _machine = together();
    let mut outcomes = Vec::new();
    for steps in STEPS.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let fleets = steps
                .iter()
                .map(|by| scope.spawn(|| while_it_runs(|| strike(*by))));
            let fleets: Vec<_> = fleets.collect();
            let ended = fleets.into_iter().map(|fleet| fleet.join());
            outcomes.extend(ended.map(|outcome| outcome.expect("a fleet that held")));
        });
    }
    let undisturbed = outcomes[0].taken_over_after;
    eprintln!("leases of {TTL:?}; step | taken over after, later by | latest start");
    for one in &outcomes {
        let later = one.taken_over_after.saturating_sub(undisturbed);
        eprintln!(
            "{:>10} ms | {:.2?}, {later:.2?} | {:.2?}",
            one.by, one.taken_over_after, one.latest_start
        );
    }
}

/// What has to come in time did.
fn in_time(one: &Outcome) -> Result<(), String> {
    let held_up = match one.by {
        0 => Duration::ZERO,
        by if by <= -MINUTE_MS => GRACE,
        _ => TTL,
    };
    let most = TTL + held_up + MARGIN;
    let late = one.latest_start.unwrap_or_default();
    match one.taken_over_after <= most && late <= TTL / 6 + MARGIN {
        true => Ok(()),
        false => Err(format!(
            "{} ms: taken over after {:?}, {late:?} late",
            one.by, one.taken_over_after
        )),
    }
}

fn of<'r>(runs: &'r [Run], job: &str) -> Vec<&'r Run> {
    runs.iter().filter(|run| run.job == job).collect()
}

/// Sets the clock twice: while the holder lives, and when it is killed.
fn strike(by: i64) -> Result<Outcome, String> {
    let clock = SteppingClock::new();
    let server = RedisServer::options().environment(clock.environment());
    let redis = server.start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let mut replicas = Vec::from(fleet.start_ready(["a", "b", "c"]));
    let held = fleet.wait_for_runs(SOON, |runs| {
        let ticks = of(runs, "tick").len() >= 3;
        of(runs, "long")
            .first()
            .filter(|_| ticks)
            .map(|run| (*run).clone())
    });

    clock.set(by);
    let stepped = now_ns();
    if by != 0 {
        for one in &replicas {
            one.wait_for_line(&["the store's clock jumped"]);
        }
    }
    sleep_until_ns(stepped + HARM.as_nanos() as i128);
    let runs = fleet.runs();
    let long = of(&runs, "long");
    assert!(runs.iter().all(|run| !run.beside), "{by} ms: {runs:#?}");
    let risen = long.windows(2).all(|pair| pair[0].token < pair[1].token);
    assert!(risen, "{by} ms: {long:#?}");
    if long.len() != 1 || long[0].ended_ns.is_some() {
        return Err(format!("{by} ms: a live lease was lost: {long:#?}"));
    }
    let latest_start = latest_start(&runs, stepped, by);

    let holder = replicas.iter().position(|one| one.name == held.replica);
    replicas[holder.expect("it is one of them")].kill9();
    clock.set(2 * by);
    let killed = now_ns();
    let next = fleet.wait_for_runs(SOON * 6, |runs| {
        let next = of(runs, "long").into_iter().find(|run| run.attempt == 2)?;
        Some(next.clone())
    });
    assert!(next.token > held.token, "{by} ms: the token must rise");
    let took = next.started_ns - killed;
    let runs = fleet.runs();
    assert!(runs.iter().all(|run| !run.beside), "{by} ms: {runs:#?}");
    let outcome = Outcome {
        by,
        taken_over_after: Duration::from_nanos(u64::try_from(took).unwrap_or(0)),
        latest_start,
    };
    in_time(&outcome)?;
    Ok(outcome)
}

/// How late what fell due since a step started, by the clock that was set. Nothing starts early by
/// it.
fn latest_start(runs: &[Run], stepped: i128, by: i64) -> Option<Duration> {
    let ahead = i128::from(by) * 1_000_000;
    let since = runs.iter().filter(|run| run.started_ns > stepped);
    let due = since.filter(|run| instant_ns(&run.scheduled_at) > stepped + ahead);
    let late = due.map(|run| run.started_ns + ahead - instant_ns(&run.scheduled_at));
    let late: Vec<i128> = late.collect();
    assert!(late.iter().all(|ns| *ns >= 0), "{by} ms: early: {late:?}");
    let latest = late.into_iter().max()?;
    Some(Duration::from_nanos(u64::try_from(latest).unwrap_or(0)))
}
