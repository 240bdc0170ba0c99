//! What happens to replicas, and what their pages say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use test_support::fleet::{Fleet, SOON};
use test_support::redis::RedisServer;

use crate::page::Page;
use crate::promtool;
use crate::replica::Replica;

pub(crate) const ALL: &[crate::Law] = &[
    ("the_figures_of_a_fleet_are_those_of_its_ledger", || {
        _ = ledger()
    }),
    ("a_takeover_is_counted_with_how_long_it_took", || {
        _ = takeover()
    }),
    (
        "an_outage_of_the_store_shows_in_calls_renewals_and_leases",
        || _ = outage(),
    ),
    ("a_stretch_of_time_counts_what_was_due_in_it", || {
        _ = downtime()
    }),
    ("a_reload_takes_series_away_and_brings_others", || {
        _ = reload()
    }),
];

/// The names of the samples that a scenario moved.
pub(crate) type Moved = BTreeSet<String>;

/// Runs a scenario once, whoever asks for what it moved.
macro_rules! once {
    ($name:ident, $scenario:ident) => {
        pub(crate) fn $name() -> &'static Moved {
            static MOVED: OnceLock<Moved> = OnceLock::new();
            MOVED.get_or_init($scenario)
        }
    };
}

once!(ledger, busy_fleet);
once!(takeover, killed_holder);
once!(outage, killed_store);
once!(reload, other_table);
once!(downtime, nobody_there);

const BUSY: &str = r#"
[scheduler]
shutdown_grace = "1s"
lease_ttl = "2s"

[jobs.ok]
schedule = "* * * * * *"
shell = "true"

[jobs.fails]
schedule = "*/2 * * * * *"
shell = "exit 3"
retry = { max = 1, backoff = "100ms" }

[jobs.overlaps]
schedule = "* * * * * *"
shell = "sleep 1.6"

[jobs.hangs]
schedule = "*/3 * * * * *"
shell = "sleep 60"
timeout = "500ms"

[jobs.nowhere]
schedule = "* * * * * *"
shell = "true"
run_on = { disk = "fast" }
starting_deadline = "1s"

[jobs.paused]
schedule = "* * * * * *"
shell = "true"

[jobs.after-ok]
after = ["ok"]
shell = "true"

[jobs.after-fails]
after = ["fails"]
shell = "true"

[jobs.shards]
schedule = "*/2 * * * * *"
shell = "true"
shards = 2

[jobs.cut-short]
schedule = "@manual"
shell = "sleep 60"
"#;

fn busy_fleet() -> Moved {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), BUSY);
    let mut replicas = ["a", "b"].map(|name| Replica::start_ready(&fleet, &redis.url(), name));
    let before = replicas.each_mut().map(Replica::page);
    before
        .iter()
        .for_each(|page| promtool::is_clean(&page.text));
    ordered(&fleet, &["pause", "paused"]);
    ordered(&fleet, &["trigger", "cut-short"]);
    let wanted = [
        ("ok", "succeeded"),
        ("fails", "failed"),
        ("overlaps", "skipped"),
        ("hangs", "timed_out"),
        ("nowhere", "skipped"),
        ("after-ok", "succeeded"),
        ("after-fails", "skipped"),
        ("shards", "succeeded"),
    ];
    wait_for_ends(&mut replicas, &wanted);
    let paused = replicas.each_mut().map(|one| {
        let wanted = |page: &Page| page.value("soloist_job_paused{job=\"paused\"}") == 1.0;
        one.wait_for("paused", wanted)
    });
    ordered(&fleet, &["resume", "paused"]);
    wait_for_ends(&mut replicas, &[("paused", "succeeded")]);
    let mut moved = Moved::new();
    let last = replicas.each_mut().map(|one| {
        let openmetrics = one.openmetrics();
        promtool::is_openmetrics(&openmetrics, &scratch(&fleet, &one.name));
        one.drain()
    });
    for (before, after) in before.iter().zip(&last) {
        promtool::is_clean(&after.text);
        moved.extend(after.moved_since(before));
    }
    for (page, last) in paused.iter().zip(&last) {
        moved.extend(last.moved_since(page));
    }
    compare(&fleet, &last);
    judge(&last);
    moved
}

