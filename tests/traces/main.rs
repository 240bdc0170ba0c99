//! What a collector hears of a fleet: real replicas that send to a receiver of the test's own, which
//! reads what comes as the specification's own messages.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use test_support::fleet::{Fleet, Replica, SOON};
use test_support::redis::RedisServer;

/// What was received.
#[derive(Default)]
struct Received {
    spans: Mutex<Vec<Span>>,
    more: Condvar,
}

/// A collector; `answer` is the line that it answers requests with.
struct Collector {
    received: Arc<Received>,
    url: String,
}

impl Collector {
    fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let received = Arc::new(Received::default());
        let keeper = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keeper = Arc::clone(&keeper);
                std::thread::spawn(move || serve(stream, answer, &keeper));
            }
        });
        let url = format!("http://127.0.0.1:{port}");
        Self { received, url }
    }

    /// Waits until the spans are as wanted.
    fn wait_for<T>(&self, what: &str, wanted: impl Fn(&[Span]) -> Option<T>) -> T {
        let end = Instant::now() + SOON;
        let mut spans = self.received.spans.lock().expect("spans");
        loop {
            if let Some(found) = wanted(&spans) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what} in {spans:#?}");
            let waited = self.received.more.wait_timeout(spans, left);
            spans = waited.expect("spans").0;
        }
    }

    fn replica(&self, fleet: &Fleet, name: &str) -> Replica {
        let replica = fleet.start_with(name, |command| {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.url).env(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20hunter2",
            );
        });
        replica.wait_until_ready();
        replica
    }
}

/// Reads requests one after the other, as HTTP 1.1 has them.
fn serve(stream: TcpStream, answer: &str, received: &Received) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut stream = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(length) if length > 0 => {}
                _ => return,
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_lowercase());
        }
        assert_eq!(lines[0], "post /v1/traces http/1.1");
        assert!(lines.contains(&"content-type: application/x-protobuf".to_owned()));
        assert!(lines.contains(&"authorization: bearer hunter2".to_owned()));
        let length = lines
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.expect("a length").parse().expect("a number");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let request = ExportTraceServiceRequest::decode(&*body).expect("a request");
        let scopes = request
            .resource_spans
            .into_iter()
            .flat_map(|one| one.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans);
        received.spans.lock().expect("spans").extend(spans);
        received.more.notify_all();
        let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

fn text(span: &Span, key: &str) -> String {
    let attribute = span.attributes.iter().find(|one| one.key == key);
    let value = attribute.and_then(|one| one.value.clone()?.value);
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{key} is {other:?} in {span:#?}"),
    }
}

/// The trace of a job of which one occurrence ended: its root, and its attempts in order.
fn trace(spans: &[Span], job: &str) -> Option<(Span, Vec<Span>)> {
    let of_job = |span: &&Span| text(span, "soloist.job") == job;
    let own: Vec<&Span> = spans.iter().filter(of_job).collect();
    let root = own.iter().find(|span| span.parent_span_id.is_empty())?;
    let attempts = own
        .iter()
        .filter(|span| span.parent_span_id == root.span_id);
    let mut attempts: Vec<Span> = attempts.map(|span| (*span).clone()).collect();
    attempts.sort_by_key(|span| text(span, "soloist.attempt"));
    Some(((*root).clone(), attempts))
}

const TABLE: &str = r#"
[scheduler]
lease_ttl = "6s"

[jobs.retried]
schedule = "@manual"
shell = "test $SOLOIST_ATTEMPT = 2"
retry = { max = 1, backoff = "100ms" }

[jobs.taken-over]
schedule = "@manual"
shell = "test $SOLOIST_ATTEMPT = 2 || sleep 60"
"#;

fn triggered(fleet: &Fleet, job: &str) {
    let (code, _, stderr) = fleet.output(&["trigger", job]);
    assert_eq!(code, Some(0), "{stderr}");
}

/// One trace: all in it have its id, their own, and their times in order.
fn is_one_trace(root: &Span, attempts: &[Span]) {
    assert_eq!((root.trace_id.len(), root.span_id.len()), (16, 8));
    let ids: BTreeSet<_> = attempts.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), attempts.len());
    for span in attempts {
        assert_eq!(span.trace_id, root.trace_id);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert!(root.start_time_unix_nano <= span.start_time_unix_nano);
        assert!(span.end_time_unix_nano <= root.end_time_unix_nano);
    }
}

#[test]
fn an_occurrence_and_its_attempts_are_one_trace() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let collector = Collector::start("200 OK");
    let mut replica = collector.replica(&fleet, "a");
    triggered(&fleet, "retried");
    let (root, attempts) = collector.wait_for("trace", |spans| trace(spans, "retried"));
    is_one_trace(&root, &attempts);
    assert_eq!(root.name, "retried");
    let told: Vec<_> = attempts
        .iter()
        .map(|one| (text(one, "soloist.outcome"), text(one, "process.exit.code")))
        .collect();
    let of = |outcome: &str, code: &str| (outcome.to_owned(), code.to_owned());
    assert_eq!(told, [of("failed", "1"), of("succeeded", "0")]);
    let status = |span: &Span| span.status.clone().expect("a status").code;
    assert_eq!(status(&attempts[0]), i32::from(StatusCode::Error));
    assert_eq!(status(&root), i32::from(StatusCode::Ok));
    replica.drain();
    assert!(!replica.log().contains("hunter2"));
}

#[test]
fn attempts_on_two_replicas_are_in_one_trace() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let collector = Collector::start("200 OK");
    let mut first = collector.replica(&fleet, "first");
    triggered(&fleet, "taken-over");
    first.wait_for_line(&["attempt started", "job=taken-over"]);
    let _second = collector.replica(&fleet, "second");
    first.kill9();
    let (root, attempts) = collector.wait_for("trace", |spans| trace(spans, "taken-over"));
    is_one_trace(&root, &attempts);
    let told: Vec<_> = attempts
        .iter()
        .map(|one| (text(one, "soloist.replica"), text(one, "soloist.outcome")))
        .collect();
    let of = |replica: &str, outcome: &str| (replica.to_owned(), outcome.to_owned());
    assert_eq!(told, [of("first", "lost"), of("second", "succeeded")]);
}

#[test]
fn a_collector_that_refuses_or_hangs_holds_nothing_up() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let mut hung = fleet.start_with("hung", |command| {
        command.env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://127.0.0.1:{port}"),
        );
    });
    hung.wait_until_ready();
    let (code, _, stderr) = fleet.output(&["trigger", "retried", "--wait"]);
    assert_eq!(code, Some(0), "{stderr}");
    let began = Instant::now();
    hung.drain();
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );

    let refusing = Collector::start("400 Bad Request");
    let mut refused = refusing.replica(&fleet, "refused");
    let (code, _, stderr) = fleet.output(&["trigger", "retried", "--wait"]);
    assert_eq!(code, Some(0), "{stderr}");
    refused.wait_for_line(&["WARN", "traces can't be sent", "it answered 400"]);
    refused.drain();
}
