//! Carries the plan out: starts the replicas, hurts them when their time comes, and waits until
//! what was due has come to its end.
//!
//! Must never: go on for long without the store, or judge anything.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::Notify;

use super::checker::{Fate, Hurt};
use super::fleet::Fleet;
use super::ledger::{self, Ledger, Span};
use super::plain::{self, Keeper, PlainFleet, Ran, SKEW};
use super::plan::{Act, Fault, JobPlan, Setup, Step};
use super::pulse::{Pulse, Seen};
use super::scene::{AGREED, APART};
use super::{Event, Failure};
use crate::clock::Clock;
use crate::scheduler::job::Job;
use crate::scheduler::time::Timestamp;
use crate::store::{Store, StoreCondition, StoreError};

/// How long all replicas may take until they are at work.
const STARTING: Duration = Duration::from_secs(20);
/// How long what is under way may take to be over: a takeover and a run take seconds, unless this
/// host is busy.
pub(super) const SETTLING: Duration = Duration::from_secs(30);
/// How long those that were started again, or went on, are not counted upon.
const WARMING_UP: Duration = Duration::from_secs(1);
/// From one look to the next, at what tells nobody when it changes.
const LOOK: Duration = Duration::from_millis(100);
/// From one word of how far it is to the next.
const WORD_INTERVAL: Duration = Duration::from_secs(10);

/// What it is carried out with.
pub(super) struct Stage<'s> {
    pub(super) setup: &'s Setup,
    pub(super) jobs: &'s [JobPlan],
    pub(super) table: &'s [Job],
    pub(super) store: &'s Arc<dyn Store>,
    pub(super) clock: &'s Arc<dyn Clock>,
    pub(super) keeper: Keeper<'s>,
    pub(super) interrupted: &'s Notify,
    pub(super) tell: &'s dyn Fn(Event),
}

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Played {
    /// For how long.
    pub(super) lasted: Duration,
    pub(super) replicas: Vec<String>,
    pub(super) hurts: Vec<Hurt>,
    pub(super) faults: BTreeMap<Fault, usize>,
    /// What the ledger had in the end; none where that was not looked at.
    pub(super) ledger: Option<Ledger>,
    /// Replicas that ended by themselves, and how.
    pub(super) deserters: Vec<String>,
    pub(super) seen: Seen,
    /// How far the store's clock is ahead of this host's, in milliseconds.
    pub(super) skew_ms: i64,
    pub(super) conditions: Vec<StoreCondition>,
    /// Somebody wanted it to end.
    pub(super) interrupted: bool,
    /// The store went away and did not come back.
    pub(super) lost_store: Option<StoreError>,
    pub(super) agreed: Ran,
    pub(super) apart: Ran,
    /// When plain locks were last looked at.
    pub(super) plain_until: Duration,
    /// Plain locks were kept in this process.
    pub(super) in_memory: bool,
}

/// Why it ends before its time.
enum Early {
    Interrupted,
    StoreLost(StoreError),
    Failed(Failure),
}

impl From<std::io::Error> for Early {
    fn from(error: std::io::Error) -> Self {
        Early::Failed(Failure::Host(format!("failed to start a replica: {error}")))
    }
}

