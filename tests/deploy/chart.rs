//! The chart as Helm renders it, by way of `deploy.py`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};

/// What came of a request; which parts are there depends on what was asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    refused: Option<String>,
    findings: Vec<String>,
    table: Value,
    pub(crate) objects: Vec<Value>,
    pub(crate) manifests: BTreeMap<String, String>,
    pub(crate) notes: String,
}

/// A path in the repository.
pub(crate) fn path(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// A program that `scripts/install-test-tools` brought.
pub(crate) fn tool(name: &str) -> Command {
    let program = path("target/test-tools/deploy/bin").join(name);
    let there = program.exists();
    assert!(there, "{name} is missing: run scripts/install-test-tools");
    Command::new(program)
}

/// Renders and validates for all tests: to load Helm and the schemas takes longer than to use them.
/// It ends with its stdin, which ends with the tests.
static ENGINE: LazyLock<Mutex<Child>> = LazyLock::new(|| {
    let child = tool("python")
        .arg(path("tests/deploy/deploy.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    Mutex::new(child.expect("Python starts"))
});

fn ask(request: &Value) -> Answer {
    let mut engine = ENGINE.lock().expect("an engine that answered so far");
    writeln!(engine.stdin.as_mut().expect("piped"), "{request}").expect("it listens");
    // It says one line to each, so that none is lost with the buffer.
    let mut answer = String::new();
    let stdout = engine.stdout.as_mut().expect("piped");
    BufReader::new(stdout)
        .read_line(&mut answer)
        .expect("UTF-8");
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {request}"))
}

/// The chart with these values over its own.
pub(crate) fn rendered(values: &Value) -> Answer {
    let answer = ask(&json!({ "values": values }));
    assert_eq!(answer.refused, None, "{values}");
    answer
}

/// Why Helm doesn't take these values.
pub(crate) fn refusal(values: &Value) -> String {
    let answer = ask(&json!({ "values": values }));
    answer.refused.unwrap_or_else(|| panic!("taken: {values}"))
}

/// What the API's schemas have against objects.
pub(crate) fn findings(objects: &[Value]) -> Vec<String> {
    ask(&json!({ "objects": objects })).findings
}

/// What `helm lint --strict` has against the chart with these values.
pub(crate) fn lint(values: &Value) -> Vec<String> {
    ask(&json!({ "lint": values })).findings
}

/// The documents of a file of YAML.
pub(crate) fn documents(relative: &str) -> Vec<Value> {
    ask(&json!({ "file": path(relative) })).objects
}

/// A text of TOML, as JSON.
pub(crate) fn toml(text: &str) -> Value {
    ask(&json!({ "toml": text })).table
}

impl Answer {
    /// The objects of a kind.
    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        let objects = self.objects.iter();
        objects.filter(|object| object["kind"] == kind).collect()
    }

    /// The only object of a kind.
    pub(crate) fn the(&self, kind: &str) -> &Value {
        match self.all(kind)[..] {
            [object] => object,
            ref others => panic!("{} of {kind}", others.len()),
        }
    }

    /// What a replica's pod is made of.
    pub(crate) fn pod(&self) -> &Value {
        &self.the("Deployment")["spec"]["template"]["spec"]
    }

    pub(crate) fn container(&self) -> &Value {
        &self.pod()["containers"][0]
    }

    /// A variable of the replica.
    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        let variables = self.container()["env"].as_array().expect("variables");
        variables.iter().find(|variable| variable["name"] == name)
    }

    /// The table that the replicas read.
    pub(crate) fn table(&self) -> &str {
        self.the("ConfigMap")["data"]["jobs.toml"]
            .as_str()
            .expect("a text")
    }
}

/// Values that set as much as there is.
pub(crate) fn everything() -> Value {
    json!({
        "replicaCount": 5,
        "image": { "repository": "registry.example/soloist", "digest": format!("sha256:{}", "0".repeat(64)) },
        "imagePullSecrets": [{ "name": "registry" }],
        "fullnameOverride": "night-shift",
        "store": { "url": "rediss://soloist:hunter2@redis.example:6390/1" },
        "scheduler": {
            "namespace": "shop", "lease_ttl": "20s", "shutdown_grace": "1m500ms",
            "tags": { "zone": "eu" }, "max_running": 20, "revision": 2_000_000, "tls_ca": "/etc/soloist/tls/ca.pem",
        },
        "defaults": { "timezone": "Asia/Shanghai", "kill_grace": "10s" },
        "calendars": { "holidays": { "dates": ["2027-01-01"] } },
        "notify": { "ops": { "webhook": { "url": "http://hooks.shop/soloist" } } },
        "jobs": {
            "report": {
                "schedule": "0 6 * * *", "shell": "report > \"/tmp/a\" && send\n\ttwo\\ \u{2713}", "enabled": false,
                "kill_grace": "1m30s", "retry": { "max": 3, "factor": 1.5 }, "success_codes": [0, 75],
                "except": ["holidays"], "description": null, "history_limit": 1_000_000,
            },
            "tidy.up": {
                "schedule": "@manual",
                "http": { "url": "http://shop/tidy", "headers": { "X-Why": "a b" } },
            },
            "gone": null,
        },
        "jobsToml": "[jobs.text]\nschedule = \"@daily\"\ncommand = [\"true\"]\nkill_grace = '20s'\n",
        "api": { "tokens": "operator ops s3cret-t0ken\n" },
        "listen": { "address": "::", "port": 8080 },
        "metrics": { "serviceMonitor": {
            "enabled": true, "labels": { "release": "prometheus" },
            "tokenSecret": { "name": "prometheus", "key": "token" },
        }, "prometheusRule": {
            "enabled": true, "labels": { "release": "prometheus" },
            "manualUrl": "https://git.example/soloist/blob/main/docs/operating.md",
        } },
        "networkPolicy": { "egress": {
            "restricted": true, "storePorts": [6390],
            "storeTo": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }],
            "extra": [{ "ports": [{ "port": 443, "protocol": "TCP" }] }],
        } },
        "podDisruptionBudget": { "maxUnavailable": "40%" },
        "serviceAccount": { "name": "soloist", "annotations": { "a": "b" } },
        "extraEnv": [{ "name": "DATABASE_URL", "value": "x" }],
        "extraEnvFrom": [{ "secretRef": { "name": "more" } }],
        "extraVolumes": [{ "name": "tls", "secret": { "secretName": "redis-tls" } }],
        "extraVolumeMounts": [{ "name": "tls", "mountPath": "/etc/soloist/tls", "readOnly": true }],
        "podAnnotations": { "a": "b" }, "podLabels": { "team": "shop" },
        "nodeSelector": { "kubernetes.io/os": "linux" },
        "tolerations": [{ "key": "batch", "operator": "Exists" }],
        "priorityClassName": "high",
    })
}

/// Values that leave out what can be left out, and name what is there already.
pub(crate) fn as_little_as_may_be() -> Value {
    json!({
        "replicaCount": 1,
        "store": { "existingSecret": "redis", "key": "uri" },
        "existingConfigMap": "jobs",
        "api": { "existingSecret": "tokens" },
        "networkPolicy": { "enabled": false },
        "podDisruptionBudget": { "enabled": false },
        "serviceAccount": { "create": false },
        "affinity": { "nodeAffinity": {} },
    })
}
