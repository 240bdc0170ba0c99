//! What this replica does about the tables of others: shows its own, leaves to others what is
//! theirs, and takes it back when nobody is there who has it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::{Ceded, Contents, Drift, Left};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Definition, Enrolment, JobDigests, Observation, PublishedTable};
use crate::scheduler::time::BootTime;
use crate::scheduler::{CallResult, Effect, Notice, Purpose, Scheduler};

/// How old a look may be that says who is gone. One that lay unread while this replica was frozen
/// says nothing of who came since.
const FRESH: Duration = Duration::from_secs(2);

impl Scheduler {
    /// Takes in who lives with which table. The look was sent at `sent`.
    pub(in crate::scheduler) fn look_at_tables(
        &mut self,
        seen: &Observation,
        sent: BootTime,
        now: BootTime,
    ) {
        if self.settings.purpose != Purpose::Table {
            return;
        }
        let over = self.drift.learn(seen, self.settings.replica.id, now);
        for table in over {
            self.report(Notice::DriftOver { table });
        }
        let before = self.drift.looked_at.replace(sent);
        if self.draining {
            return;
        }
        if before.is_some_and(|before| now > before + self.alive_for()) {
            // Others may have taken this replica for gone, and what it had in force with it.
            self.ask_about_all();
        }
        self.publish_where_lacking(&seen.published);
        self.tell_of_mixed_revisions();
        for digest in self.drift.take_unread(&seen.published, now) {
            self.effects.push_back(Effect::ReadTable(digest));
        }
        self.heed_tables();
        if now <= sent + FRESH && now >= self.drift.judges_from {
            self.take_the_place_of_the_gone();
        }
    }

    fn publish_where_lacking(&mut self, published: &[String]) {
        let drift = &mut self.drift;
        if drift.publishing || !drift.own.is_said() || published.contains(&drift.own.digest) {
            return;
        }
        drift.publishing = true;
        let table = PublishedTable {
            table: drift.own.clone(),
            jobs: drift.own_jobs.clone(),
        };
        self.effects.push_back(Effect::Publish(table));
    }

    pub(in crate::scheduler) fn published(
        &mut self,
        sent: BootTime,
        result: CallResult<()>,
        now: BootTime,
    ) {
        // The next look shows whether it is there.
        self.drift.publishing = false;
        self.heard(sent, now, result);
    }

    /// Another table was read.
    pub(in crate::scheduler) fn table_read(
        &mut self,
        digest: &str,
        result: Result<Option<JobDigests>, String>,
    ) {
        // A look that shows it again has it read again.
        let changed = self.drift.read(digest, result.ok().flatten());
        if self.draining {
            return;
        }
        let changed = changed.iter().filter_map(|job| self.table.entry(job));
        let enrolments = changed.map(|entry| Enrolment::of(&entry.job)).collect();
        self.ask_about(enrolments);
        self.heed_tables();
    }

    /// Leaves to others what newer tables lack, or have a newer definition of, and takes back what
    /// they had.
    fn heed_tables(&mut self) {
        let ceded = self.ceded();
        let drift = &mut self.drift;
        let mut free = Vec::new();
        for (job, left) in &mut drift.left {
            if *left == Left::Ceded && !ceded.contains_key(job) {
                *left = Left::Free { told: true };
                free.push(job.clone());
            }
        }
        let is_left = |job: &JobName| {
            let left = drift.left.get(job);
            matches!(left, Some(Left::Outdated(_) | Left::Ceded))
        };
        let (known, mut new): (Vec<JobName>, Vec<JobName>) =
            ceded.keys().cloned().partition(is_left);
        // Left as there was a newer definition, and now there is none: people are told of that.
        let is_withdrawn = |ceded: &HashMap<JobName, Ceded>, job: &JobName| {
            ceded.get(job) == Some(&Ceded::Withdrawn)
        };
        let withdrawn = known.into_iter();
        let withdrawn =
            withdrawn.filter(|job| is_withdrawn(&ceded, job) && !is_withdrawn(&drift.ceded, job));
        let withdrawn: Vec<JobName> = withdrawn.collect();
        drift.ceded = ceded;
        for job in &new {
            drift.left.insert(job.clone(), Left::Ceded);
        }
        new.extend(withdrawn);
        self.leave(new);
        for job in free {
            self.ask_about_one(&job);
        }
        self.tell_of_drift();
    }

