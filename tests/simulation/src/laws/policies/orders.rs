//! `trigger`, `pause`, `resume`, `kill`: what people ask for, whatever replica it concerns.

use soloist::scheduler::EndedHow;
use soloist::scheduler::lease::Origin;
use soloist::scheduler::policy::{Concurrency, Retry};

use super::*;

fn quick(_: &mut Chance) -> Duration {
    seconds(1)
}

fn long(_: &mut Chance) -> Duration {
    seconds(100)
}

#[test]
fn a_trigger_given_with_all_replicas_down_runs_once_when_one_comes_up() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![job("by-hand", "@manual")], quick);
        (0..3).for_each(|replica| world.crash(replica));
        let answer = order(&mut world, "by-hand", OrderKind::Trigger);
        let OrderAnswer::Triggered { scheduled_at } = answer else {
            panic!("{answer:?}");
        };
        // Also where it was so long ago that no look shows it.
        world.run_for(seconds(3 * 24 * 3600));
        (0..3).for_each(|replica| world.revive(replica));
        world.run_for(seconds(30));
        let ran: Vec<_> = runs(&world, "by-hand")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [scheduled_at], "{world:?}");
        let line = &lines(&world, "by-hand")[0];
        assert_eq!(line.detail.origin, Origin::Trigger);
        assert_eq!(line.detail.by.as_deref(), Some("alice@desk"));
        assert_eq!(late(&world, "by-hand"), [(scheduled_at, Some(Late::Away))]);
    });
}

#[test]
fn a_trigger_starts_within_a_moment_while_replicas_are_there() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![job("by-hand", "@manual")], quick);
        order(&mut world, "by-hand", OrderKind::Trigger);
        let asked = world.now;
        world.run_for(seconds(5));
        let runs = runs(&world, "by-hand");
        assert_eq!(runs.len(), 1);
        assert!(
            runs[0].started - asked < Duration::from_millis(100),
            "{world:?}"
        );
    });
}

#[test]
fn triggers_obey_the_concurrency_policy() {
    for_each_seed(|seed| {
        for concurrency in [
            Concurrency::Forbid,
            Concurrency::Queue { limit: 1 },
            Concurrency::Replace,
        ] {
            let one = Job {
                concurrency,
                ..job("by-hand", "@manual")
            };
            let mut world = three(seed, vec![one], long);
            for _ in 0..3 {
                order(&mut world, "by-hand", OrderKind::Trigger);
                world.run_for(seconds(10));
            }
            world.run_for(seconds(250));
            check_shards(&world);
            let mut fates: Vec<_> = lines(&world, "by-hand")
                .into_iter()
                .map(|line| (line.scheduled_at, line.outcome, line.detail.cause))
                .collect();
            fates.sort_by_key(|(at, ..)| *at);
            let fates: Vec<_> = fates
                .into_iter()
                .map(|(_, outcome, cause)| (outcome, cause))
                .collect();
            let ran = (Outcome::Succeeded, None);
            let expected = match concurrency {
                Concurrency::Forbid => {
                    let skipped = (Outcome::Skipped, Some(Cause::Overlap));
                    [ran, skipped, skipped]
                }
                Concurrency::Queue { .. } => [ran, ran, (Outcome::Skipped, Some(Cause::QueueFull))],
                Concurrency::Replace => {
                    let replaced = (Outcome::Cancelled, Some(Cause::Replaced));
                    [replaced, replaced, ran]
                }
            };
            assert_eq!(fates, expected, "{concurrency:?}\n{world:?}");
        }
    });
}

#[test]
fn of_many_triggers_given_with_all_replicas_down_each_runs_in_its_turn() {
    let one = Job {
        concurrency: Concurrency::Queue { limit: 1000 },
        ..job("by-hand", "@manual")
    };
    let mut world = three(1, vec![one], |_| Duration::from_millis(100));
    (0..3).for_each(|replica| world.crash(replica));
    let mut asked = Vec::new();
    for _ in 0..100 {
        match order(&mut world, "by-hand", OrderKind::Trigger) {
            OrderAnswer::Triggered { scheduled_at } => asked.push(scheduled_at),
            other => panic!("{other:?}"),
        }
    }
    (0..3).for_each(|replica| world.revive(replica));
    world.run_for(seconds(60));
    check_shards(&world);
    let ran: Vec<_> = runs(&world, "by-hand")
        .iter()
        .map(|run| run.scheduled_at)
        .collect();
    assert_eq!(ran, asked);
}

#[test]
fn an_order_sent_again_is_done_once() {
    let mut world = three(1, vec![job("by-hand", "@manual")], quick);
    let order = Order {
        job: JobName::new("by-hand").expect("a name"),
        what: OrderKind::Trigger,
        by: "alice@desk".to_owned(),
        id: RunId::new(Uuid::from_u128(7)),
        retention: world.jobs[0].retention,
        dependents: Default::default(),
    };
    let first = world.order(order.clone());
    world.run_for(seconds(5));
    assert_eq!(world.order(order), first);
    world.run_for(seconds(5));
    assert_eq!(runs(&world, "by-hand").len(), 1);
}

