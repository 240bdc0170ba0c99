//! `after`: jobs that come after others.

use std::sync::Arc;

use soloist::scheduler::EndedHow;
use soloist::scheduler::lease::Origin;
use soloist::scheduler::policy::Concurrency;

use super::*;

fn quick(chance: &mut Chance) -> Duration {
    Duration::from_millis(200 + chance.below(3_000))
}

fn after(name: &str, parents: &[&str]) -> Job {
    let names = parents
        .iter()
        .map(|name| JobName::new(name).expect("a name"));
    Job {
        after: names.collect(),
        ..job(name, "@manual")
    }
}

/// Extract and load together, then report, then mail.
fn pipeline() -> Vec<Job> {
    vec![
        job("extract", "0 * * * * *"),
        job("load", "0 * * * * *"),
        after("report", &["extract", "load"]),
        after("mail", &["report"]),
    ]
}

#[test]
fn a_job_runs_when_all_before_it_have_succeeded_for_the_same_instant() {
    for_each_seed(|seed| {
        let mut world = three(seed, pipeline(), quick);
        world.run_for(seconds(175));
        check_shards(&world);
        for instant in [at(60), at(120)] {
            let run = |name: &str| {
                let found: Vec<_> = runs(&world, name)
                    .into_iter()
                    .filter(|run| run.scheduled_at == instant)
                    .collect();
                assert_eq!(found.len(), 1, "{name} {world:?}");
                found[0].clone()
            };
            let end = |name: &str| run(name).ended.expect("it has ended");
            let report = run("report");
            assert!(report.started >= end("extract").max(end("load")));
            let wait = report.started - end("extract").max(end("load"));
            assert!(wait < Duration::from_millis(200), "{wait:?}");
            assert!(run("mail").started >= end("report"));
        }
        assert_eq!(lines(&world, "mail")[0].detail.origin, Origin::After);
    });
}

#[test]
fn what_comes_after_a_failure_is_skipped_and_says_whose() {
    for_each_seed(|seed| {
        let mut world = three(seed, pipeline(), quick);
        world.fate = |_, attempt| match attempt.job.name.as_str() {
            "load" => EndedHow::Failed,
            _ => EndedHow::Succeeded,
        };
        world.run_for(seconds(100));
        for name in ["report", "mail"] {
            assert!(runs(&world, name).is_empty(), "{world:?}");
            let skipped = [(60, Outcome::Skipped, Some(Cause::After))];
            assert_eq!(ends(&world, name), skipped, "{name}");
        }
        let line = &lines(&world, "report")[0];
        let reason = line.detail.reason.clone().unwrap_or_default();
        assert!(
            reason.contains("load") && reason.contains("failed"),
            "{reason}"
        );
    });
}

#[test]
fn a_trigger_flows_down_to_what_comes_after() {
    for_each_seed(|seed| {
        let jobs = vec![job("first", "@manual"), after("second", &["first"])];
        let mut world = three(seed, jobs.clone(), quick);
        let name = JobName::new("first").expect("a name");
        let order = Order {
            job: name,
            what: OrderKind::Trigger,
            by: "alice@desk".to_owned(),
            id: RunId::new(Uuid::from_u128(7)),
            retention: jobs[0].retention,
            dependents: Default::default(),
        };
        let OrderAnswer::Triggered { scheduled_at } = world.order(order) else {
            panic!("it is known");
        };
        world.run_for(seconds(15));
        let ran: Vec<_> = runs(&world, "second")
            .iter()
            .map(|run| run.scheduled_at)
            .collect();
        assert_eq!(ran, [scheduled_at], "{world:?}");
    });
}

#[test]
fn a_disabled_job_in_the_middle_is_skipped_and_what_comes_after_it_too() {
    for_each_seed(|seed| {
        let mut jobs = pipeline();
        jobs[2].enabled = false;
        let mut world = three(seed, jobs, quick);
        world.run_for(seconds(100));
        assert_eq!(
            ends(&world, "report"),
            [(60, Outcome::Skipped, Some(Cause::Disabled))]
        );
        assert_eq!(
            ends(&world, "mail"),
            [(60, Outcome::Skipped, Some(Cause::After))]
        );
    });
}

#[test]
fn what_comes_after_and_has_no_place_is_recorded_and_keeps_nothing_waiting() {
    for_each_seed(|seed| {
        let second = Job {
            run_on: zone("nowhere"),
            starting_deadline: seconds(20),
            // Nobody who can't run it makes way for it.
            concurrency: match seed % 2 {
                0 => Concurrency::Forbid,
                _ => Concurrency::Replace,
            },
            ..after("second", &["first"])
        };
        let jobs = vec![job("first", "*/10 * * * * *"), second];
        let mut world = three(seed, jobs, |_| Duration::from_millis(100));
        // It waits for as long as it takes, and hides nothing behind it.
        order(&mut world, "second", OrderKind::Trigger);
        world.run_for(seconds(100));
        let ends = ends(&world, "second");
        let placement = (Outcome::Skipped, Some(Cause::Placement));
        assert!(ends.len() >= 6, "{ends:?}");
        for (second, outcome, cause) in ends {
            assert_eq!((outcome, cause), placement, "of second {second}");
        }
        assert!(runs(&world, "second").is_empty());
        // Once there is a place, what was asked for runs in it, or makes way for what is newer.
        world.start_with(zone("nowhere"), None);
        world.run_for(seconds(5));
        if seed % 2 == 1 {
            let ends = lines(&world, "second");
            let asked = ends
                .iter()
                .find(|line| line.detail.origin == Origin::Trigger);
            let fate = asked.map(|line| (line.outcome, line.detail.cause));
            let replaced = (Outcome::Skipped, Some(Cause::Replaced));
            assert_eq!(fate, Some(replaced), "{world:?}");
            return;
        }
        let origins: Vec<_> = lines(&world, "second")
            .iter()
            .filter(|line| line.outcome == Outcome::Succeeded)
            .map(|line| line.detail.origin)
            .collect();
        assert_eq!(origins.first(), Some(&Origin::Trigger), "{world:?}");
    });
}

#[test]
fn nothing_that_comes_after_is_lost_when_replicas_die() {
    for_each_seed(|seed| {
        let mut world = three(seed, pipeline(), quick);
        for _ in 0..20 {
            world.run_for_about(5, 20_000);
            let victim = world.chance.below(3) as usize;
            world.crash(victim);
            world.run_for_about(0, 5_000);
            world.revive(victim);
        }
        world.run_for(seconds(120));
        check_shards(&world);
        let settled = |name: &str| -> Vec<_> {
            let ends = ends(&world, name);
            ends.iter()
                .map(|(second, ..)| *second)
                .filter(|second| *second < 200)
                .collect()
        };
        let expected = settled("extract");
        assert_eq!(settled("report"), expected, "{world:?}");
        assert_eq!(settled("mail"), expected, "{world:?}");
        let _: &[Arc<Job>] = &world.jobs;
    });
}
