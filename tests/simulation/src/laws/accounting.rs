//! The sum rule: every due instant of every job has one recorded fate, and nothing else has one,
//! whatever dies, is lost, is edited, paused, triggered or killed on the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::{Job, JobName};
use soloist::scheduler::lease::{Order, OrderAnswer, OrderKind, RunId};
use soloist::scheduler::time::Timestamp;
use soloist::scheduler::{EndedHow, dependents_of};
use soloist::store::{AttemptRecord, JobState, Standing};
use uuid::Uuid;

use crate::accounts::{Life, check_lines, policies};
use crate::jobs::{SCHEDULES, drawn_job, follower, utc, zone};
use crate::seeds::for_seeds;
use crate::world::{Chance, Network, World};

/// Seeds of an ordinary run; each world lives for half an hour and more.
const SEEDS: u64 = 80;

fn snapshot(world: &World) -> Vec<JobState> {
    world.snapshot().jobs
}

fn state_of(world: &World, name: &JobName) -> Option<JobState> {
    snapshot(world).into_iter().find(|state| state.job == *name)
}

fn begin(world: &World, job: &Job) -> Option<Life> {
    let state = state_of(world, &job.name)?;
    Some(Life::from(&state, job))
}

/// Holds the ledger of a job to the sum rule.
fn check(world: &World, life: &Life, job: &Job) {
    let state = state_of(world, &job.name).expect("it is known");
    let lines: Vec<_> = world
        .history()
        .into_iter()
        .filter(|line| line.job == job.name)
        .collect();
    check_lines(&state, &lines, life, job);
}

/// The instants of a job whose occurrences are over, but for those in a range.
fn over(world: &World, name: &str) -> BTreeMap<Timestamp, u32> {
    let mut over: BTreeMap<Timestamp, BTreeMap<u32, u32>> = BTreeMap::new();
    for line in world.history() {
        let single = line.detail.is_final() && line.detail.since.is_none();
        if line.job.as_str() == name && single {
            let shard = line.detail.shard.map_or(0, |(shard, _)| shard);
            *over
                .entry(line.scheduled_at)
                .or_default()
                .entry(shard)
                .or_default() += 1;
        }
    }
    let state = state_of(world, &JobName::new(name).expect("a name"));
    let attempts = state.iter().flat_map(|state| &state.attempts);
    for attempt in attempts.filter(|one| !matches!(one.standing, Standing::Ended(_))) {
        over.remove(&attempt.scheduled_at);
    }
    over.into_iter()
        .map(|(at, shards)| (at, shards.values().copied().max().unwrap_or(0)))
        .collect()
}

/// What comes after other jobs has one fate for each instant at which all of them are over.
fn check_followers(world: &World) {
    for job in world.jobs.iter().filter(|job| !job.after.is_empty()) {
        let parents: Vec<_> = job
            .after
            .iter()
            .map(|name| over(world, name.as_str()))
            .collect();
        let state = state_of(world, &job.name);
        let mut own = over(world, job.name.as_str());
        let attempts = state.iter().flat_map(|state| &state.attempts);
        for one in attempts.filter(|one| !matches!(one.standing, Standing::Ended(_))) {
            *own.entry(one.scheduled_at).or_default() += 1;
        }
        for one in state.iter().flat_map(|state| &state.waiting) {
            *own.entry(one.scheduled_at).or_default() += 1;
        }
        for (at, count) in &own {
            assert_eq!(*count, 1, "{} of {at}\n{state:?}", job.name);
            let known = parents.iter().any(|parent| parent.contains_key(at));
            assert!(known, "{} of {at} came after nothing", job.name);
        }
        let first = &parents[0];
        let all = first
            .keys()
            .filter(|at| parents.iter().all(|one| one.contains_key(at)));
        for at in all {
            assert!(
                own.contains_key(at),
                "{} of {at} has no fate\n{state:?}",
                job.name
            );
        }
    }
}

fn order(world: &mut World, name: &JobName, what: OrderKind) -> OrderAnswer {
    let id = RunId::new(Uuid::from_u128(u128::from(world.chance.draw())));
    let job = world.jobs.iter().find(|job| job.name == *name);
    let table: Vec<Job> = world.jobs.iter().map(|job| (**job).clone()).collect();
    let order = Order {
        job: name.clone(),
        what,
        by: "alice@desk".to_owned(),
        id,
        retention: job.expect("a job of the table").retention,
        dependents: dependents_of(name, &table),
    };
    world.order(order)
}

