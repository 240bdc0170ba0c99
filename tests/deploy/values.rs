//! Which values the chart takes, and what it makes of them.

use std::fs;
use std::slice::from_ref;

use serde_json::{Value, json};

use crate::chart::{
    as_little_as_may_be, documents, everything, findings, lint, path, refusal, rendered,
};

#[test]
fn what_is_rendered_is_known_to_the_api_field_by_field() {
    for values in [json!({}), everything(), as_little_as_may_be()] {
        let answer = rendered(&values);
        assert_eq!(lint(&values), [""; 0], "{values}");
        assert_eq!(findings(&answer.objects), [""; 0], "{values}");
    }
}

#[test]
fn everything_is_rendered_where_it_is_asked_for_and_nothing_else() {
    let kinds = |values| {
        let answer = rendered(&values);
        let kinds = answer
            .objects
            .iter()
            .map(|object| object["kind"].to_string());
        kinds
            .collect::<String>()
            .replace("\"\"", " ")
            .replace('"', "")
    };
    let always =
        "Deployment NetworkPolicy PodDisruptionBudget Secret Secret Service ServiceAccount Pod";
    assert_eq!(kinds(json!({})), format!("ConfigMap {always}"));
    assert_eq!(
        kinds(everything()),
        "ConfigMap Deployment NetworkPolicy PodDisruptionBudget PrometheusRule Secret Secret Service ServiceAccount ServiceMonitor Pod"
    );
    assert_eq!(kinds(as_little_as_may_be()), "Deployment Service Pod");
}

#[test]
fn a_field_that_nobody_knows_is_found() {
    let answer = rendered(&everything());
    for object in &answer.objects {
        let mut object = object.clone();
        object["unheardOf"] = json!(1);
        assert_ne!(findings(from_ref(&object)), [""; 0], "{}", object["kind"]);
    }
    for (kind, pointer) in [
        ("Deployment", "/spec/template/spec/containers/0"),
        ("NetworkPolicy", "/spec/ingress/0"),
        ("ServiceMonitor", "/spec/endpoints/0"),
        ("PrometheusRule", "/spec/groups/0/rules/0"),
    ] {
        let mut object = answer.the(kind).clone();
        object.pointer_mut(pointer).expect("there")["unheardOf"] = json!(1);
        assert_ne!(findings(from_ref(&object)), [""; 0], "{kind}{pointer}");
    }
}

/// Holds that each of these values is refused, in its place.
fn assert_refused<const N: usize>(cases: [(Value, &str); N]) {
    for (values, place) in cases {
        let refusal = refusal(&values);
        assert!(refusal.contains(place), "{values}: {refusal}");
    }
}

