//! Every change of every zone, however odd: the search gets ahead, and back the same way.

use std::collections::HashSet;

use super::*;
use crate::scheduler::schedule::zoned::Zone;

/// The changes of each zone that differs from the others, with its name: those from 1800 to
/// 2040, which include some years after those that zones list one by one.
fn zones() -> Vec<(String, TimeZone, Vec<i64>)> {
    let since: jiff::Timestamp = "1800-01-01T00:00:00Z".parse().expect("an instant");
    let until = at("2040-01-01T00:00:00Z").as_second();
    let changes = |zone: &TimeZone| -> Vec<i64> {
        let all = zone.following(since);
        let all = all.map(|change| change.timestamp().as_second());
        all.take_while(|at| *at < until).collect()
    };
    let mut known = HashSet::new();
    jiff::tz::db()
        .available()
        .map(|name| (name.to_string(), zone(name.as_str())))
        .map(|(name, zone)| (name, changes(&zone), zone))
        .filter(|(_, changes, _)| known.insert(changes.clone()))
        .map(|(name, changes, zone)| (name, zone, changes))
        .collect()
}

/// jiff, asked for the change before an instant, overlooks some: see `Zone::segment`. And no
/// hour that comes twice is cut short by another change, which the search takes for granted.
#[test]
fn the_segments_of_a_zone_lie_between_its_changes() {
    for (name, zone, changes) in zones() {
        let zone = Zone::new(zone, DstGap::RunAfter, DstFold::First);
        for pair in changes.windows(2) {
            for at in [pair[0], pair[1] - 1] {
                let segment = zone.segment(at);
                let (start, end) = (
                    segment.start.expect("a start"),
                    segment.end.expect("an end"),
                );
                assert_eq!([start.at, end.at], pair, "{name}");
                assert_eq!([start.after, end.before], [segment.offset; 2], "{name}");
                assert!(start.second_pass().end <= pair[1], "{name}: {start:?}");
                assert!(end.first_pass().start >= pair[0], "{name}: {end:?}");
            }
        }
    }
}

/// Offsets with seconds, changes within hours of each other, days that come twice.
#[test]
fn no_change_of_clocks_in_any_zone_stops_or_turns_back_a_search() {
    let texts = ["30 0,1,2,23 * * *", "*/20 * * * *", "* * 0-3 * * *"];
    let policies = [
        (DstGap::RunAfter, DstFold::First),
        (DstGap::Skip, DstFold::Last),
    ];
    let mut seen = 0;
    for (name, zone, changes) in zones() {
        seen += changes.len();
        for (index, (text, (gap, fold))) in (0..).zip(
            texts
                .iter()
                .flat_map(|text| policies.map(|policy| (text, policy))),
        ) {
            let schedule = Schedule::parse(text, "job", zone.clone(), gap, fold).expect("valid");
            // Each change is looked at under one of the policies.
            for at in changes.iter().skip(index).step_by(6) {
                goes_ahead_and_back(&schedule, &name, Timestamp::from_second(*at - 7200));
            }
        }
    }
    assert!(seen > 20_000, "{seen} changes");
}

fn goes_ahead_and_back(schedule: &Schedule, name: &str, start: Timestamp) {
    let mut now = schedule.next_after(start).expect("always due again");
    assert!(now > start, "{schedule:?} in {name} at {start:?}");
    let before = schedule.last_before(now);
    assert!(
        before.is_none_or(|last| last <= start),
        "{schedule:?} in {name}"
    );
    for _ in 0..4 {
        let next = schedule.next_after(now).expect("always due again");
        assert!(next > now, "{schedule:?} in {name} at {now:?}");
        let last = schedule.last_before(next);
        assert_eq!(last, Some(now), "{schedule:?} in {name}");
        now = next;
    }
}
