//! `soloist history`: past attempts.

use super::args::{Global, HistoryArgs};
use super::settings::Settings;
use super::{Exit, complain, output, print_error, store};
use crate::orders::unknown;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{Origin, Usage};
use crate::store::{AttemptRecord, Snapshot};
use crate::views::history::{AttemptView, COUNT_LIMIT, Line, shown};

/// Shows past attempts, the newest first.
pub(super) fn run(global: &Global, args: &HistoryArgs) -> Result<Exit, Exit> {
    let (scheduler, table) = Settings::load_for_store(global)?;
    let job = args.job.as_deref().map(parse_name).transpose()?;
    let limit = usize::try_from(args.count).unwrap_or(usize::MAX);
    let jobs = table.as_ref().map_or(&[][..], |table| &table.jobs);
    let (lines, snapshot) = store::look(&scheduler, async |store| {
        let mut asked = limit;
        loop {
            let lines = store.history(job.as_ref(), asked).await?;
            let complete = lines.len() < asked;
            let lines = shown(&lines, jobs, limit);
            if complete || lines.len() == limit {
                // Who it is of matters where there is nothing.
                let snapshot = match lines.is_empty() && job.is_some() {
                    true => Some(store.snapshot().await?.answer),
                    false => None,
                };
                return Ok((lines, snapshot));
            }
            // Some of them stand for nothing: so many more are needed.
            asked = asked.saturating_mul(2);
        }
    })?;
    if let (Some(job), Some(snapshot)) = (&job, &snapshot) {
        check_known(job, jobs, snapshot)?;
    }
    if args.json {
        let wire: Vec<AttemptView> = lines.iter().map(AttemptView::of).collect();
        return Ok(output::json(&wire));
    }
    if lines.is_empty() {
        let whose = job.map_or(String::new(), |job| format!(" of `{job}`"));
        print_error(&format!(
            "nothing{whose} has run yet, as far as the store knows\n"
        ));
        return Ok(Exit::Done);
    }
    Ok(output::table(
        &[
            "SCHEDULED AT",
            "JOB",
            "ATTEMPT",
            "OUTCOME",
            "TOOK",
            "CPU",
            "MEMORY",
            "REPLICA",
            "TOKEN",
            "DETAIL",
        ],
        lines.iter().map(row),
    ))
}

pub(super) fn parse_name(text: &str) -> Result<JobName, Exit> {
    JobName::new(text).map_err(|error| {
        complain(
            Exit::Usage,
            &format!("`{text}` can't be a job's name: {error}"),
            None,
        )
    })
}

/// Whether table or ledger has a job of this name; complains where neither has.
pub(super) fn check_known(job: &JobName, table: &[Job], ledger: &Snapshot) -> Result<(), Exit> {
    let in_table = table.iter().map(|known| &known.name);
    let names = in_table.chain(ledger.jobs.iter().map(|state| &state.job));
    if names.clone().any(|known| known == job) {
        return Ok(());
    }
    let (message, hint) = unknown(job, names.map(JobName::as_str));
    Err(complain(Exit::Failed, &message, Some(&hint)))
}

fn row(line: &Line) -> Vec<String> {
    let attempt = &line.record;
    let started = attempt.attempt > 0;
    let took = attempt.ended_at.saturating_since(attempt.started_at);
    let or_dash = |text: String| if started { text } else { "-".to_owned() };
    let [cpu, memory] = used(attempt.detail.usage);
    let number = match attempt.detail.shard {
        Some((shard, of)) => format!("{} (shard {shard} of {of})", attempt.attempt),
        None => attempt.attempt.to_string(),
    };
    let scheduled_at = match attempt.detail.since {
        Some(since) => format!("{since} to {}", attempt.scheduled_at),
        None => attempt.scheduled_at.to_string(),
    };
    let counted = line.range.flatten().map(counted);
    let detail = Some(detail(attempt)).filter(|text| !text.is_empty());
    let detail: Vec<String> = counted.into_iter().chain(detail).collect();
    vec![
        scheduled_at,
        attempt.job.to_string(),
        or_dash(number),
        outcome(attempt),
        or_dash(output::short_duration(took)),
        cpu,
        memory,
        attempt.replica.clone(),
        or_dash(attempt.token.to_string()),
        detail.join(", "),
    ]
}

