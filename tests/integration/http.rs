//! Jobs that are HTTP requests: the real program asks a real server, which a test answers for.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_support::machine::stood_still;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON};
use crate::together;

/// How soon a connection is closed after its cause, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(2);
const SECRET: &str = "s3cr3t";

/// Takes requests, which a test answers one by one.
struct Server {
    address: SocketAddr,
    requests: Receiver<Request>,
}

/// A request that waits for its answer.
struct Request {
    /// Its first line and headers.
    head: String,
    body: String,
    stream: TcpStream,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (taken, requests) = channel();
        // Both threads end with the test program.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let taken = taken.clone();
                std::thread::spawn(move || take(stream, &taken));
            }
        });
        Self { address, requests }
    }

    fn next(&self) -> Request {
        self.requests.recv_timeout(SOON).expect("a request")
    }

    /// A store of its own, and a table with one job that asks this server.
    fn fleet(&self, keys: &str, http: &str) -> (tempfile::TempDir, Fleet) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = format!("sqlite:{}", dir.path().join("soloist.db").display());
        (dir, Fleet::new(store, &self.table(keys, http)))
    }

    fn table(&self, keys: &str, http: &str) -> String {
        let url = format!("http://u:{SECRET}@{}/close?key={SECRET}", self.address);
        // For the request of the next second, which nobody answers.
        let scheduler = "[scheduler]\nshutdown_grace = \"5s\"";
        format!("{scheduler}\n[jobs.close]\n{keys}\n[jobs.close.http]\nurl = \"{url}\"\n{http}\n")
    }
}

fn take(mut stream: TcpStream, taken: &Sender<Request>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return; // A process that was killed before it had asked.
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text");
    let length =
        header_of(&head, "Content-Length").map_or(0, |text| text.parse().expect("a length"));
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let body = String::from_utf8(body).expect("a body of text");
    // In vain when the test is over.
    let _ = taken.send(Request { head, body, stream });
}

fn header_of<'h>(head: &'h str, wanted: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(name, value)| name.eq_ignore_ascii_case(wanted).then_some(value))
}

