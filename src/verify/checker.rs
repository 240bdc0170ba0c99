//! Holds what jobs and ledger say against what was promised: a pure function of the evidence.
//!
//! The plain lock is judged by the same functions, from runs of the same form.
//!
//! Must never: excuse a run for what it met; only a run that comes *after* the end of another is
//! excused, by what was done to that one's replica.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::Serialize;

use super::evidence::Run;
use super::plan::JobPlan;
use crate::scheduler::time::{Timestamp, short_duration};

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// No two runs of a job live at once.
    Overlap,
    /// No attempt is started twice.
    AttemptTwice,
    /// What came to its end is not run again, unless its replica was hurt before it could say so.
    RanAgain,
    /// Fencing tokens rise from start to start.
    TokenOrder,
    /// An occurrence of a job that may run once starts once.
    OnceTwice,
    /// The ledger has each due occurrence, and what was closed of a job that may run again had come
    /// to its end.
    Lost,
    /// The ledger says of a run what the run says of itself.
    Contradiction,
    /// Replicas end when they are told to, and not before.
    Deserted,
}

impl Law {
    /// All of them.
    pub const ALL: [Law; 8] = [
        Law::Overlap,
        Law::AttemptTwice,
        Law::RanAgain,
        Law::TokenOrder,
        Law::OnceTwice,
        Law::Lost,
        Law::Contradiction,
        Law::Deserted,
    ];

    /// Only the ledger tells whether it was broken.
    pub fn is_of_the_ledger(self) -> bool {
        matches!(self, Law::Lost | Law::Contradiction)
    }

    /// What is counted of it, as people read it.
    pub fn words(self) -> &'static str {
        match self {
            Law::Overlap => "runs of a job that overlapped",
            Law::AttemptTwice => "attempts started twice",
            Law::RanAgain => "run again for no reason",
            Law::TokenOrder => "fencing tokens out of order",
            Law::OnceTwice => "at-most-once jobs started twice",
            Law::Lost => "occurrences lost",
            Law::Contradiction => "ledger and job disagree",
            Law::Deserted => "replicas that ended by themselves",
        }
    }
}

/// A promise that was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which one.
    pub law: Law,
    /// By what.
    pub what: String,
}

/// What the ledger has of a due occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It succeeded.
    Succeeded,
    /// It was started and closed otherwise: how.
    Closed(String),
    /// It was skipped, as another one of its job was unfinished.
    Skipped,
    /// It was missed: nobody could start it in time.
    Missed,
    /// It is not over: what it waits for.
    Open(String),
    /// The ledger has nothing of it: why.
    Unrecorded(String),
    /// Its job could not write down what it did: this host's doing.
    Unwritten,
}

/// An occurrence that fell due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Whose.
    pub(super) job: &'static str,
    /// When.
    pub(super) at: Timestamp,
    /// What the ledger says became of it.
    pub(super) fate: Fate,
}

/// A time in which a replica was hurt, since the host's boot. What happens to the store or to the
/// whole host hurts all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hurt {
    /// Its name; none for all.
    pub(super) replica: Option<String>,
    /// From then …
    pub(super) from: Duration,
    /// … to then.
    pub(super) to: Duration,
}

impl Hurt {
    fn is_of(&self, replica: &str) -> bool {
        self.replica.as_deref().is_none_or(|name| name == replica)
    }

    fn meets(&self, from: Duration, to: Duration) -> bool {
        self.from <= to && self.to >= from
    }
}

/// All that a judgement goes by.
#[derive(Clone, Debug)]
pub(super) struct Evidence<'e> {
    /// The jobs.
    pub(super) jobs: &'e [JobPlan],
    /// Every run, in any order.
    pub(super) runs: &'e [Run],
    /// Every occurrence that is judged.
    pub(super) due: &'e [Due],
    /// What was done to the replicas.
    pub(super) hurts: &'e [Hurt],
    /// The replicas.
    pub(super) replicas: &'e [String],
    /// Those that ended without being told to.
    pub(super) deserters: &'e [String],
    /// How long a lease lasts.
    pub(super) lease_ttl: Duration,
    /// When the ledger began anew, without what it had acknowledged.
    pub(super) forgot: Option<Timestamp>,
}

impl Evidence<'_> {
    /// Whether both were granted by a ledger that knew the same: what was granted before it forgot, it
    /// may grant again.
    fn is_of_one_ledger(&self, one: &Run, other: &Run) -> bool {
        // Tokens are the store's time, in microseconds.
        let is_older = |run: &Run, born: Timestamp| {
            i128::from(run.token) < i128::from(born.as_millis()) * 1000
        };
        self.forgot
            .is_none_or(|born| is_older(one, born) == is_older(other, born))
    }
}

