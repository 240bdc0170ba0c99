//! A schedule's text, from the whole down to its fields, and what the fields mean together.
//!
//! It must never accept what it only half understands: an error with the place and the cure is
//! better than a job at the wrong time.

use super::cron::{Cron, Days, DaysOfMonth, DaysOfWeek, Times};
use super::field::Field;
use super::piece::Piece;
use super::unit::{FIELD_ORDER, Unit};
use super::{Rule, ScheduleError, ScheduleWarning, instant};

/// The macros of crontab(5) and what they stand for.
const MACROS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

type Parsed = Result<(Rule, Vec<ScheduleWarning>), ScheduleError>;

/// Reads a schedule.
pub(super) fn rule(text: &str, name: &str) -> Parsed {
    let text = Piece::trimmed(text);
    let words = text.words();
    let Some(first) = words.first() else {
        let error = text.error("a schedule can't be empty");
        return Err(error.hint(
            "write for example `0 3 * * *`, `@hourly`, or `@manual` for a job that is never due",
        ));
    };
    if let Some(zone) = first
        .strip_prefix("CRON_TZ=")
        .or_else(|| first.strip_prefix("TZ="))
    {
        let error = first.error("a schedule can't set its own time zone");
        return Err(error.hint(format!(
            "leave it out and set `timezone = \"{}\"` on the job",
            zone.text
        )));
    }
    if first.text.starts_with('@') {
        let rest = text.from(first.text.len()).trim();
        return special(*first, rest, name);
    }
    cron(text, &words, name)
}

/// A schedule that begins with `@`.
fn special(word: Piece<'_>, rest: Piece<'_>, name: &str) -> Parsed {
    if word.is("@every") {
        return Ok((instant::every(rest)?, Vec::new()));
    }
    if word.is("@at") {
        return Ok((instant::at(rest)?, Vec::new()));
    }
    if word.is("@reboot") {
        let error = word
            .error("`@reboot` has no meaning for a fleet: its replicas start at different times");
        return Err(error.hint(
            "run it from the host's own service manager, or set an `@at` or `@every` schedule",
        ));
    }
    let fields = MACROS.iter().find(|(macro_name, _)| word.is(macro_name));
    if fields.is_none() && !word.is("@manual") {
        let error = word.error(format!("`{}` is not a schedule", word.text));
        return Err(error.hint("there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every, @at and @manual"));
    }
    if !rest.text.is_empty() {
        return Err(rest.error(format!("nothing can follow `{}`", word.text)));
    }
    match fields {
        Some((_, fields)) => {
            let fields = Piece::trimmed(fields);
            cron(fields, &fields.words(), name)
        }
        None => Ok((Rule::Manual, Vec::new())),
    }
}

/// A schedule of 5, 6 or 7 fields.
fn cron(text: Piece<'_>, words: &[Piece<'_>], name: &str) -> Parsed {
    let at_second_0 = Piece {
        text: "0",
        start: text.start,
    };
    let every_year = Piece {
        text: "*",
        start: text.start + text.text.len(),
    };
    let pieces = match *words {
        [minute, hour, dom, month, dow] => [at_second_0, minute, hour, dom, month, dow, every_year],
        [second, minute, hour, dom, month, dow] => {
            [second, minute, hour, dom, month, dow, every_year]
        }
        [second, minute, hour, dom, month, dow, year] => {
            [second, minute, hour, dom, month, dow, year]
        }
        _ => return Err(wrong_count(text, words.len())),
    };
    let [second, minute, hour, dom, month, dow, year] = pieces;
    let second = Field::parse(second, Unit::Second, name)?;
    let minute = Field::parse(minute, Unit::Minute, name)?;
    let hour = Field::parse(hour, Unit::Hour, name)?;
    let dom = Field::parse(dom, Unit::DayOfMonth, name)?;
    let month = Field::parse(month, Unit::Month, name)?;
    let dow = Field::parse(dow, Unit::DayOfWeek, name)?;
    let year = Field::parse(year, Unit::Year, name)?;
    let days = Days {
        // The low bits of these fields end at 31 and at 6.
        of_month: DaysOfMonth {
            days: dom.values.low() as u32,
            ..dom.of_month
        },
        of_week: DaysOfWeek {
            days: dow.values.low() as u32,
            ..dow.of_week
        },
        either: !dom.star && !dow.star,
        months: month.values.low(),
        years: (year.piece.text != "*").then(|| Box::new(year.values.words())),
    };
    refuse_never(&days, &dom, &month, &dow, &year)?;
    let mut warnings = Vec::new();
    for field in [&second, &minute, &hour, &dom] {
        warnings.extend(field.warnings.iter().cloned());
    }
    warnings.extend(both_days(&dom, &dow));
    warnings.extend(quartz_weekday(words.len(), &dow));
    let times = Times {
        seconds: second.values.low(),
        minutes: minute.values.low(),
        hours: hour.values.low(),
    };
    Ok((Rule::Cron(Cron { times, days }), warnings))
}

