//! What the program says of a job's policies and of a replica's tags.

use crate::soloist::Place;

const TABLE: &str = r#"
[scheduler]
tags = { zone = "eu", disk = "ssd" }

[jobs.plain]
schedule = "@daily"
shell = "x"

[jobs.all]
schedule = "@daily"
shell = "x"
random_delay = "30s"
catch_up = "all"
concurrency_policy = "queue"
retry = { max = 3, factor = 1.5 }
on_crash = "skip"
max_attempts = 7
shards = 4
run_on = ["zone=eu", "gpu=yes"]

[jobs.some]
schedule = "@hourly"
shell = "x"
catch_up = "none"
starting_deadline = "5m"
concurrency_policy = "replace"
retry = { max = 1, backoff = "10s", max_backoff = "10s", factor = 1 }

[jobs.follow]
after = "plain"
shell = "x"

[jobs.report]
after = ["all", "some"]
shell = "x"
shards = 2
"#;

/// The lines about a job.
fn about<'t>(stdout: &'t str, job: &str) -> Vec<&'t str> {
    let mut blocks = stdout.split("\n\n");
    let block = blocks.find(|block| block.starts_with(&format!("{job} ")));
    block.expect("the job").lines().collect()
}

#[test]
fn check_prints_the_policies_that_differ_from_the_defaults_on_one_line() {
    let ended = Place::with_table(TABLE).run(&["check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let stdout = &ended.stdout;
    assert_eq!(
        about(stdout, "all")[2],
        "  random_delay 30s; catch_up all, at most 100; concurrency_policy queue, at most 10; \
         retry 3 times, after 1s × 1.5, at most 5m; on_crash skip; max_attempts 7; shards 4; \
         run_on gpu=yes,zone=eu"
    );
    assert_eq!(
        about(stdout, "some")[2],
        "  catch_up none; starting_deadline 5m; concurrency_policy replace; \
         retry once, after 10s × 1, at most 10s"
    );
    // Head, what it runs, and three occurrences.
    assert_eq!(about(stdout, "plain").len(), 5, "{stdout}");
}

#[test]
fn check_and_next_say_which_jobs_another_comes_after() {
    let place = Place::with_table(TABLE);
    let ended = place.run(&["check"]);
    let follow = [
        "follow  after plain",
        "  runs sh -c \"x\"; no timeout",
        "  due when plain has succeeded",
    ];
    assert_eq!(about(&ended.stdout, "follow"), follow);
    let report = [
        "report  after all and some",
        "  runs sh -c \"x\"; no timeout",
        "  shards 2",
        "  due when all and some have succeeded",
    ];
    assert_eq!(about(&ended.stdout, "report"), report);

    let ended = place.run(&["next", "report"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let expected = "after all and some\ndue when all and some have succeeded\n";
    assert_eq!(ended.stdout, expected);
}

#[test]
fn a_job_that_waits_for_a_disabled_one_is_a_warning() {
    let table = "[jobs.a]\nschedule = \"@daily\"\nshell = \"x\"\nenabled = false\n[jobs.b]\nafter = \"a\"\nshell = \"x\"\n";
    let ended = Place::with_table(table).run(&["check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let warning = "warning: `a` is disabled, so that `b` never comes about by itself";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    assert!(ended.stderr.contains("jobs.toml:6:9"), "{}", ended.stderr);
}

#[test]
fn a_tag_by_flag_is_over_the_variable_is_over_the_file_name_by_name() {
    let place = Place::with_table(TABLE);
    let tags = |args: &[&str], variable: &str| {
        // Nothing listens there: it says who it is, and ends.
        let away = ["--store", "redis://127.0.0.1:1", "--log-format", "json"];
        let args = [&["run", "--require-store"], &away[..], args].concat();
        let ended = place.run_with(&args, &[("SOLOIST_TAGS", variable)]);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        let lines = ended.stderr.lines();
        let mut lines = lines.filter_map(|line| serde_json::from_str(line).ok());
        let starting = lines.find(|line: &serde_json::Value| line["message"] == "starting");
        let tags = &starting.expect("it starts")["tags"];
        tags.as_str().expect("tags").to_owned()
    };
    assert_eq!(tags(&[], ""), "disk=ssd,zone=eu");
    assert_eq!(tags(&[], "gpu=yes, zone=us,"), "disk=ssd,gpu=yes,zone=us");
    let flags = ["--tag", "zone=asia", "--tag", "room=1"];
    let expected = "disk=ssd,gpu=yes,room=1,zone=asia";
    assert_eq!(tags(&flags, "gpu=yes,zone=us"), expected);
}
