//! The sum rule: every due instant of every job has one recorded fate, and nothing else has one,
//! whatever dies, is lost, is edited, paused, triggered or killed on the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::{Job, JobName, OnCrash};
use soloist::scheduler::lease::{Order, OrderAnswer, OrderKind, RunId};
use soloist::scheduler::policy::{CatchUp, Concurrency, Retry, Tags};
use soloist::scheduler::schedule::Schedule;
use soloist::scheduler::time::Timestamp;
use soloist::scheduler::{EndedHow, dependents_of};
use soloist::store::{AttemptRecord, JobState, Standing};
use uuid::Uuid;

use crate::laws::{for_seeds, job, utc};
use crate::world::{Chance, Network, World};

const SCHEDULES: [&str; 5] = [
    "*/10 * * * * *",
    "*/30 * * * * *",
    "0 * * * * *",
    "15,20 * * * * *",
    "*/7 * * * * *",
];

/// Seeds of an ordinary run; each world lives for half an hour and more.
const SEEDS: u64 = 80;

/// A part of a job's life: this schedule was in force until then.
struct Segment {
    schedule: Schedule,
    until: Timestamp,
}

/// What a test knows of a job beside the ledger.
pub(crate) struct Life {
    /// Accounts begin after this.
    since: Timestamp,
    /// Schedules that were in force before the present one.
    former: Vec<Segment>,
    schedule: Schedule,
}

fn drawn_job(chance: &mut Chance, number: usize) -> Job {
    let schedule = SCHEDULES[chance.below(SCHEDULES.len() as u64) as usize];
    let catch_up = match chance.below(3) {
        0 => CatchUp::Latest,
        1 => CatchUp::All {
            limit: 1 + chance.below(10) as u32,
        },
        _ => CatchUp::None,
    };
    let concurrency = match chance.below(3) {
        0 => Concurrency::Forbid,
        1 => Concurrency::Queue {
            limit: 1 + chance.below(4) as u32,
        },
        // A configuration with both is refused.
        _ if matches!(catch_up, CatchUp::All { .. }) => Concurrency::Forbid,
        _ => Concurrency::Replace,
    };
    let random_delay = match chance.below(4) {
        0 => Duration::from_millis(chance.below(4_000)),
        _ => Duration::ZERO,
    };
    Job {
        catch_up,
        concurrency,
        random_delay,
        starting_deadline: Duration::from_secs([5, 60, 600][chance.below(3) as usize]),
        on_crash: [OnCrash::Rerun, OnCrash::Skip][chance.below(2) as usize],
        max_attempts: 1 + chance.below(5) as u32,
        retry: Retry {
            max: chance.below(4) as u32,
            ..Retry::default()
        },
        shards: [1, 1, 1, 3][chance.below(4) as usize],
        run_on: match chance.below(6) {
            0 => zone("a"),
            1 => zone("nowhere"),
            _ => Tags::new(),
        },
        ..job(&format!("job{number}"), schedule)
    }
}

fn zone(name: &str) -> Tags {
    Tags::from([("zone".to_owned(), name.to_owned())])
}

/// A job that comes after others.
fn follower(name: &str, after: &[&str]) -> Job {
    let names = after.iter().map(|name| JobName::new(name).expect("a name"));
    Job {
        after: names.collect(),
        ..job(name, "@manual")
    }
}

fn snapshot(world: &World) -> Vec<JobState> {
    world.snapshot().jobs
}

fn state_of(world: &World, name: &JobName) -> Option<JobState> {
    snapshot(world).into_iter().find(|state| state.job == *name)
}

impl Life {
    fn begin(world: &World, job: &Job) -> Option<Self> {
        let state = state_of(world, &job.name)?;
        Some(Self::from(&state, job))
    }

    /// From a state on that the ledger has told.
    pub(crate) fn from(state: &JobState, job: &Job) -> Self {
        Self {
            since: state.settled_until,
            former: Vec::new(),
            schedule: job.schedule.clone(),
        }
    }

    /// The instants that have to have a fate, up to `until`.
    fn due(&self, until: Timestamp) -> Vec<Timestamp> {
        let mut due = Vec::new();
        let mut from = self.since;
        let now = Segment {
            schedule: self.schedule.clone(),
            until,
        };
        for segment in self.former.iter().chain([&now]) {
            let mut at = from;
            while let Some(next) = segment
                .schedule
                .next_after(at)
                .filter(|next| *next <= segment.until.min(until))
            {
                due.push(next);
                at = next;
            }
            from = from.max(segment.until);
        }
        due
    }
}

