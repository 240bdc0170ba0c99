//! Laws of failures: each names its place, its cause and a cure, and no secret.

use std::io::{self, Write};

use test_support::closed::ClosedPort;

use super::super::perform;
use super::process::perform_in;
use super::server::{Server, answering, asked};
use super::{OK, SECRET, call, performed, refusal};

#[test]
fn an_answer_that_breaks_off_is_a_failure_with_what_came() {
    for (answer, came) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nwo",
            "hellowo",
        ),
    ] {
        let server = answering(answer);
        let call = call("GET", format!("{}?{SECRET}", server.url("/")));
        let (answer, ended) = performed(&call);
        assert_eq!(answer, format!("HTTP/1.1 200 OK\n{came}"));
        let why = ended.expect_err("not all of it came");
        let beginning = format!(
            "GET http://{} answered 200, and its answer broke off after {} bytes: the server closed the connection",
            server.address,
            came.len()
        );
        assert!(why.starts_with(&beginning), "{why}");
    }
}

#[test]
fn a_connection_closed_without_an_answer_is_told() {
    let server = Server::start(|mut stream| {
        asked(&mut stream);
    });
    let why = refusal(&call("GET", server.url(&format!("/{SECRET}"))));
    assert!(
        why.contains("the server closed the connection without an answer"),
        "{why}"
    );
}

#[test]
fn what_speaks_no_http_is_told() {
    let server = answering("SSH-2.0-OpenSSH_9.7\r\n\r\n\r\n");
    let why = refusal(&call("GET", server.url(&format!("/{SECRET}"))));
    assert!(why.contains("does not speak HTTP"), "{why}");
    assert!(why.contains("check scheme and port"), "{why}");
}

#[test]
fn a_refused_connection_names_the_place_and_a_cure() {
    let closed = ClosedPort::take();
    let address = closed.address();
    let why = refusal(&call(
        "GET",
        format!("http://u:{SECRET}@{address}/{SECRET}?{SECRET}"),
    ));
    let beginning = format!("GET http://{address} failed: nothing listens there (");
    assert!(why.starts_with(&beginning), "{why}");
    assert!(why.contains("check that the service is up"), "{why}");
}

#[test]
fn a_host_without_an_address_is_named_with_a_cure() {
    let url = format!("https://u:{SECRET}@no-such-host.invalid:8443/{SECRET}?{SECRET}");
    let why = refusal(&call("PUT", url));
    let beginning = "PUT https://no-such-host.invalid:8443 failed: no address was found for `no-such-host.invalid` (";
    assert!(why.starts_with(beginning), "{why}");
    assert!(why.contains("getent hosts no-such-host.invalid"), "{why}");
}

#[test]
fn a_proxy_is_not_used_and_named_where_it_may_be_missed() {
    let nowhere = "http://u:hunter2@127.0.0.1:1";
    let with_proxy = |url: String| {
        perform_in(&call("GET", url), |command| {
            command.env("http_proxy", nowhere).env("ALL_PROXY", nowhere);
        })
    };
    let server = answering(OK);
    assert_eq!(with_proxy(server.url("/")), Ok(()));
    server.served();
    let why = with_proxy("http://no-such-host.invalid/".into()).expect_err("no such host");
    assert!(why.contains("soloist uses no proxy"), "{why}");
    assert!(!why.contains(SECRET), "{why}");
}

#[test]
fn a_request_that_nobody_takes_down_is_a_failure() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let server = answering(OK);
    let why = perform(&call("GET", server.url("/")), &mut Closed).expect_err("a failure");
    assert!(why.contains("nobody took down what"), "{why}");
}
