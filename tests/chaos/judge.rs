//! What holds of what the jobs wrote down, and what does not.
//!
//! Must never: excuse more than the guarantees do: each excuse names its line there.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use test_support::account::{
    Occurrence, SECOND, Stretch, attempts, has_twins, instant_s, lost, more_than_once, occurrence,
    out_of_order,
};
use test_support::probe::Run;

use crate::stage::nanos;
use crate::table::{MAX_ATTEMPTS, TTL, at_most_once};

/// What a round leaves to be judged.
pub(crate) struct Evidence {
    /// In the order of their starts.
    pub(crate) runs: Vec<Run>,
    /// Runs with a token that another one of their job had.
    pub(crate) same_token: Vec<Run>,
    /// Of every ledger that there was.
    pub(crate) lines: Vec<Value>,
    /// When data were lost.
    pub(crate) losses_ns: Vec<i128>,
    /// What waited for its turn in a ledger that was lost.
    pub(crate) waited: Vec<Occurrence>,
    /// What was due between the beginning and the end.
    pub(crate) due: Vec<Occurrence>,
}

/// What came of it. All but `started`, `again` and `waited` are faults of soloist.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// How many attempts were started.
    pub(crate) started: usize,
    /// What was started again as its next attempt.
    pub(crate) again: usize,
    /// Starts beside a living attempt of the same job.
    pub(crate) overlaps: Vec<Run>,
    /// What was started more than once, and must not be.
    pub(crate) skip_twice: Vec<Occurrence>,
    /// One attempt that was started twice.
    pub(crate) twins: Vec<Occurrence>,
    /// What was due, never started, and has no line.
    pub(crate) lost: Vec<Occurrence>,
    /// The same of what waited for its turn in a ledger that was lost: nobody else knew of it.
    /// (guarantees: "what waits is the store's".)
    pub(crate) waited: Vec<Occurrence>,
    /// Runs with a token that is no higher than one before.
    pub(crate) tokens_out_of_order: Vec<Run>,
    /// Runs before their instant.
    pub(crate) early: Vec<Run>,
    /// Attempts beyond the last one.
    pub(crate) too_many: Vec<Occurrence>,
    /// Runs that no ledger has a line of.
    pub(crate) untold: Vec<Run>,
}

/// A loss of data takes with it what the ledger knew of an attempt that it had no end of, and where its
/// holder vanished as well nobody can tell of it. (guarantees: "one server that loses all its data".)
/// So long after its end the ledger has heard of one that ended, and after its start of one that was
/// cut short.
const HEARD_OF: Duration = Duration::from_secs(TTL.as_secs() + 1);
const TAKEN_OVER: Duration = Duration::from_secs(14);

impl Figures {
    /// Counts.
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let Evidence { runs, .. } = evidence;
        let attempts = attempts(runs);
        let twice = more_than_once(runs);
        let (skip_twice, others): (Vec<Occurrence>, Vec<Occurrence>) =
            twice.into_iter().partition(|(job, _)| at_most_once(job));
        let (twins, again): (Vec<Occurrence>, Vec<Occurrence>) = others
            .into_iter()
            .partition(|occurrence| has_twins(&attempts[occurrence]));
        let limit = MAX_ATTEMPTS as usize;
        let is_over = |all: &[u32]| all.len() > limit || all.iter().any(|n| *n > MAX_ATTEMPTS);
        let too_many = attempts.iter().filter(|(_, all)| is_over(all));
        let told: Vec<Stretch> = evidence.lines.iter().map(Stretch::of).collect();
        let lost = lost(evidence.due.iter().cloned(), runs, &told);
        let (waited, lost) = lost
            .into_iter()
            .partition(|occurrence| evidence.waited.contains(occurrence));
        let mut tokens_out_of_order = out_of_order(runs);
        tokens_out_of_order.extend(evidence.same_token.iter().cloned());
        let beside = runs.iter().chain(&evidence.same_token);
        Self {
            started: runs.len() + evidence.same_token.len(),
            again: again.len(),
            overlaps: beside.filter(|run| run.beside).cloned().collect(),
            skip_twice,
            twins,
            lost,
            waited,
            tokens_out_of_order,
            early: runs.iter().filter(|run| is_early(run)).cloned().collect(),
            too_many: too_many.map(|(occurrence, _)| occurrence.clone()).collect(),
            untold: untold(evidence),
        }
    }

    /// What does not hold, each with the job and the instant that it is about.
    pub(crate) fn broken(&self) -> Vec<(String, Option<Occurrence>)> {
        let mut broken = Vec::new();
        let mut runs = |what: &str, found: &[Run]| {
            let tell = |run: &Run| (format!("{what}: {run:?}"), Some(occurrence(run)));
            broken.extend(found.iter().map(tell));
        };
        runs("beside another one", &self.overlaps);
        runs("with a token that is no higher", &self.tokens_out_of_order);
        runs("before its instant", &self.early);
        runs("without a line", &self.untold);
        let mut occurrences = |what: &str, found: &[Occurrence]| {
            let tell = |one: &Occurrence| (format!("{what}: {}", named(one)), Some(one.clone()));
            broken.extend(found.iter().map(tell));
        };
        occurrences("`skip`, and started twice", &self.skip_twice);
        occurrences("one attempt, and started twice", &self.twins);
        occurrences("neither started nor told", &self.lost);
        occurrences("more attempts than are allowed", &self.too_many);
        broken
    }
}

fn named((job, at): &Occurrence) -> String {
    let at = jiff::Timestamp::from_second(*at).expect("a near date");
    format!("{job} {at}")
}

/// The store's clock is this host's, which no fault sets.
fn is_early(run: &Run) -> bool {
    run.started_ns < i128::from(instant_s(&run.scheduled_at)) * SECOND
}