fn wrong_count(text: Piece<'_>, count: usize) -> ScheduleError {
    if count > 1 {
        return text
            .error(format!("a schedule has 5, 6 or 7 fields, not {count}"))
            .hint(FIELD_ORDER);
    }
    let error = text.error(format!("`{}` is not a schedule", text.text));
    let word = text.text.to_ascii_lowercase();
    if MACROS.iter().any(|(name, _)| name[1..] == word) || word == "manual" {
        error.hint(format!("write `@{word}`"))
    } else if instant::every(text).is_ok() {
        error.hint(format!("write `@every {word}`"))
    } else if instant::at(text).is_ok() {
        error.hint(format!("write `@at {}`", text.text))
    } else {
        error.hint(FIELD_ORDER)
    }
}

/// Dates that no year has, such as 30 February, or that none of the named years has.
fn refuse_never(
    days: &Days,
    dom: &Field<'_>,
    month: &Field<'_>,
    dow: &Field<'_>,
    year: &Field<'_>,
) -> Result<(), ScheduleError> {
    // The calendar repeats within what one search covers, so any day to begin with will do; the
    // named years are all after 1970.
    if days.next(0).is_some() {
        return Ok(());
    }
    // What is at fault is no one field. Those that restrict nothing are left out at both ends.
    let fields = [dom, month, dow, year];
    let at_fault = fields
        .iter()
        .filter(|field| !matches!(field.piece.text, "*" | "?"));
    let spans = at_fault.map(|field| field.piece.span());
    let span = spans
        .reduce(|all, span| all.start..span.end)
        .unwrap_or(dom.piece.span());
    Err(ScheduleError {
        message: "this schedule is never due: no such day exists".into(),
        span,
        hint: Some("write `L` as the day of month for the last day of each month".into()),
    })
}

/// A word on what day of month and day of week mean together, which surprises many.
fn both_days(dom: &Field<'_>, dow: &Field<'_>) -> Option<ScheduleWarning> {
    let plain = |field: &Field<'_>| matches!(field.piece.text, "*" | "?");
    if plain(dom) || plain(dow) {
        return None;
    }
    let rule = if dom.star || dow.star {
        "must both match, as one of them begins with `*` (crontab(5))"
    } else {
        "are both restricted: a day that matches either is due (crontab(5))"
    };
    Some(ScheduleWarning {
        message: format!(
            "day of month `{}` and day of week `{}` {rule}",
            dom.piece.text, dow.piece.text
        ),
        span: dom.piece.start..dow.piece.span().end,
    })
}

/// A word on numbered weekdays beside a year: only Quartz has years, and it counts otherwise.
fn quartz_weekday(fields: usize, dow: &Field<'_>) -> Option<ScheduleWarning> {
    let is_numbered = |item: Piece<'_>| {
        let day = item.text.split(['#', '/']).next().unwrap_or_default();
        day.contains(|c: char| c.is_ascii_digit())
    };
    if fields < 7 || !dow.piece.split(',').any(is_numbered) {
        return None;
    }
    let text = dow.piece.text;
    Some(dow.piece.warning(format!(
        "day of week `{text}` is read with 1 as Monday, and in Quartz 1 is Sunday: names such as `MON` leave no doubt"
    )))
}