impl Request {
    fn header(&self, name: &str) -> &str {
        header_of(&self.head, name).unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    fn answer(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
        self.stream
            .write_all(answer.as_bytes())
            .expect("a client that listens");
    }

    /// Waits until the other side has closed, and says how long that took.
    fn closed(mut self) -> Duration {
        let from = Instant::now();
        self.stream.set_read_timeout(Some(SOON)).expect("a socket");
        loop {
            match self.stream.read(&mut [0]) {
                Ok(0) => break,
                // A close with unread bytes is a reset.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => panic!("not closed: {other:?}"),
            }
        }
        from.elapsed()
    }
}

#[test]
fn a_server_is_told_which_attempt_asks_and_its_answer_is_kept() {
    let _machine = together();
    let server = Server::start();
    let http = r#"
        method = "PUT"
        body = '{"at": "${SOLOIST_SCHEDULED_AT}", "attempt": ${SOLOIST_ATTEMPT}}'
        headers = { Content-Type = "application/json", X-Key = "s3cr3t" }
    "#;
    let (_dir, fleet) = server.fleet("schedule = \"* * * * * *\"", http);
    let mut replica = fleet.start("r1");
    let request = server.next();
    assert!(
        request
            .head
            .starts_with("PUT /close?key=s3cr3t HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    let at = request.header("Soloist-Scheduled-At").to_owned();
    let token = request.header("Soloist-Fencing-Token").to_owned();
    let run_id = request.header("Soloist-Run-Id").to_owned();
    for (name, value) in [
        ("Soloist-Job", "close"),
        ("Soloist-Attempt", "1"),
        ("Soloist-Replica", "r1"),
        ("Soloist-Shard-Index", "0"),
        ("Soloist-Shard-Total", "1"),
        ("Idempotency-Key", &format!("close/{at}")),
        ("Content-Type", "application/json"),
        ("X-Key", SECRET),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert_eq!(
        request.body,
        format!("{{\"at\": \"{at}\", \"attempt\": 1}}")
    );
    request.answer("201 Created", "", "closed 3 orders\n");
    replica.wait_for_line(&["attempt succeeded", "job=close", &at]);
    replica.drain();
    let history = fleet.json(&["history", "close", "-n", "1000", "--json"]);
    let mut records = history.as_array().expect("a list").iter();
    let record = records
        .find(|record| record["scheduled_at"] == *at)
        .expect("a record");
    assert_eq!(record["outcome"], "succeeded", "{record:#}");
    assert_eq!(record["token"].to_string(), token);
    assert_eq!(record["run_id"], *run_id);
    let (code, stdout, _) = fleet.output(&["logs", "close", "--at", &at]);
    let answer = "HTTP/1.1 201 Created\nclosed 3 orders\n";
    assert_eq!((code, &*stdout), (Some(0), answer));
    assert!(!replica.log().contains(SECRET), "{}", replica.log());
}

#[test]
fn an_unexpected_status_fails_with_its_reason_and_its_answer() {
    let _machine = together();
    let server = Server::start();
    let (_dir, fleet) = server.fleet("schedule = \"@manual\"", "expect_status = [200, 409]");
    for (status, headers, said) in [
        (
            "503 Service Unavailable",
            "",
            "answered 503 Service Unavailable, expected was 200 or 409",
        ),
        (
            "302 Found",
            "location: /login?key=s3cr3t\r\n",
            "/login: redirects are not followed",
        ),
    ] {
        let mut run = fleet.run_once("close");
        server.next().answer(status, headers, "not now");
        assert_eq!(run.wait(SOON).code(), Some(1), "{}", run.log());
        let history = fleet.json(&["history", "close", "-n", "1", "--json"]);
        assert_eq!(history[0]["outcome"], "failed", "{history:#}");
        let reason = history[0]["reason"].as_str().expect("a reason");
        assert!(reason.contains(said), "{reason}");
        assert!(
            !(reason.to_owned() + &run.log()).contains(SECRET),
            "{reason}\n{}",
            run.log()
        );
    }
    let mut run = fleet.run_once("close");
    server.next().answer("409 Conflict", "", "");
    assert_eq!(run.wait(SOON).code(), Some(0), "{}", run.log());
}

#[test]
fn the_answer_of_a_failed_attempt_is_in_the_ledger() {
    let _machine = together();
    let server = Server::start();
    let (_dir, fleet) = server.fleet("schedule = \"* * * * * *\"", "");
    let mut replica = fleet.start("r1");
    let request = server.next();
    let at = request.header("Soloist-Scheduled-At").to_owned();
    request.answer("500 x", "", "out of orders");
    replica.wait_for_line(&["attempt failed", &at]);
    replica.drain();
    let (code, stdout, _) = fleet.output(&["logs", "close", "--at", &at]);
    let answer = "HTTP/1.1 500 Internal Server Error\nout of orders";
    assert_eq!((code, stdout.trim_end()), (Some(0), answer));
}

#[test]
fn a_request_that_takes_too_long_is_cancelled_and_told_as_timed_out() {
    let _machine = together();
    let server = Server::start();
    let keys = "schedule = \"@manual\"\ntimeout = \"3s\"";
    let (_dir, fleet) = server.fleet(keys, "");
    let mut run = fleet.run_once("close");
    let request = server.next();
    let stood_before = stood_still();
    let took = request.closed();
    let most = Duration::from_secs(3) + AT_ONCE + (stood_still() - stood_before);
    assert!(took < most, "{took:?}");
    assert_eq!(
        run.wait(SOON).code().map(|code| code == 0),
        Some(false),
        "{}",
        run.log()
    );
    let history = fleet.json(&["history", "close", "--json"]);
    assert_eq!(history[0]["outcome"], "timed_out", "{history:#}");
}

#[test]
fn a_request_whose_lease_is_lost_is_cancelled() {
    let _machine = together();
    let server = Server::start();
    let redis = RedisServer::start();
    let keys = "schedule = \"* * * * * *\"\nlease_ttl = \"3s\"\nkill_grace = \"500ms\"";
    let fleet = Fleet::new(redis.url(), &server.table(keys, ""));
    let replica = fleet.start("a");
    let request = server.next();
    let stood_before = stood_still();
    redis.freeze();
    let took = request.closed();
    let lease = Duration::from_secs(3) + stood_still() - stood_before;
    assert!(took < lease, "after the lease: {took:?}");
    redis.thaw();
    replica.signal(Signal::TERM);
}

#[test]
fn a_killed_replicas_request_is_cancelled_and_the_next_attempt_has_the_same_key() {
    let _machine = together();
    let server = Server::start();
    let keys = "schedule = \"* * * * * *\"\nlease_ttl = \"5s\"";
    let (_dir, fleet) = server.fleet(keys, "");
    let mut first = fleet.start("r1");
    let request = server.next();
    let key = request.header("Idempotency-Key").to_owned();
    let token: u64 = request
        .header("Soloist-Fencing-Token")
        .parse()
        .expect("a number");
    let stood_before = stood_still();
    first.kill9();
    let took = request.closed();
    let soon = Duration::from_secs(1) + stood_still() - stood_before;
    assert!(took < soon, "{took:?} after the daemon's death");
    let mut second = fleet.start("r2");
    let again = server.next();
    assert_eq!(again.header("Idempotency-Key"), key);
    assert_eq!(again.header("Soloist-Attempt"), "2");
    assert_eq!(again.header("Soloist-Replica"), "r2");
    let later: u64 = again
        .header("Soloist-Fencing-Token")
        .parse()
        .expect("a number");
    assert!(later > token, "{later} after {token}");
    again.answer("200 OK", "", "");
    second.wait_for_line(&["attempt succeeded", "attempt=2"]);
    second.drain();
}

#[test]
fn a_drain_lets_a_request_end() {
    let _machine = together();
    let server = Server::start();
    let (_dir, fleet) = server.fleet("schedule = \"* * * * * *\"", "");
    let mut replica = fleet.start("r1");
    let request = server.next();
    replica.signal(Signal::TERM);
    replica.wait_for_line(&["draining"]);
    request.answer("200 OK", "", "");
    replica.wait_for_line(&["attempt succeeded"]);
    assert_eq!(replica.wait(SOON).code(), Some(0), "{}", replica.log());
}
