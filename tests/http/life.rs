//! Probes and answers over a replica's life: no store yet, a store that goes and comes, one that
//! stands still, a table that is refused, a drain.

use std::time::Instant;

use rustix::process::Signal;
use test_support::redis::RedisServer;

use crate::client::{AGES, Answer};
use crate::site::{JOBS, OPERATOR, READER, Site, tokens_of, write_tokens};

#[test]
fn a_replica_that_waits_for_its_store_lives_and_says_why_it_is_not_ready() {
    let mut redis = RedisServer::start();
    redis.kill();
    let site = Site::begin_on(&redis.url(), "127.0.0.1:0", JOBS);
    assert_eq!(site.client.get("/healthz").status, 200);
    let answer = site.until("/readyz", |answer| {
        answer.body.contains("away").then(|| answer.clone())
    });
    answer.assert_problem(503, "not-ready");
    assert_eq!(answer.json()["phase"], "starting");
    redis.restart();
    site.until("/readyz", |answer| (answer.status == 200).then_some(()));
}

#[test]
fn a_store_that_is_killed_is_named_and_found_again() {
    let mut redis = RedisServer::options().appendonly().start();
    let site = Site::start_on(&redis.url(), "127.0.0.1:0", JOBS);
    redis.kill();
    site.until("/readyz", |answer| (answer.status == 503).then_some(()));
    for path in [
        "/api/v1/jobs",
        "/api/v1/attempts",
        "/api/v1/jobs/report/occurrences",
        "/api/v1/status",
    ] {
        let answer = site.client.get(path);
        answer.assert_problem(503, "store-unavailable");
        assert_eq!(answer.header("retry-after"), Some("2"));
        assert!(answer.body.contains("can't be reached"), "{answer:?}");
    }
    let order = site.client.post_as(OPERATOR, "/api/v1/jobs/report/trigger");
    order.assert_problem(503, "store-unavailable");
    assert_eq!(site.client.get("/healthz").status, 200);
    redis.restart();
    site.until("/api/v1/jobs", |answer| {
        (answer.status == 200).then_some(())
    });
    site.until("/readyz", |answer| (answer.status == 200).then_some(()));
}

#[test]
fn a_store_that_stands_still_holds_nobody_for_long() {
    let redis = RedisServer::start();
    let site = Site::start_on(&redis.url(), "127.0.0.1:0", JOBS);
    redis.freeze();
    let began = Instant::now();
    let readers: Vec<_> = (0..40)
        .map(|number| {
            let client = site.client.clone();
            let path = ["/api/v1/jobs", "/api/v1/attempts"][number % 2];
            std::thread::spawn(move || client.get(path).status)
        })
        .collect();
    assert_eq!(
        site.client.get("/healthz").status,
        200,
        "probes are answered meanwhile"
    );
    for reader in readers {
        assert_eq!(reader.join().expect("an answer"), 503);
    }
    assert!(began.elapsed() < AGES, "{:?}", began.elapsed());
    redis.thaw();
    site.until("/api/v1/jobs", |answer| {
        (answer.status == 200).then_some(())
    });
}

#[test]
fn a_table_that_is_refused_is_told_and_keeps_nobody_from_being_ready() {
    let site = Site::start("127.0.0.1:0", JOBS);
    site.fleet
        .set_table("[jobs.report]\nschedule = \"whenever\"\ncommand = [\"true\"]\n");
    site.replica.signal(Signal::HUP);
    let told = site.until("/readyz", |answer| {
        let table = answer.json()["table"].clone();
        (table["reloads_refused"] == 1).then_some((answer.status, table))
    });
    assert_eq!(told.0, 200);
    let cause = told.1["refused"]["cause"].as_str().expect("a cause");
    assert!(cause.contains("jobs.toml"), "{cause}");
}

#[test]
fn a_table_that_lost_most_of_its_jobs_is_taken_with_a_warning() {
    let site = Site::start("127.0.0.1:0", JOBS);
    let table = std::fs::read_to_string(site.fleet.config()).expect("a table");
    let head = table.strip_suffix(JOBS).expect("its jobs are last");
    let all: Vec<&str> = JOBS.split_inclusive("\n\n").collect();
    let mut reloads = 0;
    let mut reload = |jobs: usize| {
        site.fleet
            .set_table(&format!("{head}{}", all[..jobs].concat()));
        site.replica.signal(Signal::HUP);
        reloads += 1;
        site.until("/readyz", |answer| {
            let table = answer.json()["table"].clone();
            (table["reloads_taken"] == reloads && table["reloading"] == false).then_some(())
        });
    };
    // Half of them are not most of them, and one is not many.
    for jobs in [2, 1, 3, 4] {
        reload(jobs);
    }
    assert_eq!(site.replica.lines_with("are gone"), 0);
    reload(1);
    site.replica.wait_for_line(&[
        "WARN",
        "the table was read again, and 3 of its 4 jobs are gone: removed long, nightly, off",
    ]);
}

