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