/// Waits until occurrences have ended as wanted, two of each, on whichever replica.
fn wait_for_ends(replicas: &mut [Replica; 2], wanted: &[(&str, &str)]) {
    let end = Instant::now() + SOON;
    loop {
        let pages = replicas.each_mut().map(Replica::page);
        let seen = |(job, outcome): &(&str, &str)| {
            let ended = pages.iter().map(|page| page.ended(job, outcome));
            ended.sum::<f64>() >= 2.0
        };
        if wanted.iter().all(seen) {
            return;
        }
        assert!(Instant::now() < end, "{wanted:?}: {}", pages[0].text);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What else the last pages of the busy fleet have to say.
fn judge(last: &[Page]) {
    let total = |series: &str| last.iter().map(|page| page.value(series)).sum::<f64>();
    assert_eq!(total("soloist_leases_held"), 0.0);
    let handed_over = "soloist_attempts_total{job=\"cut-short\",outcome=\"handed_over\"}";
    assert!(total(handed_over) >= 1.0, "{}", last[0].text);
    let placement = "soloist_not_started_total{outcome=\"skipped\",reason=\"placement\"}";
    let nowhere = last.iter().map(|page| page.ended("nowhere", "skipped"));
    assert_eq!(total(placement), nowhere.sum::<f64>());
    assert!(total("soloist_start_latency_seconds_count") > 5.0);
    let quick = total("soloist_start_latency_seconds_bucket{le=\"2.5\"}");
    assert!(quick > 5.0, "{}", last[0].text);
    let took = total("soloist_attempt_duration_seconds_sum{job=\"overlaps\"}");
    let times = total("soloist_attempt_duration_seconds_count{job=\"overlaps\"}");
    // The drain at the end cuts one short at most.
    assert!(
        took >= 1.5 * (times - 1.0) && times >= 3.0,
        "{took} s for {times}"
    );
}

fn scratch(fleet: &Fleet, name: &str) -> std::path::PathBuf {
    let dir = fleet.dir().join(name);
    std::fs::create_dir(&dir).expect("a directory");
    dir
}

fn ordered(fleet: &Fleet, order: &[&str]) {
    let (code, _, stderr) = fleet.output(order);
    assert_eq!(code, Some(0), "{order:?}: {stderr}");
}

/// The pages of all replicas together say of each job's ends what the ledger says.
fn compare(fleet: &Fleet, pages: &[Page]) {
    type Ends = BTreeMap<(String, String), f64>;
    let (mut ends, mut attempts) = (Ends::new(), Ends::new());
    let history = fleet.json(&["history", "-n", "10000", "--json"]);
    let lines = history.as_array().expect("lines").iter();
    // What a command wrote, the end of a pause, is counted by nobody.
    for line in lines.filter(|line| line["replica"] == "a" || line["replica"] == "b") {
        let text = |key: &str| line[key].as_str().expect("a text").to_owned();
        let of = (text("job"), text("outcome"));
        if line["attempt"] != 0 {
            *attempts.entry(of.clone()).or_default() += 1.0;
        }
        if line["next_attempt_at"].is_null() {
            let number = line["occurrences"].as_f64().unwrap_or(1.0);
            *ends.entry(of).or_default() += number;
        }
    }
    let counted = |family: &str| {
        let mut counted = Ends::new();
        for (labels, value) in pages.iter().flat_map(|page| page.family(family)) {
            let mut quoted = labels.split('"').skip(1).step_by(2);
            let mut next = || quoted.next().expect("a label").to_owned();
            *counted.entry((next(), next())).or_default() += value;
        }
        counted.retain(|_, number| *number > 0.0);
        counted
    };
    assert_eq!(counted("soloist_occurrences_total"), ends);
    assert_eq!(counted("soloist_attempts_total"), attempts);
}

const EACH_SECOND: &str = "[jobs.due]\nschedule = \"* * * * * *\"\nshell = \"true\"\n";

fn nobody_there() -> Moved {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), EACH_SECOND);
    let mut a = Replica::start_ready(&fleet, &redis.url(), "a");
    let done = a.wait_for("a success", |page| page.ended("due", "succeeded") >= 1.0);
    let mut pages = vec![a.drain()];
    // Nothing else than time may pass.
    std::thread::sleep(Duration::from_millis(3200));
    let mut b = Replica::start_ready(&fleet, &redis.url(), "b");
    let missed = b.wait_for("what was missed", |page| page.ended("due", "missed") >= 2.0);
    let at = "soloist_job_last_missed_timestamp_seconds{job=\"due\"}";
    assert!(missed.get(at).is_some(), "{}", missed.text);
    assert_eq!(done.get(at), None);
    promtool::is_clean(&missed.text);
    pages.push(b.drain());
    compare(&fleet, &pages);
    missed.moved_since(&done)
}

const LONG: &str = r#"
[scheduler]
lease_ttl = "2s"
shutdown_grace = "0s"

