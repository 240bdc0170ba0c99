//! Where the tables of replicas differ, and what of this one's is left to others.
//!
//! ```text
//!  a look ─▶ who lives, with which table ─▶ what another one says of each job, read once
//!               │                             │
//!               │                             ├─▶ people are told
//!               ▼                             └─▶ left: what a newer table lacks or has anew
//!  outdated: the ledger has another definition in force ─▶ nobody has that any more ─▶ over
//! ```
//!
//! That nothing starts by an older definition is the ledger's to hold (`store::rules::defining`). This
//! is what a replica does about it: it takes a job out of its queue, and puts it back.
//!
//! Must never: take a replica for gone because a clock says so. One counts as long as it is listed
//! and gives signs of life, by this replica's own clock.

mod difference;
mod heeding;
mod revisions;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

pub use self::difference::Difference;
pub use self::revisions::Mixture;
use self::revisions::Revisions;
use super::job::JobName;
use super::lease::{Definition, JobDigests, Lineage, Observation, Peer};
use super::time::BootTime;

/// How many names are shown where there may be many.
const SHOWN: usize = 10;

/// The first of some names, and how many more there are.
pub fn few(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut names = names.into_iter();
    let first: Vec<_> = names.by_ref().take(SHOWN).collect();
    let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
    let first = first.join(", ");
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What is known of the tables of others.
#[derive(Debug)]
pub(super) struct Drift {
    own: Definition,
    own_jobs: JobDigests,
    /// The tables that the ledger knows, in order.
    lineage: Lineage,
    /// Tables that differ from this replica's, of replicas that live; by digest.
    others: BTreeMap<String, Other>,
    revisions: Revisions,
    heard: HashMap<Uuid, Heard>,
    /// Jobs that are out of the queue, and why.
    left: HashMap<JobName, Left>,
    /// Jobs of which live replicas with a newer table, or a newer definition, have the say.
    ceded: HashMap<JobName, Ceded>,
    /// Jobs whose claims were refused, and what is in force of them.
    refused: Vec<(JobName, Definition)>,
    beats: u64,
    publishing: bool,
    /// When the last look was sent that was answered.
    looked_at: Option<BootTime>,
    /// Before that nobody is taken for gone: a clock has jumped.
    judges_from: BootTime,
    /// The longest time for which one of them is taken for alive.
    longest_life: Duration,
}

/// When a sign of life was seen first.
#[derive(Clone, Copy, Debug)]
struct Heard {
    beat: u64,
    at: BootTime,
}

/// A table that is not this replica's.
#[derive(Debug)]
struct Other {
    table: Definition,
    /// Who has it.
    replicas: BTreeSet<String>,
    /// One of them takes work.
    works: bool,
    contents: Contents,
    /// People were told of it.
    is_told: bool,
}

/// What a table says.
#[derive(Debug)]
enum Contents {
    /// Nobody has published it, since then.
    Awaited(BootTime),
    /// It is being read.
    Asked(BootTime),
    Known {
        jobs: JobDigests,
        difference: Difference,
    },
    /// Nobody published it in all that time: it is taken to say nothing.
    Silent,
}

/// Why a job is out of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Left {
    /// The ledger has that definition in force.
    Outdated(Definition),
    /// See [`Ceded`].
    Ceded,
    /// It is about to come back, whether people were told that it was left or not.
    Free { told: bool },
}

/// Why a job is left to others, whatever the ledger has in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ceded {
    /// A newer table lacks it.
    Withdrawn,
    /// Somebody has a definition of it that the ledger knows to be newer.
    Outdated,
}

impl Drift {
    pub(super) fn new(own: Definition, own_jobs: JobDigests, now: BootTime) -> Self {
        Self {
            own,
            own_jobs,
            lineage: Lineage::default(),
            others: BTreeMap::new(),
            revisions: Revisions::default(),
            heard: HashMap::new(),
            left: HashMap::new(),
            ceded: HashMap::new(),
            refused: Vec::new(),
            beats: 0,
            publishing: false,
            looked_at: None,
            judges_from: now,
            longest_life: Duration::ZERO,
        }
    }

