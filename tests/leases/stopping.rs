//! `soloist lock` and signals: which end it, which reach its command, and which do nothing.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use test_support::machine::while_it_runs;
use test_support::process::Process;
use test_support::redis::RedisServer;

use crate::LONG;
use crate::scene::{
    Scene, code, ends, first_line, hearing_signals, is_alive, pid, signals, stderr, stdout,
};

const STOPS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Says that it runs, and runs on for longer than anything here takes.
const RUNS_ON: &str = "all=$(seq 1200); echo $$ > pid; for i in $all; do sleep 0.05; done; exit 9";

fn ended_by(output: &Output) -> Option<i32> {
    output.status.signal()
}

fn is_free(scene: &Scene, name: &str) -> bool {
    code(&scene.runs(&[name, "-n", "--", "true"])) == Some(0)
}

#[test]
fn told_to_stop_it_gives_back_what_it_has_and_ends_by_that_signal() {
    for signal in STOPS {
        let scene = Scene::new();
        let holder = scene.starts(&["a", "--", "sh", "-c", RUNS_ON]);
        let command = pid(&scene.waits_for("pid"));
        signals(&holder, signal);
        let output = ends(holder);
        assert_eq!(ended_by(&output), Some(signal.as_raw()), "{output:?}");
        assert!(!output.status.core_dumped(), "it is no riddle");
        assert!(!is_alive(command), "{signal:?}: its command lives on");
        assert!(is_free(&scene, "a"), "{signal:?}: it was not given back");
        assert_eq!(stderr(&output), "", "the shell says enough");
    }
}

#[test]
fn told_to_stop_while_it_waits_it_gives_its_place_up_and_ends_by_that_signal() {
    let scene = Scene::new();
    let holder = scene.starts(&["a", "--", "sh", "-c", RUNS_ON]);
    scene.waits_for("pid");
    for signal in STOPS {
        let mut waiting = scene.starts(&["a", "--", "touch", "wrong"]);
        // It says so once it waits.
        let told = first_line(&mut waiting);
        assert!(told.starts_with("note: waiting for `a`"), "{told}");
        signals(&waiting, signal);
        let output = ends(waiting);
        assert_eq!(ended_by(&output), Some(signal.as_raw()), "{output:?}");
        let list = scene.runs(&["--list"]);
        assert_eq!(stdout(&list).lines().count(), 2, "{}", stdout(&list));
    }
    signals(&holder, Signal::TERM);
    ends(holder);
    assert!(!scene.file("wrong").exists());
}

#[test]
fn a_shell_ends_its_loop_at_ctrl_c() {
    let scene = Scene::new();
    let lock = format!(
        "{} --store {} --namespace {} lock",
        env!("CARGO_BIN_EXE_soloist"),
        scene.url,
        scene.namespace
    );
    let script = format!(
        "for h in one two; do {lock} $h -- sh -c \"echo $h > $h; sleep 600\"; done; echo > after"
    );
    // Only who ends by SIGINT itself has bash end its loop.
    let mut shell = hearing_signals("bash");
    shell.args(["-c", &script]).current_dir(scene.dir.path());
    let shell = shell.stderr(Stdio::null()).process_group(0).spawn();
    let shell = shell.expect("bash can be run");
    scene.waits_for("one");
    // What a terminal does at Ctrl-C.
    kill_process_group(Pid::from_child(&shell), Signal::INT).expect("they run");
    let output = ends(shell);
    assert_eq!(ended_by(&output), Some(Signal::INT.as_raw()), "{output:?}");
    assert!(!scene.file("two").exists() && !scene.file("after").exists());
}

#[test]
fn a_command_that_says_how_it_ended_is_believed() {
    for (ends_with, by, with) in [
        ("exit 3", None, Some(3)),
        ("exit 0", None, Some(0)),
        // So shells and the JVM say that TERM ended it.
        ("exit 143", Some(Signal::INT), None),
        ("kill -9 $$", Some(Signal::INT), None),
    ] {
        let scene = Scene::new();
        let script = format!("trap '{ends_with}' TERM; {RUNS_ON}");
        let holder = scene.starts(&["a", "--", "sh", "-c", &script]);
        scene.waits_for("pid");
        signals(&holder, Signal::INT);
        let output = ends(holder);
        assert_eq!(ended_by(&output), by.map(Signal::as_raw), "{ends_with}");
        assert_eq!(code(&output), with, "{ends_with}");
    }
}

