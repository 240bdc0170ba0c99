//! What has not happened: occurrences that wait, are due, or are still to come, and instants
//! that are none.
//!
//! Must never: promise; it says who could do what, and what keeps them from it.

use std::time::Duration;

use super::account::{Account, Because, Fate, Near, Origins, Remark, Unrecorded};
use super::candidates::{candidates, outlook};
use super::suspension::{Suspension, past_suspension, suspension};
use super::{View, definitions, ranges, schedules};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::Origin;
use crate::scheduler::schedule::{Schedule, told_apart};
use crate::scheduler::time::Timestamp;
use crate::store::{Known, Standing};

/// How far from an instant that is no occurrence others are pointed out.
const NEAR: Duration = Duration::from_secs(60);

/// How many of them.
const NEAR_LIMIT: usize = 3;

/// An account with all that doesn't hang on the fate.
pub(super) fn described(view: &View<'_>, at: Timestamp, origins: Origins, fate: Fate) -> Account {
    let zone = view.zone();
    let name = schedules::zone_name(&zone);
    let local = || {
        let civil = zone.to_datetime(at.to_jiff());
        format!("{} in {name}", civil.strftime("%Y-%m-%d %H:%M:%S%.f"))
    };
    let mut remarks = Vec::new();
    let is_due = !matches!(fate, Fate::NotAnOccurrence { .. });
    let schedule = schedules::in_force(view, at).schedule;
    let oddity = schedule.filter(|_| is_due && origins.origin.is_schedule());
    if let Some(oddity) = oddity.and_then(|schedule| schedule.oddity(at)) {
        remarks.push(Remark::Clocks {
            what: oddity.to_string(),
        });
    }
    if view.table.is_some() && view.entry().is_none() {
        remarks.push(Remark::NotInTable);
    }
    Account {
        job: view.job.clone(),
        scheduled_at: at,
        local: (name != "UTC").then(local),
        origins,
        fate,
        shards: Vec::new(),
        remarks,
    }
}

/// The account of an occurrence that waits for its turn.
pub(super) fn waiting(view: &View<'_>, at: Timestamp) -> Option<Account> {
    let own = |line: &&crate::store::AttemptRecord| {
        line.scheduled_at == at && line.detail.since.is_none()
    };
    // Its line was written since the record was read.
    if view.lines.iter().any(|line| own(&line)) {
        return None;
    }
    let state = view.state()?;
    let index = state
        .waiting
        .iter()
        .position(|one| one.scheduled_at == at)?;
    let one = &state.waiting[index];
    let open = |last: &&crate::store::LastAttempt| !matches!(last.standing, Standing::Ended(_));
    let fate = Fate::WaitsInQueue {
        place: index + 1,
        ahead: state.waiting[..index]
            .iter()
            .map(|one| one.scheduled_at)
            .collect(),
        behind: state
            .attempts
            .iter()
            .find(open)
            .map(|last| last.scheduled_at),
        since: one.since,
        start_by: one.start_by,
        candidates: candidates(view),
    };
    let origins = Origins {
        origin: one.origin,
        by: one.by.clone(),
    };
    let mut account = described(view, at, origins, fate);
    // Only what people ask for runs in a pause; while the job is disabled nobody claims it.
    let suspension = suspension(view).filter(|suspension| {
        let is_pause = matches!(suspension, Suspension::Paused { .. });
        is_pause && one.origin != Origin::Trigger
    });
    let remark = suspension.map(|suspension| Remark::Suspended { suspension });
    account.remarks.extend(remark);
    Some(account)
}

/// The account of an occurrence that waits for other jobs.
pub(super) fn joining(view: &View<'_>, at: Timestamp) -> Option<Account> {
    let joins = view.state().into_iter().flat_map(|state| &state.joins);
    let arrived = joins
        .clone()
        .find(|(instant, _)| *instant == at)
        .map(|(_, arrived)| arrived.clone());
    let after = view.entry().map(|job| &job.after[..]);
    let arrived = match arrived {
        Some(arrived) => arrived,
        None if after?.iter().any(|parent| is_open(view, parent, at)) => Vec::new(),
        None => return None,
    };
    let missing = after.map(|after| {
        let missing = after.iter().filter(|name| !arrived.contains(name));
        missing.cloned().collect()
    });
    let origins = Origins {
        origin: Origin::After,
        by: after.map(names),
    };
    let fate = Fate::WaitsForJobs { arrived, missing };
    Some(described(view, at, origins, fate))
}