/// Each attempt that was started has its line, by its token.
fn untold(evidence: &Evidence) -> Vec<Run> {
    let told: BTreeSet<(&str, u64)> = evidence
        .lines
        .iter()
        .filter_map(|line| Some((line["job"].as_str()?, line["token"].as_u64()?)))
        .collect();
    let is_excused = |run: &Run| {
        let until = match run.ended_ns {
            Some(ended) => ended + nanos(HEARD_OF),
            None => run.started_ns + nanos(TAKEN_OVER),
        };
        let mut losses = evidence.losses_ns.iter();
        losses.any(|loss| (run.started_ns..until).contains(loss))
    };
    let untold = |run: &&Run| !told.contains(&(run.job.as_str(), run.token)) && !is_excused(run);
    evidence.runs.iter().filter(untold).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instant of these runs, in seconds since the epoch.
    const AT: i64 = 1_000_000_000;

    fn run(job: &str, attempt: u32, token: u64) -> Run {
        Run {
            job: job.to_owned(),
            scheduled_at: jiff::Timestamp::from_second(AT).unwrap().to_string(),
            attempt,
            token,
            replica: "a".to_owned(),
            started_ns: i128::from(AT) * SECOND + i128::from(token),
            ended_ns: None,
            beside: false,
        }
    }

    fn line(run: &Run) -> Value {
        serde_json::json!({
            "job": run.job, "scheduled_at": run.scheduled_at, "token": run.token,
        })
    }

    fn evidence(runs: &[Run]) -> Evidence {
        Evidence {
            runs: runs.to_vec(),
            same_token: Vec::new(),
            lines: runs.iter().map(line).collect(),
            losses_ns: Vec::new(),
            waited: Vec::new(),
            due: vec![("a-rerun".to_owned(), AT)],
        }
    }

    /// What of this is broken, without what it is about.
    fn broken(evidence: &Evidence) -> Vec<String> {
        let broken = Figures::of(evidence).broken().into_iter();
        broken
            .map(|(what, _)| what.split(':').next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_takeover_with_a_higher_token_is_as_it_should_be() {
        let good = evidence(&[run("a-rerun", 1, 1), run("a-rerun", 2, 2)]);
        assert_eq!(broken(&good), [""; 0]);
        assert_eq!(Figures::of(&good).again, 1);
    }

    #[test]
    fn a_start_beside_another_one_is_an_overlap_whatever_its_token() {
        let mut beside = run("a-rerun", 2, 2);
        beside.beside = true;
        let bad = evidence(&[run("a-rerun", 1, 1), beside.clone()]);
        assert_eq!(broken(&bad), ["beside another one"]);
        let mut bad = evidence(&[run("a-rerun", 1, 2)]);
        bad.same_token.push(beside);
        let both = ["beside another one", "with a token that is no higher"];
        assert_eq!(broken(&bad), both);
    }

    #[test]
    fn a_skip_job_started_twice_and_one_attempt_started_twice_are_told() {
        let twice = evidence(&[
            run("a-rerun", 1, 1),
            run("b-skip", 1, 1),
            run("b-skip", 2, 2),
        ]);
        assert_eq!(broken(&twice), ["`skip`, and started twice"]);
        let twins = evidence(&[run("a-rerun", 1, 1), run("a-rerun", 1, 2)]);
        assert_eq!(broken(&twins), ["one attempt, and started twice"]);
    }

    #[test]
    fn what_was_due_and_nobody_tells_of_is_lost() {
        assert_eq!(broken(&evidence(&[])), ["neither started nor told"]);
        let mut told = evidence(&[]);
        told.lines.push(line(&run("a-rerun", 1, 0)));
        assert_eq!(broken(&told), [""; 0]);
        let mut waited = evidence(&[]);
        waited.waited = vec![("b-rerun".to_owned(), AT), ("a-rerun".to_owned(), AT - 1)];
        assert_eq!(broken(&waited), ["neither started nor told"]);
        waited.waited.push(("a-rerun".to_owned(), AT));
        assert_eq!(broken(&waited), [""; 0], "it went with the ledger");
    }

    #[test]
    fn tokens_that_fall_and_starts_before_their_instant_are_told() {
        let mut late = run("a-rerun", 2, 1);
        late.started_ns += SECOND;
        let falling = evidence(&[run("a-rerun", 1, 2), late]);
        assert_eq!(broken(&falling), ["with a token that is no higher"]);
        let mut early = run("a-rerun", 1, 1);
        early.started_ns -= 2;
        assert_eq!(broken(&evidence(&[early])), ["before its instant"]);
    }

    #[test]
    fn attempts_beyond_the_last_one_are_told() {
        let all = |last: u32| -> Vec<Run> {
            let numbers = 1..=last;
            numbers.map(|n| run("a-rerun", n, n.into())).collect()
        };
        assert_eq!(broken(&evidence(&all(MAX_ATTEMPTS))), [""; 0]);
        let over = evidence(&all(MAX_ATTEMPTS + 1));
        assert_eq!(broken(&over), ["more attempts than are allowed"]);
    }

    #[test]
    fn a_run_without_a_line_is_told_unless_the_ledger_went_with_it() {
        let mut bad = evidence(&[run("a-rerun", 1, 1)]);
        bad.lines.clear();
        assert_eq!(broken(&bad), ["without a line"]);
        let loss = i128::from(AT) * SECOND;
        bad.losses_ns = vec![loss - SECOND];
        assert_eq!(broken(&bad), ["without a line"], "it was lost before");
        bad.losses_ns = vec![loss + SECOND];
        assert_eq!(broken(&bad), [""; 0]);
    }
}
