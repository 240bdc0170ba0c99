//! One atomic step on paper: what was read, and what is to be written if nobody was faster.
//!
//! ```text
//!  engine: read ─▶ Reading ─▶ step over a Draft ─▶ Changes ─▶ engine: write all, or nothing
//!                     ▲                                          │ somebody changed
//!                     └──────────────── read again ◀─────────────┘ what it hangs on
//! ```
//!
//! A step may be taken several times before it counts, and so may touch nothing but its draft.
//! What an item of a step writes hangs on all that this item has read: the engine writes only
//! where those records are still what they were.
//!
//! Must never: know an engine.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Entry, Group, Life, Record};
use super::{StoreError, StoreEvent};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{FencingToken, Output, Retention};
use crate::scheduler::time::Timestamp;

/// What an engine found when a step began.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The store's clock, in microseconds since the Unix epoch.
    pub(super) clock_us: i64,
    pub(super) life: Life,
    pub(super) group: Group,
    /// The texts of the records of all jobs that the step names; none where there is none.
    pub(super) records: BTreeMap<JobName, Option<String>>,
}

/// A record as engines keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Opaque to the engine.
    pub(super) text: String,
    /// When somebody should look at it.
    pub(super) agenda: Option<Timestamp>,
}

/// A line for the ledger.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) job: JobName,
    pub(super) entry: Entry,
    pub(super) output: Option<Output>,
    pub(super) retention: Retention,
}

/// What a step wants written.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The group as it becomes; none where it stays.
    pub(super) group: Option<Group>,
    /// It is as the step wants it, changed or not.
    pub(super) group_is_set: bool,
    /// The jobs whose records must still be what was read.
    pub(super) compared: BTreeSet<JobName>,
    pub(super) records: BTreeMap<JobName, Kept>,
    /// Jobs that go, with their lines and what those printed.
    pub(super) forgotten: BTreeSet<JobName>,
    pub(super) lines: Vec<Line>,
    /// To be told once all is written.
    pub(super) news: BTreeSet<StoreEvent>,
    /// The answer promises something, be it what an earlier request wrote.
    pub(super) promises: bool,
}

impl Changes {
    /// There is nothing to write, and nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.group.is_none()
            && self.records.is_empty()
            && self.forgotten.is_empty()
            && self.lines.is_empty()
            && self.news.is_empty()
    }
}

/// What to do where something in the ledger is in no form that this version writes. A newer
/// version may have other fields; what it wrote is left as it is, and waited out.
pub(super) const CURE_OF_UNREADABLE: &str =
    "if a newer soloist wrote it, upgrade this one; if none did, find who else writes there";

/// Why a step can't be taken. Nothing of it is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the record of {0} has another form")]
    Unreadable(JobName),
    #[error("the store's clock is past the year 2255")]
    TokensUsedUp,
}

impl Fault {
    /// As the callers of the store are told.
    pub(super) fn at(&self, place: &str) -> StoreError {
        let (place, cause) = (place.to_owned(), self.to_string());
        match self {
            Fault::Unreadable(_) => {
                let cure = CURE_OF_UNREADABLE.to_owned();
                StoreError::Unreadable { place, cause, cure }
            }
            Fault::TokensUsedUp => StoreError::Refused {
                place,
                cause,
                cure: "set that clock right".to_owned(),
            },
        }
    }
}

/// A step that is being taken.
#[derive(Debug)]
pub(super) struct Draft<'r> {
    reading: &'r Reading,
    changes: Changes,
    item: Item,
}

/// The item of a step that is at hand.
#[derive(Debug, Default)]
struct Item {
    read: BTreeSet<JobName>,
    wrote: bool,
}

impl<'r> Draft<'r> {
    pub(super) fn of(reading: &'r Reading) -> Self {
        Self {
            reading,
            changes: Changes::default(),
            item: Item::default(),
        }
    }

    /// The answer promises what is written by now.
    pub(super) fn promise(&mut self) {
        self.changes.promises = true;
    }

    pub(super) fn clock_us(&self) -> i64 {
        self.reading.clock_us
    }

