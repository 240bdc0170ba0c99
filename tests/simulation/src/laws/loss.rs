//! A store that loses what it acknowledged, all of it or what was written last, as after
//! FLUSHALL, a restart from an old snapshot, or the promotion of a replica that was behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use soloist::scheduler::EndedHow;
use soloist::scheduler::job::{Job, JobName, OnCrash};
use soloist::scheduler::lease::{Cause, FencingToken, Order, OrderAnswer, OrderKind, RunId};
use soloist::scheduler::policy::{Concurrency, Retry};
use soloist::scheduler::time::Timestamp;
use uuid::Uuid;

use crate::accounts::fates;
use crate::jobs::job;
use crate::seeds::for_seeds;
use crate::world::{Chance, Run, World};

/// Seeds of an ordinary run; each world lives for ten minutes.
const SEEDS: u64 = 60;

/// A few are shorter than what falls due meanwhile, most are not.
fn any_length(chance: &mut Chance) -> Duration {
    Duration::from_millis(1 + chance.below(40_000))
}

/// Runs a world through some losses.
fn through_losses(seed: u64, on_crash: OnCrash) -> World {
    let of = |name, schedule| Job {
        on_crash,
        ..job(name, schedule)
    };
    let jobs = vec![of("ten", "*/10 * * * * *"), of("minute", "30 * * * * *")];
    let mut world = World::new(seed, jobs, any_length);
    (0..3).for_each(|_| {
        world.start();
    });
    world.run_for_about(20, 20_000);
    for _ in 0..8 {
        let image = world.chance.percent(50).then(|| world.image());
        world.run_for_about(0, 25_000);
        let one = world.chance.below(3) as usize;
        let crash = world.chance.percent(30);
        if crash {
            world.crash(one);
        }
        world.lose_data(image);
        world.run_for_about(0, 40_000);
        if crash {
            world.revive(one);
        }
    }
    world.run_for(Duration::from_secs(120));
    world
}

fn by_job(world: &World) -> BTreeMap<&str, Vec<&Run>> {
    let mut jobs: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in world.runs.values() {
        jobs.entry(&run.job).or_default().push(run);
    }
    for runs in jobs.values_mut() {
        runs.sort_by_key(|run| (run.started, run.token));
    }
    jobs
}

#[test]
fn no_two_attempts_of_a_job_are_alive_at_once_and_tokens_rise_whatever_is_lost() {
    for_seeds(SEEDS, |seed| {
        let world = through_losses(seed, OnCrash::Rerun);
        for (name, runs) in by_job(&world) {
            let mut token = FencingToken::default();
            let mut ended = Duration::ZERO;
            for run in runs {
                assert!(
                    run.started >= ended,
                    "{name}: two alive\n{run:#?}\n{world:?}"
                );
                assert!(run.token > token, "{name}: token fell\n{run:#?}\n{world:?}");
                ended = run.ended.unwrap_or(world.now);
                token = run.token;
            }
        }
    });
}

#[test]
fn what_may_run_once_only_starts_once_whatever_is_lost() {
    for_seeds(SEEDS, |seed| {
        let world = through_losses(seed, OnCrash::Skip);
        let mut seen = BTreeSet::new();
        for run in world.runs.values() {
            let occurrence = (&run.job, run.scheduled_at);
            assert!(seen.insert(occurrence), "{occurrence:?} twice\n{world:?}");
        }
    });
}

#[test]
fn after_a_loss_jobs_go_on_by_their_schedules() {
    for_seeds(SEEDS, |seed| {
        let mut world = World::new(seed, vec![job("ten", "*/10 * * * * *")], |chance| {
            Duration::from_millis(1 + chance.below(900))
        });
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(20, 20_000);
        let image = world.chance.percent(50).then(|| world.image());
        world.run_for_about(0, 25_000);
        world.lose_data(image);
        let lost = world.now;
        world.run_for(Duration::from_secs(120));
        let runs = world.runs.values();
        let after: Vec<_> = runs.filter(|run| run.started > lost).collect();
        // A lease's length without grants, and all that comes then.
        assert!(after.len() >= 10, "{} runs\n{world:?}", after.len());
        let snapshot = world.snapshot();
        let schedule = &snapshot.jobs[0].schedule;
        assert!(schedule.starts_with("*/10 * * * * *"), "{schedule:?}");
        assert_eq!(snapshot.grace, Duration::ZERO);
    });
}

