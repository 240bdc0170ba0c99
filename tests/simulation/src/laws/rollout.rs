//! Tables that are rolled out and back, replica by replica, while replicas crash, freeze and are
//! cut off.

use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::Definition;
use soloist::scheduler::time::Timestamp;
use soloist::store::Standing;

use crate::accounts::{Life, check_lines};
use crate::checks::{check_ledger, check_shards};
use crate::jobs::job;
use crate::seeds::for_seeds;
use crate::world::{Chance, GENESIS_MS, Network, Run, World};

const SEEDS: u64 = 10;

/// A sign of life of a table whose shortest lease lasts for 15 s, and for how long it counts.
const HEARTBEAT: Duration = Duration::from_millis(2_500);
const ALIVE: Duration = Duration::from_millis(7_500);

/// How long a job may rest that a live replica has: until whoever had the newer definition counts
/// as gone, that is seen by a look, and what is asked then is answered.
const LONGEST_REST: Duration = Duration::from_millis(7_500 + 2 * 2_500 + 5_000);

fn short(chance: &mut Chance) -> Duration {
    Duration::from_millis(1 + chance.below(900))
}

fn defined(name: &str, schedule: &str, digest: &str, revision: Option<u64>) -> Arc<Job> {
    Arc::new(Job {
        definition: Definition {
            digest: digest.to_owned(),
            revision,
        },
        ..job(name, schedule)
    })
}

/// The table of a number: `steady` is the same in all of them but for its command, `edited` has
/// another schedule in each.
fn table(number: u64, revision: Option<u64>) -> Vec<Arc<Job>> {
    let digest = format!("{number:04}");
    let schedules = [
        "*/2 * * * * *",
        "*/3 * * * * *",
        "* * * * * *",
        "1/2 * * * * *",
    ];
    let schedule = schedules[number as usize % schedules.len()];
    vec![
        defined("steady", "* * * * * *", &digest, revision),
        defined("edited", schedule, &digest, revision),
        defined("same", "* * * * * *", "0000", revision),
    ]
}

/// The `revision` of a table: all have one, none has, or those of even numbers have.
fn revision(seed: u64, number: u64) -> Option<u64> {
    let has_one = match seed % 3 {
        0 => true,
        1 => false,
        _ => number.is_multiple_of(2),
    };
    has_one.then_some(number)
}

fn world(seed: u64, first: &[Arc<Job>]) -> World {
    let jobs = first.iter().map(|job| (**job).clone()).collect();
    let mut world = World::new(seed, jobs, short);
    (0..3).for_each(|_| _ = world.start());
    world.run_for(Duration::from_secs(4));
    world
}

/// A replica stops politely, and starts with another table.
fn replace(world: &mut World, number: usize, jobs: &[Arc<Job>]) {
    world.drain(number);
    world.run_for_about(1, 2_000);
    world.crash(number);
    world.jobs = jobs.to_vec();
    world.revive(number);
}

/// Nothing twice, and each instant of what all tables have has one fate.
fn check(world: &World) {
    check_shards(world);
    check_ledger(world);
    let lines = world.history();
    for name in ["steady", "same"] {
        let state = world.snapshot().jobs.into_iter();
        let mut found = state.filter(|state| state.job.as_str() == name);
        let state = found.next().expect("it is known");
        let lines: Vec<_> = lines
            .iter()
            .filter(|line| line.job == state.job)
            .cloned()
            .collect();
        let first = lines.last().expect("it ran").scheduled_at;
        let mut begun = state.clone();
        begun.settled_until = first - Duration::from_millis(1);
        let job = job(name, "* * * * * *");
        check_lines(&state, &lines, &Life::from(&begun, &job), &job);
        let open = state
            .attempts
            .iter()
            .any(|one| !matches!(one.standing, Standing::Ended(_)));
        let now = Timestamp::from_millis(GENESIS_MS) + world.now;
        let behind = now.saturating_since(state.settled_until);
        assert!(
            open || behind < Duration::from_secs(3),
            "{name} is {behind:?} behind\n{world:?}"
        );
    }
}

fn assert_never_late(world: &World, than: Duration) {
    let late = world.tables.late.iter().filter(|(_, since)| *since > than);
    let late: Vec<_> = late.collect();
    assert!(late.is_empty(), "{late:?}\n{world:?}");
}

