//! What jobs wrote down of themselves, line by line, and the runs that come of it.
//!
//! Must never: guess: a run that wrote no end has none, and lived as long as it said so.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scheduler::time::Timestamp;

/// A line of a job's file: the id of the run, and the moment in microseconds since the host's
/// boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first of a run.
    Start(String, u64, Started),
    /// It lives.
    Alive(String, u64),
    /// It has done all that it was to do.
    End(String, u64),
}

/// What a run knows of itself when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Started {
    /// The occurrence, as the job was given it.
    pub(super) scheduled_at: String,
    /// Its number.
    pub(super) attempt: u32,
    /// Its fencing token.
    pub(super) token: u64,
    /// The replica that started it.
    pub(super) replica: String,
    /// Its process.
    pub(super) pid: u32,
    /// Another run of the same job lived at that moment.
    pub(super) met: bool,
}

/// One run of a job: an attempt, or what a plain lock let start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Whose.
    pub(super) job: String,
    /// Of which occurrence.
    pub(super) scheduled_at: Timestamp,
    /// Its number.
    pub(super) attempt: u32,
    /// Its fencing token; 0 of a plain lock, which has none.
    pub(super) token: u64,
    /// Who started it.
    pub(super) replica: String,
    /// Its first moment, since the host's boot.
    pub(super) started: Duration,
    /// The last moment at which it said that it lives.
    pub(super) last: Duration,
    /// It came to its end.
    pub(super) ended: bool,
    /// It met another one that lived.
    pub(super) met: bool,
}

/// The runs in a job's file, and how many of its lines make no sense.
pub(super) fn read(job: &str, text: &str) -> (Vec<Run>, usize) {
    let mut runs: Vec<Run> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut senseless = 0;
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Start(id, at, started)) => match run(job, at, &started) {
                Some(run) => {
                    // The same attempt twice is two runs: the newer one is written to from now on.
                    by_id.insert(id, runs.len());
                    runs.push(run);
                }
                None => senseless += 1,
            },
            Ok(Line::Alive(id, at) | Line::End(id, at)) if !by_id.contains_key(&id) => {
                let _ = at;
                senseless += 1;
            }
            Ok(Line::Alive(id, at)) => runs[by_id[&id]].last = Duration::from_micros(at),
            Ok(Line::End(id, at)) => {
                let run = &mut runs[by_id[&id]];
                (run.last, run.ended) = (Duration::from_micros(at), true);
            }
            Err(_) => senseless += 1,
        }
    }
    (runs, senseless)
}

fn run(job: &str, at: u64, started: &Started) -> Option<Run> {
    let scheduled_at: jiff::Timestamp = started.scheduled_at.parse().ok()?;
    let at = Duration::from_micros(at);
    Some(Run {
        job: job.to_owned(),
        scheduled_at: scheduled_at.into(),
        attempt: started.attempt,
        token: started.token,
        replica: started.replica.clone(),
        started: at,
        last: at,
        ended: false,
        met: started.met,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(lines: &[Line]) -> String {
        let lines = lines
            .iter()
            .map(|line| serde_json::to_string(line).unwrap());
        lines.map(|line| line + "\n").collect()
    }

    fn start(id: &str, at: u64) -> Line {
        let started = Started {
            scheduled_at: "2026-11-20T22:00:00Z".to_owned(),
            attempt: 1,
            token: 9,
            replica: "verify-1".to_owned(),
            pid: 7,
            met: false,
        };
        Line::Start(id.to_owned(), at, started)
    }

    #[test]
    fn a_run_lives_from_its_first_line_to_its_last() {
        let lines = [
            start("a", 1_000_000),
            start("b", 1_500_000),
            Line::Alive("a".to_owned(), 2_000_000),
            Line::End("b".to_owned(), 1_600_000),
        ];
        let (runs, senseless) = read("long", &written(&lines));
        assert_eq!(senseless, 0);
        assert_eq!(runs.len(), 2);
        assert_eq!(
            (runs[0].last, runs[0].ended),
            (Duration::from_secs(2), false)
        );
        assert_eq!(
            (runs[1].last, runs[1].ended),
            (Duration::from_millis(1600), true)
        );
    }

    #[test]
    fn the_same_attempt_started_twice_is_two_runs() {
        let (runs, _) = read("x", &written(&[start("a", 1), start("a", 2)]));
        assert_eq!(runs.len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_counted() {
        let text = written(&[Line::End("nobody".to_owned(), 1)]) + "{\"start\":[\"a\"\n";
        assert_eq!(read("x", &text), (vec![], 2));
    }
}
