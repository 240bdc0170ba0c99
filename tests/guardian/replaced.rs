//! Those who watch over jobs are struck themselves, and the daemon lives: a guardian is replaced
//! or woken, and the job of a lost keeper ends.

use std::collections::BTreeMap;
use std::time::Duration;

use test_support::family::Kind;
use test_support::fleet::{Fleet, SOON, now_ns};
use test_support::machine::together;
use test_support::probe::Run;
use test_support::process::{Deaths, Process, Signal};

use crate::figures::{Figures, Since, nanos};
use crate::scene::{
    Family, family_job, field_ns, fleet, fresh_name, guardian_of, guardian_other_than, history,
    instant_ns, keepers_of, probe_job, processes_of, shell_job, wait_for_families,
    wait_for_outcome,
};

/// How long a try is repeated for its figures.
const TRIES: usize = 3;

/// A job that is due while the guardian is frozen.
const START_LIMIT: Duration = Duration::from_secs(3);

/// The processes of a job whose keeper was killed.
const DEATH_LIMIT: Duration = Duration::from_secs(1);

/// From a guardian's death to its successor's first sight.
const REPLACEMENT_LIMIT: Duration = Duration::from_secs(3);

/// Jobs that start all at once, and how many guardians die meanwhile.
const STORM_JOBS: usize = 20;
const STORM_STRIKES: i128 = 6;

/// The first run of a job that fell due after an instant.
fn due_after(runs: &[Run], job: &str, after_ns: i128) -> Option<Run> {
    let due = |run: &&Run| run.job == job && instant_ns(&run.scheduled_at) > after_ns;
    runs.iter().find(due).cloned()
}

/// How late the first occurrence after that was started, but for what the machine stood still.
fn next_start(fleet: &Fleet, job: &str, since: Since) -> i128 {
    let run = fleet.wait_for_runs(SOON, |runs| due_after(runs, job, since.at_ns));
    run.started_ns - instant_ns(&run.scheduled_at) - since.still_ns()
}

#[test]
fn a_killed_guardian_is_replaced_and_touches_no_running_job() {
    let _machine = together();
    let fleet = fleet("", &[probe_job("long", 2500), probe_job("tick", 1)]);
    let mut replica = fleet.start(&fresh_name());
    let (mut replaced, mut started) = (Figures::default(), Figures::default());
    for _try in 0..TRIES {
        let from_ns = now_ns();
        let long = fleet.wait_for_runs(SOON, |runs| due_after(runs, "long", from_ns));
        let guardian = guardian_of(&replica);
        let killed = Since::now();
        guardian.signal(Signal::KILL);
        guardian_other_than(&replica, Some(guardian));
        replaced.add(Some(killed.ran_ns()));
        started.add(Some(next_start(&fleet, "tick", killed)));
        let ended_ns = fleet.wait_for_runs(SOON, |runs| {
            runs.iter().find(|run| run.token == long.token)?.ended_ns
        });
        assert!(ended_ns - long.started_ns >= 2_500_000_000, "cut short");
        let end = wait_for_outcome(&fleet, "long", |attempt| {
            attempt["scheduled_at"] == long.scheduled_at.as_str()
        });
        assert_eq!(
            (&end["attempt"], &end["outcome"]),
            (&1.into(), &"succeeded".into()),
            "{end:#}"
        );
    }
    replica.drain();
    eprintln!(
        "kill -9 of the guardian: replaced after {}",
        replaced.tell()
    );
    eprintln!(
        "kill -9 of the guardian: next job started late by {}",
        started.tell()
    );
    replaced.assert_within("a new guardian", REPLACEMENT_LIMIT);
    started.assert_within("the next job", START_LIMIT);
}

/// Guardians die while attempts are being handed to them: none of these hangs for ever.
#[test]
fn guardians_that_die_in_the_middle_of_starts_leave_no_attempt_hanging() {
    let _machine = together();
    let jobs: Vec<String> = (0..STORM_JOBS)
        .map(|number| shell_job(&format!("job-{number}"), "sleep 0.2", ""))
        .collect();
    let fleet = fleet("", &jobs);
    let mut replica = fleet.start(&fresh_name());
    wait_for_outcome(&fleet, "job-0", |_| true);
    let mut guardian = guardian_of(&replica);
    for strike in 0..STORM_STRIKES {
        // Just after the beginning of a second, when all jobs start.
        let into_second = strike * 3_000_000;
        let now = now_ns();
        let next = (now / 1_000_000_000 + 1) * 1_000_000_000 + into_second;
        std::thread::sleep(Duration::from_nanos(u64::try_from(next - now).unwrap_or(0)));
        guardian.signal(Signal::KILL);
        guardian = guardian_other_than(&replica, Some(guardian));
    }
    let after_ns = now_ns();
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..STORM_JOBS {
        let job = format!("job-{number}");
        wait_for_outcome(&fleet, &job, |attempt| {
            attempt["outcome"] == "succeeded" && field_ns(attempt, "scheduled_at") > after_ns
        });
        for attempt in history(&fleet, &job) {
            if attempt["outcome"] == "failed" {
                let reason = attempt["reason"].as_str().unwrap_or_default();
                *failed.entry(reason.to_owned()).or_default() += 1;
            }
        }
    }
    eprintln!(
        "{STORM_STRIKES} guardians killed as {STORM_JOBS} jobs started: all run again; failed: {failed:#?}"
    );
    replica.drain();
}

