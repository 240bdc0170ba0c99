//! What `soloist lock` tells people: who has what it waits for and where, that the store is away, and
//! of what a lease was lost.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_support::machine::while_it_runs;
use test_support::redis::RedisServer;

use crate::scene::{Scene, code, ends, signals, stderr};

/// Runs until it is told to end by a file, or for too long.
fn until(name: &str) -> String {
    format!(
        "all=$(seq 2000); echo $$ > {name}.pid; for i in $all; do test -e {name}.end && exit 0; sleep 0.02; done; exit 9"
    )
}

fn holder(scene: &Scene, name: &str, ttl: &str) -> Child {
    scene.starts(&["a", "--ttl", ttl, "--", "sh", "-c", &until(name)])
}

fn end(scene: &Scene, name: &str) {
    fs::write(scene.file(&format!("{name}.end")), "").expect("room");
}

fn own_name(child: &Child) -> String {
    let host = rustix::system::uname();
    format!("{}:{}", host.nodename().to_string_lossy(), child.id())
}

fn told(child: &mut Child) -> BufReader<ChildStderr> {
    BufReader::new(child.stderr.take().expect("a pipe"))
}

fn next(told: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    told.read_line(&mut line).expect("it can be read");
    line
}

/// The next line that is no log.
fn next_note(told: &mut BufReader<ChildStderr>) -> String {
    loop {
        let line = next(told);
        if line.is_empty() || line.starts_with("note: ") || line.starts_with("error: ") {
            return line;
        }
    }
}

#[test]
fn who_waits_is_told_once_who_has_it_and_where_and_again_when_that_changes() {
    let server = RedisServer::shared();
    let scene = Scene::of(server);
    let first = holder(&scene, "first", "15s");
    scene.waits_for("first.pid");
    let second = holder(&scene, "second", "15s");
    let before_second = own_name(&second);
    // Not in line behind the other before that is.
    scene.lists("waits");
    let begun = Instant::now();
    let mut waiting = scene.starts(&["a", "--", "true"]);
    let mut lines = told(&mut waiting);
    let line = next(&mut lines);
    assert!(begun.elapsed() >= Duration::from_secs(1), "at once: {line}");
    let place = format!(
        "in namespace `{}` at redis://127.0.0.1:{}/0",
        scene.namespace,
        server.port()
    );
    let expected = format!(
        "note: waiting for `a` {place}: `a` is {}'s, another one came first\n",
        own_name(&first)
    );
    assert_eq!(line, expected);
    let quiet = scene.starts(&["a", "-q", "--", "true"]);
    end(&scene, "first");
    ends(first);
    scene.waits_for("second.pid");
    let line = next(&mut lines);
    let expected = format!("note: waiting for `a` {place}: `a` is {before_second}'s\n");
    assert_eq!(line, expected);
    end(&scene, "second");
    ends(second);
    assert_eq!(next(&mut lines), "", "that is all");
    assert_eq!(code(&ends(waiting)), Some(0));
    assert_eq!(stderr(&ends(quiet)), "", "not when it is to be quiet");
}

#[test]
fn a_store_that_is_away_is_told_while_its_command_runs_and_that_it_is_back() {
    let server = RedisServer::start();
    let scene = Scene::of(&server);
    let mut running = holder(&scene, "first", "15s");
    scene.waits_for("first.pid");
    let mut lines = told(&mut running);
    server.freeze();
    let line = next_note(&mut lines);
    assert!(line.contains("can't be reached: no answer"), "{line}");
    assert!(
        line.contains("is ended before the lease of `a` runs out"),
        "{line}"
    );
    server.thaw();
    let line = next_note(&mut lines);
    assert_eq!(
        line,
        "note: the store answers again: the lease of `a` is kept\n"
    );
    end(&scene, "first");
    assert_eq!(next_note(&mut lines), "", "that is all");
    assert_eq!(code(&ends(running)), Some(0));
}

#[test]
fn a_store_that_is_away_is_told_to_who_waits() {
    let server = RedisServer::start();
    let scene = Scene::of(&server);
    let first = holder(&scene, "first", "15s");
    scene.waits_for("first.pid");
    let mut waiting = scene.starts(&["a", "-w", "20s", "--", "true"]);
    let mut lines = told(&mut waiting);
    assert!(next_note(&mut lines).contains("`a` is"));
    server.freeze();
    let line = next_note(&mut lines);
    assert!(
        line.starts_with("note: waiting for `a` in namespace"),
        "{line}"
    );
    assert!(line.contains("can't be reached: "), "{line}");
    server.thaw();
    end(&scene, "first");
    ends(first);
    assert_eq!(code(&ends(waiting)), Some(0));
}

