//! What this replica has seen of the ledger, to be told again where that has lost its data.
//!
//! ```text
//!  enrolled, answered ─▶ remembered ── the ledger began anew ─▶ told with the enrolment
//!  a pause began or ended (news) ─▶ asked about: all jobs
//!  a claim met a suspension ──────▶ asked about: that job
//! ```
//!
//! A look shows what is to be done, and nothing of a job that is paused, so that its price stays
//! the same however many are. So a pause is learnt when the job is enrolled, and asked about when
//! there is a sign of it.
//!
//! Must never: decide by what it remembers; it is the ledger's, and may be old.

use std::collections::{HashMap, HashSet};

use super::job::JobName;
use super::lease::{Claim, ClaimAnswer, Enrolment, Origin, Registration, SeenPause};
use super::time::Timestamp;
use super::{Purpose, Scheduler};

/// What is remembered, by job.
#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<JobName, Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The newest pause, and whether it is over.
    pause: Option<SeenPause>,
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
        let seen = self.0.entry(job.clone()).or_default();
        match &known.paused {
            Some(pause) => {
                let pause = pause.clone();
                seen.pause = Some(SeenPause { pause, over: false });
            }
            None if born == Some(known.born) => seen.pause_is_over(),
            None => {}
        }
    }

    /// The ledger answered a claim. True: it is to be asked how the job stands.
    pub(super) fn answered(&mut self, claim: &Claim, answer: &ClaimAnswer) -> bool {
        let due = claim.occurrence.scheduled_at;
        let seen = self.0.entry(claim.occurrence.job.clone()).or_default();
        match answer {
            ClaimAnswer::Suspended { since } => {
                seen.suspended_since.replace(*since) != Some(*since)
            }
            // Nothing of the schedule is granted in a pause.
            ClaimAnswer::Granted(_) if claim.origin == Origin::Schedule => {
                let pause = seen.pause.as_ref();
                if pause.is_some_and(|seen| seen.pause.since < due) {
                    seen.pause_is_over();
                }
                false
            }
            _ => false,
        }
    }

    fn pause(&self, job: &JobName) -> Option<SeenPause> {
        self.0.get(job).and_then(|seen| seen.pause.clone())
    }
}

impl Seen {
    fn pause_is_over(&mut self) {
        if let Some(seen) = &mut self.pause {
            seen.over = true;
        }
    }
}

impl Scheduler {
    /// A ledger that began anew since it was looked at last may have lost the jobs with their
    /// schedules, and what people ordered. It is told of them again.
    pub(super) fn remember_birth(&mut self, born: Timestamp) {
        let before = self.born.replace(born);
        if before.is_some_and(|before| before < born) && self.may_enrol() {
            let mut enrolments = self.table.enrolments();
            for one in &mut enrolments {
                one.again = true;
                one.pause = self.memory.pause(&one.job);
            }
            self.registration.waiting.retain(|one| !one.again);
            self.registration.waiting.extend(enrolments);
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

    fn ask_about(&mut self, mut enrolments: Vec<Enrolment>) {
        let waiting = &mut self.registration.waiting;
        let asked: HashSet<JobName> = waiting.iter().map(|one| one.job.clone()).collect();
        enrolments.retain(|one| !asked.contains(&one.job));
        enrolments.iter_mut().for_each(|one| one.again = true);
        waiting.extend(enrolments);
    }

    fn may_enrol(&self) -> bool {
        self.settings.purpose == Purpose::Table && !self.draining
    }
}
