//! What a job is given, whatever its daemon was started with.

use std::collections::BTreeSet;

use serde_json::Value;
use test_support::fleet::{Fleet, Replica};
use test_support::machine::together;

use crate::scene::{fleet, fresh_name, shell_job, wait_for_outcome};

/// Signals ignored and blocked, a descriptor open, a stdin to read, a variable of its own, and
/// fewer descriptors than there could be.
const ODD: &str = "trap '' HUP INT PIPE; exec 9</dev/null </dev/zero; ulimit -Sn 512; umask 027; \
                   DAEMON_ONLY=secret exec env --block-signal=USR1 \"$@\"";

/// Signals 32 and 33, which the C library keeps for its threads and lets nobody set. Its
/// posix_spawn(3) leaves them ignored, for all that come after.
const OF_THE_C_LIBRARY: u64 = 0b11 << 31;

fn start_oddly(fleet: &Fleet) -> Replica {
    fleet.start_by(&["sh", "-c", ODD, "odd"], &fresh_name())
}

fn printed(fleet: &Fleet, job: &str) -> String {
    let end: Value = wait_for_outcome(fleet, job, |_| true);
    assert_eq!(end["outcome"], "succeeded", "{end:#}");
    let at = end["scheduled_at"].as_str().expect("an instant");
    let output = fleet.look(&["logs", job, "--at", at]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the job saw of itself.
fn clean_slate(text: &str) {
    eprintln!("{text}");
    let lines: Vec<&str> = text.lines().collect();
    let with = |start: &str| -> Vec<&str> {
        let found = lines.iter().filter(|line| line.starts_with(start));
        found.copied().collect()
    };
    assert_eq!(with("blocked"), [""; 0], "signals are blocked");
    assert_eq!(with("not-default"), [""; 0], "signals are ignored");
    let descriptors = with("fd ");
    assert_eq!(descriptors.len(), 3, "{descriptors:?}");
    assert_eq!(descriptors[0], "fd 0 /dev/null");
    let streams = [descriptors[1], descriptors[2]]
        .map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned());
    assert_ne!(streams[0], streams[1], "stdout and stderr are two");
    let nofile = with("nofile ");
    assert!(nofile[0].starts_with("nofile 512 "), "{nofile:?}");
    assert_eq!(with("leads-"), ["leads-session 1", "leads-group 1"]);
    assert_eq!(
        with("umask"),
        ["umask 027"],
        "the daemon's, where the job says nothing"
    );
}

#[test]
fn a_job_is_given_a_clean_slate_by_a_daemon_that_had_none() {
    let _machine = together();
    let fleet = fleet(
        "",
        &[
            "[jobs.look]\nschedule = \"* * * * * *\"\ncommand = [FAMILY, \"look\"]\n".to_owned(),
            shell_job("status", "exec cat /proc/self/status", ""),
            shell_job("variables", "exec env", "env = { OWN = \"of the job\" }"),
        ],
    );
    let replica = start_oddly(&fleet);
    replica.wait_until_ready();
    clean_slate(&printed(&fleet, "look"));

    let status = printed(&fleet, "status");
    for mask in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
        let line = status.lines().find(|line| line.starts_with(mask));
        let value = line.and_then(|line| line.split_whitespace().nth(1));
        let value = u64::from_str_radix(value.expect("a mask"), 16).expect("hexadecimal");
        assert_eq!(value & !OF_THE_C_LIBRARY, 0, "{mask}, after a shell's exec");
    }

    let variables = printed(&fleet, "variables");
    let names: BTreeSet<&str> = variables
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    eprintln!("variables of a job: {names:?}");
    for name in [
        "PATH",
        "OWN",
        "SOLOIST_JOB",
        "SOLOIST_RUN_ID",
        "SOLOIST_FENCING_TOKEN",
    ] {
        assert!(names.contains(name), "no {name} in {names:?}");
    }
    assert!(!names.contains("DAEMON_ONLY"), "the environment is clean");
}

#[test]
fn a_daemon_that_was_started_oddly_drains_all_the_same() {
    let _machine = together();
    let fleet = fleet("", &[shell_job("tick", "echo", "")]);
    let mut replica = start_oddly(&fleet);
    wait_for_outcome(&fleet, "tick", |_| true);
    replica.drain();
}
