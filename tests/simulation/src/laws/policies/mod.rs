//! Each policy by its decisive case, on several replicas, over many seeds.

mod busy;
mod late;
mod orders;
mod placement;
mod retries;
mod sequel;

use std::time::Duration;

use soloist::scheduler::dependents_of;
use soloist::scheduler::job::{Job, JobName};
use soloist::scheduler::lease::{Cause, Late, Order, OrderAnswer, OrderKind, Outcome, RunId};
use soloist::scheduler::policy::Tags;
use soloist::scheduler::time::Timestamp;
use soloist::store::AttemptRecord;
use uuid::Uuid;

use crate::checks::check_shards;
use crate::jobs::job;
use crate::seeds::for_seeds;
use crate::world::{Chance, Run, World};

/// When a world begins.
const GENESIS: i64 = 1_795_212_000;

/// Seeds of an ordinary run: each of these cases is set up, and chance has little to add.
const SEEDS: u64 = 25;

fn for_each_seed(law: impl Fn(u64)) {
    for_seeds(SEEDS, law);
}

/// So many seconds after the beginning.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(GENESIS + second)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Three replicas that have run a table for 10 s.
fn three(seed: u64, jobs: Vec<Job>, length: fn(&mut Chance) -> Duration) -> World {
    let mut world = World::new(seed, jobs, length);
    (0..3).for_each(|_| {
        world.start();
    });
    world.run_for(seconds(10));
    world
}

/// All replicas are gone for so long.
fn outage(world: &mut World, length: Duration) {
    let replicas = world.replicas.len();
    (0..replicas).for_each(|replica| world.crash(replica));
    world.run_for(length);
    (0..replicas).for_each(|replica| world.revive(replica));
}

/// The ledger of a job, oldest first.
fn lines(world: &World, name: &str) -> Vec<AttemptRecord> {
    let mut lines = world.history();
    lines.retain(|line| line.job.as_str() == name);
    lines.reverse();
    lines
}

/// How each occurrence ended that the ledger has a line of its own for: seconds after the
/// beginning, outcome, cause.
fn ends(world: &World, name: &str) -> Vec<(i64, Outcome, Option<Cause>)> {
    let lines = lines(world, name);
    let last = lines
        .iter()
        .filter(|line| line.detail.is_final() && line.detail.since.is_none());
    let mut ends: Vec<_> = last
        .map(|line| {
            let second = line.scheduled_at.as_second() - GENESIS;
            (second, line.outcome, line.detail.cause)
        })
        .collect();
    ends.sort_by_key(|(second, ..)| *second);
    ends
}

/// What the ledger has of why attempts began late: those that began more than a second after
/// their instants, oldest first.
fn late(world: &World, name: &str) -> Vec<(Timestamp, Option<Late>)> {
    let lines = lines(world, name).into_iter();
    let begun = lines.filter(|line| line.attempt > 0);
    let late = begun.filter(|line| line.started_at > line.scheduled_at + seconds(1));
    late.map(|line| (line.scheduled_at, line.detail.late))
        .collect()
}

/// The ranges of a job's ledger.
fn ranges(world: &World, name: &str) -> Vec<(Timestamp, Timestamp, Outcome, Option<Cause>)> {
    let lines = lines(world, name).into_iter();
    lines
        .filter_map(|line| {
            let since = line.detail.since?;
            Some((since, line.scheduled_at, line.outcome, line.detail.cause))
        })
        .collect()
}

/// The attempts of a job in the order of their starts.
fn runs<'w>(world: &'w World, name: &str) -> Vec<&'w Run> {
    let mut runs: Vec<_> = world.runs.values().filter(|run| run.job == name).collect();
    runs.sort_by_key(|run| run.started);
    runs
}

/// Alice asks for something.
fn order(world: &mut World, name: &str, what: OrderKind) -> OrderAnswer {
    let name = JobName::new(name).expect("a name");
    let id = RunId::new(Uuid::from_u128(u128::from(world.chance.draw())));
    let known = world.jobs.iter().find(|job| job.name == name);
    let table: Vec<Job> = world.jobs.iter().map(|job| (**job).clone()).collect();
    let order = Order {
        retention: known.expect("a job of the table").retention,
        what,
        by: "alice@desk".to_owned(),
        id,
        dependents: dependents_of(&name, &table),
        job: name,
    };
    world.order(order)
}

fn zone(name: &str) -> Tags {
    Tags::from([("zone".to_owned(), name.to_owned())])
}
