//! `concurrency_policy`: what becomes of an occurrence that finds its job running.

use soloist::scheduler::policy::Concurrency;

use super::*;

/// 25 s each, due every 10 s.
fn long(_: &mut Chance) -> Duration {
    seconds(25)
}

fn often(concurrency: Concurrency) -> Job {
    Job {
        concurrency,
        ..job("often", "*/10 * * * * *")
    }
}

#[test]
fn with_forbid_what_falls_due_meanwhile_is_skipped_with_the_reason() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![often(Concurrency::Forbid)], long);
        world.run_for(seconds(50));
        check_shards(&world);
        let ends = ends(&world, "often");
        let overlap = Some(Cause::Overlap);
        let expected = [
            (10, Outcome::Succeeded, None),
            (20, Outcome::Skipped, overlap),
            (30, Outcome::Skipped, overlap),
            (40, Outcome::Skipped, overlap),
        ];
        let skipped_first = ends.iter().find(|(second, ..)| *second == 20);
        assert!(skipped_first.is_some(), "{ends:?}");
        let settled: Vec<_> = ends
            .into_iter()
            .filter(|(second, ..)| (10..40).contains(second))
            .collect();
        assert_eq!(settled, expected[..3], "{world:?}");
    });
}

#[test]
fn with_queue_occurrences_run_in_order_and_what_is_over_the_limit_is_skipped() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![often(Concurrency::Queue { limit: 2 })], long);
        world.run_for(seconds(110));
        check_shards(&world);
        let ran: Vec<_> = runs(&world, "often")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert!(ran.is_sorted(), "{ran:?}");
        assert_eq!(ran[..3], [at(10), at(20), at(30)], "{world:?}");
        let ends = ends(&world, "often");
        let full: Vec<_> = ends
            .iter()
            .filter(|(_, _, cause)| *cause == Some(Cause::QueueFull))
            .collect();
        assert!(!full.is_empty(), "{ends:?}");
        // Two wait from 0:30 on, until 0:35 makes room for one.
        assert_eq!(full[0].0, 50, "{ends:?}");
        for pair in runs(&world, "often").windows(2) {
            let gap = pair[1].started - pair[0].ended.expect("it has ended");
            assert!(
                gap < Duration::from_millis(200),
                "the next one waited for {gap:?}"
            );
        }
    });
}

#[test]
fn what_waits_in_the_queue_for_longer_than_its_deadline_is_missed() {
    for_each_seed(|seed| {
        let one = Job {
            starting_deadline: seconds(12),
            ..often(Concurrency::Queue { limit: 10 })
        };
        let mut world = three(seed, vec![one], |_| seconds(35));
        world.run_for(seconds(80));
        check_shards(&world);
        let ends = ends(&world, "often");
        let missed: Vec<_> = ends
            .iter()
            .filter(|(_, outcome, _)| *outcome == Outcome::Missed)
            .collect();
        assert!(
            missed
                .iter()
                .all(|(_, _, cause)| *cause == Some(Cause::Deadline)),
            "{ends:?}"
        );
        assert!(missed.iter().any(|(second, ..)| *second == 20), "{ends:?}");
        for run in runs(&world, "often") {
            let due = run.scheduled_at.saturating_since(at(0));
            assert!(run.started <= due + seconds(13), "{run:?}");
        }
    });
}

#[test]
fn with_replace_the_newer_one_starts_only_when_the_older_has_ended() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![often(Concurrency::Replace)], long);
        world.run_for(seconds(55));
        check_shards(&world);
        let runs = runs(&world, "often");
        let ran: Vec<_> = runs.iter().map(|run| run.scheduled_at).collect();
        assert_eq!(
            ran,
            [at(10), at(20), at(30), at(40), at(50), at(60)][..ran.len()]
        );
        assert!(ran.len() >= 5, "{world:?}");
        let ends = ends(&world, "often");
        let replaced = (Outcome::Cancelled, Some(Cause::Replaced));
        for (second, outcome, cause) in &ends[..3] {
            assert_eq!((*outcome, *cause), replaced, "of second {second}");
        }
        // A second of grace, and the news of both.
        for run in &runs[1..] {
            let due = run.scheduled_at.saturating_since(at(0));
            assert!(run.started - due < Duration::from_millis(1500), "{run:?}");
        }
    });
}

#[test]
fn with_replace_a_dead_holder_delays_the_newer_one_and_is_not_run_again() {
    for_each_seed(|seed| {
        let one = Job {
            concurrency: Concurrency::Replace,
            ..job("one", "0 * * * * *")
        };
        let mut world = three(seed, vec![one], |_| seconds(70));
        world.run_for(seconds(105));
        let holder = world.holder().expect("it runs");
        world.crash(holder);
        world.run_for(seconds(40));
        check_shards(&world);
        let ran: Vec<_> = runs(&world, "one")
            .iter()
            .map(|run| (run.scheduled_at, run.attempt))
            .collect();
        // The crash is older than the occurrence of 2:00, which is granted after the takeover or
        // in its place.
        assert!(ran.contains(&(at(120), 1)), "{world:?}");
        let last = ends(&world, "one");
        assert!(
            last.iter().filter(|(second, ..)| *second == 60).count() == 1,
            "{last:?}"
        );
    });
}
