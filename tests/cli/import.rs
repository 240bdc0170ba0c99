//! `import` as users meet it: where the table and the report go, and how it ends.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::soloist::Place;

const CRONTAB: &str = "MAILTO=ops\n# Backs up\n0 3 * * * root /usr/local/bin/backup shop\n";

#[test]
fn a_table_that_comes_out_is_one_that_check_accepts() {
    let place = Place::empty();
    fs::create_dir_all(place.path("etc/cron.d")).expect("created");
    fs::write(place.path("etc/cron.d/shop"), CRONTAB).expect("written");
    let args = [
        "import",
        "etc/cron.d/shop",
        "--timezone",
        "Asia/Shanghai",
        "-o",
        "jobs.toml",
    ];
    let ended = place.run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    let first = "etc/cron.d/shop (crontab): 1 job carried over\n";
    assert!(ended.stderr.starts_with(first), "{}", ended.stderr);
    let last = ended.stderr.lines().next_back().unwrap_or_default();
    let cure = "add `store` and `namespace` in [scheduler], the same on all hosts";
    assert!(last.starts_with(cure), "{}", ended.stderr);
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(checked.stdout.contains("store embedded\n"), "{checked:?}");
    let line = "backup-shop  `0 3 * * *` in Asia/Shanghai";
    assert!(checked.stdout.contains(line), "{}", checked.stdout);
    assert!(
        checked.stdout.contains(" as user root;"),
        "{}",
        checked.stdout
    );
}

#[test]
fn what_cannot_be_carried_over_ends_with_1_and_the_rest_is() {
    let place = Place::empty();
    fs::write(place.path("tab"), "@reboot a\n@daily b\n").expect("written");
    let ended = place.run(&["import", "tab"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("[jobs.b]"), "{}", ended.stdout);
    assert!(
        ended
            .stdout
            .contains("# Not carried over, line 1: `@reboot`"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("#   @reboot a\n"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("  line 1: `@reboot` has no meaning"),
        "{}",
        ended.stderr
    );
    fs::write(place.path("tab"), "@reboot a\n").expect("written");
    let ended = place.run(&["import", "tab", "-o", "jobs.toml"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(
        !place.path("jobs.toml").exists(),
        "a table without jobs is none"
    );
}

#[test]
fn a_file_that_exists_is_left_as_it_is_unless_it_is_given_up() {
    let place = Place::with_table("mine");
    fs::write(place.path("tab"), "@daily b\n").expect("written");
    let ended = place.run(&["import", "tab", "--output", "jobs.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("`jobs.toml` exists, and is left as it is"),
        "{}",
        ended.stderr
    );
    let read = || fs::read_to_string(place.path("jobs.toml")).expect("read");
    assert_eq!(read(), "mine");
    let ended = place.run(&["import", "tab", "--output", "jobs.toml", "--force"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(read().contains("[jobs.b]"), "{}", read());
}

#[test]
fn stdin_is_read_and_its_format_is_found_or_said() {
    let place = Place::empty();
    let run = |args: &[&str], text: &str| {
        let mut command = place.command(args);
        let command = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let manifest = "\u{feff}kind: CronJob\napiVersion: batch/v1\nmetadata: {name: x}\nspec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: {containers: [{image: a, command: [b]}]}}}}}\n";
    let (code, table, report) = run(&["import", "-"], manifest);
    assert_eq!(code, Some(0), "{report}");
    assert!(table.contains("[jobs.x]"), "{table}");
    assert!(
        report.starts_with("stdin (Kubernetes): 1 job carried over\n"),
        "{report}"
    );
    let (code, _, report) = run(&["import", "-", "--from", "crontab"], manifest);
    assert_eq!(code, Some(1), "{report}");
    let (code, table, _) = run(&["import", "-", "--system"], "@daily nobody x\n");
    assert_eq!(code, Some(0));
    assert!(table.contains("user = \"nobody\""), "{table}");
}

#[test]
fn what_cannot_be_read_ends_with_2_and_says_why() {
    let place = Place::empty();
    fs::write(place.path("latin1"), b"@daily a\n# caf\xe9\n").expect("written");
    fs::write(place.path("empty"), "").expect("written");
    fs::write(place.path("tab"), "@daily a\n").expect("written");
    for (args, told) in [
        (
            &["import", "none"][..],
            "failed to read `none`: No such file",
        ),
        (&["import", "."], "failed to read `.`: Is a directory"),
        (
            &["import", "latin1"],
            "failed to read `latin1`: line 2 is not UTF-8",
        ),
        (&["import", "empty"], "`empty` has no entry of a crontab"),
        (
            &["import", "tab", "--from", "kubernetes"],
            "it is not YAML that can be read",
        ),
        (
            &["import", "tab", "--timezone", "CET+1"],
            "`--timezone`: `CET+1` is no IANA time zone",
        ),
        (&["import", "tab", "--force"], "--output"),
        (&["import"], "<FILE>"),
    ] {
        let ended = place.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}