    /// This replica is about to give a sign of life.
    pub(super) fn beat(&mut self) {
        self.beats += 1;
    }

    pub(super) fn beats(&self) -> u64 {
        self.beats
    }

    /// A clock jumped: who is not listed may live all the same, until it was heard of again.
    pub(super) fn disturbed(&mut self, now: BootTime) {
        self.judges_from = self.judges_from.max(now + self.longest_life);
    }

    /// Whether a job is left to others.
    pub(super) fn leaves(&self, job: &JobName) -> bool {
        self.left.contains_key(job)
    }

    /// Whether any job is.
    pub(super) fn leaves_any(&self) -> bool {
        !self.left.is_empty()
    }

    /// People were told that a job is left to others.
    pub(super) fn is_told(&self, job: &JobName) -> bool {
        let left = self.left.get(job);
        left.is_some_and(|left| *left != Left::Free { told: false })
    }

    /// A job is this replica's to claim, as far as the ledger is concerned. Answers whether it goes
    /// into the queue.
    pub(super) fn comes_back(&mut self, job: &JobName) -> bool {
        match self.ceded.contains_key(job) {
            true => _ = self.left.insert(job.clone(), Left::Ceded),
            false => _ = self.left.remove(job),
        }
        !self.left.contains_key(job)
    }

    /// In how many jobs this replica's table differs from the newest one.
    pub(super) fn distance(&self) -> usize {
        let tables = self.others.values().map(|other| &other.table);
        let newest = tables.chain([&self.own]).reduce(|one, other| {
            match self.lineage.is_newer(other, one) {
                true => other,
                false => one,
            }
        });
        let other = newest.and_then(|newest| self.others.get(&newest.digest));
        let difference = other.and_then(Other::difference);
        difference.map_or(0, Difference::len)
    }

    /// Takes in who lives with which table. Answers the tables of which people were told, and that
    /// nobody has any more.
    fn learn(&mut self, seen: &Observation, me: Uuid, now: BootTime) -> Vec<Definition> {
        self.lineage.clone_from(&seen.tables);
        let listed: HashSet<Uuid> = seen.peers.iter().map(|peer| peer.id).collect();
        self.heard.retain(|id, _| listed.contains(id));
        self.revisions.forget();
        for other in self.others.values_mut() {
            other.replicas.clear();
            other.works = false;
        }
        for peer in seen.peers.iter().filter(|peer| peer.id != me) {
            if !self.hears(peer, now) || !peer.table.is_said() {
                continue;
            }
            if !peer.draining {
                let table = self.lineage.as_known(&peer.table);
                self.revisions.note(&peer.name, &table);
            }
            if peer.table.digest != self.own.digest {
                self.note(peer, now);
            }
        }
        let lives = seen.peers.iter().map(|peer| peer.alive_for);
        self.longest_life = lives.max().unwrap_or_default();
        let mut over = Vec::new();
        self.others.retain(|_, other| {
            let is_there = !other.replicas.is_empty();
            if !is_there && other.is_told {
                over.push(other.table.clone());
            }
            is_there
        });
        over
    }

    /// Whether a replica that is listed gives signs of life, by this replica's own clock: the
    /// store's may have been set back.
    fn hears(&mut self, peer: &Peer, now: BootTime) -> bool {
        let fresh = Heard {
            beat: peer.beat,
            at: now,
        };
        let heard = self.heard.entry(peer.id).or_insert(fresh);
        if heard.beat != peer.beat {
            *heard = fresh;
        }
        // What is seen of it may be as old as the last look.
        now <= heard.at + peer.alive_for * 2
    }

