//! What the pods are given: time to stop, ports, rights, secrets.

use serde_json::{Value, json};

use crate::chart::{Answer, as_little_as_may_be, everything, rendered};

/// Longest time to hand over that is held to be needed, beside the graces.
const MARGIN_SECONDS: i64 = 15;

#[test]
fn a_pod_has_longer_to_stop_than_its_jobs() {
    for (values, graces) in [
        (json!({}), 30 + 5),
        (
            json!({ "scheduler": { "shutdown_grace": "1m30s" } }),
            90 + 5,
        ),
        (json!({ "scheduler": { "shutdown_grace": "1h" } }), 3600 + 5),
        (
            json!({ "scheduler": { "shutdown_grace": "1001ms" } }),
            2 + 5,
        ),
        (json!({ "defaults": { "kill_grace": "20s" } }), 30 + 20),
        (json!({ "defaults": { "kill_grace": "1s" } }), 30 + 1),
        (
            json!({ "jobs": { "a": { "kill_grace": "40s" }, "b": { "kill_grace": "9s" } } }),
            30 + 40,
        ),
        (
            json!({ "jobsToml": "[jobs.a]\nkill_grace = '2m'" }),
            30 + 120,
        ),
        (everything(), 61 + 90),
    ] {
        let answer = rendered(&values);
        let seconds = answer.pod()["terminationGracePeriodSeconds"].as_i64();
        let expected = graces + MARGIN_SECONDS;
        assert_eq!(seconds, Some(expected), "{values}");
        assert!(
            answer.notes.contains(&format!("has {expected} s")),
            "{}",
            answer.notes
        );
    }
}

#[test]
fn all_who_name_the_port_name_the_same() {
    for (values, port, listen) in [
        (json!({}), 7373, "0.0.0.0:7373"),
        (everything(), 8080, "[::]:8080"),
    ] {
        let answer = rendered(&values);
        let container = answer.container();
        let ports = json!([{ "name": "http", "containerPort": port }]);
        assert_eq!(container["ports"], ports);
        let variable = answer.variable("SOLOIST_LISTEN").expect("set");
        assert_eq!(variable["value"], listen);
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe]["httpGet"]["port"], "http", "{probe}");
        }
        let service = &answer.the("Service")["spec"]["ports"][0];
        let named = [&service["port"], &service["targetPort"], &service["name"]];
        assert_eq!(named, [&json!(port), &json!("http"), &json!("http")]);
        let policy = &answer.the("NetworkPolicy")["spec"]["ingress"][0]["ports"];
        assert_eq!(*policy, json!([{ "port": "http", "protocol": "TCP" }]));
        for monitor in answer.all("ServiceMonitor") {
            assert_eq!(monitor["spec"]["endpoints"][0]["port"], "http");
        }
    }
}

#[test]
fn a_store_that_is_away_restarts_nobody() {
    let answer = rendered(&json!({}));
    let path = |probe: &str| answer.container()[probe]["httpGet"]["path"].clone();
    assert_eq!(path("startupProbe"), "/healthz");
    assert_eq!(path("livenessProbe"), "/healthz");
    assert_eq!(path("readinessProbe"), "/readyz");
    // All are unready then, and wanted by Prometheus more than ever: each at its own address.
    let service = &answer.the("Service")["spec"];
    assert_eq!(service["publishNotReadyAddresses"], true);
    assert_eq!(service["clusterIP"], "None");
}

fn deployment(values: Value) -> Value {
    rendered(&values).the("Deployment").clone()
}

#[test]
fn what_a_reload_changes_restarts_no_pod() {
    let before = deployment(json!({ "jobs": { "a": { "schedule": "@daily", "command": ["a"] } } }));
    let after = deployment(json!({
        "api": { "tokens": "read grafana 123\n" },
        "jobs": { "b": { "schedule": "@hourly", "command": ["b"] } },
        "jobsToml": "[jobs.c]\nschedule = \"@manual\"\ncommand = [\"c\"]",
        "calendars": { "holidays": { "dates": ["2027-01-01"] } },
        "defaults": { "timeout": "1h" },
        "scheduler": { "max_running": 3, "tags": { "zone": "eu" }, "lease_ttl": "30s" },
    }));
    assert_eq!(before, after);
}

