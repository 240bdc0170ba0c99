//! Whole calls over any engine that keeps plain records: it fetches, asks [`super::rules`] and
//! writes back. An engine makes the call atomic around it.
//!
//! Must never: decide; that is what the rules are for.

use super::rules::{Call, Decision, Entry, Group, Record, State};
use super::{
    ABANDONED_AFTER, Answered, Caller, OVERDUE_LIMIT, Observation, ObservedLease, Registration,
    SCOPE_ALL_LIMIT, Scope,
};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Claim, ClaimAnswer, Held, Outcome, Output, Release, ReleaseAnswer, Renewal, RenewalAnswer,
    Retention,
};
use crate::scheduler::time::Timestamp;

/// What an engine has to offer: keyed records, an index of open ones, and lines to append.
pub(super) trait Records {
    type Error;

    /// The store's clock, in microseconds since the Unix epoch.
    fn clock_us(&mut self) -> Result<i64, Self::Error>;
    fn group(&mut self) -> Result<Group, Self::Error>;
    fn set_group(&mut self, group: &Group) -> Result<(), Self::Error>;
    fn record(&mut self, job: &JobName) -> Result<Option<Record>, Self::Error>;
    fn set_record(&mut self, job: &JobName, record: &Record) -> Result<(), Self::Error>;
    fn append(
        &mut self,
        job: &JobName,
        entry: &Entry,
        output: Option<&Output>,
        retention: Retention,
    ) -> Result<(), Self::Error>;
    /// Records that are running or handed over with a deadline in (`after`, `until`], in the
    /// order of their deadlines.
    fn open_records(
        &mut self,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(JobName, Record)>, Self::Error>;
}

/// An item of a batch.
trait Item {
    fn job(&self) -> &JobName;
    fn output(&self) -> Option<&Output> {
        None
    }
    /// None for items that never write a line.
    fn retention(&self) -> Option<Retention>;
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
}

fn each<R: Records, I: Item, A>(
    records: &mut R,
    caller: &Caller,
    items: &[I],
    decide: impl Fn(&mut Call<'_>, Option<&Record>, &I) -> Decision<A>,
) -> Result<Answered<Vec<A>>, R::Error> {
    let clock_us = records.clock_us()?;
    let before = records.group()?;
    let mut group = before.clone();
    let mut call = Call::begin(&mut group, caller, clock_us);
    let now = call.now();
    let mut answers = Vec::with_capacity(items.len());
    for item in items {
        let record = records.record(item.job())?;
        let decision = decide(&mut call, record.as_ref(), item);
        if let Some(record) = &decision.record {
            records.set_record(item.job(), record)?;
        }
        if let (Some(entry), Some(retention)) = (&decision.entry, item.retention()) {
            records.append(item.job(), entry, item.output(), retention)?;
        }
        answers.push(decision.answer);
    }
    if group != before {
        records.set_group(&group)?;
    }
    Ok(Answered {
        now,
        answer: answers,
    })
}

pub(super) fn register<R: Records>(
    records: &mut R,
    caller: &Caller,
    jobs: &[JobName],
) -> Result<Answered<Vec<Registration>>, R::Error> {
    each(records, caller, jobs, |call, record, _| {
        call.register(record)
    })
}

pub(super) fn claim<R: Records>(
    records: &mut R,
    caller: &Caller,
    claims: &[Claim],
) -> Result<Answered<Vec<ClaimAnswer>>, R::Error> {
    each(records, caller, claims, |call, record, item| {
        call.claim(record, item)
    })
}

pub(super) fn renew<R: Records>(
    records: &mut R,
    caller: &Caller,
    renewals: &[Renewal],
) -> Result<Answered<Vec<RenewalAnswer>>, R::Error> {
    each(records, caller, renewals, |call, record, item| {
        call.renew(record, item)
    })
}

pub(super) fn release<R: Records>(
    records: &mut R,
    caller: &Caller,
    releases: &[Release],
) -> Result<Answered<Vec<ReleaseAnswer>>, R::Error> {
    each(records, caller, releases, |call, record, item| {
        call.release(record, item)
    })
}

pub(super) fn observe<R: Records>(
    records: &mut R,
    caller: &Caller,
    scope: Scope,
) -> Result<Answered<Observation>, R::Error> {
    let clock_us = records.clock_us()?;
    let before = records.group()?;
    let mut group = before.clone();
    let call = Call::begin(&mut group, caller, clock_us);
    let (now, grace) = (call.now(), call.grace());
    // A grace window begins with whoever notices its cause; one that only observes would
    // otherwise see it begin anew each time.
    if group != before {
        records.set_group(&group)?;
    }
    let (until, limit) = match scope {
        Scope::Overdue => (now, OVERDUE_LIMIT),
        Scope::All => (Timestamp::from_millis(i64::MAX), SCOPE_ALL_LIMIT),
    };
    let leases = records.open_records(now - ABANDONED_AFTER, until, limit)?;
    let next = records.open_records(now, Timestamp::from_millis(i64::MAX), 1)?;
    let answer = Observation {
        leases: leases.into_iter().map(observed).collect(),
        next_deadline: next.first().map(|(_, record)| record.deadline),
        grace,
    };
    Ok(Answered { now, answer })
}

fn observed((job, record): (JobName, Record)) -> ObservedLease {
    ObservedLease {
        job,
        handed_over: record.state == State::Ended(Outcome::HandedOver),
        held: Held {
            scheduled_at: record.scheduled_at,
            sighting: (&record).into(),
            ttl: record.ttl,
        },
    }
}
