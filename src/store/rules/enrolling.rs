//! How a job becomes known to the ledger, changes its schedule, and is disabled and enabled.

use std::time::Duration;

use uuid::Uuid;

use super::Call;

use super::defining::Offer;
use super::record::{Decision, News, Paused, Record, Suspension, Waiting};
use super::step::Step;
use crate::scheduler::lease::{
    Cause, Definition, Enrolment, Origin, Outcome, Registration, RunId, ScheduleChange,
};

impl Call<'_> {
    /// See [`super::super::Store::register`].
    pub(in crate::store) fn register(
        &mut self,
        record: Option<&Record>,
        enrolment: &Enrolment,
    ) -> Decision<Registration> {
        let mut step = Step::begin(self, record);
        let new = !step.known;
        step.note_table(enrolment.again);
        let pause_came_back = step.recall(enrolment);
        step.recall_force(enrolment);
        let enrolled = step.enrol(enrolment);
        step.write_off_lost(&enrolment.job);
        let (record, now) = (&step.record, step.now());
        let registration = Registration {
            settled_until: record.settled_until,
            new,
            former_schedule: enrolled.former_schedule,
            outdated: enrolled.outdated,
            force: record.force.clone(),
            fresh_for: record.mark_is_fresh_for(now),
            openings: record.openings(&enrolment.job, now),
            paused: record.paused.as_ref().map(Paused::shown),
            pause_came_back,
            born: step.born(),
        };
        match new {
            true => step.decide_anew(registration),
            false => step.decide(registration),
        }
    }
}

/// Why an enrolment changed nothing, if it did not.
#[derive(Default)]
struct Enrolled {
    /// The ledger has this schedule, and it isn't known yet what of it is to run.
    former_schedule: Option<String>,
    /// That definition is in force, and newer.
    outdated: Option<Definition>,
}

impl Step<'_, '_> {
    /// Takes in what a table says of a job.
    fn enrol(&mut self, enrolment: &Enrolment) -> Enrolled {
        let offer = self.judge_offer(enrolment);
        if let Offer::Outdated(in_force) = offer {
            return Enrolled {
                outdated: Some(in_force),
                ..Enrolled::default()
            };
        }
        // The ledger may have lost it. Where it has not, only what is newer says more.
        let told_before = enrolment.again && !self.record.schedule.is_empty();
        let nothing_new = told_before && offer != Offer::Newer;
        if !(enrolment.schedule.is_empty() || nothing_new) {
            let former_schedule = self.change_what_is_due(enrolment);
            if former_schedule.is_some() {
                return Enrolled {
                    former_schedule,
                    ..Enrolled::default()
                };
            }
        }
        if offer != Offer::Unsaid {
            self.put_into_force(&enrolment.definition);
        }
        Enrolled::default()
    }

    /// Takes in schedule and `enabled`. Answers the ledger's schedule where that is another one and
    /// it isn't known yet what of it is to run.
    fn change_what_is_due(&mut self, enrolment: &Enrolment) -> Option<String> {
        let former = self.record.schedule.clone();
        let unsettled = self.known && !former.is_empty() && former != enrolment.schedule;
        if unsettled {
            let change = enrolment
                .change
                .as_ref()
                .filter(|change| change.from == former);
            let Some(change) = change else {
                return Some(former);
            };
            self.change_schedule(change);
        }
        self.record.schedule.clone_from(&enrolment.schedule);
        match (enrolment.enabled, self.record.disabled) {
            (false, None) => self.record.disabled = Some(self.now()),
            (true, Some(since)) => {
                let ended = Suspension::disabled(since);
                self.record.disabled = None;
                self.end_suspension(&enrolment.job, ended);
            }
            _ => {}
        }
        None
    }

    /// What is due by both schedules waits for its turn; what was due by the former alone is
    /// missed, and by the new one alone never was due.
    fn change_schedule(&mut self, change: &ScheduleChange) {
        let now = self.now();
        let words = "no replica claimed it before the schedule was changed";
        let pass_over = |step: &mut Self, until| {
            let cause = Cause::ScheduleChanged;
            step.pass_over(nobody(), until, Outcome::Missed, cause, words);
        };
        for one in &change.run {
            let settled =
                Some(one.at) <= self.record.lost_until.max(Some(self.record.settled_until));
            if settled || one.at > now || self.suspended_since(one.at).is_some() {
                continue;
            }
            if one.missed_before {
                pass_over(self, one.at - Duration::from_millis(1));
            }
            self.settle(one.at);
            self.record.waiting.push(Waiting {
                scheduled_at: one.at,
                origin: Origin::Schedule,
                by: None,
                since: now,
                start_by: Some(one.start_by),
                queued: true,
                late: None,
            });
            self.tell(News::Opening);
        }
        pass_over(self, now);
    }
}

/// The id in lines that no claim brought about.
pub(super) fn nobody() -> RunId {
    RunId::new(Uuid::nil())
}
