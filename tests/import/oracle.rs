//! When cron would run an entry, by cron's own rules, minute by minute.
//!
//! It shares nothing with soloist but the changes of clocks of a zone: fields are sets of numbers,
//! dates are counted here, and daylight saving follows `cron.c` of Vixie cron. With a `*` in
//! minute or hour an entry goes by the clock on the wall; any other runs right after a gap that
//! held it, and not a second time in an hour that comes twice. Must never: know `H` or `~`.

use jiff::tz::TimeZone;

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// An entry's five fields as sets.
pub(crate) struct Entry {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both days have to match, as one of them begins with `*`.
    both_days: bool,
    by_the_wall: bool,
}

impl Entry {
    /// Reads what Vixie cron and cronie read alike; none for all else.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let fields = match text {
            "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
            "@monthly" => ["0", "0", "1", "*", "*"],
            "@weekly" => ["0", "0", "*", "*", "0"],
            "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
            "@hourly" => ["0", "*", "*", "*", "*"],
            _ => {
                let words: Vec<_> = text.split_whitespace().collect();
                words.try_into().ok()?
            }
        };
        let weekdays = set(fields[4], 0, 7, &DAYS)?;
        Some(Self {
            minutes: set(fields[0], 0, 59, &[])?,
            hours: set(fields[1], 0, 23, &[])?,
            days: set(fields[2], 1, 31, &[])?,
            months: set(fields[3], 1, 12, &MONTHS)?,
            // 7 is Sunday, as is 0.
            weekdays: weekdays | weekdays >> 7,
            both_days: fields[2].starts_with('*') || fields[4].starts_with('*'),
            by_the_wall: fields[0].starts_with('*') || fields[1].starts_with('*'),
        })
    }

    fn on(&self, day: i64) -> bool {
        let (_, month, date) = civil(day);
        // 1970-01-01 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        let (of_month, of_week) = (has(self.days, date), has(self.weekdays, weekday));
        has(self.months, month)
            && if self.both_days {
                of_month && of_week
            } else {
                of_month || of_week
            }
    }

    /// Whether a local time matches.
    fn at(&self, local: i64) -> bool {
        let time = local.rem_euclid(DAY);
        has(self.hours, time / HOUR)
            && has(self.minutes, time % HOUR / MINUTE)
            && self.on(local.div_euclid(DAY))
    }

    /// The instants after `from`, a whole hour, at which cron runs it.
    pub(crate) fn instants(&self, offsets: &Offsets, from: i64, count: usize) -> Vec<i64> {
        let mut found = Vec::new();
        let mut hour = from;
        // Eight years between two leap days, around 2100.
        let end = from + 9 * 366 * DAY * i64::try_from(count).expect("few");
        while found.len() < count && hour < end {
            let is_steady = offsets.at(hour - MINUTE) == offsets.at(hour + DAY);
            let local = hour + offsets.at(hour);
            let days = [local, local + DAY - 1].map(|local| local.div_euclid(DAY));
            if is_steady && !days.iter().any(|day| self.on(*day)) {
                hour += DAY;
                continue;
            }
            let ends = [local, local + HOUR - 1].map(|local| local.div_euclid(DAY));
            if !is_steady || ends.iter().any(|day| self.on(*day)) {
                let minutes = (hour..hour + HOUR).step_by(60);
                found.extend(minutes.filter(|at| *at > from && self.is_due(offsets, *at)));
            }
            hour += HOUR;
        }
        found.truncate(count);
        found
    }

    fn is_due(&self, offsets: &Offsets, at: i64) -> bool {
        let (before, now) = (offsets.at(at - MINUTE), offsets.at(at));
        let local = at + now;
        if self.by_the_wall {
            return self.at(local);
        }
        let mut skipped = (at + before..local).step_by(60);
        if now > before && skipped.any(|local| self.at(local)) {
            return true;
        }
        if !self.at(local) {
            return false;
        }
        // Clocks were set back less than three hours ago, and this time was then to come.
        let earlier = (1..180).map(|minutes| at - minutes * MINUTE);
        let mut passes = earlier.map(|at| at + offsets.at(at));
        !passes.any(|pass| pass == local)
    }
}

