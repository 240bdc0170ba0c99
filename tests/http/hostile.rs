//! Requests that are wrong in every way: they are refused, nothing hangs, and the next one is
//! answered.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::client::{Answer, Client};
use crate::site::{JOBS, OPERATOR, READER, Site};

const CASES: u32 = 150;

/// What may come: nothing where the connection is closed, and no defect.
fn check(client: &Client, request: &[u8]) -> Result<(), TestCaseError> {
    let bytes = client.raw(request);
    let shown = String::from_utf8_lossy(request);
    if let Some(answer) = Answer::read(&bytes) {
        let allowed = answer.status < 500 || [503, 504, 505].contains(&answer.status);
        prop_assert!(allowed, "{shown:?}: {answer:?}");
        let by_us = answer.header("cache-control").is_some();
        if by_us && answer.status >= 400 && !request.starts_with(b"HEAD") {
            prop_assert_eq!(
                answer.header("content-type"),
                Some("application/problem+json"),
                "{:?}",
                shown
            );
        }
    } else {
        prop_assert!(
            bytes.is_empty(),
            "{shown:?}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    Ok(())
}

fn fuzz<S: Strategy<Value = Vec<u8>>>(requests: &S) {
    let site = Site::start("127.0.0.1:0", JOBS);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let ended = TestRunner::new(config).run(requests, |request| check(&site.client, &request));
    ended.unwrap_or_else(|failure| panic!("{failure}\n{}", site.replica.tail()));
    assert_eq!(site.client.get("/api/v1/jobs").status, 200);
    assert_eq!(site.client.get("/healthz").status, 200);
    assert_eq!(site.replica.lines_with("there is a defect"), 0);
}

#[test]
fn bytes_that_are_no_request_are_refused() {
    let beginnings = prop_oneof![
        Just(b"".to_vec()),
        Just(b"GET ".to_vec()),
        Just(b"GET /api/v1/jobs HTTP/1.1\r\n".to_vec()),
        Just(b"POST /api/v1/jobs/report/pause HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        Just(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        Just(b"\x16\x03\x01\x02\x00\x01".to_vec()),
    ];
    let requests = (beginnings, vec(any::<u8>(), 0..400))
        .prop_map(|(beginning, rest)| [beginning, rest].concat());
    fuzz(&requests);
}

fn path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("api".to_owned()),
        Just("v1".to_owned()),
        Just("jobs".to_owned()),
        Just("report".to_owned()),
        Just("trigger".to_owned()),
        "[!-~]{0,20}",
        "(%[0-9a-f]{2}){1,8}",
    ];
    let hole = prop_oneof![
        Just("report".to_owned()),
        "[!-\"$-.0->@-~]{1,30}",
        "(%[0-9a-fA-F]{2}){1,12}"
    ];
    let known = (0..9_usize, hole).prop_map(|(which, hole)| match which {
        0 => "/api/v1/jobs".to_owned(),
        1 => format!("/api/v1/jobs/{hole}"),
        2 => format!("/api/v1/jobs/{hole}/occurrences"),
        3 => format!("/api/v1/occurrences/{hole}/2026-11-20T22:00:00Z"),
        4 => format!("/api/v1/occurrences/nightly/{hole}"),
        5 => "/api/v1/attempts".to_owned(),
        6 => format!("/api/v1/jobs/report/attempts/{hole}/output"),
        7 => format!("/api/v1/jobs/{hole}/pause"),
        _ => "/readyz".to_owned(),
    });
    prop_oneof![
        1 => vec(segment, 0..6).prop_map(|segments| format!("/{}", segments.join("/"))),
        3 => known,
    ]
}

fn query() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        "-?[0-9]{0,25}",
        "[!-~]{0,40}",
        "(%[0-9a-f]{2}){0,9}",
        "-?[0-9]{1,20}\\.[0-9a-f-]{1,36}\\.[0-9]{1,12}\\.-?[0-9]{1,20}",
        "-?[0-9]{4,6}-01-01T00:00:00Z"
    ];
    let name = prop_oneof![
        Just("limit"),
        Just("before"),
        Just("after"),
        Just("job"),
        Just("x")
    ];
    let pairs = vec((name, value), 0..4);
    pairs.prop_map(|pairs| {
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("&")
    })
}

fn header() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(format!("Authorization: Bearer {OPERATOR}")),
        Just(format!("authorization: bearer  {READER}")),
        "Authorization: [ -~]{0,60}",
        "Content-Type: [ -~]{0,40}",
        Just("Content-Type: application/json".to_owned()),
        "Content-Length: -?[0-9]{0,12}",
        "Transfer-Encoding: (chunked|identity|gzip, chunked)",
        "Idempotency-Key: [ -~]{0,300}",
        "Expect: 100-continue",
        "Connection: (close|upgrade|keep-alive)",
        "Host: [ -~]{0,30}",
        "[A-Za-z-]{1,20}: [\\x20-\\x7e\u{80}-\u{ff}]{0,50}",
    ]
}

#[test]
fn requests_that_are_almost_right_are_answered() {
    let method = prop_oneof![
        4 => Just("GET".to_owned()),
        4 => Just("POST".to_owned()),
        1 => Just("HEAD".to_owned()),
        1 => Just("OPTIONS".to_owned()),
        1 => "[A-Z]{1,12}",
    ];
    let body = vec(any::<u8>(), 0..200);
    let parts = (method, path(), query(), vec(header(), 0..5), body);
    let requests = parts.prop_map(|(method, path, query, headers, body)| {
        let mark = if query.is_empty() { "" } else { "?" };
        let mut text = format!(
            "{method} {path}{mark}{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        );
        for header in headers {
            text += &format!("{header}\r\n");
        }
        [text.as_bytes(), b"\r\n", &body].concat()
    });
    fuzz(&requests);
}
