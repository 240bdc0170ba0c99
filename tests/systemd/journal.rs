//! What the journal is told: lines with a priority, without time and colour.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use test_support::fleet::{Fleet, SOON};

const TABLE: &str = "[scheduler]\nstore = \"memory:\"\n[jobs.says]\nschedule = \"@manual\"\n\
    shell = \"exit 3\"\n";

/// Runs the job with a file as the journal, and gives what is in it.
fn run(fleet: &Fleet, arguments: &[&str], stream: impl Fn(&Path) -> String) -> String {
    let path = fleet.dir().join("journal");
    let journal = File::create(&path).expect("a file");
    let stream = stream(&path);
    let mut command = fleet.command(arguments);
    command.env("JOURNAL_STREAM", stream).env("TERM", "xterm");
    command.stderr(journal).stdout(Stdio::null());
    command.status().expect("run");
    fs::read_to_string(path).expect("text")
}

fn own(path: &Path) -> String {
    let meta = fs::metadata(path).expect("a file");
    format!("{}:{}", meta.dev(), meta.ino())
}

fn fleet() -> Fleet {
    Fleet::new("memory:", TABLE)
}

#[test]
fn in_the_journal_every_line_has_its_priority_and_no_time() {
    let journal = run(&fleet(), &["run-once", "says"], own);
    // The log is written by a thread of its own: the last line of the command may come before.
    let mut lines: Vec<_> = journal.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{journal}");
    for (line, begins) in lines.iter().zip([
        "<3>ERROR attempt failed job=says",
        "<3>failed",
        "<6>INFO attempt started job=says",
    ]) {
        assert!(line.starts_with(begins), "{journal}");
    }
    assert!(!journal.contains('\u{1b}'), "{journal}");
}

#[test]
fn what_a_job_writes_can_give_itself_no_priority() {
    let table = "[jobs.says]\nschedule = \"* * * * * *\"\nshell = \"echo '<0>hello'\"\n";
    let fleet = Fleet::new("memory:", table);
    let path = fleet.dir().join("journal");
    let journal = File::create(&path).expect("a file");
    let mut command = fleet.command(&["run"]);
    command.env("JOURNAL_STREAM", own(&path)).stderr(journal);
    let mut daemon = command.stdout(Stdio::null()).spawn().expect("a daemon");
    let end = Instant::now() + SOON;
    let line = loop {
        let text = fs::read_to_string(&path).expect("text");
        if let Some(line) = text.lines().find(|line| line.contains("<0>hello")) {
            break line.to_owned();
        }
        assert!(Instant::now() < end, "{text}");
        // A file that others append to: there is nothing to wait on.
        std::thread::sleep(Duration::from_millis(5));
    };
    daemon.kill().expect("killed");
    daemon.wait().expect("ended");
    assert!(line.starts_with("<6>INFO "), "{line}");
}

#[test]
fn an_error_of_a_table_is_an_error_in_the_journal() {
    let fleet = Fleet::new("memory:", "[jobs.a]\nschedule = \"30 February\"\n");
    let journal = run(&fleet, &["run"], own);
    assert!(journal.starts_with("<3>error"), "{journal}");
    assert!(
        journal.lines().all(|line| line.starts_with("<3>")),
        "{journal}"
    );
}

#[test]
fn a_format_that_was_asked_for_and_another_file_than_the_journal_are_left_as_they_are() {
    // The last line of the command, which is no log, may come before any of the log.
    let begins = |written: &str, with: &str| {
        let mut lines = written.lines();
        let logged = lines.find(|line| line.contains("attempt started"));
        let logged = logged.unwrap_or_else(|| panic!("no line of a log: {written}"));
        assert!(logged.starts_with(with), "{written}");
    };
    let fleet = fleet();
    let text = run(&fleet, &["--log-format", "text", "run-once", "says"], own);
    begins(&text, "20");
    let json = run(&fleet, &["--log-format", "json", "run-once", "says"], own);
    begins(&json, "{");
    let elsewhere = run(&fleet, &["run-once", "says"], |_| "1:2".to_owned());
    begins(&elsewhere, "20");
}
