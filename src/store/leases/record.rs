//! What is kept of one name: who has it, and who waits for it, in order.
//!
//! A name that nobody has or wants has no record: its next token is above all that the ledger ever
//! granted anyway.
//!
//! Must never: change a form that another version may have written.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::scheduler::lease::{FencingToken, HeldName, Hold, LeaseName, Mode, NameState, Sighting};
use crate::scheduler::time::Timestamp;
use crate::scheduler::watch::watch_delay;

/// How far ahead of anything that is written now a place in line may last: after a far step back
/// of the store's clock those of before would last for as much.
const STEP_BACK_TOLERATED: Duration = Duration::from_secs(60);

/// How long after it was granted last a name that nobody has or wants may be forgotten: longer than
/// any call takes, by its own deadline.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3);

/// How a name stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// The highest of all its holders', also of those who are gone.
    pub(super) token: FencingToken,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) holders: Vec<Holder>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) line: Vec<Waiting>,
}

/// Who has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Holder {
    pub(super) id: Uuid,
    pub(super) owner: Uuid,
    /// For people.
    pub(super) by: String,
    pub(super) mode: Mode,
    pub(super) token: FencingToken,
    pub(super) deadline: Timestamp,
    pub(super) ttl: Duration,
    /// Since when somebody who wanted the name has seen it past its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) overdue: Option<Timestamp>,
}

/// Who stands in line for a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Waiting {
    pub(super) id: Uuid,
    pub(super) owner: Uuid,
    pub(super) by: String,
    pub(super) mode: Mode,
    /// It is given up then, unless it is heard of.
    pub(super) until: Timestamp,
    /// For how long it is kept in line each time.
    pub(super) kept: Duration,
    /// Since when it waits: the order of the line.
    #[serde(default)]
    pub(super) since: Timestamp,
}

impl Waiting {
    fn is_given_up(&self, now: Timestamp) -> bool {
        if mutant!(PlacesStay) {
            return false;
        }
        self.until <= now || self.until > now + self.kept + STEP_BACK_TOLERATED
    }
}

impl Holder {
    /// Notes that it is past its deadline; answers whether it has stood so for as long as somebody
    /// would have to watch it. A step of the store's clock makes it so once: whoever lives renews
    /// it before it was so for long.
    fn is_long_overdue(&mut self, now: Timestamp) -> bool {
        let delay = watch_delay(self.ttl);
        if self.deadline + delay > now {
            self.overdue = None;
            return false;
        }
        let known = self.overdue.filter(|since| *since <= now);
        let since = *self.overdue.insert(known.unwrap_or(now));
        now >= since + self.ttl + delay || mutant!(OverdueAtOnce)
    }

    pub(super) fn held(&self, name: &LeaseName) -> HeldName {
        HeldName {
            name: name.clone(),
            hold: self.id,
            sighting: self.sighting(),
            ttl: self.ttl,
            by: self.by.clone(),
        }
    }

    pub(super) fn sighting(&self) -> Sighting {
        Sighting {
            token: self.token,
            deadline: self.deadline,
        }
    }

    /// Whether a hold can't be granted beside it.
    pub(super) fn excludes(&self, hold: &Hold) -> bool {
        let shares = hold.mode == Mode::Shared && mutant!(SharesWithOne);
        self.owner != hold.owner && !both_share(self.mode, hold.mode) && !shares
    }
}

fn both_share(one: Mode, other: Mode) -> bool {
    one == Mode::Shared && other == Mode::Shared
}

