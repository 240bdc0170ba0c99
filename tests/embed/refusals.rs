//! What a builder refuses: all of it at once, each with job, key, cause and cure.

use std::time::Duration;

use soloist::{CatchUp, Concurrency, Error, Faults, Job, Retry, Scheduler};

use crate::world::World;

const START: &str = "2026-11-20T00:00:30Z";

async fn faults(builder: soloist::Builder) -> Faults {
    match builder.start().await {
        Err(Error::Invalid(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

/// One with a fault of each kind.
fn all_wrong(world: &World) -> soloist::Builder {
    let job = |name: &str, schedule: &str| world.noting(name, schedule);
    let circle =
        |name: &str, after: &str| Job::after(name, [after], |_| async { Ok::<_, Error>(()) });
    world
        .replica("web 1")
        .max_running(0)
        .job(job("a b", "@daily"))
        .job(job("twice", "@daily"))
        .job(job("twice", "@daily"))
        .job(job("when", "61 * * * *").timezone("Asia/Shangai"))
        .job(job("long", "@daily").timeout(Duration::ZERO).shards(1000))
        .job(
            job("warns", "@daily")
                .timeout(Duration::from_secs(5))
                .warn_after(Duration::from_secs(5)),
        )
        .job(job("tries", "@daily").retry(Retry {
            backoff: Duration::from_secs(600),
            ..Retry::times(2)
        }))
        .job(
            job("late", "@daily")
                .catch_up(CatchUp::All { limit: 5 })
                .concurrency_policy(Concurrency::Replace),
        )
        .job(job("delayed", "* * * * *").random_delay(Duration::from_secs(90)))
        .job(job("by-hand", "@manual").random_delay(Duration::from_secs(90)))
        .job(job("tagged", "@daily").run_on("zo ne", "eu"))
        .job(circle("egg", "hen"))
        .job(circle("hen", "egg"))
        .job(circle("stray", "hn"))
}

#[tokio::test]
async fn all_that_is_wrong_is_told_in_one_go() {
    let world = World::at(START);
    let faults = faults(all_wrong(&world)).await;
    let found: Vec<(Option<&str>, &str)> = faults
        .iter()
        .map(|fault| (fault.job.as_deref(), fault.key))
        .collect();
    let expected = [
        (None, "replica"),
        (None, "max_running"),
        (Some("a b"), "name"),
        (Some("twice"), "name"),
        (Some("when"), "timezone"),
        (Some("when"), "schedule"),
        (Some("long"), "timeout"),
        (Some("long"), "shards"),
        (Some("warns"), "warn_after"),
        (Some("tries"), "retry"),
        (Some("late"), "catch_up"),
        (Some("delayed"), "random_delay"),
        (Some("by-hand"), "random_delay"),
        (Some("tagged"), "run_on"),
        (Some("stray"), "after"),
        (Some("hen"), "after"),
    ];
    assert_eq!(found, expected, "{faults}");
    let told = faults.to_string();
    for part in [
        "job `when`, `timezone`: `Asia/Shangai` is no IANA time zone; did you mean `Asia/Shanghai`?",
        "job `stray`, `after`: no job is called `hn`; did you mean `hen`?",
        "jobs wait for each other: egg → hen → egg",
        "`random_delay` is 1m30s, and occurrences come as close as 1m",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[tokio::test]
async fn a_scheduler_without_store_or_jobs_does_not_start() {
    let faults = faults(Scheduler::builder()).await;
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key).collect();
    assert_eq!(keys, ["store", "jobs"]);
}

#[tokio::test]
async fn a_store_that_is_none_is_told_with_all_that_is_wrong_with_the_jobs() {
    let world = World::at(START);
    for (url, told) in [
        (
            "wat://",
            "scheduler, `store`: `wat://` is no store: no store is called `wat`; a store is",
        ),
        (
            "redis://hunter2@h",
            "scheduler, `store`: `redis://***@h` is no store: the store's URL has a user without a \
             password; a password without a user has a colon before it: write",
        ),
        (
            "sqlite:",
            "scheduler, `store`: `sqlite:` is no store: it names no file; write",
        ),
        (
            "memory:x",
            "scheduler, `store`: `memory:x` is no store: `memory:` takes nothing after it; leave",
        ),
    ] {
        let wrong = world.noting("a", "61 * * * *");
        let faults = faults(Scheduler::builder().store(url).job(wrong)).await;
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["store", "schedule"], "{url}");
        assert!(faults.to_string().starts_with(told), "{faults}");
    }
    let away = Scheduler::builder().store("redis://127.0.0.1:1");
    let faults = faults(away.job(world.noting("a", "61 * * * *"))).await;
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key).collect();
    assert_eq!(keys, ["schedule"], "a store that is away is no fault");
}

#[tokio::test]
async fn a_store_that_is_none_or_away_is_told_without_its_password() {
    let world = World::at(START);
    let builder = |url: &str| {
        let builder = Scheduler::builder().store(url).require_store(true);
        builder.job(world.noting("a", "@daily"))
    };
    for (url, part) in [
        ("rdis://ann:hunter2@h", "is no store"),
        ("redis://ann:hunter2@127.0.0.1:1", "can't be reached"),
    ] {
        let error = builder(url).start().await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
