//! Rules against another implementation: the crate `rrule`, where the two mean the same.
//!
//! They differ on purpose in that an event's first day counts here whether or not the rule names
//! it, that a BYWEEKNO without a BYDAY is on the first day's weekday here, and that `MO,1TU` is
//! either here, as the RFC has it, and both there; and a week that the event begins in is a
//! whole one for BYSETPOS here, as a month is for both.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;

/// So many days of each rule are compared.
const COMPARED: u16 = 60;

fn theirs(start: i64, rule: &str) -> Option<Vec<String>> {
    let start = day_text(start).replace('-', "");
    let text = format!("DTSTART:{start}T000000Z\nRRULE:{rule}");
    let set: rrule::RRuleSet = text.parse().ok()?;
    let all = set.all(COMPARED).dates.into_iter();
    Some(
        all.map(|found| found.format("%Y-%m-%d").to_string())
            .collect(),
    )
}

fn list(values: impl Strategy<Value = i64>) -> impl Strategy<Value = Option<String>> {
    let values = prop::collection::btree_set(values, 1..4);
    let text = |values: BTreeSet<i64>| {
        let values: Vec<String> = values.iter().map(i64::to_string).collect();
        values.join(",")
    };
    prop::option::weighted(0.3, values.prop_map(text))
}

fn signed(most: i64) -> impl Strategy<Value = i64> {
    (1..=most, any::<bool>()).prop_map(|(number, back)| if back { -number } else { number })
}

/// Days of the week, all of them numbered or none.
fn weekdays(most: i64) -> impl Strategy<Value = Option<String>> {
    let day = prop::sample::select(vec!["MO", "TU", "WE", "TH", "FR", "SA", "SU"]);
    let days = prop::collection::btree_set((signed(most.max(1)), day), 1..4);
    let text = move |(days, numbered): (BTreeSet<(i64, &str)>, bool)| {
        let text = |(nth, day): (i64, &str)| match numbered && most > 0 {
            true => format!("{nth}{day}"),
            false => day.to_owned(),
        };
        days.into_iter().map(text).collect::<Vec<_>>().join(",")
    };
    prop::option::weighted(0.5, (days, any::<bool>()).prop_map(text))
}

fn rules() -> impl Strategy<Value = String> {
    let of = |freq: &'static str| {
        let yearly = freq == "YEARLY";
        let nth = match freq {
            "YEARLY" => 5,
            "MONTHLY" => 3,
            _ => 0,
        };
        let parts = (
            1..5u32,
            list(1..=12i64),
            list(signed(31)),
            list(signed(366)),
            list(signed(53)),
            weekdays(nth),
            prop::option::weighted(0.3, signed(3)),
            prop::sample::select(vec!["MO", "SU", "WE"]),
        );
        parts.prop_map(
            move |(interval, months, month_days, year_days, weeks, days, position, start)| {
                let mut rule = format!("FREQ={freq};INTERVAL={interval};WKST={start}");
                let mut add = |name: &str, value: Option<String>, fits: bool| {
                    if let Some(value) = value.filter(|_| fits) {
                        rule.push_str(&format!(";{name}={value}"));
                    }
                };
                let has_days = days.is_some();
                let numbered = days
                    .as_ref()
                    .is_some_and(|days| days.bytes().any(|b| b.is_ascii_digit()));
                add("BYMONTH", months, true);
                add("BYMONTHDAY", month_days, freq != "WEEKLY");
                add("BYYEARDAY", year_days, yearly);
                add("BYWEEKNO", weeks, yearly && has_days && !numbered);
                add("BYDAY", days, true);
                let is_set = rule.contains(";BY") && freq != "WEEKLY";
                if let Some(position) = position.filter(|_| is_set) {
                    rule.push_str(&format!(";BYSETPOS={position}"));
                }
                rule
            },
        )
    };
    prop_oneof![of("YEARLY"), of("MONTHLY"), of("WEEKLY"), of("DAILY")]
}

/// `PROPTEST_CASES` times in a long run.
fn config() -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: asked.and_then(|asked| asked.parse().ok()).unwrap_or(40),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn another_crate_finds_the_same_days(start in 9_000..25_000i64, rule in rules()) {
        let Some(theirs) = theirs(start, &rule) else {
            // It refuses some rules, such as those that no day fits.
            return Ok(());
        };
        let first = day_text(start);
        let file = event(&format!("DTSTART;VALUE=DATE:{}\nRRULE:{rule}", first.replace('-', "")));
        let ours = dates_of(&contents(&file).days, usize::from(COMPARED) + 1);
        let ours: Vec<_> = ours.into_iter().filter(|day| *day != first).collect();
        let theirs: Vec<_> = theirs.into_iter().filter(|day| *day != first && day.as_str() < "2200").collect();
        let compared = theirs.len().min(ours.len());
        prop_assert_eq!(&ours[..compared], &theirs[..compared], "{} {}", first, rule);
        prop_assert!(ours.len() + 1 >= theirs.len().min(usize::from(COMPARED)), "{} {}: {:?}", first, rule, theirs);
        prop_assert!(theirs.len() + 1 >= ours.len().min(usize::from(COMPARED)), "{} {}: {:?}", first, rule, ours);
    }
}