    fn note(&mut self, peer: &Peer, now: BootTime) {
        let other = self.others.entry(peer.table.digest.clone());
        let other = other.or_insert_with(|| Other {
            table: peer.table.clone(),
            replicas: BTreeSet::new(),
            works: false,
            contents: Contents::Awaited(now),
            is_told: false,
        });
        other.table.revision = other.table.revision.max(peer.table.revision);
        other.replicas.insert(peer.name.clone());
        other.works |= !peer.draining;
    }

    /// The tables that are to be read now.
    fn take_unread(&mut self, published: &[String], now: BootTime) -> Vec<String> {
        let patience = self.longest_life;
        let mut wanted = Vec::new();
        for (digest, other) in &mut self.others {
            match other.contents {
                Contents::Awaited(since) if published.contains(digest) => {
                    other.contents = Contents::Asked(since);
                    wanted.push(digest.clone());
                }
                Contents::Silent if published.contains(digest) => {
                    other.contents = Contents::Asked(now);
                    wanted.push(digest.clone());
                }
                Contents::Awaited(since) if now > since + patience => {
                    other.contents = Contents::Silent;
                }
                _ => {}
            }
        }
        wanted
    }

    /// A table was read. Answers the jobs of which it says something else.
    fn read(&mut self, digest: &str, jobs: Option<JobDigests>) -> Vec<JobName> {
        let Some(other) = self.others.get_mut(digest) else {
            return Vec::new();
        };
        match (&other.contents, jobs) {
            (Contents::Asked(_), Some(jobs)) => {
                let difference = Difference::between(&self.own_jobs, &jobs);
                let changed = difference.changed.clone();
                other.contents = Contents::Known { jobs, difference };
                changed
            }
            (Contents::Asked(since), None) => {
                other.contents = Contents::Awaited(*since);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Whether somebody who takes work has this definition of a job, or may have it.
    fn may_be_had(&self, job: &JobName, digest: &str) -> bool {
        let mut working = self.others.values().filter(|other| other.works);
        working.any(|other| match &other.contents {
            Contents::Known { jobs, .. } => {
                let has_it = jobs.get(job).is_some_and(|one| one == digest);
                has_it && !self.is_withdrawn_from(other, job)
            }
            Contents::Awaited(_) | Contents::Asked(_) => true,
            Contents::Silent => false,
        })
    }

    /// Whether those who have a table run a job of it no more, as a newer one lacks it. Their
    /// definition of it then keeps nobody else from running it.
    fn is_withdrawn_from(&self, table: &Other, job: &JobName) -> bool {
        let mut working = self.others.values().filter(|other| other.works);
        working.any(|other| match &other.contents {
            Contents::Known { jobs, .. } => {
                !jobs.contains_key(job) && self.lineage.is_newer(&other.table, &table.table)
            }
            Contents::Awaited(_) | Contents::Asked(_) | Contents::Silent => false,
        })
    }

    /// The names of those who have this definition of a job.
    fn holders(&self, job: &JobName, digest: &str) -> impl Iterator<Item = String> {
        let has_it = move |other: &&Other| match &other.contents {
            Contents::Known { jobs, .. } => jobs.get(job).is_some_and(|one| one == digest),
            _ => false,
        };
        let others = self.others.values().filter(has_it);
        others.flat_map(|other| other.replicas.iter().cloned())
    }

    /// The names of those whose table is newer and lacks a job.
    fn withdrawers(&self, job: &JobName) -> impl Iterator<Item = String> {
        let lacks = |other: &&Other| {
            let difference = other.difference();
            difference.is_some_and(|one| one.only_here.contains(job))
                && self.lineage.is_newer(&other.table, &self.own)
        };
        let others = self.others.values().filter(lacks);
        others.flat_map(|other| other.replicas.iter().cloned())
    }
}

impl Other {
    fn difference(&self) -> Option<&Difference> {
        match &self.contents {
            Contents::Known { difference, .. } => Some(difference),
            _ => None,
        }
    }
}
