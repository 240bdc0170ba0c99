//! What people are told, in words and as JSON.
//!
//! Must never: hold a secret of the table; what a job printed is its own.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    AttemptDetail, Captured, Closing, Outcome, Output, RunId, Told, Topic,
};
use crate::scheduler::time::{Timestamp, format_duration, short_duration};

/// The version of the body; a field that goes or changes its meaning raises it.
const VERSION: u32 = 1;

/// How much of what an attempt printed is told, in bytes of each stream: its end.
const TAIL: usize = 4 * 1024;

/// Who tells.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    pub(super) namespace: String,
    pub(super) replica: String,
}

/// News of a job.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) topic: Topic,
    pub(super) job: JobName,
    /// By which request, or of which attempt, the news are: it names them.
    pub(super) by: RunId,
    pub(super) scheduled_at: Timestamp,
    pub(super) after: Option<Timestamp>,
    pub(super) outcome: Option<Outcome>,
    pub(super) attempt: u32,
    pub(super) run_id: Option<RunId>,
    /// Who ran it.
    pub(super) replica: String,
    pub(super) ended_at: Option<Timestamp>,
    /// How long the attempt ran, where one ended.
    pub(super) ran_for: Option<Duration>,
    pub(super) detail: AttemptDetail,
    /// Of the row of ends that did not succeed.
    pub(super) since: Timestamp,
    pub(super) count: u32,
    pub(super) warn_after: Option<Duration>,
    /// What it printed last on each of the two: no more than is told, as messages may wait long.
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
}

#[derive(Serialize)]
struct Body<'m> {
    r#type: String,
    /// When the news came about.
    timestamp: String,
    version: u32,
    /// All in a line, where chat services look for it.
    text: String,
    data: Data<'m>,
}

#[derive(Serialize)]
struct Data<'m> {
    id: String,
    event: &'static str,
    job: &'m str,
    namespace: &'m str,
    scheduled_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    replica: &'m str,
    told_by: &'m str,
    since: String,
    count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    warn_after_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<&'m str>,
}

impl Message {
    /// What a closing has to tell, if it has.
    pub(super) fn of(closing: &Closing, output: &Output) -> Option<Self> {
        Some(Self::told(closing, closing.told?, output))
    }

    /// News of a closing.
    pub(super) fn told(closing: &Closing, told: Told, output: &Output) -> Self {
        Self {
            topic: told.topic,
            job: closing.occurrence.job.clone(),
            by: closing.by,
            scheduled_at: closing.occurrence.scheduled_at,
            after: closing.after,
            outcome: Some(closing.outcome),
            attempt: closing.attempt,
            run_id: closing.run_id,
            replica: closing.replica.clone(),
            ended_at: Some(closing.ended_at),
            ran_for: ran_for(closing),
            detail: closing.detail.clone(),
            since: told.since,
            count: told.count,
            warn_after: None,
            stdout: tail(&output.stdout, TAIL),
            stderr: tail(&output.stderr, TAIL),
        }
    }

    /// The same for the same news, whoever tells them.
    pub(super) fn id(&self) -> String {
        format!("{}-{}", self.by, self.topic.as_str())
    }

    /// In a few words, for a subject.
    pub(super) fn title(&self) -> String {
        let job = &self.job;
        match (self.topic, self.outcome) {
            (Topic::Recovery, _) => format!("{job} succeeded again"),
            (Topic::Missed, _) => format!("{job} was not run"),
            (Topic::Slow, _) => {
                let limit = format_duration(self.warn_after.unwrap_or_default());
                format!("{job} runs for longer than {limit}")
            }
            (Topic::Failure, Some(Outcome::TimedOut)) => format!("{job} timed out"),
            (Topic::Failure, Some(Outcome::Lost)) => format!("{job} was lost"),
            (Topic::Failure, _) => match (self.detail.exit_code, self.detail.signal) {
                (Some(code), _) => format!("{job} failed with exit code {code}"),
                (None, Some(signal)) => format!("{job} was ended by signal {signal}"),
                (None, None) => format!("{job} failed"),
            },
        }
    }

    /// All that matters, in a line.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: due at {}", self.title(), self.scheduled_at);
        // Writing to a string can't fail.
        if let Some(after) = self.after {
            let _ = write!(text, ", and what was due before that since {after}");
        }
        if self.attempt > 0 {
            let _ = write!(text, ", attempt {} on {}", self.attempt, self.replica);
        }
        if let Some(ran_for) = self.ran_for {
            let _ = write!(text, " ran for {}", short_duration(ran_for));
        }
        if let Some(reason) = &self.detail.reason {
            let _ = write!(text, "; {reason}");
        }
        match (self.topic, self.count) {
            (Topic::Recovery, count) => {
                let _ = write!(text, "; {count} did not succeed since {}", self.since);
            }
            (Topic::Failure | Topic::Missed, count @ 2..) => {
                let _ = write!(text, "; {count} in a row since {}", self.since);
            }
            _ => {}
        }
        text
    }

    /// The body of a webhook.
    pub(super) fn json(&self, teller: &Teller) -> String {
        let detail = &self.detail;
        let body = Body {
            r#type: format!("job.{}", self.topic.as_str()),
            timestamp: self.ended_at.unwrap_or(self.scheduled_at).to_string(),
            version: VERSION,
            text: self.text(),
            data: Data {
                id: self.id(),
                event: self.topic.as_str(),
                job: self.job.as_str(),
                namespace: &teller.namespace,
                scheduled_at: self.scheduled_at.to_string(),
                after: self.after.map(|after| after.to_string()),
                outcome: self.outcome.map(Outcome::as_str),
                cause: detail.cause.map(|cause| cause.as_str()),
                reason: detail.reason.as_deref(),
                exit_code: detail.exit_code,
                signal: detail.signal,
                attempt: self.attempt,
                run_id: self.run_id.map(|id| id.to_string()),
                replica: &self.replica,
                told_by: &teller.replica,
                since: self.since.to_string(),
                count: self.count,
                warn_after_seconds: self.warn_after.map(|limit| limit.as_secs_f64()),
                duration_seconds: self.ran_for.map(|length| length.as_secs_f64()),
                stdout: self.stdout.as_deref(),
                stderr: self.stderr.as_deref(),
            },
        };
        // Texts and numbers alone: there is nothing in it that JSON does not have.
        serde_json::to_string(&body).unwrap_or_default()
    }
}

