//! `soloist lock`: flock(1) across hosts.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use test_support::machine::while_it_runs;
use test_support::redis::RedisServer;

use crate::LONG;
use crate::scene::{Scene, code, ends, first_line, is_alive, pid, stderr, stdout};

#[test]
fn it_ends_as_its_command_does_and_passes_everything_on() {
    let scene = Scene::new();
    let mut command =
        scene.command(&["a", "--", "sh", "-c", "cat; echo \"$GREETING\" >&2; exit 7"]);
    let child = command
        .env("GREETING", "hello")
        .stdin(Stdio::piped())
        .spawn();
    let mut child = child.expect("it can be run");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"what it reads\n").expect("it reads");
    drop(stdin);
    let output = ends(child);
    assert_eq!(code(&output), Some(7));
    assert_eq!(stdout(&output), "what it reads\n");
    assert_eq!(stderr(&output), "hello\n", "its own words and nothing else");
    assert_eq!(code(&scene.runs(&["a", "--", "true"])), Some(0));
    assert_eq!(
        code(&scene.runs(&["a", "--", "sh", "-c", "kill -9 $$"])),
        Some(137)
    );
    assert_eq!(code(&scene.runs(&["a", "--", "nonesuch"])), Some(127));
    assert_eq!(code(&scene.runs(&["a", "--", "/etc/passwd"])), Some(126));
}

