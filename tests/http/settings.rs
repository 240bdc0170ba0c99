//! Where a replica listens, and what keeps it from it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use test_support::fleet::Fleet;

use crate::client::Client;
use crate::site::{JOBS, OPERATOR, address_of};

#[test]
fn nothing_listens_unless_it_is_said() {
    let fleet = Fleet::new("memory:", JOBS);
    let replica = fleet.start("r1");
    replica.wait_until_ready();
    assert_eq!(replica.lines_with("over HTTP"), 0);
}

#[test]
fn a_flag_is_over_the_variable_and_the_variable_over_the_table() {
    let fleet = Fleet::new("memory:", &format!("[scheduler]\nlisten = \"off\"\n{JOBS}"));
    let replica = fleet.start_with("r1", |command| {
        command.env("SOLOIST_LISTEN", "[::1]:0");
    });
    assert!(address_of(&replica).is_ipv6());
    let replica = fleet.start_with("r2", |command| {
        command
            .env("SOLOIST_LISTEN", "[::1]:0")
            .args(["--listen", "127.0.0.1:0"]);
    });
    let client = Client(address_of(&replica));
    replica.wait_until_ready();
    assert_eq!(client.get("/api/v1/jobs").status, 200);
    let replica = fleet.start_with("r3", |command| {
        command
            .env("SOLOIST_LISTEN", "[::1]:0")
            .args(["--listen", "off"]);
    });
    replica.wait_until_ready();
    assert_eq!(replica.lines_with("over HTTP"), 0);
}

#[test]
fn an_address_that_is_taken_ends_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let fleet = Fleet::new("memory:", JOBS);
    let (code, _, stderr) = fleet.output(&["run", "--listen", &address]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains(&address) && stderr.contains("free the port"),
        "{stderr}"
    );
}

#[test]
fn an_address_that_is_none_is_a_usage_error() {
    let fleet = Fleet::new("memory:", JOBS);
    let (code, _, stderr) = fleet.output(&["run", "--listen", "localhost:7373"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("`127.0.0.1:7373`"), "{stderr}");
}

#[test]
fn tokens_that_anybody_may_read_end_the_start() {
    let fleet = Fleet::new("memory:", JOBS);
    let path = fleet.dir().join("open");
    std::fs::write(&path, format!("operator deploy {OPERATOR}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
    let mut command = fleet.command(&["run", "--listen", "127.0.0.1:0"]);
    let output = command
        .env("SOLOIST_API_TOKENS_FILE", &path)
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("chmod 640") && !stderr.contains(OPERATOR),
        "{stderr}"
    );
}

#[test]
fn without_tokens_other_hosts_get_health_alone_and_nobody_changes_anything() {
    let fleet = Fleet::new("memory:", JOBS);
    let replica = fleet.start_with("r1", |command| {
        command.args(["--listen", "0.0.0.0:0"]);
    });
    replica.wait_for_line(&["WARN", "no tokens are set"]);
    let client = Client(address_of(&replica));
    replica.wait_until_ready();
    assert_eq!(client.get("/healthz").status, 200);
    client.get("/metrics").assert_problem(401, "unauthorized");
    let answer = client.post_as(OPERATOR, "/api/v1/jobs/report/trigger");
    answer.assert_problem(401, "unauthorized");
    assert!(answer.body.contains("`api_tokens`"), "{answer:?}");
}
