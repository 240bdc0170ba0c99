//! Which definition of a job is in force while tables differ.
//!
//! ```text
//!  none ─▶ the first that a table tells
//!           │ a newer one: of a greater revision, of one at all, or else first seen later
//!           ▼
//!         the newest, until no live replica has it any more ─▶ over: one that was outdated
//! ```
//!
//! From the enrolment on that puts a definition into force, nothing is granted to whoever has
//! another one, so that a replica with yesterday's table starts nothing of a job that has changed,
//! however late it comes. What runs goes on: leases are renewed and released whatever the
//! definition.
//!
//! Must never: let an older definition come back while the one in force is the one that the caller
//! has not named. Who is alive, the caller has to know; which one it judged, the ledger compares.

use super::step::Step;
use crate::scheduler::lease::{Claim, Definition, Enrolment};

/// What an enrolment is to the definition in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// It says nothing of a definition.
    Unsaid,
    /// It is the one in force.
    InForce,
    /// It comes into force.
    Newer,
    /// That one is in force, and stays so.
    Outdated(Definition),
}

impl Step<'_, '_> {
    /// Judges what an enrolment says.
    pub(super) fn judge_offer(&self, enrolment: &Enrolment) -> Offer {
        let offered = &enrolment.definition;
        if enrolment.schedule.is_empty() || !offered.is_said() {
            return Offer::Unsaid;
        }
        let Some(force) = &self.record.force else {
            return Offer::Newer;
        };
        if force.digest == offered.digest {
            return Offer::InForce;
        }
        let nobody_has_it = enrolment.over.as_ref() == Some(&force.digest);
        match nobody_has_it || force.is_older_than(offered) {
            true => Offer::Newer,
            false => Offer::Outdated(force.definition()),
        }
    }

    /// Puts a definition into force, or notes its revision where it is.
    pub(super) fn put_into_force(&mut self, offered: &Definition) {
        self.record.force.get_or_insert_default().put(offered);
    }

    /// The definition in force, where a claim goes by another one.
    pub(super) fn newer_than(&self, claim: &Claim) -> Option<Definition> {
        let force = self.record.force.as_ref()?;
        let is_other = !claim.definition.is_empty() && claim.definition != force.digest;
        is_other.then(|| force.definition())
    }

    /// A job of which the ledger has no definition begins with what the caller has seen: else the
    /// first replica that comes back from a loss of data would decide. The ledger may know the job
    /// again all the same, as a holder has told it of its lease.
    pub(super) fn recall_force(&mut self, enrolment: &Enrolment) {
        if self.record.force.is_none() {
            self.record.force.clone_from(&enrolment.seen.force);
        }
    }
}