#[test]
fn what_is_read_at_the_start_alone_restarts_the_pods() {
    let pods = |values: Value| deployment(values)["spec"]["template"].clone();
    let before = pods(json!({}));
    for values in [
        json!({ "store": { "url": "redis://elsewhere:6379" } }),
        json!({ "scheduler": { "namespace": "shop" } }),
        json!({ "scheduler": { "tls_ca": "/etc/soloist/tls/ca.pem" } }),
        json!({ "scheduler": { "min_replicas_ack": 1 } }),
        json!({ "scheduler": { "watch": false } }),
        json!({ "listen": { "port": 8080 } }),
    ] {
        assert_ne!(before, pods(values.clone()), "{values}");
    }
}

#[test]
fn a_changed_table_arrives_in_the_pod() {
    for values in [json!({}), everything(), as_little_as_may_be()] {
        let answer = rendered(&values);
        let mounts = answer.container()["volumeMounts"]
            .as_array()
            .expect("mounts");
        let config = mounts
            .iter()
            .find(|mount| mount["name"] == "config")
            .expect("it");
        assert_eq!(config.get("subPath"), None);
        assert_eq!(config["readOnly"], true);
        let file = answer.variable("SOLOIST_CONFIG").expect("set")["value"].as_str();
        let folder = config["mountPath"].as_str().expect("a path");
        assert_eq!(file.expect("a path"), format!("{folder}/jobs.toml"));
    }
    let answer = rendered(&json!({}));
    assert!(
        answer.table().contains("\nwatch = true"),
        "{}",
        answer.table()
    );
}

/// What the restricted profile of the Pod Security Standards wants, and a little more.
fn assert_restricted(pod: &Value) {
    assert_eq!(pod["automountServiceAccountToken"], false);
    for shared in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"] {
        assert_eq!(pod.get(shared), None);
    }
    let of_pod = &pod["securityContext"];
    assert_eq!(of_pod["runAsNonRoot"], true);
    assert_eq!(of_pod["runAsUser"], 65532);
    assert_eq!(
        of_pod["seccompProfile"],
        json!({ "type": "RuntimeDefault" })
    );
    let own = &pod["containers"][0]["securityContext"];
    assert_eq!(own["allowPrivilegeEscalation"], false);
    assert_eq!(own["readOnlyRootFilesystem"], true);
    assert_eq!(own["capabilities"], json!({ "drop": ["ALL"] }));
    let resources = &pod["containers"][0]["resources"];
    assert!(resources["limits"]["memory"].is_string());
    // A throttled replica renews late.
    assert_eq!(resources["limits"].get("cpu"), None);
}

#[test]
fn pods_have_no_more_rights_than_they_need() {
    for values in [json!({}), everything(), as_little_as_may_be()] {
        let answer = rendered(&values);
        assert_restricted(answer.pod());
        assert_restricted(&answer.the("Pod")["spec"]);
    }
}

