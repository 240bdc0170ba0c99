//! What replicas tell a ledger that has lost data: it takes back what they have seen of it.
//!
//! A replica tells it once, when it hears of the loss, which is within the grace window that
//! begins with it. The window also bounds how long a pause that a person has ended meanwhile could
//! come back by the word of a replica that did not hear of that.
//!
//! Must never: believe a replica where nothing was lost; what the ledger holds is what counts.

use super::record::Paused;
use super::step::Step;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Enrolment, SeenPause};

impl Step<'_, '_> {
    /// Takes in what a replica saw of a job before the ledger lost data. Answers whether the job
    /// is paused again by that.
    pub(super) fn recall(&mut self, enrolment: &Enrolment) -> bool {
        let lost = !self.known || !self.call.grace().is_zero();
        let seen = enrolment.pause.as_ref().filter(|_| lost);
        seen.is_some_and(|seen| self.recall_pause(&enrolment.job, seen))
    }

    fn recall_pause(&mut self, job: &JobName, seen: &SeenPause) -> bool {
        let SeenPause { pause, over } = seen;
        match (&self.record.paused, over) {
            (None, false) if pause.since <= self.now() => {
                self.record.paused = Some(Paused {
                    since: pause.since,
                    by: pause.by.clone(),
                });
                true
            }
            // A ledger that fell back to what it was may have a pause that is over.
            (Some(paused), true) if paused.since == pause.since => {
                let ended = paused.suspension();
                self.record.paused = None;
                self.end_suspension(job, ended);
                false
            }
            _ => false,
        }
    }
}
