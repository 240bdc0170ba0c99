//! Attempts that can't be started: each an outcome with its cause, and no end of the daemon.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, geteuid, getrlimit};
use serde_json::Value;
use test_support::fleet::{Fleet, Replica, SOON, now_ns};
use test_support::machine::together;
use test_support::process::Process;
use test_support::redis::RedisServer;

use crate::scene::{
    field_ns, fleet, fleet_as_is, fresh_name, guardian_of, probe_job, shell_job, wait_for_outcome,
};

/// A user of nobody else: what it may have at once is counted over all of its processes.
const USER: u32 = 61_234;

/// For whoever limits what that user may have.
static LIMITS: Mutex<()> = Mutex::new(());

fn reason(end: &Value) -> &str {
    end["reason"].as_str().unwrap_or_default()
}

fn failed(fleet: &Fleet, job: &str, causes: &[&str]) {
    let end = wait_for_outcome(fleet, job, |_| true);
    assert_eq!(end["outcome"], "failed", "{job}: {end:#}");
    eprintln!("{job}: {}", reason(&end));
    let told = reason(&end).to_lowercase();
    assert!(
        causes.iter().any(|cause| told.contains(cause)),
        "{job}: none of {causes:?} in {end:#}"
    );
}

#[test]
fn what_cannot_be_run_is_an_outcome_with_its_cause() {
    let _machine = together();
    let fleet = fleet("", &[]);
    let file = |name: &str, text: &str, mode: u32| {
        let path = fleet.dir().join(name);
        std::fs::write(&path, text).expect("a file");
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, permissions).expect("own file");
        path.display().to_string()
    };
    let job = |name: &str, program: &str, keys: &str| {
        format!("[jobs.{name}]\nschedule = \"* * * * * *\"\ncommand = [\"{program}\"]\n{keys}\n")
    };
    let not_a_dir = format!("working_dir = \"{}\"", file("a-file", "", 0o644));
    let jobs = [
        job("not-found", "no-such-program", ""),
        job("no-such-path", "/nowhere/program", ""),
        job("not-executable", &file("plain", "#!/bin/sh\n", 0o644), ""),
        job(
            "no-interpreter",
            &file("script", "#!/nowhere/sh\n", 0o755),
            "",
        ),
        job("no-program", &file("rubbish", "\u{1}\u{2}\u{3}", 0o755), ""),
        job("a-directory", &fleet.dir().display().to_string(), ""),
        job("nowhere", "true", "working_dir = \"/nowhere\""),
        job("not-a-dir", "true", &not_a_dir),
        job("good", "true", ""),
    ];
    let table = std::fs::read_to_string(fleet.config()).expect("a table");
    fleet.set_table(&(table + &jobs.concat()));
    let mut replica = fleet.start(&fresh_name());
    failed(&fleet, "not-found", &["no-such-program"]);
    failed(&fleet, "no-such-path", &["/nowhere/program"]);
    failed(
        &fleet,
        "not-executable",
        &["chmod", "executable", "permission"],
    );
    failed(&fleet, "no-interpreter", &["interpreter", "script"]);
    failed(&fleet, "no-program", &["exec format", "rubbish"]);
    failed(
        &fleet,
        "a-directory",
        &["directory", "permission", "executable"],
    );
    failed(&fleet, "nowhere", &["/nowhere"]);
    failed(&fleet, "not-a-dir", &["a-file"]);
    let good = wait_for_outcome(&fleet, "good", |_| true);
    assert_eq!(good["outcome"], "succeeded", "{good:#}");
    replica.drain();
}

/// A success that fell due after an instant.
fn succeeds_after(fleet: &Fleet, job: &str, after_ns: i128) {
    wait_for_outcome(fleet, job, |attempt| {
        attempt["outcome"] == "succeeded" && field_ns(attempt, "scheduled_at") > after_ns
    });
}

/// As its own user, which needs no privilege to change what it may do at most for now.
fn limit_processes(process: Process, limit: u64) {
    let mut command = Command::new("prlimit");
    let (pid, limit) = (process.pid.to_string(), format!("--nproc={limit}:"));
    let status = as_user(command.args(["--pid", &pid, &limit])).status();
    assert!(status.expect("prlimit stands beside unshare").success());
}

/// As many as its user may have. The tests were started with the same limits.
fn unlimit_processes(process: Process) {
    let most = getrlimit(Resource::Nproc).maximum;
    limit_processes(process, most.unwrap_or(1_000_000));
}

/// The user of their own where this one may do as it likes: root has no such limits.
fn as_user(command: &mut Command) -> &mut Command {
    match geteuid().is_root() {
        true => command.uid(USER).gid(USER),
        false => command,
    }
}

