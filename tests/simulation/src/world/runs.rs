//! Attempts: from their start on a replica to their end.

use std::collections::HashMap;
use std::time::Duration;

use soloist::scheduler::lease::{AttemptDetail, FencingToken, Output, RunId};
use soloist::scheduler::time::Timestamp;
use soloist::scheduler::{Attempt, EndedHow, Ending, Event};

use super::World;
use crate::happening::Happening;

/// By when the guardian ends an attempt, by the world's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarded {
    pub(super) stop_at: Duration,
    pub(super) kill_at: Duration,
    /// It was sent TERM, and no later guard helps it.
    pub(super) ending: bool,
}

/// An attempt as the checker sees it.
#[derive(Clone, Debug)]
pub struct Run {
    /// Of which job.
    pub job: String,
    /// For which instant.
    pub scheduled_at: Timestamp,
    /// Its number.
    pub attempt: u32,
    /// Which shard of it.
    pub shard: u32,
    /// As the job was handed it.
    pub token: FencingToken,
    /// On which replica.
    pub replica: usize,
    pub(super) ttl: Duration,
    /// In which life of the replica.
    pub(super) life: u64,
    /// What its guardian holds, by the world's time.
    pub(super) guard: Guarded,
    /// By the world's time.
    pub started: Duration,
    /// None while it runs.
    pub ended: Option<Duration>,
    /// It ended by itself, with success.
    pub completed: bool,
    /// How it ended; none where it was killed with its daemon.
    pub how: Option<EndedHow>,
}

impl World {
    pub(super) fn start_run(&mut self, number: usize, life: u64, attempt: &Attempt) {
        let run = Run {
            job: attempt.job.name.to_string(),
            scheduled_at: attempt.scheduled_at,
            attempt: attempt.number,
            shard: attempt.shard,
            token: attempt.token,
            replica: number,
            ttl: attempt.job.lease_ttl,
            life,
            guard: self.by_the_worlds_time(number, attempt.guard),
            started: self.now,
            ended: None,
            completed: false,
            how: None,
        };
        self.witness_start(&run, attempt);
        self.runs.insert(attempt.run_id, run);
        self.alive.insert(attempt.run_id);
        self.guard(attempt.run_id, attempt.guard);
        let (length, how) = match &self.plot {
            Some(plot) => plot(attempt),
            None => {
                let length = (self.length)(&mut self.chance);
                (length, (self.fate)(&mut self.chance, attempt))
            }
        };
        let end = Happening::EndOfRun {
            run: attempt.run_id,
            replica: number,
            life,
            how,
        };
        self.push(self.now + length, end);
    }

    /// Attempts of each job that are alive now.
    pub fn alive(&self) -> HashMap<&str, usize> {
        let mut alive = HashMap::new();
        for run in self.alive.iter().map(|id| &self.runs[id]) {
            *alive.entry(run.job.as_str()).or_default() += 1;
        }
        alive
    }

    pub(super) fn end_run(&mut self, run_id: RunId, replica: usize, life: u64, how: EndedHow) {
        let now = self.now;
        let Some(run) = self.runs.get_mut(&run_id).filter(|run| run.ended.is_none()) else {
            return;
        };
        run.ended = Some(now);
        self.alive.remove(&run_id);
        run.completed = how == EndedHow::Succeeded;
        run.how = Some(how);
        let ended = run.clone();
        self.witness_end(&ended);
        let ending = Ending {
            how,
            detail: AttemptDetail::default(),
            output: Output::default(),
        };
        let event = Box::new(Event::AttemptEnded { run_id, ending });
        self.happen(Happening::Deliver {
            replica,
            life,
            event,
        });
    }
}