#[test]
fn what_falls_due_in_a_pause_is_skipped_as_one_line_and_triggers_still_run() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![job("one", "*/10 * * * * *")], quick);
        world.run_for(seconds(5));
        order(&mut world, "one", OrderKind::Pause);
        world.run_for(seconds(100));
        assert_eq!(runs(&world, "one").len(), 1, "{world:?}");
        order(&mut world, "one", OrderKind::Trigger);
        world.run_for(seconds(2));
        assert_eq!(runs(&world, "one").len(), 2, "{world:?}");
        order(&mut world, "one", OrderKind::Resume);
        world.run_for(seconds(5));
        assert_eq!(runs(&world, "one")[2].scheduled_at, at(120), "{world:?}");
        let ranges: Vec<_> = ranges(&world, "one")
            .into_iter()
            .filter(|(.., cause)| *cause == Some(Cause::Paused))
            .collect();
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        assert!(ranges[0].0 > at(10) && ranges[0].1 < at(120), "{ranges:?}");
        let line = lines(&world, "one");
        let line = line
            .iter()
            .find(|line| line.detail.cause == Some(Cause::Paused));
        let reason = line.and_then(|line| line.detail.reason.clone());
        assert!(reason.is_some_and(|reason| reason.contains("alice@desk")));
    });
}

#[test]
fn a_kill_ends_the_attempt_wherever_it_runs_and_no_other_follows() {
    for_each_seed(|seed| {
        let one = Job {
            retry: Retry {
                max: 3,
                ..Retry::default()
            },
            ..job("one", "0 0 * * * *")
        };
        let mut world = three(seed, vec![one], long);
        world.run_for(seconds(3600));
        let killed = order(&mut world, "one", OrderKind::Kill);
        assert!(
            matches!(killed, OrderAnswer::Killed { running: 1, .. }),
            "{killed:?}"
        );
        let asked = world.now;
        world.run_for(seconds(60));
        let runs = runs(&world, "one");
        assert_eq!(runs.len(), 1, "{world:?}");
        let end = runs[0].ended.expect("it has ended");
        assert!(
            end - asked < Duration::from_millis(1200),
            "{:?}",
            end - asked
        );
        assert_eq!(
            ends(&world, "one"),
            [(3600, Outcome::Cancelled, Some(Cause::Killed))]
        );
        assert_eq!(order(&mut world, "one", OrderKind::Kill), OrderAnswer::Idle);
    });
}

#[test]
fn a_kill_cancels_what_waits_to_be_tried_again() {
    for_each_seed(|seed| {
        let one = Job {
            retry: Retry {
                max: 3,
                backoff: seconds(60),
                ..Retry::default()
            },
            ..job("one", "0 0 * * * *")
        };
        let mut world = three(seed, vec![one], quick);
        world.fate = |_, _| EndedHow::Failed;
        world.run_for(seconds(3600));
        let killed = order(&mut world, "one", OrderKind::Kill);
        assert!(
            matches!(killed, OrderAnswer::Killed { running: 0, .. }),
            "{killed:?}"
        );
        world.run_for(seconds(120));
        assert_eq!(runs(&world, "one").len(), 1);
        assert_eq!(
            ends(&world, "one"),
            [(3600, Outcome::Cancelled, Some(Cause::Killed))]
        );
    });
}

#[test]
fn a_kill_withdraws_triggers_that_nobody_has_started() {
    for_each_seed(|seed| {
        let one = Job {
            run_on: zone("nowhere"),
            ..job("by-hand", "@manual")
        };
        let mut world = three(seed, vec![one], quick);
        order(&mut world, "by-hand", OrderKind::Trigger);
        order(&mut world, "by-hand", OrderKind::Trigger);
        world.run_for(seconds(5));
        let killed = order(&mut world, "by-hand", OrderKind::Kill);
        assert!(
            matches!(killed, OrderAnswer::Killed { running: 0, .. }),
            "{killed:?}"
        );
        let withdrawn = (Outcome::Cancelled, Some(Cause::Killed));
        let ends = ends(&world, "by-hand");
        assert_eq!(ends.len(), 2, "{ends:?}");
        assert!(
            ends.iter()
                .all(|(_, outcome, cause)| (*outcome, *cause) == withdrawn)
        );
        assert_eq!(
            order(&mut world, "by-hand", OrderKind::Kill),
            OrderAnswer::Idle
        );
    });
}

#[test]
fn what_was_due_before_a_pause_runs_after_it_or_is_skipped_in_it() {
    for_each_seed(|seed| {
        for in_it in [false, true] {
            let mut world = three(seed, vec![job("one", "0 * * * * *")], quick);
            (0..3).for_each(|replica| world.crash(replica));
            world.run_for(seconds(55));
            order(&mut world, "one", OrderKind::Pause);
            world.run_for(seconds(95) - world.now);
            if in_it {
                (0..3).for_each(|replica| world.revive(replica));
                world.run_for(seconds(5));
            }
            order(&mut world, "one", OrderKind::Resume);
            if !in_it {
                (0..3).for_each(|replica| world.revive(replica));
            }
            world.run_for(seconds(15));
            let runs = runs(&world, "one");
            let ran: Vec<_> = runs.iter().map(|run| run.scheduled_at).collect();
            match in_it {
                false => assert_eq!(ran, [at(60)], "{world:?}"),
                true => {
                    assert_eq!(ran, [], "{world:?}");
                    let paused = (60, Outcome::Skipped, Some(Cause::Paused));
                    assert_eq!(ends(&world, "one"), [paused], "{world:?}");
                }
            }
        }
    });
}

#[test]
fn a_kill_that_its_holder_did_not_hear_of_is_heard_with_the_next_renewal() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![job("one", "0 0 * * * *")], long);
        world.run_for(seconds(3600));
        let holder = world.holder().expect("it runs");
        world.cut_off(holder, true);
        order(&mut world, "one", OrderKind::Kill);
        world.run_for(seconds(1));
        world.cut_off(holder, false);
        let back = world.now;
        world.run_for(seconds(10));
        let end = runs(&world, "one")[0].ended.expect("it has ended");
        assert!(end - back < seconds(5), "{:?}", end - back);
        assert_eq!(ends(&world, "one")[0].2, Some(Cause::Killed));
    });
}
