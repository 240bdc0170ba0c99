//! Tables of replicas: what the ledger said of definitions, against what it grants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use soloist::driver::Call;
use soloist::scheduler::Event;
use soloist::scheduler::job::{Job, JobName};
use soloist::scheduler::lease::{Caller, ClaimAnswer, Definition, RunId};
use uuid::Uuid;

use super::World;

/// A table in short, where its jobs say something of themselves.
pub(super) fn digest_of(jobs: &[Arc<Job>]) -> String {
    let mut all: Vec<_> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.definition.digest.as_str()))
        .collect();
    all.sort_unstable();
    match all.iter().all(|(_, digest)| digest.is_empty()) {
        true => String::new(),
        false => {
            let texts = all.iter().map(|(name, digest)| format!("{name}={digest}"));
            texts.collect::<Vec<_>>().join(",")
        }
    }
}

pub(super) fn revision_of(jobs: &[Arc<Job>]) -> Option<u64> {
    jobs.iter().find_map(|job| job.definition.revision)
}

/// What was told of definitions.
#[derive(Default)]
pub struct Tables {
    /// Who heard that its definition of a job is in force, and since when.
    in_force: HashMap<(Uuid, JobName), (String, Duration)>,
    /// When each replica was heard of last, and for how long it counts then.
    heard: HashMap<Uuid, (Duration, Duration)>,
    granted: HashSet<RunId>,
    /// The definitions of each job with a revision in the order of that, and those without in the
    /// order in which they came into force first.
    order: HashMap<JobName, Vec<Definition>>,
    /// Grants by an older definition while a newer one was there: since when that was in force.
    pub late: Vec<(String, Duration)>,
    /// When anything was granted last, by job.
    pub last: HashMap<String, Duration>,
}

impl Tables {
    /// Takes in what the store answered.
    pub(super) fn note(&mut self, event: &Event, call: &Call, now: Duration) {
        let (me, info) = (call.caller().replica.id, call.info());
        match event {
            Event::Observed { result: Ok(_), .. } => {
                let alive = Duration::from_millis(info.alive_ms);
                let before = self.heard.insert(me, (now, alive));
                let was_gone = before.is_some_and(|(at, alive)| now > at + alive);
                if was_gone || info.draining {
                    self.in_force.retain(|(id, _), _| *id != me);
                }
            }
            Event::Registered {
                jobs,
                result: Ok(answered),
                ..
            } => {
                for (enrolment, known) in jobs.iter().zip(&answered.answer) {
                    let key = (me, enrolment.job.clone());
                    if known.outdated.is_some() || known.former_schedule.is_some() {
                        self.in_force.remove(&key);
                    } else if enrolment.definition.is_said() {
                        self.order(&enrolment.job, &enrolment.definition);
                        let digest = enrolment.definition.digest.clone();
                        let entry = self.in_force.entry(key);
                        let entry = entry.or_insert_with(|| (digest.clone(), now));
                        if entry.0 != digest {
                            *entry = (digest, now);
                        }
                    }
                }
            }
            Event::Claimed {
                claims,
                result: Ok(answered),
                ..
            } => {
                for (claim, answer) in claims.iter().zip(&answered.answer) {
                    let is_new = matches!(answer, ClaimAnswer::Granted(_))
                        && self.granted.insert(claim.run_id);
                    if is_new {
                        self.judge(&claim.occurrence.job, &claim.definition, now);
                    }
                }
            }
            _ => {}
        }
    }

    fn judge(&mut self, job: &JobName, digest: &str, now: Duration) {
        self.last.insert(job.to_string(), now);
        let lives = |id: &Uuid| {
            let heard = self.heard.get(id);
            heard.is_some_and(|(at, alive)| now <= *at + *alive)
        };
        let order = self.order.get(job).map_or(&[][..], Vec::as_slice);
        let place = |digest: &str| order.iter().position(|one| one.digest == digest);
        let newer = self.in_force.iter().filter(|((id, name), (theirs, _))| {
            name == job && place(theirs) > place(digest) && lives(id)
        });
        let since = newer.map(|(_, (_, since))| *since).min();
        let late = since.map(|since| (format!("{job} by {digest} at {now:?}"), now - since));
        self.late.extend(late);
    }

    fn order(&mut self, job: &JobName, one: &Definition) {
        let order = self.order.entry(job.clone()).or_default();
        if order.iter().all(|other| other.digest != one.digest) {
            order.push(one.clone());
            // Stable: those without one stay in the order in which they came.
            order.sort_by_key(|other| other.revision);
        }
    }

    fn forget(&mut self, id: Uuid) {
        self.in_force.retain(|(other, _), _| *other != id);
        self.heard.remove(&id);
    }
}

impl World {
    /// A replica signs off.
    pub(super) fn depart(&mut self, caller: &Caller) {
        self.tables.forget(caller.replica.id);
        self.store.depart(caller);
        self.spread_news();
    }
}
