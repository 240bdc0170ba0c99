//! The pure core: given the time and an event, it decides what is to be done.
//!
//! Nothing in here reads a clock, touches a socket or a file, starts a process, spawns a
//! task or logs. Everything it knows of the world comes in as an [`Event`] and a boot time;
//! everything it wants goes out as an [`Effect`]. A test drives it through years in
//! milliseconds.
//!
//! ```text
//!            Event, now                      Effect
//!  driver ─────────────▶ Scheduler ───────────────────▶ driver
//!                         ├ table        what is due, by the store's clock
//!                         ├ claims       on their way to the store
//!                         ├ placement    who goes first
//!                         ├ held         leases of this replica: renew, stop, release
//!                         ├ watch        leases of others: take over the dead
//!                         └ store_clock  what time it is at the store
//! ```

mod batches;
mod claiming;
mod claims;
mod contact;
mod drift;
mod effect;
mod held;
pub mod job;
pub mod lease;
mod looking;
pub mod margins;
mod memory;
pub mod notify;
mod placement;
mod poked;
pub mod policy;
mod presented;
mod registering;
mod reloading;
pub mod request;
pub mod schedule;
mod skew;
pub(crate) mod spread;
pub(crate) mod store_clock;
mod table;
mod telling;
pub mod time;
mod timers;
mod upkeep;
pub mod variable;
pub(crate) mod watch;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

pub use self::drift::{Difference, Mixture, few};
pub use self::effect::{
    Attempt, CallResult, Effect, EndedHow, Ending, Event, Guard, Notice, StopReason,
};
pub use self::reloading::Reload;
pub use self::store_clock::ClockJump;
pub use self::table::dependents_of;

use self::batches::batches;
use self::claims::Claims;
use self::contact::Contact;
use self::drift::Drift;
use self::held::{AfterRenewal, HeldLeases, Stop};
use self::job::{Job, JobName};
use self::lease::{
    Caller, Claim, Definition, Enrolment, FencingToken, Late, Renewal, RenewalAnswer, Replica,
    RunId, Scope,
};
use self::margins::Margins;
use self::memory::Memory;
use self::placement::Placement;
use self::policy::Tags;
use self::skew::Skew;
use self::store_clock::StoreClock;
use self::table::Table;
use self::time::{BootTime, Timestamp};
use self::upkeep::Upkeep;
use self::watch::Watch;

/// Where random bytes come from: ids are drawn and waits are spread with them.
pub type Entropy = Box<dyn FnMut() -> [u8; 10] + Send>;

/// What a scheduler has to know beside its jobs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who this is.
    pub replica: Replica,
    /// How long running attempts may go on after a drain was asked for.
    pub shutdown_grace: Duration,
    /// What it is there for.
    pub purpose: Purpose,
    /// What jobs can ask for by `run_on`.
    pub tags: Tags,
    /// How many attempts may run here at once; none for no limit.
    pub max_running: Option<u32>,
    /// A digest of its table: replicas with different ones run different tables.
    pub digest: String,
    /// The `revision` of its table, which says whether it is newer than others.
    pub revision: Option<u64>,
}

/// What a scheduler is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run the table until it is told to drain.
    Table,
    /// To run one job of the table now, whatever its schedule says, and to finish.
    Once(JobName),
}

/// The decisions of one replica.
pub struct Scheduler {
    settings: Settings,
    entropy: Entropy,
    table: Table,
    clock: StoreClock,
    skew: Skew,
    claims: Claims,
    held: HeldLeases,
    watch: Watch,
    placement: Placement,
    /// Claims that wait for room, in the order in which they came.
    deferred: VecDeque<Claim>,
    /// What anybody may claim was left to others for want of room.
    left_some: bool,
    /// What kept this replica until its next look from taking what anybody may claim.
    held_up: Option<Late>,
    /// Jobs of which older occurrences may be unsettled: nothing of them was claimed yet.
    unsure: HashSet<JobName>,
    registration: Registrations,
    /// A table that is to take the place of this one.
    reload: Option<Reload>,
    /// Jobs that were poked since anything was claimed last, each with the host's clock then.
    pokes: HashMap<JobName, Timestamp>,
    upkeep: Upkeep,
    memory: Memory,
    drift: Drift,
    token_floor: FencingToken,
    /// Since when the ledger remembers, as it was seen last.
    born: Option<Timestamp>,
    contact: Contact,
    grace_told: bool,
    /// Until when nothing is granted, as far as this replica has seen; counted from before the
    /// store was asked.
    grace_until: BootTime,
    /// The store's clock jumped forward, and no look has shown yet whether it lost data too: the
    /// grace window of that may have been jumped over. Until then nothing is claimed.
    jumped: bool,
    draining: bool,
    finished: bool,
    effects: VecDeque<Effect>,
}