/// Not in another cgroup, which only this test's own user could enter.
fn fleet_of_user(jobs: &[String]) -> Fleet {
    fleet_as_is(RedisServer::shared(), "", jobs)
}

fn start_as_user(fleet: &Fleet) -> Replica {
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(fleet.dir(), open).expect("own directory");
    fleet.start_with(&fresh_name(), |command| {
        as_user(command);
    })
}

#[test]
fn a_host_that_is_full_of_processes_fails_attempts_and_no_daemon() {
    let _machine = together();
    let _limits = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
    let fleet = fleet_of_user(&[shell_job("tick", "echo", ""), probe_job("long", 30_000)]);
    let replica = start_as_user(&fleet);
    let began_ns = now_ns();
    succeeds_after(&fleet, "tick", began_ns - 1_000_000_000);
    let guardian = guardian_of(&replica);
    limit_processes(guardian, 1);
    let end = wait_for_outcome(&fleet, "tick", |attempt| attempt["outcome"] == "failed");
    eprintln!("no more processes for the guardian: {}", reason(&end));
    let told = reason(&end).to_lowercase();
    let causes = ["temporarily unavailable", "processes", "nproc", "eagain"];
    assert!(causes.iter().any(|cause| told.contains(cause)), "{end:#}");
    unlimit_processes(guardian_of(&replica));
    succeeds_after(&fleet, "tick", now_ns());
    let runs = fleet.runs();
    assert_eq!(runs.len(), 1, "the job that ran went on: {runs:?}");
    assert!(replica.process().is_alive());
}

/// How many tasks the daemon's user has.
fn tasks_under(process: Process) -> u64 {
    let own = [vec![process], process.descendants()].concat();
    let threads = own.iter().map(|process| process.status("Threads"));
    threads.filter_map(|text| text.parse::<u64>().ok()).sum()
}

#[test]
fn a_keeper_that_can_start_no_job_fails_the_attempt() {
    let _machine = together();
    let _limits = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
    if !geteuid().is_root() {
        eprintln!("NOT SHOWN: a limit for one user's processes alone takes root to set up.");
        return;
    }
    let fleet = fleet_of_user(&[shell_job("tick", "echo", "")]);
    let mut replica = start_as_user(&fleet);
    wait_for_outcome(&fleet, "tick", |attempt| attempt["outcome"] == "succeeded");
    let guardian = guardian_of(&replica);
    // One more than there are: the keeper's own. The daemon's threads come and go meanwhile.
    let end = loop {
        limit_processes(guardian, tasks_under(replica.process()) + 1);
        let from_ns = now_ns();
        let end = wait_for_outcome(&fleet, "tick", |attempt| {
            field_ns(attempt, "scheduled_at") > from_ns
        });
        if end["outcome"] == "failed" {
            break end;
        }
        unlimit_processes(guardian);
    };
    eprintln!("no process for the job: {}", reason(&end));
    assert!(!reason(&end).is_empty(), "{end:#}");
    unlimit_processes(guardian_of(&replica));
    succeeds_after(&fleet, "tick", now_ns());
    replica.drain();
}

#[test]
fn a_daemon_that_is_out_of_descriptors_fails_attempts_and_lives() {
    let _machine = together();
    let mut jobs: Vec<String> = (0..40)
        .map(|number| shell_job(&format!("job-{number}"), "sleep 2", ""))
        .collect();
    jobs.push(shell_job("tick", "echo", ""));
    let fleet = fleet("", &jobs);
    let few = ["sh", "-c", "ulimit -n 40; exec \"$@\"", "few"];
    let mut replica = fleet.start_by(&few, &fresh_name());
    let any_job = |wanted: &dyn Fn(&Value) -> bool| {
        let end = std::time::Instant::now() + SOON;
        loop {
            let answer = fleet.json(&["history", "-n", "1000", "--json"]);
            let attempts = answer.as_array().expect("a list");
            if let Some(found) = attempts.iter().find(|attempt| wanted(attempt)) {
                return found.clone();
            }
            assert!(
                std::time::Instant::now() < end,
                "{answer:#}\n{}",
                replica.tail()
            );
        }
    };
    let end = any_job(&|attempt| attempt["outcome"] == "failed");
    eprintln!("out of descriptors: {}: {}", end["job"], reason(&end));
    let told = reason(&end).to_lowercase();
    let causes = ["too many open files", "descriptors", "nofile", "emfile"];
    assert!(causes.iter().any(|cause| told.contains(cause)), "{end:#}");
    let failed_ns = field_ns(&end, "ended_at");
    any_job(&|attempt| {
        attempt["outcome"] == "succeeded" && field_ns(attempt, "started_at") > failed_ns
    });
    assert!(replica.process().is_alive());
    replica.drain();
}
