//! What the clocks being set make of a TIME, and the answer for programs.

use soloist::scheduler::schedule::{DstFold, DstGap};

use crate::world::{World, job, job_in};

const NEW_YORK: &str = "America/New_York";

fn nightly(gap: DstGap, fold: DstFold, schedule: &str) -> World {
    World::unregistered([job_in("nightly", schedule, NEW_YORK, gap, fold)])
}

#[test]
fn a_skipped_time_is_told_by_what_stands_for_it() {
    let world = nightly(DstGap::RunAfter, DstFold::First, "30 2 * * *");
    assert_eq!(
        world.why("nightly", "2027-03-14 02:30"),
        [
            "2027-03-14T02:30:00 does not exist in America/New_York: the clocks are set forward past it at 2027-03-14T07:00:00Z; by `dst_gap = \"run_after\"` the occurrence of that instant stands for it.",
            "",
            "nightly at 2027-03-14T07:00:00Z (2027-03-14 03:00:00 in America/New_York) is still to come.",
            "It is due in 113d 10h.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
            "The clocks were set: it stands for 2027-03-14T02:30:00, which is skipped."
        ]
    );
}

#[test]
fn a_skipped_time_that_nothing_stands_for_says_so() {
    let world = nightly(DstGap::Skip, DstFold::First, "30 2 * * *");
    assert_eq!(
        world.why("nightly", "2027-03-14 02:30"),
        [
            "2027-03-14T02:30:00 does not exist in America/New_York: the clocks are set forward past it at 2027-03-14T07:00:00Z; by `dst_gap = \"skip\"` nothing stands for it.",
            "",
            "nightly at 2027-03-14T07:00:00Z (2027-03-14 03:00:00 in America/New_York) is not an occurrence.",
            "It stands for nothing that was skipped, by `dst_gap = \"skip\"`.",
            "The nearest of the schedule, `30 2 * * *`, are 2027-03-13T07:30:00Z and 2027-03-15T06:30:00Z."
        ]
    );
    let world = nightly(DstGap::RunAfter, DstFold::First, "30 * * * *");
    assert_eq!(
        world.why("nightly", "2027-03-14 02:30"),
        [
            "2027-03-14T02:30:00 does not exist in America/New_York: the clocks are set forward past it at 2027-03-14T07:00:00Z; the schedule lost nothing by that.",
            "",
            "nightly at 2027-03-14T07:00:00Z (2027-03-14 03:00:00 in America/New_York) is not an occurrence.",
            "The nearest of the schedule, `30 * * * *`, are 2027-03-14T06:30:00Z and 2027-03-14T07:30:00Z.",
        ]
    );
}

#[test]
fn a_time_that_comes_twice_is_told_twice() {
    let world = nightly(DstGap::RunAfter, DstFold::First, "30 1 * * *");
    assert_eq!(
        world.why("nightly", "2027-11-07 01:30"),
        [
            "2027-11-07T01:30:00 comes twice in America/New_York, where the clocks are set back; by `dst_fold = \"first\"` the first of the two counts.",
            "",
            "nightly at 2027-11-07T05:30:00Z (2027-11-07 01:30:00 in America/New_York) is still to come.",
            "It is due in 351d 8h.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
            "The clocks were set: it has a local time that comes twice: the first.",
            "",
            "nightly at 2027-11-07T06:30:00Z (2027-11-07 01:30:00 in America/New_York) is not an occurrence.",
            "Its local time comes twice, where the clocks are set back, and `dst_fold = \"first\"` has the other.",
            "The nearest of the schedule, `30 1 * * *`, are 2027-11-07T05:30:00Z and 2027-11-08T06:30:00Z."
        ]
    );
}

#[test]
fn a_time_that_counts_twice_is_told_twice() {
    let world = nightly(DstGap::RunAfter, DstFold::Both, "30 1 * * *");
    let told = world.why("nightly", "2027-11-07 01:30");
    let heads = told
        .iter()
        .filter(|line| line.ends_with("is still to come."));
    assert_eq!(heads.count(), 2, "{told:#?}");
}

#[test]
fn programs_are_told_the_same_in_fields() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00.010");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:02.500");
    world.succeed("r1", &lease);
    let answer = world.answer("daily", "2026-11-20T22:00:00Z");
    let json = serde_json::to_string_pretty(&answer).expect("JSON");
    let expected = r#"{
  "job": "daily",
  "now": "2026-11-20T22:00:02.5Z",
  "accounts": [
    {
      "job": "daily",
      "scheduled_at": "2026-11-20T22:00:00Z",
      "origin": "schedule",
      "fate": "ended",
      "outcome": "succeeded",
      "ended_at": "2026-11-20T22:00:02.5Z",
      "shards": [
        {
          "shard": 0,
          "shards": 1,
          "state": "ended",
          "outcome": "succeeded",
          "ended_at": "2026-11-20T22:00:02.5Z",
          "attempts": [
            {
              "attempt": 1,
              "closing": false,
              "run_id": "00000000-0000-0000-0000-000000000001",
              "replica": "r1",
              "token": 1795212000010000,
              "started_at": "2026-11-20T22:00:00.01Z",
              "ended_at": "2026-11-20T22:00:02.5Z",
              "outcome": "succeeded",
              "exit_code": 0
            }
          ]
        }
      ]
    }
  ]
}"#;
    assert_eq!(json, expected);
}

#[test]
fn every_fate_can_be_written_for_programs() {
    let world = World::new([job("daily", "0 22 * * *"), job("manual", "@manual")]);
    for (job, time, fate) in [
        ("daily", "2026-11-20T22:00:00Z", "to_come"),
        ("daily", "2026-11-19T22:00:00Z", "not_recorded"),
        ("daily", "2026-11-20T22:00:01Z", "not_an_occurrence"),
        ("manual", "2026-11-20T22:00:01Z", "not_an_occurrence"),
    ] {
        let json = serde_json::to_value(world.answer(job, time)).expect("JSON");
        assert_eq!(json["accounts"][0]["fate"], fate, "{json:#}");
        assert_eq!(json["accounts"][0]["scheduled_at"], time, "{json:#}");
    }
}