/// Jobs that the store doesn't know of yet.
struct Registrations {
    waiting: Vec<Enrolment>,
    in_flight: usize,
    retry_at: BootTime,
    /// People were told that all are known.
    told: bool,
}

impl Scheduler {
    /// A scheduler of `jobs` that has done nothing yet.
    pub fn new(
        settings: Settings,
        jobs: impl IntoIterator<Item = Arc<Job>>,
        entropy: Entropy,
        now: BootTime,
    ) -> Self {
        let table = Table::new(jobs, &settings.tags);
        let only = match &settings.purpose {
            Purpose::Table => None,
            Purpose::Once(job) => Some(job.clone()),
        };
        let mut waiting = table.enrolments();
        if let Some(only) = only {
            waiting.retain(|one| one.job == only);
            // Whoever runs a job by hand does not change what the fleet runs.
            for one in &mut waiting {
                one.schedule.clear();
                one.definition = Definition::default();
            }
        }
        let registration = Registrations {
            waiting,
            in_flight: 0,
            retry_at: now,
            told: false,
        };
        Self {
            entropy,
            watch: Watch::new(table.shortest_ttl(), now),
            placement: Placement::new(settings.replica.id),
            deferred: VecDeque::new(),
            left_some: false,
            held_up: Some(Late::Away),
            unsure: HashSet::new(),
            drift: Drift::new(settings.table(), table.digests(), now),
            settings,
            table,
            clock: StoreClock::default(),
            skew: Skew::default(),
            claims: Claims::default(),
            held: HeldLeases::default(),
            registration,
            reload: None,
            pokes: HashMap::new(),
            upkeep: Upkeep::new(now),
            memory: Memory::default(),
            token_floor: FencingToken::default(),
            born: None,
            contact: Contact::default(),
            grace_told: false,
            grace_until: now,
            jumped: false,
            draining: false,
            finished: false,
            effects: VecDeque::new(),
        }
    }

    /// Takes in what happened. Follow one or several of these by [`Self::advance`].
    pub fn handle(&mut self, event: Event, now: BootTime) {
        match event {
            Event::Registered { jobs, sent, result } => self.registered(jobs, sent, result, now),
            Event::Claimed {
                claims,
                sent,
                result,
            } => self.claimed(claims, sent, result, now),
            Event::Renewed {
                renewals,
                sent,
                result,
            } => self.renewed(&renewals, sent, result, now),
            Event::Released { runs, sent, result } => self.released(&runs, sent, result, now),
            Event::Observed {
                scope,
                sent,
                result,
            } => self.observed(scope, sent, result, now),
            Event::Swept { result } => self.swept(result, now),
            Event::Published { sent, result } => self.published(sent, result, now),
            Event::TableRead { digest, result } => self.table_read(&digest, result),
            Event::AttemptEnded { run_id, ending } => {
                if self.room() == 0 {
                    // What could not be taken for want of room may still be there.
                    self.watch.look_now(Scope::Overdue, now);
                }
                if let Some(told) = self.held.ended(run_id, ending, now) {
                    self.report(told);
                }
            }
            Event::Opening => self.watch.look_now(Scope::Overdue, now),
            Event::StopAsked => self.held.renew_now(now),
            Event::PauseChanged => self.ask_about_all(),
            Event::Disturbed => {
                self.watch.look_now(Scope::All, now);
                self.held.renew_now(now);
                self.ask_about_all();
            }
            Event::DrainRequested => self.drain(now),
        }
    }

    /// Does what has come due.
    pub fn advance(&mut self, now: BootTime) {
        if self.finished {
            return;
        }
        if self.draining || self.settings.purpose != Purpose::Table {
            let given_up = self.held.give_up(now);
            given_up.into_iter().for_each(|notice| self.report(notice));
        }
        self.tend_leases(now);
        if !self.draining {
            self.take_reload(now);
            self.keep_up(now);
            self.register_waiting(now);
            self.claim_due(now);
            self.claim_deferred(now);
            self.look_for_what_was_left(now);
        }
        while !self.jumped
            && let Some(claims) = self.claims.take_ready(now)
        {
            for batch in batches(claims, |claim| (&claim.occurrence.job, claim.shard)) {
                self.effects.push_back(Effect::Claim(batch));
            }
        }
        if self.is_done() {
            self.finished = true;
            self.effects.push_back(Effect::Finish);
        } else if let Some(scope) = self.watch.begin_look(now) {
            self.drift.beat();
            self.effects.push_back(Effect::Observe(scope));
        }
    }

