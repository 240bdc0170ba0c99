//! Who may ask for what: each address, with no token, one of each role, and a wrong one.

use crate::client::Client;
use crate::site::{JOBS, OPERATOR, READER, Site, WRONG};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Open to all.
    Probe,
    Read,
    Change,
}
use Kind::{Change, Probe, Read};

/// All there is, with what a right one is answered.
fn everything(run_id: &str, at: &str) -> Vec<(&'static str, String, Kind, u16)> {
    let own = |text: &str| text.to_owned();
    vec![
        ("GET", own("/healthz"), Probe, 200),
        ("GET", own("/readyz"), Probe, 200),
        ("HEAD", own("/readyz"), Probe, 200),
        ("GET", own("/"), Read, 200),
        ("GET", own("/metrics"), Read, 200),
        ("GET", own("/api/v1/openapi.json"), Read, 200),
        ("GET", own("/api/v1/status"), Read, 200),
        ("GET", own("/api/v1/replicas"), Read, 200),
        ("GET", own("/api/v1/jobs"), Read, 200),
        ("HEAD", own("/api/v1/jobs"), Read, 200),
        ("GET", own("/api/v1/jobs/report"), Read, 200),
        ("GET", own("/api/v1/jobs/report/occurrences"), Read, 200),
        ("GET", format!("/api/v1/occurrences/report/{at}"), Read, 200),
        ("GET", own("/api/v1/attempts"), Read, 200),
        (
            "GET",
            format!("/api/v1/jobs/report/attempts/{run_id}/output"),
            Read,
            200,
        ),
        ("GET", own("/no/such/thing"), Read, 404),
        ("OPTIONS", own("/api/v1/jobs"), Read, 405),
        ("POST", own("/readyz"), Change, 405),
        ("DELETE", own("/api/v1/jobs/report"), Change, 405),
        ("POST", own("/api/v1/jobs/report/trigger"), Change, 202),
        ("POST", own("/api/v1/jobs/nightly/pause"), Change, 202),
        ("POST", own("/api/v1/jobs/nightly/resume"), Change, 202),
        ("POST", own("/api/v1/jobs/nightly/kill"), Change, 409),
        ("POST", own("/api/v1/jobs/off/trigger"), Change, 409),
        ("POST", own("/api/v1/jobs/nobody/trigger"), Change, 404),
    ]
}

/// Asks with all tokens for everything. `open` says whether reading needs none.
fn check(client: &Client, open: bool, run_id: &str, at: &str) {
    for (method, path, kind, right) in everything(run_id, at) {
        let expected = |token: Option<&str>| match (kind, token) {
            (Probe, _) | (_, Some(OPERATOR)) | (Read, Some(READER)) => right,
            (Change, Some(READER)) => 403,
            (Read, None) if open => right,
            _ => 401,
        };
        for token in [None, Some(READER), Some(OPERATOR), Some(WRONG)] {
            let bearer = token.map(|token| format!("bEaReR {token}"));
            let headers: Vec<_> = bearer
                .iter()
                .map(|bearer| ("Authorization", bearer.as_str()))
                .collect();
            let answer = client.send(method, &path, &headers, "");
            let case = format!("{method} {path} with {token:?}: {answer:?}");
            assert_eq!(answer.status, expected(token), "{case}");
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{case}");
            assert_eq!(
                answer.header("x-content-type-options"),
                Some("nosniff"),
                "{case}"
            );
            if answer.status == 401 {
                let challenge = answer.header("www-authenticate").unwrap_or_default();
                assert!(challenge.starts_with("Bearer "), "{case}");
                if method != "HEAD" {
                    answer.assert_problem(401, "unauthorized");
                }
            }
            if answer.status == 405 && method != "HEAD" {
                assert!(answer.header("allow").is_some(), "{case}");
                answer.assert_problem(405, "method-not-allowed");
            }
        }
    }
}

#[test]
fn on_loopback_reading_is_open_and_a_change_takes_an_operator() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let line = site.run("report");
    let text = |key: &str| line[key].as_str().expect("text").to_owned();
    check(&site.client, true, &text("run_id"), &text("scheduled_at"));
}

#[test]
fn beyond_loopback_probes_alone_are_open() {
    let site = Site::start("0.0.0.0:0", JOBS);
    let line = site.run("report");
    let text = |key: &str| line[key].as_str().expect("text").to_owned();
    check(&site.client, false, &text("run_id"), &text("scheduled_at"));
    let probe = site.client.get("/readyz").json();
    assert_eq!(
        probe,
        serde_json::json!({"status": "ready"}),
        "no detail for strangers"
    );
    assert_eq!(
        site.client.get_as(READER, "/readyz").json()["replica"],
        "r1"
    );
}

#[test]
fn what_does_not_come_from_this_host_by_its_own_name_is_not_open() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let status =
        |headers: &[(&str, &str)]| site.client.send("GET", "/api/v1/jobs", headers, "").status;
    assert_eq!(status(&[("Host", "localhost:7373")]), 200);
    assert_eq!(status(&[("Host", "[::1]")]), 200);
    // A page whose name was made to lead here.
    assert_eq!(status(&[("Host", "evil.example")]), 401);
    assert_eq!(status(&[("Host", "127.0.0.1.evil.example:80")]), 401);
    // A proxy on this host that speaks for another.
    assert_eq!(status(&[("X-Forwarded-For", "203.0.113.7")]), 401);
    assert_eq!(status(&[("Forwarded", "for=203.0.113.7")]), 401);
    let bearer = format!("Bearer {READER}");
    assert_eq!(
        status(&[("Host", "soloist.example"), ("Authorization", &bearer)]),
        200
    );
    // Credentials that are not taken are never taken for none.
    assert_eq!(status(&[("Authorization", "Basic YTpi")]), 401);
    assert_eq!(
        status(&[("Authorization", &bearer), ("Authorization", &bearer)]),
        401
    );
    assert_eq!(status(&[("Authorization", "Bearer")]), 401);
}
