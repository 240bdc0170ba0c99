//! What a job finds around it: of the daemon's environment what the table names, and whom it runs
//! as; what `check` and `run` say where that can't be had here. And whom the API lets in.

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

#[test]
fn check_reads_the_tokens_that_a_replica_would_and_shows_none() {
    const TOKEN: &str = "S3CRET-0123456789abcdef0123456789abcdef";
    let table =
        "[scheduler]\napi_tokens = \"tokens\"\n[jobs.a]\nschedule = \"@daily\"\nshell = \"x\"\n";
    let place = Place::with_table(table);
    let file = place.path("tokens");
    let check = |text: Option<&str>, mode: u32| {
        let _ = std::fs::remove_file(&file);
        if let Some(text) = text {
            std::fs::write(&file, text).expect("written");
            set_permissions(&file, Permissions::from_mode(mode)).expect("set");
        }
        let ended = place.run(&["check"]);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!told.contains("S3CRET"), "{told}");
        (ended.code, ended.stderr)
    };
    let right = format!("# who\nread grafana {TOKEN}\n");
    assert_eq!(check(Some(&right), 0o640), (Some(0), String::new()));
    let wrong = format!("# who\nadmin deploy {TOKEN}\n");
    let (code, told) = check(Some(&wrong), 0o640);
    assert_eq!(
        (code, told.as_str()),
        (
            Some(2),
            "error: the tokens in `tokens` can't be used: line 2: its first word is no role\n  = help: a line is `read NAME TOKEN` or `operator NAME TOKEN`\n"
        )
    );
    let (code, told) = check(Some(&right), 0o644);
    assert_eq!(code, Some(2), "{told}");
    assert!(
        told.contains("(mode 0644)") && told.contains("`chmod 640`"),
        "{told}"
    );
    // Whoever checks a table may be on another host, or not the daemon's user.
    let (code, told) = check(None, 0);
    assert_eq!(code, Some(0), "{told}");
    let absent = "warning: the tokens in `tokens` can't be used: No such file";
    assert!(told.starts_with(absent), "{told}");
    assert!(
        told.contains("= help: the file must be there and readable"),
        "{told}"
    );
    assert!(
        told.contains("; once it is to listen, `soloist run` by"),
        "{told}"
    );
    let listens = table.replace("\n[jobs", "\nlisten = \"127.0.0.1:0\"\n[jobs");
    std::fs::write(place.path("jobs.toml"), listens).expect("written");
    let (code, told) = check(None, 0);
    let refuses = "; `soloist run` by this user on this host refuses to start with it\n";
    assert!(code == Some(0) && told.contains(refuses), "{told}");
    // And so it does.
    let ended = place.run(&["run", "--store", "memory:"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("the tokens in `tokens`"), "{ended:?}");
}
