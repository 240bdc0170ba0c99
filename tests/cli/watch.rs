//! `status --watch`: on a terminal, into a pipe, and while the store is away.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::redis::RedisServer;

use crate::soloist::Place;
use crate::terminal::{Terminal, ended};

fn table(jobs: usize) -> String {
    let job = |number| format!("[jobs.job-{number}]\nschedule = \"@daily\"\nshell = \"x\"\n");
    (0..jobs).map(job).collect()
}

fn piped(mut command: Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary");
    let stdout = child.stdout.take().expect("a pipe");
    (child, BufReader::new(stdout))
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
    kill_process(pid, Signal::INT).expect("a signal");
}

#[test]
fn frames_come_below_each_other_where_nobody_looks_at_a_terminal() {
    let place = Place::with_table(table(1));
    let began = Instant::now();
    let command = place.command(&["status", "--watch", "1", "--store", "memory:"]);
    let (mut child, stdout) = piped(command);
    let mut lines = stdout.lines().map(|line| line.expect("a line"));
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("memory: at "))
    );
    let separators = lines.by_ref().filter(|line| line == "---").take(2).count();
    assert_eq!(separators, 2);
    let passed = began.elapsed();
    assert!(passed >= Duration::from_secs(2), "no faster: {passed:?}");
    interrupt(&child);
    assert_eq!(ended(&mut child).code(), Some(0));
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_at_once() {
    let place = Place::with_table(table(1));
    let command = place.command(&["status", "--watch", "3600", "--store", "memory:"]);
    let (mut child, mut stdout) = piped(command);
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    drop(stdout);
    assert_eq!(ended(&mut child).code(), Some(0));
}

#[test]
fn a_document_of_json_is_a_line_also_while_the_store_is_away() {
    let mut server = RedisServer::start();
    let place = Place::with_table(table(2));
    let command = place.command(&["status", "--json", "--watch=1", "--store", &server.url()]);
    let (mut child, stdout) = piped(command);
    let documents = stdout.lines().map(|line| line.expect("a line"));
    let mut documents = documents.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
    let first = documents.next().expect("a document");
    assert_eq!(first["jobs"].as_array().map(Vec::len), Some(2), "{first}");
    server.kill();
    let away = documents.find(|one| one["error"].is_string());
    let away = away.expect("an error");
    assert!(
        away["now"].is_string() && away["store"].is_string(),
        "{away}"
    );
    server.restart();
    let back = documents.find(|one| one["jobs"].is_array());
    assert!(back.is_some_and(|back| back["error"].is_null()));
    interrupt(&child);
    assert_eq!(ended(&mut child).code(), Some(0));
}

#[test]
fn a_terminal_shows_one_frame_that_fits_and_what_became_of_the_store() {
    const MORE: &str = " more lines";
    const ALL: &str = "job-19 ";
    let mut server = RedisServer::start();
    let place = Place::with_table(table(20));
    let command = place.command(&["status", "--watch", "1", "--store", &server.url()]);
    let mut terminal = Terminal::run(&command, 10, 40);

    let frame = terminal.wait_for("frame", |frame| frame.contains(MORE));
    assert_eq!(frame.len(), 9, "a row is the cursor's: {frame:#?}");
    assert!(frame[0].starts_with("redis://"), "{frame:#?}");
    let widest = frame.iter().map(|line| line.chars().count()).max();
    assert!(widest <= Some(40), "{frame:#?}");

    terminal.resize(60, 200);
    let frame = terminal.wait_for("larger frame", |frame| frame.contains(ALL));
    assert!(!frame.iter().any(|line| line.contains(MORE)), "{frame:#?}");

    server.kill();
    let frame = terminal.wait_for("error", |frame| frame.starts_with("! "));
    let frame = frame.join("\n");
    assert!(frame.contains("! asked again every 1s"), "{frame}");
    assert!(frame.contains("! what follows was seen at 20"), "{frame}");
    assert!(
        frame.contains(ALL),
        "what was known is still there: {frame}"
    );
    server.restart();
    terminal.wait_for("store", |frame| {
        frame.starts_with("redis://") && frame.contains(ALL)
    });

    terminal.type_in(b"\x03");
    assert_eq!(terminal.wait().code(), Some(0));
}

#[test]
fn nobody_asks_more_often_than_each_second() {
    let place = Place::with_table(table(1));
    for seconds in ["0", "0.5", "-1", "soon"] {
        let watch = format!("--watch={seconds}");
        let ended = place.run(&["status", &watch]);
        assert_eq!(ended.code, Some(2), "{seconds}: {}", ended.stdout);
        assert!(ended.stderr.contains("--watch"), "{}", ended.stderr);
        let allowed = "whole seconds, from 1 to 86400";
        assert!(ended.stderr.contains(allowed), "{}", ended.stderr);
    }
}

#[test]
fn a_url_that_makes_no_sense_is_told_and_not_watched() {
    let place = Place::with_table(table(1));
    let ended = place.run(&["status", "--watch", "--store", "rdis://h"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("redis"), "{}", ended.stderr);
}
