//! How jobs come to be known to the ledger, and how a changed schedule is joined to what was due
//! before.

use std::time::Duration;

use super::batches::batches;
use super::job::JobName;
use super::lease::{CommonInstant, Enrolment, Late, Registration, ScheduleChange};
use super::policy::CatchUp;
use super::schedule::Schedule;
use super::table::Entry;
use super::time::{BootTime, Timestamp};
use super::{CallResult, Effect, Notice, Purpose, Scheduler};

/// How long a failed registration waits before it is sent again.
const REGISTER_RETRY: Duration = Duration::from_secs(1);

/// How many instants of two schedules are compared at most.
const COMPARED: usize = 10_000;

/// The ledger may have occurrences settled this far ahead of now before people are told.
const SETTLED_AHEAD_TOLERATED: Duration = Duration::from_secs(60);

impl Scheduler {
    pub(super) fn register_waiting(&mut self, now: BootTime) {
        if now < self.registration.retry_at || self.registration.in_flight > 0 {
            return;
        }
        let waiting = std::mem::take(&mut self.registration.waiting);
        // One that failed may wait beside one that was asked for since.
        for batch in batches(waiting, |enrolment| (&enrolment.job, 0)) {
            self.registration.in_flight += 1;
            self.effects.push_back(Effect::Register(batch));
        }
    }

    pub(super) fn registered(
        &mut self,
        jobs: Vec<Enrolment>,
        sent: BootTime,
        result: CallResult<Vec<Registration>>,
        now: BootTime,
    ) {
        self.registration.in_flight -= 1;
        let Some(answered) = self.heard(sent, now, result) else {
            // Who lives is looked at again before it is said again.
            let unsaid = |one| Enrolment { over: None, ..one };
            self.registration
                .waiting
                .extend(jobs.into_iter().map(unsaid));
            self.registration.retry_at = now + REGISTER_RETRY;
            return;
        };
        let (mut forgotten, mut outdated, mut resumed) = (0, Vec::new(), Vec::new());
        for (enrolment, known) in jobs.into_iter().zip(answered.answer) {
            self.upkeep.told(&enrolment.job, now + known.fresh_for);
            self.memory.enrolled(&enrolment.job, &known, self.born);
            if let Some(pause) = known.paused.clone().filter(|_| known.pause_came_back) {
                let job = enrolment.job.clone();
                self.report(Notice::PauseCameBack { job, pause });
            }
            forgotten += usize::from(enrolment.again && known.new);
            let left = self.drift.leaves(&enrolment.job);
            let is_told = self.drift.is_told(&enrolment.job);
            if let Some(in_force) = known.outdated {
                outdated.push((enrolment.job, in_force));
            } else if let Some(from) = known.former_schedule.clone() {
                self.change_schedule(enrolment, from, known.settled_until, answered.now);
            } else if enrolment.again && !left {
                // It is in the queue.
            } else if !self.drift.comes_back(&enrolment.job) {
                // Others have a newer table.
            } else if let Purpose::Once(job) = self.settings.purpose.clone() {
                self.claim_once(&job, answered.now, now);
            } else {
                self.arm(&enrolment.job, known, answered.now, now);
                resumed.extend(is_told.then_some(enrolment.job));
            }
        }
        self.leave_outdated(outdated);
        if !resumed.is_empty() {
            self.report(Notice::InForceAgain { jobs: resumed });
        }
        if forgotten > 0 {
            self.report(Notice::LedgerLost { jobs: forgotten });
        }
        let all = self.registration.in_flight == 0 && self.registration.waiting.is_empty();
        let table = self.settings.purpose == Purpose::Table;
        if all && table && !std::mem::replace(&mut self.registration.told, true) {
            let (jobs, next) = (self.table.len(), self.table.next_instant());
            self.report(Notice::Ready { jobs, next });
        }
    }

    /// The ledger has another schedule of a job. What fell due meanwhile by both still counts;
    /// what fell due by the former alone is missed, and by the new one alone was never due.
    fn change_schedule(
        &mut self,
        mut enrolment: Enrolment,
        from: String,
        settled_until: Timestamp,
        store_now: Timestamp,
    ) {
        let Some(entry) = self.table.entry(&enrolment.job) else {
            return;
        };
        let former = Schedule::from_identity(&from, enrolment.job.as_str());
        let common = |former: Schedule| entry.common(&former, settled_until, store_now);
        let run = former.map(common).unwrap_or_default();
        let (job, to) = (enrolment.job.clone(), enrolment.schedule.clone());
        self.report(Notice::ScheduleChanged {
            job,
            from: from.clone(),
            to,
        });
        enrolment.change = Some(ScheduleChange { from, run });
        self.registration.waiting.push(enrolment);
    }

    /// Puts a job into the queue. What fell due since the ledger last settled anything of it is
    /// caught up with; a job that is new to the ledger never runs its past.
    fn arm(&mut self, name: &JobName, known: Registration, store_now: Timestamp, now: BootTime) {
        if known.new {
            self.report(Notice::NewJob { job: name.clone() });
        }
        let ahead = known.settled_until.saturating_since(store_now);
        if ahead > SETTLED_AHEAD_TOLERATED {
            let (job, until) = (name.clone(), known.settled_until);
            self.report(Notice::SettledAhead { job, until });
        }
        if self.table.get(name).is_none() {
            return;
        }
        self.table.arm(name, known.settled_until);
        self.unsure.insert(name.clone());
        for opening in known.openings {
            self.take_opening(opening, Some(Late::Away), now);
        }
    }
}

impl Entry {
    /// The unsettled instants that a former schedule has too and that still are to run.
    fn common(
        &self,
        former: &Schedule,
        settled_until: Timestamp,
        now: Timestamp,
    ) -> Vec<CommonInstant> {
        let schedule = &self.job.schedule;
        let most = match self.job.catch_up {
            CatchUp::Latest => 1,
            CatchUp::All { limit } => limit as usize,
            CatchUp::None => 0,
        };
        let newest = schedule.last_before(now + Duration::from_millis(1));
        let back = std::iter::successors(newest, |at| schedule.last_before(*at));
        let in_time = |at: &Timestamp| *at > settled_until && self.job.start_by(*at) >= now;
        let both = back.take(COMPARED).take_while(in_time);
        let mut common: Vec<_> = both.filter(|at| former.has(*at)).take(most).collect();
        common.reverse();
        let mut before = settled_until;
        let instants = common.into_iter().map(|at| CommonInstant {
            at,
            start_by: self.job.start_by(at),
            missed_before: {
                let next = former.next_after(std::mem::replace(&mut before, at));
                next.is_some_and(|next| next < at)
            },
        });
        instants.collect()
    }
}