impl Stage<'_> {
    pub(super) async fn play(self, fleet: &mut Fleet<'_>) -> Result<Played, Failure> {
        let (agreed, apart) = (Mutex::new(Ran::default()), Mutex::new(Ran::default()));
        let pulse = Pulse::of(Arc::clone(self.store), Arc::clone(self.clock));
        let mut played = Played {
            replicas: fleet.members.iter().map(|one| one.name.clone()).collect(),
            in_memory: matches!(self.keeper, Keeper::Memory(_)),
            ..Played::default()
        };
        let played_out = tokio::select! {
            ended = self.act(fleet, &pulse, &mut played, (&agreed, &apart)) => ended,
            early = self.watch(&pulse) => Err(early),
        };
        played.seen = pulse.seen();
        played.plain_until = self.now();
        played.agreed = std::mem::take(&mut plain::lock(&agreed));
        played.apart = std::mem::take(&mut plain::lock(&apart));
        match played_out {
            Ok(()) => {}
            Err(Early::Failed(failure)) => return Err(failure),
            Err(Early::StoreLost(error)) => played.lost_store = Some(error),
            Err(Early::Interrupted) => {
                played.interrupted = true;
                self.wind_up(fleet, &mut played).await;
            }
        }
        Ok(played)
    }

    fn now(&self) -> Duration {
        self.clock.boot().as_duration()
    }

    /// Ends when somebody wants it to, or the store stays away.
    async fn watch(&self, pulse: &Pulse) -> Early {
        let patience = self.setup.lease_ttl() * 3 + Duration::from_secs(1);
        let lost = async {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Some((silent, error)) = pulse.silent_for(self.now())
                    && silent > patience
                {
                    return Early::StoreLost(error);
                }
            }
        };
        tokio::select! {
            early = lost => early,
            () = self.interrupted.notified() => Early::Interrupted,
        }
    }

    async fn act(
        &self,
        fleet: &mut Fleet<'_>,
        pulse: &Pulse,
        played: &mut Played,
        ran: (&Mutex<Ran>, &Mutex<Ran>),
    ) -> Result<(), Early> {
        for at in 0..fleet.members.len() {
            fleet.start(at)?;
        }
        let after = self.all_at_work(fleet, pulse).await?;
        (self.tell)(Event::Begun);
        let agreed = self.plain(AGREED, Duration::ZERO);
        let apart = self.plain(APART, SKEW);
        let beside = async {
            tokio::join!(agreed.run(self.setup, ran.0), apart.run(self.setup, ran.1));
            // Where the lock is refused, all else goes on.
            pending().await
        };
        let began = self.now();
        let hurt = async {
            let result = self.hurt(fleet, played, began).await;
            close_hurts(played, self.now());
            result?;
            self.settle(fleet, played, began, after).await
        };
        tokio::select! {
            result = hurt => result?,
            () = beside => {}
        }
        self.leave(fleet).await;
        Ok(())
    }

    fn plain(&self, name: &'static str, skew: Duration) -> PlainFleet<'_> {
        PlainFleet {
            name,
            keeper: self.keeper,
            clock: Arc::clone(self.clock),
            skew,
        }
    }

    /// Waits until the store has heard of all replicas and all jobs. What falls due after the
    /// answer is judged.
    async fn all_at_work(&self, fleet: &mut Fleet<'_>, pulse: &Pulse) -> Result<Timestamp, Early> {
        let until = self.now() + STARTING;
        let mut cause = "the store has not heard of all of them".to_owned();
        while self.now() < until {
            if let Some((name, status)) = fleet.deserter() {
                let log = fleet.last_lines(&name, 5);
                let cause = format!("a replica could not start ({status}); it says:\n{log}");
                return Err(Early::Failed(Failure::Host(cause)));
            }
            match self.store.snapshot().await {
                Ok(found)
                    if found.answer.replicas.len() >= fleet.members.len()
                        && found.answer.jobs.len() >= self.jobs.len()
                        && found.answer.grace.is_zero() =>
                {
                    return Ok(found.now);
                }
                Ok(_) => {}
                Err(error) => cause = error.to_string(),
            }
            tokio::time::sleep(LOOK).await;
        }
        if let Some((_, error)) = pulse.silent_for(self.now()) {
            return Err(Early::StoreLost(error));
        }
        let name = fleet.members.first().map_or("", |one| one.name.as_str());
        let log = fleet.last_lines(name, 3);
        let cause =
            format!("replicas were not at work within {STARTING:?}: {cause}; {name} says:\n{log}");
        Err(Early::Failed(Failure::Host(cause)))
    }

    /// Takes each step at its time, until nobody is to be hurt any more.
    async fn hurt(
        &self,
        fleet: &mut Fleet<'_>,
        played: &mut Played,
        began: Duration,
    ) -> Result<(), Early> {
        let mut is_down = vec![false; fleet.members.len()];
        let mut words_at = WORD_INTERVAL;
        for step in self.setup.steps() {
            while self.now() < began + step.at {
                let left = (began + step.at).saturating_sub(self.now());
                tokio::time::sleep(left.min(LOOK)).await;
                self.restart_deserters(fleet, played, &is_down)?;
                played.lasted = self.now().saturating_sub(began);
                if played.lasted >= words_at {
                    words_at += WORD_INTERVAL;
                    let faults = played.faults.values().sum();
                    let elapsed = played.lasted;
                    (self.tell)(Event::GoesOn { elapsed, faults });
                }
            }
            is_down[step.replica] = matches!(step.act, Act::Kill | Act::Drain);
            self.take(fleet, played, &step)?;
        }
        Ok(())
    }

    fn take(&self, fleet: &mut Fleet<'_>, played: &mut Played, step: &Step) -> Result<(), Early> {
        let at = step.replica;
        let name = fleet.members[at].name.clone();
        if let Some(fault) = step.begins {
            let hurt = Hurt {
                replica: Some(name.clone()),
                from: self.now(),
                to: Duration::MAX,
            };
            played.hurts.push(hurt);
            *played.faults.entry(fault).or_default() += 1;
        }
        match step.act {
            Act::Kill => fleet.end(at)?,
            Act::Start => fleet.start(at)?,
            Act::Stop => fleet.signal(at, Signal::STOP),
            Act::Continue => fleet.signal(at, Signal::CONT),
            Act::Drain => fleet.signal(at, Signal::TERM),
            Act::KillGuardian => {
                if !fleet.kill_guardian(at) {
                    // It was being replaced, or the replica was just starting.
                    played
                        .faults
                        .entry(Fault::KillGuardian)
                        .and_modify(|count| *count -= 1);
                }
            }
            Act::Cut | Act::Mend => {
                if let Some(relay) = &fleet.members[at].relay {
                    relay.set_open(step.act == Act::Mend);
                }
            }
        }
        if step.begins.is_none() || step.act == Act::KillGuardian {
            let now = self.now();
            let open = |hurt: &&mut Hurt| {
                hurt.to == Duration::MAX && hurt.replica.as_deref() == Some(&name)
            };
            if let Some(hurt) = played.hurts.iter_mut().find(open) {
                hurt.to = now + WARMING_UP;
            }
        }
        Ok(())
    }

    /// A replica that ended by itself is told of, and started again.
    fn restart_deserters(
        &self,
        fleet: &mut Fleet<'_>,
        played: &mut Played,
        is_down: &[bool],
    ) -> Result<(), Early> {
        for (at, down) in is_down.iter().enumerate() {
            if *down {
                continue;
            }
            if let Some(how) = fleet.end_of(at) {
                let name = fleet.members[at].name.clone();
                played.hurts.push(Hurt {
                    replica: Some(name.clone()),
                    from: self.now().saturating_sub(LOOK * 2),
                    to: self.now() + WARMING_UP,
                });
                played
                    .deserters
                    .push(format!("{name}: {how}, and not by this test"));
                fleet.start(at)?;
            }
        }
        Ok(())
    }

    /// Waits until its time is over and what fell due has come to its end.
    async fn settle(
        &self,
        fleet: &mut Fleet<'_>,
        played: &mut Played,
        began: Duration,
        after: Timestamp,
    ) -> Result<(), Early> {
        fleet.mend_all();
        (self.tell)(Event::Settles);
        let well = vec![false; fleet.members.len()];
        while self.now() < began + self.setup.duration {
            tokio::time::sleep(LOOK).await;
            self.restart_deserters(fleet, played, &well)?;
        }
        played.lasted = self.now().saturating_sub(began);
        let until = self.look_at_store(played).await?;
        let span = Span { after, until };
        let limit = self.now() + SETTLING;
        loop {
            match ledger::read(self.store, self.jobs, self.table, span).await {
                Ok(ledger) => {
                    let mut due = ledger.due.iter();
                    let is_open = due.any(|one| matches!(one.fate, Fate::Open(_)));
                    played.ledger = Some(ledger);
                    if !is_open || self.now() > limit {
                        return Ok(());
                    }
                }
                // The watch decides when that lasts for too long.
                Err(error) if self.now() > limit => return Err(Early::StoreLost(error)),
                Err(_) => {}
            }
            tokio::time::sleep(LOOK * 3).await;
        }
    }

    /// What the store says of itself and of the time.
    async fn look_at_store(&self, played: &mut Played) -> Result<Timestamp, Early> {
        loop {
            let (boot, wall) = (self.now(), self.clock.wall());
            match self.store.snapshot().await {
                Ok(found) => {
                    let half = self.now().saturating_sub(boot) / 2;
                    let here = wall + half;
                    played.skew_ms = found.now.as_millis() - here.as_millis();
                    played.conditions = found.answer.conditions;
                    return Ok(found.now);
                }
                // The watch ends it where that lasts for too long.
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Lets replicas leave politely; who doesn't is ended later.
    async fn leave(&self, fleet: &mut Fleet<'_>) {
        for at in 0..fleet.members.len() {
            fleet.signal(at, Signal::TERM);
        }
        let until = self.now() + self.setup.lease_ttl() + Duration::from_secs(1);
        for at in 0..fleet.members.len() {
            while !fleet.has_ended(at) && self.now() < until {
                tokio::time::sleep(LOOK / 5).await;
            }
        }
    }

    /// After an interruption: what jobs wrote down is judged, and nothing of the ledger.
    async fn wind_up(&self, fleet: &mut Fleet<'_>, played: &mut Played) {
        close_hurts(played, self.now());
        fleet.mend_all();
        self.leave(fleet).await;
    }
}

/// Whatever hurts still lasts ends now.
fn close_hurts(played: &mut Played, now: Duration) {
    for hurt in &mut played.hurts {
        if hurt.to == Duration::MAX {
            hurt.to = now + WARMING_UP;
        }
    }
}
