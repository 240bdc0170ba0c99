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

#[test]
fn check_shows_who_is_told_what_the_table_is_and_no_secret() {
    let place = Place::with_table(
        r#"
        [scheduler]
        revision = 42
        listen = "127.0.0.1:7373"
        [notify.chat]
        webhook = { url = "https://u:s3cr3t@chat.example:8443/hooks/s3cr3t?s3cr3t", secret = "${KEY}" }
        [notify.ops]
        email = { to = ["ops@shop.example"], from = "a@shop.example", smtp = "smtps://u:s3cr3t@mail.example" }
        [defaults]
        schedule = "@daily"
        shell = "x"
        [jobs.a]
        notify = ["chat", "ops"]
        warn_after = "10m"
        [jobs.b.notify]
        to = "ops"
        on = ["failure", "recovery"]
        repeat = "1d"
        ping = "https://hc-ping.com/s3cr3t"
        ping_output = true
        [jobs.c]
        "#,
    );
    let key = "s3cr3t-of-sixteen-bytes";
    let ended = place.run_with(&["check"], &[("KEY", key)]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let of = |job: &str| {
        let lines = ended.stdout.lines();
        let lines = lines.skip_while(|line| !line.starts_with(job));
        let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        lines[1..].join("\n")
    };
    let head = "jobs.toml: 3 jobs, namespace default, store embedded, revision 42, listens on 127.0.0.1:7373\n  notifies chat by webhook at https://chat.example:8443, signed\n  notifies ops by mail to ops@shop.example over mail.example:465\n\n";
    assert!(ended.stdout.starts_with(head), "{}", ended.stdout);
    assert!(
        of("a ").contains("  warn_after 10m\n  notifies chat, ops\n"),
        "{}",
        of("a ")
    );
    let told = "  notifies ops of failure, recovery, again after 1d; pings https://hc-ping.com with its output\n";
    assert!(of("b ").contains(told), "{}", of("b "));
    assert!(!of("c ").contains("notifies"), "{}", of("c "));
    assert!(!ended.stdout.contains("s3cr3t"), "{}", ended.stdout);
}