    pub(super) fn life(&self) -> &'r Life {
        &self.reading.life
    }

    /// The group as it was read.
    pub(super) fn group(&self) -> &'r Group {
        &self.reading.group
    }

    /// What the group becomes.
    pub(super) fn set_group(&mut self, group: Group) {
        self.changes.group = (group != self.reading.group).then_some(group);
        self.changes.group_is_set = true;
    }

    /// Begins an item: what it writes hangs on nothing that was read before.
    pub(super) fn begin_item(&mut self) {
        let item = std::mem::take(&mut self.item);
        if item.wrote {
            self.changes.compared.extend(item.read);
        }
    }

    /// The record of a job that the step names, as the step has left it so far.
    ///
    /// # Panics
    /// When the step doesn't name the job: nobody has read its record.
    pub(super) fn record(&mut self, job: &JobName) -> Result<Option<Record>, Fault> {
        self.read(job, Record::from_text)
    }

    /// What stands under a name, as the step has left it so far.
    ///
    /// # Panics
    /// When the step doesn't name it: nobody has read it.
    pub(super) fn read<R>(
        &mut self,
        name: &JobName,
        from_text: impl Fn(&str) -> Option<R>,
    ) -> Result<Option<R>, Fault> {
        let read = self.reading.records.get(name);
        let read = read.expect("a step names what it touches");
        self.item.read.insert(name.clone());
        let written = self.changes.records.get(name).map(|kept| &kept.text);
        let Some(text) = written.or(read.as_ref()) else {
            return Ok(None);
        };
        let record = from_text(text);
        record
            .map(Some)
            .ok_or_else(|| Fault::Unreadable(name.clone()))
    }

    /// What the record of a job becomes. It hangs on what it was, too.
    pub(super) fn set_record(&mut self, job: &JobName, record: &Record) -> Result<(), Fault> {
        if record.token > FencingToken::MAX {
            return Err(Fault::TokensUsedUp);
        }
        let now = Timestamp::from_millis(self.reading.clock_us.div_euclid(1000));
        self.set_text(job, record.to_text(), record.agenda(now))
    }

    /// What stands under a name from now on. It hangs on what stood there, too.
    pub(super) fn set_text(
        &mut self,
        name: &JobName,
        text: serde_json::Result<String>,
        agenda: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let text = text.map_err(|_| Fault::Unreadable(name.clone()))?;
        self.item.read.insert(name.clone());
        self.item.wrote = true;
        let kept = Kept { text, agenda };
        self.changes.records.insert(name.clone(), kept);
        Ok(())
    }

    /// Forgets what stands under a name, with its lines and what those printed. A step that does so
    /// does nothing else there.
    pub(super) fn forget(&mut self, job: &JobName) {
        self.item.read.insert(job.clone());
        self.item.wrote = true;
        self.changes.forgotten.insert(job.clone());
    }

    /// Adds a line to the ledger.
    pub(super) fn append(&mut self, line: Line) {
        self.item.wrote = true;
        self.changes.lines.push(line);
    }

    /// Tells all replicas, once the step is written.
    pub(super) fn announce(&mut self, event: StoreEvent) {
        self.changes.news.insert(event);
    }

    /// What there is to write.
    pub(super) fn finish(mut self) -> Changes {
        self.begin_item();
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::scheduler::lease::{Caller, Claim, Occurrence, Origin, Replica, RunId};
    use crate::store::batch;
    use crate::store::rules::Waiting;

    fn job(name: &str) -> JobName {
        JobName::new(name).unwrap()
    }

    fn record(token: FencingToken) -> Record {
        Record {
            token,
            waiting: vec![Waiting {
                scheduled_at: Timestamp::default(),
                origin: Origin::Trigger,
                by: None,
                since: Timestamp::from_millis(5),
                start_by: None,
                queued: true,
                late: None,
            }],
            ..Record::default()
        }
    }

    fn reading(jobs: &[&str]) -> Reading {
        let text = record(FencingToken::new(1)).to_text().unwrap();
        Reading {
            clock_us: 0,
            life: Life::Steady,
            group: Group::default(),
            records: jobs
                .iter()
                .map(|name| (job(name), Some(text.clone())))
                .collect(),
        }
    }

    #[test]
    fn what_an_item_writes_hangs_on_all_that_it_read_and_on_nothing_else() {
        let reading = reading(&["a", "b", "c", "d"]);
        let mut draft = Draft::of(&reading);
        draft.record(&job("a")).unwrap();
        draft.begin_item();
        draft.record(&job("b")).unwrap();
        draft
            .set_record(&job("c"), &record(FencingToken::new(2)))
            .unwrap();
        draft.begin_item();
        draft.record(&job("d")).unwrap();
        let changes = draft.finish();
        assert_eq!(changes.compared, BTreeSet::from([job("b"), job("c")]));
        assert_eq!(
            changes.records[&job("c")].agenda,
            Some(Timestamp::from_millis(5))
        );
    }

    #[test]
    fn a_step_reads_what_it_has_written() {
        let reading = reading(&["a"]);
        let mut draft = Draft::of(&reading);
        let token = FencingToken::new(9);
        draft.set_record(&job("a"), &record(token)).unwrap();
        assert_eq!(draft.record(&job("a")).unwrap().unwrap().token, token);
    }

    #[test]
    fn a_job_that_is_forgotten_must_be_what_was_read() {
        let reading = reading(&["a", "b"]);
        let mut draft = Draft::of(&reading);
        draft.record(&job("a")).unwrap();
        draft.begin_item();
        draft.record(&job("b")).unwrap();
        draft.forget(&job("b"));
        let changes = draft.finish();
        assert!(!changes.is_empty());
        assert_eq!(changes.compared, BTreeSet::from([job("b")]));
        assert_eq!(changes.forgotten, changes.compared);
    }

    #[test]
    fn a_step_that_only_reads_has_nothing_to_write() {
        let reading = reading(&["a"]);
        let mut draft = Draft::of(&reading);
        draft.record(&job("a")).unwrap();
        draft.set_group(draft.group().clone());
        assert!(draft.finish().is_empty());
    }

    #[test]
    fn a_token_that_json_would_round_is_not_written() {
        let reading = reading(&["a"]);
        let mut draft = Draft::of(&reading);
        let token = FencingToken::new(FencingToken::MAX.get() + 1);
        let set = draft.set_record(&job("a"), &record(token));
        assert_eq!(set, Err(Fault::TokensUsedUp));
    }

    #[test]
    fn a_claim_that_no_token_is_left_for_is_refused_and_nothing_else_happens() {
        let mut reading = reading(&["a"]);
        reading.group.token = FencingToken::MAX;
        let occurrence = Occurrence {
            job: job("a"),
            scheduled_at: Timestamp::default(),
        };
        let claim = Claim {
            origin: Origin::Trigger,
            ..Claim::new(occurrence, RunId::new(Uuid::from_u128(1)))
        };
        let caller = Caller {
            replica: Replica {
                id: Uuid::from_u128(2),
                name: "r1".to_owned(),
            },
            quarantine: Duration::ZERO,
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        let mut draft = Draft::of(&reading);
        let refused = batch::claim(&mut draft, &caller, &[claim]);
        assert_eq!(
            refused.map(|answered| answered.answer),
            Err(Fault::TokensUsedUp)
        );
        assert!(draft.finish().records.is_empty());
    }
}
