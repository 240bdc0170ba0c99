//! `catch_up`, `starting_deadline`, edits: what becomes of occurrences that nobody could claim.

use std::sync::Arc;

use soloist::scheduler::policy::CatchUp;

use super::*;
use crate::jobs::utc;

fn quick(_: &mut Chance) -> Duration {
    seconds(1)
}

/// A job of each minute that was away from 0:10 to 10:10, and may start late.
fn after_ten_minutes(seed: u64, catch_up: CatchUp) -> World {
    let minutely = Job {
        catch_up,
        starting_deadline: seconds(3600),
        ..job("minutely", "0 * * * * *")
    };
    let mut world = three(seed, vec![minutely], quick);
    outage(&mut world, seconds(600));
    world.run_for(seconds(45));
    check_shards(&world);
    world
}

#[test]
fn of_many_missed_occurrences_the_newest_runs_and_the_others_are_one_line() {
    for_each_seed(|seed| {
        let world = after_ten_minutes(seed, CatchUp::Latest);
        let missed = (at(540), Outcome::Missed, Some(Cause::CatchUp));
        let ranges = ranges(&world, "minutely");
        let shown: Vec<_> = ranges
            .iter()
            .map(|(_, to, outcome, cause)| (*to, *outcome, *cause))
            .collect();
        assert_eq!(shown, [missed]);
        assert!(ranges[0].0 <= at(10), "{ranges:?}");
        assert_eq!(ends(&world, "minutely"), [(600, Outcome::Succeeded, None)]);
        assert_eq!(late(&world, "minutely"), [(at(600), Some(Late::Away))]);
    });
}

#[test]
fn all_missed_occurrences_run_in_order_up_to_the_limit() {
    for_each_seed(|seed| {
        let world = after_ten_minutes(seed, CatchUp::All { limit: 4 });
        let ran: Vec<_> = runs(&world, "minutely")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(420), at(480), at(540), at(600)]);
        let ranges = ranges(&world, "minutely");
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        assert_eq!(ranges[0].1, at(360));
        assert_eq!(ranges[0].2, Outcome::Missed);
    });
}

#[test]
fn all_missed_occurrences_run_only_within_their_deadline() {
    for_each_seed(|seed| {
        let minutely = Job {
            catch_up: CatchUp::All { limit: 100 },
            starting_deadline: seconds(150),
            ..job("minutely", "0 * * * * *")
        };
        let mut world = three(seed, vec![minutely], quick);
        outage(&mut world, seconds(600));
        world.run_for(seconds(45));
        let ran: Vec<_> = runs(&world, "minutely")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(480), at(540), at(600)]);
    });
}

#[test]
fn with_catch_up_none_nothing_that_was_missed_runs() {
    for_each_seed(|seed| {
        let mut world = after_ten_minutes(seed, CatchUp::None);
        assert!(runs(&world, "minutely").is_empty());
        assert_eq!(
            ends(&world, "minutely"),
            [(600, Outcome::Missed, Some(Cause::CatchUp))]
        );
        assert_eq!(ranges(&world, "minutely")[0].1, at(540));
        world.run_for(seconds(10));
        assert_eq!(runs(&world, "minutely")[0].scheduled_at, at(660));
    });
}

#[test]
fn a_million_missed_occurrences_are_one_line() {
    let secondly = job("secondly", "* * * * * *");
    let mut world = three(1, vec![secondly], |_| Duration::from_millis(10));
    let before = lines(&world, "secondly").len();
    outage(&mut world, seconds(1_200_000));
    world.run_for(Duration::from_millis(1500));
    let ranges = ranges(&world, "secondly");
    assert_eq!(ranges.len(), 1, "{ranges:?}");
    let (from, to, ..) = ranges[0];
    assert!(to.saturating_since(from) > seconds(1_199_980));
    assert!(lines(&world, "secondly").len() <= before + 4);
}

#[test]
fn a_store_that_was_away_costs_all_but_the_newest() {
    for_each_seed(|seed| {
        let often = job("often", "*/10 * * * * *");
        let mut world = three(seed, vec![often], quick);
        world.run_for(seconds(4));
        world.partition(true);
        world.run_for(seconds(42));
        world.partition(false);
        world.run_for(seconds(3));
        let ran: Vec<_> = runs(&world, "often")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran.last(), Some(&at(50)), "{world:?}");
        assert_eq!(late(&world, "often"), [(at(50), Some(Late::Away))]);
        let missed = ranges(&world, "often");
        assert_eq!(missed.len(), 1, "{missed:?}");
        assert_eq!((missed[0].0, missed[0].1), (at(10), at(40)));
    });
}

#[test]
fn a_job_that_is_new_to_the_ledger_never_runs_its_past() {
    for_each_seed(|seed| {
        let old = job("old", "0 * * * * *");
        let mut world = three(seed, vec![old], quick);
        let new = Job {
            catch_up: CatchUp::All { limit: 100 },
            ..job("new", "0 * * * * *")
        };
        world.run_for(seconds(300));
        world.jobs.push(Arc::new(new));
        outage(&mut world, seconds(100));
        world.run_for(seconds(30));
        let ran: Vec<_> = runs(&world, "new")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(420)], "{world:?}");
        assert!(ranges(&world, "new").is_empty());
    });
}

