//! Named leases in a store: what `Lease` and `soloist lock` hold on to.
//!
//! They are kept by the same engines as the ledger of jobs, as records of their own in a place of
//! their own: who waits for a lease wakes no scheduler, and no job has the name of one.
//!
//! ```text
//!  LeaseStore ─▶ engine ─▶ rules over a draft ─▶ memory │ SQLite │ Redis: read, write
//! ```
//!
//! Must never: decide outside of `rules`.

mod record;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use uuid::Uuid;

use self::record::Record;
use self::rules::Records;
use super::draft::{Draft, Fault};
use super::engine::{Engine, Room, Terms};
use super::rules::{Call, Group};
use super::{Answered, Caller, StoreError, StoreEvent};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    BATCH_LIMIT, FencingToken, HeldName, LeaseAnswer, LeaseName, LeaseRequest, NameState, Replica,
};
use crate::scheduler::time::Timestamp;

/// Of more whose turn it is in one step, all are told to ask.
const TURNS_TOLD: usize = 16;

/// Where named leases live.
#[async_trait]
pub trait LeaseStore: Send + Sync + 'static {
    /// Where it is, for people; without secrets.
    fn place(&self) -> String;

    /// Makes sure that the store can be used.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Asks, all or nothing, of at most [`BATCH_LIMIT`] names together. Answers in the order of
    /// `requests`, each of which sees what those before it have left.
    async fn ask(
        &self,
        caller: &Caller,
        requests: &[LeaseRequest],
    ) -> Result<Answered<Vec<LeaseAnswer>>, StoreError>;

    /// Forgets those of `names` that nobody has or wants. Takes away before that the holders that the
    /// caller has watched and takes for dead, where they still are as it saw them.
    async fn tidy(
        &self,
        caller: &Caller,
        names: &[LeaseName],
        dead: &[HeldName],
    ) -> Result<Answered<()>, StoreError>;

    /// How all names stand, in their order: also those that are about to be forgotten.
    async fn names(&self) -> Result<Answered<Vec<NameState>>, StoreError>;

    /// Subscribes to news. They may be lost: nothing depends on them.
    fn events(&self) -> broadcast::Receiver<StoreEvent>;
}

#[async_trait]
impl<E: Engine> LeaseStore for E {
    fn place(&self) -> String {
        Engine::place(self)
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Engine::ready(self).await
    }

    async fn ask(
        &self,
        caller: &Caller,
        requests: &[LeaseRequest],
    ) -> Result<Answered<Vec<LeaseAnswer>>, StoreError> {
        let names: BTreeSet<&LeaseName> =
            requests.iter().flat_map(|one| &*one.hold().names).collect();
        if names.len() > BATCH_LIMIT {
            return Err(StoreError::Refused {
                place: Engine::place(self),
                cause: format!("a call names at most {BATCH_LIMIT} leases"),
                cure: "cut it into several".to_owned(),
            });
        }
        let takes = |one: &LeaseRequest| matches!(one, LeaseRequest::Acquire { .. });
        let terms = Terms {
            jobs: names.into_iter().map(JobName::of_lease).collect(),
            send_by: caller.send_by.filter(|_| requests.iter().any(takes)),
            room: match requests.iter().any(takes) {
                true => Room::Takes,
                false => Room::Frees,
            },
        };
        let (caller, requests) = (caller.clone(), requests.to_vec());
        self.transact(terms, move |draft| step(draft, &caller, &requests))
            .await
    }

    async fn tidy(
        &self,
        caller: &Caller,
        names: &[LeaseName],
        dead: &[HeldName],
    ) -> Result<Answered<()>, StoreError> {
        let mut rest = names;
        loop {
            let (some, later) = rest.split_at(rest.len().min(BATCH_LIMIT));
            let terms = Terms {
                jobs: some.iter().map(JobName::of_lease).collect(),
                send_by: None,
                room: Room::Tidies,
            };
            let (caller, some, dead) = (caller.clone(), some.to_vec(), dead.to_vec());
            let step = move |draft: &mut Draft<'_>| tidy(draft, &caller, &some, &dead);
            let answered = self.transact(terms, step).await?;
            if later.is_empty() {
                return Ok(answered);
            }
            rest = later;
        }
    }

