//! The daemon as the first process of a container, with nobody above it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_support::fleet::{Fleet, Replica, SOON};
use test_support::machine::{stood_still, together};
use test_support::process::{Deaths, Process, Signal};

use crate::scene::{family_job, fleet, probe_job};
use test_support::family::Kind;

/// From the death of an orphan to its last trace.
const REAPED_WITHIN: Duration = Duration::from_secs(1);

const NAMESPACES: [&str; 3] = ["--pid", "--fork", "--mount-proc"];

/// What begins a container here; none where this user may not.
fn unshare() -> Option<Vec<&'static str>> {
    let as_root = NAMESPACES.to_vec();
    let as_user = [&["--user", "--map-root-user"], &NAMESPACES[..]].concat();
    [as_root, as_user].into_iter().find(|options| {
        let mut command = Command::new("unshare");
        command.args(options).arg("true").stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// The daemon as process 1, and what it is from here.
fn start_as_init(fleet: &Fleet, options: &[&str]) -> (Replica, Process) {
    let wrapper = [&["unshare", "--kill-child"], options].concat();
    let replica = fleet.start_by(&wrapper, "a");
    replica.wait_until_ready();
    let children = replica.process().children();
    let [daemon] = children[..] else {
        panic!("one child of unshare: {children:?}");
    };
    (replica, daemon)
}

fn wait_for_orphan(daemon: Process, comm: &str) -> Process {
    let end = Instant::now() + SOON;
    loop {
        if let [orphan] = daemon.children_named(comm)[..] {
            return orphan;
        }
        assert!(Instant::now() < end, "{:?}", daemon.children());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Puts an orphan into the container, which nobody but its first process can reap.
fn put_an_orphan_into(daemon: Process) -> Process {
    let target = daemon.pid.to_string();
    let entered = Command::new("nsenter")
        .args(["--target", &target, "--pid", "--mount"])
        .args(["sh", "-c", "sleep 60 & exit 0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("nsenter stands beside unshare");
    assert!(entered.success());
    wait_for_orphan(daemon, "sleep")
}

#[test]
fn as_the_first_process_of_a_container_it_reaps_runs_and_drains() {
    let _machine = together();
    let Some(options) = unshare() else {
        eprintln!(
            "NOT SHOWN: this user may make no PID namespace (unshare --pid --fork --mount-proc), \
             so that nothing is known of the daemon as PID 1. Run this test as root."
        );
        return;
    };
    let fleet = fleet("shutdown_grace = \"0s\"", &[probe_job("tick", 1)]);
    let (mut replica, daemon) = start_as_init(&fleet, &options);
    assert!(
        daemon.status("NSpid").ends_with("\t1"),
        "{}",
        daemon.status("NSpid")
    );
    fleet.wait_for_runs(SOON, |runs| (runs.len() >= 2).then_some(()));

    let orphan = put_an_orphan_into(daemon);
    let deaths = Deaths::watch(&[orphan], SOON);
    let before = stood_still();
    orphan.signal(Signal::KILL);
    assert_eq!(deaths.join().survivors(), []);
    let reaped = Instant::now();
    while orphan.state().is_some() {
        let took = reaped.elapsed();
        let within = REAPED_WITHIN + (stood_still() - before);
        assert!(took < within, "a zombie: {orphan:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    eprintln!(
        "PID 1: an outsider's orphan was reaped {:.1?} after its death",
        reaped.elapsed()
    );
    assert_eq!(zombies_at_rest(daemon), 0);

    let after = fleet.runs().len();
    fleet.wait_for_runs(SOON, |runs| (runs.len() > after).then_some(()));
    let asked = Instant::now();
    daemon.signal(Signal::TERM);
    let status = replica.wait(SOON);
    assert_eq!(status.code(), Some(0), "{}", replica.tail());
    eprintln!("PID 1: drained with exit 0 after {:.1?}", asked.elapsed());
}

/// Jobs end each second: a zombie that stays is there at every look.
fn zombies_at_rest(daemon: Process) -> usize {
    let looks = (0..20).map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        daemon.zombies()
    });
    looks.min().unwrap_or_default()
}

#[test]
fn a_container_ends_with_its_first_process_though_jobs_are_stubborn() {
    let _machine = together();
    let Some(options) = unshare() else {
        eprintln!("NOT SHOWN: see as_the_first_process_of_a_container_it_reaps_runs_and_drains");
        return;
    };
    let jobs = [family_job(Kind::Stubborn, "kill_grace = \"500ms\"")];
    let fleet = fleet("shutdown_grace = \"0s\"", &jobs);
    let (mut replica, daemon) = start_as_init(&fleet, &options);
    let size = Kind::Stubborn.size();
    fleet.wait_for_members(SOON, |members| (members.len() == size).then_some(()));
    let below = daemon.descendants();
    assert!(below.len() >= size, "{below:?}");
    let deaths = Deaths::watch(&below, SOON);
    daemon.signal(Signal::TERM);
    let status = replica.wait(SOON);
    assert_eq!(status.code(), Some(0), "{}", replica.tail());
    assert_eq!(deaths.join().survivors(), []);
    let end = crate::scene::history(&fleet, "stubborn");
    assert_eq!(end[0]["outcome"], "handed_over", "{end:#?}");
}