/// A roll-out in which nobody dies: each attempt of a job that changed is of the newest definition
/// as soon as one replica has it, and none is lost.
#[test]
fn from_the_first_new_replica_on_no_old_one_starts_anything() {
    for_seeds(SEEDS, |seed| {
        let revised = seed % 2 == 0;
        let of = |number: u64| table(number, revised.then_some(number));
        let mut world = world(seed, &of(1));
        for number in 2..5 {
            for replica in 0..3 {
                match seed % 3 {
                    0 => replace(&mut world, replica, &of(number)),
                    _ => world.reload(replica, &of(number)),
                }
                world.run_for_about(0, 6_000);
            }
        }
        world.run_for(Duration::from_secs(4));
        assert_never_late(&world, Duration::ZERO);
        check(&world);
        // The job that is the same in all tables never noticed.
        let same = world.runs.values().filter(|run| run.job == "same").count();
        assert!(
            same as u64 + 4 >= world.now.as_secs(),
            "{same} runs\n{world:?}"
        );
        assert!(world.notices_with("Outdated") > 0, "nobody was told");
        for alarm in ["same_revision: true", "RevisionsMixed"] {
            assert_eq!(world.notices_with(alarm), 0, "{alarm}");
        }
    });
}

#[test]
fn of_one_revision_in_two_tables_each_replica_tells_once() {
    for_seeds(SEEDS, |seed| {
        let mut world = world(seed, &table(1, Some(7)));
        replace(&mut world, 0, &table(2, Some(7)));
        world.run_for_about(6, 4_000);
        assert_eq!(world.notices_with("same_revision: true"), 3, "{world:?}");
        assert_never_late(&world, Duration::ZERO);
        check(&world);
    });
}

/// An old replica that starts again in the middle of a roll-out runs nothing that has changed.
#[test]
fn an_old_table_that_starts_again_runs_nothing_of_what_has_changed() {
    for_seeds(SEEDS, |seed| {
        let revised = seed % 2 == 0;
        let of = |number: u64| table(number, revised.then_some(number));
        let mut world = world(seed, &of(1));
        replace(&mut world, 0, &of(2));
        world.run_for_about(1, 4_000);
        for _ in 0..3 {
            replace(&mut world, 1, &of(1));
            world.run_for_about(1, 4_000);
            world.crash(2);
            world.jobs = of(1);
            world.revive(2);
            world.run_for_about(1, 9_000);
        }
        assert_never_late(&world, Duration::ZERO);
        check(&world);
    });
}

fn ran(world: &World, name: &str, since: Duration) -> usize {
    let of_job = |run: &&Run| run.job == name && run.started > since;
    world.runs.values().filter(of_job).count()
}

/// A host comes back with the file of a time in which nobody used `revision`.
#[test]
fn a_table_from_before_revisions_rules_nobody_until_all_that_have_one_are_gone() {
    for_seeds(SEEDS, |seed| {
        let mut world = world(seed, &table(5, Some(5)));
        replace(&mut world, 2, &table(1, None));
        let back = world.now;
        world.run_for_about(10, 4_000);
        let ruled = |run: &&Run| run.job == "steady" && run.replica == 2 && run.started > back;
        assert_eq!(world.runs.values().filter(ruled).count(), 0, "{world:?}");
        world.crash(1);
        world.jobs = table(1, None);
        world.revive(1);
        world.run_for_about(10, 4_000);
        assert_never_late(&world, Duration::ZERO);
        check(&world);
        assert!(world.notices_with("RevisionsMixed") >= 3, "each is told");
        let told_twice = world.replicas.iter().filter(|one| {
            let told = one
                .notices
                .iter()
                .filter(|one| one.contains("RevisionsMixed"));
            told.count() > 2
        });
        assert_eq!(told_twice.count(), 0, "{world:?}");
        world.drain(0);
        world.run_for(Duration::from_secs(2));
        world.crash(0);
        let gone = world.now;
        world.run_for(Duration::from_secs(4));
        assert!(ran(&world, "steady", gone) > 0, "{world:?}");
        check(&world);
    });
}

#[test]
fn what_a_newer_table_lacks_rests_until_nobody_has_that_table() {
    for_seeds(SEEDS, |seed| {
        let [older, newer] = [[None, None], [Some(1), Some(2)], [None, Some(2)]][seed as usize % 3];
        let mut lacking = table(2, newer);
        lacking.retain(|job| job.name.as_str() != "edited");
        let mut world = world(seed, &table(1, older));
        replace(&mut world, 0, &lacking);
        world.run_for(HEARTBEAT + Duration::from_secs(2));
        let seen = world.now;
        world.run_for_about(10, 2_000);
        assert_eq!(ran(&world, "edited", seen), 0, "{world:?}");
        assert!(world.notices_with("Withdrawn") >= 2, "nobody was told");
        world.drain(0);
        world.run_for(Duration::from_secs(2));
        world.crash(0);
        let gone = world.now;
        world.run_for(Duration::from_secs(7));
        assert!(ran(&world, "edited", gone) > 0, "{world:?}");
        check(&world);
    });
}

