//! How occurrences come to this replica: jobs are made known to the store, what falls due or
//! was left by others is claimed, and what is granted is started.
//!
//! ```text
//!   register ──▶ arm ──▶ due ──┐                    ┌─▶ Start
//!                              ├─▶ Claim ──▶ answer ┼─▶ watch (held by another)
//!   observe ───▶ take over ────┘                    ├─▶ again, at a known instant
//!                                                   └─▶ settled
//! ```

use std::collections::HashSet;
use std::time::Duration;

use super::job::{Job, JobName, OnCrash};
use super::lease::{
    Answered, BATCH_LIMIT, Claim, ClaimAnswer, FencingToken, Grant, Observation, Occurrence,
    Origin, Registration, RunId, Scope, Sighting,
};
use super::table::Due;
use super::time::{BootTime, Timestamp};
use super::watch::Takeover;
use super::{Attempt, CallResult, Effect, Notice, Purpose, Scheduler};

/// How long a failed registration waits before it is sent again.
const REGISTER_RETRY: Duration = Duration::from_secs(1);

/// The ledger may have occurrences settled this far ahead of now before people are told.
const SETTLED_AHEAD_TOLERATED: Duration = Duration::from_secs(60);

impl Scheduler {
    pub(super) fn register_waiting(&mut self, now: BootTime) {
        if now < self.registration.retry_at || self.registration.in_flight > 0 {
            return;
        }
        let waiting = std::mem::take(&mut self.registration.waiting);
        for batch in waiting.chunks(BATCH_LIMIT) {
            self.registration.in_flight += 1;
            self.effects.push_back(Effect::Register(batch.to_vec()));
        }
    }

    pub(super) fn registered(
        &mut self,
        jobs: &[JobName],
        sent: BootTime,
        result: CallResult<Vec<Registration>>,
        now: BootTime,
    ) {
        self.registration.in_flight -= 1;
        let Some(answered) = self.heard(sent, now, result) else {
            self.registration.waiting.extend_from_slice(jobs);
            self.registration.retry_at = now + REGISTER_RETRY;
            return;
        };
        if let Purpose::Once(job) = self.settings.purpose.clone() {
            return self.claim_once(&job, answered.now, now);
        }
        for (name, registration) in jobs.iter().zip(&answered.answer) {
            self.arm(name, *registration, answered.now, now);
        }
        if self.registration.in_flight == 0 && self.registration.waiting.is_empty() {
            let (jobs, next) = (self.table.len(), self.table.next_due());
            self.report(Notice::Ready { jobs, next });
        }
    }

    /// Puts a job into the queue. Of what fell due since the ledger last settled anything of
    /// it, the newest is claimed; a job that is new to the ledger never runs its past.
    fn arm(&mut self, name: &JobName, known: Registration, store_now: Timestamp, now: BootTime) {
        if known.new {
            self.report(Notice::NewJob { job: name.clone() });
        }
        let ahead = known.settled_until.saturating_since(store_now);
        if ahead > SETTLED_AHEAD_TOLERATED {
            let (job, until) = (name.clone(), known.settled_until);
            self.report(Notice::SettledAhead { job, until });
        }
        let Some(job) = self.table.get(name).cloned() else {
            return;
        };
        let newest = job
            .schedule
            .last_before(store_now + Duration::from_millis(1));
        let missed = newest.filter(|newest| !known.new && *newest > known.settled_until);
        if let Some(scheduled_at) = missed
            && !self.draining
        {
            let claim = self.draw_claim(&job, scheduled_at, None);
            self.claims.add(claim, now);
        }
        self.table.arm(name, store_now.max(known.settled_until));
    }

    /// Claims an occurrence of a person's asking. It is nobody's to run again if this replica
    /// vanishes: the person sees that it did.
    fn claim_once(&mut self, name: &JobName, store_now: Timestamp, now: BootTime) {
        if let Some(job) = self.table.get(name).cloned() {
            let mut claim = self.draw_claim(&job, store_now, None);
            claim.origin = Origin::Manual;
            claim.on_crash = OnCrash::Skip;
            self.claims.add(claim, now);
        }
    }

    /// Whether the one run that this is all about was claimed and is over, or can't be.
    pub(super) fn run_once_is_settled(&self) -> bool {
        let registered = self.registration.waiting.is_empty() && self.registration.in_flight == 0;
        self.settings.purpose != Purpose::Table && registered && self.claims.is_empty()
    }

    pub(super) fn claim_due(&mut self, now: BootTime) {
        let Some(store_now) = self.clock.reached(now) else {
            return;
        };
        for Due {
            job,
            scheduled_at,
            passed_over,
        } in self.table.take_due(store_now)
        {
            if let Some(first) = passed_over {
                let (job, newest) = (job.name.clone(), scheduled_at);
                self.report(Notice::FellBehind { job, first, newest });
            }
            let claim = self.draw_claim(&job, scheduled_at, None);
            self.claims.add(claim, now);
        }
    }

    fn draw_claim(&mut self, job: &Job, due: Timestamp, watched: Option<Sighting>) -> Claim {
        Claim {
            occurrence: Occurrence {
                job: job.name.clone(),
                scheduled_at: due,
            },
            origin: Origin::Schedule,
            run_id: self.draw_run_id(due),
            on_crash: job.on_crash,
            max_attempts: job.max_attempts,
            start_by: due + job.starting_deadline,
            ttl: job.lease_ttl,
            watched,
            retention: job.retention,
        }
    }

