//! What is shown of replicas and their tables.

use super::*;
use crate::config::SchedulerConfig;
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::{Definition, JobDigests};
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::time::Timestamp;
use crate::store::{Answered, ReplicaState, Snapshot};

const NOW: Timestamp = Timestamp::from_second(1_795_250_760);

fn replica(name: &str, digest: &str, revision: Option<u64>, seconds_ago: u64) -> ReplicaState {
    let digest = digest.to_owned();
    let table = Definition { digest, revision };
    let seen_at = NOW - Duration::from_secs(seconds_ago);
    let mut replica = ReplicaState::with_table(name, &table, seen_at);
    replica.info.alive_ms = 10_000;
    replica
}

/// The lines from the head of the replicas on.
fn shown(replicas: Vec<ReplicaState>) -> Vec<String> {
    let snapshot = Snapshot {
        replicas,
        ..Snapshot::default()
    };
    let answered = Answered::new(NOW, snapshot);
    let scheduler = SchedulerConfig::default();
    let status = Status::of(&scheduler, None, "memory:".to_owned(), &answered);
    let text = render(&status);
    let lines = text.lines().skip_while(|line| !line.starts_with("REPLICA"));
    lines.map(str::to_owned).collect()
}

#[test]
fn while_a_table_is_rolled_out_the_older_ones_are_marked_and_the_rest_is_counted() {
    let lines = shown(vec![
        replica("a", "aaaaaaaaaaaaaaaa", Some(7), 1),
        replica("b", "bbbbbbbbbbbbbbbb", Some(8), 1),
        replica("c", "bbbbbbbbbbbbbbbb", Some(8), 1),
    ]);
    let table = |line: &str| line.contains("(revision 8)  ");
    assert!(lines[1].contains("aaaaaaaa (revision 7) !  "), "{lines:#?}");
    assert!(table(&lines[2]) && table(&lines[3]), "{lines:#?}");
    let told = "rolling out: 2 of 3 replicas have the newest table (revision 8)";
    assert_eq!(lines[4..], ["", told]);
}

#[test]
fn where_all_have_one_table_nothing_is_said_of_it() {
    let lines = shown(vec![
        replica("a", "aaaaaaaaaaaaaaaa", None, 1),
        replica("b", "aaaaaaaaaaaaaaaa", None, 1),
        replica("run-once", "", None, 1),
    ]);
    assert_eq!(lines.len(), 4, "{lines:#?}");
    let told = lines.concat();
    assert!(!told.contains('!') && !told.contains("revision"), "{told}");
}

#[test]
fn a_revision_that_is_in_some_tables_only_or_twice_is_told() {
    let seven = |name, digest| replica(name, digest, Some(7), 1);
    let lines = shown(vec![seven("a", "aa"), seven("b", "bb"), seven("c", "bb")]);
    let told =
        "! revision 7 twice, in different tables of a and of b, c: was it forgotten to raise it?";
    assert!(lines.iter().any(|line| line == told), "{lines:#?}");
    let lines = shown(vec![seven("a", "aa"), replica("b", "aa", None, 1)]);
    let told = "! some tables have a `revision` (a) and some have none (b), ";
    assert!(lines[4].starts_with(told), "{lines:#?}");
}

#[test]
fn former_lives_of_a_live_replica_are_counted_and_others_that_are_gone_are_shown() {
    let lines = shown(vec![
        replica("a", "aa", None, 3000),
        replica("a", "aa", None, 1),
        replica("a", "aa", None, 80_000),
        replica("b", "aa", None, 3000),
        replica("b", "aa", None, 4000),
        replica("c", "aa", None, 30),
        replica("c", "aa", None, 2),
    ]);
    let seen: Vec<(char, bool, Option<&str>)> = lines[1..]
        .iter()
        .map(|line| {
            let lives = line
                .split("; ")
                .nth(1)
                .and_then(|rest| rest.split("  ").next());
            (line.chars().next().unwrap(), line.contains(", gone"), lives)
        })
        .collect();
    let expected = [
        ('a', false, Some("2 former lives")),
        ('b', true, None),
        ('b', true, None),
        ('c', false, Some("1 former life")),
    ];
    assert_eq!(seen, expected, "{lines:#?}");
}

#[test]
fn a_job_that_a_newer_table_lacks_has_no_next_occurrence_and_a_note_that_says_why() {
    let name = |name: &str| JobName::new(name).unwrap();
    let job = |text: &str| {
        let zone = jiff::tz::TimeZone::UTC;
        let schedule =
            Schedule::parse("@daily", text, zone, DstGap::default(), DstFold::default()).unwrap();
        Job::new(name(text), schedule, Program::Shell("x".into()))
    };
    let mut snapshot = Snapshot {
        replicas: vec![
            replica("a", "new", None, 1),
            replica("b", "old", None, 1),
            replica("c", "old", None, 1),
        ],
        ..Snapshot::default()
    };
    for (digest, jobs) in [("old", &["gone", "same"][..]), ("new", &["same"])] {
        let jobs: JobDigests = jobs.iter().map(|job| (name(job), "1".to_owned())).collect();
        snapshot.tables.insert(digest.to_owned(), jobs);
        let digest = digest.to_owned();
        let revision = None;
        snapshot.lineage.note(&Definition { digest, revision }, "");
    }
    let answered = Answered::new(NOW, snapshot);
    let (scheduler, table) = (SchedulerConfig::default(), [job("gone"), job("same")]);
    let status = Status::of(&scheduler, Some(&table), "memory:".to_owned(), &answered);
    let [gone, same] = &status.jobs[..] else {
        panic!("not two jobs");
    };
    assert_eq!(
        (&gone.next, gone.note),
        (&None, Some("a newer table lacks it"))
    );
    assert!(same.next.is_some() && same.note.is_none());
    let outdated = status.replicas.iter().map(|one| {
        let table = one.table.as_ref().unwrap();
        table.outdated_jobs.clone()
    });
    assert_eq!(
        outdated.collect::<Vec<_>>(),
        [vec![], vec!["gone"], vec!["gone"]]
    );
    let text = render(&status);
    for line in [
        "! b starts nothing of what a newer table lacks: gone\n",
        "! c starts nothing of what a newer table lacks: gone\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("newer definitions"), "{text}");
}
