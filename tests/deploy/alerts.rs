//! The alerts that the chart brings.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::chart::{documents, rendered};

const PLAIN: &str = "docs/operating.md";

fn rules(values: Value) -> Value {
    let answer = rendered(&json!({ "metrics": { "prometheusRule": values } }));
    answer.the("PrometheusRule")["spec"].clone()
}

#[test]
fn the_alerts_of_the_chart_are_those_of_everybody() {
    let plain = &documents("deploy/prometheus/alerts.yaml")[0];
    assert_eq!(rules(json!({ "enabled": true })), *plain);
    assert!(rendered(&json!({})).all("PrometheusRule").is_empty());
}

#[test]
fn alerts_link_to_the_manual_where_it_can_be_read() {
    let manual = "https://git.example/soloist/blob/main/docs/operating.md";
    let linked = rules(json!({ "enabled": true, "manualUrl": manual }));
    let groups = linked["groups"].as_array().expect("groups");
    let alerts: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"))
        .collect();
    assert!(alerts.len() > 5);
    for alert in alerts {
        let annotations = &alert["annotations"];
        let anchor = alert["alert"].as_str().expect("a name").to_lowercase();
        assert_eq!(annotations["runbook_url"], format!("{manual}#{anchor}"));
        assert_eq!(annotations.get("runbook"), None);
    }
    assert!(!linked.to_string().contains(&format!("\"{PLAIN}")));
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("rules.yaml");
    fs::write(&file, linked.to_string()).expect("written");
    let mut check = Command::new("promtool");
    let output = check.args(["check", "rules"]).arg(&file).output();
    let output = output.expect("promtool (scripts/install-test-tools installs it)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
