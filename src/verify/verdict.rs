//! The verdict, with its figures: what is printed, as data.
//!
//! Must never: call held what was not seen: a test that was cut short, that lost its store, or in
//! which a job never ran, is none that was passed.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use super::checker::{self, Evidence, Fate, Findings, Law, PlainFindings, Violation};
use super::evidence::Run;
use super::ledger::Ledger;
use super::outcome::{Outcome, outcome};
use super::plain::{Ran, SKEW};
use super::plan::{Fault, JobPlan, Setup};
use super::stage::Played;
use crate::scheduler::margins::Margins;
use crate::scheduler::time::{Timestamp, short_duration, to_seconds};

/// How many violations are told one by one.
const TOLD: usize = 10;
/// From which difference on people want to know.
const SKEWED_MS: i64 = 1000;
/// A host that wakes those who wait so late is too busy to say much of the store.
const LATE: Duration = Duration::from_millis(300);

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// In a word.
    pub outcome: Outcome,
    /// Why, where the word does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The store, without secrets.
    pub store: String,
    /// The scratch namespace.
    pub namespace: String,
    /// What all was drawn from.
    pub seed: u64,
    /// How many replicas.
    pub replicas: u32,
    /// How long a lease lasted.
    pub lease_ttl_seconds: f64,
    /// For how long jobs fell due.
    pub seconds: f64,
    /// How many faults of each kind.
    pub faults: BTreeMap<Fault, usize>,
    /// What became of what fell due; none where the ledger was not looked at.
    pub occurrences: Option<Occurrences>,
    /// What ran.
    pub runs: Runs,
    /// How often each promise was broken; without those that only the ledger tells of, where that was not
    /// looked at.
    pub laws: BTreeMap<Law, usize>,
    /// By what; the first of them.
    pub violations: Vec<Violation>,
    /// Occurrences that were not over; the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// The lock that everybody writes, beside it.
    pub plain_locks: Vec<Plain>,
    /// How the store answered.
    pub answers: Answers,
    /// What people should know.
    pub warnings: Vec<String>,
    /// What was not tried, and why.
    pub not_tried: Vec<String>,
    /// What was left.
    pub cleanup: Cleanup,
    /// The directory with what jobs and replicas wrote down, kept where something was violated or
    /// late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// What became of what fell due.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Occurrences {
    /// How many fell due.
    pub due: usize,
    /// Succeeded.
    pub succeeded: usize,
    /// Skipped, as another one of the job was unfinished.
    pub skipped: usize,
    /// Missed, as nobody could start them in time.
    pub missed: usize,
    /// Started, and closed unfinished: jobs that may run once only.
    pub closed: usize,
}

/// What ran.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Runs {
    /// Attempts that were started.
    pub attempts: usize,
    /// Those of occurrences that fell due before the first or after the last that is judged.
    pub unjudged: usize,
    /// Attempts that followed one that broke off.
    pub takeovers: usize,
    /// Runs of what had come to its end, and could not be told: at least once.
    pub again: usize,
    /// The slowest takeover that had a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_takeover_seconds: Option<f64>,
    /// The bound.
    pub takeover_bound_seconds: f64,
}

/// The lock that everybody writes.
#[derive(Clone, Debug, Serialize)]
pub struct Plain {
    /// How far the clocks of its replicas were apart, at most.
    pub clocks_apart_seconds: f64,
    /// What came of it; none where it could not be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<PlainFindings>,
    /// Why it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// It was in this process, as the store has no such lock.
    pub in_memory: bool,
}

/// How the store answered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Answers {
    /// How often it was asked.
    pub count: usize,
    /// Of half of the answers not slower than.
    pub p50_ms: f64,
    /// Of 99 of 100.
    pub p99_ms: f64,
    /// How long it was away.
    pub away_seconds: f64,
    /// How far its clock is ahead of this host's.
    pub clock_ahead_ms: i64,
    /// How late this host woke those who wait, at most.
    pub host_late_ms: f64,
}

/// What was left.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cleanup {
    /// No process is left.
    pub processes_gone: bool,
    /// Keys and files that may be left.
    pub left: Vec<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Cleanup {
    /// Nothing is left.
    pub fn is_complete(&self) -> bool {
        self.processes_gone && self.left.is_empty()
    }
}

