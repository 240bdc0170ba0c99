//! The jobs that run while faults strike: short and long, of every kind that a fault could harm.
//!
//! Must never: have a job that can't run on the second: every figure counts from due seconds.

use std::fmt::Write as _;
use std::time::Duration;

/// How long a lease lasts.
pub(crate) const TTL: Duration = Duration::from_secs(3);

/// How long new starts are held back after a failover or a loss of data: a lease, and the longest
/// that a call may take.
pub(crate) const GRACE: Duration = Duration::from_millis(3300);

/// A job; there are two of each, one that runs again after a crash and one that doesn't.
pub(crate) struct Kind {
    name: &'static str,
    /// Due each so many seconds of the clock, which divide a minute.
    pub(crate) period_s: i64,
    millis: u32,
    catch_up: &'static str,
    /// TERM doesn't end it: it runs for as long as it is let.
    stubborn: bool,
}

/// Short ones, one that makes up for all it missed, and those that run for longer than their
/// period and than a lease, one of which only KILL ends.
pub(crate) const KINDS: [Kind; 6] = [
    Kind::new("second", 1, 40),
    Kind::new("third", 3, 40),
    Kind::new("slow", 2, 300),
    Kind {
        catch_up: "all",
        ..Kind::new("all", 1, 40)
    },
    Kind::new("long", 1, 1500),
    Kind {
        stubborn: true,
        ..Kind::new("held", 2, 4500)
    },
];

impl Kind {
    const fn new(name: &'static str, period_s: i64, millis: u32) -> Self {
        Self {
            name,
            period_s,
            millis,
            catch_up: "latest",
            stubborn: false,
        }
    }

    /// What the job of this kind is called that does so after a crash.
    pub(crate) fn job(&self, on_crash: &str) -> String {
        format!("{}-{on_crash}", self.name)
    }
}

/// A name, and how many seconds are between two instants.
pub(crate) fn jobs() -> impl Iterator<Item = (String, i64)> {
    KINDS.iter().flat_map(|kind| {
        let named = |on_crash| (kind.job(on_crash), kind.period_s);
        [RERUN, SKIP].map(named)
    })
}

pub(crate) const RERUN: &str = "rerun";
pub(crate) const SKIP: &str = "skip";

/// Whether it is started at most once.
pub(crate) fn at_most_once(job: &str) -> bool {
    job.ends_with(SKIP)
}

/// What a fleet is given.
pub(crate) fn table(scheduler: &str) -> String {
    let start = format!(
        "[scheduler]\nlease_ttl = \"3s\"\n{scheduler}\n\n[defaults]\nkill_grace = \"300ms\"\n\n"
    );
    KINDS.iter().fold(start, |mut text, kind| {
        for on_crash in [RERUN, SKIP] {
            let probe = format!("PROBE, \"{}\", \"alone\"", kind.millis);
            let command = match kind.stubborn {
                true => {
                    format!("\"sh\", \"-c\", \"trap '' TERM; exec \\\"$@\\\"\", \"sh\", {probe}")
                }
                false => probe,
            };
            let _ = writeln!(
                text,
                "[jobs.{}]\nschedule = \"*/{} * * * * *\"\ncommand = [{command}]\n\
                 on_crash = \"{on_crash}\"\ncatch_up = \"{}\"\n",
                kind.job(on_crash),
                kind.period_s,
                kind.catch_up
            );
        }
        text
    })
}