/// A job whose schedule is changed while all replicas are away, from 0:10 to 10:10.
fn edited(seed: u64, from: &str, to: &str) -> World {
    let one = Job {
        starting_deadline: seconds(3600),
        ..job("edited", from)
    };
    let mut world = three(seed, vec![one.clone()], quick);
    (0..3).for_each(|replica| world.crash(replica));
    world.run_for(seconds(600));
    world.jobs = vec![Arc::new(Job {
        schedule: utc("edited", to),
        ..one
    })];
    (0..3).for_each(|replica| world.revive(replica));
    world.run_for(seconds(20));
    world
}

#[test]
fn a_schedule_edited_between_two_starts_runs_nothing_that_was_never_due() {
    for_each_seed(|seed| {
        // Due at 9:00 by the new schedule alone, and at 5:00 by the former alone.
        let mut world = edited(seed, "0 5,25 * * * *", "0 9,29 * * * *");
        assert!(runs(&world, "edited").is_empty(), "{world:?}");
        let gone = ranges(&world, "edited");
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert_eq!(
            (gone[0].2, gone[0].3),
            (Outcome::Missed, Some(Cause::ScheduleChanged))
        );
        assert_eq!(
            lines(&world, "edited")[0].detail.schedule.as_deref(),
            Some(utc("edited", "0 5,25 * * * *").identity().as_str())
        );
        world.run_for(seconds(20 * 60));
        let ran: Vec<_> = runs(&world, "edited")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(29 * 60)]);
    });
}

#[test]
fn what_both_schedules_have_still_runs_among_what_only_one_of_them_has() {
    for_each_seed(|seed| {
        // 0:00 to 10:00: both have 2:00, 4:00, 6:00 and 8:00; only the new one has 9:00, only the
        // former one 10:00.
        let world = edited(seed, "0 */2 * * * *", "0 2,4,5,6,8,9 * * * *");
        let ran: Vec<_> = runs(&world, "edited")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(480)], "{world:?}");
        let gone: Vec<_> = ranges(&world, "edited")
            .iter()
            .map(|(_, until, outcome, cause)| (*until, *outcome, *cause))
            .collect();
        let changed = (Outcome::Missed, Some(Cause::ScheduleChanged));
        assert_eq!(gone.len(), 2, "{gone:?}");
        assert!(
            gone.iter()
                .all(|(_, outcome, cause)| (*outcome, *cause) == changed)
        );
        assert!(gone[0].0 < at(480) && gone[1].0 >= at(600), "{gone:?}");
    });
}

#[test]
fn a_schedule_spelled_otherwise_loses_nothing() {
    for_each_seed(|seed| {
        let world = edited(seed, "0 0,9 * * * *", "0 9,0 * * * *");
        let ran: Vec<_> = runs(&world, "edited")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(540)], "{world:?}");
    });
}

#[test]
fn what_fell_due_while_a_job_was_disabled_is_skipped_as_one_line() {
    for_each_seed(|seed| {
        let one = job("one", "0 * * * * *");
        let mut world = three(seed, vec![one.clone()], quick);
        world.jobs = vec![Arc::new(Job {
            enabled: false,
            ..one.clone()
        })];
        outage(&mut world, seconds(1));
        world.run_for(seconds(600));
        assert!(runs(&world, "one").is_empty());
        world.jobs = vec![Arc::new(one)];
        outage(&mut world, seconds(1));
        world.run_for(seconds(60));
        let ran: Vec<_> = runs(&world, "one")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [at(660)], "{world:?}");
        let skipped: Vec<_> = ranges(&world, "one")
            .into_iter()
            .filter(|(_, _, outcome, _)| *outcome == Outcome::Skipped)
            .collect();
        assert_eq!(skipped.len(), 1, "{skipped:?}");
        let (from, to, _, cause) = skipped[0];
        assert!(
            from < at(60) && to >= at(600) && to < at(660),
            "{skipped:?}"
        );
        assert_eq!(cause, Some(Cause::Disabled));
    });
}

#[test]
fn a_random_delay_is_the_same_on_every_replica_and_below_its_limit() {
    for_each_seed(|seed| {
        let one = Job {
            random_delay: seconds(30),
            ..job("delayed", "0 * * * * *")
        };
        let mut world = three(seed, vec![one], quick);
        world.run_for(seconds(590));
        let delays = |world: &World| -> Vec<_> {
            let runs = runs(world, "delayed");
            let delay = |run: &&Run| {
                let due = run.scheduled_at.saturating_since(at(0));
                (run.scheduled_at, run.started - due)
            };
            runs.iter().map(delay).collect()
        };
        let first = delays(&world);
        assert_eq!(first.len(), 9, "{world:?}");
        assert!(
            first.iter().all(|(_, delay)| *delay < seconds(31)),
            "{first:?}"
        );
        // Other replicas, other seeds, the same delays.
        let mut other = World::new(seed + 1, vec![(*world.jobs[0]).clone()], quick);
        other.start();
        other.run_for(seconds(600));
        for ((at, one), (other_at, other)) in first.iter().zip(delays(&other)) {
            assert_eq!(*at, other_at);
            assert!(
                one.abs_diff(other) < Duration::from_millis(150),
                "{at}: {one:?} {other:?}"
            );
        }
    });
}
