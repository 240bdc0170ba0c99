//! Whoever could have ended a job's processes died with the daemon: the next life of the replica
//! finds what is left over, and ends it before it starts anything.

use std::time::Duration;

use test_support::family::Kind;
use test_support::fleet::{Replica, SOON};
use test_support::machine::alone;
use test_support::process::{Deaths, Process, Signal};
use test_support::redis::fresh_namespace;

use crate::figures::{Figures, millis};
use crate::scene::{
    Family, family_job, fleet, guardian_of, keepers_of, probe_job, processes_of, table,
    wait_for_families,
};

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

#[test]
fn what_an_earlier_life_left_over_is_dead_before_the_next_starts_anything() {
    let _machine = alone();
    let namespace = fresh_namespace();
    let scheduler = "lease_ttl = \"2s\"";
    let jobs = KINDS.map(|kind| family_job(kind, ""));
    let fleet = fleet("", &[]);
    fleet.set_table(&table(&namespace, scheduler, &jobs));

    let mut first_life = fleet.start("a");
    let families = wait_for_families(&fleet, &KINDS, |_| true);
    // Others of that name, which live: in this fleet, and in another one.
    let neighbours = [
        (namespace.clone(), Kind::Plain),
        (fresh_namespace(), Kind::Setsid),
    ];
    let mut living = Vec::new();
    for (namespace, kind) in neighbours {
        let job = family_job(kind, "").replace("[jobs.", "[jobs.neighbour-");
        fleet.set_table(&table(&namespace, scheduler, &[job]));
        let replica = fleet.start("a");
        let name = format!("neighbour-{}", kind.name());
        let members = fleet.wait_for_members(SOON, |members| {
            let mut found = members.to_vec();
            found.retain(|member| member.job == name);
            (found.len() == kind.size()).then_some(found)
        });
        living.push((replica, members));
    }

    kill_all_at_once(&first_life, families.len());
    first_life.wait(SOON);
    let left: Vec<Process> = marked(&families);
    let deaths = Deaths::watch(&left, SOON);
    std::thread::sleep(Duration::from_millis(100));
    let left_over = left.iter().filter(|process| process.is_alive()).count();
    let all = processes_of(&families);
    let unmarked = all.iter().filter(|process| process.is_alive()).count() - left_over;
    eprintln!(
        "daemon, guardian and keepers killed at once: {left_over} of {} marked processes live on, \
         and {unmarked} without an environment",
        left.len()
    );
    assert!(
        left_over > 0,
        "nothing is left over, so that nothing is shown"
    );

    fleet.set_table(&table(
        &namespace,
        scheduler,
        &[vec![probe_job("tick", 1)], jobs.to_vec()].concat(),
    ));
    let second_life = fleet.start("a");
    let first_start = fleet.wait_for_runs(SOON, |runs| Some(runs.first()?.started_ns));
    let ended = deaths.join();
    let mut margin = Figures::default();
    margin.add(ended.last(left.clone()).map(|died| first_start - died));
    eprintln!(
        "next life: from the last death to the first start {}",
        margin.min().map_or("NEVER".to_owned(), millis)
    );
    assert_eq!(ended.survivors(), [], "{}", second_life.tail());
    assert!(margin.min() > Some(0), "started beside what was left over");
    let reached: Vec<Process> = all
        .into_iter()
        .filter(|process| process.is_alive())
        .collect();
    eprintln!(
        "next life: {} processes without an environment live on",
        reached.len()
    );
    for (replica, members) in &living {
        for member in members {
            assert!(
                member.process.is_alive(),
                "a neighbour's: {member:#?}\n{}",
                second_life.tail()
            );
        }
        assert!(replica.process().is_alive());
    }
}
