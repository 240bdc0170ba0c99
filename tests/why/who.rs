//! Who could claim what is open, and what is to be expected of what is to come.

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{Definition, OrderKind};
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

#[test]
fn an_older_definition_is_said_to_be_that_and_who_has_the_newer_one() {
    let defined = |digest: &str, revision| Job {
        definition: Definition {
            digest: digest.to_owned(),
            revision,
        },
        ..job("daily", "0 22 * * *")
    };
    let (old, new) = (defined("aa", None), defined("bb", Some(2)));
    let mut world = World::new([old.clone()]);
    world.register(&new, None);
    world.set("22:00:05");
    for (replica, digest, job) in [("r1", "old", &old), ("r2", "new", &new)] {
        world.alive(replica, |info| info.digest = digest.to_owned());
        world.publish(replica, digest, job);
    }
    let last = |world: &World| world.why("daily", "22:00:00").pop();
    let told = |whose: &str| {
        Some(format!(
            "This table's definition of the job (aa) is older than the one in force (bb (revision 2)), which {whose}: replicas with this table leave the job to those with that one."
        ))
    };
    assert_eq!(last(&world), told("r2 has"));
    world.alive("r3", |info| info.digest = "new".to_owned());
    assert_eq!(last(&world), told("r2 and r3 have"));
    world.set("22:01:05");
    world.alive("r1", |info| info.digest = "old".to_owned());
    world.set("22:01:10");
    assert_eq!(last(&world), told("no replica that is alive has"));
    // One that is in force is not outdated, nor is one that the ledger doesn't know.
    for job in [new, defined("cc", None)] {
        world.table = Some(vec![job]);
        let last = last(&world).expect("a line");
        assert!(!last.contains("definition"), "{last}");
    }
}

#[test]
fn what_a_newer_table_lacks_is_claimed_by_nobody_and_who_has_that_table_is_told() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    let other = job("other", "@manual");
    for (replica, digest, job) in [
        ("r1", "old", &daily),
        ("r2", "old", &daily),
        ("r3", "new", &other),
    ] {
        world.alive(replica, |info| info.digest = digest.to_owned());
        world.publish(replica, digest, job);
    }
    let nobody = "obody claims it: r3 has a newer table, which lacks the job, and replicas with an older one start nothing of it.";
    let told = world.why("daily", "22:00:00");
    let outlook = format!("As things are now: n{nobody}");
    assert_eq!(told.last(), Some(&outlook), "{told:#?}");
    world.set("22:00:05");
    let all = |world: &World, last: &str| {
        for (replica, digest) in [("r1", "old"), ("r2", "old"), ("r3", last)] {
            world.alive(replica, |info| info.digest = digest.to_owned());
        }
    };
    all(&world, "new");
    assert_eq!(last_line_before_remarks(&world), format!("N{nobody}"));
    // Also to those who have that table, or none.
    world.table = Some(Vec::new());
    assert_eq!(last_line_before_remarks(&world), format!("N{nobody}"));
    world.table = Some(vec![daily]);
    all(&world, "old");
    assert_eq!(
        last_line_before_remarks(&world),
        "Any of these may claim it: r1, r2, r3."
    );
}
