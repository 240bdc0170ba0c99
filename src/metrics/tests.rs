//! What the series are bounded by, and what they cost.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use super::*;
use crate::clock::SystemClock;
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::{Outcome, RunId};
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::time::Timestamp;

fn metrics() -> Metrics {
    let health = Health::starting("0".into(), 1, Timestamp::from_second(0));
    let (_, health) = watch::channel(health);
    Metrics::new(health, Arc::new(SystemClock))
}

fn name(number: usize) -> JobName {
    JobName::new(&format!("job-{number:04}")).unwrap()
}

fn table(jobs: std::ops::Range<usize>, text: &str) -> Vec<Arc<Job>> {
    let job = |number| {
        let name = name(number);
        let (gap, fold) = (DstGap::default(), DstFold::default());
        let schedule =
            Schedule::parse(text, name.as_str(), jiff::tz::TimeZone::UTC, gap, fold).unwrap();
        Arc::new(Job::new(name, schedule, Program::Shell("true".into())))
    };
    jobs.map(job).collect()
}

fn count(metrics: &Metrics, job: usize, outcome: Outcome) {
    metrics.jobs.shown().counts(&name(job)).ended(outcome, 1);
}

/// The value of the series that a line begins with.
fn value(page: &str, series: &str) -> Option<f64> {
    let of = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok();
    page.lines().find_map(of)
}

#[test]
fn jobs_over_the_limit_are_counted_together() {
    let metrics = metrics();
    metrics.jobs.replace(table(0..JOBS_SHOWN + 500, "@daily"));
    for job in [0, JOBS_SHOWN - 1, JOBS_SHOWN, JOBS_SHOWN + 499] {
        count(&metrics, job, Outcome::Failed);
    }
    let page = metrics.render(Format::Text);
    let failed = |job: &str| {
        let labels = format!("{{job=\"{job}\",outcome=\"failed\"}}");
        value(&page, &format!("soloist_occurrences_total{labels}"))
    };
    assert_eq!(failed("job-0000"), Some(1.0));
    assert_eq!(failed("job-0999"), Some(1.0));
    assert_eq!(failed("job-1000"), None);
    assert_eq!(failed("_other"), Some(2.0));
    assert!(JobName::new("_other").is_err(), "no job is called so");
    assert!(!page.contains("timestamp_seconds{job=\"_other\"}"));
}

#[test]
fn a_removed_job_takes_its_series_with_it_and_the_others_go_on() {
    let metrics = metrics();
    metrics.jobs.replace(table(0..3, "@daily"));
    (0..3).for_each(|job| count(&metrics, job, Outcome::Succeeded));
    metrics.jobs.replace(table(1..4, "@daily"));
    let page = metrics.render(Format::Text);
    let succeeded = |job: usize| {
        let labels = format!("{{job=\"job-000{job}\",outcome=\"succeeded\"}}");
        value(&page, &format!("soloist_occurrences_total{labels}"))
    };
    assert!(!page.contains("job-0000"), "{page}");
    assert_eq!([1, 2, 3].map(succeeded), [Some(1.0), Some(1.0), Some(0.0)]);
    assert!(!page.contains("_other"), "nothing is counted there");
    count(&metrics, 0, Outcome::Succeeded);
    assert!(metrics.render(Format::Text).contains("_other"));
}

#[test]
fn nothing_grows_by_what_happens_again_and_again() {
    let metrics = metrics();
    metrics.jobs.replace(table(0..10, "@daily"));
    let attempt = |number: u128| {
        let run_id = RunId::new(uuid::Uuid::from_u128(number));
        let shown = metrics.jobs.shown();
        let counts = shown.counts(&name(number as usize % 20));
        counts.began(run_id, Timestamp::from_second(1));
        counts.finished(run_id, Duration::from_secs(3));
        counts.ended(Outcome::Succeeded, 1);
    };
    let lines = || metrics.render(Format::Text).lines().count();
    (0..100).for_each(attempt);
    let before = lines();
    (100..10_000).for_each(attempt);
    assert_eq!(lines(), before);
}

/// 10 ms in a release build is what is wanted; a debug build takes some ten times that.
#[test]
fn a_thousand_jobs_are_written_down_quickly() {
    let metrics = metrics();
    metrics.jobs.replace(table(0..1000, "30 2 * * *"));
    for job in 0..1000 {
        let run_id = RunId::new(uuid::Uuid::from_u128(7));
        let shown = metrics.jobs.shown();
        shown
            .counts(&name(job))
            .finished(run_id, Duration::from_secs(3));
    }
    metrics.render(Format::OpenMetrics);
    // What this thread worked, whatever others had to do meanwhile.
    let worked = || {
        let worked = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(worked).expect("a time since its start")
    };
    let took = (0..5).map(|_| {
        let before = worked();
        let page = metrics.render(Format::Text);
        (worked() - before, page.len())
    });
    let (took, length) = took.min().expect("five of them");
    println!("1,000 jobs: {length} bytes in {took:?}");
    let limit = match cfg!(debug_assertions) {
        true => Duration::from_millis(300),
        false => Duration::from_millis(10),
    };
    assert!(took < limit, "{took:?}");
}

#[test]
fn the_instants_around_the_present_are_those_of_the_schedule() {
    let metrics = metrics();
    metrics.jobs.replace(table(0..1, "0 */10 * * * *"));
    let shown = metrics.jobs.shown();
    let series = &shown.all()[0];
    for (now, previous) in [
        (599, 0),
        (600, 600),
        (601, 600),
        (1199, 600),
        (1200, 1200),
        (5, 0),
    ] {
        let previous = Timestamp::from_second(previous);
        assert_eq!(
            series.previous(Timestamp::from_second(now)),
            Some(previous),
            "{now}"
        );
    }
}

#[test]
fn openmetrics_is_for_those_who_ask_for_it() {
    // As Prometheus 2 and 3 ask, and 3 with its parser of protobuf.
    for asked in [
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        "application/openmetrics-text",
        "Application/OpenMetrics-Text; Version=\"1.0.0\"; Q=0.1",
        "text/plain;q=0.5, application/openmetrics-text;q=0.500",
        "application/*;q=0.2, text/plain;q=0.1",
        "text/*;q=0, */*;q=0.1",
    ] {
        assert_eq!(
            Format::accepted(Some(asked)),
            Format::OpenMetrics,
            "{asked}"
        );
    }
    for other in [
        "",
        "*/*",
        "text/plain",
        "application/json",
        // As Prometheus asks whose `scrape_protocols` begin with the text.
        "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2",
        // A version that is not spoken, and one that is not wanted.
        "application/openmetrics-text;version=2.0.0,text/plain;q=0.1",
        "application/openmetrics-text;q=0,*/*;q=0.1",
        "application/openmetrics-text;q=none",
        // The closest range counts: here it is worth the least.
        "application/*,application/openmetrics-text;q=0.1,text/plain;q=0.2",
        "application/*,text/*",
        ",;=,/",
    ] {
        assert_eq!(Format::accepted(Some(other)), Format::Text, "{other}");
    }
    assert_eq!(Format::accepted(None), Format::Text);
    let metrics = metrics();
    assert!(metrics.render(Format::OpenMetrics).ends_with("# EOF\n"));
    assert!(!metrics.render(Format::Text).contains("EOF"));
}
