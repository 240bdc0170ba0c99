//! What a job finds around it: of the daemon's environment what the table names, and whom it runs
//! as; what `check` and `run` say where that can't be had here.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::soloist::Place;

const TABLE: &str = "[defaults]\nuser = \"no-such-user\"\n[jobs.a]\nschedule = \"@daily\"\nshell = \"x\"\n[jobs.b]\nschedule = \"@daily\"\nshell = \"x\"\nuser = 0\ngroup = \"root\"\n[jobs.c]\nschedule = \"@daily\"\nshell = \"x\"\n";

const UNKNOWN: &str = "warning: there is no user `no-such-user` on this host\n --> jobs.toml:2:8";

#[test]
fn a_user_that_is_not_on_this_host_is_told_once_and_is_no_error() {
    let place = Place::with_table(TABLE);
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    let args = ["run", "--store", "redis://127.0.0.1:1", "--require-store"];
    let started = place.run(&args);
    assert_eq!(started.code, Some(3), "{}", started.stderr);
    for told in [&checked.stderr, &started.stderr] {
        assert_eq!(told.matches(UNKNOWN).count(), 1, "{told}");
        assert!(
            told.contains("attempts of this job fail to start here"),
            "{told}"
        );
    }
    let listed = &checked.stdout;
    assert!(
        listed.contains("  runs sh -c \"x\" as user no-such-user; no timeout\n"),
        "{listed}"
    );
    assert!(
        listed.contains("  runs sh -c \"x\" as user 0, group root; no timeout\n"),
        "{listed}"
    );
    let looking = place.run(&["status", "--store", "sqlite:store.db"]);
    assert_eq!(looking.stderr, "", "it runs nothing");
}

/// Run by somebody who isn't root, whoever runs this test.
fn as_nobody_much(place: &Place, args: &[&str]) -> Option<(Option<i32>, String)> {
    let mut command: Command = place.command(args);
    if rustix::process::geteuid().is_root() {
        set_permissions(place.path("."), Permissions::from_mode(0o755)).expect("its owner may");
        command.uid(61999).gid(61998);
    }
    let output = command.output();
    let Ok(output) = output else {
        eprintln!("!!! NOT SHOWN: the binary is not to be reached by other users: {output:?}");
        return None;
    };
    Some((
        output.status.code(),
        String::from_utf8(output.stderr).expect("UTF-8"),
    ))
}

#[test]
fn who_is_not_root_is_told_that_it_runs_jobs_as_nobody_else() {
    let place = Place::with_table(TABLE);
    let Some((code, told)) = as_nobody_much(&place, &["check"]) else {
        return;
    };
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(UNKNOWN), "{told}");
    for part in [
        "to run as user `0`, group `root` (uid 0, gid 0), soloist must run as root, not as uid ",
        "jobs.toml:9:8",
        "start soloist as root",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn a_variable_of_the_daemon_reaches_a_job_where_its_table_says_so() {
    let table = "[scheduler]\nstore = \"redis://:${REDIS_PASSWORD}@h\"\n[jobs.a]\nschedule = \"@manual\"\ncommand = [\"env\"]\nenv = { DATABASE_URL = \"${DATABASE_URL}\" }\n";
    let place = Place::with_table(table);
    let variables = [
        ("DATABASE_URL", "postgres://u:pw@db/shop"),
        ("REDIS_PASSWORD", "s3cr3t"),
        ("TOKEN", "s3cr3t"),
        ("LANG", "C.UTF-8"),
    ];
    let ended = place.run_with(&["run-once", "a", "--store", "memory:"], &variables);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for line in ["DATABASE_URL=postgres://u:pw@db/shop", "LANG=C.UTF-8"] {
        assert!(
            ended.stdout.lines().any(|found| found == line),
            "{line}\n{}",
            ended.stdout
        );
    }
    assert!(!ended.stdout.contains("s3cr3t"), "{}", ended.stdout);
    let looking = place.run(&["next", "a"]);
    assert_eq!(
        looking.code,
        Some(2),
        "the store's own is needed: {}",
        looking.stderr
    );
    let looking = place.run_with(&["next", "a"], &[("REDIS_PASSWORD", "s3cr3t")]);
    assert_eq!(looking.code, Some(0), "{}", looking.stderr);
}

/// Some parents leave SIGCHLD ignored, which a program inherits. The kernel then reaps children
/// itself, and how they ended is lost (wait(2)).
#[test]
fn how_a_job_ended_is_known_though_sigchld_was_ignored_at_the_start() {
    let place = Place::with_table(
        "[jobs.a]\nschedule = \"@manual\"\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n",
    );
    let soloist = place.command(&["run-once", "a", "--store", "memory:"]);
    // Not a shell: some don't let go of this one.
    let output = Command::new("perl")
        .args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV"])
        .arg(soloist.get_program())
        .args(soloist.get_args())
        .current_dir(place.path("."))
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}
