//! The ledger in short, seconds since the world's beginning, by job and occurrence:
//!
//! ```text
//! JOB AT[/SHARD] #ATTEMPT WHO START-END OUTCOME [CAUSE] [trigger|after] [by PERSON] [then AT]
//! JOB AT[/SHARD] OUTCOME …                      it never started
//! JOB FIRST..LAST (COUNT) OUTCOME CAUSE         one line for several occurrences
//! JOB AT[/SHARD] #ATTEMPT WHO START- running    not over yet; or `again` with the next instant
//! JOB AT waits                                  and whatever else is not over yet
//! ```
//!
//! Replicas that the row doesn't name are A, B, C in the order of their first attempts.

use soloist::scheduler::lease::{FencingToken, Origin, RunId};
use soloist::scheduler::schedule::Schedule;
use soloist::scheduler::time::Timestamp;
use soloist::store::{AttemptRecord, JobState, LastAttempt, Standing};
use uuid::Uuid;

use super::row::Row;
use soloist_simulation::world::World;

const GENESIS_MS: i64 = 1_795_212_000_000;

/// By job, instant and shard; what is not over comes last.
type Key = (String, Timestamp, u32, u32, Timestamp);

/// Replicas by the names that a row knows them by.
struct Names<'r> {
    row: &'r Row,
    seen: Vec<String>,
}

