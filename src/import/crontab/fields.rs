//! The five fields, from cron's dialect to soloist's: the same instants, or a word about it.
//!
//! Most of it is the same; what is not: `~`, steps beyond a field's end, and Sunday as 7 before
//! a step. What neither can read, soloist's own parser refuses later. Must never: change when an
//! entry is due without telling.

/// A field: its lowest and highest number, as `*` has them, and its names.
struct Unit {
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const UNITS: [Unit; 5] = [
    Unit {
        low: 0,
        high: 59,
        names: &[],
    },
    Unit {
        low: 0,
        high: 23,
        names: &[],
    },
    Unit {
        low: 1,
        high: 31,
        names: &[],
    },
    Unit {
        low: 1,
        high: 12,
        names: &MONTHS,
    },
    Unit {
        low: 0,
        high: 6,
        names: &DAYS,
    },
];

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The words that stand for five fields.
const WORDS: [&str; 7] = [
    "@hourly",
    "@daily",
    "@midnight",
    "@weekly",
    "@monthly",
    "@yearly",
    "@annually",
];

const FROM_THERE_ON: &str = "a step after one number (`5/15`) is read as from there to the end, as Debian's cron reads it; cronie refuses the line";
const HASHED: &str = "a random value (`~`) is drawn anew when cron starts; here it is hashed from the job's name (`H`), the same for ever and on every replica";
const BEYOND_CRON: &str = "its schedule has what Vixie cron and cronie refuse; it is read as soloist reads it (docs/schedules.md)";

/// A schedule, and what is different about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) text: String,
    pub(super) differences: Vec<&'static str>,
    /// In a zone that sets its clocks, cron goes by them with this one: `*` in minute or hour.
    pub(super) follows_clocks: bool,
}

impl Schedule {
    fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn differs(&mut self, how: &'static str) {
        if !self.differences.contains(&how) {
            self.differences.push(how);
        }
    }
}

/// Translates the five fields.
pub(super) fn five(fields: [&str; 5]) -> Schedule {
    let mut schedule = Schedule::default();
    let mut words = Vec::new();
    for (field, unit) in fields.into_iter().zip(&UNITS) {
        let items = field.split(',');
        let items: Vec<String> = items
            .map(|item| translate(item, unit, &mut schedule))
            .collect();
        words.push(items.join(","));
    }
    let starred = fields[..2].iter().any(|field| field.starts_with('*'));
    let of_all_hours = ["*", "*/1", "0-23"].contains(&fields[1]);
    schedule.follows_clocks = starred && !of_all_hours;
    schedule.text = words.join(" ");
    schedule
}

/// One item of a list.
fn translate(item: &str, unit: &Unit, schedule: &mut Schedule) -> String {
    let (base, step) = match item.split_once('/') {
        Some((base, step)) => (base, Some(step)),
        None => (item, None),
    };
    let size = unit.high - unit.low + 1;
    if let Some((from, to)) = base.split_once('~') {
        schedule.differs(HASHED);
        let hashed = match (from, to) {
            ("", "") => "H".into(),
            _ => {
                let or = |text: &str, limit: u32| match text {
                    "" => limit.to_string(),
                    text => text.to_owned(),
                };
                format!("H({}-{})", or(from, unit.low), or(to, unit.high))
            }
        };
        return step.map_or(hashed.clone(), |step| format!("{hashed}/{step}"));
    }
    if is_beyond_cron(base, unit) {
        schedule.differs(BEYOND_CRON);
        return item.to_owned();
    }
    let Some(step) = step else {
        return base.to_owned();
    };
    // What is no number, the parser tells about.
    let Ok(step) = step.parse::<u32>() else {
        return item.to_owned();
    };
    if base == "*" {
        // A step beyond the end leaves the first value; it stays a star (crontab(5), on days).
        return format!("*/{}", step.min(size));
    }
    if let Some((from, to)) = base.split_once('-') {
        let (Some(low), Some(high)) = (unit.value(from), unit.value(to)) else {
            return item.to_owned();
        };
        let leaves_one = low <= high && step > high - low;
        return if leaves_one {
            from.to_owned()
        } else {
            item.to_owned()
        };
    }
    schedule.differs(FROM_THERE_ON);
    match unit.value(base) {
        // Nothing is left of the field after it; Sunday as 7 is the end of a week.
        Some(value) if value.saturating_add(step) > unit.high => base.to_owned(),
        _ => item.to_owned(),
    }
}

impl Unit {
    /// A number or a name as a number.
    fn value(&self, text: &str) -> Option<u32> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().zip(self.low..);
        let named = named
            .filter(|(name, _)| **name == lower)
            .map(|(_, value)| value);
        named.chain(text.parse().ok()).next()
    }
}

