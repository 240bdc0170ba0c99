//! `healthcheck`, against a server of which only the answer counts.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use test_support::closed::ClosedPort;

use crate::soloist::{Ended, Place};

/// Answers one request, and tells its first line.
fn answer(listener: TcpListener, status: &str, body: &str) -> JoinHandle<String> {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLocation: /elsewhere\r\n\r\n{body}",
        body.len()
    );
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a whole request");
            request.extend(byte);
        }
        stream.write_all(answer.as_bytes()).expect("read");
        let request = String::from_utf8(request).expect("UTF-8");
        request.lines().next().unwrap_or_default().to_owned()
    })
}

/// What comes of a request that is answered so, and what was requested.
fn asked(args: &[&str], status: &str, body: &str) -> (Ended, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = answer(listener, status, body);
    let args = [&["healthcheck"], args].concat();
    let ended = Place::empty().run_with(&args, &[("SOLOIST_LISTEN", &address)]);
    (ended, server.join().expect("asked"), address)
}

#[test]
fn a_replica_that_answers_is_healthy() {
    let (ended, request, address) = asked(&[], "200 OK", "");
    assert_eq!(request, "GET /healthz HTTP/1.1");
    let said = (ended.code, ended.stdout, ended.stderr);
    let expected = format!("OK: http://{address}/healthz\n");
    assert_eq!(said, (Some(0), expected, String::new()));
}

#[test]
fn a_replica_that_is_not_ready_fails_with_its_reason() {
    let problem = r#"{"title":"Not ready","status":503,"detail":"the store is\n  away"}"#;
    for body in [problem, "the store is away\n"] {
        let (ended, request, address) = asked(&["--ready"], "503 Service Unavailable", body);
        assert_eq!(request, "GET /readyz HTTP/1.1");
        let expected = format!("error: http://{address}/readyz answers 503: the store is away\n");
        let said = (ended.code, ended.stdout, ended.stderr);
        assert_eq!(said, (Some(1), String::new(), expected));
    }
}

#[test]
fn nothing_but_200_is_healthy() {
    for status in ["204 No Content", "302 Found", "404 Not Found"] {
        let (ended, _, _) = asked(&[], status, "");
        assert_eq!(ended.code, Some(1), "{status}: {ended:?}");
        assert!(ended.stderr.contains("without a reason"), "{ended:?}");
    }
}

#[test]
fn who_listens_on_all_addresses_is_asked_by_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = answer(listener, "200 OK", "");
    let everywhere = format!("0.0.0.0:{port}");
    let ended = Place::empty().run(&["healthcheck", "--listen", &everywhere]);
    server.join().expect("asked");
    assert_eq!(
        ended.stdout,
        format!("OK: http://127.0.0.1:{port}/healthz\n")
    );
}

#[test]
fn a_broken_table_says_nothing_of_the_replicas_health() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = answer(listener, "200 OK", "");
    let place = Place::with_table("[jobs.broken\n");
    let ended = place.run_with(&["healthcheck"], &[("SOLOIST_LISTEN", &address)]);
    server.join().expect("asked");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_replica_is_asked_where_its_table_has_it_listen() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = answer(listener, "200 OK", "");
    // Its jobs and their secrets are no matter.
    let table = format!(
        "[scheduler]\nlisten = \"0.0.0.0:{port}\"\n[jobs.a]\nschedule = 5\nenv = {{ A = \"${{NOWHERE}}\" }}\n"
    );
    let place = Place::with_table(table);
    let ended = place.run_with(&["healthcheck"], &[("SOLOIST_LISTEN", "")]);
    let expected = format!("OK: http://127.0.0.1:{port}/healthz\n");
    assert_eq!(
        (ended.code, &ended.stdout),
        (Some(0), &expected),
        "{ended:?}"
    );
    server.join().expect("asked");
}

#[test]
fn a_variable_is_over_the_table_and_another_table_can_be_named() {
    let table = "[scheduler]\nlisten = \"off\"\n";
    let place = Place::with_table(table);
    let ended = place.run(&["healthcheck"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let says = "`listen` of jobs.toml is `off`: there is nobody to ask";
    assert!(ended.stderr.contains(says), "{ended:?}");
    for (args, env) in [
        (
            &["healthcheck"][..],
            &[("SOLOIST_LISTEN", "127.0.0.1:1")][..],
        ),
        (&["healthcheck", "--config", "other.toml"], &[]),
    ] {
        let other = "[scheduler]\nlisten = \"127.0.0.1:1\"\n";
        std::fs::write(place.path("other.toml"), other).expect("written");
        let ended = place.run_with(args, env);
        let begins = "error: http://127.0.0.1:1/healthz does not answer: ";
        assert!(ended.stderr.starts_with(begins), "{ended:?}");
    }
}

#[test]
fn a_table_that_is_broken_or_a_pipe_is_gone_without_at_once() {
    let place = Place::empty();
    let status = std::process::Command::new("mkfifo")
        .arg(place.path("pipe.toml"))
        .status();
    assert!(status.expect("mkfifo").success());
    let broken = "[scheduler]\nlisten = \"127.0.0.1:1\"\n[jobs.broken\n";
    std::fs::write(place.path("broken.toml"), broken).expect("written");
    for table in ["none.toml", "broken.toml", "pipe.toml", "."] {
        let ended = place.run(&["healthcheck", "--config", table]);
        // Whoever it is that has the default port on this machine.
        let asked = format!("{}{}", ended.stdout, ended.stderr);
        assert!(asked.contains("http://127.0.0.1:7373/healthz"), "{ended:?}");
    }
}

#[test]
fn nobody_there_is_unhealthy_and_so_is_silence() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_at = silent.local_addr().expect("bound").to_string();
    let gone = ClosedPort::take();
    for address in [silent_at, gone.address()] {
        let ended = Place::empty().run(&["healthcheck", "--listen", &address]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let begins = format!("error: http://{address}/healthz does not answer: ");
        assert!(ended.stderr.starts_with(&begins), "{ended:?}");
        assert!(
            ended.stderr.contains("= help: is the replica up"),
            "{ended:?}"
        );
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    for (listen, says) in [
        ("off", "is `off`: there is nobody to ask"),
        ("127.0.0.1:7373/api", "is no address"),
        ("127.0.0.1:port", "is no address"),
        ("127.0.0.1", "the port is missing"),
        ("7373", "write `127.0.0.1:7373`"),
        ("localhost", "is no address"),
        ("localhost:7373", "write `127.0.0.1:7373`"),
    ] {
        let ended = Place::empty().run(&["healthcheck", "--listen", listen]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
        assert!(ended.stderr.contains("= help: "), "{ended:?}");
    }
}
