//! What people order, on real replicas: nothing is lost while they are away, and it makes no
//! difference which of them it concerns.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use test_support::probe::Run;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON, instant_ns};
use crate::together;

const TABLE: &str = r#"
[defaults]
lease_ttl = "5s"

[jobs.short]
schedule = "@manual"
command = [PROBE, "50"]

[jobs.fails]
schedule = "@manual"
shell = "exit 3"

[jobs.some-time]
schedule = "@manual"
command = [PROBE, "3000"]

[jobs.long]
schedule = "@manual"
command = [PROBE, "60000"]

[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1"]

[jobs.beat]
schedule = "* * * * * *"
command = [PROBE, "1"]
"#;

/// A store that lives as long as the test, and a fleet on it.
enum Stage {
    Sqlite(TempDir),
    Redis(RedisServer),
}

impl Stage {
    fn fleet(&self) -> Fleet {
        match self {
            Stage::Sqlite(dir) => {
                let path = dir.path().join("soloist.db");
                Fleet::new(format!("sqlite:{}", path.display()), TABLE)
            }
            Stage::Redis(server) => Fleet::new(server.url(), TABLE),
        }
    }
}

fn stages() -> [Stage; 2] {
    let dir = tempfile::tempdir().expect("a temporary directory");
    [Stage::Sqlite(dir), Stage::Redis(RedisServer::start())]
}

fn of<'r>(runs: &'r [Run], job: &str) -> Vec<&'r Run> {
    runs.iter().filter(|run| run.job == job).collect()
}

fn started(runs: &[Run], job: &str) -> Option<Run> {
    of(runs, job).first().copied().cloned()
}

/// A command that runs while the test goes on.
struct Beside(Child);

impl Beside {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("a program to run"))
    }

    fn end(self) -> (Option<i32>, String) {
        let output = self.0.wait_with_output().expect("it ends");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), stdout)
    }
}

#[test]
fn a_trigger_given_with_all_replicas_down_runs_once_when_they_come() {
    let _machine = together();
    for stage in stages() {
        let fleet = stage.fleet();
        let told = fleet.json(&["trigger", "short", "--by", "alice", "--json"]);
        let at = told["scheduled_at"].as_str().expect("an instant");
        let mut replicas = fleet.start_ready(["a", "b", "c"]);
        fleet.wait_for_runs(SOON, |runs| started(runs, "short")?.ended_ns);
        replicas.iter_mut().for_each(|replica| replica.drain());
        let runs = fleet.runs();
        let runs = of(&runs, "short");
        assert_eq!(runs.len(), 1, "{runs:#?}");
        assert_eq!(runs[0].scheduled_at, at);
        let status = fleet.json(&["status", "--json"]);
        let jobs = status["jobs"].as_array().expect("jobs").iter();
        let job = jobs.clone().find(|job| job["name"] == "short");
        assert_eq!(job.expect("the job")["last"]["by"], "alice", "{status:#}");
    }
}

#[test]
fn a_wait_tells_what_happens_and_ends_as_the_job_did() {
    let _machine = together();
    for stage in stages() {
        let fleet = stage.fleet();
        let _replica = fleet.start_ready(["a"]);
        let (code, stdout, stderr) = fleet.output(&["trigger", "short", "--wait"]);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(
            stdout.contains("short: attempt 1 on a: succeeded after "),
            "{stdout}"
        );
        let (code, stdout, _) = fleet.output(&["trigger", "fails", "--wait"]);
        assert_eq!(code, Some(1), "{stdout}");
        let is_end = |line: &str| {
            line.starts_with("fails: attempt 1 on a: failed") && line.ends_with("exit code 3")
        };
        assert!(stdout.lines().any(is_end), "{stdout}");
    }
}

#[test]
fn a_wait_goes_on_through_the_crash_of_the_holder() {
    let _machine = together();
    for stage in stages() {
        let fleet = stage.fleet();
        let mut replicas = fleet.start_ready(["a", "b"]);
        let wait = Beside::start(fleet.command(&["trigger", "some-time", "--wait"]));
        let first = fleet.wait_for_runs(SOON, |runs| started(runs, "some-time"));
        let holder = replicas.iter_mut().find(|one| one.name == first.replica);
        holder.expect("one of the two").kill9();
        let (code, stdout) = wait.end();
        assert_eq!(code, Some(0), "{stdout}");
        assert!(stdout.contains(": lost after "), "{stdout}");
        let is_end = |line: &str| line.contains("attempt 2 on ") && line.contains("succeeded");
        assert!(stdout.lines().any(is_end), "{stdout}");
    }
}

#[test]
fn a_kill_ends_what_runs_on_whatever_replica() {
    let _machine = together();
    for stage in stages() {
        let fleet = stage.fleet();
        let _replicas = fleet.start_ready(["a", "b"]);
        let wait = Beside::start(fleet.command(&["trigger", "long", "--wait"]));
        fleet.wait_for_runs(SOON, |runs| started(runs, "long"));
        let killed = fleet.json(&["kill", "long", "--wait", "--by", "alice", "--json"]);
        assert_eq!(killed["outcome"], "cancelled", "{killed:#}");
        let (code, stdout) = wait.end();
        assert_eq!(code, Some(1), "{stdout}");
        assert!(stdout.contains("killed by alice"), "{stdout}");
        let run = started(&fleet.runs(), "long").expect("it ran");
        assert_eq!(run.ended_ns, None, "it was ended, and did not end");
        let (code, _, stderr) = fleet.output(&["kill", "long"]);
        assert_eq!(code, Some(1), "{stderr}");
        let (code, history, _) = fleet.output(&["history", "long", "--json"]);
        let history: Value = serde_json::from_str(&history).expect("JSON");
        assert_eq!((code, history.as_array().map(Vec::len)), (Some(0), Some(1)));
    }
}