#[test]
fn one_after_the_other_and_who_does_not_wait_is_told_who_has_it() {
    let scene = Scene::new();
    let fifo = scene.file("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    let holder = scene.starts(&["a", "b", "--", "sh", "-c", "echo $$ > pid; cat fifo"]);
    scene.waits_for("pid");
    let busy = scene.runs(&["b", "--wait", "0s", "--", "touch", "wrong"]);
    assert_eq!(code(&busy), Some(1));
    let told = stderr(&busy);
    assert!(told.starts_with("error: not run: `b` is "), "{told}");
    let late = scene.runs(&["--wait", "100ms", "-E", "75", "a", "--", "touch", "wrong"]);
    assert_eq!(code(&late), Some(75), "{}", stderr(&late));
    let next = scene.starts(&["a", "--", "sh", "-c", "echo $SOLOIST_FENCING_TOKEN"]);
    let shared = scene.starts(&["--shared", "b", "--", "true"]);
    fs::write(&fifo, "go on").expect("somebody reads");
    assert_eq!(code(&ends(holder)), Some(0));
    let next = ends(next);
    assert!(stdout(&next).trim().parse::<u64>().is_ok(), "{next:?}");
    assert_eq!(code(&ends(shared)), Some(0));
    assert!(!scene.file("wrong").exists());
}

#[test]
fn those_who_share_run_together() {
    let scene = Scene::new();
    let each = |name: &str, other: &str| {
        let script = format!(
            "echo > {name}; for i in $(seq 2000); do test -e {other} && exit 0; sleep 0.01; done; exit 1"
        );
        scene.starts(&["-s", "a", "--", "sh", "-c", &script])
    };
    let (one, two) = (each("one", "two"), each("two", "one"));
    assert_eq!((code(&ends(one)), code(&ends(two))), (Some(0), Some(0)));
}

#[test]
fn below_itself_it_is_let_in_again_to_what_it_has_and_to_nothing_else() {
    let scene = Scene::new();
    let soloist = env!("CARGO_BIN_EXE_soloist");
    let lock = format!(
        "{soloist} --store {} --namespace {} lock",
        scene.url, scene.namespace
    );
    let script = format!(
        "outer=$SOLOIST_FENCING_TOKEN
         trap 'rm -f has' EXIT
         {lock} a -w 0s -- sh -c 'echo $SOLOIST_FENCING_TOKEN; {lock} b -w 0s -- true' > inner || exit 2
         test \"$(cat inner)\" = \"$outer\" || exit 3
         {lock} c -- {lock} c a -w 0s -- echo \"both of them\" || exit 4
         {lock} c -- sh -c 'echo > has; while test -e has; do sleep 0.01; done' &
         while ! test -e has; do sleep 0.01; done
         {lock} c -w 0s -- true && exit 5
         rm has; wait; echo done"
    );
    let output = scene.runs(&["a", "b", "--", "sh", "-c", &script]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "both of them\ndone\n");
}

#[test]
fn more_names_than_a_lease_has_are_told_apart_from_somebody_who_has_it() {
    let scene = Scene::new();
    let names: Vec<String> = (0..33).map(|number| format!("n{number}")).collect();
    let words = names.iter().map(String::as_str).chain(["--", "true"]);
    let output = scene.runs(&words.collect::<Vec<_>>());
    assert_eq!(code(&output), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 to 32 names"), "{output:?}");
}

#[test]
fn who_shares_a_name_with_nobody_else_has_it_alone_below_itself() {
    let scene = Scene::new();
    let lock = |namespace: &str| {
        let (soloist, url) = (env!("CARGO_BIN_EXE_soloist"), &scene.url);
        format!("{soloist} --store {url} --namespace {namespace} lock")
    };
    let script = r#"
        token='echo $SOLOIST_FENCING_TOKEN'
        echo $SOLOIST_FENCING_TOKEN > shared
        $LOCK a -w 0s -- sh -c "$token > alone; $LOCK a -w 0s -- sh -c '$token > again'" || exit 2
        test "$(cat alone)" -gt "$(cat shared)" || exit 3
        test "$(cat alone)" = "$(cat again)" || exit 4
        $LOCK a -- sh -c 'echo > has; while test -e has; do sleep 0.01; done' &
        while ! test -e has; do sleep 0.01; done
        $LOCK a -w 0s -- true && $LOCK -s a -w 0s -- true || exit 5
        rm has; wait
        $ELSEWHERE a -- sh -c 'echo > has; while test -e has; do sleep 0.01; done' &
        while ! test -e has; do sleep 0.01; done
        $ELSEWHERE a -w 0s -- true; code=$?
        rm has; wait
        test $code = 1 || exit 6"#;
    let mut command = scene.command(&["-s", "a", "--", "sh", "-c", script]);
    command.env("LOCK", lock(&scene.namespace));
    command.env("ELSEWHERE", lock(&format!("{}-elsewhere", scene.namespace)));
    let output = command.output().expect("it can be run");
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
}

#[test]
fn when_it_is_killed_its_command_is_dead_before_another_one_runs() {
    let scene = Scene::new();
    let words = [
        "a",
        "--ttl",
        "2s",
        "--",
        "sh",
        "-c",
        "trap '' TERM; echo $$ > pid; sleep 600",
    ];
    let mut holder = scene.starts(&words);
    let command = pid(&scene.waits_for("pid"));
    let next = scene.starts(&["a", "--ttl", "2s", "--", "sh", "-c", "cat pid"]);
    let killed = Instant::now();
    holder.kill().expect("it runs");
    holder.wait().expect("it is dead");
    while is_alive(command) {
        assert!(killed.elapsed() < LONG, "it outlives who ran it");
        sleep(Duration::from_millis(1));
    }
    println!(
        "its command was dead {:?} after it was killed",
        killed.elapsed()
    );
    assert!(!next.id().eq(&0));
    let output = ends(next);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    println!("another one had run {:?} after that", killed.elapsed());
}

#[test]
fn when_it_stands_still_its_command_is_dead_before_another_one_runs() {
    let scene = Scene::new();
    let words = [
        "a",
        "--ttl",
        "2s",
        "--",
        "sh",
        "-c",
        "trap '' TERM; echo $$ > pid; sleep 600",
    ];
    let holder = scene.starts(&words);
    let command = pid(&scene.waits_for("pid"));
    let frozen = Pid::from_child(&holder);
    kill_process(frozen, Signal::STOP).expect("it runs");
    let script = format!(
        "kill -0 {} 2>/dev/null && exit 9; true",
        command.as_raw_nonzero()
    );
    let next = scene.runs(&["a", "--ttl", "2s", "--", "sh", "-c", &script]);
    assert_eq!(code(&next), Some(0), "{}", stderr(&next));
    kill_process(frozen, Signal::CONT).expect("it is there");
    let output = ends(holder);
    assert_eq!(code(&output), Some(1), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(
        told.contains("the lease was lost") && told.contains("its host stood still"),
        "{told}"
    );
}

#[test]
fn a_command_whose_lease_is_being_lost_is_told_in_time_or_killed_as_asked() {
    while_it_runs(lose_leases);
}

fn lose_leases() -> Result<(), String> {
    for (how, said) in [("term", "TERM\n"), ("kill", "")] {
        let server = RedisServer::start();
        let scene = Scene::of(&server);
        let script = "trap 'echo TERM; exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done";
        let words = [
            "a",
            "--ttl",
            "3s",
            "--on-lost",
            how,
            "--",
            "sh",
            "-c",
            script,
        ];
        let holder = scene.starts(&words);
        let command = pid(&scene.waits_for("pid"));
        server.freeze();
        let begun = Instant::now();
        while is_alive(command) {
            assert!(begun.elapsed() < LONG, "it outlives its lease");
            sleep(Duration::from_millis(5));
        }
        server.thaw();
        let output = ends(holder);
        if how == "term" && stdout(&output).is_empty() {
            return Err(format!("killed before it was told: {output:?}"));
        }
        assert_eq!(stdout(&output), said);
        assert!(
            stderr(&output).contains("error: the lease was lost"),
            "{}",
            stderr(&output)
        );
        // Its own word that all went well doesn't count.
        assert_eq!(code(&output), Some(1), "{how}");
    }
    Ok(())
}

#[test]
fn told_to_stop_it_stops_its_command_and_while_it_waits_it_goes() {
    let scene = Scene::new();
    let script = "trap 'echo TERM; exit 3' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let holder = scene.starts(&["a", "--", "sh", "-c", script]);
    scene.waits_for("pid");
    let mut waiting = scene.starts(&["a", "--", "touch", "wrong"]);
    assert!(first_line(&mut waiting).starts_with("note: waiting"));
    kill_process(Pid::from_child(&waiting), Signal::TERM).expect("it waits");
    let gone = ends(waiting);
    assert_eq!(code(&gone), None);
    assert!(
        stderr(&gone).contains("stopped while it waited"),
        "{}",
        stderr(&gone)
    );
    kill_process(Pid::from_child(&holder), Signal::TERM).expect("it runs");
    let output = ends(holder);
    assert_eq!(
        (code(&output), stdout(&output)),
        (Some(3), "TERM\n".to_owned())
    );
    assert_eq!(code(&scene.runs(&["a", "-w", "0s", "--", "true"])), Some(0));
    assert!(!scene.file("wrong").exists());
}

#[test]
fn a_store_that_is_away_and_one_that_nobody_names_are_told() {
    let mut scene = Scene::new();
    scene.url = "redis://127.0.0.1:1".to_owned();
    let away = scene.runs(&["a", "--", "true"]);
    assert_eq!(code(&away), Some(3), "{}", stderr(&away));
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command
        .args(["lock", "a", "--", "true"])
        .current_dir(scene.dir.path());
    let nobody = command
        .env_remove("SOLOIST_STORE")
        .output()
        .expect("it can be run");
    assert_eq!(code(&nobody), Some(2));
    assert!(
        stderr(&nobody).contains("no store is named"),
        "{}",
        stderr(&nobody)
    );
    let mut table = fs::File::create(scene.file("jobs.toml")).expect("a table");
    let store = scene.file("leases.db");
    write!(
        table,
        "[scheduler]\nstore = \"sqlite:{}\"\n[jobs.a]\nschedule = \"@manual\"\nshell = \"true\"\n",
        store.display()
    )
    .expect("room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command
        .args(["lock", "a", "--", "echo", "by the table's"])
        .current_dir(scene.dir.path());
    let named = command
        .env_remove("SOLOIST_STORE")
        .output()
        .expect("it can be run");
    assert_eq!(stdout(&named), "by the table's\n", "{}", stderr(&named));
    let mut bytes = Vec::new();
    fs::File::open(store)
        .expect("it was made")
        .read_to_end(&mut bytes)
        .expect("it can be read");
    assert!(bytes.starts_with(b"SQLite"));
}
