//! Any text as what the ledger holds, and the rules over whatever that says.
//!
//! Must never: be part of a program.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

pub(crate) use super::redis::fuzzing::reply;

use super::draft::{Draft, Fault, Reading};
use super::engine::FOR_EVER;
use super::rules::{Group, Life, Record, State};
use super::{Scope, batch, history, shown};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    AttemptDetail, Caller, Claim, ClaimAnswer, Definition, Enrolment, FencingToken, Grant,
    Occurrence, Order, OrderKind, Outcome, Release, Renewal, RenewalAnswer, Replica, Retention,
    RunId,
};
use crate::scheduler::time::Timestamp;

/// By the store's clock, where an input doesn't say.
const NOW_US: i64 = 1_795_250_760_250_000;

/// Any text is a record of the ledger or none; what was read is written as what reads the same; and
/// the rules decide on it. The lines of an input: a record, the shared part, and the store's clock,
/// the highest token and the highest time in numbers.
pub(crate) fn record(input: &[u8]) {
    is_output(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut lines = text.splitn(3, '\n');
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    if let Ok(detail) = serde_json::from_str::<AttemptDetail>(first) {
        let written = serde_json::to_string(&detail).expect("a detail can be written");
        assert_eq!(
            serde_json::from_str(&written).ok(),
            Some(detail),
            "{written}"
        );
    }
    let Some(record) = Record::from_text(first) else {
        return;
    };
    is_stable(&record);
    let mut numbers = lines.next().unwrap_or_default().split_ascii_whitespace();
    let mut number = || numbers.next().and_then(|word| word.parse::<i64>().ok());
    let clock_us = number().unwrap_or(NOW_US);
    let token = number().and_then(|token| u64::try_from(token).ok());
    let token = FencingToken::new(token.unwrap_or_default()).min(FencingToken::MAX);
    let group = second.and_then(|line| serde_json::from_str::<Group>(line).ok());
    let group = Group {
        token,
        clock_us: number().unwrap_or_default(),
        ..group.unwrap_or_default()
    };
    steps(&Reading {
        clock_us,
        life: Life::Steady,
        group,
        records: BTreeMap::from([(job(), Some(first.to_owned()))]),
    });
}

fn is_output(bytes: &[u8]) {
    if let Some(output) = history::decode_output(bytes) {
        let written = history::encode_output(&output);
        assert_eq!(history::decode_output(&written), Some(output));
    }
}

fn is_stable(record: &Record) {
    let written = record.to_text().expect("a record can be written");
    assert!(!written.contains('\n'), "{written}");
    assert_eq!(
        Record::from_text(&written).as_ref(),
        Some(record),
        "{written}"
    );
}

fn job() -> JobName {
    JobName::new("job").expect("a name")
}

/// All that may be asked of a ledger, each of what was read.
pub(super) fn steps(reading: &Reading) {
    let caller = caller();
    let jobs: Vec<JobName> = reading.records.keys().cloned().collect();
    for job in &jobs {
        let text = reading.records.get(job).and_then(Option::as_ref);
        let record = text.and_then(|text| Record::from_text(text));
        for claim in claims(job, record.as_ref(), reading) {
            if let Some(granted) = claimed(reading, &caller, &claim) {
                kept(reading, &caller, &claim, &granted);
            }
        }
        if let Some(record) = record {
            looks(job, &record, reading);
        }
        asked(reading, &caller, job);
    }
    let _ = taken(reading, |draft| batch::sweep(draft, &caller, &jobs, 8));
    let _ = taken(reading, |draft| Ok(batch::enter(draft, &caller)));
}

fn caller() -> Caller {
    Caller {
        replica: Replica {
            id: Uuid::from_u128(7),
            name: "r1".to_owned(),
        },
        quarantine: Duration::from_secs(16),
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}

/// Takes a step; the records that it would write have to read back.
fn taken<A>(
    reading: &Reading,
    step: impl FnOnce(&mut Draft<'_>) -> Result<A, Fault>,
) -> Option<(A, BTreeMap<JobName, Record>)> {
    let mut draft = Draft::of(reading);
    let answer = step(&mut draft).ok()?;
    let changes = draft.finish();
    let read = |text: &str| Record::from_text(text).unwrap_or_else(|| panic!("unread: {text}"));
    let records = changes.records.into_iter();
    let records = records.map(|(job, kept)| (job, read(&kept.text))).collect();
    Some((answer, records))
}

/// Claims to all that a record names, and to what is due now.
fn claims(job: &JobName, record: Option<&Record>, reading: &Reading) -> Vec<Claim> {
    let at = |scheduled_at| {
        let occurrence = Occurrence {
            job: job.clone(),
            scheduled_at,
        };
        Claim {
            claim_by: FOR_EVER,
            start_by: FOR_EVER,
            ..Claim::new(occurrence, RunId::new(Uuid::from_u128(99)))
        }
    };
    let due = Timestamp::from_second(reading.clock_us.div_euclid(1_000_000));
    let mut claims = vec![at(due)];
    let Some(record) = record else {
        return claims;
    };
    for waiting in record.waiting.iter().take(2) {
        let origin = waiting.origin;
        claims.push(Claim {
            origin,
            ..at(waiting.scheduled_at)
        });
    }
    if let Some(current) = &record.current {
        for (shard, slot) in (0..).zip(current.slots.iter().take(2)) {
            let claim = Claim {
                origin: current.origin,
                shard,
                shards: u32::try_from(current.slots.len()).unwrap_or(u32::MAX),
                ..at(current.scheduled_at)
            };
            let run_id = slot.run_id;
            claims.push(Claim {
                run_id,
                ..claim.clone()
            });
            claims.push(Claim {
                watched: Some(slot.sighting()),
                ..claim
            });
        }
    }
    claims
}

/// Claims, and holds a grant to what makes it one.
fn claimed(reading: &Reading, caller: &Caller, claim: &Claim) -> Option<Grant> {
    let claims = std::slice::from_ref(claim);
    let (answered, records) = taken(reading, |draft| batch::claim(draft, caller, claims))?;
    let ClaimAnswer::Granted(grant) = answered.answer.into_iter().next()? else {
        return None;
    };
    let job = &claim.occurrence.job;
    let before = reading.records.get(job).and_then(Option::as_ref);
    let before = before
        .and_then(|text| Record::from_text(text))
        .unwrap_or_default();
    let runs = |record: &Record| {
        let current = record.current.as_ref()?;
        let slot = current.slots.get(claim.shard as usize)?;
        let is_it = slot.state == State::Running
            && slot.run_id == claim.run_id
            && current.scheduled_at == claim.occurrence.scheduled_at;
        is_it.then_some(slot.token)
    };
    // The same request again is granted what it has.
    let had = before.current.iter().flat_map(|current| &current.slots);
    let had = had.filter(|slot| slot.state == State::Running && slot.run_id == claim.run_id);
    if had.into_iter().any(|slot| slot.token == grant.token) {
        return None;
    }
    let written = records.get(job).and_then(runs);
    assert_eq!(
        written,
        Some(grant.token),
        "granted, and not written: {claim:?}"
    );
    let known = before.token.max(reading.group.token);
    assert!(
        grant.token > known,
        "{:?} is not above {known:?}",
        grant.token
    );
    Some(grant)
}

/// Renews and releases what was granted, as if nobody else had come in between.
fn kept(reading: &Reading, caller: &Caller, claim: &Claim, grant: &Grant) {
    let claims = std::slice::from_ref(claim);
    let Some((_, records)) = taken(reading, |draft| batch::claim(draft, caller, claims)) else {
        return;
    };
    let texts = records.iter().map(|(job, record)| {
        let text = record.to_text().expect("a record can be written");
        (job.clone(), Some(text))
    });
    let reading = Reading {
        records: texts.collect(),
        group: Group {
            token: grant.token,
            ..reading.group.clone()
        },
        ..reading.clone()
    };
    let renewals = [Renewal::of(claim, grant)];
    let renewed = taken(&reading, |draft| batch::renew(draft, caller, &renewals));
    if let Some((answered, _)) = renewed {
        let deadline = answered.answer.into_iter().find_map(|answer| match answer {
            RenewalAnswer::Renewed { deadline, .. } => Some(deadline),
            RenewalAnswer::Lost => None,
        });
        let rises = deadline.is_none_or(|new| new > grant.deadline || new == FOR_EVER);
        assert!(rises, "{deadline:?} is not after {:?}", grant.deadline);
    }
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::HandedOver] {
        let releases = [Release {
            retry_after: (outcome == Outcome::Failed).then_some(Duration::MAX),
            ..Release::of(claim, grant, outcome)
        }];
        let _ = taken(&reading, |draft| batch::release(draft, caller, &releases));
    }
}

/// What people and other replicas ask.
fn asked(reading: &Reading, caller: &Caller, job: &JobName) {
    for what in [
        OrderKind::Trigger,
        OrderKind::Pause,
        OrderKind::Resume,
        OrderKind::Kill,
    ] {
        let orders = [Order {
            job: job.clone(),
            what,
            by: "alice@desk".to_owned(),
            id: RunId::new(Uuid::from_u128(100)),
            retention: Retention {
                limit: 10,
                age: Duration::MAX,
            },
            dependents: Default::default(),
        }];
        let _ = taken(reading, |draft| batch::order(draft, caller, &orders));
    }
    let enrolments = [Enrolment {
        job: job.clone(),
        schedule: "0 3 * * * zone=UTC gap=run_after fold=first days=all".to_owned(),
        enabled: true,
        definition: Definition::default(),
        over: None,
        change: None,
        retention: Retention {
            limit: 10,
            age: Duration::MAX,
        },
        again: false,
        seen: Default::default(),
    }];
    let _ = taken(reading, |draft| batch::register(draft, caller, &enrolments));
}

/// What is shown of a record.
fn looks(job: &JobName, record: &Record, reading: &Reading) {
    let now = Timestamp::from_millis(reading.clock_us.div_euclid(1000));
    let records = [(job.clone(), record.clone())];
    for scope in [Scope::Overdue, Scope::All] {
        let _ = shown::shown(&records, scope, now);
    }
    let _ = shown::untold(&records, now);
    let _ = (
        record.agenda(Timestamp::from_millis(0)),
        record.to_state(job),
    );
}