#[test]
fn a_paused_job_is_skipped_on_every_replica_until_it_is_resumed() {
    let _machine = together();
    for stage in stages() {
        let fleet = stage.fleet();
        let _first = fleet.start_ready(["a"]);
        fleet.wait_for_runs(SOON, |runs| started(runs, "tick"));
        let told = fleet.json(&["pause", "tick", "--json"]);
        let since = instant_ns(told[0]["paused_since"].as_str().expect("an instant"));
        let _later = fleet.start_ready(["b"]);
        // Whoever runs the other job would have run this one, too.
        let due = |run: &Run| instant_ns(&run.scheduled_at);
        let second = i128::try_from(Duration::from_secs(1).as_nanos()).expect("small");
        let beaten = fleet.wait_for_runs(SOON, |runs| {
            let beats = of(runs, "beat");
            let last = beats.iter().map(|run| due(run)).max()?;
            (last > since + 3 * second).then_some(last)
        });
        let (code, _, stderr) = fleet.output(&["resume", "tick"]);
        assert_eq!(code, Some(0), "{stderr}");
        let again = fleet.wait_for_runs(SOON, |runs| {
            let ticks = of(runs, "tick");
            ticks.iter().map(|run| due(run)).find(|at| *at > beaten)
        });
        let runs = fleet.runs();
        let ticks = of(&runs, "tick");
        let within: Vec<_> = ticks
            .iter()
            .filter(|run| due(run) > since && due(run) < again)
            .collect();
        assert!(within.is_empty(), "{within:#?}");
        let history = fleet.json(&["history", "tick", "-n", "1000", "--json"]);
        let lines = history.as_array().expect("lines");
        assert!(
            lines.iter().any(|line| line["outcome"] == "skipped"),
            "{history:#}"
        );
    }
}

/// How a server loses what it had.
const LOSSES: [fn(&mut RedisServer); 2] = [
    |server| assert_eq!(server.command(&["FLUSHALL"]), "OK"),
    RedisServer::restart,
];

/// Waits until a command says so.
fn wait_for_said(wait: &mut Beside, part: &str) {
    let stdout = wait.0.stdout.as_mut().expect("a pipe");
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(part) {
        let mut byte = [0];
        let read = stdout.read(&mut byte).expect("a pipe");
        assert!(
            read > 0,
            "it ended after {}",
            String::from_utf8_lossy(&said)
        );
        said.extend(byte);
    }
}

fn ends_as_lost(wait: Beside) {
    let output = wait.0.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for part in [
        "error: the store lost its data after `short` was triggered",
        "nor whether it ran",
        "`soloist history short`",
        "`soloist why short 2",
        "may run it a second time",
    ] {
        assert!(stderr.contains(part), "{part:?} is not in {stderr}");
    }
    assert!(!stderr.contains("is over"), "{stderr}");
}

/// Nobody was there to run it, and the data are gone: it will never run, and nothing can tell.
#[test]
fn a_wait_for_what_the_store_lost_does_not_say_that_it_is_over() {
    let _machine = together();
    for lose in LOSSES {
        let mut server = RedisServer::start();
        let fleet = Fleet::new(server.url(), TABLE);
        let mut wait = Beside::start(fleet.command(&["trigger", "short", "--wait"]));
        wait_for_said(&mut wait, "waits for a replica");
        lose(&mut server);
        wait_for_said(&mut wait, "the store lost its data: waits whether");
        // Its grace window is waited out, and it has none of the occurrence.
        let replica = fleet.start_ready(["a"]);
        ends_as_lost(wait);
        assert!(of(&fleet.runs(), "short").is_empty(), "{:?}", replica);
    }
}

#[test]
fn a_time_that_is_up_after_a_loss_does_not_say_that_the_job_goes_on() {
    let _machine = together();
    for lose in LOSSES {
        let mut server = RedisServer::start();
        let fleet = Fleet::new(server.url(), TABLE);
        let args = ["trigger", "short", "--wait", "--timeout", "4s"];
        let mut wait = Beside::start(fleet.command(&args));
        wait_for_said(&mut wait, "waits for a replica");
        lose(&mut server);
        ends_as_lost(wait);
    }
}

#[test]
fn a_wait_goes_on_with_what_its_holder_brings_back_after_a_loss() {
    let _machine = together();
    for lose in LOSSES {
        let mut server = RedisServer::start();
        let fleet = Fleet::new(server.url(), TABLE);
        let _replicas = fleet.start_ready(["a", "b"]);
        let wait = Beside::start(fleet.command(&["trigger", "some-time", "--wait"]));
        fleet.wait_for_runs(SOON, |runs| started(runs, "some-time"));
        lose(&mut server);
        let (code, stdout) = wait.end();
        assert_eq!(code, Some(0), "{stdout}");
        let has_ended = |line: &str| line.contains("attempt 1 on ") && line.contains("succeeded");
        assert!(stdout.lines().any(has_ended), "{stdout}");
        assert!(!stdout.contains("attempt 2 on "), "{stdout}");
    }
}
