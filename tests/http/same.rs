//! What HTTP answers is what the command line prints; and what orders do.

use serde_json::{Value, json};

use crate::site::{JOBS, OPERATOR, READER, Site};

/// Without what passes between two looks.
fn still(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let moving = [
                    "now",
                    "for_seconds",
                    "lease_left_seconds",
                    "seen_seconds_ago",
                    "clock_skew_seconds",
                    "store_round_trip_seconds",
                ];
                fields.retain(|name, _| !moving.contains(&name.as_str()));
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn answers_are_what_the_commands_print() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let line = site.run("report");
    site.run("report");
    let status = site.until("/api/v1/status", |answer| {
        let told = still(answer.json());
        (told == still(site.fleet.json(&["status", "--json"]))).then_some(told)
    });
    let client = &site.client;
    assert_eq!(
        Value::from(client.all("/api/v1/jobs?limit=1"))
            .as_array()
            .map(Vec::len),
        Some(4)
    );
    assert_eq!(
        still(client.all("/api/v1/jobs?limit=3").into()),
        status["jobs"]
    );
    assert_eq!(
        still(client.all("/api/v1/replicas").into()),
        status["replicas"]
    );
    let history = site.fleet.json(&["history", "--json"]);
    assert_eq!(Value::from(client.all("/api/v1/attempts?limit=1")), history);
    let of_job = site.fleet.json(&["history", "report", "--json"]);
    assert_eq!(
        Value::from(client.all("/api/v1/attempts?job=report")),
        of_job
    );
    let at = line["scheduled_at"].as_str().expect("an instant");
    let why = site.fleet.json(&["why", "report", at, "--json"]);
    let told = client
        .get(&format!("/api/v1/occurrences/report/{at}"))
        .json();
    assert_eq!(still(told), still(why.clone()));
    let occurrences = client.all("/api/v1/jobs/report/occurrences?limit=1");
    assert_eq!(occurrences.len(), 2, "{occurrences:?}");
    assert_eq!(occurrences[1], why["accounts"][0]);
    let path = format!(
        "/api/v1/jobs/report/attempts/{}/output",
        line["run_id"].as_str().expect("an id")
    );
    let output = client.get(&path).json();
    let stdout = json!({"text": "hello\n", "total_bytes": 6, "cut_bytes": 0, "lossy": false});
    assert_eq!(output["stdout"], stdout);
}

#[test]
fn a_job_is_told_with_its_table_and_what_is_to_come() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let job = site.client.get("/api/v1/jobs/nightly").json();
    assert_eq!(job["state"], "never_ran");
    assert_eq!(job["table"]["schedule"], "30 22 * * *");
    assert_eq!(job["table"]["timezone"], "Asia/Shanghai");
    let upcoming = job["upcoming"].as_array().expect("a list");
    assert_eq!((upcoming.len(), &upcoming[0]), (5, &job["next"]));
    let occurrences = site.client.get("/api/v1/jobs/nightly/occurrences").json();
    assert_eq!(occurrences["items"], json!([]));
    assert_eq!(occurrences["upcoming"][0]["scheduled_at"], job["next"]);
    assert_eq!(occurrences["upcoming"][0]["fate"], "to_come");
    let near = site.client.get("/api/v1/jobs/nihgtly");
    near.assert_problem(404, "not-found");
    assert!(near.body.contains("did you mean `nightly`?"), "{near:?}");
}

#[test]
fn a_trigger_that_is_sent_again_with_its_key_is_one_trigger() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let bearer = format!("Bearer {OPERATOR}");
    let trigger = |key: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", key)];
        let answer = site
            .client
            .send("POST", "/api/v1/jobs/report/trigger", &headers, "");
        assert_eq!(answer.status, 202, "{answer:?}");
        let order = answer.json();
        let at = order["scheduled_at"]
            .as_str()
            .expect("an instant")
            .to_owned();
        assert_eq!(
            answer.header("location"),
            Some(format!("/api/v1/occurrences/report/{at}").as_str())
        );
        assert_eq!(
            [&order["order"], &order["by"], &order["done"]],
            [&json!("trigger"), &json!("deploy"), &json!(true)]
        );
        at
    };
    let first = trigger("once");
    assert_eq!(trigger("once"), first);
    assert_ne!(trigger("another"), first);
    let lines = site.until("/api/v1/attempts?job=report", |answer| {
        let items = answer.json()["items"].as_array()?.clone();
        (items.len() >= 2).then_some(items)
    });
    assert_eq!(lines.len(), 2);
    assert!(
        lines
            .iter()
            .all(|line| line["by"] == "deploy" && line["origin"] == "trigger")
    );
    site.replica.wait_for_line(&[
        "an order came over HTTP",
        "order=trigger",
        "by=deploy",
        "triggered",
    ]);
}

#[test]
fn what_runs_is_killed_and_what_is_paused_is_told_so() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let post = |order: &str| {
        site.client
            .post_as(OPERATOR, &format!("/api/v1/jobs/long/{order}"))
    };
    post("kill").assert_problem(409, "nothing-runs");
    assert_eq!(post("trigger").status, 202);
    site.until("/api/v1/jobs/long", |answer| {
        (answer.json()["state"] == "running").then_some(())
    });
    let killed = post("kill").json();
    assert_eq!(
        [&killed["order"], &killed["running"]],
        [&json!("kill"), &json!(1)]
    );
    site.until("/api/v1/jobs/long", |answer| {
        (answer.json()["state"] == "cancelled").then_some(())
    });
    assert_eq!(post("pause").json()["paused_by"], "deploy");
    let paused = site.client.get("/api/v1/jobs/long").json();
    assert_eq!(
        [&paused["state"], &paused["paused"]["by"]],
        [&json!("paused"), &json!("deploy")]
    );
    assert_eq!(post("resume").status, 202);
    assert_eq!(
        site.client.get_as(READER, "/api/v1/jobs/long").json()["state"],
        "cancelled"
    );
}

