//! What an earlier life of a replica left running, and what its next life does about it.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON};
use crate::together;

const TABLE: &str = r#"
[jobs.long]
schedule = "* * * * * *"
command = [PROBE, "600000"]
"#;

/// A process as a job of a replica is one. Dropped, it is killed.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn process_of(replica: &str) -> Process {
    let child = Command::new("/bin/sleep")
        .arg("1000")
        .env_clear()
        .env("SOLOIST_RUN_ID", "0199a1b2-0000-7000-8000-000000000000")
        .env("SOLOIST_REPLICA", replica)
        .env("SOLOIST_JOB", "long")
        .stdin(Stdio::null())
        .spawn();
    Process(child.expect("a process"))
}

/// A name that no other test gives a replica.
fn name_of(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

#[test]
fn a_replica_ends_what_it_left_behind_even_while_the_store_is_down() {
    let _machine = together();
    let mut redis = RedisServer::start();
    redis.kill();
    let fleet = Fleet::new(redis.url(), TABLE);
    let name = name_of("sweeps");
    let mut leftover = process_of(&name);
    let mut of_another = process_of(&name_of("another"));
    let mut replica = fleet.start(&name);
    let told = [
        "WARN",
        "killed a process",
        "job=long",
        "run_id=0199a1b2-",
        "command=sleep",
    ];
    let line = replica.wait_for_line(&told);
    assert!(line.contains(&format!("pid={}", leftover.0.id())), "{line}");
    let status = leftover.0.wait().expect("a child");
    assert_eq!(status.to_string(), "signal: 9 (SIGKILL)");
    replica.wait_for_line(&["trying again"]);
    assert!(of_another.0.try_wait().expect("a child").is_none());
    replica.drain();
}

#[test]
fn a_living_replica_of_the_same_name_keeps_its_jobs() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let name = name_of("twins");
    let mut first = fleet.start(&name);
    fleet.wait_for_runs(SOON, |runs| (!runs.is_empty()).then_some(()));
    let mut second = fleet.start(&name);
    second.wait_until_ready();
    assert!(
        !second.log().contains("killed a process"),
        "{}",
        second.log()
    );
    second.drain();
    let status = fleet.json(&["status", "--json"]);
    assert_eq!(status["jobs"][0]["state"], "running", "{status:#}");
    assert_eq!(fleet.runs().len(), 1, "it was never started anew");
    first.signal(Signal::TERM);
    first.signal(Signal::INT);
    first.wait(SOON);
}

#[test]
fn a_replica_ends_its_jobs_of_before_a_kill_before_it_is_ready_again() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let name = name_of("returns");
    let mut first = fleet.start(&name);
    fleet.wait_for_runs(SOON, |runs| (!runs.is_empty()).then_some(()));
    first.kill9();
    let mut second = fleet.start(&name);
    second.wait_until_ready();
    // By now nothing of the first life runs, whoever ended it.
    assert_eq!(living_jobs_of(&name), [""; 0]);
    second.signal(Signal::TERM);
    second.signal(Signal::INT);
    second.wait(SOON);
    let end = Instant::now() + SOON;
    while !living_jobs_of(&name).is_empty() {
        assert!(Instant::now() < end, "{:?}", living_jobs_of(&name));
    }
}

/// The processes with a replica's name and a run id in their environment.
fn living_jobs_of(replica: &str) -> Vec<String> {
    let name = format!("SOLOIST_REPLICA={replica}");
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let paths = processes.filter_map(|entry| Some(entry.ok()?.path()));
    let of_replica = paths.filter(|path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        let has = |wanted: &dyn Fn(&[u8]) -> bool| environment.split(|byte| *byte == 0).any(wanted);
        has(&|entry| entry == name.as_bytes())
            && has(&|entry| entry.starts_with(b"SOLOIST_RUN_ID="))
    });
    of_replica.map(|path| path.display().to_string()).collect()
}
