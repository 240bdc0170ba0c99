//! Durations and sizes as people write them.
//!
//! A number without a unit is never guessed at, and nothing here rounds.

use std::time::Duration;

pub(crate) use crate::jobs::ValueError;
pub(super) use crate::jobs::limits::DURATION_LIMIT;
pub(super) use crate::scheduler::time::DURATION_UNITS;
pub use crate::scheduler::time::format_duration;

/// Units of sizes, in bytes.
pub(super) const SIZE_UNITS: [(&str, u64); 3] = [("B", 1), ("KiB", 1024), ("MiB", 1024 * 1024)];

fn error<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, ValueError> {
    Err(ValueError {
        message: message.into(),
        hint: hint.into(),
    })
}

/// Reads `500ms`, `10s`, `5m`, `1h30m`, `30d`: whole numbers with units, the larger ones first.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    const UNITS: &str = "the units are d, h, m, s and ms, the larger ones first: `1h30m`";
    if text.trim_start().starts_with('-') {
        return error("is negative", "durations count from zero: `10s`");
    }
    let mut total_ms: u64 = 0;
    let mut units_left = DURATION_UNITS.as_slice();
    let mut rest = text;
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(length_of(rest, |c| c.is_ascii_digit()));
        let (unit, after) = after.split_at(length_of(after, |c| !c.is_ascii_digit()));
        if digits.is_empty() {
            return error(
                "is no duration",
                format!("write a number and a unit; {UNITS}"),
            );
        }
        if unit.is_empty() {
            // Seconds, or what comes after the unit before.
            let meant = match units_left.first() {
                Some((next, _)) if rest.len() < text.len() => next,
                _ => "s",
            };
            let hint = format!("did you mean `{text}{meant}`? {UNITS}");
            return error("has no unit", hint);
        }
        if unit.contains(['.', ',']) {
            return error(
                "has a fraction",
                "write it in smaller units: `1h30m`, `1500ms`",
            );
        }
        let Some(at) = units_left.iter().position(|(name, _)| *name == unit) else {
            return error(unit_complaint(unit), UNITS);
        };
        let added = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(units_left[at].1));
        total_ms = match added.and_then(|added| total_ms.checked_add(added)) {
            Some(sum) if Duration::from_millis(sum) <= DURATION_LIMIT => sum,
            _ => return error("is over 10 years", "10 years (`3650d`) is the most"),
        };
        units_left = &units_left[at + 1..];
        rest = after;
    }
    if text.is_empty() {
        return error(
            "is no duration",
            format!("write a number and a unit; {UNITS}"),
        );
    }
    Ok(Duration::from_millis(total_ms))
}

fn unit_complaint(unit: &str) -> String {
    if DURATION_UNITS.iter().any(|(name, _)| *name == unit) {
        format!("has `{unit}` after a smaller or equal unit")
    } else {
        format!("has an unknown unit `{}`", unit.trim())
    }
}

