//! What goes wrong around the daemon, and what it says to that.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use test_support::machine::stood_still;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON};
use crate::together;

const TABLE: &str = r#"
[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1"]
"#;

#[test]
fn a_store_that_is_down_at_the_start_is_waited_for_and_said() {
    let _machine = together();
    let mut redis = RedisServer::start();
    redis.kill();
    let fleet = Fleet::new(redis.url(), TABLE);
    let mut replica = fleet.start("a");
    replica.wait_for_line(&["WARN", "can't be reached", "trying again"]);
    redis.restart();
    replica.wait_until_ready();
    fleet.wait_for_runs(SOON, |runs| (!runs.is_empty()).then_some(()));
    replica.drain();
}

#[test]
fn a_drain_ends_the_wait_for_a_store() {
    let _machine = together();
    let mut redis = RedisServer::start();
    redis.kill();
    let fleet = Fleet::new(redis.url(), TABLE);
    let mut replica = fleet.start("a");
    replica.wait_for_line(&["trying again"]);
    replica.drain();
}

#[test]
fn a_required_store_that_is_down_ends_the_start() {
    let _machine = together();
    let mut redis = RedisServer::start();
    redis.kill();
    let fleet = Fleet::new(redis.url(), TABLE);
    let (code, _, stderr) = fleet.output(&["run", "--require-store"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("can't be reached"), "{stderr}");
    let (code, _, stderr) = fleet.output(&["status"]);
    assert_eq!(code, Some(3), "{stderr}");
}

#[test]
fn a_wrong_password_is_named_and_not_shown() {
    let _machine = together();
    let redis = RedisServer::start();
    redis.command(&["CONFIG", "SET", "requirepass", "open sesame"]);
    let url = redis.url().replace("redis://", "redis://:sw0rdfish@");
    let fleet = Fleet::new(url, TABLE);
    let (code, _, stderr) = fleet.output(&["run"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.to_lowercase().contains("password"), "{stderr}");
    assert!(!stderr.contains("sw0rdfish"), "{stderr}");
}

#[test]
fn a_store_that_dies_stops_no_daemon_and_its_return_starts_the_table_again() {
    let _machine = together();
    let mut redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), &format!("{TABLE}lease_ttl = \"2s\"\n"));
    let mut replica = fleet.start("a");
    fleet.wait_for_runs(SOON, |runs| (!runs.is_empty()).then_some(()));
    redis.kill();
    replica.wait_for_line(&["the store is away"]);
    redis.restart();
    replica.wait_for_line(&["the store is back"]);
    replica.wait_for_line(&["nothing is started for"]);
    let before = fleet.runs().len();
    fleet.wait_for_runs(SOON, |runs| (runs.len() > before).then_some(()));
    replica.drain();
    let runs = fleet.runs();
    for pair in runs.windows(2) {
        assert!(
            pair[0].scheduled_at < pair[1].scheduled_at,
            "twice: {pair:?}"
        );
        assert!(pair[0].token < pair[1].token, "the token fell: {pair:?}");
    }
}

#[test]
fn a_frozen_store_stops_the_job_before_its_lease_runs_out() {
    let _machine = together();
    let redis = RedisServer::start();
    let table = r#"
[jobs.long]
schedule = "* * * * * *"
command = [PROBE, "60000"]
lease_ttl = "3s"
kill_grace = "500ms"
"#;
    let fleet = Fleet::new(redis.url(), table);
    let replica = fleet.start("a");
    let run = fleet.wait_for_runs(SOON, |runs| runs.first().cloned());
    redis.freeze();
    let line = replica.wait_for_line(&["stopping the attempt", "could not be renewed"]);
    assert!(line.contains("job=long"), "{line}");
    redis.thaw();
    replica.wait_for_line(&["attempt was handed over"]);
    assert!(run.ended_ns.is_none());
    replica.signal(Signal::TERM);
}

#[test]
fn a_log_that_nobody_reads_holds_up_no_job() {
    let _machine = together();
    let table =
        format!("{TABLE}[jobs.talks]\nschedule = \"* * * * * *\"\nshell = \"seq 100000\"\n");
    let fleet = Fleet::new("memory:", &table);
    let mut command = fleet.command(&["run"]);
    let mut deaf = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("a replica to start");
    let unread = deaf.stderr.take();
    let stood_before = stood_still();
    let later = fleet.wait_for_runs(SOON, |runs| Some(runs.first()?.started_ns + 5_000_000_000));
    fleet.wait_for_runs(SOON, |runs| (runs.last()?.started_ns > later).then_some(()));
    let runs = fleet.runs();
    // What falls due while the machine stands still may be one with what does after.
    let still = (stood_still() - stood_before) * 2;
    let most = (Duration::from_millis(1900) + still)
        .as_nanos()
        .cast_signed();
    for pair in runs.windows(2) {
        let apart = pair[1].started_ns - pair[0].started_ns;
        assert!(apart < most, "held up: {pair:?}");
    }
    deaf.kill().expect("a living process");
    deaf.wait().expect("a dead process");
    drop(unread);
}

#[test]
fn a_command_that_cannot_be_started_is_an_outcome_with_its_cause() {
    let _machine = together();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let plain = dir.path().join("plain.txt");
    std::fs::write(&plain, "no program").expect("a file");
    let table = format!(
        "[jobs.missing]\nschedule = \"* * * * * *\"\ncommand = [\"no-such-program\"]\n\
         [jobs.plain]\nschedule = \"* * * * * *\"\ncommand = [\"{}\"]\n\
         [jobs.nowhere]\nschedule = \"* * * * * *\"\ncommand = [\"true\"]\nworking_dir = \"/nowhere\"\n",
        plain.display()
    );
    let store = format!("sqlite:{}", dir.path().join("soloist.db").display());
    let fleet = Fleet::new(store, &table);
    let mut replica = fleet.start("a");
    for job in ["missing", "plain", "nowhere"] {
        replica.wait_for_line(&["ERROR", "attempt failed", &format!("job={job}")]);
    }
    for (job, cause) in [
        ("missing", "no such program"),
        ("plain", "chmod +x"),
        ("nowhere", "/nowhere"),
    ] {
        let history = fleet.json(&["history", job, "-n", "1", "--json"]);
        let reason = history[0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(cause), "{job}: {history:#}");
        assert_eq!(history[0]["outcome"], "failed");
    }
    replica.drain();
}

#[test]
fn a_path_that_can_be_no_database_ends_the_start_with_the_cure() {
    let _machine = together();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let other = dir.path().join("other.db");
    std::fs::write(
        &other,
        "no database at all, but long enough to have a header",
    )
    .expect("a file");
    for (path, word) in [
        (dir.path().to_owned(), "directory"),
        (other, "database"),
        ("/nowhere/at/all/soloist.db".into(), "/nowhere"),
        ("/proc/soloist.db".into(), "/proc"),
    ] {
        let fleet = Fleet::new(format!("sqlite:{}", path.display()), TABLE);
        let (code, _, stderr) = fleet.output(&["run"]);
        assert_eq!(code, Some(3), "{}: {stderr}", path.display());
        assert!(stderr.contains(word), "{}: {stderr}", path.display());
    }
}

#[test]
fn a_job_over_its_timeout_gets_term_then_kill_and_the_outcome_says_so() {
    let _machine = together();
    let table = r#"
[jobs.stubborn]
schedule = "* * * * * *"
shell = "trap '' TERM; while :; do sleep 0.1; done"
timeout = "1s"
kill_grace = "300ms"
"#;
    let fleet = Fleet::new("memory:", table);
    let replica = fleet.start("a");
    let line = replica.wait_for_line(&["attempt timed out", "job=stubborn"]);
    assert!(line.contains("signal=9"), "{line}");
    replica.signal(Signal::TERM);
}

#[test]
fn a_log_that_cannot_be_written_stops_no_daemon() {
    let _machine = together();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = format!("sqlite:{}", dir.path().join("soloist.db").display());
    let table = "[jobs.tick]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"1\"]\n";
    let fleet = Fleet::new(store, table);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let mut replica = fleet
        .command(&["run"])
        .stderr(full)
        .spawn()
        .expect("a replica to start");
    fleet.wait_for_runs(SOON, |runs| (runs.len() >= 2).then_some(()));
    let ended = replica.try_wait().expect("a child");
    kill_process(Pid::from_child(&replica), Signal::TERM).expect("a living process");
    let status = replica.wait().expect("a child");
    assert_eq!((ended, status.code()), (None, Some(0)));
}