#[test]
fn replicas_stay_apart_and_leave_one_by_one() {
    let answer = rendered(&json!({}));
    let spec = &answer.the("Deployment")["spec"];
    assert_eq!(spec["replicas"], 3);
    let rolling = json!({ "maxSurge": 1, "maxUnavailable": 1 });
    assert_eq!(spec["strategy"]["rollingUpdate"], rolling);
    let selector = &spec["selector"]["matchLabels"];
    let pod = answer.pod();
    let anti = &pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        [0]["podAffinityTerm"];
    assert_eq!(anti["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(anti["labelSelector"]["matchLabels"], *selector);
    let spread = &pod["topologySpreadConstraints"][0];
    assert_eq!(spread["whenUnsatisfiable"], "ScheduleAnyway");
    assert_eq!(spread["labelSelector"]["matchLabels"], *selector);
    let budget = &answer.the("PodDisruptionBudget")["spec"];
    assert_eq!(budget["maxUnavailable"], 1);
    for kind in ["PodDisruptionBudget", "Service", "NetworkPolicy"] {
        let spec = &answer.the(kind)["spec"];
        let selected = match kind {
            "Service" => &spec["selector"],
            "NetworkPolicy" => &spec["podSelector"]["matchLabels"],
            _ => &spec["selector"]["matchLabels"],
        };
        assert_eq!(selected, selector, "{kind}");
    }
    let labels = &spec["template"]["metadata"]["labels"];
    for (name, value) in selector.as_object().expect("labels") {
        assert_eq!(labels[name], *value);
    }
}

#[test]
fn a_replica_is_called_like_its_pod() {
    let answer = rendered(&json!({}));
    let variable = answer.variable("SOLOIST_REPLICA").expect("set");
    assert_eq!(
        variable["valueFrom"]["fieldRef"]["fieldPath"],
        "metadata.name"
    );
}

#[test]
fn secrets_are_in_secrets_alone() {
    let answer = rendered(&everything());
    for object in answer
        .objects
        .iter()
        .filter(|object| object["kind"] != "Secret")
    {
        for secret in ["hunter2", "s3cret-t0ken"] {
            assert!(!object.to_string().contains(secret), "{object}");
        }
    }
    assert!(!answer.notes.contains("hunter2"));
    let texts: String = answer
        .all("Secret")
        .iter()
        .map(|secret| secret.to_string())
        .collect();
    assert!(
        texts.contains("hunter2") && texts.contains("s3cret-t0ken"),
        "{texts}"
    );
}

/// The Secret, and its key, that the store's URL comes from.
fn store_key(answer: &Answer) -> (String, String) {
    let variable = answer.variable("SOLOIST_STORE").expect("set");
    let from = &variable["valueFrom"]["secretKeyRef"];
    let text = |field: &str| from[field].as_str().expect("a text").to_owned();
    (text("name"), text("key"))
}

#[test]
fn the_secrets_that_pods_name_are_there_or_the_users_own() {
    let own = rendered(&everything());
    let (name, key) = store_key(&own);
    let secrets = own.all("Secret");
    let named = |name: &str| {
        let mut found = secrets
            .iter()
            .filter(|secret| secret["metadata"]["name"] == name);
        found.next().unwrap_or_else(|| panic!("no Secret {name}"))
    };
    assert!(named(&name)["stringData"][&key].is_string());
    let tokens = |answer: &Answer| {
        let volumes = answer.pod()["volumes"].as_array().expect("volumes").clone();
        let volume = volumes
            .into_iter()
            .find(|volume| volume["name"] == "tokens");
        volume.map(|volume| {
            volume["secret"]["secretName"]
                .as_str()
                .expect("a name")
                .to_owned()
        })
    };
    assert!(named(&tokens(&own).expect("tokens"))["stringData"]["tokens"].is_string());
    let users = rendered(&as_little_as_may_be());
    assert_eq!(store_key(&users), ("redis".into(), "uri".into()));
    assert_eq!(tokens(&users), Some("tokens".into()));
    let file = &own.variable("SOLOIST_API_TOKENS_FILE").expect("set")["value"];
    assert_eq!(*file, "/etc/soloist/tokens/tokens");
}

/// What a Secret holds by a key.
fn secret<'a>(answer: &'a Answer, name: &str, key: &str) -> Option<&'a str> {
    let secrets = answer.all("Secret");
    let mut named = secrets
        .into_iter()
        .filter(|secret| secret["metadata"]["name"] == name);
    named.next()?["stringData"][key].as_str()
}

