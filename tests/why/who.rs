//! Who could claim what is open, and what is to be expected of what is to come.

use soloist::scheduler::lease::OrderKind;
use soloist::scheduler::policy::Concurrency;

use crate::world::{World, at, job, tag};

/// At 22:00:05, with two replicas alive: what is said last of what is due at 22:00.
fn who_claims(change: impl FnOnce(&mut World)) -> String {
    let mut world = World::new([job("daily", "0 22 * * *")]);
    change(&mut world);
    world.set("22:00:05");
    world.alive("r1", |_| {});
    world.alive("r2", |_| {});
    last_line_before_remarks(&world)
}

fn last_line_before_remarks(world: &World) -> String {
    let told = world.why("daily", "22:00:00");
    let remark = |line: &&String| !line.starts_with("This table");
    told.iter().rfind(remark).cloned().unwrap_or_default()
}

#[test]
fn what_no_table_here_has_is_not_said_to_be_any_replicas() {
    assert_eq!(who_claims(|_| {}), "Any of these may claim it: r1, r2.");
    assert_eq!(
        who_claims(|world| world.table = Some(Vec::new())),
        "Nobody who has this table claims it, as the job is not in it; alive are: r1, r2."
    );
    assert_eq!(
        who_claims(|world| world.table = None),
        "Those of these may claim it whose tables have the job, with the tags that it asks for: r1, r2. No table is here that says which."
    );
}

#[test]
fn nobody_claims_what_is_disabled() {
    let off = |world: &mut World| {
        world.set("22:00:02");
        let mut daily = world.table.as_mut().expect("a table").remove(0);
        daily.enabled = false;
        world.table = Some(vec![daily]);
    };
    assert_eq!(
        who_claims(off),
        "Nobody claims it while the job is disabled: it is disabled in this table."
    );
    assert_eq!(
        who_claims(|world| {
            off(world);
            let daily = world.table.clone().expect("a table").remove(0);
            world.register(&daily, None);
        }),
        "Nobody claims it while the job is disabled: it has been disabled since 2026-11-20T22:00:02Z."
    );
}

#[test]
fn a_trigger_of_a_job_that_was_disabled_since_waits_for_that_to_end() {
    let mut manual = job("manual", "@manual");
    let mut world = World::new([manual.clone()]);
    world.set("22:00:00.250");
    world.order(&manual, OrderKind::Trigger);
    world.set("22:00:10");
    world.alive("r1", |_| {});
    manual.enabled = false;
    world.register(&manual, None);
    let told = world.why("manual", "22:00:00.250");
    let last = told.last().map(String::as_str);
    let expected = "Nobody claims it while the job is disabled: it has been disabled since 2026-11-20T22:00:10Z.";
    assert_eq!(last, Some(expected), "{told:#?}");
}

#[test]
fn whose_turn_it_is_in_a_pause_is_not_said_to_be_claimed() {
    let mut minutely = job("minutely", "* * * * *");
    minutely.concurrency = Concurrency::Queue { limit: 10 };
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &minutely, "22:00:00");
    world.set("22:01:00");
    let claim = world.prepare(&minutely, "22:01:00");
    world.ask("r2", &claim);
    world.order(&minutely, OrderKind::Pause);
    world.succeed("r1", &lease);
    world.alive("r1", |_| {});
    assert_eq!(
        world.why("minutely", "22:01:00"),
        [
            "minutely at 2026-11-20T22:01:00Z waits for its turn.",
            "It waits since 2026-11-20T22:01:00Z (now); nothing is before it. It may start until 2026-11-20T22:02:00Z (in 1m 0s).",
            "The job has been paused since 2026-11-20T22:01:00Z, by ann: unless that ends before its turn comes, it is skipped.",
        ]
    );
}

#[test]
fn what_is_to_come_where_nobody_would_run_it_says_what_becomes_of_it() {
    let mut tagged = job("tagged", "0 22 * * *");
    tagged.run_on = tag("zone", "b");
    let mut world = World::new([job("daily", "0 22 * * *"), tagged]);
    world.alive("r1", |_| {});
    assert_eq!(
        world.why("tagged", "22:00:00"),
        [
            "tagged at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "As things are now: nobody can claim it: none of the replicas that are alive (r1) has the tags of `run_on = { zone = \"b\" }`. If that is so until its `starting_deadline`, it is recorded as skipped.",
        ]
    );
    // Who could run it may be busy now, and that passes.
    world.alive("r1", |info| info.declines = true);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
        ]
    );
    world.table = Some(Vec::new());
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "As things are now: nobody who has this table claims it, as the job is not in it; alive are: r1.",
            "This table has no such job: it was taken out or renamed, or is another fleet's.",
        ]
    );
}

#[test]
fn a_trigger_that_the_ledger_may_have_lost_is_not_just_no_occurrence() {
    let manual = job("manual", "@manual");
    let mut world = World::new([manual]);
    world.set("22:10:00");
    let mut state = world.snapshot();
    state.answer.born = Some(at("22:05:00"));
    world.read_before = Some(state);
    assert_eq!(
        world.why("manual", "22:00:00.250"),
        [
            "manual at 2026-11-20T22:00:00.25Z is not an occurrence.",
            "The job runs only when somebody says so: its schedule is `@manual`.",
            "What was triggered at that time may be gone: the ledger began, lost data, or its server was restarted at 2026-11-20T22:05:00Z.",
        ]
    );
    let told = world.why("manual", "22:05:00.001");
    assert_eq!(told.len(), 2, "{told:#?}");
}
