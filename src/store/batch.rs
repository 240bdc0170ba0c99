//! Whole calls as steps over a [`Draft`]: what the rules are asked, item by item, and what comes
//! of it is put into the draft. The engine makes the step atomic.
//!
//! Must never: decide; that is what the rules are for.

use std::time::Duration;

use super::draft::{Draft, Fault, Line};
use super::rules::{Call, Decision, Group, News, Record, Verdict};
use super::{Answered, Caller, Registration, StoreEvent};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Claim, ClaimAnswer, Definition, Delivery, Dependent, Enrolment, Order, OrderAnswer, Outcome,
    Output, Release, ReleaseAnswer, Renewal, RenewalAnswer, Retention, Written,
};
use crate::scheduler::time::Timestamp;

/// An item of a batch.
trait Item {
    fn job(&self) -> &JobName;
    fn output(&self) -> Option<&Output> {
        None
    }
    /// None for items that never write a line.
    fn retention(&self) -> Option<Retention>;
    fn dependents(&self) -> &[Dependent] {
        &[]
    }
}

impl Item for Enrolment {
    fn job(&self) -> &JobName {
        &self.job
    }
    fn retention(&self) -> Option<Retention> {
        Some(self.retention)
    }
}

impl Item for Claim {
    fn job(&self) -> &JobName {
        &self.occurrence.job
    }
    fn retention(&self) -> Option<Retention> {
        Some(self.retention)
    }
    fn dependents(&self) -> &[Dependent] {
        &self.dependents
    }
}

impl Item for Renewal {
    fn job(&self) -> &JobName {
        &self.occurrence.job
    }
    fn retention(&self) -> Option<Retention> {
        Some(self.retention)
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
    fn dependents(&self) -> &[Dependent] {
        &self.dependents
    }
}

impl Item for Delivery {
    fn job(&self) -> &JobName {
        &self.job
    }
    fn retention(&self) -> Option<Retention> {
        None
    }
}

impl Item for Order {
    fn job(&self) -> &JobName {
        &self.job
    }
    fn retention(&self) -> Option<Retention> {
        Some(self.retention)
    }
    fn dependents(&self) -> &[Dependent] {
        &self.dependents
    }
}

/// An occurrence that is over, and who has to hear of it.
struct End<'d> {
    parent: JobName,
    at: Timestamp,
    outcome: Outcome,
    dependents: &'d [Dependent],
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
    let mut lines = Vec::new();
    let mut closings = Vec::new();
    for item in items {
        draft.begin_item();
        let record = draft.record(item.job())?;
        let mut decision = decide(&mut call, record.as_ref(), item);
        closings.append(&mut decision.closings);
        let ends = ends(&decision, item.job(), item.dependents());
        lines.extend(written(&decision, item.job()));
        let answer = write(draft, item.job(), decision, item.output(), item.retention())?;
        answers.push(answer);
        lines.extend(arrive(draft, &mut call, ends)?);
    }
    leave(draft, group);
    Ok(Answered {
        now,
        answer: answers,
        lines,
        closings,
    })
}

/// The lines that a decision writes, for those who count.
fn written<A>(decision: &Decision<A>, job: &JobName) -> Vec<Written> {
    let lines = decision.lines.iter();
    let written = lines.map(|line| Written {
        job: job.clone(),
        scheduled_at: line.scheduled_at,
        attempt: line.attempt,
        run_id: line.run_id,
        token: line.token,
        replica: line.replica.clone(),
        started_at: line.started_at,
        ended_at: line.ended_at,
        outcome: line.outcome,
        detail: line.detail.clone(),
    });
    written.collect()
}

fn write<A>(
    draft: &mut Draft<'_>,
    job: &JobName,
    decision: Decision<A>,
    output: Option<&Output>,
    retention: Option<Retention>,
) -> Result<A, Fault> {
    if let Some(record) = &decision.record {
        draft.set_record(job, record)?;
    }
    let last = decision.lines.len().saturating_sub(1);
    for (index, entry) in decision.lines.into_iter().enumerate() {
        if let Some(retention) = retention {
            draft.append(Line {
                job: job.clone(),
                entry,
                // What was printed is the last line's, of the attempt that ended.
                output: output.filter(|_| index == last).cloned(),
                retention,
            });
        }
    }
    for news in decision.news {
        draft.announce(match news {
            News::Opening => StoreEvent::Opening,
            News::Stop => StoreEvent::StopAsked,
            News::PauseChanged => StoreEvent::PauseChanged,
        });
    }
    Ok(decision.answer)
}

