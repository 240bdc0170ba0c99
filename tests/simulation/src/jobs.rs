//! Jobs of simulated tables.

use std::time::Duration;

use soloist::scheduler::job::{Job, JobName, OnCrash, Program};
use soloist::scheduler::lease::Retention;
use soloist::scheduler::policy::{CatchUp, Concurrency, Retry, Tags};
use soloist::scheduler::schedule::{DstFold, DstGap, Schedule};

use crate::chance::Chance;

/// What drawn jobs are due by.
pub const SCHEDULES: [&str; 5] = [
    "*/10 * * * * *",
    "*/30 * * * * *",
    "0 * * * * *",
    "15,20 * * * * *",
    "*/7 * * * * *",
];

/// A schedule in UTC.
pub fn utc(name: &str, text: &str) -> Schedule {
    let zone = jiff::tz::TimeZone::UTC;
    let schedule = Schedule::parse(text, name, zone, DstGap::default(), DstFold::default());
    schedule.expect("a schedule")
}

/// A job of this schedule, in UTC, whose lines are all kept.
pub fn job(name: &str, schedule: &str) -> Job {
    let program = Program::Command(vec!["true".to_owned()]);
    Job {
        kill_grace: Duration::from_secs(1),
        retention: Retention {
            limit: 100_000,
            age: Duration::from_secs(1 << 30),
        },
        ..Job::new(
            JobName::new(name).expect("a name"),
            utc(name, schedule),
            program,
        )
    }
}

/// A job with policies that chance draws.
pub fn drawn_job(chance: &mut Chance, number: usize) -> Job {
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

/// What a replica in a zone has, and a job that runs there alone asks for.
pub fn zone(name: &str) -> Tags {
    Tags::from([("zone".to_owned(), name.to_owned())])
}

/// A job that comes after others.
pub fn follower(name: &str, after: &[&str]) -> Job {
    let names = after.iter().map(|name| JobName::new(name).expect("a name"));
    Job {
        after: names.collect(),
        ..job(name, "@manual")
    }
}
