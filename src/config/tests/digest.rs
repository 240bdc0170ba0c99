//! What a table's digest goes by, and what it doesn't.

use super::{Strictness, read, read_as};

fn digest(source: &str) -> String {
    let config = read(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    config.digest()
}

const TABLE: &str = r#"
[scheduler]
replica = "web-1"
tags = { zone = "eu" }
[jobs.a]
schedule = "@daily"
command = ["close", "--older-than", "30m"]
timeout = "60s"
[jobs.b]
after = ["a", "c"]
shell = "curl http://u:hunter2@h/x"
env = { A = "hunter2", B = "2" }
[jobs.c]
schedule = "@hourly"
http = { url = "https://u:hunter2@h/x?key=hunter2", body = "hunter2", headers = { Content-Type = "text/plain", A = "hunter2" } }
"#;

/// The same, said differently.
const SAME: &str = r#"
# A comment.
[jobs.c]
http.headers = { A = "hunter2", Content-Type = "text/plain" }
http.body = "hunter2"
http.url = "https://u:hunter2@h/x?key=hunter2"
schedule =    "@hourly"
retry = { max = 0 }
[jobs.b]
env.B = "2"
env.A = "hunter2"
after = ["c", "a"]
shell = "curl http://u:hunter2@h/x"
[jobs.a]
schedule = "@daily"
command = [ "close", "--older-than",
  "30m" ]
[defaults]
timeout = "1m"
[jobs.b.retry]
max = 0
[scheduler]
replica = "web-2"
tags = { zone = "us" }
max_running = 5
store = "redis://u:hunter2@h"
"#;

#[test]
fn tables_that_mean_the_same_have_the_same_digest() {
    let one = digest(TABLE);
    assert_eq!(one.len(), 16);
    assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let spelled_out = TABLE.replace("[jobs.b]", "[jobs.b]\ntimeout = \"1m\"");
    let spelled_out = spelled_out.replace("[jobs.c]", "[jobs.c]\ntimeout = \"1m\"");
    assert_eq!(digest(&spelled_out), digest(SAME));
    assert_ne!(one, digest(SAME));
}

#[test]
fn whatever_changes_a_job_changes_the_digest() {
    let mut seen = std::collections::BTreeSet::from([digest(TABLE)]);
    for (from, to) in [
        ("[jobs.a]", "[jobs.a]\nenabled = false"),
        ("[jobs.a]", "[jobs.a]\nrandom_delay = \"1s\""),
        ("[jobs.a]", "[jobs.a]\ntimezone = \"Asia/Shanghai\""),
        ("[jobs.a]", "[jobs.a]\ndst_gap = \"skip\""),
        ("[jobs.a]", "[jobs.a]\nretry = { max = 1 }"),
        ("[jobs.a]", "[jobs.a]\nrun_on = { a = \"1\" }"),
        ("[jobs.a]", "[jobs.a]\nshards = 2"),
        ("[jobs.a]", "[jobs.a]\ncatch_up = \"all\""),
        ("[jobs.a]", "[jobs.a]\nconcurrency_policy = \"queue\""),
        ("[scheduler]", "[scheduler]\nlease_ttl = \"20s\""),
        ("@daily", "0 1 * * *"),
        ("30m", "31m"),
        ("60s", "61s"),
        ("[\"a\", \"c\"]", "[\"a\"]"),
        ("h/x\"", "h/y\""),
        ("B = \"2\"", "C = \"2\""),
        ("h/x?", "h/y?"),
        ("\"close\", \"--older-than\"", "\"close --older-than\""),
    ] {
        assert!(TABLE.contains(from), "{from}");
        let changed = digest(&TABLE.replacen(from, to, 1));
        assert!(seen.insert(changed), "{from}: {to}");
    }
}

#[test]
fn no_secret_is_in_a_digest() {
    assert_eq!(
        digest(TABLE),
        digest(&TABLE.replace("hunter2", "correct-horse"))
    );
}

/// An order makes a job known by a table that was read to look.
#[test]
fn a_table_that_is_read_to_look_has_the_digest_of_the_one_that_runs() {
    let table = format!(
        "[notify.ops]\nwebhook = \"https://h/hunter2\"\n[defaults.notify]\nto = \"ops\"\nping = \"https://h/hunter2\"\nping_output = true\n{TABLE}"
    );
    let looked = read_as(&table, Strictness::Look).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(looked.digest(), digest(&table));
}
