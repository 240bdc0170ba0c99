//! What a table says of a job is what the job is, whatever values stand there and in whatever order.

use proptest::prelude::*;
use toml_writer::{ToTomlValue as _, TomlStringBuilder};

use super::*;
use crate::config::format_duration;

/// What is written of a job, key by key.
#[derive(Clone, Debug)]
struct Written {
    timeout: Duration,
    kill_grace: Duration,
    random_delay: Duration,
    retry: Retry,
    max_attempts: u32,
    shards: u32,
    history: (u32, Duration),
    description: String,
    command: Vec<String>,
    variable: String,
}

fn time(from_ms: u64, to_ms: u64) -> impl Strategy<Value = Duration> {
    (from_ms..=to_ms).prop_map(Duration::from_millis)
}

fn written() -> impl Strategy<Value = Written> {
    let texts = (
        "[^\\x00$]{0,20}",
        // A program's name is more than white space.
        prop::collection::vec("[^\\x00]{0,8}[a-z]", 1..4),
        "[^\\x00$]{0,20}",
    );
    let times = (time(1, 1_000_000), time(0, 10_000), time(0, 40_000));
    let retry = (
        1..1000_u32,
        time(100, 9_000),
        10..90_u32,
        time(9_000, 600_000),
    );
    let counts = (
        1..1000_u32,
        1..50_u32,
        1..1_000_000_u32,
        time(60_000, 9_000_000),
    );
    (texts, times, retry, counts).prop_map(|(texts, times, retry, counts)| Written {
        timeout: times.0,
        kill_grace: times.1,
        random_delay: times.2,
        retry: Retry {
            max: retry.0,
            backoff: retry.1,
            factor: f64::from(retry.2) / 8.0,
            max_backoff: retry.3,
        },
        max_attempts: counts.0,
        shards: counts.1,
        history: (counts.2, counts.3),
        description: texts.0,
        command: texts.1,
        variable: texts.2,
    })
}

impl Written {
    fn lines(&self) -> Vec<String> {
        let time = |time: Duration| format!("\"{}\"", format_duration(time));
        let text = |text: &str| TomlStringBuilder::new(text).as_basic().to_toml_value();
        let command: Vec<_> = self.command.iter().map(|word| text(word)).collect();
        let retry = &self.retry;
        vec![
            format!("timeout = {}", time(self.timeout)),
            format!("kill_grace = {}", time(self.kill_grace)),
            format!("random_delay = {}", time(self.random_delay)),
            format!(
                "retry = {{ max = {}, backoff = {}, factor = {:?}, max_backoff = {} }}",
                retry.max,
                time(retry.backoff),
                retry.factor,
                time(retry.max_backoff)
            ),
            format!("max_attempts = {}", self.max_attempts),
            format!("shards = {}", self.shards),
            format!("history_limit = {}", self.history.0),
            format!("history_age = {}", time(self.history.1)),
            format!("description = {}", text(&self.description)),
            format!("command = [{}]", command.join(", ")),
            format!("env = {{ A = {} }}", text(&self.variable)),
            "schedule = \"@daily\"".to_owned(),
        ]
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn what_is_written_of_a_job_is_what_it_is(written in written(), turn in 0..12_usize) {
        let mut lines = written.lines();
        lines.rotate_left(turn);
        let table = format!("[jobs.a]\n{}\n", lines.join("\n"));
        let mut config = read(&table).unwrap_or_else(|error| panic!("{error}"));
        let job = config.jobs.remove(0);
        prop_assert_eq!(job.timeout, Some(written.timeout));
        prop_assert_eq!(job.kill_grace, written.kill_grace);
        prop_assert_eq!(job.random_delay, written.random_delay);
        prop_assert_eq!(job.retry, written.retry);
        prop_assert_eq!(job.max_attempts, written.max_attempts);
        prop_assert_eq!(job.shards, written.shards);
        prop_assert_eq!((job.retention.limit, job.retention.age), written.history);
        prop_assert_eq!(job.description, Some(written.description));
        prop_assert_eq!(job.command.program, Program::Command(written.command));
        prop_assert_eq!(job.command.env.get("A"), Some(&written.variable));
    }
}
