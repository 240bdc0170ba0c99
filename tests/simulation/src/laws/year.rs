//! A year of a large table, through all that happens to clocks and fleets in one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::EndedHow;
use soloist::scheduler::job::{Job, OnCrash};
use soloist::scheduler::lease::Outcome;
use soloist::scheduler::policy::{CatchUp, Concurrency, Retry};
use soloist::scheduler::schedule::{DstFold, DstGap, Schedule};
use soloist::scheduler::time::Timestamp;
use soloist::store::{AttemptRecord, JobState};

use crate::accounts::{Life, check_lines};
use crate::jobs::job;
use crate::world::{Chance, World};

const JOBS: u64 = 1000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Two hemispheres, two continents, a change of half an hour, and none.
const ZONES: [&str; 4] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "UTC",
];

/// When clocks change in that year, in UTC: forward and back in each zone.
const CHANGES: [&str; 6] = [
    "2027-03-28T01:00:00Z",
    "2027-10-31T01:00:00Z",
    "2027-03-14T07:00:00Z",
    "2027-11-07T06:00:00Z",
    "2027-10-02T15:30:00Z",
    "2027-04-03T15:00:00Z",
];

/// Most jobs of a large table are due seldom, a few often; many at night, when clocks change.
fn drawn_schedule(chance: &mut Chance) -> String {
    let (minute, hour) = (chance.below(4) * 15, chance.below(5));
    match chance.below(100) {
        0..2 => format!("{minute} {hour} * * *"),
        2..4 => format!("*/30 1-3 * 3,4,10,11 {}", chance.below(7)),
        4..10 => format!("{minute} {hour} * * {}", chance.below(7)),
        _ => format!("{minute} {hour} {} * *", 1 + chance.below(31)),
    }
}

fn drawn_job(chance: &mut Chance, number: u64) -> Job {
    let name = format!("job{number}");
    let zone = ZONES[chance.below(4) as usize];
    let gap = [DstGap::RunAfter, DstGap::Skip][chance.below(2) as usize];
    let fold = [DstFold::First, DstFold::Last, DstFold::Both][chance.below(3) as usize];
    let text = drawn_schedule(chance);
    let zone = jiff::tz::TimeZone::get(zone).expect("a zone");
    let schedule = Schedule::parse(&text, &name, zone, gap, fold).expect("a schedule");
    let catch_up = match chance.below(3) {
        0 => CatchUp::Latest,
        1 => CatchUp::All { limit: 5 },
        _ => CatchUp::None,
    };
    let concurrency = match chance.below(3) {
        0 => Concurrency::Queue { limit: 2 },
        1 if !matches!(catch_up, CatchUp::All { .. }) => Concurrency::Replace,
        _ => Concurrency::Forbid,
    };
    Job {
        catch_up,
        concurrency,
        schedule,
        // Signs of life are a sixth of it apart: a year has many.
        lease_ttl: Duration::from_secs(3600),
        starting_deadline: Duration::from_secs([60, 3600, 24 * 3600][chance.below(3) as usize]),
        on_crash: [OnCrash::Rerun, OnCrash::Skip][chance.below(2) as usize],
        retry: Retry {
            max: chance.below(3) as u32,
            ..Retry::default()
        },
        ..job(&name, "@manual")
    }
}

/// A fleet of two for a year: now and then one dies, now and then all, for up to ten days.
fn pass_a_year(world: &mut World) {
    let end = world.now + DAY * 365;
    let mut outages = 0;
    while world.now < end {
        world.run_for_about(10 * DAY.as_secs(), 20 * DAY.as_millis() as u64);
        // In the middle of something.
        while world.holder().is_none() {
            world.run_for(Duration::from_secs(30));
        }
        let one = world.holder().expect("just now");
        let all = outages % 2 == 1;
        outages += 1;
        world.crash(one);
        if all {
            world.crash(1 - one);
        }
        let longest = if all { DAY * 10 } else { DAY };
        world.run_for_about(0, longest.as_millis() as u64);
        world.revive(one);
        if all {
            world.revive(1 - one);
        }
    }
    // What is under way comes to its end.
    world.run_for(DAY);
}

fn by_job(world: &World) -> HashMap<String, Vec<AttemptRecord>> {
    let mut lines: HashMap<_, Vec<_>> = HashMap::new();
    for line in world.history() {
        lines.entry(line.job.to_string()).or_default().push(line);
    }
    lines
}

#[test]
fn a_year_of_a_thousand_jobs_through_changes_of_clocks_is_accounted_for() {
    let mut chance = Chance::new(2027);
    let jobs = (0..JOBS).map(|number| drawn_job(&mut chance, number));
    let mut world = World::new(1, jobs.collect(), |chance| {
        let longest = if chance.percent(2) { 5 * 3600 } else { 60 };
        Duration::from_secs(1 + chance.below(longest))
    });
    world.fate = |chance, _| match chance.percent(10) {
        true => EndedHow::Failed,
        false => EndedHow::Succeeded,
    };
    (0..2).for_each(|_| {
        world.start();
    });
    world.run_for(Duration::from_secs(10));
    let begun = states(&world);
    pass_a_year(&mut world);
    check_year(&world, &begun);
}

/// Holds every job to the sum rule, and the year to having been one.
fn check_year(world: &World, begun: &HashMap<String, JobState>) {
    let lines = by_job(world);
    let now = Timestamp::from_millis(1_795_212_000_000) + world.now;
    let mut outcomes = HashSet::new();
    for (name, state) in states(world) {
        let job = world.jobs.iter().find(|job| job.name.as_str() == name);
        let job = job.expect("of the table");
        let lines = &lines[&name];
        check_lines(&state, lines, &Life::from(&begun[&name], job), job);
        let next = job.schedule.next_after(state.settled_until);
        assert!(
            next.is_none_or(|next| next + Duration::from_secs(60) >= now),
            "{name} is settled until {} alone",
            state.settled_until
        );
        outcomes.extend(lines.iter().map(|line| line.outcome));
    }
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Lost] {
        assert!(outcomes.contains(&outcome), "nothing {outcome}");
    }
    assert!(outcomes.contains(&Outcome::Missed) && outcomes.contains(&Outcome::Skipped));
    assert!(world.runs.len() > 15_000, "{} runs", world.runs.len());
    for change in CHANGES {
        let change: jiff::Timestamp = change.parse().expect("an instant");
        let change = Timestamp::from_millis(change.as_millisecond());
        let hour = Duration::from_secs(3600);
        let due = |job: &&Arc<Job>| {
            let next = job.schedule.next_after(change - hour);
            next.is_some_and(|next| next < change + hour)
        };
        let due = world.jobs.iter().filter(due).count();
        assert!(due >= 3, "{due} jobs are due around {change}");
    }
}

fn states(world: &World) -> HashMap<String, JobState> {
    let jobs = world.snapshot().jobs.into_iter();
    jobs.map(|state| (state.job.to_string(), state)).collect()
}
