//! What `check` and `run` say of users and groups that a job can't be run as here.

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