/// An occurrence whose attempt broke off, and that was run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Takeover {
    /// From the last sign of life of the one to the start of the other.
    pub(super) took: Duration,
    /// Another replica was well all the time, and should have been in time.
    pub(super) is_bounded: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The promises that were broken.
    pub(super) violations: Vec<Violation>,
    /// Runs of occurrences whose attempt before had broken off.
    pub(super) takeovers: Vec<Takeover>,
    /// Runs of what had come to its end, with a reason: at least once is what was promised.
    pub(super) again: usize,
    /// Occurrences that are not over: late, and not lost as long as somebody may still run them.
    pub(super) open: Vec<String>,
    /// Occurrences whose jobs could not write down what they did: nothing is known of them.
    pub(super) unwritten: usize,
}

impl Findings {
    /// How often a promise was broken.
    pub(super) fn count(&self, law: Law) -> usize {
        let broken = self.violations.iter();
        broken.filter(|violation| violation.law == law).count()
    }

    fn broken(&mut self, law: Law, what: String) {
        self.violations.push(Violation { law, what });
    }
}

/// Judges.
pub(super) fn judge(evidence: &Evidence<'_>) -> Findings {
    let mut findings = Findings::default();
    for job in evidence.jobs {
        let runs = of_job(evidence.runs, job.name);
        for run in overlapping(&runs) {
            findings.broken(Law::Overlap, describe(run));
        }
        token_order(&runs, &mut findings);
        for runs in by_occurrence(&runs).values() {
            occurrence(evidence, job, runs, &mut findings);
        }
    }
    let mut of_due: HashMap<(&str, Timestamp), Vec<&Run>> = HashMap::new();
    for run in evidence.runs {
        let key = (run.job.as_str(), run.scheduled_at);
        of_due.entry(key).or_default().push(run);
    }
    for due in evidence.due {
        let runs = of_due
            .get(&(due.job, due.at))
            .map_or(&[][..], Vec::as_slice);
        fate(evidence, due, runs, &mut findings);
    }
    for deserter in evidence.deserters {
        findings.broken(Law::Deserted, deserter.clone());
    }
    findings
}

/// The runs of a job, in the order of their starts.
pub(super) fn of_job<'r>(runs: &'r [Run], job: &str) -> Vec<&'r Run> {
    let mut runs: Vec<&Run> = runs.iter().filter(|run| run.job == job).collect();
    runs.sort_by_key(|run| run.started);
    runs
}

/// The runs of one job, in order, that began while another one lived.
pub(super) fn overlapping<'r>(runs: &[&'r Run]) -> Vec<&'r Run> {
    let mut lived_until = None;
    let mut found = Vec::new();
    for run in runs {
        if run.met || Some(run.started) < lived_until {
            found.push(*run);
        }
        lived_until = lived_until.max(Some(run.last));
    }
    found
}

/// The runs of one job by their occurrences, in order.
pub(super) fn by_occurrence<'r>(runs: &[&'r Run]) -> BTreeMap<Timestamp, Vec<&'r Run>> {
    let mut found: BTreeMap<Timestamp, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        found.entry(run.scheduled_at).or_default().push(run);
    }
    found
}

fn describe(run: &Run) -> String {
    format!(
        "{} of {}, attempt {} on {} (token {})",
        run.job, run.scheduled_at, run.attempt, run.replica, run.token
    )
}

fn token_order(runs: &[&Run], findings: &mut Findings) {
    let mut highest = 0;
    for run in runs {
        if run.token <= highest {
            let what = format!("{} started after token {highest}", describe(run));
            findings.broken(Law::TokenOrder, what);
        }
        highest = highest.max(run.token);
    }
}

/// The runs of one occurrence.
fn occurrence(evidence: &Evidence<'_>, job: &JobPlan, runs: &[&Run], findings: &mut Findings) {
    for pair in runs.windows(2) {
        let [before, after] = pair else { continue };
        let is_same =
            |run: &&&Run| run.attempt == after.attempt && evidence.is_of_one_ledger(run, after);
        if runs.iter().filter(is_same).count() > 1 {
            findings.broken(Law::AttemptTwice, describe(after));
        }
        if job.once {
            findings.broken(Law::OnceTwice, describe(after));
        } else if !before.ended {
            findings.takeovers.push(takeover(evidence, before, after));
        } else if !evidence.is_of_one_ledger(before, after)
            || may_run_again(evidence, before, after)
        {
            findings.again += 1;
        } else {
            let what = format!(
                "{} had ended when {} began",
                describe(before),
                describe(after)
            );
            findings.broken(Law::RanAgain, what);
        }
    }
}