/// A person asks for something of a job.
fn order(world: &mut World, job: &str, what: OrderKind) -> OrderAnswer {
    let id = u128::from(world.chance.draw());
    world.order(Order {
        job: JobName::new(job).expect("a name"),
        what,
        by: "alice@desk".to_owned(),
        id: RunId::new(Uuid::from_u128(id)),
        retention: world.jobs[0].retention,
        dependents: Default::default(),
    })
}

/// When a replica that is well has seen what was done a moment ago.
const SEEN: Duration = Duration::from_millis(100);

#[test]
fn a_paused_job_stays_paused_whatever_is_lost() {
    for_seeds(SEEDS, |seed| {
        let jobs = vec![
            job("ten", "*/10 * * * * *"),
            // Nothing of it falls due between its pause and the loss.
            job("seldom", "0 */10 * * * *"),
        ];
        let mut world = World::new(seed, jobs, any_length);
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(20, 20_000);
        let early = world.chance.percent(30).then(|| world.image());
        world.run_for_about(0, 25_000);
        for name in ["ten", "seldom"] {
            let paused = order(&mut world, name, OrderKind::Pause);
            assert!(matches!(paused, OrderAnswer::Paused { .. }), "{paused:?}");
        }
        let since = world.store_now();
        world.run_for(SEEN);
        world.run_for_about(0, 25_000);
        for _ in 0..3 {
            let one = world.chance.below(3) as usize;
            let crash = world.chance.percent(30);
            if crash {
                world.crash(one);
            }
            world.lose_data(early.clone());
            world.run_for_about(20, 40_000);
            if crash {
                world.revive(one);
            }
            world.run_for_about(0, 40_000);
        }
        world.run_for(Duration::from_secs(700));
        let started = world.runs.values().filter(|run| run.scheduled_at > since);
        assert_eq!(started.count(), 0, "{world:?}");
        for state in world.snapshot().jobs {
            let pause = state.paused.expect("it is paused");
            assert_eq!(pause.by, "alice@desk");
            assert_eq!(pause.since, since, "{world:?}");
        }

        order(&mut world, "ten", OrderKind::Resume);
        let resumed = world.store_now();
        world.run_for(Duration::from_secs(60));
        let after = world.runs.values().filter(|run| run.scheduled_at > resumed);
        assert!(after.count() > 0, "{world:?}");
        let lines = world.history();
        let skipped = lines
            .iter()
            .find(|line| line.job.as_str() == "ten" && line.detail.cause == Some(Cause::Paused));
        let reason = skipped.and_then(|line| line.detail.reason.as_deref());
        assert!(
            reason.is_some_and(|text| text.contains("alice@desk")),
            "{reason:?}"
        );
    });
}

#[test]
fn a_pause_that_was_ended_does_not_come_back_with_an_older_ledger() {
    for_seeds(SEEDS, |seed| {
        let mut world = World::new(seed, vec![job("ten", "*/10 * * * * *")], any_length);
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(20, 20_000);
        order(&mut world, "ten", OrderKind::Pause);
        world.run_for(SEEN);
        world.run_for_about(0, 25_000);
        let paused = world.chance.percent(50).then(|| world.image());
        world.run_for_about(0, 25_000);
        order(&mut world, "ten", OrderKind::Resume);
        world.run_for(SEEN);
        world.run_for_about(0, 25_000);
        world.lose_data(paused);
        world.run_for(Duration::from_secs(60));
        assert_eq!(world.snapshot().jobs[0].paused, None, "{world:?}");
    });
}

