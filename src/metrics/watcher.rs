//! Looks on at the driver, and counts.
//!
//! Must never: wait; it is called from within the loop.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::Notify;

use super::jobs::{Counts, Jobs, Shown};
use super::replica::Replica;
use crate::driver::{Moment, Observer};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Answered, Claim, ClaimAnswer, Enrolment, FencingToken, Origin, Outcome, Registration,
    RenewalAnswer, RunId, Written,
};
use crate::scheduler::time::{BootTime, Timestamp};
use crate::scheduler::{CallResult, Event, Notice, Scheduler, StopReason};
use crate::why::RangeLine;

/// The most occurrences that a line of a stretch of time is counted for.
const STRETCH_LIMIT: usize = 1000;

/// An attempt, as notices name it.
type Attempt = (JobName, FencingToken);

/// Counts what a driver does.
pub struct Watcher {
    jobs: Arc<Jobs>,
    shown: Arc<Shown>,
    has_table: bool,
    /// What is left to others may be something else.
    heard_of_tables: bool,
    /// Something was left to others.
    leaves_any: bool,
    replica: Arc<Replica>,
    asked: Arc<Notify>,
    /// Granted in the last answer, and not started yet.
    granted: HashMap<Attempt, RunId>,
    running: HashMap<RunId, Running>,
    /// Stopped for the sake of their lease: they are counted.
    stopped: HashSet<Attempt>,
}

/// An attempt of this replica.
struct Running {
    counts: Arc<Counts>,
    since: BootTime,
}

impl Watcher {
    pub(super) fn new(jobs: Arc<Jobs>, replica: Arc<Replica>, asked: Arc<Notify>) -> Self {
        Self {
            shown: jobs.shown(),
            has_table: false,
            heard_of_tables: false,
            leaves_any: false,
            jobs,
            replica,
            asked,
            granted: HashMap::new(),
            running: HashMap::new(),
            stopped: HashSet::new(),
        }
    }

    /// The table in force may be another one.
    fn take_table(&mut self, scheduler: &Scheduler) {
        self.jobs.replace(scheduler.table());
        self.shown = self.jobs.shown();
        self.has_table = true;
        self.heard_of_tables = true;
        // How its jobs stand is not known yet.
        self.asked.notify_one();
    }

    /// Takes note of the jobs that are left to others; usually there are none.
    fn take_left(&mut self, scheduler: &Scheduler) {
        let before = std::mem::replace(&mut self.leaves_any, scheduler.leaves_any());
        if before || self.leaves_any {
            for one in self.shown.all() {
                one.counts.set_left(scheduler.leaves(&one.job.name));
            }
        }
    }

    /// A call came back.
    fn call<T>(
        &self,
        operation: &'static str,
        sent: Option<BootTime>,
        result: &CallResult<T>,
        moment: Moment<'_>,
    ) {
        let took = sent.map(|sent| moment.boot.saturating_since(sent).as_secs_f64());
        self.replica.call(operation, took, result.is_ok());
        if let Ok(Answered { now, lines, .. }) = result {
            lines.iter().for_each(|line| self.wrote(line, *now));
        }
    }

    /// This replica wrote a line into the ledger.
    fn wrote(&self, line: &Written, now: Timestamp) {
        let counts = self.shown.counts(&line.job);
        if line.attempt > 0 {
            counts.attempt_ended(line.outcome);
        }
        if !line.is_final() {
            return;
        }
        match line.outcome {
            // One of several shards says nothing of the others.
            Outcome::Succeeded if !line.is_shard() => counts.succeeded_at(now),
            Outcome::Failed | Outcome::TimedOut | Outcome::Lost => counts.failed_at(now),
            _ => {}
        }
        match line.detail.since {
            None => ended(&self.replica, counts, line, now, 1),
            Some(since) => self.stretch_ended(line, now, since),
        }
    }

