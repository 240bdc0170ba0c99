//! A tiny job that writes down when it ran, and what it wrote.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::c;

const SOURCE: &str = include_str!("probe.c");

/// The compiled probe: `probe LOG MILLIS [alone]`. It is compiled once per test process, by `cc`.
///
/// # Panics
///
/// When there is no C compiler.
pub fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| c::compile("probe", SOURCE))
}

/// One run of the probe.
#[derive(Clone, Debug)]
pub struct Run {
    /// The job.
    pub job: String,
    /// The occurrence, RFC 3339.
    pub scheduled_at: String,
    /// The attempt.
    pub attempt: u32,
    /// The fencing token.
    pub token: u64,
    /// The replica that ran it.
    pub replica: String,
    /// When it started, by the host's own clock, in nanoseconds since the epoch.
    pub started_ns: i128,
    /// When it ended; none where it was killed.
    pub ended_ns: Option<i128>,
    /// Another one of its job was alive when it started. Told by `probe LOG MILLIS alone`.
    pub beside: bool,
}

/// Reads what probes wrote, in the order of their starts. A missing file is an empty one.
///
/// # Panics
///
/// When there are lines that a probe didn't write, or one token ran twice.
pub fn runs(log: &Path) -> Vec<Run> {
    let (runs, twice) = runs_and_twice(log);
    assert!(twice.is_empty(), "one token ran twice: {twice:#?}");
    runs
}

/// The same, with the runs whose token another one of their job had before them: their ends are not
/// told apart.
///
/// # Panics
///
/// When there are lines that a probe didn't write.
#[must_use]
pub fn runs_and_twice(log: &Path) -> (Vec<Run>, Vec<Run>) {
    let mut again = Vec::new();
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut runs: BTreeMap<(String, u64), Run> = BTreeMap::new();
    // The last line may be in the making.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    for line in whole.lines() {
        let fields: Vec<&str> = line.trim_end().split(' ').collect();
        let [what, at, job, scheduled_at, attempt, token, replica] = fields[..] else {
            panic!("no line of a probe: {line}");
        };
        let at: i128 = at.parse().expect("nanoseconds");
        let token: u64 = token.parse().expect("a token");
        let key = (job.to_owned(), token);
        if what == "end" {
            runs.get_mut(&key).expect("a start before the end").ended_ns = Some(at);
            continue;
        }
        let run = Run {
            job: job.to_owned(),
            scheduled_at: scheduled_at.to_owned(),
            attempt: attempt.parse().expect("an attempt"),
            token,
            replica: replica.to_owned(),
            started_ns: at,
            ended_ns: None,
            beside: what == "beside",
        };
        match runs.entry(key) {
            Entry::Vacant(first) => drop(first.insert(run)),
            Entry::Occupied(_) => again.push(run),
        }
    }
    let mut runs: Vec<Run> = runs.into_values().collect();
    runs.sort_by_key(|run| run.started_ns);
    (runs, again)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn start(log: &Path, token: &str) -> Child {
        let mut command = Command::new(probe());
        command.arg(log).args(["60000", "alone"]);
        command.envs([("SOLOIST_JOB", "job"), ("SOLOIST_ATTEMPT", "1")]);
        command.env("SOLOIST_FENCING_TOKEN", token).spawn().unwrap()
    }

    fn wait_for(log: &Path, count: usize, beside: bool) {
        let end = std::time::Instant::now() + crate::fleet::SOON;
        let as_wanted = |runs: &[Run]| {
            let last = runs.last().is_some_and(|run| run.beside == beside);
            runs.len() == count && last
        };
        while !as_wanted(&runs(log)) {
            assert!(std::time::Instant::now() < end, "{:?}", runs(log));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_run_beside_another_is_told_and_one_after_a_killed_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut first = start(&log, "1");
        wait_for(&log, 1, false);
        let mut second = start(&log, "2");
        wait_for(&log, 2, true);
        for child in [&mut first, &mut second] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut third = start(&log, "3");
        wait_for(&log, 3, false);
        third.kill().unwrap();
        third.wait().unwrap();
    }
}