#[test]
fn the_values_of_the_manual_are_taken() {
    let manual = fs::read_to_string(path("docs/kubernetes.md")).expect("a page");
    let blocks = manual.split("```yaml\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|rest| rest.split("```").next().expect("a block"))
        .collect();
    assert!(blocks.len() > 1, "{blocks:?}");
    let dir = tempfile::tempdir().expect("a directory");
    for block in blocks {
        let file = dir.path().join("values.yaml");
        fs::write(&file, block).expect("written");
        // An absolute path stays what it is.
        let [values] = &documents(file.to_str().expect("UTF-8"))[..] else {
            panic!("several documents: {block}");
        };
        let answer = rendered(values);
        assert_eq!(findings(&answer.objects), [""; 0], "{block}");
    }
}

#[test]
fn values_that_there_are_not_are_refused() {
    assert_refused([
        (json!({ "replicas": 3 }), "'replicas' not allowed"),
        (json!({ "image": { "tags": "1" } }), "/image"),
        (json!({ "resources": { "cpu": "1" } }), "/resources"),
    ]);
}

#[test]
fn pods_that_could_not_work_are_refused() {
    let monitor = json!({ "serviceMonitor": { "tokenSecret": { "name": "a" } } });
    let no_ports = json!({ "egress": { "storePorts": [] } });
    let no_memory = json!({ "limits": { "memory": "lots" } });
    assert_refused([
        (json!({ "replicaCount": 0 }), "/replicaCount"),
        (json!({ "replicaCount": "3" }), "/replicaCount"),
        (
            json!({ "image": { "digest": "sha256:12" } }),
            "/image/digest",
        ),
        (
            json!({ "listen": { "address": "127.0.0.1" } }),
            "/listen/address",
        ),
        (json!({ "listen": { "port": 80 } }), "/listen/port"),
        (json!({ "stopMarginSeconds": 0 }), "/stopMarginSeconds"),
        (
            json!({ "podDisruptionBudget": { "maxUnavailable": 0 } }),
            "/maxUnavailable",
        ),
        (json!({ "metrics": monitor }), "/tokenSecret"),
        (json!({ "networkPolicy": no_ports }), "/storePorts"),
        (json!({ "resources": no_memory }), "/resources/limits"),
    ]);
}

#[test]
fn stores_that_pods_cannot_share_are_refused() {
    let with = |url: &str| json!({ "store": { "url": url } });
    assert_refused([
        (with(""), "/store"),
        (with("sqlite:/var/lib/soloist.db"), "/store/url"),
        (with("memory:"), "/store/url"),
    ]);
}

#[test]
fn tables_that_the_chart_could_not_go_by_are_refused() {
    let scheduler = |key: &str, value: Value| json!({ "scheduler": { key: value } });
    assert_refused([
        (scheduler("store", json!("redis://redis")), "/scheduler"),
        (scheduler("replica", json!("one-for-all")), "/scheduler"),
        (
            scheduler("shutdown_grace", json!(30)),
            "/scheduler/shutdown_grace",
        ),
        (
            scheduler("shutdown_grace", json!("1s1m")),
            "/scheduler/shutdown_grace",
        ),
        (
            json!({ "defaults": { "kill_grace": "5" } }),
            "/defaults/kill_grace",
        ),
        (
            json!({ "jobs": { "a": { "kill_grace": "soon" } } }),
            "/jobs/a/kill_grace",
        ),
        (json!({ "jobs": { "a": "@daily" } }), "/jobs/a"),
        (
            json!({ "jobs": { "a b": { "schedule": "@daily" } } }),
            "'a b' does not match",
        ),
        (
            json!({ "revisionFromRelease": true, "scheduler": { "revision": 5 } }),
            "scheduler.revision is set, too",
        ),
        (
            json!({ "revisionFromRelease": true, "existingConfigMap": "jobs" }),
            "existingConfigMap has the whole table",
        ),
    ]);
}

#[test]
fn a_table_that_would_be_there_twice_is_refused() {
    let job = json!({ "schedule": "@daily", "command": ["a"] });
    let with = |values: Value, text: &str| {
        let mut values = values;
        values["jobsToml"] = json!(text);
        values
    };
    let defaults = json!({ "defaults": { "timezone": "UTC" } });
    let jobs = json!({ "jobs": { "a": job, "b.c": job } });
    let notify = json!({ "notify": { "ops": { "webhook": { "url": "http://hooks/" } } } });
    let calendars = json!({ "calendars": { "holidays": { "dates": ["2027-01-01"] } } });
    assert_refused([
        (
            with(json!({}), "[scheduler]\nwatch = true"),
            "jobsToml: [scheduler] belongs",
        ),
        (
            with(json!({}), "# x\n[ \"scheduler\".tags ]\na = \"b\""),
            "jobsToml: [scheduler] belongs",
        ),
        (
            with(defaults.clone(), "[jobs.x]\n\n  [ defaults ] # all"),
            "jobsToml: [defaults] is given",
        ),
        (
            with(defaults, "[defaults.retry]\nmax = 3"),
            "jobsToml: [defaults] is given",
        ),
        (with(jobs.clone(), "[jobs.a]"), "[jobs.a] is given"),
        (with(jobs.clone(), "[jobs . 'a']"), "[jobs.a] is given"),
        (with(jobs, "[jobs.\"b.c\"]"), "[jobs.b.c] is given"),
        (
            with(notify, "[notify.ops.webhook]"),
            "[notify.ops] is given",
        ),
        (
            with(calendars, "[calendars.holidays]"),
            "[calendars.holidays] is given",
        ),
        (
            with(json!({}), "# mine\ntimezone = \"UTC\"\n[jobs.x]"),
            "begins with a key that is in no table",
        ),
    ]);
}

#[test]
fn metrics_that_nobody_could_scrape_are_refused() {
    let monitor = |api: Value, token: Value| {
        let monitor = json!({ "enabled": true, "tokenSecret": token });
        json!({ "api": api, "metrics": { "serviceMonitor": monitor } })
    };
    let digest = format!("read prometheus sha256:{}", "0".repeat(64));
    let secret = json!({ "name": "prometheus", "key": "token" });
    assert_refused([
        (monitor(json!({}), json!({})), "openssl rand -hex 32"),
        (
            monitor(json!({ "tokens": "operator ops 123" }), json!({})),
            "`read prometheus TOKEN`",
        ),
        (
            monitor(json!({ "tokens": digest }), json!({})),
            "metrics.serviceMonitor.tokenSecret",
        ),
        (
            monitor(json!({ "existingSecret": "tokens" }), json!({})),
            "metrics.serviceMonitor.tokenSecret",
        ),
        (monitor(json!({}), secret), "the replicas know no tokens"),
    ]);
}