    async fn names(&self) -> Result<Answered<Vec<NameState>>, StoreError> {
        let mut names = Engine::names(self).await?;
        names.sort();
        let mut states = Vec::new();
        let mut now = None;
        for some in names.chunks(BATCH_LIMIT) {
            let terms = Terms {
                jobs: some.to_vec(),
                send_by: None,
                room: Room::Tidies,
            };
            let some = some.to_vec();
            let seen = self
                .transact(terms, move |draft| look(draft, &some))
                .await?;
            now = Some(seen.now);
            states.extend(seen.answer);
        }
        let now = now.unwrap_or_default();
        Ok(Answered::new(now, states))
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        Engine::events(self)
    }
}

fn step(
    draft: &mut Draft<'_>,
    caller: &Caller,
    requests: &[LeaseRequest],
) -> Result<Answered<Vec<LeaseAnswer>>, Fault> {
    draft.promise();
    let names = requests.iter().flat_map(|one| &*one.hold().names);
    let before = read(draft, names)?;
    let mut records = before.clone();
    let mut group = draft.group().clone();
    let mut call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let now = call.now();
    let mut turns = BTreeSet::new();
    let decide =
        |request: &LeaseRequest| rules::decide(&mut call, &mut records, request, &mut turns);
    let answers = requests.iter().map(decide).collect();
    write(draft, &before, &records, now)?;
    leave(draft, group, &turns);
    Ok(Answered::new(now, answers))
}

fn tidy(
    draft: &mut Draft<'_>,
    caller: &Caller,
    names: &[LeaseName],
    dead: &[HeldName],
) -> Result<Answered<()>, Fault> {
    let before = read(draft, names.iter())?;
    let mut records = before.clone();
    let mut group = draft.group().clone();
    let call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let now = call.now();
    // In a grace window whoever is taken for dead may come back, and that window is for those to
    // begin who know how long it has to be.
    if !call.grace().is_zero() {
        return Ok(Answered::new(now, ()));
    }
    let mut turns = BTreeSet::new();
    for record in records.values_mut() {
        let stood = record.turns();
        record.give_up(now);
        record.bury(dead);
        turns.extend(record.turns().into_iter().filter(|id| !stood.contains(id)));
    }
    write(draft, &before, &records, now)?;
    leave(draft, group, &turns);
    Ok(Answered::new(now, ()))
}

/// Ends a step.
fn leave(draft: &mut Draft<'_>, group: Group, turns: &BTreeSet<Uuid>) {
    // Whoever holds a lease learns of the birth of a ledger by it, and writes it anew.
    let is_born = draft.group().is_born_in(&group);
    draft.set_group(group);
    tell(draft, is_born, turns);
}

fn read<'n>(
    draft: &mut Draft<'_>,
    names: impl Iterator<Item = &'n LeaseName>,
) -> Result<Records, Fault> {
    draft.begin_item();
    let mut records = Records::new();
    for name in names {
        if let Some(record) = draft.read(&JobName::of_lease(name), Record::from_text)? {
            records.insert(name.clone(), record);
        }
    }
    Ok(records)
}

fn write(
    draft: &mut Draft<'_>,
    before: &Records,
    records: &Records,
    now: Timestamp,
) -> Result<(), Fault> {
    for (name, record) in records {
        let stood = before.get(name);
        let key = JobName::of_lease(name);
        if record.token > FencingToken::MAX {
            return Err(Fault::TokensUsedUp);
        }
        let is_nothing = stood.is_none() && *record == Record::default();
        match record.may_be_forgotten(now) {
            true if stood.is_some() => draft.forget(&key),
            false if stood != Some(record) && !is_nothing => {
                draft.set_text(&key, record.to_text(), None)?;
            }
            true | false => {}
        }
    }
    Ok(())
}

fn tell(draft: &mut Draft<'_>, is_born: bool, turns: &BTreeSet<Uuid>) {
    if is_born || turns.len() > TURNS_TOLD {
        draft.announce(StoreEvent::Opening);
        return;
    }
    for id in turns {
        draft.announce(StoreEvent::Turn(*id));
    }
}

fn look(draft: &mut Draft<'_>, names: &[JobName]) -> Result<Answered<Vec<NameState>>, Fault> {
    let mut states = Vec::new();
    for name in names {
        let record = draft.read(name, Record::from_text)?;
        let lease = LeaseName::new(name.as_str());
        states.extend(
            record
                .zip(lease.ok())
                .map(|(record, name)| record.to_state(&name)),
        );
    }
    let nobody = Replica {
        id: Uuid::nil(),
        name: String::new(),
    };
    let caller = Caller {
        replica: nobody,
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    };
    let mut group = draft.group().clone();
    let now = Call::begin(&mut group, &caller, draft.clock_us(), draft.life()).now();
    Ok(Answered::new(now, states))
}
