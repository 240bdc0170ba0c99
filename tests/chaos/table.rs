//! The jobs that run under chaos: short and long, of every kind that a fault could harm.
//!
//! Must never: have a job that can't run on the second: due instants are counted from whole seconds.

use std::fmt::Write as _;
use std::time::Duration;

/// How long a lease lasts.
pub(crate) const TTL: Duration = Duration::from_secs(3);

/// How long new starts are held back after a restart or a loss of data: a lease, and the longest that
/// a call may take.
pub(crate) const GRACE: Duration = Duration::from_millis(3300);

/// How often an occurrence may be started, over all causes.
pub(crate) const MAX_ATTEMPTS: u32 = 5;

/// How a job is built around its probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    Plain,
    /// TERM doesn't end it: it runs for as long as it is let.
    Stubborn,
    /// The probe is a child in a session of its own, and its parent waits for it.
    Child,
}

/// A job; there are two of each, one that runs again after a crash and one that doesn't.
struct Kind {
    name: &'static str,
    /// Due each so many seconds of the clock, which divide a minute.
    period_s: i64,
    millis: u32,
    catch_up: &'static str,
    build: Build,
}

/// Those that run for longer than their period skip what falls due meanwhile. `held` and `child` run for
/// twice as long as a lease: who loses one has to end them, and they run on elsewhere.
const KINDS: [Kind; 6] = [
    Kind::new("second", 1, 40),
    Kind::new("slow", 2, 300),
    Kind {
        catch_up: "all",
        ..Kind::new("all", 1, 40)
    },
    Kind::new("long", 1, 1500),
    Kind {
        build: Build::Stubborn,
        ..Kind::new("held", 2, 6000)
    },
    Kind {
        build: Build::Child,
        ..Kind::new("child", 2, 5000)
    },
];

/// A whole family of processes, which says who they are: none of them may be left over.
const FAMILY: &str = r#"
[jobs.family]
schedule = "*/3 * * * * *"
command = [FAMILY, "setsid", "1800"]
"#;

const RERUN: &str = "rerun";
const SKIP: &str = "skip";

impl Kind {
    const fn new(name: &'static str, period_s: i64, millis: u32) -> Self {
        Self {
            name,
            period_s,
            millis,
            catch_up: "latest",
            build: Build::Plain,
        }
    }

    fn job(&self, on_crash: &str) -> String {
        format!("{}-{on_crash}", self.name)
    }

    fn command(&self) -> String {
        let probe = format!("PROBE, \"{}\", \"alone\"", self.millis);
        let script = match self.build {
            Build::Plain => return probe,
            Build::Stubborn => r#"trap '' TERM; exec \"$@\""#,
            Build::Child => r#"setsid \"$@\" & wait $!"#,
        };
        format!(r#""sh", "-c", "{script}", "sh", {probe}"#)
    }
}

/// A name, and how many seconds are between two instants, of the jobs that a probe tells of.
pub(crate) fn jobs() -> impl Iterator<Item = (String, i64)> {
    KINDS.iter().flat_map(|kind| {
        let named = |on_crash| (kind.job(on_crash), kind.period_s);
        [RERUN, SKIP].map(named)
    })
}

/// How long a job runs if it is let.
pub(crate) fn runs_for(job: &str) -> Duration {
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|kind| job.starts_with(kind.name));
    kind.map_or(Duration::ZERO, |kind| {
        Duration::from_millis(kind.millis.into())
    })
}

/// Whether it is started at most once.
pub(crate) fn at_most_once(job: &str) -> bool {
    job.ends_with(SKIP)
}

/// The table as it is after so many changes: each of them is another definition of every job.
pub(crate) fn table(changes: usize) -> String {
    let start = format!(
        "[scheduler]\nlease_ttl = \"{}s\"\nshutdown_grace = \"1s\"\n\n\
         [defaults]\nkill_grace = \"300ms\"\nmax_attempts = {MAX_ATTEMPTS}\n\
         env = {{ CHANGES = \"{changes}\" }}\n{FAMILY}",
        TTL.as_secs()
    );
    KINDS.iter().fold(start, |mut text, kind| {
        for on_crash in [RERUN, SKIP] {
            let _ = writeln!(
                text,
                "[jobs.{}]\nschedule = \"*/{} * * * * *\"\ncommand = [{}]\n\
                 on_crash = \"{on_crash}\"\ncatch_up = \"{}\"\n",
                kind.job(on_crash),
                kind.period_s,
                kind.command(),
                kind.catch_up
            );
        }
        text
    })
}