/// `L`, `15W`, `FRI#2`, `H`, `?`, and ranges of days that run over the end of a week.
fn is_beyond_cron(base: &str, unit: &Unit) -> bool {
    if let Some((from, to)) = base.split_once('-')
        && let (Some(low), Some(high)) = (unit.value(from), unit.value(to))
    {
        return low > high && unit.high == 6;
    }
    let is_word = |word: &&str| word.chars().any(|c| c.is_ascii_alphabetic());
    let mut words = base.split('-').filter(is_word);
    base.contains(['?', '#']) || words.any(|word| unit.value(word).is_none())
}

/// Translates a word such as `@daily`; on failure the reason.
pub(super) fn word(word: &str) -> Result<Schedule, String> {
    let lower = word.to_ascii_lowercase();
    if WORDS.contains(&lower.as_str()) {
        return Ok(Schedule::of(lower));
    }
    match lower.as_str() {
        "@every_minute" => Ok(Schedule::of("* * * * *")),
        "@reboot" => Err("`@reboot` has no meaning for a fleet, whose replicas start at different times (let the host's service manager start it)".into()),
        _ => Err(format!("`{word}` is no word of crontab(5) that says when")),
    }
}

/// `@every 5m`, of cron libraries and supercronic.
pub(super) fn every(wait: &str) -> Schedule {
    let mut schedule = Schedule::of(format!("@every {wait}"));
    schedule.differs("`@every` counts from the start of cron; here it counts from the epoch, so that all replicas agree");
    schedule
}

/// Whether a text begins as an entry does.
pub(super) fn looks_like_entry(text: &str) -> bool {
    let words: Vec<_> = text.split_whitespace().collect();
    if words.first().is_some_and(|word| word.starts_with('@')) {
        return words.len() > 1 && (word(words[0]).is_ok() || words[0] == "@reboot");
    }
    begins_with_five(text) && words.len() > 5
}

/// Whether five fields stand at its start that cron could read.
pub(super) fn begins_with_five(text: &str) -> bool {
    let words: Vec<_> = text.split_whitespace().collect();
    let is_field = |(word, unit): (&&str, &Unit)| {
        let mut parts = word.split([',', '-', '/', '~']);
        parts.all(|part| part == "*" || unit.value(part).is_some())
    };
    words.len() >= 5 && words.iter().zip(&UNITS).all(is_field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_instants() {
        for (fields, expected) in [
            ("*/5 9-17 1,15 jan Mon-Fri", "*/5 9-17 1,15 jan Mon-Fri"),
            ("*/90 */30 */40 */13 */9", "*/60 */24 */31 */12 */7"),
            ("10-20/30 1-5/4 * * 7/2", "10 1-5/4 * * 7"),
            ("10-20/11 50/60 * * mon-fri/9", "10 50 * * mon"),
            ("~ 0~6 ~15 5~ ~/2", "H H(0-6) H(1-15) H(5-12) H/2"),
            (
                "0~59/10,7 x 1-y/2 */z 1~",
                "H(0-59)/10,7 x 1-y/2 */z H(1-6)",
            ),
        ] {
            let words: Vec<_> = fields.split(' ').collect();
            let words = words.try_into().expect("five");
            assert_eq!(five(words).text, expected, "{fields}");
        }
    }

    #[test]
    fn what_cron_refuses_or_crons_differ_in_is_told() {
        for (fields, told) in [
            ("0 0 1-7 * 0-7", None),
            ("5/15 * * * *", Some(FROM_THERE_ON)),
            ("~ * * * *", Some(HASHED)),
            ("0 0 L * *", Some(BEYOND_CRON)),
            ("0 0 ? * MON", Some(BEYOND_CRON)),
            ("0 0 * * FRI#2", Some(BEYOND_CRON)),
            ("0 0 * * SAT-MON", Some(BEYOND_CRON)),
            ("H 0 * * *", Some(BEYOND_CRON)),
            ("0 0 * * monday", Some(BEYOND_CRON)),
        ] {
            let words: Vec<_> = fields.split(' ').collect();
            let schedule = five(words.try_into().expect("five"));
            assert_eq!(schedule.differences, Vec::from_iter(told), "{fields}");
        }
    }

    #[test]
    fn entries_are_told_from_words() {
        for (text, is) in [
            ("0 5 * * 1 tar", true),
            ("*/10 * 1-5,7 jan mon x", true),
            ("@daily x", true),
            ("@reboot x", true),
            ("@home", false),
            ("0 5 * * 1", false),
            ("1 to 5 of them are x", false),
        ] {
            assert_eq!(looks_like_entry(text), is, "{text}");
        }
    }
}