    /// What is left to others, whatever the ledger has in force.
    fn ceded(&self) -> HashMap<JobName, Ceded> {
        let mut ceded = HashMap::new();
        for other in self.drift.others.values().filter(|other| other.works) {
            let Contents::Known { jobs, difference } = &other.contents else {
                continue;
            };
            if self.drift.lineage.is_newer(&other.table, &self.drift.own) {
                let gone = difference.only_here.iter().cloned();
                ceded.extend(gone.map(|job| (job, Ceded::Withdrawn)));
            }
            let changed = difference.changed.iter();
            for job in changed.filter(|job| !self.drift.is_withdrawn_from(other, job)) {
                let theirs = Definition {
                    digest: jobs[job].clone(),
                    revision: other.table.revision,
                };
                if self.is_known_to_be_newer(job, &theirs) {
                    ceded.insert(job.clone(), Ceded::Outdated);
                }
            }
        }
        ceded
    }

    /// Whether the ledger has told that a definition of a job is newer than this replica's.
    fn is_known_to_be_newer(&self, job: &JobName, theirs: &Definition) -> bool {
        let own = self.table.entry(job).map(|entry| &entry.job.definition);
        let both = own.zip(self.memory.force(job));
        both.is_some_and(|(own, force)| {
            let known = &force.known;
            known.find(&theirs.digest).is_some() && known.is_newer(theirs, own)
        })
    }

    /// Where nobody has the definition that is in force, this replica's takes its place.
    fn take_the_place_of_the_gone(&mut self) {
        let left = self.drift.left.iter();
        let outdated = left.filter_map(|(job, left)| match left {
            Left::Outdated(in_force) => Some((job, in_force)),
            Left::Ceded | Left::Free { .. } => None,
        });
        let gone = outdated.filter(|(job, in_force)| !self.drift.may_be_had(job, &in_force.digest));
        let gone: Vec<_> = gone
            .map(|(job, in_force)| (job.clone(), in_force.digest.clone()))
            .collect();
        for (job, digest) in gone {
            self.ask_about_one(&job);
            let mut waiting = self.registration.waiting.iter_mut();
            if let Some(enrolment) = waiting.find(|one| one.job == job) {
                enrolment.over = Some(digest);
            }
        }
    }

    /// The claim to a job was refused: another definition is in force.
    pub(in crate::scheduler) fn refused(&mut self, job: JobName, in_force: Definition) {
        self.drift.refused.push((job, in_force));
    }

    /// Leaves to others the jobs whose claims were refused, and asks how they stand: this replica's
    /// definition may be newer, and have been taken for gone.
    pub(in crate::scheduler) fn leave_refused(&mut self) {
        let refused = std::mem::take(&mut self.drift.refused);
        if refused.is_empty() || self.draining {
            return;
        }
        let jobs: Vec<JobName> = refused.iter().map(|(job, _)| job.clone()).collect();
        let is_own = |(job, in_force): &(JobName, Definition)| {
            self.drift.own_jobs.get(job) == Some(&in_force.digest)
        };
        // A claim may be of the table that this replica had before.
        let (own, others): (Vec<_>, Vec<_>) = refused.into_iter().partition(is_own);
        for (job, _) in own {
            let left = self.drift.left.entry(job);
            left.or_insert(Left::Free { told: false });
        }
        let drift = &self.drift;
        self.table.disarm(|job| drift.left.contains_key(job));
        self.leave_outdated(others);
        for job in jobs {
            self.ask_about_one(&job);
        }
    }

