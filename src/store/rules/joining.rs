//! Jobs that come after others: what the end of an occurrence means for them.

use super::Call;
use super::due::WAITING_LIMIT;
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
            self.follow(dependent, at);
        }
        self.forget_oldest();
    }

    /// All before it have succeeded: it may run.
    fn follow(&mut self, dependent: &Dependent, at: Timestamp) {
        let scheduled_at = match self.origin_at(at) {
            None => at,
            // A store that has lost an end may hear of it again.
            Some(Origin::After) => return,
            // A trigger was given, or a run by hand begun, in that very millisecond. Of two with one
            // instant the second would never start.
            Some(_) => self.free_instant_from(at),
        };
        let parents: Vec<_> = dependent.after.iter().map(JobName::as_str).collect();
        let one = Waiting {
            scheduled_at,
            origin: Origin::After,
            by: Some(parents.join(", ")),
            since: self.now(),
            start_by: Some(self.now() + dependent.starting_deadline),
            queued: false,
            late: None,
        };
        if self.record.waiting.len() < WAITING_LIMIT {
            self.record.waiting.push(one);
            return self.tell(News::Opening);
        }
        let unstarted = Unstarted {
            run_id: nobody(),
            scheduled_at,
            waiting: Some(&one),
        };
        let words = format!("the queue is full ({WAITING_LIMIT} waiting)");
        self.never_started(unstarted, Outcome::Skipped, Cause::QueueFull, words);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scheduler::lease::{Dependents, Retention};
    use crate::store::rules::record::Current;
    use crate::store::rules::{Group, Life, somebody};

    fn name(name: &str) -> JobName {
        JobName::new(name).unwrap()
    }

    /// The dependent's record after its one parent has succeeded for this instant.
    fn after_success(record: &Record, at: Timestamp) -> Decision<()> {
        let caller = somebody();
        let dependent = Dependent {
            job: name("second"),
            after: vec![name("first")],
            enabled: true,
            starting_deadline: Duration::from_secs(60),
            retention: Retention {
                limit: 10,
                age: Duration::from_secs(60),
            },
            dependents: Dependents::default(),
        };
        let mut group = Group::default();
        let mut call = Call::begin(&mut group, &caller, at.as_millis() * 1000, &Life::Steady);
        let (parent, succeeded) = (name("first"), Outcome::Succeeded);
        call.arrive(Some(record), &dependent, &parent, at, succeeded)
    }

    fn with_current(scheduled_at: Timestamp, origin: Origin) -> Record {
        Record {
            current: Some(Current {
                scheduled_at,
                origin,
                by: None,
                stop: None,
                slots: Vec::new(),
            }),
            ..Record::default()
        }
    }

    /// A person may ask for it in the millisecond in which what it follows was asked for.
    #[test]
    fn what_follows_has_an_instant_that_nothing_else_has() {
        let at = Timestamp::from_millis(1_234);
        for origin in [Origin::Trigger, Origin::RunOnce] {
            let record = after_success(&with_current(at, origin), at).record.unwrap();
            let waits: Vec<_> = record.waiting.iter().map(|one| one.scheduled_at).collect();
            assert_eq!(waits, [at + Duration::from_millis(1)]);
        }
    }

    #[test]
    fn what_was_followed_already_is_not_followed_again() {
        let at = Timestamp::from_millis(60_000);
        let again = after_success(&with_current(at, Origin::After), at);
        assert!(again.record.is_none() && again.lines.is_empty());
        let once = after_success(&Record::default(), at).record.unwrap();
        assert_eq!(once.waiting.len(), 1);
        assert!(after_success(&once, at).record.is_none());
    }

    #[test]
    fn what_follows_more_than_may_wait_is_skipped_with_the_reason() {
        let minute = |number: usize| Timestamp::from_millis(60_000 * number as i64);
        let mut record = Record::default();
        for number in 1..=WAITING_LIMIT {
            record = after_success(&record, minute(number)).record.unwrap();
        }
        let decision = after_success(&record, minute(WAITING_LIMIT + 1));
        let line = &decision.lines[0];
        let skipped = (Outcome::Skipped, Some(Cause::QueueFull));
        assert_eq!((line.outcome, line.detail.cause), skipped);
        assert_eq!(line.scheduled_at, minute(WAITING_LIMIT + 1));
        let waits = decision
            .record
            .map_or(WAITING_LIMIT, |record| record.waiting.len());
        assert_eq!(waits, WAITING_LIMIT);
    }
}