#[test]
fn tokens_can_be_given_to_pods_that_run() {
    let without = rendered(&json!({}));
    let file = secret(&without, "soloist-tokens", "tokens").expect("a Secret");
    // Comments alone, that say what to do: no token is known to who can read this chart.
    assert!(file.lines().all(|line| line.starts_with('#')), "{file}");
    assert!(file.contains("read NAME TOKEN"), "{file}");
    assert!(
        without.notes.contains("lack of tokens"),
        "{}",
        without.notes
    );
    let with = rendered(&json!({ "api": { "tokens": "read grafana 123\n" } }));
    assert_eq!(without.pod(), with.pod());
    assert!(!with.notes.contains("lack of tokens"), "{}", with.notes);
}

#[test]
fn prometheus_shows_a_token_that_the_replicas_know() {
    let tokens = "# who\noperator ops 0123\nread cd sha256:00\nread prometheus 4567\nread b 89\n";
    let monitored = json!({ "enabled": true });
    let answer = rendered(&json!({
        "api": { "tokens": tokens },
        "metrics": { "serviceMonitor": monitored },
    }));
    let shown = |answer: &Answer| {
        answer.the("ServiceMonitor")["spec"]["endpoints"][0]["authorization"].clone()
    };
    let credentials = json!({ "name": "soloist-scrape", "key": "token" });
    let expected = json!({ "type": "Bearer", "credentials": credentials });
    assert_eq!(shown(&answer), expected);
    assert_eq!(secret(&answer, "soloist-scrape", "token"), Some("4567"));
    // One of the user's own goes over it, and is not copied.
    let own = rendered(&everything());
    let credentials = json!({ "name": "prometheus", "key": "token" });
    let expected = json!({ "type": "Bearer", "credentials": credentials });
    assert_eq!(shown(&own), expected);
    assert_eq!(secret(&own, "night-shift-scrape", "token"), None);
}

#[test]
fn the_pod_of_a_test_is_let_in_and_runs_where_replicas_are() {
    let answer = rendered(&everything());
    let check = answer.the("Pod");
    // Those who guard a store go by labels of their own choice.
    assert_eq!(check["metadata"]["labels"]["team"], "shop");
    for part in [
        "serviceAccountName",
        "enableServiceLinks",
        "nodeSelector",
        "tolerations",
        "imagePullSecrets",
    ] {
        assert!(!answer.pod()[part].is_null(), "{part}");
        assert_eq!(check["spec"][part], answer.pod()[part], "{part}");
    }
}

#[test]
fn nobody_gets_in_but_those_who_are_named() {
    let policy = |values: Value| rendered(&values).the("NetworkPolicy")["spec"].clone();
    let usual = policy(json!({}));
    assert_eq!(usual["policyTypes"], json!(["Ingress"]));
    let monitoring = json!([{ "namespaceSelector":
        { "matchLabels": { "kubernetes.io/metadata.name": "monitoring" } } }]);
    assert_eq!(usual["ingress"][0]["from"], monitoring);
    let nobody = policy(json!({ "networkPolicy": { "from": [] } }));
    assert_eq!(nobody["ingress"], json!([]));
}

#[test]
fn nothing_gets_out_of_the_restricted_but_to_names_store_and_what_is_named() {
    let answer = rendered(&everything());
    let spec = &answer.the("NetworkPolicy")["spec"];
    assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
    let dns = json!({
        "to": [{ "namespaceSelector": {}, "podSelector": { "matchLabels": { "k8s-app": "kube-dns" } } }],
        "ports": [{ "port": 53, "protocol": "UDP" }, { "port": 53, "protocol": "TCP" }],
    });
    let store = json!({
        "to": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }],
        "ports": [{ "port": 6390, "protocol": "TCP" }],
    });
    let extra = json!({ "ports": [{ "port": 443, "protocol": "TCP" }] });
    assert_eq!(spec["egress"], json!([dns, store, extra]));
}