    /// Leaves to others the jobs of which the ledger has another definition in force.
    pub(in crate::scheduler) fn leave_outdated(&mut self, outdated: Vec<(JobName, Definition)>) {
        let mut new = Vec::new();
        for (job, in_force) in outdated {
            let left = Left::Outdated(in_force);
            let before = self.drift.left.insert(job.clone(), left.clone());
            // Of one that was ceded before, people know.
            if before != Some(left) && before != Some(Left::Ceded) {
                new.push(job);
            }
        }
        self.leave(new);
    }

    /// Takes jobs out of the queue that were put down as left, and tells people.
    fn leave(&mut self, jobs: Vec<JobName>) {
        if jobs.is_empty() {
            return;
        }
        let drift = &self.drift;
        self.table.disarm(|job| drift.left.contains_key(job));
        let is_withdrawn = |job: &JobName| drift.ceded.get(job) == Some(&Ceded::Withdrawn);
        let (withdrawn, outdated): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_withdrawn);
        let notices = [
            (!outdated.is_empty()).then(|| Notice::Outdated {
                replicas: drift.holders_of(&outdated),
                jobs: outdated,
            }),
            (!withdrawn.is_empty()).then(|| {
                let replicas = withdrawn.iter().flat_map(|job| drift.withdrawers(job));
                let replicas: BTreeSet<String> = replicas.collect();
                Notice::Withdrawn {
                    replicas: replicas.into_iter().collect(),
                    jobs: withdrawn,
                }
            }),
        ];
        for notice in notices.into_iter().flatten() {
            self.report(notice);
        }
    }

    /// The table is another one; `enrolled` are the jobs that are enrolled anew.
    pub(in crate::scheduler) fn change_own_table(&mut self, enrolled: &[Enrolment]) {
        let own = self.settings.table();
        let jobs = self.table.digests();
        let drift = &mut self.drift;
        // Those that others have in common with the table that was may differ from this one.
        drift.others.remove(&own.digest);
        for other in drift.others.values_mut() {
            if let Contents::Known {
                jobs: theirs,
                difference,
            } = &mut other.contents
            {
                *difference = super::Difference::between(&jobs, theirs);
                other.is_told = false;
            }
        }
        let anew: HashSet<&JobName> = enrolled.iter().map(|one| &one.job).collect();
        let stays = |job: &JobName| jobs.contains_key(job) && !anew.contains(job);
        drift.left.retain(|job, _| stays(job));
        (drift.own, drift.own_jobs) = (own, jobs);
        drift.publishing = false;
    }

    /// Tells people of each table that differs, once.
    fn tell_of_drift(&mut self) {
        let Drift {
            others,
            lineage,
            own,
            ..
        } = &mut self.drift;
        let mut notices = Vec::new();
        for other in others.values_mut().filter(|other| !other.is_told) {
            let Contents::Known { difference, .. } = &other.contents else {
                continue;
            };
            other.is_told = true;
            notices.push(Notice::Drift {
                table: other.table.clone(),
                is_newer: lineage.is_newer(&other.table, own),
                same_revision: other.table.revision.is_some()
                    && other.table.revision == own.revision,
                replicas: other.replicas.iter().cloned().collect(),
                difference: difference.clone(),
            });
        }
        notices.into_iter().for_each(|notice| self.report(notice));
    }
}

impl Drift {
    /// The names of those who have newer definitions of jobs that are left to others.
    fn holders_of(&self, jobs: &[JobName]) -> Vec<String> {
        let mut names = BTreeSet::new();
        for job in jobs {
            match self.left.get(job) {
                Some(Left::Outdated(in_force)) => names.extend(self.holders(job, &in_force.digest)),
                _ => {
                    let own = self.own_jobs.get(job);
                    let differing = self.others.values().filter(|other| {
                        let jobs = other.difference().map(|one| &one.changed);
                        own.is_some() && jobs.is_some_and(|jobs| jobs.contains(job))
                    });
                    names.extend(differing.flat_map(|other| other.replicas.iter().cloned()));
                }
            }
        }
        names.into_iter().collect()
    }
}
