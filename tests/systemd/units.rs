//! The units, as systemd-analyze reads them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// From this version on systemd knows Type=notify-reload.
const KNOWS_RELOADS: u32 = 253;

/// What an older one says to that, and goes on with Type=notify.
const OLDER: &str = "Failed to parse service type, ignoring: notify-reload";

fn unit(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("deploy/systemd").join(name)
}

fn analyze(arguments: &[&str]) -> Output {
    let mut command = Command::new("systemd-analyze");
    command.arg("--no-pager").args(arguments).env("LC_ALL", "C");
    command
        .output()
        .expect("this test needs systemd-analyze: scripts/install-test-tools installs it")
}

fn version() -> u32 {
    let output = analyze(&["--version"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_ascii_whitespace().nth(1).expect("a version");
    number.parse().expect("a number")
}

/// What systemd finds wrong with a unit whose program is there.
fn complaints(name: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let text = fs::read_to_string(unit(name)).expect("a unit");
    let program = env!("CARGO_BIN_EXE_soloist");
    let text = text.replace("/usr/bin/soloist", program);
    let path = dir.path().join(name);
    fs::write(&path, text).expect("written");
    let output = analyze(&["--man=no", "verify", &path.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let own = said.lines().filter(|line| line.contains("soloist"));
    let own = own.filter(|line| version() >= KNOWS_RELOADS || !line.ends_with(OLDER));
    own.map(str::to_owned).collect()
}

/// The exposure that systemd-analyze reckons, from 0 to 10.
fn exposure(name: &str) -> f64 {
    let path = unit(name).display().to_string();
    let output = analyze(&["security", "--offline=true", &path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("Overall exposure"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    let (_, rest) = line.split_once(": ").expect(line);
    let number = rest.split_ascii_whitespace().next().expect(line);
    number.parse().expect(line)
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    for name in ["soloist.service", "soloist-root.service"] {
        assert_eq!(complaints(name), [""; 0], "{name}");
    }
}

#[test]
fn the_unit_without_root_is_exposed_by_less_than_two() {
    let score = exposure("soloist.service");
    println!("systemd-analyze security: soloist.service {score}");
    assert!(score < 2.0, "{score}");
    let root = exposure("soloist-root.service");
    println!("systemd-analyze security: soloist-root.service {root}");
    // Less would take from jobs what they run as root, or as others, for.
    assert!(root < 6.0, "{root}");
}

#[test]
fn jobs_may_do_to_themselves_what_programs_do_without_rights() {
    let text = fs::read_to_string(unit("soloist.service")).expect("a unit");
    let filters: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("SystemCallFilter="))
        .collect();
    // A later line goes over an earlier one (systemd.exec(5)), and these are part of @privileged.
    let of_privileged = filters.iter().position(|line| *line == "~@privileged");
    let given_back = filters.iter().position(|line| *line == "@chown @setuid");
    assert!(
        of_privileged.is_some() && of_privileged < given_back,
        "{filters:?}"
    );
}
