//! How occurrences come to this replica: jobs are made known to the store, what falls due or
//! was left by others is claimed, and what is granted is started.
//!
//! ```text
//!   register ──▶ arm ──▶ due ──┐                    ┌─▶ Start
//!                              ├─▶ Claim ──▶ answer ┼─▶ watch (held by another)
//!   observe ───▶ take over ────┘                    ├─▶ again, at a known instant
//!                                                   ├─▶ left to those with a newer definition
//!                                                   └─▶ settled
//! ```

use std::time::Duration;

use super::claims::Asked;
use super::job::{JobName, OnCrash};
use super::lease::{Claim, ClaimAnswer, Grant, LATE_AFTER, Late, Origin, RunId, Scope};
use super::table::{Due, UNPLACED_DELAY};
use super::time::{BootTime, Timestamp};
use super::{Attempt, CallResult, Effect, Notice, Purpose, Scheduler};

impl Scheduler {
    /// Claims an occurrence of a person's asking. It is nobody's to run again if this replica
    /// vanishes: the person sees that it did.
    pub(super) fn claim_once(&mut self, name: &JobName, store_now: Timestamp, now: BootTime) {
        if let Some(entry) = self.table.entry(name).cloned() {
            let run_id = self.draw_run_id(store_now);
            let claim = Claim {
                on_crash: OnCrash::Skip,
                start_by: store_now + entry.job.starting_deadline,
                claim_by: store_now + entry.job.starting_deadline,
                shards: 1,
                unplaced: false,
                // What a person runs here and now the fleet's tables need not have.
                definition: String::new(),
                ..entry.claim(store_now, Origin::RunOnce, 0, run_id)
            };
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
        self.heed_pokes(store_now);
        let mut due = self.table.take_due(store_now);
        if self.settings.max_running.is_some() {
            // Where there is not room for all, no job is always the last.
            due.sort_by_key(|due| due.turn());
        }
        for due in due {
            self.claim_one(due, store_now, now);
        }
    }

    /// Claims an occurrence that has come due, in all its shards.
    fn claim_one(&mut self, due: Due, store_now: Timestamp, now: BootTime) {
        let Due {
            entry,
            scheduled_at,
            passed_over,
            follows,
        } = due;
        let name = entry.job.name.clone();
        let first = self.unsure.remove(&name);
        if let Some(oldest) = passed_over
            && !first
        {
            let (job, newest) = (name.clone(), scheduled_at);
            self.report(Notice::FellBehind {
                job,
                first: oldest,
                newest,
            });
        }
        let deferred = self.deferred.len();
        let overtaken = |claim: &Claim| claim.occurrence.job == name && claim.origin.is_schedule();
        self.deferred.retain(|claim| !overtaken(claim));
        let crowded = self.deferred.len() < deferred;
        let unsure = first || passed_over.is_some() || crowded || self.claims.has_pending(&name);
        for shard in 0..entry.job.shards {
            let run_id = self.draw_run_id(scheduled_at);
            let mut claim = entry.claim(scheduled_at, Origin::Schedule, shard, run_id);
            if unsure {
                entry.catch_up(&mut claim, store_now);
                let late = store_now.saturating_since(entry.claim_at(scheduled_at));
                claim.late = (late > LATE_AFTER).then_some(Late::Away);
            }
            claim.follows = (!unsure).then_some(follows);
            claim.no_room_before = crowded;
            let wait = self
                .placement
                .wait(&entry.job, &claim.occurrence, shard, None);
            self.take(claim, now + wait, now);
            if !entry.runs_here {
                // It only writes down that nobody ran it; once is enough.
                return;
            }
        }
    }

    /// A claim came to a job that is suspended since then. What was due before that, where it
    /// was not sure that others had claimed it, is claimed now.
    fn claim_before(&mut self, claim: &Claim, since: Timestamp, now: BootTime) {
        let just_after = since + Duration::from_millis(1);
        let entry = self.table.get(&claim.occurrence.job).cloned();
        let unsure = claim.missed_until.is_some() && claim.shard == 0;
        let due = entry.filter(|_| unsure).and_then(|entry| {
            let scheduled_at = entry.job.schedule.last_before(just_after)?;
            Some(Due {
                entry,
                scheduled_at,
                passed_over: None,
                // What is older is caught up with.
                follows: scheduled_at,
            })
        });
        if let (Some(due), Some(store_now)) = (due, self.clock.reached(now)) {
            self.unsure.insert(claim.occurrence.job.clone());
            self.claim_one(due, store_now, now);
        }
    }

    /// How long this replica lets others go first with a claim that was answered, and is sent
    /// again.
    fn turn(&self, claim: &Claim) -> Duration {
        if claim.unplaced {
            return UNPLACED_DELAY;
        }
        let entry = self.table.entry(&claim.occurrence.job);
        entry.map_or(Duration::ZERO, |entry| {
            self.placement
                .wait(&entry.job, &claim.occurrence, claim.shard, None)
        })
    }

    /// For how many more attempts there is room.
    pub(super) fn room(&self) -> usize {
        let most = self
            .settings
            .max_running
            .map_or(usize::MAX, |most| most as usize);
        match most {
            usize::MAX => most,
            _ => most.saturating_sub(self.held.running() + self.claims.startable()),
        }
    }

    /// Whether something that anybody may take can be taken here. Where it can't, it is looked
    /// for again as soon as there is room: that may be when an attempt has ended, or when a claim
    /// was lost to another replica.
    pub(super) fn has_room_for_more(&mut self) -> bool {
        let has_room = self.room() > 0;
        self.left_some |= !has_room;
        has_room
    }

    /// Looks for what was left for want of room, now that there is some.
    pub(super) fn look_for_what_was_left(&mut self, now: BootTime) {
        if self.left_some && self.room() > 0 {
            self.left_some = false;
            self.held_up = Some(Late::Room);
            self.watch.look_now(Scope::Overdue, now);
        }
    }

    /// Sends a claim at `at`. Without room it is granted nothing, and comes back to wait for some;
    /// but what needs none is decided.
    fn take(&mut self, mut claim: Claim, at: BootTime, now: BootTime) {
        claim.no_room = self.room() == 0;
        self.claims.add(claim, at.max(now));
    }

    /// A claim could have been granted to a replica with room.
    fn found_no_room(&mut self, claim: Claim, now: BootTime) {
        let in_time = self
            .clock
            .reached(now)
            .is_some_and(|now| claim.claim_by >= now);
        match claim.origin.is_schedule() && claim.watched.is_none() && in_time && !claim.unplaced {
            true => self.deferred.push_back(claim),
            false => self.left_some |= !claim.unplaced,
        }
    }

    /// Sends what waited for room: while there is some, or as it is too late. The store then
    /// writes down that it was, unless another replica had room.
    pub(super) fn claim_deferred(&mut self, now: BootTime) {
        let Some(store_now) = self.clock.reached(now) else {
            return;
        };
        while self.room() > 0
            && let Some(claim) = self.deferred.pop_front()
        {
            let (no_room, late) = (false, Some(Late::Room));
            let claim = Claim {
                no_room,
                late,
                ..claim
            };
            self.claims.add(claim, now);
        }
        let all = self.deferred.drain(..);
        let (late, rest): (Vec<_>, Vec<_>) = all.partition(|claim| claim.claim_by < store_now);
        self.deferred.extend(rest);
        late.into_iter()
            .for_each(|claim| self.claims.add(claim, now));
    }

    pub(super) fn claimed(
        &mut self,
        claims: Vec<Claim>,
        sent: BootTime,
        result: CallResult<Vec<ClaimAnswer>>,
        now: BootTime,
    ) {
        let answered = self.heard(sent, now, result);
        let (answers, closings) = answered.map(|all| (all.answer, all.closings)).unzip();
        self.claims_closed(closings.unwrap_or_default());
        let mut answers = answers.into_iter().flatten();
        for claim in claims {
            self.claims.landed(claim.run_id);
            match answers.next() {
                Some(answer) => {
                    if !matches!(answer, ClaimAnswer::Granted(_)) {
                        self.claims.not_granted(claim.run_id, sent);
                    }
                    self.answered(claim, answer, sent, now);
                }
                None => self.unanswered(claim.run_id, sent, now),
            }
        }
        self.leave_refused();
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
        if self.memory.answered(&claim, &answer) {
            self.ask_about_one(&occurrence.job);
        }
        match answer {
            ClaimAnswer::Granted(grant) => {
                let asked = self.claims.granted(id, sent);
                self.granted(claim, grant, asked, now);
            }
            ClaimAnswer::Early { .. } | ClaimAnswer::RequestExpired if self.draining => {
                self.claims.settle(id);
            }
            ClaimAnswer::Early { wait } => self.claims.early(id, now, wait),
            ClaimAnswer::Grace { wait } => {
                self.grace_until = self.grace_until.max(sent + wait);
                self.held_back(&claim, wait, now);
            }
            ClaimAnswer::RequestExpired => {
                let dice = self.dice();
                self.claims.retry(id, now, dice);
            }
            ClaimAnswer::Held(held) => {
                self.claims.settle(id);
                self.watch.told_of(&occurrence.job, &held, &self.clock, now);
                if claim.origin == Origin::RunOnce {
                    self.report(Notice::Skipped {
                        occurrence,
                        unfinished: held,
                    });
                }
            }
            ClaimAnswer::Overlap(held) => {
                self.claims.settle(id);
                self.watch.told_of(&occurrence.job, &held, &self.clock, now);
                self.report(Notice::Skipped {
                    occurrence,
                    unfinished: held,
                });
            }
            ClaimAnswer::Finished => self.claims.settle(id),
            ClaimAnswer::Suspended { since } => {
                self.claims.settle(id);
                self.claim_before(&claim, since, now);
            }
            ClaimAnswer::NoRoom => {
                self.claims.settle(id);
                self.found_no_room(claim, now);
            }
            ClaimAnswer::Waiting => self.over(id, Notice::Waiting { occurrence }),
            ClaimAnswer::Skipped(cause) => self.over(id, Notice::NotStarted { occurrence, cause }),
            ClaimAnswer::TooLate => self.over(id, Notice::Missed { occurrence }),
            ClaimAnswer::Outdated { in_force } => {
                self.claims.settle(id);
                self.refused(occurrence.job, in_force);
            }
            ClaimAnswer::Closed => self.over(id, Notice::Closed { occurrence }),
        }
    }

    /// A claim came to nothing, or to nothing yet, and people are told so.
    fn over(&mut self, id: RunId, notice: Notice) {
        self.claims.settle(id);
        self.report(notice);
    }

    /// Sends a claim again when the store grants anything again. Those that were held back
    /// together don't come back together: the order of replicas holds for them as for any others.
    fn held_back(&mut self, claim: &Claim, wait: Duration, now: BootTime) {
        if !std::mem::replace(&mut self.grace_told, true) {
            self.report(Notice::Grace { wait });
        }
        let turn = self.turn(claim);
        self.again(claim.run_id, now + wait + turn, now);
    }

    /// Sends a claim again at a known instant, unless there is no time left for it.
    fn again(&mut self, id: RunId, at: BootTime, now: BootTime) {
        match self.draining {
            true => self.claims.settle(id),
            false => self.claims.postpone(id, at.max(now)),
        }
    }

    fn granted(&mut self, mut claim: Claim, grant: Grant, asked: Asked, now: BootTime) {
        self.token_floor = self.token_floor.max(grant.token);
        self.grace_told = false;
        let Some(entry) = self.table.granted(&claim.occurrence.job).cloned() else {
            return;
        };
        let job = entry.job.clone();
        let (occurrence, run_id) = (claim.occurrence.clone(), claim.run_id);
        claim.shards = grant.shards;
        let (shard, shards) = (claim.shard, claim.shards);
        let takeover = claim.watched.is_some();
        let guard = self.held.granted(job.clone(), claim, grant, asked, now);
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

        let scheduled_at = occurrence.scheduled_at;
        self.report(Notice::Started {
            occurrence,
            grant,
            takeover,
            run_id,
            shard,
        });
        let (number, token) = (grant.attempt, grant.token);
        self.effects.push_back(Effect::Start(Attempt {
            job,
            scheduled_at,
            shard,
            shards,
            run_id,
            number,
            token,
            guard,
        }));
    }
}
