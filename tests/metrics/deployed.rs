//! What stands in `deploy/` and in the manual: rules, dashboard, names.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use test_support::fleet::Fleet;
use test_support::redis::RedisServer;

use crate::promtool::promtool;
use crate::replica::Replica;
use crate::scenarios::{self, root};

pub(crate) const ALL: &[crate::Law] = &[
    ("the_rules_are_rules", the_rules_are_rules),
    (
        "each_alert_fires_in_its_case_and_none_in_the_healthy_one",
        each_alert_fires_in_its_case,
    ),
    ("each_alert_says_what_to_do", each_alert_says_what_to_do),
    (
        "each_expression_of_the_dashboard_can_be_asked",
        each_expression_of_the_dashboard_can_be_asked,
    ),
    (
        "what_is_named_is_there_and_moves",
        what_is_named_is_there_and_moves,
    ),
    (
        "the_manual_names_all_that_is_there",
        the_manual_names_all_that_is_there,
    ),
];

const RULES: &str = "deploy/prometheus/alerts.yaml";
const CASES: &str = "deploy/prometheus/alerts.test.yaml";
const DASHBOARD: &str = "deploy/grafana/soloist.json";
const MANUAL: &str = "docs/operating.md";

/// What no scenario moves, and why.
const STILL: [(&str, &str); 5] = [
    (
        "soloist_notifications_total",
        "by `notify`: `what_is_delivered_is_counted`",
    ),
    ("soloist_config_drift_jobs", "by `integration`: `rollout`"),
    (
        "soloist_config_last_reload_successful",
        "by `a_refused_table_shows_until_it_is_mended`",
    ),
    (
        "soloist_api_tokens_last_read_successful",
        "by tests/http: `tokens_are_read_anew_with_the_table_and_a_broken_file_leaves_them`",
    ),
    ("soloist_spans_total", "of the feature `otlp`: tests/traces"),
];

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file")
}

fn path(path: &str) -> String {
    root().join(path).display().to_string()
}

fn the_rules_are_rules() {
    let (content, said) = promtool(&["check", "rules", &path(RULES)], "");
    assert!(content, "{said}");
}

fn each_alert_fires_in_its_case() {
    let (content, said) = promtool(&["test", "rules", &path(CASES)], "");
    assert!(content, "{said}");
    let cases = read(CASES);
    for (alert, _) in alerts() {
        assert!(cases.contains(&alert), "{alert} has no case in {CASES}");
    }
}

/// The alerts, each with its text.
fn alerts() -> Vec<(String, String)> {
    let text = read(RULES);
    let blocks = text.split("- alert: ").skip(1);
    let alerts = blocks.map(|block| {
        let (name, rest) = block.split_once('\n').expect("a rule");
        (name.to_owned(), rest.to_owned())
    });
    alerts.collect()
}

fn each_alert_says_what_to_do() {
    let manual = read(MANUAL);
    for (alert, rule) in alerts() {
        let value = |key: &str| {
            let mut lines = rule.lines().map(str::trim);
            let line = lines.find_map(|line| line.strip_prefix(&format!("{key}: ")));
            line.unwrap_or_else(|| panic!("{alert} has no {key}"))
                .to_owned()
        };
        assert!(["critical", "warning"].contains(&value("severity").as_str()));
        assert!(!value("summary").is_empty() && !value("description").is_empty());
        let anchor = alert.to_lowercase();
        assert_eq!(value("runbook"), format!("{MANUAL}#{anchor}"));
        assert!(
            manual.contains(&format!("<a id=\"{anchor}\">")),
            "{MANUAL} has no {anchor}"
        );
    }
}

/// The expressions of all panels, as Prometheus is asked them.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    assert_eq!(dashboard["schemaVersion"], 42);
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let asked = targets.map(|target| {
        let expression = target["expr"].as_str().expect("an expression");
        let asked = expression.replace("$__rate_interval", "5m");
        let asked = asked.replace("$namespace", ".*").replace("$job", ".*");
        assert!(!asked.contains('$'), "an unknown variable: {asked}");
        asked
    });
    asked.collect()
}

fn each_expression_of_the_dashboard_can_be_asked() {
    let mut rules = String::from("groups:\n  - name: panels\n    rules:\n");
    for (number, expression) in expressions().into_iter().enumerate() {
        let quoted = expression.replace('\'', "''");
        let _ = writeln!(
            rules,
            "      - record: panel:{number}\n        expr: '{quoted}'"
        );
    }
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("rules.yaml");
    std::fs::write(&file, rules).expect("a file");
    let (content, said) = promtool(&["check", "rules", &file.display().to_string()], "");
    assert!(content && said.contains("SUCCESS"), "{said}");
}

/// The samples that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_word(c)).map(str::to_owned);
    let own = ["soloist_", "process_"];
    let is_name = |word: &String| own.iter().any(|prefix| word.starts_with(prefix));
    words.filter(is_name).collect()
}

fn expressions_of_alerts() -> String {
    let lines = alerts().into_iter().flat_map(|(_, rule)| {
        let before = rule.split("annotations:").next().map(str::to_owned);
        before.into_iter().collect::<Vec<_>>()
    });
    lines.collect()
}

fn what_is_named_is_there_and_moves() {
    let moved = scenarios::all();
    let is_moved = |name: &str| {
        let family = ["", "_bucket", "_sum", "_count"];
        family
            .iter()
            .any(|suffix| moved.contains(&format!("{name}{suffix}")))
    };
    let still: BTreeSet<&str> = STILL.iter().map(|(name, _)| *name).collect();
    let texts = [
        expressions_of_alerts(),
        expressions().join("\n"),
        manual_of_metrics(),
    ];
    for name in texts.iter().flat_map(|text| named(text)) {
        assert!(
            is_moved(&name) || still.contains(&*name),
            "{name} is moved by nothing"
        );
    }
}

/// The part of the manual that lists series.
fn manual_of_metrics() -> String {
    let manual = read(MANUAL);
    let part = manual
        .split("## Read the metrics")
        .nth(1)
        .expect("a section");
    part.split("\n## ").next().expect("its text").to_owned()
}

fn the_manual_names_all_that_is_there() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(
        redis.url(),
        "[jobs.a]\nschedule = \"@daily\"\nshell = \"true\"\n",
    );
    let text = Replica::start_ready(&fleet, &redis.url(), "a").page().text;
    let typed = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families: BTreeSet<&str> = typed.filter_map(|typed| typed.split(' ').next()).collect();
    let manual = named(&manual_of_metrics());
    for family in families
        .into_iter()
        .filter(|family| !family.starts_with("test_"))
    {
        assert!(manual.contains(family), "{MANUAL} doesn't name {family}");
    }
}
