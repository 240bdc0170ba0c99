//! Laws of a request, with real servers.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;

mod failures;
mod process;
mod server;
mod tls;

use server::{Server, answering, asked};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
const SECRET: &str = "hunter2";

fn call(method: &str, url: impl Into<String>) -> HttpCall {
    HttpCall {
        method: method.to_owned(),
        url: url.into(),
        path_is_secret: false,
        headers: Vec::new(),
        body: None,
        expect_status: vec![(200, 299)],
    }
}

/// What was written of an answer, and what became of the request.
fn performed(call: &HttpCall) -> (String, Result<(), String>) {
    let mut answer = Vec::new();
    let ended = perform(call, &mut answer);
    (String::from_utf8_lossy(&answer).into_owned(), ended)
}

/// Why a request failed, and none of its secrets in it.
fn refusal(call: &HttpCall) -> String {
    let why = performed(call).1.expect_err("a failure");
    assert!(!why.contains(SECRET), "{why}");
    why
}

#[test]
fn an_answer_is_its_status_line_and_its_body() {
    let server = answering(OK);
    let (answer, ended) = performed(&call("GET", server.url("/")));
    assert_eq!((&*answer, ended), ("HTTP/1.1 200 OK\nhello", Ok(())));
    let asked = server.served();
    assert!(asked.starts_with("GET / HTTP/1.1\r\n"), "{asked}");
}

#[test]
fn answers_of_every_shape_are_taken() {
    for (method, sent, written) in [
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\n",
        ),
        (
            "GET",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 204 No Content\n",
        ),
        (
            "GET",
            "HTTP/1.0 200 OK\r\n\r\nto the end",
            "HTTP/1.0 200 OK\nto the end",
        ),
        (
            "GET",
            "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\n",
        ),
        (
            "GET",
            "HTTP/1.1 299 Odd\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 299\n",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\nabc",
        ),
        (
            "GET",
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            "HTTP/1.1 200 OK\na",
        ),
        (
            "POST",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            "HTTP/1.1 200 OK\na",
        ),
    ] {
        let server = answering(sent);
        let (answer, ended) = performed(&call(method, server.url("/")));
        assert_eq!((&*answer, ended), (written, Ok(())), "{sent}");
    }
}

#[test]
fn a_request_is_sent_as_it_is_written() {
    let server = answering(OK);
    let mut call = call("PATCH", server.url("/a%20b?c=d&e=2026-11-20T22:00:00Z#f"));
    call.headers = vec![
        ("Soloist-Job".into(), "close-expired-orders".into()),
        ("Idempotency-Key".into(), "x/2026-11-20T22:00:00Z".into()),
        ("x-sPELT".into(), "as \"it\" was".into()),
    ];
    call.body = Some("{\"ä\": 1}".into());
    assert_eq!(performed(&call).1, Ok(()));
    let asked = server.served();
    let (head, body) = asked.split_once("\r\n\r\n").expect("a head");
    let lines: Vec<&str> = head.lines().collect();
    let target = "PATCH /a%20b?c=d&e=2026-11-20T22:00:00Z HTTP/1.1";
    assert_eq!((lines[0], body), (target, "{\"ä\": 1}"));
    for line in [
        "Soloist-Job: close-expired-orders",
        "Idempotency-Key: x/2026-11-20T22:00:00Z",
        "x-sPELT: as \"it\" was",
        "content-length: 9",
        concat!("user-agent: soloist/", env!("CARGO_PKG_VERSION")),
        "accept: */*",
    ] {
        assert_eq!(
            lines.iter().filter(|sent| **sent == line).count(),
            1,
            "{line} in {head}"
        );
    }
    for name in [
        "content-type",
        "authorization",
        "transfer-encoding",
        "expect",
    ] {
        assert!(!head.to_lowercase().contains(name), "{head}");
    }
}