/// How long the attempt ran whose end this is; none where it is not known any more, or nobody saw
/// that end.
fn ran_for(closing: &Closing) -> Option<Duration> {
    let length = closing.ended_at.saturating_since(closing.started_at);
    (closing.run_id == Some(closing.by) && !length.is_zero()).then_some(length)
}

/// The last part of a stream, from the beginning of a character on; none where it is empty.
pub(super) fn tail(captured: &Captured, most: usize) -> Option<String> {
    if captured.is_empty() {
        return None;
    }
    let kept = match captured.cut() {
        0 => [&captured.head[..], &captured.tail[..]].concat(),
        _ if captured.tail.is_empty() => captured.head.clone(),
        _ => captured.tail.clone(),
    };
    let mut from = kept.len().saturating_sub(most);
    while from < kept.len() && kept[from] & 0b1100_0000 == 0b1000_0000 {
        from += 1;
    }
    Some(String::from_utf8_lossy(&kept[from..]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::lease::Occurrence;

    impl Message {
        /// A job failed with code 3, for a reason, and printed something.
        pub(in crate::notify) fn sample(reason: &str, printed: &str) -> Self {
            let at = Timestamp::from_second;
            Self {
                topic: Topic::Failure,
                job: JobName::new("report").unwrap(),
                by: RunId::new(uuid::Uuid::nil()),
                scheduled_at: at(0),
                after: None,
                outcome: Some(Outcome::Failed),
                attempt: 1,
                run_id: Some(RunId::new(uuid::Uuid::nil())),
                replica: "r1".into(),
                ended_at: None,
                ran_for: None,
                detail: AttemptDetail {
                    exit_code: Some(3),
                    ..AttemptDetail::reason(reason)
                },
                since: at(0),
                count: 1,
                warn_after: None,
                stdout: Some(printed.to_owned()),
                stderr: None,
            }
        }
    }

    #[test]
    fn long_times_are_words_to_people_and_seconds_to_programs() {
        let teller = Teller {
            namespace: "shop".into(),
            replica: "r2".into(),
        };
        let long = Duration::from_millis(187_342_500);
        let mut message = Message::sample("because", "");
        message.ran_for = Some(long);
        assert_eq!(
            message.text(),
            "report failed with exit code 3: due at 1970-01-01T00:00:00Z, attempt 1 on r1 ran for 2d 4h; because"
        );
        let json: serde_json::Value = serde_json::from_str(&message.json(&teller)).unwrap();
        assert_eq!(json["data"]["duration_seconds"], 187_342.5);
        message.topic = Topic::Slow;
        message.warn_after = Some(Duration::from_secs(187_342));
        assert_eq!(message.title(), "report runs for longer than 2d4h2m22s");
    }

    #[test]
    fn a_message_that_waits_holds_no_more_than_it_tells() {
        let at = Timestamp::from_second(0);
        let told = Told {
            topic: Topic::Failure,
            since: at,
            count: 1,
        };
        let by = RunId::new(uuid::Uuid::nil());
        let closing = Closing {
            by,
            occurrence: Occurrence {
                job: JobName::new("report").unwrap(),
                scheduled_at: at,
            },
            after: None,
            outcome: Outcome::Failed,
            attempt: 1,
            run_id: Some(by),
            replica: "r1".into(),
            started_at: at,
            ended_at: at + Duration::from_secs(90),
            detail: AttemptDetail::default(),
            told: Some(told),
        };
        let stream = Captured {
            head: vec![b'x'; 1024 * 1024],
            tail: Vec::new(),
            total: 1024 * 1024,
        };
        let output = Output {
            stdout: stream.clone(),
            stderr: stream,
        };
        let message = Message::told(&closing, told, &output);
        for kept in [message.stdout, message.stderr] {
            assert_eq!(kept.map(|text| text.capacity()), Some(TAIL));
        }
        assert_eq!(message.ran_for, Some(Duration::from_secs(90)));
    }

    #[test]
    fn a_tail_ends_where_the_stream_did_and_splits_no_character() {
        let captured = |text: &str, cut: u64| Captured {
            head: text.as_bytes().to_vec(),
            tail: Vec::new(),
            total: text.len() as u64 + cut,
        };
        assert_eq!(tail(&Captured::default(), 10), None);
        assert_eq!(tail(&captured("hello", 0), 3).unwrap(), "llo");
        assert_eq!(tail(&captured("häx", 0), 2).unwrap(), "x");
        assert_eq!(tail(&captured("häx", 0), 3).unwrap(), "äx");
        assert_eq!(tail(&captured("\u{e4}\u{e4}", 0), 1).unwrap(), "");
    }
}
