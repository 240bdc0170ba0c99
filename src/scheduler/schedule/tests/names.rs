//! Names of months and days stand for their numbers, wherever a number may stand.

use proptest::prelude::*;

use super::*;

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One end of a range or a number alone: as a number, and by its name in some mix of cases.
fn spelt(names: &[&str], first: usize, number: usize, small: u8) -> [String; 2] {
    let name = names[number - first].chars().zip(0..);
    let mixed = name.map(|(letter, place)| match small >> place & 1 {
        1 => letter.to_ascii_lowercase(),
        _ => letter,
    });
    [number.to_string(), mixed.collect()]
}

/// A list of numbers and ranges, all by number, and all by name.
fn field(names: &'static [&'static str], first: usize) -> impl Strategy<Value = [String; 2]> {
    let last = first + names.len() - 1;
    let item = (first..=last, first..=last, any::<bool>(), 0..8_u8);
    let item = item.prop_map(move |(one, other, is_range, small)| {
        let [from, until] = [one.min(other), one.max(other)];
        let [number, name] = spelt(names, first, from, small);
        if !is_range {
            return [number, name];
        }
        let [last_number, last_name] = spelt(names, first, until, !small);
        [
            format!("{number}-{last_number}"),
            format!("{name}-{last_name}"),
        ]
    });
    prop::collection::vec(item, 1..4).prop_map(|items| {
        [0, 1].map(|form| {
            let texts: Vec<&str> = items.iter().map(|item| item[form].as_str()).collect();
            texts.join(",")
        })
    })
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_name_stands_for_its_number_in_any_case(
        months in field(&MONTHS, 1),
        days in field(&DAYS, 0),
    ) {
        let by = |form: usize| format!("30 6 * {} {}", months[form], days[form]);
        let (numbers, names) = (read(&by(0), "job"), read(&by(1), "job"));
        let occurrences = |parsed: Result<Schedule, ScheduleError>| {
            parsed.ok().map(|schedule| next(&schedule, "2026-11-21T00:00:00Z", 20))
        };
        let (numbers, names) = (occurrences(numbers), occurrences(names));
        prop_assert!(numbers.is_some(), "{}", by(0));
        prop_assert_eq!(numbers, names, "{} and {}", by(0), by(1));
    }
}