/// Whether a job's occurrence of an instant waits or runs.
fn is_open(view: &View<'_>, job: &JobName, at: Timestamp) -> bool {
    let mut jobs = view.snapshot.jobs.iter();
    jobs.find(|state| state.job == *job).is_some_and(|state| {
        let runs = state
            .attempts
            .iter()
            .any(|last| last.scheduled_at == at && !matches!(last.standing, Standing::Ended(_)));
        runs || state.waiting.iter().any(|one| one.scheduled_at == at)
    })
}

/// The account of an instant of which the ledger has nothing.
pub(super) fn by_schedule(view: &View<'_>, at: Timestamp) -> Account {
    let after = view
        .entry()
        .map(|job| &job.after)
        .filter(|after| !after.is_empty());
    if let Some(after) = after {
        return by_parents(view, at, after);
    }
    let in_force = schedules::in_force(view, at);
    let Some(schedule) = in_force.schedule else {
        let why = Unrecorded::NoSchedule;
        return described(view, at, Origins::default(), Fate::NotRecorded { why });
    };
    if !schedule.has(at) {
        return beside(view, at, None);
    }
    let mut account = described(view, at, Origins::default(), expected(view, at));
    let lacks = in_force.lacks_calendars.then_some(Remark::LacksCalendars);
    account.remarks.extend(lacks);
    account.remarks.extend(other_table(view));
    if let Fate::Due { start_by, .. } = account.fate {
        let in_time = start_by.is_none_or(|until| view.now <= until);
        // Nobody claims what is disabled: the candidates are told so.
        let is_pause = |one: &Suspension| matches!(one, Suspension::Paused { .. });
        let suspension = suspension(view).filter(|one| in_time && is_pause(one));
        let remark = suspension.map(|suspension| Remark::Suspended { suspension });
        account.remarks.extend(remark);
        account.remarks.extend(newer_are_due(view, &schedule, at));
    }
    account
}

/// An instant that the schedule has.
fn expected(view: &View<'_>, at: Timestamp) -> Fate {
    let entry = view.entry();
    let delay = entry.map_or(Duration::ZERO, |job| job.delay(at));
    let start_from = at + delay;
    let settled = view.state().map(|state| state.settled_until);
    let suspension = suspension(view);
    if settled.is_none_or(|settled| at > settled) && view.now < start_from {
        let after = Vec::new();
        return Fate::ToCome {
            start_from,
            suspension,
            after,
            outlook: outlook(view),
        };
    }
    match settled {
        None => Fate::NotRecorded {
            why: Unrecorded::Unenrolled,
        },
        Some(settled) if at <= settled => Fate::NotRecorded {
            why: unrecorded(view, at, settled),
        },
        Some(_) => match suspension
            .filter(|suspension| suspension.concerns(at))
            .or_else(|| past_suspension(view, at))
        {
            Some(suspension) => Fate::Suspended { suspension },
            None => Fate::Due {
                start_from,
                start_by: entry.map(|job| job.start_by(at)),
                candidates: candidates(view),
            },
        },
    }
}

/// Why the ledger, which has settled it, has no line of an occurrence.
fn unrecorded(view: &View<'_>, at: Timestamp, settled: Timestamp) -> Unrecorded {
    let never_ran = view.state().is_some_and(|state| state.attempts.is_empty());
    if view.lines.is_empty() && never_ran {
        return Unrecorded::BeforeKnown {
            known_since: settled,
        };
    }
    let of = |line: &crate::store::AttemptRecord| line.detail.since.unwrap_or(line.scheduled_at);
    let oldest = view.lines.iter().map(of).min();
    if oldest.is_some_and(|oldest| at >= oldest) {
        return Unrecorded::Gap;
    }
    let retention = view.entry().map(|job| job.retention);
    Unrecorded::BeforeOldest {
        oldest,
        history_limit: retention.map(|kept| kept.limit),
        history_age_seconds: retention.map(|kept| kept.age.as_secs()),
    }
}

/// An instant of a job that comes after others.
fn by_parents(view: &View<'_>, at: Timestamp, after: &[JobName]) -> Account {
    let jobs = view.table.unwrap_or_default().iter();
    let mut parents = jobs.filter(|job| after.contains(&job.name));
    let origins = Origins {
        origin: Origin::After,
        by: Some(names(after)),
    };
    if at > view.now && parents.any(|job| job.schedule.has(at)) {
        let fate = Fate::ToCome {
            start_from: at,
            suspension: suspension(view),
            after: after.to_vec(),
            outlook: outlook(view),
        };
        return described(view, at, origins, fate);
    }
    beside(view, at, Some(Because::After(after.to_vec())))
}

