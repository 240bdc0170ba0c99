//! `trigger`, `pause`, `resume` and `kill` with no replica there: what they say, what they write
//! down, and how they end.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::soloist::{Ended, Place};

const TABLE: &str = "[scheduler]\nstore = \"sqlite:store.db\"\n[jobs.report]\nschedule = \"@daily\"\nshell = \"x\"\n[jobs.sweep]\nschedule = \"@daily\"\nshell = \"x\"\n[jobs.off]\nschedule = \"@daily\"\nshell = \"x\"\nenabled = false\n";

fn place() -> Place {
    Place::with_table(TABLE)
}

fn done(ended: &Ended) -> &str {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    &ended.stdout
}

fn status_of(place: &Place, job: &str) -> Value {
    let ended = place.run(&["status", "--json"]);
    let status: Value = serde_json::from_str(done(&ended)).expect("JSON");
    let jobs = status["jobs"].as_array().expect("jobs").iter();
    let mut jobs = jobs.filter(|known| known["name"] == job);
    jobs.next().expect("the job").clone()
}

#[test]
fn a_command_that_makes_no_sense_is_a_usage_error() {
    let place = place();
    let long = "x".repeat(101);
    let cases: &[(&[&str], &str)] = &[
        (&["trigger"], "JOB"),
        (&["pause"], "JOB"),
        (&["trigger", "report", "sweep"], "sweep"),
        (&["trigger", "a b"], "`a b` can't be a job's name"),
        (&["trigger", "report", "--timeout", "5s"], "--wait"),
        (
            &["trigger", "report", "--wait", "--timeout", "5"],
            "did you mean `5s`?",
        ),
        (&["kill", "report", "--by", ""], "--by"),
        (&["kill", "report", "--by", "a\u{1b}b"], "U+001B"),
        (&["kill", "report", "--by", &long], "more than 100"),
        (
            &["pause", "report", "--config", "none.toml"],
            "there is no such file",
        ),
    ];
    for (args, said) in cases {
        let ended = place.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}

#[test]
fn what_can_not_be_done_ends_with_1_and_a_cure() {
    let place = place();
    let cases: &[(&[&str], [&str; 2])] = &[
        (
            &["trigger", "reprot"],
            ["no job is called `reprot`", "did you mean `report`?"],
        ),
        (
            &["pause", "nothing-like-it"],
            ["no job is called", "`--config FILE`"],
        ),
        (&["trigger", "off"], ["`off` is disabled", "enabled = true"]),
        (&["kill", "report"], ["nothing of `report` runs", "history"]),
    ];
    for (args, parts) in cases {
        let ended = place.run(args);
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_job_that_nobody_has_is_one_for_those_who_look_back_as_well() {
    let place = place();
    for command in [&["history"][..], &["history", "--json"], &["logs"]] {
        let ended = place.run(&[command, &["reprot"]].concat());
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(1), ""),
            "{ended:?}"
        );
        for part in ["no job is called `reprot`", "did you mean `report`?"] {
            assert!(ended.stderr.contains(part), "{command:?}: {}", ended.stderr);
        }
        let ended = place.run(&[command, &["report"]].concat());
        assert!(!ended.stderr.contains("no job"), "{ended:?}");
    }
    assert_eq!(place.run(&["history", "report", "--json"]).stdout, "[]\n");
    assert_eq!(place.run(&["history", "report"]).code, Some(0));
    // It is in the ledger from then on, whatever this host's table says.
    assert_eq!(place.run(&["pause", "report"]).code, Some(0));
    let elsewhere = Place::empty();
    let store = format!("sqlite:{}", place.path("store.db").display());
    let ended = elsewhere.run(&["history", "report", "--store", &store]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_store_that_is_away_ends_with_3_after_a_few_seconds() {
    let place = place();
    for command in ["trigger", "pause", "resume", "kill"] {
        let ended = place.run(&[command, "report", "--store", "redis://127.0.0.1:1"]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("can't be reached"), "{ended:?}");
        // Nobody listens there, so that nothing was sent.
        let certain = "= help: it was not written down: give the order again";
        assert!(ended.stderr.contains(certain), "{ended:?}");
    }
}

#[test]
fn who_asks_is_the_user_at_this_host_unless_it_is_said() {
    let place = place();
    let by = |args: &[&str], env: &[(&str, &str)]| {
        let ended = place.run_with(&[&["trigger", "report", "--json"], args].concat(), env);
        let told: Value = serde_json::from_str(done(&ended)).expect("JSON");
        told["by"].as_str().expect("a text").to_owned()
    };
    let own = by(&[], &[]);
    let (user, host) = own.split_once('@').expect("user and host");
    assert!(!user.is_empty() && !host.is_empty(), "{own}");
    assert_eq!(by(&["--by", "the deploy"], &[]), "the deploy");
    if rustix::process::geteuid().is_root() {
        let person = by(&[], &[("SUDO_USER", "alice")]);
        assert_eq!(person, format!("alice@{host} (sudo)"));
    }
}

#[test]
fn a_trigger_before_any_replica_came_is_written_down_and_waits() {
    let place = place();
    let ended = place.run(&["trigger", "report", "--by", "alice"]);
    let told = done(&ended);
    assert!(
        told.starts_with("report: triggered as the occurrence of 2"),
        "{told}"
    );
    assert!(
        told.contains("waits for a replica: none is alive"),
        "{told}"
    );
    let ended = place.run(&["trigger", "sweep", "--json"]);
    let told: Value = serde_json::from_str(done(&ended)).expect("JSON");
    assert_eq!(
        told["note"], "waits for a replica: none is alive",
        "{told:#}"
    );
    // Whoever has no table finds the job in the ledger by now.
    let ended = Place::empty().run(&[
        "trigger",
        "report",
        "--store",
        &format!("sqlite:{}", place.path("store.db").display()),
    ]);
    done(&ended);
    let job = status_of(&place, "report");
    let waiting = job["waiting"].as_array().expect("what waits");
    assert_eq!(waiting.len(), 2, "{job:#}");
    assert_eq!(waiting[0]["by"], "alice", "{job:#}");
}

#[test]
fn a_kill_says_how_many_that_waited_it_withdrew() {
    let place = place();
    let trigger = || {
        let ended = place.run(&["trigger", "report", "--json"]);
        let told: Value = serde_json::from_str(done(&ended)).expect("JSON");
        told["scheduled_at"].as_str().expect("a text").to_owned()
    };
    let first = trigger();
    trigger();
    let ended = place.run(&["kill", "report"]);
    let told = done(&ended);
    let says = format!(
        "2 occurrences that waited for their turn are cancelled, the first of them that of {first};"
    );
    assert!(told.contains(&says), "{told}");
    trigger();
    trigger();
    let ended = place.run(&["kill", "report", "--json"]);
    let told: Value = serde_json::from_str(done(&ended)).expect("JSON");
    assert_eq!(
        (&told["withdrawn"], &told["running"]),
        (&2.into(), &0.into())
    );
    trigger();
    let ended = place.run(&["kill", "report"]);
    assert!(done(&ended).contains("ran nowhere at the moment and is cancelled"));
}

#[test]
fn a_pause_is_kept_and_told_until_its_end() {
    let place = place();
    let ended = place.run(&["pause", "report", "sweep", "report", "--by", "alice"]);
    assert_eq!(done(&ended).lines().count(), 2, "{ended:?}");
    let job = status_of(&place, "sweep");
    assert_eq!(job["state"], "paused", "{job:#}");
    assert_eq!(job["paused"]["by"], "alice", "{job:#}");
    let ended = place.run(&["pause", "sweep", "--by", "bob"]);
    let told = done(&ended);
    assert!(
        told.contains("was paused already") && told.contains("by alice"),
        "{told}"
    );
    let ended = place.run(&["resume", "sweep", "reprot"]);
    assert_eq!(ended.code, Some(1), "one of two is unknown: {ended:?}");
    assert!(ended.stdout.contains("sweep: resumed"), "{ended:?}");
    let ended = place.run(&["resume", "sweep"]);
    assert!(done(&ended).contains("was not paused"), "{ended:?}");
    assert_eq!(status_of(&place, "sweep")["state"], "never_ran");
    assert_eq!(status_of(&place, "report")["state"], "paused");
}

#[test]
fn a_wait_without_replicas_says_so_and_ends_with_its_time() {
    let args = ["trigger", "report", "--wait", "--timeout", "10ms"];
    let ended = place().run(&args);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("was not over in time, and goes on"),
        "{ended:?}"
    );
}

#[test]
fn an_interrupt_stops_the_wait_and_says_that_the_job_goes_on() {
    let place = place();
    let mut command: Command = place.command(&["trigger", "report", "--wait"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = {
        let stdout = child.stdout.take().expect("a pipe");
        std::io::BufRead::lines(std::io::BufReader::new(stdout))
    };
    let told = lines.find(|line| {
        let line = line.as_ref().expect("a line");
        line.contains("waits for a replica: none is alive")
    });
    assert!(told.is_some(), "it ended before it waited");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("stopped waiting, and nothing else"),
        "{stderr}"
    );
}