#[test]
fn headers_of_the_job_take_the_place_of_our_own() {
    let server = answering(OK);
    let mut call = call("GET", server.url("/").replacen("127", "a%40b:c%20d@127", 1));
    call.headers = vec![
        ("User-Agent".into(), "shop/1".into()),
        ("Authorization".into(), "Bearer abc".into()),
        ("Accept".into(), "text/plain".into()),
    ];
    assert_eq!(performed(&call).1, Ok(()));
    let asked = server.served().to_lowercase();
    for name in [
        "user-agent: shop/1\r",
        "authorization: bearer abc\r",
        "accept: text/plain\r",
    ] {
        assert!(asked.contains(name), "{asked}");
        let name = &name[..name.find(':').expect("a name")];
        assert_eq!(asked.matches(&format!("{name}:")).count(), 1, "{asked}");
    }
}

#[test]
fn user_and_password_of_the_url_are_sent_as_basic_authorization_and_nowhere_else() {
    let server = answering(OK);
    let url = server.url("/x").replacen("127", "ann%40shop:a%3Ab@127", 1);
    assert_eq!(performed(&call("GET", url)).1, Ok(()));
    let asked = server.served();
    // base64("ann@shop:a:b")
    assert!(
        asked.contains("Authorization: Basic YW5uQHNob3A6YTpi\r\n"),
        "{asked}"
    );
    assert!(
        asked.starts_with("GET /x HTTP/1.1\r\n") && !asked.contains("ann"),
        "{asked}"
    );
}

#[test]
fn an_empty_body_is_announced_where_one_is_usual_or_given() {
    for (method, body, announced) in [
        ("POST", None, true),
        ("PUT", None, true),
        ("PATCH", None, true),
        ("GET", None, false),
        ("DELETE", None, false),
        ("PURGE", None, false),
        ("GET", Some(""), true),
        ("DELETE", Some(""), true),
    ] {
        let server = answering(OK);
        let mut call = call(method, server.url("/"));
        call.body = body.map(str::to_owned);
        assert_eq!(performed(&call).1, Ok(()), "{method}");
        let asked = server.served();
        let length = asked.to_lowercase().contains("content-length: 0\r\n");
        assert_eq!(length, announced, "{method}: {asked}");
        assert!(!asked.contains("ransfer-encoding"), "{method}: {asked}");
    }
}

#[test]
fn an_unexpected_status_fails_and_its_body_is_kept() {
    let body = "HTTP/1.1 503 x\r\ncontent-length: 4\r\n\r\nbusy";
    let server = answering(body);
    let url = format!("{}?key={SECRET}", server.url("/a"));
    let mut call = call("POST", url);
    call.expect_status = vec![(200, 204), (404, 404)];
    let (answer, ended) = performed(&call);
    assert_eq!(answer, "HTTP/1.1 503 Service Unavailable\nbusy");
    let why = format!(
        "POST http://{} answered 503 Service Unavailable, expected was 200-204 or 404",
        server.address
    );
    assert_eq!(ended, Err(why));
}

