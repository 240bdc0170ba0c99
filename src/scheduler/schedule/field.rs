//! One field of a schedule, from text to a set of values.
//!
//! It must never look at another field: what two fields mean together is `parse`'s business.

use super::cron::{DaysOfMonth, DaysOfWeek, FIRST_YEAR};
use super::hash::hash;
use super::piece::Piece;
use super::unit::Unit;
use super::{ScheduleError, ScheduleWarning};

/// The values of a field as bits; years count from [`FIRST_YEAR`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bits([u64; 4]);

impl Bits {
    /// The set of one year, which must be one that a field can name.
    pub(super) fn year(year: i16) -> [u64; 4] {
        let mut bits = Self::default();
        bits.insert(year.unsigned_abs() - FIRST_YEAR);
        bits.0
    }

    fn insert(&mut self, bit: u16) {
        self.0[usize::from(bit / 64)] |= 1 << (bit % 64);
    }

    /// The values up to 63.
    pub(super) fn low(self) -> u64 {
        self.0[0]
    }

    /// All values.
    pub(super) fn words(self) -> [u64; 4] {
        self.0
    }
}

/// What a field says.
#[derive(Debug)]
pub(super) struct Field<'a> {
    unit: Unit,
    /// The job's name, for `H`.
    name: &'a str,
    /// Its text.
    pub(super) piece: Piece<'a>,
    /// The plain values.
    pub(super) values: Bits,
    /// Whether it begins with `*` or is `?`, and so counts as unrestricted (crontab(5)).
    pub(super) star: bool,
    /// What only a day of the month can be; its `days` are left empty.
    pub(super) of_month: DaysOfMonth,
    /// What only a day of the week can be; its `days` are left empty.
    pub(super) of_week: DaysOfWeek,
    /// What may not be what was meant.
    pub(super) warnings: Vec<ScheduleWarning>,
}

/// Values from one to another; `to` may be above the highest value where a range of days goes
/// round the end of the week.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u16,
    to: u16,
}

impl<'a> Field<'a> {
    /// Reads a field.
    pub(super) fn parse(
        piece: Piece<'a>,
        unit: Unit,
        name: &'a str,
    ) -> Result<Self, ScheduleError> {
        let mut field = Self {
            unit,
            name,
            piece,
            values: Bits::default(),
            star: piece.text.starts_with(['*', '?']),
            of_month: DaysOfMonth::default(),
            of_week: DaysOfWeek::default(),
            warnings: Vec::new(),
        };
        for item in piece.split(',') {
            field.item(item)?;
        }
        Ok(field)
    }

    /// One item of the list.
    fn item(&mut self, item: Piece<'_>) -> Result<(), ScheduleError> {
        if item.text.is_empty() {
            let list = self.piece;
            let error = list.error(format!("an item of the list `{}` is empty", list.text));
            return Err(error.hint("write one value between two commas, and none at the ends"));
        }
        if item.text.starts_with('?') {
            return self.question_mark(item);
        }
        let special = match self.unit {
            Unit::DayOfMonth => self.special_day_of_month(item)?,
            Unit::DayOfWeek => self.special_day_of_week(item)?,
            _ => false,
        };
        if special {
            return Ok(());
        }
        match item.split_once('/') {
            Some((base, step)) => self.stepped(item, base, step),
            None => {
                let span = self.base(item)?;
                self.insert(span, 1);
                Ok(())
            }
        }
    }

    /// `?`: no particular value (Quartz).
    fn question_mark(&mut self, item: Piece<'_>) -> Result<(), ScheduleError> {
        if !matches!(self.unit, Unit::DayOfMonth | Unit::DayOfWeek) {
            let error = item.error("`?` can stand in day of month and day of week only");
            return Err(error.hint("write `*` here"));
        }
        if self.piece.text != "?" {
            return Err(self
                .piece
                .error("`?` stands alone")
                .hint("write `*`, or leave out the `?`"));
        }
        let (from, to) = self.unit.every();
        self.insert(Span { from, to }, 1);
        Ok(())
    }

