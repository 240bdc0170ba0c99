//! A tiny job that writes down when it ran, and what it wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::c;

const SOURCE: &str = include_str!("probe.c");

/// The compiled probe: `probe LOG MILLIS`. It is compiled once per test process, by `cc`.
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
}

/// Reads what probes wrote, in the order of their starts. A missing file is an empty one.
///
/// # Panics
///
/// When there are lines that a probe didn't write.
pub fn runs(log: &Path) -> Vec<Run> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut runs: BTreeMap<(String, u64), Run> = BTreeMap::new();
    // The last line may be in the making.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    for line in whole.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
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
        };
        let twice = runs.insert(key, run);
        assert!(twice.is_none(), "one token ran twice: {line}");
    }
    let mut runs: Vec<Run> = runs.into_values().collect();
    runs.sort_by_key(|run| run.started_ns);
    runs
}
