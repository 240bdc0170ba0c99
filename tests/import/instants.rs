//! What was carried over is due when it was, by the reckoning of the oracle.
//!
//! Must never: take soloist's word for what cron does.

use std::collections::BTreeMap;

use soloist::scheduler::job::Job;
use soloist::scheduler::time::Timestamp;

use super::corpus::{Sample, check, now, samples};
use super::oracle::{Entry, Offsets};

/// How many occurrences are compared, from each beginning.
const COMPARED: usize = 50;

/// Before clocks are set, in the zones of the corpus.
const BEGINNINGS: [&str; 4] = [
    "2027-03-27T00:00:00Z",
    "2027-10-30T00:00:00Z",
    "2027-04-03T00:00:00Z",
    "2028-02-28T00:00:00Z",
];

/// The schedules of a crontab's entries that were carried over, in their order. Read apart from
/// the program: an entry begins with a number, a star or a word.
fn schedules(sample: &Sample, refused: &[String]) -> Vec<String> {
    let lines = (1..).zip(sample.text.lines());
    let kept = lines.filter(|(number, _)| !refused.contains(&format!("line {number}")));
    let entries = kept.filter_map(|(_, line)| {
        let line = line.trim_start().trim_start_matches('-');
        if line.starts_with('@') {
            return line.split_whitespace().next().map(str::to_owned);
        }
        let words: Vec<_> = line.split_whitespace().take(5).collect();
        let is_entry = line.starts_with(|c: char| c.is_ascii_digit() || "*~H".contains(c));
        (is_entry && !line.starts_with("HOME")).then(|| words.join(" "))
    });
    entries.collect()
}

/// Random values, and what crons read differently or not at all.
const BEYOND_THE_ORACLE: [&str; 10] = [
    "0~59 2~5 * * *",
    "~ * * * *",
    "0~10/5 * * * *",
    "@every_minute",
    "@every",
    "0 3 L * *",
    "0 3 * * MON#2",
    "5/15 * * * *",
    "0 22 ? * FRI-MON",
    "H H(1-4) * * *",
];

#[test]
fn every_entry_is_due_when_cron_ran_it() {
    let mut compared = 0;
    let mut zones = BTreeMap::new();
    for sample in samples() {
        for (job, text) in entries(&sample) {
            let label = format!("{}: {text}", sample.label);
            let Some(entry) = Entry::read(&text) else {
                let is_known = BEYOND_THE_ORACLE.contains(&text.as_str());
                assert!(is_known, "the oracle can't read {label}");
                continue;
            };
            let zone = job.schedule.zone();
            let name = zone.iana_name().expect("a name").to_owned();
            let offsets = zones
                .entry(name)
                .or_insert_with(|| Offsets::of(zone, now().as_second()));
            compare(&job, &entry, offsets, &label);
            compared += 1;
        }
    }
    assert!(compared >= 100, "{compared} entries are few");
}

/// What was carried over of a crontab, each with its schedule there.
fn entries(sample: &Sample) -> Vec<(Job, String)> {
    let is_crontab = sample.label.ends_with(".crontab");
    let imported = is_crontab.then(|| sample.import());
    let Some((table, report)) = imported.and_then(|it| Some((it.table?, it.report))) else {
        return Vec::new();
    };
    let refused = report.refused.into_iter().map(|line| line.place);
    let schedules = schedules(sample, &refused.collect::<Vec<_>>());
    let jobs = check(&table).jobs;
    let label = &sample.label;
    assert_eq!(jobs.len(), schedules.len(), "{label}: {schedules:?}");
    jobs.into_iter().zip(schedules).collect()
}

fn compare(job: &Job, entry: &Entry, offsets: &Offsets, label: &str) {
    let zone = job.schedule.zone();
    let beginnings = BEGINNINGS.iter().map(|text| {
        let instant: jiff::Timestamp = text.parse().expect("an instant");
        Timestamp::from(instant)
    });
    // Without clocks that are set, one beginning is like another.
    let is_steady = zone.to_fixed_offset().is_ok();
    let beginnings = beginnings.filter(|_| !is_steady);
    for from in beginnings.chain([now()]) {
        let next = |at: &Timestamp| job.schedule.next_after(*at);
        let found = std::iter::successors(next(&from), next).take(COMPARED);
        let found: Vec<i64> = found.map(Timestamp::as_second).collect();
        let expected = entry.instants(offsets, from.as_second(), COMPARED);
        assert_eq!(expected.len(), COMPARED, "{label}");
        assert_eq!(
            found,
            expected,
            "{label}, in {}, from {from}",
            zone.iana_name().unwrap_or("?")
        );
    }
}
