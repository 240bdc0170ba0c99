//! The daemon as the first process of a PID namespace, as in a container without an init.
//!
//! These need root, or user namespaces for everybody, and fail where there is neither: what
//! they show is not shown then.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::fleet::{Fleet, Replica, SOON};
use crate::together;

/// Each run leaves orphans, in sessions of their own, that end later.
const ORPHANS: &str = r#"
[jobs.orphans]
schedule = "* * * * * *"
shell = "for i in 1 2 3 4 5; do (setsid sleep 0.1 &); done; sleep 0.3"
"#;

/// Ends by TERM alone, and says so.
const STAYS: &str = r#"
[scheduler]
shutdown_grace = "0s"
[jobs.stays]
schedule = "* * * * * *"
shell = "trap 'echo was told to end; exit 0' TERM; echo is up; while :; do sleep 0.01; done"
"#;

fn fleet(table: &str) -> (tempfile::TempDir, Fleet) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = format!("sqlite:{}", dir.path().join("soloist.db").display());
    (dir, Fleet::new(store, table))
}

/// Starts the daemon as PID 1, and gives its pid as it is out here.
fn start_as_pid_one(fleet: &Fleet, more: &[&str]) -> (Replica, Pid) {
    let mut wrapper = vec!["unshare", "--pid", "--fork", "--kill-child"];
    if !geteuid().is_root() {
        wrapper.extend(["--user", "--map-root-user"]);
    }
    wrapper.extend(more);
    let replica = fleet.start_by(&wrapper, &format!("pid-one-{}", std::process::id()));
    let end = Instant::now() + SOON;
    let daemon = loop {
        let of_unshare = children(replica.pid());
        let daemon = of_unshare
            .into_iter()
            .find(|child| command(*child) == "soloist");
        if let Some(daemon) = daemon {
            break daemon;
        }
        assert!(
            Instant::now() < end,
            "no daemon in a PID namespace: run this test as root, or allow user namespaces; \
             nothing is shown of its duties as PID 1:\n{}",
            replica.log()
        );
        std::thread::yield_now();
    };
    let status = fs::read_to_string(format!("/proc/{daemon}/status")).expect("a process");
    let inside = status.lines().find(|line| line.starts_with("NSpid:"));
    assert!(
        inside.is_some_and(|line| line.ends_with("\t1")),
        "{inside:?}"
    );
    (replica, daemon)
}

fn children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).expect("a process");
    let lists = threads.map(|thread| {
        let list = thread.expect("a thread").path().join("children");
        fs::read_to_string(list).unwrap_or_default()
    });
    let text: String = lists.collect::<Vec<_>>().concat();
    let pids = text.split_ascii_whitespace();
    pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn command(pid: Pid) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn is_zombie(pid: &Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") Z ")
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "never {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Starts `sleep`s that nobody in the namespace waits for.
fn leave_orphans(daemon: Pid) {
    let mut nsenter = Command::new("nsenter");
    nsenter
        .arg(format!("--target={daemon}"))
        .args(["--pid", "--mount"]);
    if !geteuid().is_root() {
        nsenter.args(["--user", "--preserve-credentials"]);
    }
    let status = nsenter
        .args(["sh", "-c", "sleep 1000 & sleep 1000 & exit 0"])
        .stdin(Stdio::null())
        .status();
    assert!(status.expect("nsenter").success());
}

#[test]
fn as_pid_1_it_reaps_the_orphans_of_others_and_of_jobs_and_drains() {
    let _machine = together();
    let (_dir, fleet) = fleet(ORPHANS);
    let (mut replica, daemon) = start_as_pid_one(&fleet, &["--mount-proc"]);
    replica.wait_until_ready();
    leave_orphans(daemon);
    let sleeps = || {
        let children = children(daemon).into_iter();
        children
            .filter(|child| command(*child) == "sleep")
            .collect::<Vec<_>>()
    };
    // Those of jobs end by themselves.
    eventually("are they its children", || sleeps().len() >= 2);
    replica.wait_for_line(&["attempt succeeded"]);
    for orphan in sleeps() {
        let _ = kill_process(orphan, Signal::KILL);
        eventually("is it reaped", || {
            !fs::exists(format!("/proc/{orphan}")).unwrap_or(true)
        });
    }
    eventually("is it without zombies", || {
        !children(daemon).iter().any(is_zombie)
    });
    kill_process(daemon, Signal::TERM).expect("a living daemon");
    let status = replica.wait(SOON);
    assert_eq!(status.code(), Some(0), "{}", replica.log());
    let log = replica.log();
    assert!(
        !log.contains("attempt failed") && !log.contains("unknown"),
        "{log}"
    );
}

#[test]
fn as_pid_1_it_passes_a_stop_on_to_jobs_as_term() {
    let _machine = together();
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let (_dir, fleet) = fleet(STAYS);
        let (mut replica, daemon) = start_as_pid_one(&fleet, &["--mount-proc"]);
        replica.wait_for_line(&["is up"]);
        kill_process(daemon, signal).expect("a living daemon");
        let status = replica.wait(SOON);
        assert_eq!(status.code(), Some(0), "{}", replica.log());
        replica.wait_for_line(&["was told to end"]);
    }
}

#[test]
fn a_proc_of_another_namespace_is_not_taken_for_its_own() {
    let _machine = together();
    let (_dir, fleet) = fleet(ORPHANS);
    let (mut replica, daemon) = start_as_pid_one(&fleet, &[]);
    replica.wait_for_line(&["WARN", "runs on", "another PID namespace"]);
    replica.wait_for_line(&["WARN", "stay zombies"]);
    replica.wait_for_line(&["attempt succeeded"]);
    kill_process(daemon, Signal::TERM).expect("a living daemon");
    assert_eq!(replica.wait(SOON).code(), Some(0), "{}", replica.log());
}
