//! The sum rule: every due instant of a job has one recorded fate, and nothing else has one.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist::scheduler::job::Job;
use soloist::scheduler::schedule::Schedule;
use soloist::scheduler::time::Timestamp;
use soloist::store::{AttemptRecord, JobState, Standing};

/// A part of a job's life: this schedule was in force until then.
struct Segment {
    schedule: Schedule,
    until: Timestamp,
}

/// What a test knows of a job beside the ledger.
pub struct Life {
    /// Accounts begin after this.
    since: Timestamp,
    /// Schedules that were in force before the present one.
    former: Vec<Segment>,
    schedule: Schedule,
}

impl Life {
    /// From a state on that the ledger has told.
    pub fn from(state: &JobState, job: &Job) -> Self {
        Self {
            since: state.settled_until,
            former: Vec::new(),
            schedule: job.schedule.clone(),
        }
    }

    /// The schedule in force, as the ledger has it.
    pub fn schedule(&self) -> String {
        self.schedule.identity()
    }

    /// From `until` on it is another schedule.
    pub fn edit(&mut self, schedule: Schedule, until: Timestamp) {
        let schedule = std::mem::replace(&mut self.schedule, schedule);
        self.former.push(Segment { schedule, until });
    }

    /// The instants that have to have a fate, up to `until`.
    fn due(&self, until: Timestamp) -> Vec<Timestamp> {
        let mut due = Vec::new();
        let mut from = self.since;
        let now = Segment {
            schedule: self.schedule.clone(),
            until,
        };
        for segment in self.former.iter().chain([&now]) {
            let mut at = from;
            while let Some(next) = segment
                .schedule
                .next_after(at)
                .filter(|next| *next <= segment.until.min(until))
            {
                due.push(next);
                at = next;
            }
            from = from.max(segment.until);
        }
        due
    }
}

/// How often the ledger tells of the end of each occurrence.
pub fn fates(lines: &[AttemptRecord], due: &[Timestamp]) -> BTreeMap<Timestamp, u32> {
    let mut fates: BTreeMap<Timestamp, u32> = BTreeMap::new();
    let mut shards: BTreeMap<(Timestamp, u32), u32> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.detail.is_final()) {
        if let (Some(since), Some(schedule)) = (line.detail.since, &line.detail.schedule) {
            let schedule = Schedule::from_identity(schedule, line.job.as_str());
            let schedule = schedule.expect("the ledger has what it was told");
            let covered = due
                .iter()
                .filter(|at| **at > since && **at <= line.scheduled_at);
            for at in covered
                .filter(|at| schedule.last_before(**at + Duration::from_millis(1)) == Some(**at))
            {
                *fates.entry(*at).or_default() += 1;
            }
            continue;
        }
        match line.detail.shard {
            None => *fates.entry(line.scheduled_at).or_default() += 1,
            Some((shard, _)) => *shards.entry((line.scheduled_at, shard)).or_default() += 1,
        }
    }
    for ((at, shard), count) in shards {
        assert_eq!(count, 1, "shard {shard} of {at} ended {count} times");
        if shard == 0 {
            *fates.entry(at).or_default() += 1;
        }
    }
    fates
}

/// A job's policies, in one line.
pub fn policies(job: &Job) -> String {
    format!(
        "{} `{}` {:?} {:?} {:?} {:?} delay {:?} deadline {:?} max_attempts {} shards {}",
        job.name,
        job.schedule.text(),
        job.catch_up,
        job.concurrency,
        job.retry,
        job.on_crash,
        job.random_delay,
        job.starting_deadline,
        job.max_attempts,
        job.shards
    )
}

/// The same of what the ledger has told: the state of the job, and its lines, newest first.
pub fn check_lines(state: &JobState, lines: &[AttemptRecord], life: &Life, job: &Job) {
    let due = life.due(state.settled_until);
    let mut fates = fates(lines, &due);
    // What is not over yet has its place in the record.
    let open = state
        .attempts
        .iter()
        .any(|one| !matches!(one.standing, Standing::Ended(_)));
    if let Some(first) = state.attempts.first().filter(|_| open) {
        let count = fates.entry(first.scheduled_at).or_default();
        *count = match state.attempts.len() {
            1 => *count + 1,
            _ => 1,
        };
    }
    for waiting in &state.waiting {
        *fates.entry(waiting.scheduled_at).or_default() += 1;
    }
    let show = |at: Timestamp| {
        let mut text = policies(job);
        text += &format!("\n{state:?}\n");
        let near = |line: &&AttemptRecord| {
            let reach = Duration::from_secs(100);
            line.scheduled_at >= at - reach
                && line.detail.since.unwrap_or(line.scheduled_at) <= at + reach
        };
        for line in lines.iter().rev().filter(near) {
            text += &format!(
                "{} #{} {} on {} ended {} {:?}\n",
                line.scheduled_at,
                line.attempt,
                line.outcome,
                line.replica,
                line.ended_at,
                serde_json::to_string(&line.detail)
            );
        }
        text
    };
    for at in &due {
        let count = fates.remove(at).unwrap_or(0);
        assert_eq!(count, 1, "{at} has {count} fates\n{}", show(*at));
    }
    for (at, count) in fates.into_iter().filter(|(at, _)| *at > life.since) {
        let by_hand = at.as_millis() % 1000 != 0;
        assert!(by_hand, "{at} was never due\n{}", show(at));
        assert_eq!(
            count,
            1,
            "the trigger of {at} has {count} fates\n{}",
            show(at)
        );
    }
}
