//! What people are told that a table says otherwise than the one before it.

use super::read;
use crate::config::{Changes, Config};
use crate::jobs::digest::job_digest;

const TABLE: &str = r#"
[scheduler]
store = "redis://:hunter2@h"
tags = { zone = "eu" }
[jobs.a]
schedule = "@daily"
shell = "curl http://u:hunter2@h/x"
[jobs.b]
schedule = "@daily"
http = { url = "https://u:hunter2@h/x", body = "hunter2" }
[jobs.c]
schedule = "@daily"
shell = "c"
env = { A = "hunter2" }
"#;

fn table(source: &str) -> Config {
    read(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

fn changes(from: &str, to: &str) -> Changes {
    assert!(TABLE.contains(from), "{from}");
    table(TABLE).diff(&table(&TABLE.replace(from, to)))
}

#[test]
fn jobs_that_came_went_or_changed_are_told() {
    for (from, to, told) in [
        ("@daily", "@daily", "nothing changed"),
        (
            "[jobs.a]",
            "# Said twice.\n[jobs.a]\nenabled = true",
            "nothing changed",
        ),
        ("shell = \"c\"", "shell = \"d\"", "changed c"),
        ("[jobs.c]", "[jobs.d]", "added d; removed c"),
        ("@daily", "@hourly", "changed a, b, c"),
        (
            "[scheduler]",
            "[defaults]\ntimeout = \"1s\"\n[scheduler]",
            "changed a, b, c",
        ),
        (
            "tags = { zone = \"eu\" }",
            "max_running = 5\nshutdown_grace = \"1s\"\nwatch = true\nrevision = 2",
            "[scheduler] max_running, revision, shutdown_grace, tags, watch",
        ),
        (
            "tags = { zone = \"eu\" }",
            "tags = { zone = \"eu\" }\nnamespace = \"x\"\nreplica = \"x\"\nmin_replicas_ack = 1",
            "at the next start min_replicas_ack, namespace, replica",
        ),
        // What is a default for jobs changes them, if they don't say otherwise.
        (
            "[scheduler]",
            "[scheduler]\nlease_ttl = \"20s\"\nhistory_limit = 5",
            "changed a, b, c; [scheduler] history_limit, lease_ttl",
        ),
        (
            "[scheduler]",
            "[notify.ops]\nwebhook = { url = \"https://h/hunter2\" }\n[scheduler]",
            "[notify] ops",
        ),
        (
            "store = \"redis://:hunter2@h\"",
            "store = \"rediss://:hunter2@h\"\ntls_ca = \"ca.pem\"\ntls_server_name = \"h\"\ntls_cert = \"c\"\ntls_key = \"c\"",
            "at the next start store, tls_ca, tls_cert, tls_key, tls_server_name",
        ),
    ] {
        let changes = changes(from, to);
        assert_eq!(changes.to_string(), told, "{to}");
        assert_eq!(changes.is_empty(), told == "nothing changed");
    }
}

#[test]
fn another_secret_is_a_change_and_is_shown_nowhere() {
    let changes = changes("hunter2", "correct-horse");
    let told = "changed a, b, c; at the next start store";
    assert_eq!(changes.to_string(), told);
    for secret in ["hunter2", "correct-horse"] {
        assert!(!format!("{changes:?}").contains(secret));
    }
}

#[test]
fn many_names_are_cut_short() {
    let jobs: String = (10..25)
        .map(|n| format!("[jobs.j{n}]\nschedule = \"@daily\"\nshell = \"x\"\n"))
        .collect();
    let changes = table(TABLE).diff(&table(&format!("{TABLE}{jobs}")));
    let told = "added j10, j11, j12, j13, j14, j15, j16, j17, j18, j19 and 5 more";
    assert_eq!(changes.to_string(), told);
}

#[test]
fn the_digest_of_a_job_goes_by_what_it_means_but_for_its_secrets() {
    let digests = |source: &str| -> Vec<_> {
        let config = table(source);
        config.jobs.iter().map(job_digest).collect()
    };
    let one = digests(TABLE);
    assert!(one.iter().all(|digest| digest.len() == 16));
    assert!(one[0] != one[1] && one[1] != one[2] && one[0] != one[2]);
    assert_eq!(one, digests(&TABLE.replace("hunter2", "correct-horse")));
    let other = digests(&TABLE.replace("shell = \"c\"", "shell = \"d\""));
    assert_eq!(one[..2], other[..2]);
    assert_ne!(one[2], other[2]);
}