/// Judges all that was seen.
pub(super) fn judge(
    setup: &Setup,
    jobs: &[JobPlan],
    played: &Played,
    runs: &[Run],
    own_lease_ttl: Duration,
) -> Verdict {
    let due = played.ledger.as_ref().map_or(&[][..], |ledger| &ledger.due);
    let findings = checker::judge(&Evidence {
        jobs,
        runs,
        due,
        hurts: &[&played.hurts[..], &played.seen.hurts[..]].concat(),
        replicas: &played.replicas,
        deserters: &played.deserters,
        lease_ttl: setup.lease_ttl(),
        forgot: played.ledger.as_ref().and_then(|ledger| ledger.forgot?),
    });
    let (outcome, because) = outcome(&findings, jobs, played, runs);
    let in_memory = played.in_memory;
    let plain = |ran: &Ran, apart| plain(setup, jobs, ran, apart, played.plain_until, in_memory);
    let mut faults = played.faults.clone();
    faults.retain(|_, count| *count > 0);
    Verdict {
        outcome,
        because,
        store: String::new(),
        namespace: String::new(),
        seed: setup.seed,
        replicas: setup.replicas,
        lease_ttl_seconds: to_seconds(setup.lease_ttl()),
        seconds: to_seconds(played.lasted),
        faults,
        occurrences: played.ledger.as_ref().map(occurrences),
        runs: runs_of(setup, played, runs, &findings),
        laws: Law::ALL
            .into_iter()
            .filter(|law| played.ledger.is_some() || !law.is_of_the_ledger())
            .map(|law| (law, findings.count(law)))
            .collect(),
        plain_locks: vec![
            plain(&played.agreed, Duration::ZERO),
            plain(&played.apart, SKEW * 2),
        ],
        answers: answers(played),
        warnings: warnings(setup, played, &findings, own_lease_ttl),
        violations: findings.violations.into_iter().take(TOLD).collect(),
        open: findings.open.into_iter().take(TOLD).collect(),
        not_tried: Vec::new(),
        cleanup: Cleanup::default(),
        evidence: None,
    }
}

fn runs_of(setup: &Setup, played: &Played, runs: &[Run], findings: &Findings) -> Runs {
    Runs {
        attempts: runs.len(),
        unjudged: match &played.ledger {
            Some(ledger) => unjudged(runs, ledger),
            None => 0,
        },
        takeovers: findings.takeovers.len(),
        again: findings.again,
        slowest_takeover_seconds: checker::slowest(findings, setup.lease_ttl())
            .map(|(slowest, _)| to_seconds(slowest)),
        takeover_bound_seconds: to_seconds(checker::bound(setup.lease_ttl())),
    }
}

/// Attempts of what fell due before the replicas were all at work, or after the last look at the time.
fn unjudged(runs: &[Run], ledger: &Ledger) -> usize {
    let judged: HashSet<(&str, Timestamp)> =
        ledger.due.iter().map(|due| (due.job, due.at)).collect();
    let is_judged = |run: &&Run| judged.contains(&(run.job.as_str(), run.scheduled_at));
    runs.len() - runs.iter().filter(is_judged).count()
}

pub(super) fn occurrences(ledger: &Ledger) -> Occurrences {
    let count = |is_one: fn(&Fate) -> bool| {
        let due = ledger.due.iter();
        due.filter(|due| is_one(&due.fate)).count()
    };
    Occurrences {
        due: ledger.due.len(),
        succeeded: count(|fate| *fate == Fate::Succeeded),
        skipped: count(|fate| *fate == Fate::Skipped),
        missed: count(|fate| *fate == Fate::Missed),
        closed: count(|fate| matches!(fate, Fate::Closed(_))),
    }
}

fn plain(
    setup: &Setup,
    jobs: &[JobPlan],
    ran: &Ran,
    apart: Duration,
    until: Duration,
    in_memory: bool,
) -> Plain {
    // What was under way at the end is no evidence: it might still have come to its own end.
    let longest = jobs.iter().map(|job| job.lasts).max().unwrap_or_default();
    let until = until.saturating_sub(longest + setup.lease_ttl() * 2);
    let mut runs = ran.runs.clone();
    runs.retain(|run| run.started < until);
    let refused = ran.refused.as_ref().map(ToString::to_string);
    Plain {
        clocks_apart_seconds: to_seconds(apart),
        findings: refused.is_none().then(|| checker::judge_plain(jobs, &runs)),
        refused,
        in_memory,
    }
}

fn answers(played: &Played) -> Answers {
    let seen = &played.seen;
    let ms = |duration: Duration| {
        let micros = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
        // Two digits after the point.
        (f64::from(micros) / 10.0).round() / 100.0
    };
    Answers {
        count: seen.round_trips.len(),
        p50_ms: ms(seen.percentile(50)),
        p99_ms: ms(seen.percentile(99)),
        away_seconds: to_seconds(seen.away),
        clock_ahead_ms: played.skew_ms,
        host_late_ms: ms(seen.latest),
    }
}

