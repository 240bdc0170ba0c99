//! What clients that are slow, greedy or many can do to a replica, and what a scheduler that stands
//! still looks like: with limits of a moment, so that none of it takes long.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request as HttpRequest;
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::*;
use crate::clock::SystemClock;
use crate::http::answer::{BODY_LIMIT, answer};
use crate::orders::fixtures::{World, job};
use crate::scheduler::time::Timestamp;
use crate::store::ReplicaInfo;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";
const MOMENT: Duration = Duration::from_millis(300);

/// Longer than anything here takes on a busy machine.
const AGES: Duration = Duration::from_secs(20);

fn table() -> Config {
    let host = crate::config::Host {
        env: &|_| None,
        accounts: &|_, _| Ok(()),
        now: Timestamp::from_second(1_795_250_760),
    };
    let text = "[jobs.report]\nschedule = \"@daily\"\ncommand = [\"true\"]\n";
    crate::config::parse(text, "jobs.toml", &host, crate::config::Strictness::Start).unwrap()
}

/// An app on a store in memory, and the other end of what it asks of the driver.
fn app(metrics: Option<Metrics>) -> (Arc<App>, mpsc::Receiver<Request>) {
    app_on(World::new(), metrics)
}

fn app_on(world: World, metrics: Option<Metrics>) -> (Arc<App>, mpsc::Receiver<Request>) {
    let (requests, receiver) = mpsc::channel(16);
    let health = Health::starting("0".into(), 1, Timestamp::from_second(0));
    let parts = Parts {
        replica: "r1".to_owned(),
        config: watch::Sender::new(Arc::new(table())).subscribe(),
        health: watch::Sender::new(health),
        requests,
        store: Arc::new(world),
        clock: Arc::new(SystemClock),
        metrics,
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    std::fs::write(&file, format!("operator ops {OPERATOR}\n")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    let tokens = watch::Sender::new(Arc::new(Tokens::read(&file).unwrap()));
    let gate = Gate::new("127.0.0.1:1".parse().unwrap(), tokens.subscribe());
    (Arc::new(App::new(parts, gate)), receiver)
}

fn get(path: &str) -> HttpRequest<Body> {
    let request = HttpRequest::get(path).header("host", "localhost");
    request.body(Body::empty()).unwrap()
}

/// Status and body.
async fn ask(app: &Arc<App>, request: HttpRequest<Body>) -> (u16, String) {
    let response = answer(app, HOME, AGES, request).await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.into()).unwrap())
}