    fn is_done(&self) -> bool {
        let ending = self.draining || self.run_once_is_settled();
        ending && self.held.len() == 0 && self.claims.is_empty()
    }

    /// What is to be done next; none when all is done for now.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Self::advance`] has to be called next, whatever happens.
    pub fn next_wakeup(&self) -> Option<BootTime> {
        if self.finished {
            return None;
        }
        let working = !self.draining;
        let due = self.table.next_due().filter(|_| working);
        let waits = !self.registration.waiting.is_empty() && working;
        // What is on its way comes first, and wakes this up.
        let registration =
            (waits && self.registration.in_flight == 0).then_some(self.registration.retry_at);
        let deferred = self.deferred.iter().map(|claim| claim.claim_by).min();
        let deferred = deferred.map(|at| at + Duration::from_millis(1));
        [
            due.and_then(|due| self.clock.boot_time_of(due)),
            deferred.and_then(|at| self.clock.boot_time_of(at)),
            registration,
            self.keep_up_at(),
            self.claims.next_wakeup().filter(|_| !self.jumped),
            self.held.next_wakeup(),
            self.watch.next_wakeup(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Under which conditions a call that may take `timeout` is made. While draining, claims are
    /// long past their own deadline: they tell what was granted before, and are granted nothing.
    pub fn caller(&self, now: BootTime, timeout: Duration) -> Caller {
        Caller {
            replica: self.settings.replica.clone(),
            quarantine: self.quarantine(),
            token_floor: self.token_floor,
            send_by: match self.draining {
                true => Some(Timestamp::from_millis(i64::MIN)),
                false => self.clock.reached(now).map(|reached| reached + timeout),
            },
            held_back: self.grace_until.saturating_since(now),
        }
    }

    /// How long holders get to come back after a loss.
    fn quarantine(&self) -> Duration {
        let longest = self.table.longest_ttl().unwrap_or(margins::SHORTEST_TTL);
        longest + Margins::of(longest).call_timeout()
    }

    fn report(&mut self, notice: Notice) {
        self.effects.push_back(Effect::Report(notice));
    }

    fn stop(&mut self, stop: Stop) {
        self.report(stop.notice);
        let Stop {
            run_id,
            reason,
            grace,
            ..
        } = stop;
        self.effects.push_back(Effect::Stop {
            run_id,
            reason,
            grace,
        });
    }

    fn dice(&mut self) -> u8 {
        (self.entropy)()[0]
    }

    fn draw_run_id(&mut self, at: Timestamp) -> RunId {
        let millis = u64::try_from(at.as_millis()).unwrap_or(0);
        let random = (self.entropy)();
        RunId::new(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    fn renewed(
        &mut self,
        renewals: &[Renewal],
        sent: BootTime,
        result: CallResult<Vec<RenewalAnswer>>,
        now: BootTime,
    ) {
        let answers = self.heard(sent, now, result);
        let answers = answers.map(|all| all.answer).unwrap_or_default();
        for (index, renewal) in renewals.iter().enumerate() {
            let answer = answers.get(index);
            match self.held.renewed(renewal, answer, sent, now) {
                None => {}
                Some(AfterRenewal::Stop(stop)) => self.stop(*stop),
                Some(AfterRenewal::Guard(guard)) => {
                    let run_id = renewal.run_id;
                    self.effects.push_back(Effect::Guard { run_id, guard });
                }
            }
        }
    }

    fn tend_leases(&mut self, now: BootTime) {
        loop {
            let work = self.held.due(now);
            if work.is_empty() {
                return;
            }
            work.slow.into_iter().for_each(|slow| self.report(slow));
            work.stops.into_iter().for_each(|stop| self.stop(stop));
            for batch in batches(work.renewals, |renewal| {
                (&renewal.occurrence.job, renewal.shard)
            }) {
                self.effects.push_back(Effect::Renew(batch));
            }
            if !work.releases.is_empty() {
                self.effects.push_back(Effect::Release(work.releases));
            }
        }
    }

    fn drain(&mut self, now: BootTime) {
        if self.draining {
            return;
        }
        self.draining = true;
        self.claims.drop_waiting(|_| true);
        self.deferred.clear();
        self.held.drain(now + self.settings.shutdown_grace);
        self.report(Notice::Draining {
            running: self.held.running(),
        });
        // Others see at once that this replica takes nothing more.
        self.watch.look_now(Scope::Overdue, now);
    }
}

/// An id for a replica: random, new at each start.
pub fn draw_replica_id(random: [u8; 16]) -> Uuid {
    uuid::Builder::from_random_bytes(random).into_uuid()
}