/// What makes no sense, and what is said of it.
const SENSELESS: &[(&str, &str)] = &[
    ("jobs?limit=0", "`limit` is a number from 1 to 500; "),
    ("jobs?limit=501", "`limit` is a number from 1 to 500; "),
    ("jobs?limit=x", "`limit` is a number from 1 to 500; "),
    ("jobs?limit=", "`limit` is a number from 1 to 500; "),
    ("jobs?limit=5&limit=5", "`limit` is there twice"),
    (
        "jobs?limt=5",
        "`limt` is no parameter of this address, which takes `limit` and `after`",
    ),
    ("jobs?%0a=5", "`\\n` is no parameter"),
    ("jobs?after=a%20b", "`after` is the name of a job: "),
    ("jobs/report?limit=5", "which takes none"),
    (
        "attempts?before=yesterday",
        "`before` is an instant like 2026-11-20T22:00:00Z, not after 9999-12-30T22:00:00Z",
    ),
    (
        "attempts?before=9999-12-31T00:00:00Z",
        "not after 9999-12-30T22:00:00Z",
    ),
    (
        "attempts?before=2026-11-20T22:00:00+08:00",
        "write the `+` of an offset as `%2B`",
    ),
    (
        "jobs/report/occurrences?limit=101",
        "`limit` is a number from 1 to 100; ",
    ),
    (
        "jobs/report/occurrences?before=10000-01-01T00:00:00Z",
        "`before` is an instant",
    ),
    ("occurrences/report/22:00", "`scheduled_at` is an instant"),
    ("jobs/%ff", "not UTF-8"),
    ("jobs/report/attempts/%ff/output", "not UTF-8"),
];

/// What there is none of, and what is said of it.
const UNKNOWN: &[(&str, &str)] = &[
    ("jobs/a%2Fb", "no job can have this name"),
    ("jobs/report/attempts/x/output", "`run_id` is no id"),
    ("attempts?job=%20", "no job can have this name"),
    ("attempts?job=nigthly", "did you mean `nightly`?"),
    (
        "attempts?job=nobody&before=2026-11-20T22:00:00Z",
        "`nobody`",
    ),
];

#[test]
fn what_makes_no_sense_is_refused_with_what_is_taken() {
    let site = Site::start("127.0.0.1:0", JOBS);
    for (path, told) in SENSELESS {
        let answer = site.client.get(&format!("/api/v1/{path}"));
        answer.assert_problem(400, "bad-request");
        let problem = answer.json();
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(told), "{path}: {detail}");
    }
    let latest = "attempts?before=9999-12-30T22:00:00Z";
    let offset = "attempts?before=2026-11-20T22:00:00%2B08:00";
    for path in [latest, offset, "attempts?job=nightly"] {
        let answer = site.client.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.json()["items"], json!([]), "{path}");
    }
    for (path, told) in UNKNOWN {
        let answer = site.client.get(&format!("/api/v1/{path}"));
        answer.assert_problem(404, "not-found");
        assert!(answer.body.contains(told), "{path}: {answer:?}");
    }
    let bearer = format!("Bearer {OPERATOR}");
    let post = |headers: &[(&str, &str)], body: &str| {
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        site.client
            .send("POST", "/api/v1/jobs/nightly/resume", &headers, body)
    };
    let json = [("Content-Type", "application/json; charset=utf-8")];
    assert_eq!(post(&json, "{}").status, 202);
    post(&[], "{}").assert_problem(415, "unsupported-media-type");
    for (body, told) in [
        ("{\"now\": true}", "an order has no options"),
        ("[]", "the body is no object"),
        ("{\n\"", "the body is no JSON from line 2, column 1 on"),
    ] {
        let answer = post(&json, body);
        answer.assert_problem(400, "bad-request");
        assert!(answer.body.contains(told), "{answer:?}");
    }
    post(&[("Idempotency-Key", "")], "").assert_problem(400, "bad-request");
}

#[test]
fn a_job_that_a_newer_table_lacks_is_said_to_wait_by_a_replica_that_has_it() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let table = std::fs::read_to_string(site.fleet.config()).expect("a table");
    let (before, after) = table.split_once("[jobs.nightly]").expect("it is there");
    let (_, rest) = after.split_once("[jobs.off]").expect("it is there");
    site.fleet.set_table(&format!("{before}[jobs.off]{rest}"));
    let newer = site.fleet.start("r2");
    newer.wait_until_ready();
    let job = site.until("/api/v1/jobs/nightly", |answer| {
        let job = answer.json();
        job["note"].is_string().then_some(job)
    });
    assert_eq!(job["note"], "a newer table lacks it");
    assert_eq!([&job["next"], &job["upcoming"]], [&json!(null), &json!([])]);
    let list = site.client.get("/api/v1/jobs").json();
    let mut items = list["items"].as_array().expect("a list").iter();
    let nightly = items.find(|one| one["name"] == "nightly");
    assert_eq!(nightly.expect("it is there")["note"], job["note"]);
    let order = site
        .client
        .post_as(OPERATOR, "/api/v1/jobs/nightly/trigger")
        .json();
    assert_eq!(
        order["note"],
        "waits for a replica: the newer table of r2 lacks `nightly`, and none with an older one starts anything of it"
    );
}