fn ends<'d, A>(
    decision: &Decision<A>,
    parent: &JobName,
    dependents: &'d [Dependent],
) -> Vec<End<'d>> {
    let closed = decision.closed.iter();
    closed
        .map(|(at, outcome)| End {
            parent: parent.clone(),
            at: *at,
            outcome: *outcome,
            dependents,
        })
        .collect()
}

/// Tells the jobs that come after of what is over, and those that come after them of what that
/// means, in the same step: nothing in between can be lost. Answers with the lines of it.
fn arrive(
    draft: &mut Draft<'_>,
    call: &mut Call<'_>,
    mut ended: Vec<End<'_>>,
) -> Result<Vec<Written>, Fault> {
    let mut lines = Vec::new();
    while let Some(end) = ended.pop() {
        for dependent in end.dependents {
            let record = draft.record(&dependent.job)?;
            let record = record.as_ref();
            let decision = call.arrive(record, dependent, &end.parent, end.at, end.outcome);
            ended.extend(ends(&decision, &dependent.job, &dependent.dependents));
            lines.extend(written(&decision, &dependent.job));
            let retention = Some(dependent.retention);
            write(draft, &dependent.job, decision, None, retention)?;
        }
    }
    Ok(lines)
}

/// All jobs that a step over these items touches: their own, and all that come after them.
pub(super) fn touched<'i>(
    items: impl Iterator<Item = (&'i JobName, &'i [Dependent])>,
) -> Vec<JobName> {
    let mut names = Vec::new();
    let mut open: Vec<&[Dependent]> = Vec::new();
    for (job, dependents) in items {
        names.push(job.clone());
        open.push(dependents);
    }
    while let Some(dependents) = open.pop() {
        for one in dependents {
            names.push(one.job.clone());
            open.push(&one.dependents);
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Ends a call. The birth of a ledger is announced: whoever holds a lease looks, and finds that
/// it has to write it anew.
fn leave(draft: &mut Draft<'_>, group: Group) {
    if draft.group().is_born_in(&group) {
        draft.announce(StoreEvent::Opening);
    }
    draft.set_group(group);
}

/// Begins a call and nothing else: what is left of a grace window, which may begin with it, and
/// what the jobs share then.
pub(super) fn enter(draft: &mut Draft<'_>, caller: &Caller) -> (Duration, Group) {
    let mut group = draft.group().clone();
    let call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let grace = call.grace();
    leave(draft, group.clone());
    (grace, group)
}

/// Notes that a table was published; others look at it.
pub(super) fn note_table(
    draft: &mut Draft<'_>,
    caller: &Caller,
    table: &Definition,
) -> Answered<()> {
    let mut group = draft.group().clone();
    let call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let now = call.now();
    group.tables.note(table, "");
    leave(draft, group);
    draft.announce(StoreEvent::Opening);
    Answered::new(now, ())
}

/// Looks whether some jobs are still needed, and forgets at most `most` of those that are not:
/// answers which.
pub(super) fn sweep(
    draft: &mut Draft<'_>,
    caller: &Caller,
    jobs: &[JobName],
    most: usize,
) -> Result<Answered<Vec<JobName>>, Fault> {
    let mut group = draft.group().clone();
    let call = Call::begin(&mut group, caller, draft.clock_us(), draft.life());
    let now = call.now();
    let mut forgotten = Vec::new();
    for job in jobs {
        draft.begin_item();
        let Some(record) = draft.record(job)? else {
            continue;
        };
        match call.judge(&record) {
            Verdict::Kept => {}
            Verdict::Marked(record) => draft.set_record(job, &record)?,
            Verdict::Forgotten if forgotten.len() == most => {}
            Verdict::Forgotten => {
                draft.forget(job);
                forgotten.push(job.clone());
            }
        }
    }
    leave(draft, group);
    Ok(Answered::new(now, forgotten))
}

pub(super) fn register(
    draft: &mut Draft<'_>,
    caller: &Caller,
    jobs: &[Enrolment],
) -> Result<Answered<Vec<Registration>>, Fault> {
    each(draft, caller, jobs, |call, record, item| {
        call.register(record, item)
    })
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

pub(super) fn order(
    draft: &mut Draft<'_>,
    caller: &Caller,
    orders: &[Order],
) -> Result<Answered<Vec<OrderAnswer>>, Fault> {
    each(draft, caller, orders, |call, record, item| {
        call.order(record, item)
    })
}

pub(super) fn deliver(
    draft: &mut Draft<'_>,
    caller: &Caller,
    deliveries: &[Delivery],
) -> Result<Answered<Vec<bool>>, Fault> {
    each(draft, caller, deliveries, |call, record, item| {
        call.deliver(record, item)
    })
}