/// All replicas stop, the schedule of a job is another one, and they start again.
fn edit(world: &mut World, lives: &mut [Life], number: usize) {
    let replicas = world.replicas.len();
    (0..replicas).for_each(|replica| world.crash(replica));
    world.run_for_about(1, 200_000);
    let name = world.jobs[number].name.clone();
    let before = state_of(world, &name).expect("it is known").settled_until;
    let text = SCHEDULES[world.chance.below(SCHEDULES.len() as u64) as usize];
    let mut changed = (*world.jobs[number]).clone();
    changed.schedule = utc(name.as_str(), text);
    let identity = changed.schedule.identity();
    changed.enabled = !world.chance.percent(30);
    world.jobs[number] = Arc::new(changed);
    (0..replicas).for_each(|replica| world.revive(replica));
    // Until the change is known to the ledger.
    for _ in 0..100 {
        world.run_for(Duration::from_secs(1));
        if state_of(world, &name).is_some_and(|state| state.schedule == identity) {
            break;
        }
    }
    let life = &mut lives[number];
    let former = life.schedule();
    let lines = world.history();
    let of_former = |line: &&AttemptRecord| {
        let its = line.detail.schedule.as_ref() == Some(&former);
        line.job == name && its && line.detail.since >= Some(before)
    };
    let until = lines
        .iter()
        .filter(of_former)
        .map(|line| line.scheduled_at)
        .max();
    life.edit(utc(name.as_str(), text), until.unwrap_or(before));
}

fn mishap(world: &mut World, lives: &mut [Life]) {
    let replicas = world.replicas.len() as u64;
    let one = world.chance.below(replicas) as usize;
    let number = world.chance.below(lives.len() as u64) as usize;
    let name = world.jobs[number].name.clone();
    match world.chance.below(12) {
        0 | 1 => {
            world.crash(one);
            world.run_for_about(0, 40_000);
            world.revive(one);
        }
        2 => {
            (0..3).for_each(|replica| world.crash(replica));
            world.run_for_about(0, 400_000);
            (0..3).for_each(|replica| world.revive(replica));
        }
        3 => {
            world.partition(true);
            world.run_for_about(0, 200_000);
            world.partition(false);
        }
        4 => {
            let length = Duration::from_millis(world.chance.below(60_000));
            world.freeze(one, length);
        }
        5 => {
            world.drain(one);
            world.run_for_about(0, 20_000);
            world.crash(one);
            world.revive(one);
        }
        6 => edit(world, lives, number),
        7 | 8 => {
            order(world, &name, OrderKind::Trigger);
        }
        9 => {
            order(world, &name, OrderKind::Pause);
            world.run_for_about(0, 100_000);
            order(world, &name, OrderKind::Resume);
        }
        10 => {
            order(world, &name, OrderKind::Kill);
        }
        _ => {
            world.network = Network {
                lose_request: 5,
                lose_reply: 5,
                slowest_ms: 100,
                ..Network::default()
            }
        }
    }
}

#[test]
fn every_due_instant_has_one_recorded_fate() {
    for_seeds(SEEDS, |seed| {
        let mut chance = Chance::new(seed ^ 0x5EED);
        let scheduled = (0..4).map(|number| drawn_job(&mut chance, number));
        let mut jobs: Vec<_> = scheduled.collect();
        jobs.push(follower("one-before", &["job0"]));
        jobs.push(follower("two-before", &["job0", "job1"]));
        jobs.push(follower("chained", &["one-before"]));
        let mut world = World::new(seed, jobs, |chance| {
            let longest = if chance.percent(20) { 90_000 } else { 3_000 };
            Duration::from_millis(1 + chance.below(longest))
        });
        world.fate = |chance, _| match chance.percent(30) {
            true => EndedHow::Failed,
            false => EndedHow::Succeeded,
        };
        for name in ["a", "b", "c"] {
            let most = 1 + chance.below(6) as u32;
            let most = Some(most).filter(|_| chance.percent(30));
            world.start_with(zone(name), most);
        }
        world.run_for(Duration::from_secs(20));
        let jobs = world.jobs.clone();
        let scheduled = jobs.iter().filter(|job| job.after.is_empty());
        let lives = scheduled.map(|job| begin(&world, job));
        let mut lives: Vec<_> = lives.collect::<Option<_>>().expect("all are known by now");
        for _ in 0..12 {
            world.run_for_about(0, 60_000);
            mishap(&mut world, &mut lives);
        }
        world.network = Network {
            slowest_ms: 5,
            ..Network::default()
        };
        world.run_for(Duration::from_secs(150));
        for (life, job) in lives.iter().zip(world.jobs.clone()) {
            check(&world, life, &job);
        }
        crate::checks::check_shards(&world);
        check_followers(&world);
        let now = Timestamp::from_millis(1_795_212_000_000) + world.now;
        let enabled = |job: &&Arc<Job>| job.after.is_empty() && job.enabled;
        for job in world.jobs.iter().filter(enabled) {
            let state = state_of(&world, &job.name).expect("it is known");
            let behind = now.saturating_since(state.settled_until);
            assert!(
                behind < Duration::from_secs(65) + job.starting_deadline,
                "{behind:?} behind: {}\n{state:?}",
                policies(job)
            );
        }
    });
}
