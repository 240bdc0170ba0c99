//! The table in the ConfigMap.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::chart::{everything, path, rendered, toml};

/// What `soloist check` says of the table that comes of these values.
fn said_of(values: &Value) -> String {
    let answer = rendered(values);
    let table = answer.table();
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("jobs.toml");
    fs::write(&file, table).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .env_clear()
        .args(["check", "--config"])
        .arg(file)
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{table}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_table_of_values_is_one_that_soloist_reads() {
    let mut values = everything();
    // A file of the pods.
    let scheduler = values["scheduler"].as_object_mut();
    scheduler.expect("a map").remove("tls_ca");
    let said = said_of(&values);
    for job in ["report", "tidy.up", "text"] {
        assert!(said.contains(&format!("\n{job}  ")), "{job}: {said}");
    }
    assert!(said.contains("namespace shop"), "{said}");
    assert!(!said.contains("gone"), "{said}");
}

#[test]
fn a_table_without_jobs_is_one_that_soloist_reads_and_runs_nothing() {
    for values in [json!({}), json!({ "jobs": { "a": null } })] {
        let said = said_of(&values);
        assert!(
            said.contains("example  `@daily` in UTC  (disabled)"),
            "{said}"
        );
        assert!(said.contains(" 1 job,"), "{said}");
    }
    let job = json!({ "jobs": { "a": { "schedule": "@daily", "command": ["a"] } } });
    assert!(!said_of(&job).contains("example"));
}

#[test]
fn a_table_of_values_means_what_was_said() {
    let answer = rendered(&everything());
    let table = toml(answer.table());
    let mut expected = everything()["jobs"].clone();
    // Null is how Helm says that something is not to be.
    let jobs = expected.as_object_mut().expect("a map");
    jobs.remove("gone");
    let report = jobs["report"].as_object_mut().expect("a map");
    report.remove("description");
    jobs.insert(
        "text".into(),
        json!({ "schedule": "@daily", "command": ["true"], "kill_grace": "20s" }),
    );
    assert_eq!(table["jobs"], expected);
    let mut expected = everything()["scheduler"].clone();
    expected["watch"] = json!(true);
    assert_eq!(table["scheduler"], expected);
    assert_eq!(table["notify"], everything()["notify"]);
}

#[test]
fn a_whole_file_of_jobs_can_be_handed_over() {
    let file = fs::read_to_string(path("jobs.toml")).expect("readable");
    let answer = rendered(&json!({ "jobsToml": file }));
    let table = toml(answer.table());
    let alone = toml(&file);
    assert_eq!(table["jobs"], alone["jobs"]);
}

#[test]
fn what_is_in_values_and_what_is_in_a_text_become_one_table() {
    let job = json!({ "schedule": "@daily", "command": ["a"] });
    let answer = rendered(&json!({
        "defaults": { "timezone": "Asia/Shanghai" },
        "calendars": { "gone": null },
        "jobs": { "a": job, "gone": null },
        // Names that are near to one another, a header in a comment, and one that values withdraw.
        "jobsToml": "# [jobs.a]\n[jobs.\"a.b\"]\nschedule = \"@daily\"\ncommand = [\"b\"]\n\
            [jobs.ab]\nschedule = \"@daily\"\ncommand = [\"c\"]\n\
            [jobs.gone]\nschedule = \"@daily\"\ncommand = [\"d\"]",
    }));
    let table = toml(answer.table());
    let jobs = table["jobs"].as_object().expect("jobs");
    let names: Vec<&str> = jobs.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "a.b", "ab", "gone"]);
    assert_eq!(table["defaults"], json!({ "timezone": "Asia/Shanghai" }));
    assert_eq!(table.get("calendars"), None);
}

#[test]
fn a_table_has_the_revision_that_was_asked_for() {
    let revision = |values: Value| {
        let answer = rendered(&values);
        toml(answer.table())["scheduler"].get("revision").cloned()
    };
    assert_eq!(revision(json!({})), None);
    let own = json!({ "scheduler": { "revision": 42 } });
    assert_eq!(revision(own), Some(json!(42)));
    // The release that the tests render is the first.
    let of_release = json!({ "revisionFromRelease": true });
    assert_eq!(revision(of_release), Some(json!(1)));
}