/// How many changes of clocks are known: those of 250 years, for 50 leap days.
const CHANGES: usize = 500;

/// The offsets of a zone over time.
pub(crate) struct Offsets {
    first: i64,
    /// From when on, and which.
    changes: Vec<(i64, i64)>,
}

impl Offsets {
    /// From a day before an instant on.
    pub(crate) fn of(zone: &TimeZone, from: i64) -> Self {
        let start = jiff::Timestamp::from_second(from - DAY).expect("in range");
        let changes = zone.following(start).take(CHANGES).map(|change| {
            (
                change.timestamp().as_second(),
                i64::from(change.offset().seconds()),
            )
        });
        Self {
            first: i64::from(zone.to_offset(start).seconds()),
            changes: changes.collect(),
        }
    }

    fn at(&self, instant: i64) -> i64 {
        let after = self.changes.partition_point(|(from, _)| *from <= instant);
        after
            .checked_sub(1)
            .map_or(self.first, |index| self.changes[index].1)
    }
}

/// A field as a set; none for what cron refuses, or crons read differently.
fn set(field: &str, low: i64, high: i64, names: &[&str]) -> Option<u64> {
    let number = |text: &str| {
        let lower = text.to_lowercase();
        let named = names.iter().position(|name| *name == lower);
        let named = named.and_then(|index| i64::try_from(index).ok());
        let number = named.map(|index| index + low).or_else(|| text.parse().ok());
        number.filter(|number| (low..=high).contains(number))
    };
    let mut values = 0;
    for item in field.split(',') {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (
                base,
                Some(step.parse::<usize>().ok().filter(|step| *step > 0)?),
            ),
            None => (item, None),
        };
        let (from, to) = match (base, base.split_once('-')) {
            ("*", _) => (low, high),
            (_, Some((from, to))) => (number(from)?, number(to)?),
            (_, None) if step.is_some() => return None,
            (_, None) => (number(base)?, number(base)?),
        };
        if from > to {
            return None;
        }
        for value in (from..=to).step_by(step.unwrap_or(1)) {
            values |= 1 << value;
        }
    }
    Some(values)
}

fn has(set: u64, value: i64) -> bool {
    set >> value & 1 == 1
}

/// Year, month and day of a day since 1970-01-01, as Howard Hinnant counts them.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

#[test]
fn the_oracle_itself_is_right_where_cron_is_documented() {
    let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
    let instants = |text: &str, from: &str, count| {
        let from: jiff::Timestamp = from.parse().expect("an instant");
        let entry = Entry::read(text).expect("an entry");
        let offsets = Offsets::of(&berlin, from.as_second());
        let found = entry.instants(&offsets, from.as_second(), count);
        let spell = |at: &i64| {
            jiff::Timestamp::from_second(*at)
                .expect("in range")
                .to_string()
        };
        found.iter().map(spell).collect::<Vec<_>>().join(" ")
    };
    // crontab(5): "30 4 1,15 * 5" runs on the 1st and the 15th, and on Fridays.
    assert_eq!(
        instants("30 4 1,15 * 5", "2027-01-01T00:00:00Z", 4),
        "2027-01-01T03:30:00Z 2027-01-08T03:30:00Z 2027-01-15T03:30:00Z 2027-01-22T03:30:00Z"
    );
    // Right after the gap, then as usual.
    assert_eq!(
        instants("30 2 * * *", "2027-03-27T12:00:00Z", 2),
        "2027-03-28T01:00:00Z 2027-03-29T00:30:00Z"
    );
    // Once, though it comes twice.
    assert_eq!(
        instants("30 2 * * *", "2027-10-30T12:00:00Z", 2),
        "2027-10-31T00:30:00Z 2027-11-01T01:30:00Z"
    );
    // By the clock on the wall.
    assert_eq!(
        instants("*/30 2 * * *", "2027-10-30T12:00:00Z", 4),
        "2027-10-31T00:00:00Z 2027-10-31T00:30:00Z 2027-10-31T01:00:00Z 2027-10-31T01:30:00Z"
    );
    assert_eq!(
        instants("0 0 29 2 *", "2027-01-01T00:00:00Z", 1),
        "2028-02-28T23:00:00Z"
    );
    assert_eq!(civil(0), (1970, 1, 1));
}
