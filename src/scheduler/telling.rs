//! What people are told of attempts and occurrences, beyond the log: what came to its end by the
//! word of the store, and what takes long.
//!
//! Must never: tell of an end that the store has not acknowledged.

use super::lease::{Closing, Output, ReleaseAnswer, RunId};
use super::time::BootTime;
use super::{CallResult, Notice, Scheduler};

impl Scheduler {
    /// Leases were given back, or could not be.
    pub(super) fn released(
        &mut self,
        runs: &[RunId],
        sent: BootTime,
        result: CallResult<Vec<ReleaseAnswer>>,
        now: BootTime,
    ) {
        let answered = self.heard(sent, now, result);
        let answers = answered.as_ref().map(|all| all.answer.as_slice());
        let dice = self.dice();
        let returned = self.held.released(runs, answers, now, dice);
        let mut closings = answered.map(|all| all.closings).unwrap_or_default();
        for one in returned {
            self.report(one.notice);
            let mine = closings.iter().position(|closing| closing.by == one.run_id);
            if let Some(at) = mine {
                self.tell_over(closings.swap_remove(at), one.output);
            }
        }
    }

    /// Occurrences came to their ends by claims.
    pub(super) fn claims_closed(&mut self, closings: Vec<Closing>) {
        for closing in closings {
            self.tell_over(closing, Output::default());
        }
    }

    fn tell_over(&mut self, closing: Closing, output: Output) {
        let closing = Box::new(closing);
        self.report(Notice::Over { closing, output });
    }
}