/// The first that comes back to an empty ledger may be any.
/// Four tables at once: the definition in force is that of a replica that may not run the job any
/// more, as a newer table lacks it; and the newest table has an older one.
#[test]
fn a_definition_that_its_holder_may_not_run_keeps_nobody_from_running_the_job() {
    for_seeds(SEEDS, |seed| {
        let with = |edited: Option<&str>, other: &str| {
            let edited = edited.map(|digest| defined("edited", "* * * * * *", digest, None));
            let other = defined("same", "* * * * * *", other, None);
            edited.into_iter().chain([other]).collect::<Vec<_>>()
        };
        let mut world = world(seed, &with(Some("000b"), "0000"));
        let tables = [
            (1, with(Some("000a"), "0000")),
            (2, with(None, "0000")),
            (0, with(Some("000b"), "0001")),
        ];
        for (replica, table) in tables {
            world.reload(replica, &table);
            world.run_for(HEARTBEAT + Duration::from_secs(2));
        }
        world.run_for(HEARTBEAT);
        let settled = world.now;
        world.run_for(Duration::from_secs(10));
        let ran = ran(&world, "edited", settled);
        assert!(ran >= 8, "{ran} of 10\n{world:?}");
        check_shards(&world);
        check_ledger(&world);
    });
}

#[test]
fn a_job_that_is_changed_and_then_removed_is_told_of_twice() {
    for_seeds(SEEDS, |seed| {
        let mut world = world(seed, &table(1, revision(seed, 1)));
        replace(&mut world, 0, &table(2, Some(2)));
        world.run_for(HEARTBEAT + Duration::from_secs(2));
        assert!(world.notices_with("Outdated {") >= 2, "{world:?}");
        let mut lacking = table(3, Some(3));
        lacking.retain(|job| job.name.as_str() != "edited");
        world.reload(0, &lacking);
        world.run_for(HEARTBEAT + Duration::from_secs(2));
        assert_eq!(world.notices_with("Withdrawn"), 2, "{world:?}");
    });
}

#[test]
fn a_loss_of_all_data_brings_no_older_definition_back() {
    for_seeds(SEEDS / 2, |seed| {
        let mut world = world(seed, &table(1, None));
        replace(&mut world, 0, &table(2, None));
        world.run_for_about(6, 4_000);
        for _ in 0..2 {
            world.lose_data(None);
            world.run_for_about(40, 20_000);
        }
        assert_never_late(&world, Duration::ZERO);
        let newest = world.runs.values().filter(|run| run.job == "steady");
        let newest = newest.max_by_key(|run| run.token).expect("it runs");
        assert_eq!(newest.replica, 0, "{world:?}");
    });
}

/// When the last replica with the newer table signs off, the others go on at once.
#[test]
fn what_is_rolled_back_runs_again_when_the_last_new_replica_is_gone() {
    for_seeds(SEEDS, |seed| {
        let revised = seed % 2 == 0;
        let of = |number: u64| table(number, revised.then_some(number));
        let mut world = world(seed, &of(1));
        for replica in 0..2 {
            replace(&mut world, replica, &of(2));
            world.run_for_about(1, 4_000);
        }
        for replica in [1, 0] {
            replace(&mut world, replica, &of(1));
            world.run_for_about(1, 4_000);
        }
        world.run_for(Duration::from_secs(4));
        assert_never_late(&world, Duration::ZERO);
        check(&world);
        let runs = world
            .runs
            .values()
            .filter(|run| run.job == "steady")
            .count();
        // A drain in progress has the say for as long as others don't hear of it: a heartbeat.
        assert!(
            runs as u64 + 9 >= world.now.as_secs(),
            "{runs} runs\n{world:?}"
        );
        assert!(world.notices_with("InForceAgain") > 0, "nobody was told");
    });
}