[jobs.long]
schedule = "@manual"
shell = "sleep 60"
"#;

fn killed_holder() -> Moved {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), LONG);
    let mut a = Replica::start_ready(&fleet, &redis.url(), "a");
    ordered(&fleet, &["trigger", "long"]);
    let since = "soloist_job_running_since_timestamp_seconds{job=\"long\"}";
    let running = a.wait_for("running", |page| page.get(since).is_some());
    assert_eq!(running.value("soloist_attempts_running"), 1.0);
    assert_eq!(running.value("soloist_leases_held"), 1.0);
    let mut b = Replica::start_ready(&fleet, &redis.url(), "b");
    let before = b.page();
    a.kill9();
    let started = "soloist_takeovers_total{result=\"started\"}";
    let after = b.wait_for("taken over", |page| page.value(started) == 1.0);
    assert_eq!(after.value("soloist_takeover_duration_seconds_count"), 1.0);
    let took = after.value("soloist_takeover_duration_seconds_sum");
    assert!((2.0..8.0).contains(&took), "{took} s");
    let lost = "soloist_attempts_total{job=\"long\",outcome=\"lost\"}";
    assert_eq!(after.value(lost), 1.0, "{}", after.text);
    assert_eq!(after.ended("long", "lost"), 0.0, "another attempt follows");
    let mut moved = after.moved_since(&before);
    moved.extend(running.names());
    let over = b.drain();
    promtool::is_clean(&over.text);
    assert_eq!(over.get(since), None);
    assert_eq!(over.value("soloist_draining"), 1.0);
    moved.extend(over.moved_since(&after));
    moved
}

fn killed_store() -> Moved {
    let mut redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), LONG);
    let mut a = Replica::start_ready(&fleet, &redis.url(), "a");
    ordered(&fleet, &["trigger", "long"]);
    let running = "soloist_attempts_running";
    let before = a.wait_for("running", |page| page.value(running) == 1.0);
    assert_eq!(before.value("soloist_store_up"), 1.0);
    redis.kill();
    let expiring = "soloist_leases_lost_total{reason=\"expiring\"}";
    let after = a.wait_for("the end of the lease", |page| page.value(expiring) == 1.0);
    assert_eq!(after.value("soloist_store_up"), 0.0);
    assert!(after.value("soloist_lease_renewals_total{result=\"failed\"}") > 0.0);
    assert!(after.value("soloist_store_call_errors_total{operation=\"renew\"}") > 0.0);
    promtool::is_clean(&after.text);
    redis.restart();
    let back = a.wait_for("back", |page| page.value("soloist_store_up") == 1.0);
    let mut moved = after.moved_since(&before);
    moved.extend(back.moved_since(&after));
    moved
}

fn other_table() -> Moved {
    let redis = RedisServer::start();
    let job = |name: &str| format!("[jobs.{name}]\nschedule = \"@daily\"\nshell = \"true\"\n");
    let fleet = Fleet::new(redis.url(), &(job("one") + &job("two")));
    let mut a = Replica::start_ready(&fleet, &redis.url(), "a");
    let before = a.page();
    let next =
        |name: &str| format!("soloist_job_next_occurrence_timestamp_seconds{{job=\"{name}\"}}");
    assert!(before.get(&next("one")).is_some(), "{}", before.text);
    fleet.set_table(&(job("two") + &job("three")));
    a.tell("reload");
    let after = a.wait_for("the new table", |page| page.get(&next("three")).is_some());
    assert!(!after.text.contains("job=\"one\""), "{}", after.text);
    assert_eq!(after.get(&next("two")), before.get(&next("two")));
    assert_eq!(
        after.value("soloist_config_reloads_total{result=\"taken\"}"),
        1.0
    );
    std::fs::write(fleet.config(), "no table").expect("a file");
    a.tell("reload");
    let refused = a.page();
    assert_eq!(
        refused.value("soloist_config_reloads_total{result=\"refused\"}"),
        1.0
    );
    promtool::is_clean(&refused.text);
    let mut moved = after.moved_since(&before);
    moved.extend(refused.moved_since(&after));
    moved
}

/// All that scenarios move together.
pub(crate) fn all() -> Moved {
    let scenarios = [ledger, takeover, outage, reload, downtime];
    std::thread::scope(|scope| {
        let running = scenarios.map(|scenario| scope.spawn(scenario));
        let moved = running.map(|one| one.join().expect("a scenario that passes"));
        moved.into_iter().flatten().cloned().collect()
    })
}

/// The directory of this package.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
