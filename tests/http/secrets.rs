//! Nothing that is secret is in any answer, nor in the log.

use test_support::redis::RedisServer;

use crate::site::{OPERATOR, READER, Site, WRONG};

const SECRETS: [&str; 4] = ["st0repassw0rd", "env-s3cret", "header-s3cret", "url-s3cret"];

const JOBS: &str = r#"
[jobs.report]
schedule = "@manual"
command = ["true"]
env = { PASSWORD = "env-s3cret" }

[jobs.call]
schedule = "@manual"
http = { url = "http://user:url-s3cret@127.0.0.1:1/", headers = { X-Key = "header-s3cret" } }
"#;

#[test]
fn no_answer_and_no_line_of_the_log_has_a_secret() {
    let mut redis = RedisServer::start();
    redis.command(&["CONFIG", "SET", "requirepass", SECRETS[0]]);
    let url = redis
        .url()
        .replace("redis://", &format!("redis://:{}@", SECRETS[0]));
    let site = Site::start_on(&url, "127.0.0.1:0", JOBS);
    site.run("report");
    let line = site.run("call");
    let at = line["scheduled_at"].as_str().expect("an instant");
    let mut answers = String::new();
    let paths = [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/v1/openapi.json",
        "/api/v1/status",
        "/api/v1/replicas",
        "/api/v1/jobs",
        "/api/v1/jobs/report",
        "/api/v1/jobs/call",
        "/api/v1/jobs/call/occurrences",
        &format!("/api/v1/occurrences/call/{at}"),
        "/api/v1/attempts",
        "/api/v1/jobs/nobody",
    ];
    let ask = |answers: &mut String| {
        for path in paths {
            for token in [READER, OPERATOR, WRONG] {
                let asked = format!("{path}?access_token={token}");
                for answer in [
                    site.client.get_as(token, path),
                    site.client.get_as(token, &asked),
                    site.client.post_as(token, path),
                ] {
                    *answers += &format!("{}\n{}\n", answer.head, answer.body);
                }
            }
        }
    };
    ask(&mut answers);
    redis.kill();
    site.until("/readyz", |answer| (answer.status == 503).then_some(()));
    ask(&mut answers);
    let log = site.replica.log();
    for secret in SECRETS.iter().chain(&[READER, OPERATOR, WRONG]) {
        assert!(!answers.contains(secret), "{secret} is in an answer");
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    assert!(answers.contains("\"call\"") && answers.contains("store-unavailable"));
}