/// How often the ledger tells of the end of each occurrence.
pub(crate) fn fates(lines: &[AttemptRecord], due: &[Timestamp]) -> BTreeMap<Timestamp, u32> {
    let mut fates: BTreeMap<Timestamp, u32> = BTreeMap::new();
    let mut shards: BTreeMap<(Timestamp, u32), u32> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.detail.is_final()) {
        if let (Some(since), Some(schedule)) = (line.detail.since, &line.detail.schedule) {
            let schedule = Schedule::from_identity(schedule, line.job.as_str());
            let schedule = schedule.expect("the ledger has what it was told");
            let covered = due
                .iter()
                .filter(|at| **at > since && **at <= line.scheduled_at);
            for at in covered
                .filter(|at| schedule.last_before(**at + Duration::from_millis(1)) == Some(**at))
            {
                *fates.entry(*at).or_default() += 1;
            }
            continue;
        }
        match line.detail.shard {
            None => *fates.entry(line.scheduled_at).or_default() += 1,
            Some((shard, _)) => *shards.entry((line.scheduled_at, shard)).or_default() += 1,
        }
    }
    for ((at, shard), count) in shards {
        assert_eq!(count, 1, "shard {shard} of {at} ended {count} times");
        if shard == 0 {
            *fates.entry(at).or_default() += 1;
        }
    }
    fates
}

fn policies(job: &Job) -> String {
    format!(
        "{} `{}` {:?} {:?} {:?} {:?} delay {:?} deadline {:?} max_attempts {} shards {}",
        job.name,
        job.schedule.text(),
        job.catch_up,
        job.concurrency,
        job.retry,
        job.on_crash,
        job.random_delay,
        job.starting_deadline,
        job.max_attempts,
        job.shards
    )
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

/// The same of what the ledger has told: the state of the job, and its lines, newest first.
pub(crate) fn check_lines(state: &JobState, lines: &[AttemptRecord], life: &Life, job: &Job) {
    let due = life.due(state.settled_until);
    let mut fates = fates(lines, &due);
    // What is not over yet has its place in the record.
    let open = state
        .attempts
        .iter()
        .any(|one| !matches!(one.standing, Standing::Ended(_)));
    if let Some(first) = state.attempts.first().filter(|_| open) {
        let count = fates.entry(first.scheduled_at).or_default();
        *count = match state.attempts.len() {
            1 => *count + 1,
            _ => 1,
        };
    }
    for waiting in &state.waiting {
        *fates.entry(waiting.scheduled_at).or_default() += 1;
    }
    let show = |at: Timestamp| {
        let mut text = policies(job);
        text += &format!("\n{state:?}\n");
        let near = |line: &&AttemptRecord| {
            let reach = Duration::from_secs(100);
            line.scheduled_at >= at - reach
                && line.detail.since.unwrap_or(line.scheduled_at) <= at + reach
        };
        for line in lines.iter().rev().filter(near) {
            text += &format!(
                "{} #{} {} on {} ended {} {:?}\n",
                line.scheduled_at,
                line.attempt,
                line.outcome,
                line.replica,
                line.ended_at,
                serde_json::to_string(&line.detail)
            );
        }
        text
    };
    for at in &due {
        let count = fates.remove(at).unwrap_or(0);
        assert_eq!(count, 1, "{at} has {count} fates\n{}", show(*at));
    }
    for (at, count) in fates.into_iter().filter(|(at, _)| *at > life.since) {
        let by_hand = at.as_millis() % 1000 != 0;
        assert!(by_hand, "{at} was never due\n{}", show(at));
        assert_eq!(
            count,
            1,
            "the trigger of {at} has {count} fates\n{}",
            show(at)
        );
    }
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
    let id = RunId::new(Uuid::from_u128(u128::from(world.chance.next())));
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
    let former = life.schedule.identity();
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
    let schedule = std::mem::replace(&mut life.schedule, utc(name.as_str(), text));
    life.former.push(Segment {
        schedule,
        until: until.unwrap_or(before),
    });
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
        let lives = scheduled.map(|job| Life::begin(&world, job));
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
        crate::laws::check_shards(&world);
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