fn warnings(
    setup: &Setup,
    played: &Played,
    findings: &Findings,
    own_lease_ttl: Duration,
) -> Vec<String> {
    let seen = &played.seen;
    let mut warnings: Vec<String> = played.conditions.iter().map(ToString::to_string).collect();
    for ttl in [setup.lease_ttl(), own_lease_ttl] {
        let limit = Margins::of(ttl).call_timeout();
        let slow = seen.percentile(99);
        if slow > limit && !seen.round_trips.is_empty() {
            warnings.push(format!(
                "one answer in a hundred took {} or more, and with a lease_ttl of {} a call is given up after {}: set a longer lease_ttl",
                short_duration(slow),
                short_duration(ttl),
                short_duration(limit)
            ));
        }
    }
    if let Some((slowest, false)) = checker::slowest(findings, setup.lease_ttl()) {
        let told = checker::describe_slowest(slowest, setup.lease_ttl());
        warnings.push(format!("the slowest takeover took {told}"));
    }
    if !seen.away.is_zero() {
        let away = short_duration(seen.away);
        warnings.push(format!("the store did not answer for {away}, all in all"));
    }
    if played.skew_ms.abs() >= SKEWED_MS {
        warnings.push(format!(
            "the store's clock and this host's differ by {} ms; soloist goes by the store's",
            played.skew_ms.abs()
        ));
    }
    if seen.latest > LATE {
        let late = short_duration(seen.latest);
        warnings.push(format!(
            "this host was so busy that somebody who waited was woken {late} late: times are its, too"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        Setup {
            duration: Duration::from_secs(60),
            replicas: 5,
            seed: 1,
            has_links: true,
        }
    }

    fn of_each_job(jobs: &[JobPlan]) -> Vec<Run> {
        let run = |(at, job): (usize, &JobPlan)| Run {
            job: job.name.to_owned(),
            scheduled_at: crate::scheduler::time::Timestamp::from_second(1),
            attempt: 1,
            token: 7,
            replica: "verify-1".to_owned(),
            started: Duration::from_secs(at as u64),
            last: Duration::from_secs(at as u64),
            ended: true,
            met: false,
        };
        jobs.iter().enumerate().map(run).collect()
    }

    fn outcome_of(change: impl FnOnce(&mut Played, &mut Vec<Run>)) -> Outcome {
        let setup = setup();
        let jobs = setup.jobs();
        let mut played = Played::default();
        played.faults.insert(Fault::Kill, 1);
        let mut runs = of_each_job(&jobs);
        change(&mut played, &mut runs);
        let verdict = judge(&setup, &jobs, &played, &runs, Duration::from_secs(15));
        verdict.outcome
    }

    #[test]
    fn nothing_but_a_whole_test_without_a_violation_has_held() {
        assert_eq!(outcome_of(|_, _| {}), Outcome::Held);
        assert_eq!(
            outcome_of(|played, _| played.interrupted = true),
            Outcome::Interrupted
        );
        assert_eq!(
            outcome_of(|_, runs| {
                runs.pop();
            }),
            Outcome::NothingSeen
        );
        let with = |fate: Fate, forgot| {
            outcome_of(|played, _| {
                let due = checker::Due {
                    job: "short",
                    at: Timestamp::from_second(9),
                    fate,
                };
                played.ledger = Some(Ledger {
                    due: vec![due],
                    forgot,
                });
            })
        };
        assert_eq!(
            with(Fate::Open("it runs".to_owned()), None),
            Outcome::Unsettled
        );
        assert_eq!(with(Fate::Unwritten, None), Outcome::NothingSeen);
        assert_eq!(with(Fate::Missed, None), Outcome::NothingSeen);
        assert_eq!(with(Fate::Skipped, None), Outcome::Held);
        assert_eq!(with(Fate::Skipped, Some(None)), Outcome::StoreForgot);
        assert_eq!(
            outcome_of(|played, _| played.faults.clear()),
            Outcome::NothingSeen
        );
        let gone = crate::store::StoreError::Unreachable {
            place: "there".to_owned(),
            cause: "gone".to_owned(),
        };
        assert_eq!(
            outcome_of(|played, _| played.lost_store = Some(gone)),
            Outcome::StoreLost
        );
    }

    #[test]
    fn a_violation_counts_also_where_the_test_was_cut_short() {
        let twice = |played: &mut Played, runs: &mut Vec<Run>| {
            played.interrupted = true;
            runs[0].met = true;
        };
        assert_eq!(outcome_of(twice), Outcome::Violated);
        let deserted = |played: &mut Played, _: &mut Vec<Run>| {
            played.deserters.push("verify-1".to_owned());
        };
        assert_eq!(outcome_of(deserted), Outcome::Violated);
    }
}
