//! Whole calls as steps over a [`Draft`]: what the rules are asked, item by item, and what comes
//! of it is put into the draft. The engine makes the step atomic.
//!
//! Must never: decide; that is what the rules are for.

use std::time::Duration;

use super::draft::{Draft, Fault, Line};
use super::rules::{Call, Decision, Group, Record, State};
use super::{Answered, Caller, ObservedLease, Registration, StoreEvent};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Claim, ClaimAnswer, Held, Outcome, Output, Release, ReleaseAnswer, Renewal, RenewalAnswer,
    Retention,
};

/// An item of a batch.
trait Item {
    fn job(&self) -> &JobName;
    fn output(&self) -> Option<&Output> {
        None
    }
    /// None for items that never write a line.
    fn retention(&self) -> Option<Retention>;
    /// Once it is done, somebody else may take what it gave up.
    fn hands_over(&self) -> bool {
        false
    }
}

impl Item for JobName {
    fn job(&self) -> &JobName {
        self
    }
    fn retention(&self) -> Option<Retention> {
        None
    }
}

impl Item for Claim {
    fn job(&self) -> &JobName {
        &self.occurrence.job
    }
    fn retention(&self) -> Option<Retention> {
        Some(self.retention)
    }
}

impl Item for Renewal {
    fn job(&self) -> &JobName {
        &self.occurrence.job
    }
    fn retention(&self) -> Option<Retention> {
        None
    }
}

impl Item for Release {
    fn job(&self) -> &JobName {
        &self.occurrence.job
    }
    fn output(&self) -> Option<&Output> {
        (!self.output.stdout.is_empty() || !self.output.stderr.is_empty()).then_some(&self.output)
    }
    fn retention(&self) -> Option<Retention> {
        Some(self.retention)
    }
    fn hands_over(&self) -> bool {
        self.outcome == Outcome::HandedOver
    }
}

fn each<I: Item, A>(
    draft: &mut Draft<'_>,
    caller: &Caller,
    items: &[I],
    decide: impl Fn(&mut Call<'_>, Option<&Record>, &I) -> Decision<A>,
) -> Result<Answered<Vec<A>>, Fault> {
    let mut group = draft.group().clone();
    let mut call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let now = call.now();
    let mut answers = Vec::with_capacity(items.len());
    for item in items {
        draft.begin_item();
        let record = draft.record(item.job())?;
        let decision = decide(&mut call, record.as_ref(), item);
        answers.push(write_down(draft, item, decision)?);
    }
    leave(draft, group);
    Ok(Answered {
        now,
        answer: answers,
    })
}

fn write_down<I: Item, A>(
    draft: &mut Draft<'_>,
    item: &I,
    decision: Decision<A>,
) -> Result<A, Fault> {
    if let Some(record) = &decision.record {
        draft.set_record(item.job(), record)?;
    }
    if let (Some(entry), Some(retention)) = (decision.entry, item.retention()) {
        draft.append(Line {
            job: item.job().clone(),
            entry,
            output: item.output().cloned(),
            retention,
        });
        if item.hands_over() {
            draft.announce(StoreEvent::HandedOver);
        }
    }
    Ok(decision.answer)
}

/// Ends a call. The birth of a ledger is announced: whoever holds a lease looks, and finds that
/// it has to write it anew.
fn leave(draft: &mut Draft<'_>, group: Group) {
    if draft.group().process.is_empty() && !group.process.is_empty() {
        draft.announce(StoreEvent::HandedOver);
    }
    draft.set_group(group);
}

/// Begins a call and nothing else: what is left of a grace window, which may begin with it.
pub(super) fn enter(draft: &mut Draft<'_>, caller: &Caller) -> Duration {
    let mut group = draft.group().clone();
    let call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let grace = call.grace();
    leave(draft, group);
    grace
}

pub(super) fn register(
    draft: &mut Draft<'_>,
    caller: &Caller,
    jobs: &[JobName],
) -> Result<Answered<Vec<Registration>>, Fault> {
    each(draft, caller, jobs, |call, record, _| call.register(record))
}

pub(super) fn claim(
    draft: &mut Draft<'_>,
    caller: &Caller,
    claims: &[Claim],
) -> Result<Answered<Vec<ClaimAnswer>>, Fault> {
    each(draft, caller, claims, |call, record, item| {
        call.claim(record, item)
    })
}

pub(super) fn renew(
    draft: &mut Draft<'_>,
    caller: &Caller,
    renewals: &[Renewal],
) -> Result<Answered<Vec<RenewalAnswer>>, Fault> {
    each(draft, caller, renewals, |call, record, item| {
        call.renew(record, item)
    })
}

pub(super) fn release(
    draft: &mut Draft<'_>,
    caller: &Caller,
    releases: &[Release],
) -> Result<Answered<Vec<ReleaseAnswer>>, Fault> {
    each(draft, caller, releases, |call, record, item| {
        call.release(record, item)
    })
}

/// A record as an observer sees it; none where there is nothing to take over.
pub(super) fn observed((job, record): (JobName, Record)) -> Option<ObservedLease> {
    record.agenda()?;
    Some(ObservedLease {
        job,
        handed_over: record.state == State::Ended(Outcome::HandedOver),
        held: Held {
            scheduled_at: record.scheduled_at,
            sighting: (&record).into(),
            ttl: record.ttl,
        },
    })
}
