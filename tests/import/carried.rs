//! What becomes of a line or of a field, one law at a time.
//!
//! Must never: repeat what the corpus shows.

use soloist::import::{Columns, Format, ImportError, Imported, Request, import};
use soloist::scheduler::job::{Job, Program};

use super::corpus::{check, now};

fn try_import(text: &str, columns: Columns) -> Result<Imported, ImportError> {
    let request = Request {
        text,
        label: "it",
        format: None,
        columns,
        timezone: None,
        now: now(),
    };
    import(&request)
}

fn imported(text: &str) -> Imported {
    try_import(text, Columns::User).unwrap_or_else(|error| panic!("{error}"))
}

/// The one job of a text.
fn job(text: &str) -> Job {
    let table = imported(text).table.expect("a table");
    check(&table).jobs.remove(0)
}

#[test]
fn a_variable_holds_for_the_entries_below_it() {
    let table = imported("@daily a\nA=1\n@daily b\nA=2\n@daily c\n").table;
    let jobs = check(&table.expect("a table")).jobs;
    let values = jobs
        .iter()
        .map(|job| job.command.env.get("A").map(String::as_str));
    assert_eq!(values.collect::<Vec<_>>(), [None, Some("1"), Some("2")]);
}

#[test]
fn what_looks_like_a_reference_is_none() {
    let job = job("A=${HOME}/$${B}$\n@daily x ${C}\n");
    assert_eq!(job.command.env["A"], "${HOME}/$${B}$");
    assert_eq!(job.command.program, Program::Shell("x ${C}".into()));
}

#[test]
fn lines_of_another_system_end_where_they_end() {
    let job = job("A=1\r\n0 5 * * * x\r\n");
    assert_eq!(job.command.env["A"], "1");
    assert_eq!(job.command.program, Program::Shell("x".into()));
}

#[test]
fn the_last_line_needs_no_end() {
    assert_eq!(
        job("0 5 * * * x").command.program,
        Program::Shell("x".into())
    );
}

#[test]
fn a_text_without_an_entry_is_an_error() {
    for text in ["", "\n\n", "# 0 5 * * * x", "MAILTO=x\n"] {
        let error = try_import(text, Columns::User).expect_err(text);
        assert_eq!(error.message, "`it` has no entry of a crontab", "{text}");
    }
    let error = try_import("kind: Deployment\nmetadata: {name: web}", Columns::User);
    let error = error.expect_err("no CronJob");
    assert_eq!(error.message, "`it` has no CronJob, but Deployment web");
}

#[test]
fn a_manifest_that_is_no_yaml_is_an_error_that_shows_no_line_of_it() {
    let text = "kind: CronJob\nspec:\n  password: [hunter2\n   x: y";
    let error = try_import(text, Columns::User).expect_err("no YAML");
    assert!(error.message.starts_with("`it`, line "), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    let chart = "kind: CronJob\nspec: {{ .Values.spec }}\n";
    let error = try_import(chart, Columns::User).expect_err("a template");
    assert!(error.hint.contains("helm template"), "{error:?}");
}

#[test]
fn a_bomb_of_aliases_is_defused() {
    let mut text = "kind: CronJob\na: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (from, to) in "abcdefghijk".chars().zip("bcdefghijkl".chars()) {
        let alias = format!("*{from}");
        let aliases = [alias.as_str(); 9].join(", ");
        text += &format!("{to}: &{to} [{aliases}]\n");
    }
    assert!(try_import(&text, Columns::User).is_err());
}

#[test]
fn the_report_holds_no_value_and_no_command() {
    let texts = [
        "TOKEN=hunter2\n@reboot login --password hunter2\n61 * * * * x hunter2\n@daily y hunter2 &\n",
        "kind: CronJob\napiVersion: batch/v1\nmetadata: {name: x}\nspec: {schedule: '0 1 * * *', jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b, command: [c, hunter2], env: [{name: D, value: hunter2}, {name: E, value: 'x$(D)'}]}]}}}}}",
        "kind: CronJob\napiVersion: batch/v1\nmetadata: {name: x}\nspec: {schedule: '0 1 * * *', jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b, command: [c], env: [{name: D, value: [hunter2]}]}]}}}}}",
    ];
    for text in texts {
        let report = imported(text).report.to_string();
        assert!(!report.contains("hunter2"), "{report}");
    }
}

#[test]
fn a_secret_of_one_job_is_not_handed_to_another() {
    let manifest = |name: &str, secret: &str| {
        format!(
            "---\nkind: CronJob\napiVersion: batch/v1\nmetadata: {{name: {name}}}\nspec: {{schedule: '0 1 * * *', jobTemplate: {{spec: {{template: {{spec: {{containers: [{{name: a, image: b, command: [c], env: [{{name: PASSWORD, valueFrom: {{secretKeyRef: {{name: {secret}, key: x}}}}}}]}}]}}}}}}}}}}\n"
        )
    };
    let text = manifest("one", "s") + &manifest("two", "s") + &manifest("three", "t");
    let jobs = check(&imported(&text).table.expect("a table")).jobs;
    let values = jobs.iter().map(|job| job.command.env["PASSWORD"].as_str());
    let expected = ["<PASSWORD>", "<PASSWORD>", "<THREE_PASSWORD>"];
    assert_eq!(values.collect::<Vec<_>>(), expected);
}

#[test]
fn names_stay_when_entries_are_added_below() {
    let before = imported("@daily a\n@daily a\n").table.expect("a table");
    let after = imported("@daily a\n@daily a\n@daily b\n@daily a\n")
        .table
        .expect("a table");
    let names = |table: &str| {
        let jobs = check(table).jobs;
        jobs.iter()
            .map(|job| job.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&before), ["a", "a-2"]);
    assert_eq!(names(&after), ["a", "a-2", "b", "a-3"]);
}

#[test]
fn what_a_text_is_can_be_said() {
    let request = Request {
        text: "kind: x",
        label: "it",
        format: Some(Format::Crontab),
        columns: Columns::User,
        timezone: None,
        now: now(),
    };
    let refused = import(&request).expect("an entry").report.refused;
    assert_eq!(refused[0].place, "line 1");
}