/// How many bytes at the start of a text are of a kind.
fn length_of(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

/// Reads a size: `8192B`, `64KiB`, `1MiB`.
pub(crate) fn parse_size(text: &str) -> Result<u64, ValueError> {
    const UNITS: &str = "write bytes as a number, or a size such as `64KiB` or `1MiB`";
    let (digits, unit) = text.split_at(length_of(text, |c| c.is_ascii_digit()));
    let unit = unit.trim_start();
    let Ok(number) = digits.parse::<u64>() else {
        return error("is no size", UNITS);
    };
    if let Some((_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
        return match number.checked_mul(*bytes) {
            Some(size) => Ok(size),
            None => error("is too large", UNITS),
        };
    }
    let hint = match unit.to_ascii_lowercase().as_str() {
        "" => format!("did you mean `{number}B`? {UNITS}"),
        "k" | "kb" | "ki" | "kib" => format!("did you mean `{number}KiB`?"),
        "m" | "mb" | "mi" | "mib" => format!("did you mean `{number}MiB`?"),
        _ => UNITS.into(),
    };
    if unit.is_empty() {
        return error("has no unit", hint);
    }
    error(format!("has an unknown unit `{unit}`"), hint)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_duration_is_whole_numbers_with_falling_units() {
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("30d", 2_592_000_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("3650d", 315_360_000_000),
            ("90m", 5_400_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_no_duration_and_says_why() {
        for (text, message) in [
            ("", "is no duration"),
            ("soon", "is no duration"),
            ("-5s", "is negative"),
            ("50", "has no unit"),
            ("1h30", "has no unit"),
            ("1.5h", "has a fraction"),
            ("1h 30m", "has an unknown unit `h`"),
            ("30m1h", "has `h` after a smaller or equal unit"),
            ("1m1m", "has `m` after a smaller or equal unit"),
            ("5min", "has an unknown unit `min`"),
            ("1H", "has an unknown unit `H`"),
            ("3651d", "is over 10 years"),
            ("99999999999999999999s", "is over 10 years"),
            ("18446744073709551615d", "is over 10 years"),
        ] {
            let error = parse_duration(text).expect_err(text);
            assert_eq!(error.message, message, "{text}");
            assert!(!error.hint.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_missing_unit_is_taken_for_the_next_smaller_one() {
        for (text, hint) in [("50", "`50s`?"), ("1h30", "`1h30m`?"), ("1m30", "`1m30s`?")] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.hint.contains(hint), "{text}: {}", error.hint);
        }
    }

    #[test]
    fn a_written_duration_reads_back() {
        for text in ["0s", "500ms", "1h30m", "30d", "1m30s", "2s1ms"] {
            let duration = parse_duration(text).expect(text);
            assert_eq!(format_duration(duration), text);
        }
        assert_eq!(format_duration(Duration::from_micros(1500)), "1ms");
    }

    #[test]
    fn a_size_has_a_binary_unit() {
        assert_eq!(parse_size("512B"), Ok(512));
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("1 MiB"), Ok(1_048_576));
        for (text, hint) in [
            ("64", "did you mean `64B`?"),
            ("64KB", "did you mean `64KiB`?"),
            ("1m", "did you mean `1MiB`?"),
            ("big", "write bytes"),
            ("-1KiB", "write bytes"),
            ("99999999999999999MiB", "write bytes"),
        ] {
            let error = parse_size(text).expect_err(text);
            assert!(error.hint.starts_with(hint), "{text}: {}", error.hint);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_duration_that_a_table_may_hold_is_written_as_what_reads_back(
            millis in prop_oneof![0..=315_360_000_000_u64, 0..100_000_u64],
        ) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn a_duration_is_the_sum_of_its_parts(
            parts in prop::collection::vec(0..2000_u64, DURATION_UNITS.len()),
            kept in prop::collection::vec(any::<bool>(), DURATION_UNITS.len()),
        ) {
            let (mut text, mut millis) = (String::new(), 0);
            for (((unit, worth), count), _) in
                DURATION_UNITS.iter().zip(&parts).zip(&kept).filter(|(_, kept)| **kept)
            {
                text += &format!("{count}{unit}");
                millis += count * worth;
            }
            let expected = (!text.is_empty()).then(|| Duration::from_millis(millis));
            prop_assert_eq!(parse_duration(&text).ok(), expected, "{}", text);
        }

        #[test]
        fn any_text_is_a_duration_and_a_size_within_their_limits_or_neither(
            text in "[0-9]{0,22}(d|h|m|s|ms|B|KiB|MiB|k|\\.|,| |-|\u{e9}){0,2}[0-9]{0,3}(ms|s)?",
        ) {
            match parse_duration(&text) {
                Ok(duration) => prop_assert!(duration <= DURATION_LIMIT),
                Err(error) => prop_assert!(!error.message.is_empty() && !error.hint.is_empty()),
            }
            if let Err(error) = parse_size(&text) {
                prop_assert!(!error.message.is_empty() && !error.hint.is_empty());
            }
        }
    }
}
