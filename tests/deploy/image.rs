//! The image and the Compose file, as far as they can be looked at without Docker.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::chart::{documents, path, rendered, tool};

#[test]
fn the_dockerfile_has_no_findings() {
    let output = tool("hadolint")
        .arg(path("deploy/docker/Dockerfile"))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn all_who_name_the_version_name_the_same() {
    let version = env!("CARGO_PKG_VERSION");
    let answer = rendered(&json!({}));
    assert_eq!(answer.container()["image"], format!("soloist:{version}"));
    let compose = &documents("deploy/docker/compose.yaml")[0];
    assert_eq!(
        compose["services"]["soloist"]["image"],
        format!("soloist:{version}")
    );
    let dockerfile = fs::read_to_string(path("deploy/docker/Dockerfile")).expect("readable");
    assert!(dockerfile.contains(&format!("\nARG VERSION={version}\n")));
    let chart = &documents("deploy/helm/soloist/Chart.yaml")[0];
    assert_eq!(chart["appVersion"], version);
}

#[test]
fn the_image_is_built_by_the_rust_that_the_package_asks_for() {
    let dockerfile = fs::read_to_string(path("deploy/docker/Dockerfile")).expect("readable");
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert!(
        dockerfile.contains(&format!("\nFROM rust:{rust}-")),
        "{rust}"
    );
}

#[test]
fn the_image_is_run_by_the_same_user_as_the_pods() {
    let dockerfile = fs::read_to_string(path("deploy/docker/Dockerfile")).expect("readable");
    let answer = rendered(&json!({}));
    let context = &answer.pod()["securityContext"];
    let (user, group) = (&context["runAsUser"], &context["runAsGroup"]);
    assert!(dockerfile.contains(&format!("\nUSER {user}:{group}\n")));
}

#[test]
fn compose_runs_three_replicas_that_have_time_to_stop() {
    let compose = &documents("deploy/docker/compose.yaml")[0];
    let soloist = &compose["services"]["soloist"];
    assert_eq!(soloist["deploy"]["replicas"], 3);
    // What these have to be is held by the daemon's own tests.
    assert!(soloist["stop_grace_period"].is_string());
    let redis = &compose["services"]["redis"];
    let command = redis["command"].to_string();
    assert!(command.contains(r#""--appendonly","yes""#), "{command}");
    let condition = &soloist["depends_on"]["redis"]["condition"];
    assert_eq!(*condition, "service_healthy");
    assert!(redis["healthcheck"]["test"].is_array());
}

#[test]
fn the_table_of_compose_is_one_that_soloist_reads() {
    let output = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .env_clear()
        .args(["check", "--config"])
        .arg(path("deploy/docker/config/jobs.toml"))
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}