/// The replica of a run that had ended may not have been able to say so.
fn may_run_again(evidence: &Evidence<'_>, before: &Run, after: &Run) -> bool {
    let mut hurts = evidence.hurts.iter();
    hurts.any(|hurt| hurt.is_of(&before.replica) && hurt.meets(before.last, after.started))
}

fn takeover(evidence: &Evidence<'_>, before: &Run, after: &Run) -> Takeover {
    // Who takes over has watched the lease from its last renewal on, a sixth of it ago at most.
    let from = before.last.saturating_sub(evidence.lease_ttl / 3);
    let to = before.last + bound(evidence.lease_ttl);
    let is_well = |replica: &String| {
        let mut hurts = evidence.hurts.iter();
        *replica != before.replica && !hurts.any(|hurt| hurt.is_of(replica) && hurt.meets(from, to))
    };
    Takeover {
        took: after.started.saturating_sub(before.last),
        is_bounded: evidence.replicas.iter().any(is_well),
    }
}

/// How long a takeover takes at most, where somebody is well.
pub(super) fn bound(lease_ttl: Duration) -> Duration {
    lease_ttl + Duration::from_secs(1)
}

/// Whether what the ledger says of an occurrence is what was promised, and what its runs say.
fn fate(evidence: &Evidence<'_>, due: &Due, runs: &[&Run], findings: &mut Findings) {
    let once = evidence
        .jobs
        .iter()
        .any(|job| job.name == due.job && job.once);
    let name = format!("{} of {}", due.job, due.at);
    match &due.fate {
        Fate::Succeeded if runs.iter().any(|run| run.ended) => {}
        Fate::Succeeded => {
            let what = format!("{name} succeeded, by the ledger, and no run of it came to its end");
            findings.broken(Law::Contradiction, what);
        }
        Fate::Skipped | Fate::Missed if runs.is_empty() => {}
        Fate::Skipped | Fate::Missed => {
            let what = format!("{name} never started, by the ledger, and it ran");
            findings.broken(Law::Contradiction, what);
        }
        Fate::Closed(_) if once => {}
        Fate::Closed(how) => {
            findings.broken(Law::Lost, format!("{name} was closed unfinished ({how})"));
        }
        Fate::Unwritten => findings.unwritten += 1,
        Fate::Open(why) => findings.open.push(format!("{name}: {why}")),
        Fate::Unrecorded(why) => {
            findings.broken(
                Law::Lost,
                format!("the ledger has nothing of {name} ({why})"),
            );
        }
    }
}

/// What a plain lock let happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlainFindings {
    /// Occurrences that ran at all.
    pub ran: usize,
    /// Occurrences that ran more than once.
    pub ran_twice: usize,
    /// Runs that began while another run of their job lived.
    pub overlaps: usize,
    /// Occurrences of which no run came to its end.
    pub unfinished: usize,
}

/// Judges a plain lock.
pub(super) fn judge_plain(jobs: &[JobPlan], runs: &[Run]) -> PlainFindings {
    let mut findings = PlainFindings::default();
    for job in jobs {
        let runs = of_job(runs, job.name);
        findings.overlaps += overlapping(&runs).len();
        for runs in by_occurrence(&runs).values() {
            findings.ran += 1;
            findings.ran_twice += usize::from(runs.len() > 1);
            findings.unfinished += usize::from(!runs.iter().any(|run| run.ended));
        }
    }
    findings
}

/// The slowest takeover that was to be in time, and whether it was.
pub(super) fn slowest(findings: &Findings, lease_ttl: Duration) -> Option<(Duration, bool)> {
    let bounded = findings.takeovers.iter().filter(|one| one.is_bounded);
    let slowest = bounded.map(|one| one.took).max()?;
    Some((slowest, slowest <= bound(lease_ttl)))
}

/// What is said of the slowest takeover.
pub(super) fn describe_slowest(slowest: Duration, lease_ttl: Duration) -> String {
    let bound = short_duration(bound(lease_ttl));
    format!("{}, where {bound} is the bound", short_duration(slowest))
}

#[cfg(test)]
mod tests;