    /// What stands before a `/`, or alone: `*`, `a`, `a-b`, `H`, `H(a-b)`.
    fn base(&self, base: Piece<'_>) -> Result<Span, ScheduleError> {
        if base.text == "*" {
            let (from, to) = self.unit.every();
            return Ok(Span { from, to });
        }
        if let Some(span) = self.hashed(base)? {
            let at = span.from + self.offset(span.to - span.from + 1);
            return Ok(Span { from: at, to: at });
        }
        match base.split_once('-') {
            Some((from, to)) => self.range(base, from, to),
            None => {
                let value = self.unit.value(base)?;
                Ok(Span {
                    from: value,
                    to: value,
                })
            }
        }
    }

    fn range(
        &self,
        range: Piece<'_>,
        from: Piece<'_>,
        to: Piece<'_>,
    ) -> Result<Span, ScheduleError> {
        let (mut low, mut high) = (self.unit.value(from)?, self.unit.value(to)?);
        if self.unit == Unit::DayOfWeek {
            // 7 is Sunday at the end of a week, 0 at its start.
            high = if (low, high) == (7, 7) { 0 } else { high };
            low %= 7;
            high += if high < low { 7 } else { 0 };
        }
        if high >= low {
            return Ok(Span {
                from: low,
                to: high,
            });
        }
        let (first, last) = self.unit.limits();
        let spell = |value| self.unit.spell(value);
        let join = |a, b| {
            if a == b {
                spell(a)
            } else {
                format!("{}-{}", spell(a), spell(b))
            }
        };
        let error = range.error(format!("the range `{}` runs backwards", range.text));
        Err(match self.unit {
            Unit::Year => error.hint("write the earlier year first"),
            _ => error.hint(format!(
                "write `{},{}` to go round the end",
                join(low, last),
                join(first, high)
            )),
        })
    }

    /// `base/step`.
    fn stepped(
        &mut self,
        item: Piece<'_>,
        base: Piece<'_>,
        step: Piece<'_>,
    ) -> Result<(), ScheduleError> {
        let hashed = self.hashed(base)?;
        let (lowest, highest) = self.unit.every();
        let span = match hashed {
            Some(span) => span,
            None if base.text == "*" || base.text.contains('-') => self.base(base)?,
            // Quartz, and Vixie cron since Debian's patches: from there to the end.
            None => {
                let from = self.unit.value(base)?;
                Span {
                    from: if from > highest { lowest } else { from },
                    to: highest,
                }
            }
        };
        // A step is judged by how much room there is for it: for `a/n` the whole field.
        let open = hashed.is_none() && !base.text.contains('-');
        let room = if open {
            highest - lowest + 1
        } else {
            span.to - span.from + 1
        };
        let step = self.step(item, step, room)?;
        if room % step != 0 && room == highest - lowest + 1 {
            self.warn_uneven(item, step);
        }
        let offset = if hashed.is_some() {
            self.offset(step)
        } else {
            0
        };
        self.insert(
            Span {
                from: span.from + offset,
                ..span
            },
            step,
        );
        Ok(())
    }

    /// Reads a step into a range of `room` values.
    fn step(&self, item: Piece<'_>, step: Piece<'_>, room: u16) -> Result<u16, ScheduleError> {
        let text = item.text;
        let Some(number) = step.number() else {
            let error = item.error(format!("`{}` in `{text}` is not a step", step.text));
            return Err(error.hint("after `/` stands a whole number, as in `*/5`"));
        };
        if number == 0 {
            let error = item.error(format!("the step of `{text}` leads nowhere"));
            return Err(error.hint("write a step of 1 or more"));
        }
        if number <= u64::from(room) {
            return Ok(number as u16);
        }
        let error = item.error(format!(
            "the step of `{text}` is larger than its range of {room}, so it would mean one {} alone",
            self.unit.name()
        ));
        Err(error.hint(match self.unit.letter() {
            Some(letter) => format!(
                "a step ends with its field: write that value alone, or `@every {number}{letter}` if that was meant"
            ),
            None => "a step ends with its field: write that value alone".into(),
        }))
    }