    pub(super) fn claimed(
        &mut self,
        claims: Vec<Claim>,
        sent: BootTime,
        result: CallResult<Vec<ClaimAnswer>>,
        now: BootTime,
    ) {
        let answered = self.heard(sent, now, result);
        let mut answers = answered
            .map(|all| all.answer.into_iter())
            .into_iter()
            .flatten();
        for claim in claims {
            self.claims.landed(claim.run_id);
            match answers.next() {
                Some(answer) => self.answered(claim, answer, sent, now),
                None => self.unanswered(claim.run_id, sent, now),
            }
        }
    }

    /// The store may have granted it: it is asked again. While draining the question can't be
    /// granted any more (see [`Scheduler::caller`]), and is dropped when a lease that it may have
    /// has run out.
    fn unanswered(&mut self, id: RunId, sent: BootTime, now: BootTime) {
        if self.draining {
            self.claims.unanswered_question(id, sent);
            if !self.claims.is_in_doubt(id, now) {
                return self.claims.settle(id);
            }
        } else {
            self.claims.unanswered(id, sent);
        }
        let dice = self.dice();
        self.claims.retry(id, now, dice);
    }

    fn answered(&mut self, claim: Claim, answer: ClaimAnswer, sent: BootTime, now: BootTime) {
        let id = claim.run_id;
        let occurrence = claim.occurrence.clone();
        match answer {
            ClaimAnswer::Granted(grant) => {
                self.claims.settle(id);
                self.granted(claim, grant, sent, now);
            }
            ClaimAnswer::Early { .. } if self.draining => self.claims.settle(id),
            ClaimAnswer::Early { wait } => self.claims.early(id, now, wait),
            ClaimAnswer::Grace { wait } => {
                if !std::mem::replace(&mut self.grace_told, true) {
                    self.report(Notice::Grace { wait });
                }
                self.again(id, now + wait, now);
            }
            ClaimAnswer::RequestExpired if self.draining => self.claims.settle(id),
            ClaimAnswer::RequestExpired => {
                let dice = self.dice();
                self.claims.retry(id, now, dice);
            }
            ClaimAnswer::Held(held) => {
                self.claims.settle(id);
                self.watch.see(&occurrence.job, &held, &self.clock, now);
                if claim.origin == Origin::Manual {
                    self.report(Notice::Skipped {
                        occurrence,
                        unfinished: held,
                    });
                }
            }
            ClaimAnswer::Overlap(held) => {
                self.claims.settle(id);
                self.watch.see(&occurrence.job, &held, &self.clock, now);
                self.report(Notice::Skipped {
                    occurrence,
                    unfinished: held,
                });
            }
            ClaimAnswer::Finished => self.claims.settle(id),
            ClaimAnswer::TooLate => {
                self.claims.settle(id);
                self.report(Notice::Missed { occurrence });
            }
            ClaimAnswer::Closed => {
                self.claims.settle(id);
                self.report(Notice::Closed { occurrence });
            }
        }
    }

    /// Sends a claim again at a known instant, unless there is no time left for it.
    fn again(&mut self, id: RunId, at: BootTime, now: BootTime) {
        match self.draining {
            true => self.claims.settle(id),
            false => self.claims.postpone(id, at.max(now)),
        }
    }

    fn granted(&mut self, claim: Claim, grant: Grant, sent: BootTime, now: BootTime) {
        self.token_floor = self.token_floor.max(grant.token);
        self.grace_told = false;
        let Some(job) = self.table.get(&claim.occurrence.job).cloned() else {
            return;
        };
        let (occurrence, run_id) = (claim.occurrence.clone(), claim.run_id);
        let guard = self.held.granted(job.clone(), claim, grant, sent, now);
        let guard = match guard {
            Some(guard) if !self.draining => guard,
            other => {
                let reason = match other {
                    Some(_) => "the replica was shutting down",
                    None => "granted too late",
                };
                return self.held.never_started(run_id, reason, now);
            }
        };
        let takeover = grant.attempt > 1;
        let scheduled_at = occurrence.scheduled_at;
        self.report(Notice::Started {
            occurrence,
            grant,
            takeover,
        });
        let (number, token) = (grant.attempt, grant.token);
        let attempt = Attempt {
            job,
            scheduled_at,
            run_id,
            number,
            token,
            guard,
        };
        self.effects.push_back(Effect::Start(attempt));
    }

    pub(super) fn observed(
        &mut self,
        scope: Scope,
        sent: BootTime,
        result: CallResult<Observation>,
        now: BootTime,
    ) {
        let Some(Answered {
            now: store_now,
            answer,
        }) = self.heard(sent, now, result)
        else {
            self.watch.look_failed(scope, now);
            return;
        };
        let highest = answer
            .leases
            .iter()
            .map(|lease| lease.held.sighting.token)
            .max();
        self.token_floor = self.token_floor.max(highest.unwrap_or_default());
        let ours: HashSet<FencingToken> = self.held.tokens().collect();
        let table = &self.table;
        let takeovers = self
            .watch
            .looked(&answer, scope, store_now, &self.clock, now, |lease| {
                !ours.contains(&lease.held.sighting.token) && table.get(&lease.job).is_some()
            });
        if !self.draining && self.settings.purpose == Purpose::Table {
            takeovers
                .into_iter()
                .for_each(|takeover| self.take_over(takeover, now));
        }
    }

    fn take_over(&mut self, takeover: Takeover, now: BootTime) {
        let Takeover {
            occurrence,
            watched,
        } = takeover;
        if self.claims.is_pending(&occurrence) {
            return;
        }
        let Some(job) = self.table.get(&occurrence.job).cloned() else {
            return;
        };
        let claim = self.draw_claim(&job, occurrence.scheduled_at, watched);
        self.claims.add(claim, now);
    }
}
