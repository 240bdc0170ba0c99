//! What becomes of jobs that no table has any more, on every store: by the world's time, as a
//! month is long.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{Dependents, Order, OrderAnswer, OrderKind, RunId};
use soloist::scheduler::{Effect, Event, Purpose};
use soloist::store::JobState;
use uuid::Uuid;

use crate::engines::Engine;
use soloist_simulation::hand::Hand;
use soloist_simulation::jobs::job;
use soloist_simulation::world::World;
use test_support::machine::while_it_runs;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Signs of life are a sixth of a lease apart: a month has many.
fn seldom(name: &str, schedule: &str) -> Job {
    Job {
        lease_ttl: Duration::from_secs(3600),
        ..job(name, schedule)
    }
}

fn daily(name: &str) -> Job {
    seldom(name, "0 0 12 * * *")
}

fn set_table(world: &mut World, jobs: &[Job]) {
    world.jobs = jobs.iter().cloned().map(Arc::new).collect();
}

/// Replaces a replica by one that has the world's table.
fn restart(world: &mut World, number: usize) {
    world.crash(number);
    world.revive(number);
}

fn known(world: &World) -> Vec<String> {
    let jobs = world.snapshot().jobs;
    jobs.iter().map(|state| state.job.to_string()).collect()
}

fn state(world: &World, name: &str) -> JobState {
    let jobs = world.snapshot().jobs.into_iter();
    let mut found = jobs.filter(|state| state.job.as_str() == name);
    found.next().expect("the ledger knows it")
}

fn lines_of(world: &World, name: &str) -> usize {
    let lines = world.history();
    lines
        .iter()
        .filter(|line| line.job.as_str() == name)
        .count()
}

fn order(world: &mut World, what: OrderKind, name: &str) {
    let job = job(name, "@manual");
    let answer = world.order(Order {
        job: job.name,
        what,
        by: "alice@desk".to_owned(),
        id: RunId::new(Uuid::from_u128(7)),
        retention: job.retention,
        dependents: Dependents::default(),
    });
    assert_ne!(answer, OrderAnswer::Unknown);
}

/// What has to have come by now. A real server takes the machine's time: a call that it lets time out comes
/// later in the world's.
fn came<T: PartialEq + Debug>(what: &str, came: T, expected: T) -> Result<(), String> {
    match came == expected {
        true => Ok(()),
        false => Err(format!("{what}: {came:?}, and not {expected:?}")),
    }
}

/// A job leaves the table, is kept for a month, is forgotten with all that it left, and is a new
/// one when it comes back. Others stay: those in the table, and what is paused or was asked for.
fn forgets_what_no_table_has(engine: &Engine) -> Result<(), String> {
    let second = |_: &mut _| Duration::from_secs(1);
    let all = ["stays", "goes", "paused", "asked"].map(daily);
    let mut world = World::on(engine.premises(), 1, all.to_vec(), second);
    world.start();
    world.start();
    world.run_for(3 * DAY);
    came("lines of what goes", lines_of(&world, "goes"), 3)?;
    (0..2).for_each(|number| world.crash(number));
    order(&mut world, OrderKind::Pause, "paused");
    order(&mut world, OrderKind::Trigger, "asked");
    set_table(&mut world, &all[..1]);
    (0..2).for_each(|number| world.revive(number));

    // The mark may be a week older than the last day in the table.
    world.run_for(22 * DAY);
    assert_eq!(known(&world).len(), 4, "within the month all are kept");
    world.run_for(10 * DAY);
    let left = ["asked", "paused", "stays"].map(str::to_owned).to_vec();
    came("jobs", known(&world), left)?;
    assert_eq!(lines_of(&world, "goes"), 0, "its lines went with it");
    came("lines of what stays", lines_of(&world, "stays"), 35)?;
    let told = |number: usize| {
        let notices = world.replicas[number].notices.iter();
        notices.filter(|line| line.contains("Forgotten")).count()
    };
    assert_eq!(told(0) + told(1), 1, "by one of them, once");

    let before = world.runs.len();
    set_table(&mut world, &all[..2]);
    restart(&mut world, 0);
    world.run_for(Duration::from_secs(3600));
    let ran = &world.runs.values().collect::<Vec<_>>()[before..];
    assert!(ran.is_empty(), "a new job never runs its past: {ran:?}");
    assert!(state(&world, "goes").attempts.is_empty());
    world.run_for(2 * DAY);
    let runs_on = lines_of(&world, "goes") >= 1;
    came("it runs on from there", runs_on, true)
}