#[test]
fn who_does_not_wait_is_told_where_it_is_busy_or_nothing_at_all() {
    let scene = Scene::new();
    let first = holder(&scene, "first", "15s");
    scene.waits_for("first.pid");
    let place = format!("in namespace `{}` at redis://", scene.namespace);
    for words in [
        &["-n"][..],
        &["--nonblock"],
        &["--nb"],
        &["-w", "0s"],
        &["-w", "50ms"],
    ] {
        let words = [&["a"], words, &["--", "true"]].concat();
        let busy = scene.runs(&words);
        assert_eq!(code(&busy), Some(1));
        let told = stderr(&busy);
        let expected = format!("error: not run: `a` is {}'s", own_name(&first));
        assert!(
            told.starts_with(&expected) && told.contains(&place),
            "{told}"
        );
    }
    let busy = scene.runs(&["a", "-nqE", "75", "--", "true"]);
    assert_eq!((code(&busy), stderr(&busy)), (Some(75), String::new()));
    let both = scene.runs(&["a", "-n", "-w", "5s", "--", "true"]);
    assert_eq!(code(&both), Some(2));
    end(&scene, "first");
    ends(first);
}

#[test]
fn a_lease_that_was_lost_is_told_with_its_cause() {
    let lost = "error: the lease was lost while the command ran, in namespace `";
    // The store is away.
    let server = RedisServer::start();
    let scene = Scene::of(&server);
    let holder_of = |name: &str| {
        let holder = holder(&scene, name, "3s");
        scene.waits_for(&format!("{name}.pid"));
        holder
    };
    let away = holder_of("away");
    server.freeze();
    let away = ends(away);
    server.thaw();
    let told = stderr(&away);
    assert!(
        told.contains(lost) && told.contains(&scene.namespace),
        "{told}"
    );
    assert!(told.contains(": it was last renewed "), "{told}");
    assert!(
        told.contains("can't be reached: no answer within"),
        "{told}"
    );
    // Its data were lost.
    let key = format!("soloist:{{{}}}:leases:jobs", scene.namespace);
    let forgotten = holder_of("forgotten");
    assert_eq!(server.command(&["HDEL", &key, "a"]), "1");
    let told = stderr(&ends(forgotten));
    assert!(
        told.contains(lost) && told.contains("nobody has it now: its data were lost"),
        "{told}"
    );
    // So that somebody else was granted it.
    let words = ["a", "--ttl", "12s", "--", "sh", "-c", &until("robbed")];
    let robbed = scene.starts(&words);
    scene.waits_for("robbed.pid");
    assert_eq!(server.command(&["HDEL", &key, "a"]), "1");
    let thief = scene.starts(&["a", "-n", "--", "sh", "-c", &until("thief")]);
    scene.waits_for("thief.pid");
    let told = stderr(&ends(robbed));
    let whose = format!("`a` is {}'s now", own_name(&thief));
    assert!(told.contains(lost) && told.contains(&whose), "{told}");
    end(&scene, "thief");
    assert_eq!(code(&ends(thief)), Some(0));
}

#[test]
fn a_reader_that_reads_nothing_costs_no_lease() {
    let server = RedisServer::start();
    while_it_runs(|| nobody_reads(&server));
}

fn nobody_reads(server: &RedisServer) -> Result<(), String> {
    let scene = Scene::of(server);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // Full, so that whoever writes waits.
    let mut full = scene.command(&["a", "--ttl", "2s", "--", "sh", "-c", &until("first")]);
    fill(&writer);
    let holder = full
        .stderr(Stdio::from(writer))
        .spawn()
        .expect("it can be run");
    scene.waits_for("first.pid");
    signals(&holder, Signal::TSTP);
    let begun = Instant::now();
    let (mut lost, mut busy) = (None, 0);
    while lost.is_none() && begun.elapsed() < Duration::from_secs(4) {
        let asked = scene.runs(&["a", "-n", "--", "true"]);
        match code(&asked) {
            Some(1) => busy += 1,
            // The server took its time.
            Some(3) => {}
            _ => lost = Some(asked),
        }
    }
    end(&scene, "first");
    let ended = code(&ends(holder));
    drop(reader);
    match (lost, ended) {
        (Some(asked), Some(0)) => panic!("two had it: {asked:?}"),
        (None, Some(0)) if busy > 0 => Ok(()),
        other => Err(format!("it was lost: {other:?}")),
    }
}

fn fill(writer: &std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let flags = fcntl_getfl(writer).expect("flags");
    fcntl_setfl(writer, flags | OFlags::NONBLOCK).expect("set");
    while rustix::io::write(writer, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(writer, b"x").is_ok() {}
    fcntl_setfl(writer, flags).expect("set back");
}
