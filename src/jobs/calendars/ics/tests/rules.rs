//! Rules by example: those of RFC 5545, 3.8.5.3, that are about days.

use super::*;

/// The first days of a rule, `MM-DD` of the year that it begins in, else with the year.
fn days(start: &str, rule: &str, count: usize) -> Vec<String> {
    let file = event(&format!("DTSTART;VALUE=DATE:{start}\nRRULE:{rule}"));
    let found = dates_of(&contents(&file).days, count);
    let year = format!("{}-", &start[..4]);
    found
        .into_iter()
        .map(|date| date.strip_prefix(&year).map_or(date.clone(), str::to_owned))
        .collect()
}

/// Start, rule, and its first days; a full stop at the end says that there are no more.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("19970902", "FREQ=DAILY;COUNT=3", "09-02 09-03 09-04 ."),
    (
        "19970902",
        "FREQ=DAILY;UNTIL=19970904T000000Z",
        "09-02 09-03 09-04 .",
    ),
    (
        "19970902",
        "FREQ=DAILY;INTERVAL=10;COUNT=5",
        "09-02 09-12 09-22 10-02 10-12 .",
    ),
    (
        "19980101",
        "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
        "01-01 01-02 01-03",
    ),
    (
        "19980101",
        "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1",
        "01-01 01-02 01-03",
    ),
    ("19970902", "FREQ=WEEKLY;COUNT=3", "09-02 09-09 09-16 ."),
    (
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        "09-02 09-16 09-30 10-14",
    ),
    (
        "19970902",
        "FREQ=WEEKLY;COUNT=4;WKST=SU;BYDAY=TU,TH",
        "09-02 09-04 09-09 09-11 .",
    ),
    (
        "19970901",
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19970920T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "09-01 09-03 09-05 09-15 09-17 09-19 .",
    ),
    (
        "19970905",
        "FREQ=MONTHLY;COUNT=3;BYDAY=1FR",
        "09-05 10-03 11-07 .",
    ),
    (
        "19970907",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=4;BYDAY=1SU,-1SU",
        "09-07 09-28 11-02 11-30 .",
    ),
    (
        "19970922",
        "FREQ=MONTHLY;COUNT=3;BYDAY=-2MO",
        "09-22 10-20 11-17 .",
    ),
    (
        "19970928",
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        "09-28 10-29 11-28 12-29 1998-01-29 1998-02-26",
    ),
    (
        "19970902",
        "FREQ=MONTHLY;COUNT=4;BYMONTHDAY=2,15",
        "09-02 09-15 10-02 10-15 .",
    ),
    (
        "19970930",
        "FREQ=MONTHLY;COUNT=4;BYMONTHDAY=1,-1",
        "09-30 10-01 10-31 11-01 .",
    ),
    (
        "19970910",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=7;BYMONTHDAY=10,11,12",
        "09-10 09-11 09-12 1999-03-10 1999-03-11 1999-03-12 2000-09-10 .",
    ),
    (
        "19970902",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "09-02 09-09 09-16 09-23 09-30 11-04",
    ),
    (
        "19970610",
        "FREQ=YEARLY;COUNT=4;BYMONTH=6,7",
        "06-10 07-10 1998-06-10 1998-07-10 .",
    ),
    (
        "19970310",
        "FREQ=YEARLY;INTERVAL=2;COUNT=4;BYMONTH=1,2,3",
        "03-10 1999-01-10 1999-02-10 1999-03-10 .",
    ),
    (
        "19970101",
        "FREQ=YEARLY;INTERVAL=3;COUNT=5;BYYEARDAY=1,100,200",
        "01-01 04-10 07-19 2000-01-01 2000-04-09 .",
    ),
    (
        "19970519",
        "FREQ=YEARLY;BYDAY=20MO",
        "05-19 1998-05-18 1999-05-17",
    ),
    (
        "19970512",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "05-12 1998-05-11 1999-05-17",
    ),
    (
        "19970313",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "03-13 03-20 03-27 1998-03-05",
    ),
    (
        "19970902",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "09-02 1998-02-13 1998-03-13 1998-11-13",
    ),
    (
        "19970913",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "09-13 10-11 11-08 12-13",
    ),
    (
        "19961105",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "11-05 2000-11-07 2004-11-02",
    ),
    (
        "19970904",
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        "09-04 10-07 11-06 .",
    ),
    (
        "19970929",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "09-29 10-30 11-27 12-30",
    ),
    (
        "19970805",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        "08-05 08-10 08-19 08-24 .",
    ),
    (
        "19970805",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        "08-05 08-17 08-19 08-31 .",
    ),
    (
        "20070115",
        "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
        "01-15 01-30 02-15 03-15 03-30 .",
    ),
    // Holidays as they are exported.
    (
        "20241128",
        "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
        "11-28 2025-11-27 2026-11-26",
    ),
    (
        "20250526",
        "FREQ=YEARLY;BYDAY=-1MO;BYMONTH=5",
        "05-26 2026-05-25 2027-05-31",
    ),
    ("20240229", "FREQ=YEARLY", "02-29 2028-02-29 2032-02-29"),
    // What a rule leaves to its event: the day of the week, and that its first day counts.
    (
        "20261230",
        "FREQ=YEARLY;BYWEEKNO=53",
        "12-30 2032-12-29 2037-12-30",
    ),
    (
        "20261225",
        "FREQ=YEARLY;COUNT=2;BYMONTH=1;BYMONTHDAY=1",
        "12-25 2027-01-01 .",
    ),
];

#[test]
fn rules_give_the_days_that_the_rfc_says() {
    for (start, rule, expected) in EXAMPLES {
        let mut expected: Vec<&str> = expected.split(' ').collect();
        let ends = expected.last() == Some(&".");
        if ends {
            expected.pop();
        }
        let found = days(start, rule, expected.len() + usize::from(ends));
        assert_eq!(found, expected, "{start} {rule}");
    }
}
