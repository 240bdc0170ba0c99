//! The commands that look into the store, and the one that runs a job by hand.

use rustix::process::Signal;

use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON};
use crate::together;

const TABLE: &str = r#"
[jobs.tick]
schedule = "* * * * * *"
shell = "echo out $SOLOIST_ATTEMPT; echo err >&2"

[jobs.fails]
schedule = "@manual"
shell = "echo by hand; exit 7"

[jobs.long]
schedule = "@manual"
command = [PROBE, "30000"]

[jobs.disabled]
schedule = "* * * * * *"
enabled = false
shell = "echo asked for"
"#;

fn fleet() -> (tempfile::TempDir, Fleet) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = format!("sqlite:{}", dir.path().join("soloist.db").display());
    (dir, Fleet::new(store, TABLE))
}

#[test]
fn status_history_and_logs_tell_what_ran() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let replica = fleet.start("r1");
    replica.wait_for_line(&["attempt succeeded", "job=tick"]);
    let status = fleet.json(&["status", "--json"]);
    let tick = status["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .find(|job| job["name"] == "tick");
    let tick = tick.expect("the job");
    assert!(tick["next"].is_string(), "{tick:#}");
    assert_eq!(tick["last"]["replica"], "r1");
    assert_eq!(status["replicas"][0]["name"], "r1");
    assert_eq!(status["replicas"][0]["jobs"], 3);
    let history = fleet.json(&["history", "tick", "-n", "1", "--json"]);
    let last = &history[0];
    assert_eq!(
        (&last["outcome"], &last["attempt"]),
        (&"succeeded".into(), &1.into())
    );
    assert!(
        last["token"].as_u64().is_some_and(|token| token > 1 << 50),
        "{last:#}"
    );
    let at = last["scheduled_at"]
        .as_str()
        .expect("an instant")
        .to_owned();
    let (code, stdout, stderr) = fleet.output(&["logs", "tick", "--at", &at]);
    assert_eq!((code, stdout.as_str()), (Some(0), "out 1\n"));
    assert!(stderr.ends_with("err\n"), "{stderr}");
    let (code, text, _) = fleet.output(&["status"]);
    assert_eq!(code, Some(0));
    for word in ["JOB", "tick", "REPLICA", "r1"] {
        assert!(text.contains(word), "no {word} in:\n{text}");
    }
}

#[test]
fn what_the_store_does_not_know_is_said() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let (code, stdout, stderr) = fleet.output(&["history"]);
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert!(stderr.contains("nothing has run yet"), "{stderr}");
    let (code, _, stderr) = fleet.output(&["logs", "tick"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("soloist history tick"), "{stderr}");
    let (code, _, stderr) = fleet.output(&["logs", "no such name"]);
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn run_once_passes_output_and_code_on_and_is_in_the_ledger() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let (code, stdout, stderr) = fleet.output(&["run-once", "fails"]);
    assert_eq!((code, stdout.as_str()), (Some(7), "by hand\n"), "{stderr}");
    let history = fleet.json(&["history", "fails", "--json"]);
    assert_eq!(history[0]["outcome"], "failed");
    assert_eq!(history[0]["exit_code"], 7);
    let (code, _, stderr) = fleet.output(&["run-once", "nosuch"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("tick"),
        "names the jobs that there are: {stderr}"
    );
}

#[test]
fn run_once_refuses_a_busy_job_and_ends_its_own_on_a_signal() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let mut first = fleet.run_once("long");
    fleet.wait_for_runs(SOON, |runs| (runs.len() == 1).then_some(()));
    let (code, _, stderr) = fleet.output(&["run-once", "long"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("busy"), "{stderr}");
    first.signal(Signal::INT);
    let status = first.wait(SOON);
    assert_eq!(status.code(), Some(128 + 15), "{}", first.log());
    let history = fleet.json(&["history", "long", "--json"]);
    assert_eq!(history[0]["outcome"], "cancelled", "{history:#}");
    assert_eq!(fleet.runs().len(), 1, "the second never started");
}

#[test]
fn a_disabled_job_runs_when_it_is_asked_for_by_name() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let (code, stdout, stderr) = fleet.output(&["run-once", "disabled"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "asked for\n"),
        "{stderr}"
    );
}

#[test]
fn a_hangup_reads_the_table_again_and_kills_no_daemon() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    replica.signal(Signal::HUP);
    replica.wait_for_line(&["INFO", "the table was read again: nothing changed"]);
    replica.wait_for_line(&["attempt succeeded", "job=tick"]);
    replica.drain();
}

#[test]
fn a_hangup_ends_run_once_and_its_job() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let mut run = fleet.run_once("long");
    fleet.wait_for_runs(SOON, |runs| (runs.len() == 1).then_some(()));
    run.signal(Signal::HUP);
    assert_eq!(run.wait(SOON).code(), Some(128 + 15), "{}", run.log());
    let history = fleet.json(&["history", "long", "--json"]);
    assert_eq!(history[0]["outcome"], "cancelled", "{history:#}");
}

#[test]
fn every_line_of_a_json_log_is_flat_and_names_the_replica_and_tokens_are_numbers() {
    let _machine = together();
    let (_dir, fleet) = fleet();
    let mut replica = fleet.start_with("r1", |command| {
        command.args(["--log-format", "json"]);
    });
    replica.wait_for_line(&["attempt succeeded", "\"job\":\"tick\""]);
    replica.drain();
    let log = replica.log();
    let mut tokens = 0;
    for line in log.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("one object a line");
        let mut values = object.as_object().expect("an object").values();
        assert!(
            values.all(|value| !value.is_object() && !value.is_array()),
            "{line}"
        );
        // Before the replica has a name, and of signals.
        let target = object["target"].as_str().unwrap_or_default();
        let of_the_process = target == "soloist::cli::run" || target == "soloist::daemon::signals";
        assert!(of_the_process || object["replica"] == "r1", "{line}");
        assert!(
            object["token"].is_null() || object["token"].is_u64(),
            "{line}"
        );
        tokens += usize::from(object["token"].is_u64());
    }
    assert!(tokens >= 3, "started, printed and succeeded: {log}");
}

#[test]
fn a_redis_behind_a_unix_socket_is_a_store() {
    let _machine = together();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let socket = dir.path().join("redis.sock").display().to_string();
    let _redis = RedisServer::options()
        .argument("--unixsocket", &socket)
        .start();
    let fleet = Fleet::new(format!("redis+unix://{socket}"), TABLE);
    let mut replica = fleet.start("r1");
    replica.wait_for_line(&["attempt succeeded", "job=tick"]);
    replica.drain();
}
