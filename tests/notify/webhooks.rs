//! Webhooks: delivered in the end, signed, and to nobody else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_support::fleet::SOON;

use crate::receiver::{Manner, Receiver, Request};
use crate::scene::{SECRET, Scene};

fn table(url: &str) -> String {
    format!(
        r#"
[notify.ops]
webhook = {{ url = "{url}", secret = "{SECRET}", headers = {{ X-Team = "shop" }} }}

[jobs.report]
schedule = "@manual"
shell = "echo to stdout; echo to stderr >&2; test -e DIR/well || exit 3"
notify = ["ops"]
"#
    )
}

/// What the manual's own program says to a request.
fn verified(request: &Request, secret: &str) -> bool {
    let manual = include_str!("../../docs/notifications.md");
    let (_, rest) = manual.split_once("```python\n").expect("a program");
    let (program, _) = rest.split_once("```").expect("its end");
    let calls = "\nimport json, sys\nsecret, headers, body = json.load(sys.stdin)\n\
                 print(verified(secret, headers, body.encode()))\n";
    let mut python = Command::new("python3")
        .args(["-c", &format!("{program}{calls}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3, which scripts/install-test-tools installs");
    let headers: serde_json::Map<String, serde_json::Value> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let told = serde_json::json!([secret, headers, request.body]);
    let mut stdin = python.stdin.take().expect("a pipe");
    stdin
        .write_all(told.to_string().as_bytes())
        .expect("a reader");
    drop(stdin);
    let output = python.wait_with_output().expect("an end");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).trim() == "True"
}

#[test]
fn a_receiver_that_fails_and_recovers_gets_it_once_with_a_signature_that_the_manual_verifies() {
    let receiver = Receiver::start([
        Manner::Status(503, ""),
        Manner::Status(429, "retry-after: 1\r\n"),
        Manner::Reset,
        Manner::Drips,
    ]);
    let scene = Scene::new(&table(&receiver.url("/hook")));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    let taken = receiver.wait_for_taken(1);
    // What is to be delivered is, before it ends.
    replica.drain();
    assert_eq!(receiver.taken().len(), 1);
    let requests = receiver.requests();
    assert_eq!(requests.len(), 4, "{requests:#?}");
    let id = requests[0].header("webhook-id");
    assert!(requests.iter().all(|one| one.header("webhook-id") == id));

    let request = &taken[0];
    assert_eq!((&*request.method, &*request.path), ("POST", "/hook"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-team"), Some("shop"));
    let json = request.json();
    assert_eq!(json["type"], "job.failure");
    assert_eq!(json["version"], 1);
    let data = &json["data"];
    for (field, value) in [
        ("job", "report"),
        ("outcome", "failed"),
        ("replica", "a"),
        ("told_by", "a"),
        ("namespace", "default"),
        ("stdout", "to stdout\n"),
        ("stderr", "to stderr\n"),
    ] {
        assert_eq!(data[field], value, "{field}: {json}");
    }
    assert_eq!(
        (&data["exit_code"], &data["attempt"]),
        (&3.into(), &1.into())
    );

    assert!(verified(request, SECRET));
    let mut forged = request.clone();
    forged.body = forged.body.replace("report", "rapport");
    assert!(!verified(&forged, SECRET));
    assert!(!verified(request, &SECRET.replace("bm9", "bm8")));
}

#[test]
fn a_receiver_that_says_nothing_is_asked_again() {
    let receiver = Receiver::start([Manner::Silence]);
    let scene = Scene::new(&table(&receiver.url("/hook")));
    let [_replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    assert_eq!(receiver.wait_for_taken(1).len(), 1);
}

/// The first is refused for a while, and the job is well again by then.
#[test]
fn a_recovery_does_not_overtake_the_failure_that_it_ends() {
    let receiver = Receiver::start([Manner::Status(503, "retry-after: 3\r\n")]);
    let scene = Scene::new(&table(&receiver.url("/hook")));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    receiver.wait_for(|requests| (!requests.is_empty()).then_some(()));
    scene.set("well", true);
    scene.trigger("report");
    receiver.wait_for_taken(2);
    replica.drain();
    let told: Vec<String> = receiver.requests().iter().map(Request::event).collect();
    assert_eq!(told, ["failure", "failure", "recovery"]);
}

#[test]
fn a_redirect_is_not_followed_and_a_refusal_is_final() {
    let elsewhere = Receiver::start([]);
    let location = format!("location: {}\r\n", elsewhere.url("/"));
    let redirect = Manner::Status(307, Box::leak(location.into_boxed_str()));
    let receiver = Receiver::start([redirect, Manner::Status(400, "")]);
    let scene = Scene::new(&table(&receiver.url("/secret-path")));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    let line = replica.wait_for_line(&["gave up notifying [notify.ops]", "answered 307"]);
    assert!(!line.contains("secret-path"), "{line}");
    scene.set("well", true);
    scene.trigger("report");
    replica.wait_for_line(&["gave up notifying [notify.ops]", "answered 400"]);
    replica.drain();
    assert_eq!(receiver.requests().len(), 2);
    assert!(elsewhere.requests().is_empty());
    assert!(!replica.log().contains("secret-path"));
    replica.wait_for_line(&["notifications until now", "failed=2"]);
}

#[test]
fn an_attempt_that_takes_long_is_told_of_once() {
    let receiver = Receiver::start([]);
    let table = table(&receiver.url("/hook")).replace(
        "shell = \"",
        "warn_after = \"200ms\"\nshell = \"while ! test -e DIR/well; do sleep 0.05; done; ",
    );
    let scene = Scene::new(&table);
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    let taken = receiver.wait_for_taken(1);
    assert_eq!(taken[0].event(), "slow");
    assert_eq!(taken[0].json()["data"]["warn_after_seconds"], 0.2);
    replica.wait_for_line(&["WARN", "the attempt runs for longer than 200ms"]);
    scene.set("well", true);
    replica.wait_for_line(&["attempt succeeded"]);
    replica.drain();
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn an_attempt_that_somebody_watches_is_told_to_nobody_else() {
    let receiver = Receiver::start([]);
    let scene = Scene::new(&table(&receiver.url("/hook")));
    let (code, _, _) = scene.fleet.output(&["run-once", "report"]);
    assert_eq!(code, Some(3));
    assert!(receiver.requests().is_empty());
}

/// The page of metrics of a replica that listens.
fn metrics(replica: &test_support::fleet::Replica) -> String {
    let line = replica.wait_for_line(&["serving health and API over HTTP", "address="]);
    let address = line
        .split("address=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let mut socket = TcpStream::connect(address.expect("an address")).expect("a replica");
    let request = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    socket.write_all(request).expect("a request");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("a page");
    page
}

#[test]
fn what_is_delivered_is_counted() {
    let receiver = Receiver::start([]);
    let table = format!(
        "[scheduler]\nlisten = \"127.0.0.1:0\"\n{}",
        table(&receiver.url("/hook"))
    );
    let scene = Scene::new(&table);
    let [mut replica] = scene.fleet.start_ready(["a"]);
    let delivered = "soloist_notifications_total{channel=\"webhook\",result=\"delivered\"}";
    assert!(metrics(&replica).contains(&format!("{delivered} 0\n")));
    scene.trigger("report");
    receiver.wait_for_taken(1);
    // The receiver knows a moment before the replica does.
    let end = Instant::now() + SOON;
    while !metrics(&replica).contains(&format!("{delivered} 1\n")) {
        assert!(Instant::now() < end, "{}", metrics(&replica));
        std::thread::sleep(Duration::from_millis(20));
    }
    replica.drain();
}