    /// A line that stands for all occurrences of a stretch of time. To count them takes a walk
    /// through the schedule, which is none of the loop's business.
    fn stretch_ended(&self, line: &Written, now: Timestamp, since: Timestamp) {
        let job = self.shown.get(&line.job).map(|series| series.job.clone());
        let line = line.clone();
        let counts = Arc::clone(self.shown.counts(&line.job));
        let replica = Arc::clone(&self.replica);
        let count = move || {
            let (name, until) = (&line.job, line.scheduled_at);
            let identity = line.detail.schedule.as_deref();
            let range = RangeLine::between(name, since, until, identity, job.as_deref());
            let known = range.count(STRETCH_LIMIT);
            // Where the schedule of that time can't be told any more, it is one at least.
            let occurrences = known.map_or(1, |count| count as u64);
            ended(&replica, &counts, &line, now, occurrences);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(count)),
            Err(_) => count(),
        }
    }

    fn registered(&self, jobs: &[Enrolment], answers: &[Registration]) {
        for (enrolment, known) in jobs.iter().zip(answers) {
            if let Some(series) = self.shown.get(&enrolment.job) {
                series.counts.set_paused(known.paused.is_some());
            }
        }
    }

    fn claimed(
        &mut self,
        claims: &[Claim],
        answered: Option<&Answered<Vec<ClaimAnswer>>>,
        moment: Moment<'_>,
    ) {
        let Some(Answered { now, answer, .. }) = answered else {
            claims.iter().for_each(|_| self.replica.claim("failed"));
            return;
        };
        for (claim, answer) in claims.iter().zip(answer) {
            self.replica.claim(in_a_word(answer));
            match answer {
                ClaimAnswer::Granted(grant) => {
                    let attempt = (claim.occurrence.job.clone(), grant.token);
                    self.granted.insert(attempt, claim.run_id);
                    let at = moment.store().unwrap_or(*now).max(*now);
                    self.won(claim, grant.attempt, at);
                }
                ClaimAnswer::Closed if claim.watched.is_some() => self.replica.takeover("closed"),
                _ => {}
            }
        }
    }

    /// A claim was granted at `now` by the store's clock.
    fn won(&self, claim: &Claim, attempt: u32, now: Timestamp) {
        if let Some(watched) = claim.watched {
            self.replica.takeover("started");
            let last_sign = watched.deadline - claim.ttl;
            let took = now.saturating_since(last_sign);
            self.replica.takeover_duration.observe(took.as_secs_f64());
        } else if attempt == 1
            && claim.origin == Origin::Schedule
            && let Some(series) = self.shown.get(&claim.occurrence.job)
        {
            let at = claim.occurrence.scheduled_at;
            let late = now.saturating_since(at + series.job.delay(at));
            self.replica.start_latency.observe(late.as_secs_f64());
        }
    }

    fn started(&mut self, attempt: Attempt, moment: Moment<'_>) {
        let Some(run_id) = self.granted.remove(&attempt) else {
            return;
        };
        let counts = Arc::clone(self.shown.counts(&attempt.0));
        let now = moment.store().unwrap_or_else(|| self.jobs.now());
        counts.began(run_id, now);
        let since = moment.boot;
        self.running.insert(run_id, Running { counts, since });
    }

    /// The lease of an attempt is not this replica's any more, or about to be.
    fn lost(&mut self, attempt: Attempt, reason: &'static str) {
        if self.stopped.insert(attempt) {
            self.replica.lost(reason);
        }
    }
}

/// So many occurrences are over, as a line says: none where it stands for a stretch of time in which
/// nothing was due.
fn ended(replica: &Replica, counts: &Counts, line: &Written, now: Timestamp, occurrences: u64) {
    counts.ended(line.outcome, occurrences);
    if line.outcome == Outcome::Missed && occurrences > 0 {
        counts.missed_at(now);
    }
    if line.attempt == 0 && matches!(line.outcome, Outcome::Skipped | Outcome::Missed) {
        let not_started = replica.not_started(line.outcome, line.detail.cause);
        not_started.inc_by(occurrences);
    }
}

/// What became of a claim.
fn in_a_word(answer: &ClaimAnswer) -> &'static str {
    match answer {
        ClaimAnswer::Granted(_) => "won",
        ClaimAnswer::Held(_) | ClaimAnswer::Finished => "lost",
        ClaimAnswer::Early { .. } | ClaimAnswer::Grace { .. } | ClaimAnswer::RequestExpired => {
            "put_off"
        }
        _ => "refused",
    }
}