    fn warn_uneven(&mut self, item: Piece<'_>, step: u16) {
        if let Some(period) = self.unit.restarts_every() {
            let text = item.text;
            self.warnings.push(item.warning(format!(
                "`{text}` starts afresh each {period}, so not all waits are {step}"
            )));
        }
    }

    /// The range of `H` or `H(a-b)`; none when it is something else.
    fn hashed(&self, base: Piece<'_>) -> Result<Option<Span>, ScheduleError> {
        let Some(rest) = base.strip_prefix("H") else {
            return Ok(None);
        };
        if self.unit == Unit::Year {
            return Err(base
                .error("a year can't be hashed")
                .hint("write `*` or the years"));
        }
        if rest.text.is_empty() {
            let (from, to) = self.unit.hashed();
            return Ok(Some(Span { from, to }));
        }
        let inner = rest
            .strip_prefix("(")
            .and_then(|rest| rest.strip_suffix(")"));
        let Some((from, to)) = inner.and_then(|inner| inner.split_once('-')) else {
            let error = base.error(format!("`{}` is not a hashed value", base.text));
            return Err(error.hint("write `H`, `H/15`, `H(0-29)` or `H(0-29)/10`"));
        };
        self.range(base, from, to).map(Some)
    }

    /// The number below `limit` that belongs to the job and this field.
    fn offset(&self, limit: u16) -> u16 {
        // A remainder is below its divisor.
        (hash(self.name, self.unit as u8) % u64::from(limit)) as u16
    }

    /// `L`, `L-3`, `LW`, `15W`; false when it is none of them.
    fn special_day_of_month(&mut self, item: Piece<'_>) -> Result<bool, ScheduleError> {
        if item.is("L") {
            self.of_month.before_last |= 1;
        } else if item.is("LW") {
            self.of_month.last_weekday = true;
        } else if let Some(before) = item.strip_prefix("L-") {
            let days = before.number().filter(|days| (1..=30).contains(days));
            let days = days.ok_or_else(|| {
                let error = item.error(format!("`{}` is not a day of the month", item.text));
                error.hint("write `L-1` to `L-30` for so many days before the last")
            })?;
            self.of_month.before_last |= 1 << days;
        } else if let Some(day) = item.strip_suffix("W") {
            if day.text.is_empty() || day.text.contains(['-', '/', 'L', 'l']) {
                let error = item.error(format!("`{}` is not a day of the month", item.text));
                return Err(error.hint("`W` follows one day, as in `15W`, or `L`, as in `LW`"));
            }
            self.of_month.nearest |= 1 << self.unit.value(day)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// `5L`, `FRI#2`; false when it is neither.
    fn special_day_of_week(&mut self, item: Piece<'_>) -> Result<bool, ScheduleError> {
        if let Some((day, nth)) = item.split_once('#') {
            let day = self.unit.value(day)? % 7;
            let nth = nth.number().filter(|nth| (1..=5).contains(nth)).ok_or_else(|| {
                let error = item.error(format!("`{}` is not a day of the week", item.text));
                error.hint("write `FRI#1` to `FRI#5` for the first to the fifth of a month, `5L` for the last")
            })?;
            self.of_week.nth[usize::from(day)] |= 1 << nth;
            return Ok(true);
        }
        match item.strip_suffix("L") {
            Some(day) if !day.text.is_empty() => {
                self.of_week.last |= 1 << (self.unit.value(day)? % 7);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn insert(&mut self, span: Span, step: u16) {
        for value in (span.from..=span.to).step_by(usize::from(step)) {
            self.values.insert(match self.unit {
                Unit::Year => value - FIRST_YEAR,
                Unit::DayOfWeek => value % 7,
                _ => value,
            });
        }
    }
}