/// The account of an instant that is no occurrence; `because` where that is known already.
pub(super) fn beside(view: &View<'_>, at: Timestamp, because: Option<Because>) -> Account {
    let in_force = schedules::in_force(view, at);
    let schedule = in_force.schedule.as_ref();
    let today = || {
        let today = &view.entry()?.schedule;
        let later = at <= view.now && today.has(at);
        later.then(|| Because::LaterSchedule(today.text().to_owned()))
    };
    let because = because
        .or_else(|| schedule.and_then(|schedule| schedules::because(schedule, at)))
        .or_else(today);
    let is_of_parents = matches!(because, Some(Because::After(_)));
    let schedule = schedule.filter(|_| !is_of_parents);
    let just_before = at - Duration::from_millis(1);
    let fate = Fate::NotAnOccurrence {
        schedule: in_force.text.filter(|_| !is_of_parents),
        before: schedule.and_then(|schedule| schedule.last_before(at)),
        after: schedule.and_then(|schedule| {
            // At the end of a gap the schedule may well have an instant of its own.
            let from = if because == Some(Because::Gap) {
                just_before
            } else {
                at
            };
            schedule.next_after(from)
        }),
        because,
    };
    let lacks = in_force.lacks_calendars && !is_of_parents;
    let mut account = described(view, at, Origins::default(), fate);
    account
        .remarks
        .extend(lacks.then_some(Remark::LacksCalendars));
    account.remarks.extend(other_table(view));
    account.remarks.extend(near(view, at));
    // A trigger of that time is no instant of the schedule.
    let born = view.snapshot.born.filter(|born| at <= *born);
    let lost = born.map(|born| Remark::MayBeLost { born });
    account.remarks.extend(lost);
    account
}

/// The table is not the one that decides.
fn other_table(view: &View<'_>) -> Option<Remark> {
    definitions::other(view).or_else(|| other_schedule(view))
}

fn other_schedule(view: &View<'_>) -> Option<Remark> {
    let job = view.entry()?;
    let known_by = &view.state()?.schedule;
    let identity = job.schedule.identity();
    let differs = !known_by.is_empty() && *known_by != identity;
    differs.then(|| {
        let known = Known::read(known_by, view.job, None);
        let schedule = known.map(|known| known.schedule);
        let (table, in_force) = (
            job.schedule.text().to_owned(),
            schedules::shown(known_by, schedule.as_ref()),
        );
        // Two that differ in zone or policy alone look alike by their texts.
        match table == in_force {
            true => {
                let [in_force, table] = told_apart(known_by, &identity);
                Remark::OtherSchedule { table, in_force }
            }
            false => Remark::OtherSchedule { table, in_force },
        }
    })
}

fn newer_are_due(view: &View<'_>, schedule: &Schedule, at: Timestamp) -> Option<Remark> {
    let job = view.entry()?;
    let mut newer = schedule.next_after(at)?;
    while let Some(Suspension::Over { until, .. }) = past_suspension(view, newer) {
        newer = schedule.next_after(until)?;
    }
    let suspended = suspension(view).is_some_and(|suspension| suspension.concerns(newer));
    let due = !suspended && newer + job.delay(newer) <= view.now;
    due.then(|| Remark::NewerAreDue {
        catch_up: ranges::catch_up(job),
    })
}

/// Triggers and runs by hand have instants that nobody can guess.
fn near(view: &View<'_>, at: Timestamp) -> Option<Remark> {
    let state = view.state();
    let running = state.into_iter().flat_map(|state| &state.attempts);
    let running = running.map(|last| (last.scheduled_at, last.origin, &last.by));
    let waiting = state.into_iter().flat_map(|state| &state.waiting);
    let waiting = waiting.map(|one| (one.scheduled_at, one.origin, &one.by));
    let lines = view.lines.iter().filter(|line| line.detail.since.is_none());
    let ended = lines.map(|line| (line.scheduled_at, line.detail.origin, &line.detail.by));
    let close = |other: Timestamp| other.saturating_since(at).max(at.saturating_since(other));
    let mut all: Vec<_> = running
        .chain(waiting)
        .chain(ended)
        .filter(|(other, origin, _)| !origin.is_schedule() && close(*other) <= NEAR)
        .collect();
    all.sort_by_key(|(other, ..)| (close(*other), *other));
    all.dedup_by_key(|(other, ..)| *other);
    let occurrences: Vec<Near> = all
        .into_iter()
        .take(NEAR_LIMIT)
        .map(|(scheduled_at, origin, by)| Near {
            scheduled_at,
            origins: Origins {
                origin,
                by: by.clone(),
            },
        })
        .collect();
    (!occurrences.is_empty()).then_some(Remark::Near { occurrences })
}

/// Names in a row.
pub(super) fn names(jobs: &[JobName]) -> String {
    let names = jobs.iter().map(JobName::as_str);
    names.collect::<Vec<_>>().join(", ")
}