#[test]
fn the_job_says_which_statuses_are_successes() {
    for (status, expected, succeeds) in [
        (200, vec![(200, 299)], true),
        (299, vec![(200, 299)], true),
        (300, vec![(200, 299)], false),
        (404, vec![(200, 299), (404, 404)], true),
        (200, vec![(404, 404)], false),
        (302, vec![(302, 302)], true),
    ] {
        let server = answering(format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n"));
        let mut call = call("GET", server.url("/"));
        call.expect_status = expected;
        assert_eq!(performed(&call).1.is_ok(), succeeds, "{status}");
        server.served();
    }
}

#[test]
fn a_redirect_is_told_and_not_followed() {
    let elsewhere = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    elsewhere.set_nonblocking(true).expect("a socket");
    let target = elsewhere.local_addr().expect("an address");
    for (location, shown) in [
        (
            format!("http://u:{SECRET}@{target}/new?key={SECRET}"),
            format!("http://{target}/new"),
        ),
        ("/new".to_owned(), "/new".to_owned()),
    ] {
        let answer = format!("HTTP/1.1 307 x\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let server = answering(answer);
        let why = refusal(&call("POST", server.url("/old")));
        assert!(why.contains("answered 307 Temporary Redirect"), "{why}");
        assert!(
            why.contains(&format!("{shown}: redirects are not followed")),
            "{why}"
        );
        server.served();
    }
    let nobody = elsewhere.accept().expect_err("nobody follows");
    assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn where_the_path_is_a_secret_a_redirect_shows_the_host_alone() {
    let answer =
        format!("HTTP/1.1 301 x\r\nlocation: https://shop/{SECRET}\r\ncontent-length: 0\r\n\r\n");
    let server = answering(answer);
    let mut call = call("GET", server.url(&format!("/{SECRET}")));
    call.path_is_secret = true;
    let why = refusal(&call);
    assert!(
        why.contains("it points to https://shop: redirects"),
        "{why}"
    );
}

#[test]
fn an_answer_is_written_while_it_comes() {
    let (seen, wait) = mpsc::channel();
    let server = Server::start(move |mut stream| {
        asked(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\nfirst")
            .expect("a client");
        let () = wait
            .recv()
            .expect("the first part is written before there is a second");
        stream.write_all(b" second").expect("a client");
    });
    let mut answer = Seeing {
        bytes: Vec::new(),
        seen: Some(seen),
    };
    assert_eq!(perform(&call("GET", server.url("/")), &mut answer), Ok(()));
    assert!(answer.bytes.ends_with(b"\nfirst second"));
}

/// Tells of the first part.
struct Seeing {
    bytes: Vec<u8>,
    seen: Option<mpsc::Sender<()>>,
}

impl Write for Seeing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend(bytes);
        if self.bytes.ends_with(b"first") {
            self.seen
                .take()
                .expect("once")
                .send(())
                .expect("the server waits");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_flood_passes_through_in_small_pieces_and_whole() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let server = Server::start(|mut stream| {
        asked(&mut stream);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("a client");
        let bytes: Vec<u8> = (0..=255).cycle().take(1024 * 1024).collect();
        for _ in 0..LENGTH / bytes.len() {
            stream.write_all(&bytes).expect("a client");
        }
    });
    let mut answer = Counting::default();
    assert_eq!(perform(&call("GET", server.url("/")), &mut answer), Ok(()));
    assert_eq!(answer.length, LENGTH + "HTTP/1.1 200 OK\n".len());
    assert!(
        answer.longest <= 64 * 1024,
        "{} bytes at a time",
        answer.longest
    );
    assert_eq!(
        answer.sum,
        (0..=255_u64).sum::<u64>() * (LENGTH as u64 / 256)
    );
}

#[derive(Default)]
struct Counting {
    length: usize,
    longest: usize,
    /// Of the body's bytes.
    sum: u64,
}

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length >= "HTTP/1.1 200 OK\n".len() {
            self.sum += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
        self.length += bytes.len();
        self.longest = self.longest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_call_shown_for_debugging_keeps_its_secrets_and_travels_whole() {
    let mut call = call("GET", format!("http://u:{SECRET}@h/{SECRET}?{SECRET}"));
    call.headers = vec![("X-Key".into(), SECRET.into())];
    call.body = Some(SECRET.into());
    let shown = format!("{call:?} {call:#?}");
    assert!(
        shown.contains("X-Key") && !shown.contains(SECRET),
        "{shown}"
    );
    let sent = serde_json::to_string(&call).expect("JSON");
    assert_eq!(serde_json::from_str::<HttpCall>(&sent).expect("JSON"), call);
}

#[test]
fn a_killed_process_closes_its_connection() {
    let (heard, hears) = mpsc::channel();
    let server = Server::start(move |mut stream| {
        asked(&mut stream);
        heard.send(()).expect("the test waits");
        stream.read(&mut [0]).expect("an end, not an error")
    });
    let mut child = process::start(&call("GET", server.url("/")), |_| {});
    hears.recv().expect("the request has come");
    child.kill().expect("it waits for an answer");
    assert_eq!(server.served(), 0, "the connection is at its end");
    child.wait().expect("a dead process");
}