/// How it ended, and by which policy: `missed (catch_up)`.
fn outcome(attempt: &AttemptRecord) -> String {
    match attempt.detail.cause {
        Some(cause) => format!("{} ({})", attempt.outcome, cause.as_str()),
        None => attempt.outcome.to_string(),
    }
}

/// How many occurrences a line stands for.
fn counted(count: usize) -> String {
    match count {
        1 => "1 occurrence".to_owned(),
        COUNT_LIMIT => format!("{COUNT_LIMIT} occurrences or more"),
        count => format!("{count} occurrences"),
    }
}

/// CPU time and peak of memory, as far as they are known.
fn used(usage: Option<Usage>) -> [String; 2] {
    let usage = usage.unwrap_or_default();
    let memory = usage.peak_memory.map(|peak| output::short_size(peak.bytes));
    [usage.cpu.map(output::short_duration), memory].map(|text| text.unwrap_or("-".to_owned()))
}

/// All that is known of it, beyond its outcome.
pub(super) fn detail(attempt: &AttemptRecord) -> String {
    let next = attempt
        .detail
        .next_attempt_at
        .filter(|at| *at > attempt.ended_at)
        .map(|at| format!("retry at {at}"));
    let how = Some(how_it_ended(attempt)).filter(|words| !words.is_empty());
    let parts = [origin(attempt), how, next];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How it ended, beyond its outcome.
pub(super) fn how_it_ended(attempt: &AttemptRecord) -> String {
    let detail = &attempt.detail;
    let code = detail
        .exit_code
        .filter(|code| *code != 0)
        .map(|code| format!("exit code {code}"));
    let signal = detail.signal.map(|signal| format!("signal {signal}"));
    let parts = [detail.reason.clone(), code, signal];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What brought it about, where it wasn't the schedule.
fn origin(attempt: &AttemptRecord) -> Option<String> {
    let by = attempt.detail.by.as_deref();
    let by = |word: &str| by.map_or(String::new(), |by| format!(" {word}{by}"));
    match attempt.detail.origin {
        Origin::Schedule => None,
        Origin::Trigger => Some(format!("triggered{}", by("by "))),
        Origin::RunOnce => Some(format!("run-once{}", by("by "))),
        Origin::After => Some(format!("after{}", by(""))),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use uuid::Uuid;

    use super::*;
    use crate::scheduler::job::Program;
    use crate::scheduler::lease::{AttemptDetail, Cause, FencingToken, Outcome, RunId};
    use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
    use crate::scheduler::time::Timestamp;

    /// A time of 2026-11-20.
    fn at(time: &str) -> Timestamp {
        let text = format!("2026-11-20T{time}Z");
        text.parse::<jiff::Timestamp>().unwrap().into()
    }

    fn minutely() -> Job {
        let (gap, fold) = (DstGap::default(), DstFold::default());
        let schedule = Schedule::parse("* * * * *", "minutely", TimeZone::UTC, gap, fold);
        let program = Program::Command(vec!["true".to_owned()]);
        Job::new(
            JobName::new("minutely").unwrap(),
            schedule.unwrap(),
            program,
        )
    }

    fn line(attempt: u32, outcome: Outcome, detail: AttemptDetail) -> AttemptRecord {
        AttemptRecord {
            job: minutely().name,
            scheduled_at: at("22:10:00"),
            attempt,
            run_id: RunId::new(Uuid::nil()),
            token: FencingToken::new(u64::from(attempt)),
            replica: "r1".to_owned(),
            started_at: at("22:10:00"),
            ended_at: at("22:10:01"),
            outcome,
            detail,
        }
    }

    /// What was missed since then, up to 22:10.
    fn missed_since(since: &str) -> AttemptRecord {
        let detail = AttemptDetail {
            since: Some(at(since)),
            schedule: Some(minutely().schedule.identity()),
            ..AttemptDetail::policy(Cause::CatchUp, "all were away")
        };
        line(0, Outcome::Missed, detail)
    }

    fn told(record: AttemptRecord) -> Vec<String> {
        let lines = shown(&[record], &[minutely()], 10);
        assert_eq!(lines.len(), 1);
        row(&lines[0])
    }

    #[test]
    fn a_line_that_stands_for_a_stretch_of_time_is_counted_by_its_schedule() {
        let row = told(missed_since("22:00:00"));
        assert_eq!(row[0], "2026-11-20T22:00:00Z to 2026-11-20T22:10:00Z");
        assert_eq!([&row[2], &row[3]], ["-", "missed (catch_up)"]);
        assert_eq!(row[9], "10 occurrences, all were away");
        assert_eq!(
            told(missed_since("22:09:00"))[9],
            "1 occurrence, all were away"
        );
        let row = told(missed_since("00:00:00"));
        assert_eq!(row[9], "1000 occurrences or more, all were away");
    }

    #[test]
    fn a_line_that_stands_for_nothing_is_not_shown_and_takes_no_place() {
        let lines = [
            missed_since("22:09:30"),
            missed_since("22:10:00"),
            missed_since("22:08:00"),
            missed_since("22:07:00"),
        ];
        // From 22:09:30 to 22:10:00 there is one, and from 22:10:00 none.
        let shown = shown(&lines, &[minutely()], 2);
        let counts: Vec<_> = shown.iter().map(|line| line.range).collect();
        assert_eq!(counts, [Some(Some(1)), Some(Some(2))]);
    }

    #[test]
    fn a_line_of_a_schedule_that_cannot_be_read_is_shown_uncounted() {
        let mut record = missed_since("22:00:00");
        record.detail.schedule = Some("on every full moon".to_owned());
        assert_eq!(told(record)[9], "all were away");
    }

    #[test]
    fn who_asked_which_shard_and_when_next_are_told() {
        let detail = AttemptDetail {
            exit_code: Some(3),
            origin: Origin::Trigger,
            by: Some("ann".to_owned()),
            shard: Some((1, 4)),
            next_attempt_at: Some(at("22:10:09")),
            ..AttemptDetail::default()
        };
        let row = told(line(2, Outcome::Failed, detail));
        assert_eq!([&row[2], &row[3]], ["2 (shard 1 of 4)", "failed"]);
        let expected = "triggered by ann, exit code 3, retry at 2026-11-20T22:10:09Z";
        assert_eq!(row[9], expected);
    }

    #[test]
    fn programs_get_every_field() {
        let detail = AttemptDetail {
            shard: Some((1, 4)),
            origin: Origin::After,
            by: Some("extract".to_owned()),
            next_attempt_at: Some(at("22:10:09")),
            ..missed_since("22:00:00").detail
        };
        let lines = shown(&[line(0, Outcome::Missed, detail)], &[minutely()], 1);
        let json = serde_json::to_value(AttemptView::of(&lines[0])).unwrap();
        for (key, value) in [
            ("origin", "after".into()),
            ("by", "extract".into()),
            ("shard", 1.into()),
            ("shards", 4.into()),
            ("cause", "catch_up".into()),
            ("next_attempt_at", "2026-11-20T22:10:09Z".into()),
            ("since", "2026-11-20T22:00:00Z".into()),
            ("scheduled_at", "2026-11-20T22:10:00Z".into()),
            (
                "schedule",
                serde_json::Value::from(minutely().schedule.identity()),
            ),
            ("occurrences", 10.into()),
        ] {
            assert_eq!(json[key], value, "{key}: {json:#}");
        }
    }
}
