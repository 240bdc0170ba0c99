//! What this replica has seen of the ledger, to be told again where that has lost its data.
//!
//! ```text
//!  enrolled, answered ─▶ remembered ── the ledger began anew ─▶ told with the enrolment
//!  a pause began or ended (news),
//!  or news may have been missed ──▶ asked about: all jobs
//!  a claim met a suspension,
//!  or none where one was seen ────▶ asked about: that job
//!  the grace window is over ──────▶ asked about: all jobs, so that what is lost is written down
//! ```
//!
//! A look shows what is to be done, and nothing of a job that is paused, so that its price stays
//! the same however many are. So a pause is learnt when the job is enrolled, and asked about when
//! there is a sign of it.
//!
//! Must never: decide by what it remembers; it is the ledger's, and may be old.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::job::JobName;
use super::lease::{
    Claim, ClaimAnswer, Enrolment, Force, Origin, Registration, Scope, Seen, SeenPause,
};
use super::time::{BootTime, Timestamp};
use super::{Purpose, Scheduler};

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Memory {
    jobs: HashMap<JobName, Known>,
    /// The ledger began anew, and its grace window may last.
    grace_lasts: bool,
}

#[derive(Debug, Default)]
struct Known {
    seen: Seen,
    /// The suspension that a claim met last, by its beginning.
    suspended_since: Option<Timestamp>,
}

impl Memory {
    /// The ledger answered an enrolment. `born` is its birth as it was seen last: one that was
    /// born since may have lost a pause that it doesn't tell of.
    pub(super) fn enrolled(
        &mut self,
        job: &JobName,
        known: &Registration,
        born: Option<Timestamp>,
    ) {
        let of_job = self.jobs.entry(job.clone()).or_default();
        of_job.settled(known.settled_until);
        of_job.seen.force.clone_from(&known.force);
        match &known.paused {
            Some(pause) => {
                let pause = pause.clone();
                of_job.seen.pause = Some(SeenPause { pause, over: false });
            }
            None if born == Some(known.born) => of_job.pause_is_over(),
            None => {}
        }
    }

    /// Lets go of some jobs.
    pub(super) fn forget(&mut self, of: impl Fn(&JobName) -> bool) {
        self.jobs.retain(|job, _| !of(job));
    }

    /// The ledger answered a claim. True: it is to be asked how the job stands.
    pub(super) fn answered(&mut self, claim: &Claim, answer: &ClaimAnswer) -> bool {
        let due = claim.occurrence.scheduled_at;
        let known = self.jobs.entry(claim.occurrence.job.clone()).or_default();
        if let ClaimAnswer::Suspended { since } = answer {
            return known.suspended_since.replace(*since) != Some(*since);
        }
        if !is_settled(claim, answer) {
            return false;
        }
        known.settled(due);
        // In a pause nothing of the schedule is settled: it is over, most likely.
        let pause = known.seen.pause.as_ref();
        pause.is_some_and(|seen| !seen.over && seen.pause.since < due)
    }

    /// Which definition of a job is in force, as it was told last.
    pub(super) fn force(&self, job: &JobName) -> Option<&Force> {
        self.jobs.get(job)?.seen.force.as_ref()
    }

    /// What was seen of a job.
    fn seen(&self, job: &JobName) -> Seen {
        let known = self.jobs.get(job);
        known.map(|known| known.seen.clone()).unwrap_or_default()
    }
}

/// Whether the answer to a claim shows that its instant is settled.
fn is_settled(claim: &Claim, answer: &ClaimAnswer) -> bool {
    match answer {
        ClaimAnswer::Granted(_)
        | ClaimAnswer::Held(_)
        | ClaimAnswer::Overlap(_)
        | ClaimAnswer::Waiting
        | ClaimAnswer::Skipped(_)
        | ClaimAnswer::Finished
        | ClaimAnswer::TooLate
        | ClaimAnswer::Closed => {
            claim.origin == Origin::Schedule && claim.claim_by != Claim::ONLY_ASKS
        }
        ClaimAnswer::NoRoom
        | ClaimAnswer::Suspended { .. }
        | ClaimAnswer::Early { .. }
        | ClaimAnswer::Grace { .. }
        | ClaimAnswer::RequestExpired
        | ClaimAnswer::Outdated { .. } => false,
    }
}

impl Known {
    fn settled(&mut self, until: Timestamp) {
        self.seen.settled_until = self.seen.settled_until.max(Some(until));
    }

    fn pause_is_over(&mut self) {
        if let Some(seen) = &mut self.seen.pause {
            seen.over = true;
        }
    }
}

impl Scheduler {
    /// A ledger that began anew since it was looked at last may have lost the jobs with their
    /// schedules, and what people ordered. It is told of them again. And it may have leases again of
    /// which nobody knows, abandoned for so long that looks pass them over.
    pub(super) fn remember_birth(&mut self, born: Timestamp, now: BootTime) {
        let before = self.born.replace(born);
        if before.is_some_and(|before| before != born) {
            self.watch.look_now(Scope::All, now);
            // Whoever found the loss may have left less time for that than a lease of here lasts.
            self.held.renew_now(now);
        }
        if before.is_some_and(|before| before < born) && self.may_enrol() {
            let mut enrolments = self.table.enrolments();
            for one in &mut enrolments {
                one.again = true;
                one.seen = self.memory.seen(&one.job);
            }
            self.memory.grace_lasts = true;
            self.registration.waiting.retain(|one| !one.again);
            self.registration.waiting.extend(enrolments);
        }
    }

    /// The grace window of the ledger lasts for so long. When it is over, whoever asks has written
    /// down what nobody can tell any more.
    pub(super) fn heard_of_grace(&mut self, left: Duration) {
        if left.is_zero() && std::mem::take(&mut self.memory.grace_lasts) {
            self.ask_about_all();
        }
    }

    /// Asks the ledger how all jobs stand.
    pub(super) fn ask_about_all(&mut self) {
        if self.may_enrol() {
            let enrolments = self.table.enrolments();
            self.ask_about(enrolments);
        }
    }

    /// Asks the ledger how a job stands.
    pub(super) fn ask_about_one(&mut self, job: &JobName) {
        if let Some(entry) = self.table.entry(job).filter(|_| self.may_enrol()) {
            let enrolment = Enrolment::of(&entry.job);
            self.ask_about(vec![enrolment]);
        }
    }

    /// Asks the ledger how some jobs stand.
    pub(super) fn ask_about(&mut self, mut enrolments: Vec<Enrolment>) {
        let waiting = &mut self.registration.waiting;
        let asked: HashSet<JobName> = waiting.iter().map(|one| one.job.clone()).collect();
        enrolments.retain(|one| !asked.contains(&one.job));
        for one in &mut enrolments {
            one.again = true;
            let seen = self.memory.seen(&one.job);
            one.seen.settled_until = seen.settled_until;
            one.seen.force = seen.force;
        }
        waiting.extend(enrolments);
    }

    fn may_enrol(&self) -> bool {
        self.settings.purpose == Purpose::Table && !self.draining
    }
}