impl Observer for Watcher {
    fn event(&mut self, event: &Event, moment: Moment<'_>) {
        match event {
            Event::Registered { jobs, sent, result } => {
                self.call("register", Some(*sent), result, moment);
                self.heard_of_tables = true;
                if let Ok(answered) = result {
                    self.registered(jobs, &answered.answer);
                }
            }
            Event::Claimed {
                claims,
                sent,
                result,
            } => {
                self.call("claim", Some(*sent), result, moment);
                self.claimed(claims, result.as_ref().ok(), moment);
            }
            Event::Renewed {
                renewals,
                sent,
                result,
            } => {
                self.call("renew", Some(*sent), result, moment);
                match result {
                    Ok(answered) => answered.answer.iter().for_each(|answer| match answer {
                        RenewalAnswer::Renewed { .. } => self.replica.renewal("renewed"),
                        RenewalAnswer::Lost => self.replica.renewal("lost"),
                    }),
                    Err(_) => renewals.iter().for_each(|_| self.replica.renewal("failed")),
                }
            }
            Event::Released { sent, result, .. } => {
                self.call("release", Some(*sent), result, moment);
            }
            Event::Observed { sent, result, .. } => {
                self.call("observe", Some(*sent), result, moment);
                self.heard_of_tables = true;
            }
            Event::TableRead { .. } => self.heard_of_tables = true,
            Event::Swept { result } => self.call("sweep", None, result, moment),
            Event::AttemptEnded { run_id, .. } => {
                if let Some(Running { counts, since }) = self.running.remove(run_id) {
                    counts.finished(*run_id, moment.boot.saturating_since(since));
                }
            }
            _ => {}
        }
    }

    fn notice(&mut self, notice: &Notice, moment: Moment<'_>) {
        let named = |job: &JobName, token: &FencingToken| (job.clone(), *token);
        match notice {
            // Of jobs that the ledger did not know there was nothing to learn before.
            Notice::Ready { .. } => self.asked.notify_one(),
            Notice::Reloaded { .. } => self.take_table(moment.scheduler),
            Notice::Started {
                occurrence, grant, ..
            } => self.started(named(&occurrence.job, &grant.token), moment),
            Notice::Stopping {
                occurrence,
                token,
                reason,
                ..
            } => match reason {
                StopReason::LeaseExpiring => self.lost(named(&occurrence.job, token), "expiring"),
                StopReason::LeaseLost => self.lost(named(&occurrence.job, token), "taken"),
                _ => {}
            },
            Notice::Superseded {
                occurrence, token, ..
            } => {
                let attempt = named(&occurrence.job, token);
                self.lost(attempt.clone(), "superseded");
                self.stopped.remove(&attempt);
            }
            Notice::Unreleased {
                occurrence, token, ..
            } => {
                let attempt = named(&occurrence.job, token);
                self.lost(attempt.clone(), "unreleased");
                self.stopped.remove(&attempt);
            }
            Notice::Ended {
                occurrence, token, ..
            } => {
                self.stopped.remove(&named(&occurrence.job, token));
            }
            _ => {}
        }
    }

    fn settled(&mut self, moment: Moment<'_>) {
        let Moment { scheduler, .. } = moment;
        if !self.has_table {
            self.take_table(scheduler);
        }
        if std::mem::take(&mut self.heard_of_tables) {
            self.take_left(scheduler);
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        // What was granted and never started is given back, and ends like any other.
        self.granted.clear();
        self.replica.running.set(number(scheduler.running()));
        self.replica.leases.set(number(scheduler.leases()));
        let most = scheduler.max_running().unwrap_or(0);
        self.replica.max_running.set(i64::from(most));
        self.replica.drift.set(number(scheduler.drift()));
        if let Some(ahead_ms) = scheduler.clock_skew_ms() {
            self.replica.set_skew(ahead_ms);
        }
    }
}