#[test]
fn what_nobody_can_tell_after_a_loss_of_all_data_is_one_missed_fate() {
    for_seeds(SEEDS, |seed| {
        let on_crash = [OnCrash::Rerun, OnCrash::Skip][(seed % 2) as usize];
        let of = |name, schedule| Job {
            on_crash,
            ..job(name, schedule)
        };
        let jobs = vec![of("ten", "*/10 * * * * *"), of("minute", "30 * * * * *")];
        let mut world = World::new(seed, jobs, |chance| {
            Duration::from_millis(1 + chance.below(900))
        });
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(100, 20_000);
        let one = world.chance.below(3) as usize;
        let crash = world.chance.percent(30);
        if crash {
            world.crash(one);
        }
        world.partition(true);
        world.run_for_about(0, 60_000);
        world.lose_data(None);
        world.partition(false);
        // One that knows nothing of what was comes when the others have told.
        world.run_for(Duration::from_secs(5));
        if crash {
            world.revive(one);
        }
        world.run_for(Duration::from_secs(120));
        each_instant_has_one_fate(&world);
    });
}

/// What fell due after a job's first run has run, or has a line; and no two lines.
fn each_instant_has_one_fate(world: &World) {
    let end = world.store_now() - Duration::from_secs(5);
    for job in &world.jobs {
        let runs = || {
            world
                .runs
                .values()
                .filter(|run| run.job == job.name.as_str())
        };
        let first = runs().map(|run| run.scheduled_at).min().expect("it ran");
        let next = |at: &Timestamp| job.schedule.next_after(*at);
        let due = std::iter::successors(Some(first), next).take_while(|at| *at < end);
        let due: Vec<_> = due.collect();
        let lines = world.history();
        let lines: Vec<_> = lines
            .into_iter()
            .filter(|line| line.job == job.name)
            .collect();
        let fates = fates(&lines, &due);
        for at in &due {
            let told = fates.get(at).copied().unwrap_or_default();
            let ran = runs().any(|run| run.scheduled_at == *at);
            assert!(told <= 1, "{} at {at} {told} times\n{world:?}", job.name);
            assert!(told == 1 || ran, "{} at {at}: nothing\n{world:?}", job.name);
        }
        let missed = lines.iter().filter(|line| {
            let reason = line.detail.reason.as_deref().unwrap_or_default();
            line.detail.since.is_some() && reason.contains("ledger lost data")
        });
        assert!(missed.count() <= 1, "{lines:#?}");
    }
}

/// Of no occurrence an attempt starts twice, or one after another that succeeded.
fn no_attempt_starts_twice(world: &World) {
    let mut seen = BTreeSet::new();
    let mut done = BTreeSet::new();
    let mut runs: Vec<_> = world.runs.values().collect();
    runs.sort_by_key(|run| (run.started, run.token));
    for run in runs {
        let occurrence = (&run.job, run.scheduled_at);
        assert!(
            seen.insert((occurrence, run.attempt)) && !done.contains(&occurrence),
            "{occurrence:?} attempt {} twice\n{world:?}",
            run.attempt
        );
        if run.completed {
            done.insert(occurrence);
        }
    }
}

#[test]
fn each_attempt_of_what_may_run_once_only_starts_once_however_it_came_to_be() {
    for_seeds(SEEDS, |seed| {
        let skip = |job: Job| Job {
            on_crash: OnCrash::Skip,
            concurrency: Concurrency::Queue { limit: 5 },
            retry: Retry {
                max: 2,
                backoff: Duration::from_secs(4),
                ..Retry::default()
            },
            starting_deadline: Duration::from_secs(600),
            ..job
        };
        let after = Job {
            after: vec![JobName::new("ten").expect("a name")],
            ..job("after", "@manual")
        };
        let jobs = [
            job("ten", "*/10 * * * * *"),
            job("by-hand", "@manual"),
            after,
        ];
        let mut world = World::new(seed, jobs.map(skip).into(), |chance| {
            Duration::from_millis(1 + chance.below(9_000))
        });
        world.fate = |chance, _| match chance.percent(40) {
            true => EndedHow::Failed,
            false => EndedHow::Succeeded,
        };
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(20, 20_000);
        for _ in 0..8 {
            order(&mut world, "by-hand", OrderKind::Trigger);
            world.run_for_about(0, 4_000);
            let image = world.chance.percent(80).then(|| world.image());
            world.run_for_about(0, 25_000);
            world.lose_data(image);
            world.run_for_about(0, 40_000);
        }
        world.run_for(Duration::from_secs(120));
        no_attempt_starts_twice(&world);
        let names: BTreeSet<&str> = world.runs.values().map(|run| run.job.as_str()).collect();
        assert_eq!(names.len(), 3, "{world:?}");
    });
}
