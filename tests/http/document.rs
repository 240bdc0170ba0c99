//! The OpenAPI document: it is one, what it refers to is there, and answers are what it says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::site::{JOBS, OPERATOR, Site};

/// What a schema of the document says of a value.
fn check(document: &Value, schema: &Value, value: &Value, what: &str) {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    let validator = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .build(&whole)
        .unwrap_or_else(|error| panic!("{what}: the schema is none: {error}"));
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{value:#}");
}

/// All values of a key, wherever it stands.
fn values_of<'v>(key: &str, value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key));
            fields
                .values()
                .for_each(|value| values_of(key, value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| values_of(key, value, found)),
        _ => {}
    }
}

/// Each operation: its path, method and itself.
fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("an item");
        methods
            .iter()
            .map(move |(method, operation)| (path, method, operation))
    });
    operations.collect()
}

#[test]
fn the_document_holds_together() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let document = site.client.get("/api/v1/openapi.json").json();
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1."))
    );
    for field in ["title", "version", "license"] {
        assert!(!document["info"][field].is_null(), "{field}");
    }
    let mut references = Vec::new();
    values_of("$ref", &document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference
            .as_str()
            .and_then(|text| text.strip_prefix('#'))
            .expect("a local reference");
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    let schemas = document["components"]["schemas"]
        .as_object()
        .expect("schemas");
    for (name, schema) in schemas {
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            panic!("{name}: {error}");
        }
    }
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let what = format!("{method} {path}");
        assert!(
            ids.insert(operation["operationId"].as_str().expect("an id")),
            "{what}"
        );
        assert!(
            operation["summary"].is_string() || operation["description"].is_string(),
            "{what}"
        );
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let declared: BTreeSet<&str> = parameters
            .iter()
            .filter(|one| one["in"] == "path")
            .filter_map(|one| one["name"].as_str())
            .collect();
        let written: BTreeSet<&str> = path.split(['{', '}']).skip(1).step_by(2).collect();
        assert_eq!(declared, written, "{what}");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(
            responses.values().all(|one| one["description"].is_string()),
            "{what}"
        );
        let is_probe = ["/healthz", "/readyz"].contains(&path.as_str());
        assert_eq!(operation["security"].is_null(), !is_probe, "{what}");
    }
}

#[test]
fn answers_are_what_the_document_says() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let line = site.run("report");
    let text = |key: &str| line[key].as_str().expect("text").to_owned();
    let document = site.client.get("/api/v1/openapi.json").json();
    for (path, method, operation) in operations(&document) {
        let job = if path.ends_with("/kill") {
            "nightly"
        } else {
            "report"
        };
        let address = path
            .replace("{job}", job)
            .replace("{run_id}", &text("run_id"))
            .replace("{scheduled_at}", &text("scheduled_at"));
        let bearer = format!("Bearer {OPERATOR}");
        let answer = site.client.send(
            &method.to_uppercase(),
            &address,
            &[("Authorization", &bearer)],
            "",
        );
        let what = format!("{method} {address}: {}", answer.status);
        let response = &operation["responses"][answer.status.to_string()];
        assert!(response.is_object(), "{what} is not in the document");
        let content = answer.header("content-type").unwrap_or_default();
        let media = content.split(';').next().unwrap_or_default();
        let declared = &response["content"][media];
        assert!(
            declared.is_object(),
            "{what} with {media} is not in the document"
        );
        if media.ends_with("json") {
            check(&document, &declared["schema"], &answer.json(), &what);
        }
    }
    let problem = site.client.get("/api/v1/jobs/nobody").json();
    check(
        &document,
        &json!({"$ref": "#/components/schemas/Problem"}),
        &problem,
        "a problem",
    );
}