#[test]
fn a_job_of_a_killed_guardian_still_dies_with_the_daemon() {
    let _machine = together();
    let mut died = Figures::default();
    for _try in 0..TRIES {
        let jobs = Kind::ALL.map(|kind| family_job(kind, ""));
        let fleet = fleet("", &jobs);
        let replica = fleet.start(&fresh_name());
        let families = wait_for_families(&fleet, &Kind::ALL, |_| true);
        let guardian = guardian_of(&replica);
        guardian.signal(Signal::KILL);
        guardian_other_than(&replica, Some(guardian));
        died.add(struck(&families, || {
            replica.process().signal(Signal::KILL);
        }));
    }
    eprintln!(
        "guardian replaced, then kill -9 of the daemon: {}",
        died.tell()
    );
    died.assert_within("guardian replaced, daemon killed", DEATH_LIMIT);
}

/// From a strike to the last death in these families, but for what the machine stood still.
fn struck(families: &[Family], strike: impl FnOnce()) -> Option<i128> {
    let members = processes_of(families);
    let deaths = Deaths::watch(&members, DEATH_LIMIT * 3);
    let struck_ns = now_ns();
    strike();
    let ended = deaths.join();
    let last = ended.last(members);
    last.map(|died| died - struck_ns - nanos(ended.still()))
}

#[test]
fn jobs_start_and_go_on_though_the_guardian_was_frozen() {
    let _machine = together();
    let jobs = [family_job(Kind::Setsid, ""), probe_job("tick", 1)];
    let fleet = fleet("shutdown_grace = \"0s\"", &jobs);
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &[Kind::Setsid], |_| true);
    let mut started = Figures::default();
    for _try in 0..TRIES {
        // It may be woken at once: nobody waits for it to stand still.
        let frozen = Since::now();
        guardian_of(&replica).signal(Signal::STOP);
        started.add(Some(next_start(&fleet, "tick", frozen)));
    }
    eprintln!(
        "guardian frozen: next job started late by {}",
        started.tell()
    );
    started.assert_within("guardian frozen: the next job", START_LIMIT);
    assert_eq!(
        families[0].alive().len(),
        families[0].kind.size(),
        "{}",
        replica.tail()
    );
    replica.drain();
}

/// The keeper of each family.
fn keeper_of(family: &Family, keepers: &[Process]) -> Process {
    let leader = family.of_role("leader");
    let found = keepers
        .iter()
        .find(|keeper| keeper.descendants().contains(&leader));
    *found.expect("each job's leader descends from a keeper")
}

#[test]
fn a_killed_keepers_job_dies_as_a_whole_and_its_attempt_failed() {
    let _machine = together();
    let jobs = Kind::ALL.map(|kind| family_job(kind, ""));
    let fleet = fleet("", &jobs);
    let replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &Kind::ALL, |_| true);
    let keepers = keepers_of(guardian_of(&replica), families.len());
    let mut died = Figures::default();
    for family in &families {
        let keeper = keeper_of(family, &keepers);
        let took = struck(std::slice::from_ref(family), || {
            keeper.signal(Signal::KILL);
        });
        let text = took.map_or("NEVER".to_owned(), crate::figures::millis);
        eprintln!(
            "kill -9 of a keeper, {}: its job dead after {text}",
            family.kind.name()
        );
        died.add(took);
    }
    died.assert_within("kill -9 of a keeper", DEATH_LIMIT);
    for family in &families {
        let end = wait_for_outcome(&fleet, family.kind.name(), |attempt| {
            attempt["run_id"] == family.members[0].run_id.as_str()
        });
        assert_eq!(end["outcome"], "failed", "{end:#}\n{}", replica.tail());
        let reason = end["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "a reason is told: {end:#}");
        eprintln!("kill -9 of a keeper, {}: {reason}", family.kind.name());
    }
    // The next occurrences of all jobs come to life.
    let killed: Vec<&String> = families
        .iter()
        .map(|family| &family.members[0].run_id)
        .collect();
    wait_for_families(&fleet, &Kind::ALL, |member| {
        !killed.contains(&&member.run_id)
    });
    assert!(replica.process().is_alive());
}

#[test]
fn a_frozen_keeper_costs_no_start_and_its_job_goes_on() {
    let _machine = together();
    let fleet = fleet(
        "shutdown_grace = \"0s\"",
        &[
            family_job(Kind::Setsid, "timeout = \"4s\""),
            probe_job("tick", 1),
        ],
    );
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &[Kind::Setsid], |_| true);
    let family = &families[0];
    let guardian = guardian_of(&replica);
    let keepers: Vec<Process> = guardian.children_named("job-keeper");
    keeper_of(family, &keepers).signal(Signal::STOP);
    let frozen = Since::now();
    let late = next_start(&fleet, "tick", frozen);
    let mut started = Figures::default();
    started.add(Some(late));
    started.assert_within("keeper frozen: the next job", START_LIMIT);
    // It was woken, or its timeout would never come.
    let end = wait_for_outcome(&fleet, "setsid", |attempt| {
        attempt["run_id"] == family.members[0].run_id.as_str()
    });
    assert_eq!(end["outcome"], "timed_out", "{end:#}");
    assert_eq!(family.alive(), []);
    let over = instant_ns(end["ended_at"].as_str().expect("an instant"))
        - instant_ns(end["started_at"].as_str().expect("an instant"));
    eprintln!(
        "keeper frozen: a timeout of 4 s was over after {}",
        crate::figures::millis(over)
    );
    assert!(over < 6_000_000_000 + frozen.still_ns(), "{end:#}");
    replica.drain();
}
