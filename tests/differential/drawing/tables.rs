//! What replicas say of their tables and of themselves.

use std::time::Duration;

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    CommonInstant, Definition, Enrolment, Pause, PublishedTable, ScheduleChange, Scope, Seen,
    SeenPause,
};
use soloist::scheduler::policy::Tags;
use soloist::store::ReplicaInfo;

use super::Drawing;
use crate::chance::Chance;
use crate::steps::Call;
use crate::words;

/// How many definitions a job has had in all: more than are remembered.
const DEFINITIONS: u64 = 10;

/// A digest as tables have them: so many hexadecimal digits.
fn hex(number: u128) -> String {
    format!("{number:032x}")
}

fn revision(chance: &mut Chance) -> Option<u64> {
    chance.some(2, |chance| match chance.below(10) {
        0 => u64::MAX,
        1 => (1 << 53) + 1,
        small => small,
    })
}

impl Drawing {
    /// A digest of what some table says of a job; mostly the same one.
    pub(super) fn digest(&mut self, job: &JobName) -> String {
        let number = match self.chance.below(12) {
            0 => return String::new(),
            1..3 => self.chance.below(DEFINITIONS),
            _ => 0,
        };
        hex(u128::from(number) << 64 | job.as_str().len() as u128)
    }

    pub(super) fn register(&mut self, of: usize) -> Call {
        let mut jobs: Vec<Enrolment> = Vec::new();
        for _ in 0..self.batch().max(1) {
            let one = self.enrolment(of);
            self.put(&mut jobs, one, |one| (&one.job, 0));
        }
        Call::Register(jobs)
    }

    fn enrolment(&mut self, of: usize) -> Enrolment {
        if self.chance.one_in(4)
            && let Some(known) = self.chance.recent(&self.memories[of].enrolments)
        {
            let again = self.chance.one_in(2);
            return Enrolment {
                again,
                ..known.clone()
            };
        }
        let former = self.chance.recent(&self.memories[of].former).cloned();
        let job = match (&former, self.chance.one_in(2)) {
            (Some((job, _)), true) => job.clone(),
            _ => self.job(),
        };
        let schedules = ["* * * * * *", "*/2 * * * * *", "", "@manual \"é\""];
        let schedule = schedules[self.chance.index(8).saturating_sub(4)].to_owned();
        let known = former.filter(|(other, _)| *other == job);
        let change = known.map(|(_, from)| self.change(from));
        Enrolment {
            schedule,
            enabled: self.chance.below(6) > 0,
            definition: Definition {
                digest: self.digest(&job),
                revision: revision(&mut self.chance),
            },
            over: self.over(of, &job),
            change,
            retention: self.retention(&job),
            again: self.chance.one_in(3),
            seen: self.seen(of, &job),
            job,
        }
    }

    fn over(&mut self, of: usize, job: &JobName) -> Option<String> {
        let forces = &self.memories[of].in_force;
        let in_force = forces.iter().rev().find(|(other, _)| other == job);
        match self.chance.below(4) {
            0 => in_force.map(|(_, one)| one.digest.clone()),
            1 => Some(self.digest(job)),
            _ => None,
        }
    }

    fn change(&mut self, from: String) -> ScheduleChange {
        let count = self.chance.below(4);
        let mut run = Vec::new();
        for back in (0..count).rev() {
            let at = self.about_now() - Duration::from_secs(back);
            run.push(CommonInstant {
                at,
                start_by: at + Duration::from_secs(self.chance.below(10)),
                missed_before: self.chance.one_in(2),
            });
        }
        run.sort_by_key(|one| one.at);
        run.dedup_by_key(|one| one.at);
        ScheduleChange { from, run }
    }

    fn seen(&mut self, of: usize, job: &JobName) -> Seen {
        if self.chance.below(4) > 0 {
            return Seen::default();
        }
        let at = self.about_now();
        let forces = &self.memories[of].forces;
        let force = forces.iter().rev().find(|(other, _)| other == job);
        Seen {
            settled_until: self.chance.some(2, |_| at),
            force: force.map(|(_, force)| force.clone()),
            pause: self.chance.some(2, |chance| SeenPause {
                pause: Pause {
                    since: at,
                    by: words::text(chance),
                },
                over: chance.one_in(2),
            }),
        }
    }

    pub(super) fn observe(&mut self, of: usize) -> Call {
        let scope = match self.chance.one_in(2) {
            true => Scope::All,
            false => Scope::Overdue,
        };
        let table = match self.chance.below(3) {
            0 => None,
            _ => self.chance.recent(&self.memories[of].tables).cloned(),
        };
        let table = table.map(|table| table.table).unwrap_or_default();
        let chance = &mut self.chance;
        let tag = |chance: &mut Chance| (words::text(chance), words::text(chance));
        let tags: Tags = (0..chance.below(3)).map(|_| tag(chance)).collect();
        let info = ReplicaInfo {
            version: "1.2.3".to_owned(),
            host: words::text(chance),
            pid: chance.below(1 << 32) as u32,
            skew_ms: chance.below(20_000) as i64 - 10_000,
            round_trip_ms: chance.below(2000),
            running: chance.below(5) as u32,
            jobs: chance.below(10_000) as u32,
            draining: chance.one_in(8),
            tags,
            max_running: chance.some(3, |chance| chance.below(9) as u32),
            declines: chance.one_in(8),
            digest: table.digest,
            revision: table.revision,
            beat: chance.below(u64::MAX),
            table_refused: chance.some(8, words::text),
            alive_ms: [0, 1, 5000, 90_000_000, u64::MAX][chance.index(5)],
        };
        Call::Observe(Box::new(info), scope)
    }

    pub(super) fn publish(&mut self, of: usize) -> Call {
        if self.chance.one_in(4)
            && let Some(again) = self.chance.recent(&self.memories[of].tables)
        {
            return Call::Publish(again.clone());
        }
        let jobs = self.jobs.clone();
        let jobs = jobs.iter().map(|job| (job.clone(), self.digest(job)));
        let jobs = jobs.collect();
        Call::Publish(PublishedTable {
            table: Definition {
                digest: hex(u128::from(self.chance.below(12)) << 100),
                revision: revision(&mut self.chance),
            },
            jobs,
        })
    }

    pub(super) fn table(&mut self, of: usize) -> Call {
        let known = self.chance.of(&self.memories[of].tables);
        let digest = known.map(|table| table.table.digest.clone());
        Call::Table(digest.unwrap_or_else(|| hex(1)))
    }
}
