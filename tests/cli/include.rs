//! Tables of several files: what `check` says of them, and of what is wrong in any of them.

use std::fs;

use crate::soloist::{Ended, Place};

const MAIN: &str =
    "[scheduler]\ninclude = [\"jobs.d/*.toml\"]\n[jobs.a]\nschedule = \"@daily\"\nshell = \"x\"\n";

/// Runs `check` on a table and other files.
fn check(main: &str, files: &[(&str, &str)]) -> Ended {
    let place = Place::with_table(main);
    for (name, text) in files {
        let path = place.path(name);
        fs::create_dir_all(path.parent().expect("in the directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    place.run(&["check"])
}

/// What is said of a table and other files that can't be used.
fn refused(main: &str, files: &[(&str, &str)]) -> String {
    let ended = check(main, files);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    ended.stderr
}

#[test]
fn check_says_which_files_were_read() {
    let job = "[jobs.b]\nschedule = \"@daily\"\nshell = \"x\"\n";
    let files = [("jobs.d/b.toml", job), ("jobs.d/empty.toml", "# none\n")];
    let ended = check(MAIN, &files);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let head = "jobs.toml: 2 jobs, namespace default, store embedded\n  includes jobs.d/b.toml\n  includes jobs.d/empty.toml\n\na  ";
    assert!(ended.stdout.starts_with(head), "{}", ended.stdout);

    let ended = check(MAIN, &[("jobs.d/README", "")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let head = "jobs.toml: 1 job, namespace default, store embedded\n  includes no file: none matches in jobs.d\n\na  ";
    assert!(ended.stdout.starts_with(head), "{}", ended.stdout);

    let without = "[scheduler]\ninclude = []\n[jobs.a]\nschedule = \"@daily\"\nshell = \"x\"\n";
    let ended = check(without, &[]);
    let head = "jobs.toml: 1 job, namespace default, store embedded\n\na  ";
    assert!(ended.stdout.starts_with(head), "{}", ended.stdout);
}

#[test]
fn check_warns_of_a_directory_that_is_not_there() {
    let ended = check(MAIN, &[]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.stderr,
        r#"warning: `include` finds nothing in `jobs.d`: there is no such directory
 --> jobs.toml:2:12
  |
2 | include = ["jobs.d/*.toml"]
  |            ^^^^^^^^^^^^^^^
  |
  = help: jobs of files in it are not in the table: see that it is there, empty if need be, or take the pattern out
"#
    );
}

#[test]
fn what_is_wrong_in_any_file_is_told_in_its_place_in_one_go() {
    let one = "# x\n[jobs.b]\nschedule = \"61 * * * *\"\nshell = \"x\"\n\n\n\n\n\n[jobs.a]\nschedule = \"@daily\"\n[calendars.c]\nical = \"none.ics\"\n";
    let two = "[scheduler]\nnamespace = \"x\"\n[jobs.d]\nafter = \"b\"\nshell = \"x\"\n";
    let told = refused(
        &format!("{MAIN}timeuot = \"5s\"\n"),
        &[("jobs.d/one.toml", one), ("jobs.d/two.toml", two)],
    );
    assert_eq!(
        told,
        r#"error: unknown key `timeuot`
 --> jobs.toml:6:1
  |
6 | timeuot = "5s"
  | ^^^^^^^
  |
  = help: did you mean `timeout`?

error: `61` is not a minute: minutes go from 0 to 59
 --> jobs.d/one.toml:3:13
  |
3 | schedule = "61 * * * *"
  |             ^^
  |
  = help: 5 fields are minute, hour, day of month, month, day of week; 6 have the second first; 7 have the year last too

error: the job `a` is there twice, in two files
  --> jobs.d/one.toml:10:7
   |
10 | [jobs.a]
   |       ^
   |
  ::: jobs.toml:3:7
   |
 3 | [jobs.a]
   |       - the first is here
   |
   = help: give one of them another name: history and leases go by it

error: failed to read `jobs.d/none.ics`: there is no such file
  --> jobs.d/one.toml:13:8
   |
13 | ical = "none.ics"
   |        ^^^^^^^^^^
   |
   = help: a relative path begins at the directory that jobs.d/one.toml is in

error: `[scheduler]` stands in an included file
 --> jobs.d/two.toml:1:2
  |
1 | [scheduler]
  |  ^^^^^^^^^
  |
  = help: it holds for the replica as a whole: write it in the main file alone; for the jobs of this file there is [defaults]
"#
    );
}

#[test]
fn a_calendar_in_two_files_is_told_with_both_places() {
    let calendar = "[calendars.c]\ndates = []\n";
    let files = [("jobs.d/a.toml", calendar), ("jobs.d/b.toml", calendar)];
    assert_eq!(
        refused(MAIN, &files),
        r#"error: the calendar `c` is there twice, in two files
 --> jobs.d/b.toml:1:12
  |
1 | [calendars.c]
  |            ^
  |
 ::: jobs.d/a.toml:1:12
  |
1 | [calendars.c]
  |            - the first is here
  |
  = help: give one of them another name, or keep one of them: all files have it
"#
    );
}

#[test]
fn a_contradiction_between_files_is_told_with_both_places() {
    let main = "[scheduler]\ninclude = [\"b.toml\"]\n[defaults]\nconcurrency_policy = \"forbid\"\n";
    let job = "[jobs.b]\nschedule = \"@daily\"\nshell = \"x\"\nqueue_limit = 5\n";
    assert_eq!(
        refused(main, &[("b.toml", job)]),
        r#"error: `queue_limit` has no effect without `concurrency_policy = "queue"`
 --> b.toml:4:1
  |
4 | queue_limit = 5
  | ^^^^^^^^^^^
  |
 ::: jobs.toml:4:22
  |
4 | concurrency_policy = "forbid"
  |                      -------- it is this
  |
  = help: write `concurrency_policy = "queue"`, or leave `queue_limit` out
"#
    );
}

/// What is included, what of it is underlined, what is said of it and what to do.
const INCLUDES: &[[&str; 4]] = &[
    [
        "\"no.toml\"",
        "^^^^^^^^^",
        "failed to read `no.toml`: there is no such file",
        "for files that need not be there, write a pattern such as `jobs.d/*.toml`",
    ],
    [
        "\"jobs.d\"",
        "^^^^^^^^",
        "failed to read `jobs.d`: it is a directory",
        "`include` takes files: name those in it, such as `jobs.d/*.toml`",
    ],
    [
        "\"/dev/null\"",
        "^^^^^^^^^^^",
        "failed to read `/dev/null`: it is no file",
        "name a regular file",
    ],
    [
        "\"jobs.d/latin1\"",
        "^^^^^^^^^^^^^^^",
        "failed to read `jobs.d/latin1`: line 2 is not UTF-8",
        "save the file as such",
    ],
    [
        "\"a[.toml\"",
        "^^^^^^^^^",
        "`a[.toml` is no pattern: invalid range pattern",
        "a bracket itself is written `[[]`",
    ],
    [
        "\"**/x.toml\"",
        "^^^^^^^^^^^",
        "`**/x.toml` has a `**` in it",
        "name each level: `jobs.d/*.toml`, `jobs.d/*/*.toml`",
    ],
    ["\"\"", "^^", "`include` names no file here", "name a file"],
    [
        "\"jobs.toml\"",
        "^^^^^^^^^^^",
        "the table includes itself",
        "leave this one out",
    ],
    [
        "5",
        "^",
        "`include` takes a list of patterns; here is an integer",
        "put it in quotes",
    ],
];

#[test]
fn an_include_of_nothing_or_of_no_file_is_told_with_a_cure() {
    for [include, at, message, hint] in INCLUDES {
        let place = Place::with_table(MAIN.replace("\"jobs.d/*.toml\"", include));
        fs::create_dir(place.path("jobs.d")).expect("made");
        fs::write(place.path("jobs.d/latin1"), b"# ok\n# caf\xe9\n").expect("written");
        let ended = place.run(&["check"]);
        let told = &ended.stderr;
        assert_eq!(ended.code, Some(2), "{include}: {told}");
        assert_eq!(told.matches("error: ").count(), 1, "{include}: {told}");
        let head = format!("error: {message}\n --> jobs.toml:2:12\n");
        assert!(told.starts_with(&head), "{include}: {told}");
        assert!(told.contains(&format!("  |            {at}\n")), "{told}");
        assert!(told.contains(hint), "{include}: {told}");
    }
}

#[test]
fn a_file_that_is_named_in_several_ways_is_read_once() {
    let main = MAIN.replace(
        "\"jobs.d/*.toml\"",
        "\"./b.toml\", \"b.toml\", \"?.toml\", \"./*.toml\"",
    );
    let job = "[jobs.b]\nschedule = \"@daily\"\nshell = \"x\"\n";
    let ended = check(&main, &[("b.toml", job)]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let head = "jobs.toml: 2 jobs, namespace default, store embedded\n  includes b.toml\n\n";
    assert!(ended.stdout.starts_with(head), "{}", ended.stdout);
}

#[test]
fn no_jobs_in_any_file_is_told_as_such() {
    let main = "[scheduler]\ninclude = [\"jobs.d/*.toml\"]\n";
    let told = refused(main, &[("jobs.d/a.toml", "# none\n")]);
    let message = "error: `jobs.toml` and the files that it includes have no jobs\n";
    assert!(told.starts_with(message), "{told}");
}

#[test]
fn include_in_an_included_file_is_refused() {
    let nested = "[scheduler]\ninclude = [\"*.toml\"]\n";
    let told = refused(MAIN, &[("jobs.d/a.toml", nested)]);
    assert!(
        told.starts_with("error: `include` stands in an included file\n --> jobs.d/a.toml:2:1\n"),
        "{told}"
    );
    assert!(
        told.contains("the main file alone includes others"),
        "{told}"
    );
}

#[test]
fn a_table_elsewhere_finds_its_files_beside_itself() {
    let place = Place::empty();
    fs::create_dir_all(place.path("etc/jobs.d")).expect("made");
    fs::write(place.path("etc/jobs.toml"), MAIN).expect("written");
    let job = "[jobs.b]\nschedule = \"@daily\"\nshell = \"x\"\n";
    fs::write(place.path("etc/jobs.d/b.toml"), job).expect("written");
    let ended = place.run(&["--config", "etc/jobs.toml", "next", "b"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = place.run(&["--config", "./etc/jobs.toml", "check"]);
    let line = "  includes etc/jobs.d/b.toml\n";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
}
