//! The plain manifests are the chart's, for who has no Helm.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use crate::chart::{path, rendered};

#[test]
fn the_chart_has_the_alerts_that_everybody_has() {
    let read = |file: &str| fs::read_to_string(path(file)).expect("a text");
    let own = read("deploy/helm/soloist/files/alerts.yaml");
    assert!(
        own == read("deploy/prometheus/alerts.yaml"),
        "make manifests"
    );
}

#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    let folder = fs::read_dir(path("deploy/kubernetes")).expect("a directory");
    let files: BTreeMap<String, String> = folder
        .map(|entry| {
            let entry = entry.expect("an entry");
            let text = fs::read_to_string(entry.path()).expect("a text");
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect();
    let answer = rendered(&json!({}));
    assert_eq!(files, answer.manifests, "make manifests");
    assert!(files.len() > 5, "{files:?}");
}