#[test]
fn a_job_that_no_table_has_is_forgotten_after_a_month_in_memory() {
    while_it_runs(|| forgets_what_no_table_has(&Engine::memory()));
}

#[test]
fn a_job_that_no_table_has_is_forgotten_after_a_month_on_sqlite() {
    while_it_runs(|| forgets_what_no_table_has(&Engine::sqlite()));
}

#[test]
fn a_job_that_no_table_has_is_forgotten_after_a_month_on_redis() {
    while_it_runs(|| forgets_what_no_table_has(&Engine::redis()));
}

/// Two tables at one ledger, each of which would sweep what the other has.
fn two_tables() -> World {
    let second = |_: &mut _| Duration::from_secs(1);
    let mut world = World::new(1, vec![daily("a")], second);
    world.start();
    // Their rounds are not in step.
    world.run_for(DAY / 8);
    set_table(&mut world, &[daily("b")]);
    world.start();
    world.run_for(2 * DAY);
    assert_eq!(known(&world), ["a", "b"]);
    world
}

/// The ledger knows all, and knew them all the time: what it forgot would have come back as new.
fn assert_nothing_was_forgotten(world: &World) {
    assert_eq!(known(world), ["a", "b"]);
    for replica in &world.replicas {
        let told = replica.notices.iter();
        let told = told.filter(|line| line.contains("NewJob") || line.contains("Forgotten"));
        assert_eq!(told.count(), 1, "at its start: {:#?}", replica.notices);
    }
}

#[test]
fn what_a_living_replica_has_is_never_forgotten_whatever_the_clock_does() {
    let mut world = two_tables();
    let month_ms = 40 * 24 * 3600 * 1000;
    let ahead = (0..12).map(|_| month_ms);
    for by in ahead.chain([-12 * month_ms, 12 * month_ms]) {
        world.step_store_clock(by);
        // Each time at another moment of their rounds.
        world.run_for(3 * DAY + DAY / 9);
        assert_nothing_was_forgotten(&world);
    }
    world.run_for(40 * DAY);
    assert_nothing_was_forgotten(&world);
}

#[test]
fn what_a_living_replica_has_is_never_forgotten_after_its_host_slept_for_months() {
    let mut world = two_tables();
    for _ in 0..3 {
        (0..2).for_each(|number| world.freeze(number, 60 * DAY));
        world.run_for(63 * DAY);
        assert_nothing_was_forgotten(&world);
    }
}

/// A job whose enrolment failed while it was to be asked about anew waits twice.
#[test]
fn a_job_that_is_to_be_enrolled_twice_is_not_so_in_one_batch() {
    let mut hand = Hand::new(job("m", "@manual"), Purpose::Table);
    let asked = |hand: &mut Hand| {
        let batches = hand.turn().into_iter().filter_map(|effect| match effect {
            Effect::Register(jobs) => Some(jobs),
            _ => None,
        });
        batches.collect::<Vec<_>>()
    };
    hand.tell(Event::PauseChanged);
    let sent = asked(&mut hand).pop().expect("it asks");
    hand.tell(Event::PauseChanged);
    hand.tell(Event::Registered {
        jobs: sent,
        sent: hand.boot(),
        result: Err("no answer".to_owned()),
    });
    hand.now += Duration::from_secs(2);
    let batches = asked(&mut hand);
    assert_eq!(batches.len(), 2, "{batches:?}");
    assert!(batches.iter().all(|batch| batch.len() == 1), "{batches:?}");
}