impl Record {
    pub(super) fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads back what [`Record::to_text`] wrote; none for anything else.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(text).ok()?;
        (record.token <= FencingToken::MAX).then_some(record)
    }

    /// Nobody has it or wants it.
    pub(super) fn is_over(&self) -> bool {
        self.holders.is_empty() && self.line.is_empty()
    }

    pub(super) fn holder(&self, id: Uuid) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.id == id)
    }

    pub(super) fn holder_mut(&mut self, id: Uuid) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.id == id)
    }

    /// Whether an owner has it already.
    pub(super) fn is_owned_by(&self, owner: Uuid) -> bool {
        self.holders.iter().any(|holder| holder.owner == owner)
    }

    /// Those who are not heard of any more lose their places.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        self.line.retain(|waiting| !waiting.is_given_up(now));
    }

    /// A hold is over, and wanted no more.
    pub(super) fn remove(&mut self, id: Uuid) {
        if let Some(owner) = self
            .holder(id)
            .map(|one| one.owner)
            .filter(|_| mutant!(FreesAll))
        {
            self.holders.retain(|holder| holder.owner != owner);
        }
        self.holders.retain(|holder| holder.id != id);
        self.line.retain(|waiting| waiting.id != id);
    }

    /// Takes away what somebody has watched for long enough, if it still is what was watched. The id
    /// of a hold is the same under all of its names, and so is how it stands.
    pub(super) fn bury(&mut self, dead: &[HeldName]) {
        self.holders.retain(|holder| {
            let stands = |one: &HeldName| one.sighting == holder.sighting() || mutant!(DeadByName);
            let is_it = |one: &HeldName| one.hold == holder.id && stands(one);
            !dead.iter().any(is_it)
        });
    }

    /// Takes its place: behind all who have waited for as long.
    pub(super) fn line_up(&mut self, waiting: Waiting) {
        let place = self.line.partition_point(|one| one.since <= waiting.since);
        self.line.insert(place, waiting);
    }

    /// Takes away whoever was seen overdue for long enough, for those who don't stay to watch.
    pub(super) fn bury_overdue(&mut self, now: Timestamp, owner: Uuid) {
        self.holders
            .retain_mut(|holder| holder.owner == owner || !holder.is_long_overdue(now));
    }

    /// Nothing hangs on it any more: nobody has it or wants it, and whoever read that there was no
    /// record before it was granted last can't write any more. Forgotten sooner, such a one
    /// would write a lower token than that grant's.
    pub(super) fn may_be_forgotten(&self, now: Timestamp) -> bool {
        let granted = i64::try_from(self.token.get() / 1000).unwrap_or(i64::MAX);
        let granted = Timestamp::from_millis(granted);
        let forgettable = now >= granted + FORGOTTEN_AFTER || granted > now + STEP_BACK_TOLERATED;
        self.is_over() && forgettable
    }

    /// Those who came before a hold and can't be passed: all, but where everybody from the first
    /// on shares. Whoever has the name already waits for nobody, who may be waiting for it.
    pub(super) fn ahead_of(&self, hold: &Hold) -> Vec<&Waiting> {
        if self.is_owned_by(hold.owner) || mutant!(PassesTheLine) {
            return Vec::new();
        }
        let place = self.line.iter().position(|one| one.id == hold.id);
        let before = &self.line[..place.unwrap_or(self.line.len())];
        let share = before.iter().all(|one| both_share(one.mode, hold.mode));
        match share {
            true => Vec::new(),
            false => before.iter().collect(),
        }
    }

    /// Whose turn it is: they would be granted the name if they asked now, as far as it goes by
    /// this one.
    pub(super) fn turns(&self) -> Vec<Uuid> {
        let mut turns = Vec::new();
        for one in &self.line {
            let free =
                |holder: &Holder| holder.owner == one.owner || both_share(holder.mode, one.mode);
            let is_alone = one.mode == Mode::Exclusive;
            if !self.holders.iter().all(free) || is_alone && !turns.is_empty() {
                break;
            }
            turns.push(one.id);
            if is_alone {
                break;
            }
        }
        turns
    }

    pub(super) fn to_state(&self, name: &LeaseName) -> NameState {
        let held = self.holders.iter().map(|holder| holder.held(name));
        let waiting = self.line.iter();
        NameState {
            name: name.clone(),
            mode: match self.holders.iter().any(|one| one.mode == Mode::Exclusive) {
                true => Mode::Exclusive,
                false => Mode::Shared,
            },
            held: held.collect(),
            waiting: waiting.map(|one| (one.by.clone(), one.mode)).collect(),
        }
    }
}