#[tokio::test]
async fn a_trigger_that_no_live_replica_would_start_says_that_it_waits() {
    let alone = World::new();
    alone.trigger(&job("elsewhere")).await;
    let lively = World::new();
    lively.live("r1", ReplicaInfo::default()).await;
    for (world, job, note) in [
        (
            alone,
            "elsewhere",
            Some("waits for a replica: none is alive"),
        ),
        (
            World::new(),
            "report",
            Some("waits for a replica: none is alive"),
        ),
        // It may have the job, as far as is known.
        (lively, "report", None),
    ] {
        let (app, _requests) = app_on(world, None);
        let request = HttpRequest::post(format!("/api/v1/jobs/{job}/trigger"))
            .header("host", "localhost")
            .header("authorization", format!("Bearer {OPERATOR}"));
        let (status, body) = ask(&app, request.body(Body::empty()).unwrap()).await;
        assert_eq!(status, 202, "{body}");
        let said: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(said["note"].as_str(), note, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_stands_still_is_told_within_two_seconds_to_any_number_of_probes() {
    let (app, mut requests) = app(None);
    let began = Instant::now();
    let answers = join_all((0..100).map(|_| ask(&app, get("/healthz")))).await;
    assert!(
        began.elapsed() <= Duration::from_millis(2100),
        "{:?}",
        began.elapsed()
    );
    for (status, body) in answers {
        assert_eq!(status, 503, "{body}");
        assert!(body.contains("urn:soloist:problem:stuck"), "{body}");
    }
    let mut asked = 0;
    while requests.try_recv().is_ok() {
        asked += 1;
    }
    assert!(asked < 16, "the driver's own requests had no room: {asked}");
}

#[tokio::test]
async fn a_scheduler_that_answers_is_alive_and_is_asked_once_for_many_probes() {
    let (app, mut requests) = app(None);
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Some(Request::Ping(sign)) = requests.recv().await {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = sign.send(());
        }
    });
    let answers = join_all((0..100).map(|_| ask(&app, get("/healthz")))).await;
    assert!(answers.iter().all(|(status, _)| *status == 200));
    assert!(asked.load(Ordering::SeqCst) < 20, "{asked:?}");
}

#[tokio::test]
async fn a_scheduler_that_is_gone_is_told_at_once() {
    let (app, requests) = app(None);
    drop(requests);
    assert_eq!(ask(&app, get("/healthz")).await.0, 503);
}

#[tokio::test]
async fn a_panic_ends_one_answer_and_is_known_for_what_it_is() {
    static SEEN: AtomicBool = AtomicBool::new(false);
    let metrics: Metrics = Arc::new(|_| {
        SEEN.store(is_answering(), Ordering::SeqCst);
        panic!("a defect, for the test");
    });
    let (app, _requests) = app(Some(metrics));
    let (status, body) = ask(&app, get("/metrics")).await;
    assert_eq!(status, 500);
    assert!(body.contains("urn:soloist:problem:internal"), "{body}");
    assert!(
        SEEN.load(Ordering::SeqCst),
        "the process would have been aborted"
    );
    assert!(!is_answering());
    assert_eq!(
        ask(&app, get("/api/v1/jobs")).await.0,
        200,
        "and nothing else"
    );
}

#[tokio::test]
async fn metrics_come_as_they_are_accepted_and_not_at_all_where_there_are_none() {
    let page = |accept: Option<&str>| match accept {
        Some("text/new") => ("text/new; version=2", "new".to_owned()),
        _ => ("text/old", "old".to_owned()),
    };
    let (with, _requests) = app(Some(Arc::new(page)));
    let mut asked = get("/metrics");
    let response = answer(&with, HOME, AGES, asked).await;
    assert_eq!(response.headers()["content-type"], "text/old");
    asked = get("/metrics");
    let accepted = "text/new".parse().unwrap();
    asked.headers_mut().insert("accept", accepted);
    let response = answer(&with, HOME, AGES, asked).await;
    assert_eq!(response.headers()["content-type"], "text/new; version=2");
    let (without, _requests) = app(None);
    assert_eq!(ask(&without, get("/metrics")).await.0, 404);
}

#[test]
fn every_route_is_in_the_document_and_the_other_way_round() {
    let (router, document) = routes::routes().split_for_parts();
    let documented: std::collections::BTreeSet<&str> =
        document.paths.paths.keys().map(String::as_str).collect();
    let shown = format!("{router:?}");
    // What has none of these addresses has one of axum's own.
    let quoted = shown
        .split('"')
        .filter(|text| text.starts_with('/') && !text.contains("__private"));
    let routed: std::collections::BTreeSet<&str> = quoted.collect();
    assert_eq!(routed, documented);
    assert!(routed.len() > 10, "{routed:?}");
}

/// A server on a port of its own.
async fn server(limits: Limits) -> (SocketAddr, watch::Sender<bool>, mpsc::Receiver<Request>) {
    let (app, requests) = app(None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(connections::accept(listener, app, limits, stopped));
    (address, stop, requests)
}

fn hasty() -> Limits {
    Limits {
        connections: 4,
        head: MOMENT,
        request: MOMENT,
        unread: MOMENT,
    }
}

/// All that comes until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(AGES, stream.read_to_end(&mut bytes)).await;
    // One that was reset is closed as well.
    let _ = read.expect("the server closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let (address, _stop, _requests) = server(hasty()).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let drip = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(MOMENT / 10);
        let head = b"GET /readyz HTTP/1.1\r\nX: "
            .iter()
            .chain(std::iter::repeat(&b'x'));
        for byte in head {
            ticks.tick().await;
            if writing.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    let closed = timeout(AGES, reading.read_to_end(&mut bytes)).await;
    assert!(closed.is_ok(), "a slow client holds its connection");
    drip.abort();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let (address, _stop, _requests) = server(hasty()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/jobs/report/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OPERATOR}\r\nContent-Length: 5\r\n\r\n{{"
    );
    let began = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(began.elapsed() < 20 * MOMENT, "{:?}", began.elapsed());
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(
        answer.contains("urn:soloist:problem:request-timeout"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_however_it_is_sent() {
    let (address, _stop, _requests) = server(Limits::default()).await;
    let head = format!(
        "POST /api/v1/jobs/report/pause HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: bearer {OPERATOR}\r\n"
    );
    let size = BODY_LIMIT + 1;
    let declared = format!("{head}Content-Length: {size}\r\n\r\n");
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{}\r\n0\r\n\r\n",
        "x".repeat(size)
    );
    for request in [declared, chunked] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    }
}

#[tokio::test]
async fn clients_that_hold_all_connections_keep_nobody_out_for_long() {
    let (address, _stop, _requests) = server(hasty()).await;
    let idle: Vec<TcpStream> = join_all((0..20).map(|_| TcpStream::connect(address)))
        .await
        .into_iter()
        .flatten()
        .collect();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(idle);
}

#[tokio::test]
async fn a_server_that_stops_closes_its_connections_and_its_port() {
    let (address, stop, _requests) = server(Limits::default()).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    idle.write_all(request).await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    stop.send_replace(true);
    rest(&mut idle).await;
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(AGES, refused)
        .await
        .expect("nobody listens any more");
}

/// What is answered to bytes after which nothing comes.
async fn sent(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    rest(&mut stream).await
}

#[tokio::test]
async fn a_head_is_taken_up_to_its_limit_however_it_comes_and_no_further() {
    let (address, _stop, _requests) = server(Limits::default()).await;
    let request = |size: usize| {
        let begin = "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ";
        let rest = "x".repeat(size - begin.len() - 4);
        format!("{begin}{rest}\r\n\r\n").into_bytes()
    };
    for (size, status) in [(0, "200"), (1, "431"), (1024, "431"), (15 * 1024, "431")] {
        let bytes = request(32 * 1024 + size);
        let answer = sent(address, &bytes).await;
        assert_eq!(&answer[9..12], status, "{size}: {answer}");
        let mut stream = TcpStream::connect(address).await.unwrap();
        for part in bytes.chunks(5000) {
            stream.write_all(part).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        let answer = rest(&mut stream).await;
        assert_eq!(&answer[9..12], status, "{size} in parts: {answer}");
    }
}

#[tokio::test]
async fn http_2_is_told_that_it_is_not_spoken_here() {
    let (address, _stop, _requests) = server(Limits::default()).await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &settings].concat();
    let answer = sent(address, &preface).await;
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/problem+json"), "{head}");
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    assert!(
        body.contains("urn:soloist:problem:version-not-supported"),
        "{body}"
    );
}

#[tokio::test]
async fn who_is_refused_while_it_sends_hears_why() {
    let (address, _stop, _requests) = server(Limits::default()).await;
    // More than is read for an answer: a reset would lose that.
    let size = 2 << 20;
    let head = format!(
        "POST /api/v1/jobs/report/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer {OPERATOR}\r\nContent-Length: {size}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = [head.into_bytes(), vec![b'x'; size]].concat();
    stream
        .write_all(&request)
        .await
        .expect("all of it is heard");
    let mut answer = String::new();
    let read = timeout(AGES, stream.read_to_string(&mut answer)).await;
    read.expect("the server closes").expect("without a reset");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_request_of_http_1_1_names_one_host() {
    let (address, _stop, _requests) = server(Limits::default()).await;
    for (version, hosts, status) in [
        ("1.1", "Host: localhost\r\n", "200"),
        ("1.1", "", "400"),
        ("1.1", "Host: localhost\r\nHost: localhost\r\n", "400"),
        ("1.1", "Host: local host\r\n", "400"),
        ("1.1", "Host: a@b/c\r\n", "400"),
        // One may be without a name, and an older one without the header: not by that are they local.
        ("1.1", "Host:\r\n", "401"),
        ("1.0", "", "401"),
        ("1.0", "Host: localhost\r\n", "200"),
    ] {
        let request =
            format!("GET /api/v1/jobs HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        let answer = sent(address, request.as_bytes()).await;
        assert_eq!(&answer[9..12], status, "{version} {hosts}: {answer}");
    }
}

#[tokio::test]
async fn no_address_of_the_api_passes_over_a_parameter_that_it_does_not_know() {
    let (app, _requests) = app(None);
    let document = routes::routes().to_openapi();
    let mut asked = 0;
    for (path, item) in &document.paths.paths {
        if !path.starts_with("/api/v1/") {
            continue;
        }
        let address = path.replace("{job}", "report");
        let address = address.replace("{scheduled_at}", "2026-11-20T22:00:00Z");
        let address = address.replace("{run_id}", &uuid::Uuid::nil().to_string());
        let method = if item.get.is_some() { "GET" } else { "POST" };
        let request = HttpRequest::builder()
            .method(method)
            .uri(format!("{address}?dry_run=1"))
            .header("host", "localhost")
            .header("authorization", format!("Bearer {OPERATOR}"));
        let (status, body) = ask(&app, request.body(Body::empty()).unwrap()).await;
        assert_eq!(status, 400, "{method} {address}: {body}");
        assert!(body.contains("`dry_run` is no parameter"), "{body}");
        asked += 1;
    }
    assert!(asked > 10, "{asked}");
}