#[test]
fn the_only_new_replica_that_crashes_is_replaced_when_it_counts_as_gone() {
    for_seeds(SEEDS, |seed| {
        let revised = seed % 2 == 0;
        let of = |number: u64| table(number, revised.then_some(number));
        let mut world = world(seed, &of(1));
        replace(&mut world, 0, &of(2));
        world.run_for_about(2, 4_000);
        world.crash(0);
        let crashed = world.now;
        // Its lease may have to run out, too.
        world.run_for(Duration::from_secs(40));
        let next = world
            .runs
            .values()
            .filter(|run| run.job == "edited" && run.started > crashed);
        let next = next.map(|run| run.started).min().expect("somebody goes on");
        let rest = ALIVE + HEARTBEAT * 2 + Duration::from_secs(2 + 17);
        assert!(
            next < crashed + rest,
            "{:?} later\n{world:?}",
            next - crashed
        );
        // It comes back, and is the newer one still.
        world.jobs = of(2);
        world.revive(0);
        world.run_for(Duration::from_secs(6));
        assert_never_late(&world, HEARTBEAT + Duration::from_secs(1));
        check(&world);
        let newest = world.runs.values().filter(|run| run.job == "steady");
        let newest = newest.max_by_key(|run| run.token).expect("it runs");
        assert_eq!(newest.replica, 0, "{world:?}");
    });
}

/// What goes wrong in a roll-out.
fn mishap(world: &mut World, newest: u64, of: &dyn Fn(u64) -> Vec<Arc<Job>>) {
    let one = world.chance.below(3) as usize;
    let other = newest.saturating_sub(world.chance.below(3)).max(1);
    match world.chance.below(7) {
        0 => {
            world.crash(one);
            world.run_for_about(0, 20_000);
            world.revive(one);
        }
        1 => {
            world.cut_off(one, true);
            world.run_for_about(0, 40_000);
            world.cut_off(one, false);
        }
        2 => {
            let length = Duration::from_millis(world.chance.below(40_000));
            world.freeze(one, length);
        }
        3 => replace(world, one, &of(other)),
        4 => {
            let jobs = of(other);
            world.jobs.clone_from(&jobs);
            world.reload(one, &jobs);
        }
        5 => {
            world.network = Network {
                lose_request: 5,
                lose_reply: 5,
                slowest_ms: 100,
                ..Network::default()
            }
        }
        _ => {
            let jobs = of(newest);
            for replica in 0..3 {
                replace(world, replica, &jobs);
            }
        }
    }
}

#[test]
fn roll_outs_and_roll_backs_among_crashes_and_partitions_neither_double_nor_lose_nor_stop_anything()
{
    for_seeds(SEEDS, |seed| {
        let of = |number: u64| table(number, revision(seed, number));
        let mut world = world(seed, &of(1));
        let mut newest = 1;
        for _ in 0..15 {
            if world.chance.percent(30) {
                newest += 1;
                replace(&mut world, 0, &of(newest));
            }
            mishap(&mut world, newest, &of);
            world.run_for_about(0, 15_000);
        }
        world.network = Network {
            slowest_ms: 5,
            ..Network::default()
        };
        for replica in 0..3 {
            if !world.is_alive(replica) {
                world.revive(replica);
            }
        }
        // Thawed, and heard of; whatever tables are there now.
        world.run_for(Duration::from_secs(60) + LONGEST_REST);
        assert_never_late(&world, HEARTBEAT + Duration::from_secs(2));
        check(&world);
    });
}

#[test]
fn no_job_rests_for_longer_than_it_takes_to_see_who_is_gone() {
    for_seeds(SEEDS, |seed| {
        let of = |number: u64| table(number, revision(seed, number));
        let mut world = world(seed, &of(1));
        // What a replica crashes with has to run out before another attempt begins: here nothing
        // of the job runs for long, and its lease is short.
        let mut newest = 1;
        for _ in 0..8 {
            let one = world.chance.below(3) as usize;
            if world.chance.percent(50) {
                newest += 1;
                replace(&mut world, one, &of(newest));
            } else {
                let other = newest.saturating_sub(world.chance.below(2)).max(1);
                world.crash(one);
                world.jobs = of(other);
                world.revive(one);
            }
            let lease = Duration::from_secs(17);
            for _ in 0..world.chance.below(30) {
                world.run_for(Duration::from_secs(1));
                for (name, last) in &world.tables.last {
                    let rest = world.now.saturating_sub(*last);
                    assert!(
                        rest < LONGEST_REST + lease,
                        "{name} rests for {rest:?}\n{world:?}"
                    );
                }
            }
        }
        check_shards(&world);
    });
}