#[test]
fn tokens_are_read_anew_with_the_table_and_a_broken_file_leaves_them() {
    let site = Site::start("0.0.0.0:0", JOBS);
    let status = |token: &str| site.client.get_as(token, "/api/v1/jobs").status;
    let newer = "newer-0123456789abcdef0123456789abcdef00";
    std::fs::write(tokens_of(&site.fleet), format!("nonsense {newer}\n")).expect("written");
    site.replica.signal(Signal::HUP);
    let line = site
        .replica
        .wait_for_line(&["ERROR", "tokens", "stay in force"]);
    assert!(line.contains("line 1") && !line.contains(newer), "{line}");
    assert_eq!([status(READER), status(newer)], [200, 401]);
    // Who looks at the replica sees it too, and strangers don't.
    let told = site.until("/readyz", |answer| {
        let refused = answer.json()["tokens_refused"].clone();
        refused.is_object().then_some((answer.status, refused))
    });
    let cause = told.1["cause"].as_str().expect("a cause");
    assert!(
        cause.contains("line 1") && !cause.contains(newer),
        "{cause}"
    );
    assert_eq!(told.0, 200);
    assert!(!site.client.get("/readyz").body.contains("line 1"));
    let successful = |token: &str| {
        let page = site.client.get_as(token, "/metrics").body;
        let name = "soloist_api_tokens_last_read_successful ";
        let value = page.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.parse::<f64>().ok())
    };
    assert_eq!(successful(READER), Some(0.0));
    write_tokens(&site.fleet, &format!("read newer {newer}\n"));
    site.replica.signal(Signal::HUP);
    site.replica.wait_for_line(&["tokens were read anew"]);
    assert_eq!([status(READER), status(newer)], [401, 200]);
    let mended = |answer: &Answer| answer.json().get("tokens_refused").is_none();
    let end = Instant::now() + AGES;
    while !mended(&site.client.get_as(newer, "/readyz")) {
        assert!(Instant::now() < end, "{}", site.replica.tail());
    }
    assert_eq!(successful(newer), Some(1.0));
}

#[test]
fn tokens_that_are_watched_take_effect_without_a_signal() {
    let site = Site::start("0.0.0.0:0", &format!("watch = true\n{JOBS}"));
    let status = |token: &str| site.client.get_as(token, "/api/v1/jobs").status;
    let newer = "newer-0123456789abcdef0123456789abcdef00";
    write_tokens(&site.fleet, &format!("read newer {newer}\n"));
    site.replica.wait_for_line(&["tokens were read anew"]);
    assert_eq!([status(READER), status(newer)], [401, 200]);
}

#[test]
fn a_replica_that_drains_lives_is_not_ready_and_answers_until_it_ends() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let done = dir.path().join("done");
    let jobs = format!(
        "[jobs.brief]\nschedule = \"@manual\"\nshell = \"while ! test -e {}; do sleep 0.05; done\"\n",
        done.display()
    );
    let mut site = Site::start("127.0.0.1:0", &jobs);
    assert_eq!(
        site.client
            .post_as(OPERATOR, "/api/v1/jobs/brief/trigger")
            .status,
        202
    );
    site.until("/readyz", |answer| {
        (answer.json()["running"] == 1).then_some(())
    });
    site.replica.signal(Signal::TERM);
    let drained = site.until("/readyz", |answer| {
        (answer.status == 503).then(|| answer.clone())
    });
    assert_eq!(drained.json()["phase"], "draining");
    assert!(
        drained.json()["detail"]
            .as_str()
            .is_some_and(|detail| detail.starts_with("draining"))
    );
    assert_eq!(site.client.get("/healthz").status, 200);
    assert_eq!(site.client.get("/api/v1/jobs").status, 200);
    std::fs::write(&done, "").expect("a file");
    assert!(site.replica.wait(AGES).success());
}