pub(crate) fn short(world: &World, row: &Row) -> Vec<String> {
    let history = world.history();
    let jobs = world.snapshot().jobs;
    let names = Names::of(row, &history, &jobs);
    let mut lines: Vec<(Key, String)> = Vec::new();
    for line in &history {
        let shard = line.detail.shard.map_or(0, |(shard, _)| shard);
        let key = (
            line.job.to_string(),
            line.scheduled_at,
            shard,
            line.attempt,
            line.ended_at,
        );
        lines.extend(names.line(line).map(|text| (key, text)));
    }
    for state in &jobs {
        lines.extend(names.unfinished(state));
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The ledger as it is, but for ids, which are drawn, and tokens, which go by microseconds that
/// stores have or don't.
pub(crate) fn full(world: &World) -> Vec<String> {
    let mut lines = world.history();
    for line in &mut lines {
        line.run_id = RunId::new(Uuid::nil());
        line.token = FencingToken::default();
    }
    let mut lines: Vec<_> = lines.iter().map(|line| format!("{line:?}")).collect();
    lines.sort();
    lines
}

/// Whole seconds, with a fraction where there is one.
fn instant(at: Timestamp) -> String {
    let millis = at.as_millis() - GENESIS_MS;
    match (millis.div_euclid(1000), millis.rem_euclid(1000)) {
        (second, 0) => second.to_string(),
        (second, rest) => format!("{second}.{rest:03}"),
    }
}

fn second(at: Timestamp) -> i64 {
    (at.as_millis() - GENESIS_MS).div_euclid(1000)
}

fn shard(shard: Option<u32>) -> String {
    shard.map_or(String::new(), |shard| format!("/{shard}"))
}

fn origin(origin: Origin, by: Option<&str>) -> String {
    match (origin, by) {
        (Origin::Schedule, _) => String::new(),
        (Origin::Trigger, by) => format!(" trigger by {}", by.unwrap_or("nobody")),
        (Origin::After, _) => " after".to_owned(),
        (Origin::RunOnce, _) => " run-once".to_owned(),
    }
}

impl<'r> Names<'r> {
    fn of(row: &'r Row, history: &[AttemptRecord], jobs: &[JobState]) -> Self {
        let ended = history.iter().filter(|line| line.attempt > 0);
        let ended = ended.map(|line| (line.started_at, line.job.as_str(), &line.replica));
        let running = jobs.iter().flat_map(|state| {
            let attempts = state.attempts.iter();
            let running = attempts.filter(|one| matches!(one.standing, Standing::Running { .. }));
            running.map(|one| (one.since, state.job.as_str(), &one.replica))
        });
        let mut attempts: Vec<_> = ended.chain(running).collect();
        attempts.sort();
        let mut seen: Vec<String> = Vec::new();
        for (.., replica) in attempts {
            if !seen.contains(replica) {
                seen.push(replica.clone());
            }
        }
        Self { row, seen }
    }

    /// Who that is. The world calls its replicas r0, r1, …
    fn who(&self, replica: &str) -> String {
        let number: usize = replica[1..].parse().expect("a number");
        if let Some(name) = &self.row.replicas[number].name {
            return name.clone();
        }
        let place = self.seen.iter().position(|one| one == replica);
        let place = u8::try_from(place.expect("it was seen")).expect("a few");
        char::from(b'A' + place).to_string()
    }

    /// A line of the ledger; none where it stands for nothing.
    fn line(&self, line: &AttemptRecord) -> Option<String> {
        let detail = &line.detail;
        let mut text = match (detail.since, line.attempt) {
            (Some(since), _) => self.range(line, since)?,
            (None, 0) => format!("{} {}", line.job, instant(line.scheduled_at)),
            (None, attempt) => format!(
                "{} {}{} #{attempt} {} {}-{}",
                line.job,
                instant(line.scheduled_at),
                shard(detail.shard.map(|(shard, _)| shard)),
                self.who(&line.replica),
                second(line.started_at),
                second(line.ended_at),
            ),
        };
        text += &format!(" {}", line.outcome);
        if let Some(cause) = detail.cause {
            text += &format!(" {}", cause.as_str());
        }
        text += &origin(detail.origin, detail.by.as_deref());
        if let Some(at) = detail.next_attempt_at {
            text += &format!(" then {}", second(at));
        }
        Some(text)
    }

    fn range(&self, line: &AttemptRecord, since: Timestamp) -> Option<String> {
        let schedule = line.detail.schedule.as_deref().unwrap_or_default();
        let schedule = Schedule::from_identity(schedule, line.job.as_str());
        let schedule = schedule.expect("the ledger has what it was told");
        let covered: Vec<_> =
            std::iter::successors(schedule.next_after(since), |at| schedule.next_after(*at))
                .take_while(|at| *at <= line.scheduled_at)
                .collect();
        let (first, last) = (instant(*covered.first()?), instant(*covered.last()?));
        Some(format!("{} {first}..{last} ({})", line.job, covered.len()))
    }

    /// What the record of a job has that is not over.
    fn unfinished(&self, state: &JobState) -> Vec<(Key, String)> {
        let job = state.job.to_string();
        let never = Timestamp::from_millis(i64::MAX);
        let sharded = state.attempts.len() > 1;
        let mut lines = Vec::new();
        for (number, attempt) in (0..).zip(&state.attempts) {
            let key = (job.clone(), attempt.scheduled_at, number, u32::MAX, never);
            let of = shard(sharded.then_some(number));
            let text = self.standing(attempt);
            let at = instant(attempt.scheduled_at);
            lines.extend(text.map(|text| (key, format!("{job} {at}{of} {text}"))));
        }
        for one in &state.waiting {
            let key = (job.clone(), one.scheduled_at, 0, u32::MAX, never);
            let whose = origin(one.origin, one.by.as_deref());
            lines.push((
                key,
                format!("{job} {} waits{whose}", instant(one.scheduled_at)),
            ));
        }
        for (at, arrived) in &state.joins {
            let key = (job.clone(), *at, 0, u32::MAX, never);
            let arrived: Vec<_> = arrived.iter().map(|name| name.as_str()).collect();
            let arrived = arrived.join(", ");
            lines.push((key, format!("{job} {} joins {arrived}", instant(*at))));
        }
        let mut stands = Vec::new();
        stands.extend(state.paused.as_ref().map(|pause| ("paused", pause.since)));
        stands.extend(state.disabled.map(|since| ("disabled", since)));
        for (how, since) in stands {
            let key = (job.clone(), never, 0, 0, never);
            lines.push((key, format!("{job} {how} since {}", second(since))));
        }
        lines
    }

    fn standing(&self, attempt: &LastAttempt) -> Option<String> {
        let text = match attempt.standing {
            Standing::Ended(_) => return None,
            Standing::Idle => "idle".to_owned(),
            Standing::Again { at, .. } => format!("again {}", second(at)),
            Standing::Running { .. } => {
                let who = self.who(&attempt.replica);
                let since = second(attempt.since);
                format!("#{} {who} {since}- running", attempt.attempt)
            }
        };
        Some(text + &origin(attempt.origin, attempt.by.as_deref()))
    }
}
