//! Tags of a replica, and those that a job asks for.

use super::policies::{Case, assert_refused};
use super::{job, messages, read};
use crate::config::parse_tag;

#[test]
fn tags_are_a_table_or_a_list() {
    let list = job("run_on = [\"zone=eu\", \"a/b.c-d_e:8=1:2\"]").run_on;
    let table = job("run_on = { zone = \"eu\", \"a/b.c-d_e:8\" = \"1:2\" }").run_on;
    assert_eq!(list, table);
    assert_eq!(list["zone"], "eu");
    assert_eq!(list["a/b.c-d_e:8"], "1:2");
    assert!(job("run_on = []").run_on.is_empty());
    let longest = "x".repeat(63);
    let tags = job(&format!("run_on = [\"{longest}={longest}\"]")).run_on;
    assert_eq!(tags[&longest], longest);
}

#[test]
fn what_a_job_asks_for_takes_the_place_of_the_whole_default() {
    let source = "[defaults]\nrun_on = [\"zone=eu\"]\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\nrun_on = []\n[jobs.y]\nschedule = \"@daily\"\nshell = \"x\"\n";
    let config = read(source).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.jobs[0].run_on.is_empty());
    assert_eq!(config.jobs[1].run_on["zone"], "eu");
}

#[test]
fn a_replica_has_tags_that_are_filled_in_and_room_for_so_many_attempts() {
    for tags in ["{ zone = \"${NAMESPACE}\" }", "[\"zone=${NAMESPACE}\"]"] {
        let source = format!(
            "[scheduler]\ntags = {tags}\nmax_running = 100000\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n"
        );
        let scheduler = read(&source)
            .unwrap_or_else(|error| panic!("{error}"))
            .scheduler;
        assert_eq!(scheduler.tags["zone"], "shop");
        assert_eq!(scheduler.max_running, Some(100_000));
    }
    let config = read("[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n");
    let scheduler = config.unwrap_or_else(|error| panic!("{error}")).scheduler;
    assert!(scheduler.tags.is_empty());
    assert_eq!(scheduler.max_running, None);
}

const WITHOUT_SENSE: &[Case] = &[
    (
        "#run_on = \"zone=eu\"",
        "\"zone=eu\"",
        "not a string",
        "`run_on = [\"zone=eu\"]`",
    ),
    (
        "#run_on = 5",
        "5",
        "a table or a list of tags",
        "`run_on = { zone = \"eu\" }`",
    ),
    (
        "#run_on = [\"gpu\"]",
        "\"gpu\"",
        "`gpu` is no tag: it has no `=`",
        "`gpu=yes`",
    ),
    (
        "#run_on = [\"=eu\"]",
        "\"=eu\"",
        "its name is empty",
        "`NAME=VALUE`",
    ),
    (
        "#run_on = [\"zone=\"]",
        "\"zone=\"",
        "its value is empty",
        "`NAME=VALUE`",
    ),
    (
        "#run_on = [\"a=b=c\"]",
        "\"a=b=c\"",
        "its value has `=` in it",
        "`NAME=VALUE`",
    ),
    (
        "#run_on = [\"a=b c\"]",
        "\"a=b c\"",
        "its value has ` ` in it",
        "`NAME=VALUE`",
    ),
    (
        "#run_on = [\"é=1\"]",
        "\"é=1\"",
        "its name has `é` in it",
        "letters",
    ),
    (
        "#run_on = [\"a=1\", \"a=2\"]",
        "\"a=2\"",
        "the tag `a` is there twice",
        "keep one",
    ),
    ("#run_on = [5]", "5", "here is an integer", ""),
    (
        "#run_on = { \"a b\" = \"c\" }",
        "\"a b\"",
        "the name of a tag has ` ` in it",
        "letters",
    ),
    (
        "#run_on = { a = \"\" }",
        "\"\"",
        "the value of a tag is empty",
        "letters",
    ),
    (
        "#run_on = { gpu = true }",
        "true",
        "a tag takes a string",
        "`gpu = \"true\"`",
    ),
    (
        "#run_on = { a = \"${B}\" }",
        "\"${B}\"",
        "not filled in in `run_on`",
        "`--tag`",
    ),
    (
        "#[scheduler]\ntags = \"a\"",
        "\"a\"",
        "a table or a list of tags",
        "`tags = [\"a=yes\"]`",
    ),
    (
        "#[scheduler]\ntags = [\"a=${NONE}\"]",
        "${NONE}",
        "no variable `NONE`",
        "default",
    ),
    (
        "#[scheduler]\nmax_running = 0",
        "0",
        "a number from 1 to 100000",
        "max_running = 20",
    ),
    (
        "#[scheduler]\nmax_running = 100001",
        "100001",
        "from 1 to 100000",
        "max_running = 20",
    ),
];

#[test]
fn a_tag_that_makes_no_sense_is_refused() {
    assert_refused(WITHOUT_SENSE);
    let long = "x".repeat(64);
    let error = parse_tag(&format!("a={long}")).expect_err("too long");
    assert_eq!(error.message, "is no tag: its value has over 63 characters");
}

#[test]
fn a_tag_that_was_filled_in_is_never_shown() {
    for (tags, message) in [
        (
            "{ a = \"${PASSWORD} \" }",
            "the value filled in here can't be the value of a tag",
        ),
        ("[\"${PASSWORD}\"]", "the value filled in here is no tag"),
        (
            "[\"${PASSWORD}=1\", \"${PASSWORD}=1\"]",
            "this tag is there twice",
        ),
    ] {
        let told = messages(&format!(
            "[scheduler]\ntags = {tags}\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n"
        ));
        assert_eq!(told, [message]);
    }
}
