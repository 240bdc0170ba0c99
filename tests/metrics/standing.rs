//! How jobs stand, for a replica that was not there when they ran.

use test_support::fleet::Fleet;
use test_support::redis::RedisServer;

use crate::replica::Replica;

pub(crate) const ALL: &[crate::Law] = &[
    (
        "a_replica_that_starts_knows_when_jobs_last_succeeded_and_failed",
        a_replica_that_starts_knows_when_jobs_last_succeeded_and_failed,
    ),
    (
        "a_job_that_is_left_to_others_has_no_next_occurrence_until_it_comes_back",
        a_job_that_is_left_to_others_has_no_next_occurrence_until_it_comes_back,
    ),
];

/// `fickle` succeeds at its first run and fails from then on.
const TABLE: &str = r#"
[jobs.good]
schedule = "@manual"
shell = "true"

[jobs.fickle]
schedule = "@manual"
shell = "mkdir DIR"

[jobs.fresh]
schedule = "@manual"
shell = "true"
"#;

fn a_replica_that_starts_knows_when_jobs_last_succeeded_and_failed() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), "");
    let dir = fleet.dir().join("once").display().to_string();
    fleet.set_table(&TABLE.replace("DIR", &dir));
    let mut a = Replica::start_ready(&fleet, &redis.url(), "a");
    for (job, outcome) in [("good", 0), ("fickle", 0), ("fickle", 1), ("good", 0)] {
        let (code, _, stderr) = fleet.output(&["trigger", job, "--wait"]);
        assert_eq!(code, Some(outcome), "{job}: {stderr}");
    }
    a.drain();
    let ended = |job: &str, outcome: &str| {
        let history = fleet.json(&["history", job, "--json"]);
        let lines = history.as_array().expect("lines");
        let line = lines.iter().find(|line| line["outcome"] == outcome);
        let at = line
            .and_then(|line| line["ended_at"].as_str())
            .expect("a line");
        let at: jiff::Timestamp = at.parse().expect("an instant");
        at.as_millisecond() as f64 / 1e3
    };
    let mut b = Replica::start_ready(&fleet, &redis.url(), "b");
    let last = |what: &str, job: &str| {
        format!("soloist_job_last_{what}_timestamp_seconds{{job=\"{job}\"}}")
    };
    let failed = last("failure", "fickle");
    let page = b.wait_for("what was", |page| page.get(&failed).is_some());
    // A moment later, after a look at its history.
    let succeeded = last("success", "fickle");
    let page_of_history = b.wait_for("what was before", |page| page.get(&succeeded).is_some());
    assert_eq!(
        page_of_history.value(&succeeded),
        ended("fickle", "succeeded")
    );
    assert_eq!(page.value(&failed), ended("fickle", "failed"));
    assert_eq!(
        page.value(&last("success", "good")),
        ended("good", "succeeded")
    );
    assert_eq!(page.get(&last("failure", "good")), None);
    assert_eq!(page_of_history.get(&last("success", "fresh")), None);
}

fn a_job_that_is_left_to_others_has_no_next_occurrence_until_it_comes_back() {
    let redis = RedisServer::start();
    let job = |name: &str| format!("[jobs.{name}]\nschedule = \"@daily\"\nshell = \"true\"\n");
    let fast = "[scheduler]\nlease_ttl = \"2s\"\n";
    let fleet = Fleet::new(
        redis.url(),
        &format!("{fast}{}{}", job("gone"), job("same")),
    );
    let mut a = Replica::start_ready(&fleet, &redis.url(), "a");
    let next =
        |name: &str| format!("soloist_job_next_occurrence_timestamp_seconds{{job=\"{name}\"}}");
    let (gone, same) = (next("gone"), next("same"));
    let before = a.page();
    assert_eq!(before.get(&gone), before.get(&same));
    fleet.set_table(&format!("{fast}{}", job("same")));
    let mut b = Replica::start_ready(&fleet, &redis.url(), "b");
    let left = a.wait_for("left to others", |page| page.get(&gone).is_none());
    assert_eq!(left.get(&same), before.get(&same));
    b.drain();
    a.wait_for("back", |page| page.get(&gone).is_some());
}
