//! Whoever could have ended a job's processes died with the daemon: the next life of the replica
//! finds what is left over, and ends it before it starts anything.

use std::process::Command;
use std::time::Duration;

use test_support::family::{Kind, Member};
use test_support::fleet::{Fleet, Replica, SOON};
use test_support::machine::together;
use test_support::process::{Deaths, Process, Signal};
use test_support::redis::fresh_namespace;

use crate::figures::millis;
use crate::scene::{
    Family, family_job, fleet, fresh_name, guardian_of, keepers_of, probe_job, processes_of, table,
    wait_for_families,
};

/// Long enough for all lives to begin: whose lease ran out would end its job by itself.
const SCHEDULER: &str = "lease_ttl = \"15s\"";

const KINDS: [Kind; 3] = [Kind::Setsid, Kind::DoubleFork, Kind::Stubborn];

/// At one instant, as far as signals can: the guardian stands still while its keepers die, so
/// that it can't clean up after them.
fn kill_all_at_once(replica: &Replica, jobs: usize) {
    let guardian = guardian_of(replica);
    let keepers = keepers_of(guardian, jobs);
    replica.process().freeze();
    guardian.freeze();
    for keeper in keepers {
        keeper.signal(Signal::KILL);
    }
    guardian.signal(Signal::KILL);
    replica.process().signal(Signal::KILL);
}

/// Those that can be known by their environment.
fn marked(families: &[Family]) -> Vec<Process> {
    let members = families.iter().flat_map(|family| &family.members);
    let marked = members.filter(|member| member.role != "bare");
    marked.map(|member| member.process).collect()
}

/// Another living daemon of the same name, with a job at work.
struct Neighbour {
    replica: Replica,
    members: Vec<Member>,
}

impl Neighbour {
    fn start(fleet: &Fleet, name: &str, namespace: &str, kind: Kind) -> Self {
        let job = family_job(kind, "").replace("[jobs.", "[jobs.neighbour-");
        fleet.set_table(&table(namespace, SCHEDULER, &[job]));
        let replica = fleet.start(name);
        let job = format!("neighbour-{}", kind.name());
        let members = fleet.wait_for_members(SOON, |members| {
            let mut found = members.to_vec();
            found.retain(|member| member.job == job);
            (found.len() == kind.size()).then_some(found)
        });
        Self { replica, members }
    }

    fn assert_untouched(&self, by: &Replica) {
        for member in &self.members {
            let alive = member.process.is_alive();
            assert!(alive, "a neighbour's: {member:#?}\n{}", by.tail());
        }
        assert!(self.replica.process().is_alive());
    }
}

/// Those of the first life that live on without anybody who could end them.
fn left_over(families: &[Family]) -> Vec<Process> {
    // What dies with the keepers does so at once; there is no event for what lives on.
    std::thread::sleep(Duration::from_millis(100));
    let mut left = marked(families);
    let of = left.len();
    left.retain(|process| process.is_alive());
    let all = processes_of(families);
    let alive = all.iter().filter(|process| process.is_alive()).count();
    eprintln!(
        "daemon, guardian and keepers killed at once: {} of {of} marked processes live on, \
         and {} without an environment",
        left.len(),
        alive - left.len()
    );
    assert!(
        !left.is_empty(),
        "nothing is left over, so that nothing is shown"
    );
    left
}

#[test]
fn what_an_earlier_life_left_over_is_dead_before_the_next_starts_anything() {
    let _machine = together();
    let namespace = fresh_namespace();
    let jobs = KINDS.map(|kind| family_job(kind, ""));
    let fleet = fleet("", &[]);
    fleet.set_table(&table(&namespace, SCHEDULER, &jobs));
    let name = fresh_name();
    let mut first_life = fleet.start(&name);
    let families = wait_for_families(&fleet, &KINDS, |_| true);
    let neighbours = [
        Neighbour::start(&fleet, &name, &namespace, Kind::Plain),
        Neighbour::start(&fleet, &name, &fresh_namespace(), Kind::Setsid),
    ];
    kill_all_at_once(&first_life, families.len());
    first_life.wait(SOON);
    let left = left_over(&families);
    let deaths = Deaths::watch(&left, SOON);
    let with_a_short_one = [vec![probe_job("tick", 1)], jobs.to_vec()].concat();
    fleet.set_table(&table(&namespace, SCHEDULER, &with_a_short_one));
    let second_life = fleet.start(&name);
    let first_start = fleet.wait_for_runs(SOON, |runs| Some(runs.first()?.started_ns));
    let ended = deaths.join();
    assert_eq!(ended.survivors(), [], "{}", second_life.tail());
    let margin = first_start - ended.last(left).expect("all are dead");
    eprintln!(
        "next life: from the last death to the first start {}",
        millis(margin)
    );
    assert!(margin > 0, "started beside what was left over");
    let beyond = processes_of(&families);
    let beyond = beyond.iter().filter(|process| process.is_alive()).count();
    eprintln!("next life: {beyond} processes without an environment live on");
    for neighbour in &neighbours {
        neighbour.assert_untouched(&second_life);
    }
}

/// What a test, or anybody, started by hand with variables like a job's.
#[test]
fn a_process_of_another_replica_s_job_is_left_alone() {
    let _machine = together();
    let fleet = fleet("", &[probe_job("tick", 1)]);
    let mut foreign = Command::new("sleep")
        .arg("60")
        .env("SOLOIST_RUN_ID", "01a1fde9-4a58-7752-9333-c59928d2f3ed")
        .env("SOLOIST_REPLICA", "another")
        .env("SOLOIST_JOB", "tick")
        .spawn()
        .expect("a program to run");
    let mut replica = fleet.start(&fresh_name());
    fleet.wait_for_runs(SOON, |runs| (!runs.is_empty()).then_some(()));
    assert!(
        foreign.try_wait().expect("a child").is_none(),
        "{}",
        replica.tail()
    );
    replica.drain();
    assert!(
        foreign.try_wait().expect("a child").is_none(),
        "{}",
        replica.tail()
    );
    foreign.kill().expect("a child");
    foreign.wait().expect("a child");
}

/// Its guardian and keepers may be woken, which is their duty anyway; what froze the daemon, a
/// debugger or an operator, has its reasons.
#[test]
fn a_frozen_daemon_of_the_same_name_stays_frozen() {
    let _machine = together();
    let fleet = fleet("", &[]);
    let name = fresh_name();
    let frozen = Neighbour::start(&fleet, &name, &fresh_namespace(), Kind::Setsid);
    frozen.replica.process().freeze();
    fleet.set_table(&table(
        &fresh_namespace(),
        SCHEDULER,
        &[probe_job("tick", 1)],
    ));
    let mut replica = fleet.start(&name);
    fleet.wait_for_runs(SOON, |runs| (!runs.is_empty()).then_some(()));
    let state = frozen.replica.process().state();
    assert_eq!(state, Some('T'), "somebody woke it:\n{}", replica.tail());
    replica.drain();
}
