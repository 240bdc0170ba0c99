//! Which replica goes first for an occurrence.
//!
//! Every replica may claim whatever it can run, and the first one wins. So that the work is
//! spread, each occurrence has an order of replicas, drawn from its name alone (rendezvous
//! hashing: Thaler and Ravishankar, 1996), and each replica waits a moment for every one before
//! it. The first in the order doesn't wait at all, so that spreading costs no time unless that
//! replica is gone; and one that is gone takes nothing with it.
//!
//! Must never: keep an occurrence from being claimed; it only says who waits for whom.

use std::time::Duration;

use uuid::Uuid;

use super::job::Job;
use super::lease::{Occurrence, Peer};
use super::policy::matches;
use super::spread::Spread;

/// How long a replica waits for each one before it in the order: longer than clocks that are
/// read through the same store differ, and than a claim takes.
const STEP: Duration = Duration::from_millis(25);

/// How many are waited for at most: a fleet that died but for one must not lose time.
const STEPS: usize = 4;

/// How much longer the replica waits on which the attempt before failed, so that another one
/// has a try.
const FAILED_HERE: Duration = Duration::from_millis(250);

/// This replica among the others.
#[derive(Debug)]
pub(super) struct Placement {
    me: Uuid,
    peers: Vec<Peer>,
}

impl Placement {
    pub(super) fn new(me: Uuid) -> Self {
        Self {
            me,
            peers: Vec::new(),
        }
    }

    /// Takes in who is alive.
    pub(super) fn learn(&mut self, peers: Vec<Peer>) {
        self.peers = peers;
    }

    /// How long this replica waits before it claims a shard. Shards of one occurrence go round
    /// the order, so that they are spread evenly.
    pub(super) fn wait(
        &self,
        job: &Job,
        occurrence: &Occurrence,
        shard: u32,
        failed_on: Option<Uuid>,
    ) -> Duration {
        let order = self.order(job, occurrence);
        let others = order.iter().any(|id| *id != self.me);
        let again = match failed_on == Some(self.me) && others {
            true => FAILED_HERE,
            false => Duration::ZERO,
        };
        let count = order.len();
        let Some(mine) = order.iter().position(|id| *id == self.me) else {
            return STEP * steps(count) + again;
        };
        let first = shard as usize % count;
        STEP * steps((mine + count - first) % count) + again
    }

    /// Who may run the job and takes work, in the order for this occurrence.
    fn order(&self, job: &Job, occurrence: &Occurrence) -> Vec<Uuid> {
        let able = |peer: &&Peer| !peer.declines && matches(&job.run_on, &peer.tags);
        let draw = |peer: &Peer| {
            let drawn = Spread::of("place", occurrence).bytes(peer.id.as_bytes());
            (drawn.number(), peer.id)
        };
        let mut drawn: Vec<_> = self.peers.iter().filter(able).map(draw).collect();
        drawn.sort_unstable();
        drawn.into_iter().map(|(_, id)| id).collect()
    }
}

fn steps(before: usize) -> u32 {
    u32::try_from(before.min(STEPS)).unwrap_or(u32::MAX)
}