#[test]
fn the_second_time_it_is_told_it_does_not_wait() {
    let scene = Scene::new();
    let script = format!("trap 'echo TERM > told' TERM; {RUNS_ON}");
    let holder = scene.starts(&["a", "--kill-grace", "10m", "--", "sh", "-c", &script]);
    scene.waits_for("pid");
    signals(&holder, Signal::INT);
    scene.waits_for("told");
    signals(&holder, Signal::INT);
    let output = ends(holder);
    assert_eq!(ended_by(&output), Some(Signal::INT.as_raw()), "{output:?}");
}

#[test]
fn what_is_meant_for_the_command_reaches_it_alone() {
    let scene = Scene::new();
    // A child that handles none of them would die of the first, and be reaped in the loop.
    let script =
        "for s in USR1 USR2 ALRM WINCH CONT; do trap \"kill -0 \\$child && echo $s\" $s; done
                  (trap - USR1 USR2 ALRM; exec sleep 600) & child=$!
                  trap 'exit 5' TERM
                  all=$(seq 500); echo $$ > pid; for i in $all; do sleep 0.02; done; exit 9";
    let mut holder = scene.starts(&["a", "--", "sh", "-c", script]);
    scene.waits_for("pid");
    let mut lines = BufReader::new(holder.stdout.take().expect("a pipe")).lines();
    let passed_on = [
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::ALARM, "ALRM"),
        (Signal::WINCH, "WINCH"),
        (Signal::CONT, "CONT"),
        (Signal::USR1, "USR1"),
    ];
    for (signal, name) in passed_on {
        signals(&holder, signal);
        let line = lines.next().expect("it says so").expect("it can be read");
        assert_eq!(line, name);
    }
    assert!(!is_free(&scene, "a"), "it has it still");
    signals(&holder, Signal::TERM);
    assert_eq!(code(&ends(holder)), Some(5));
}

#[test]
fn while_it_waits_what_is_meant_for_the_command_does_nothing() {
    let scene = Scene::new();
    let holder = scene.starts(&["a", "--", "sh", "-c", RUNS_ON]);
    scene.waits_for("pid");
    let mut waiting = scene.starts(&["a", "--", "echo", "has it"]);
    first_line(&mut waiting);
    for signal in [Signal::USR1, Signal::USR2, Signal::ALARM, Signal::WINCH] {
        signals(&waiting, signal);
    }
    signals(&holder, Signal::TERM);
    ends(holder);
    assert_eq!(stdout(&ends(waiting)), "has it\n");
}

#[test]
fn ctrl_z_stops_neither_and_the_lease_is_kept() {
    while_it_runs(stop_from_a_terminal);
}

fn stop_from_a_terminal() -> Result<(), String> {
    let server = RedisServer::shared();
    let scene = Scene::of(server);
    let mut holder = scene.starts(&["a", "--ttl", "3s", "--", "sh", "-c", RUNS_ON]);
    let command = pid(&scene.waits_for("pid"));
    let process = Process::of(i32::try_from(holder.id()).expect("a pid")).expect("it runs");
    for signal in [Signal::TTIN, Signal::TTOU, Signal::TSTP] {
        signals(&holder, signal);
    }
    // For longer than a lease lasts that nobody renews.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        assert_ne!(process.state(), Some('T'), "it stands still");
        sleep(Duration::from_millis(10));
    }
    let told = first_line(&mut holder);
    if !is_alive(command) || is_free(&scene, "a") {
        return Err(format!("it was lost: {told}"));
    }
    assert!(told.starts_with("note: not stopped"), "{told}");
    signals(&holder, Signal::INT);
    assert_eq!(ended_by(&ends(holder)), Some(Signal::INT.as_raw()));
    Ok(())
}

#[test]
fn what_it_was_started_to_ignore_it_ignores() {
    let scene = Scene::new();
    let script = format!(
        "trap '' HUP INT QUIT; exec {} --store {} --namespace {} lock a -- sh -c '{RUNS_ON}'",
        env!("CARGO_BIN_EXE_soloist"),
        scene.url,
        scene.namespace
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(scene.dir.path());
    let holder = shell.stderr(Stdio::piped()).spawn().expect("it can be run");
    let command = pid(&scene.waits_for("pid"));
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
        signals(&holder, signal);
    }
    // Signals are heard in no order; the command would be gone within this.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        assert!(is_alive(command), "it was stopped");
        sleep(Duration::from_millis(5));
    }
    let asked = Instant::now();
    signals(&holder, Signal::TERM);
    assert_eq!(ended_by(&ends(holder)), Some(Signal::TERM.as_raw()));
    assert!(asked.elapsed() < LONG);
}
