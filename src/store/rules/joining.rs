//! Jobs that come after others: what the end of an occurrence means for them.

use super::Call;
use super::enrolling::nobody;
use super::record::{Decision, Join, News, Record, Waiting};
use super::step::{Step, Unstarted};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Cause, Dependent, Origin, Outcome};
use crate::scheduler::time::Timestamp;

/// How many occurrences of a job wait for others at once; over this the oldest is skipped.
const JOINS_LIMIT: usize = 100;

impl Call<'_> {
    /// An occurrence of `parent` is over.
    pub(in crate::store) fn arrive(
        &mut self,
        record: Option<&Record>,
        dependent: &Dependent,
        parent: &JobName,
        at: Timestamp,
        outcome: Outcome,
    ) -> Decision<()> {
        let mut step = Step::begin(self, record);
        step.arrive(dependent, parent, at, outcome);
        step.decide(())
    }
}

impl Step<'_, '_> {
    fn arrive(&mut self, dependent: &Dependent, parent: &JobName, at: Timestamp, outcome: Outcome) {
        let joins = &mut self.record.joins;
        let known = joins.iter().position(|join| join.scheduled_at == at);
        let index = known.unwrap_or_else(|| {
            joins.push(Join {
                scheduled_at: at,
                arrived: Vec::new(),
                dead: false,
            });
            joins.len() - 1
        });
        let join = &mut joins[index];
        if !join.arrived.contains(parent) {
            join.arrived.push(parent.clone());
        }
        let complete = dependent
            .after
            .iter()
            .all(|name| join.arrived.contains(name));
        let (was_dead, succeeded) = (join.dead, outcome == Outcome::Succeeded);
        join.dead |= !succeeded || !dependent.enabled;
        let dead = join.dead;
        if complete {
            joins.remove(index);
        }
        if dead && !was_dead {
            let (cause, words) = match dependent.enabled {
                true => (Cause::After, format!("`{parent}` before it: {outcome}")),
                false => (Cause::Disabled, "the job was disabled".to_owned()),
            };
            self.skip_join(at, cause, words);
        }
        if complete && !dead {
            self.record.waiting.push(Waiting {
                scheduled_at: at,
                origin: Origin::After,
                by: Some(
                    dependent
                        .after
                        .iter()
                        .map(JobName::as_str)
                        .collect::<Vec<_>>()
                        .join(", "),
                ),
                since: self.now(),
                start_by: Some(self.now() + dependent.starting_deadline),
                queued: false,
                late: None,
            });
            self.tell(News::Opening);
        }
        self.forget_oldest();
    }

    /// What waits for too long is skipped, and remembered for as long again: the others before it
    /// may still end, and must not begin it anew.
    fn forget_oldest(&mut self) {
        let waits = |join: &Join| !join.dead;
        while self.record.joins.iter().filter(|join| waits(join)).count() > JOINS_LIMIT {
            let Some(oldest) = self.record.joins.iter_mut().find(|join| waits(join)) else {
                break;
            };
            oldest.dead = true;
            let at = oldest.scheduled_at;
            let words = "too many newer occurrences of the jobs before it ended meanwhile";
            self.skip_join(at, Cause::After, words.to_owned());
        }
        while self.record.joins.len() > 2 * JOINS_LIMIT {
            let dead = self.record.joins.iter().position(|join| join.dead);
            self.record.joins.remove(dead.unwrap_or(0));
        }
    }

    fn skip_join(&mut self, at: Timestamp, cause: Cause, words: String) {
        let waiting = Waiting {
            scheduled_at: at,
            origin: Origin::After,
            by: None,
            since: self.now(),
            start_by: None,
            queued: false,
            late: None,
        };
        let unstarted = Unstarted {
            run_id: nobody(),
            scheduled_at: at,
            waiting: Some(&waiting),
        };
        self.never_started(unstarted, Outcome::Skipped, cause, words);
    }
}
