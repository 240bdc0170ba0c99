//! What the fields of a schedule count: names, limits and words for errors.
//!
//! It must never read more than one number or name.

use super::ScheduleError;
use super::cron::{FIRST_YEAR, LAST_YEAR};
use super::piece::Piece;

/// What a field counts. The numbers go into the hash behind `H` and must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Second = 0,
    Minute = 1,
    Hour = 2,
    DayOfMonth = 3,
    Month = 4,
    DayOfWeek = 5,
    Year = 6,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Unit {
    /// The lowest and the highest number that may be written.
    pub(super) const fn limits(self) -> (u16, u16) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            // 7 is Sunday too.
            Self::DayOfWeek => (0, 7),
            Self::Year => (FIRST_YEAR, LAST_YEAR),
        }
    }

    /// What `*` stands for: the same, but with one Sunday.
    pub(super) const fn every(self) -> (u16, u16) {
        match self {
            Self::DayOfWeek => (0, 6),
            _ => self.limits(),
        }
    }

    /// What `H` stands for. Not all months have a 29th, and who writes `H` wants each month.
    pub(super) const fn hashed(self) -> (u16, u16) {
        match self {
            Self::DayOfMonth => (1, 28),
            _ => self.every(),
        }
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of the month",
            Self::Month => "month",
            Self::DayOfWeek => "day of the week",
            Self::Year => "year",
        }
    }

    const fn plural(self) -> &'static str {
        match self {
            Self::Second => "seconds",
            Self::Minute => "minutes",
            Self::Hour => "hours",
            Self::DayOfMonth => "days of the month",
            Self::Month => "months",
            Self::DayOfWeek => "days of the week",
            Self::Year => "years",
        }
    }

    /// After what the field starts afresh, so that a step may not come out even.
    pub(super) const fn restarts_every(self) -> Option<&'static str> {
        match self {
            Self::Second => Some("minute"),
            Self::Minute => Some("hour"),
            Self::Hour => Some("day"),
            Self::DayOfMonth => Some("month"),
            // Too few, or too long ago, for anyone to be surprised.
            Self::Month | Self::DayOfWeek | Self::Year => None,
        }
    }

    /// Its letter in a duration.
    pub(super) const fn letter(self) -> Option<char> {
        match self {
            Self::Second => Some('s'),
            Self::Minute => Some('m'),
            Self::Hour => Some('h'),
            _ => None,
        }
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    /// The name of a value, or its number where it has none.
    pub(super) fn spell(self, value: u16) -> String {
        let (lowest, _) = self.every();
        let name = self.names().get(usize::from(value - lowest));
        name.map_or_else(|| value.to_string(), |name| (*name).to_owned())
    }

    /// Reads one value: a number, or a name where there are names.
    pub(super) fn value(self, piece: Piece<'_>) -> Result<u16, ScheduleError> {
        let (lowest, highest) = self.limits();
        if let Some(number) = piece.number().and_then(|number| u16::try_from(number).ok())
            && (lowest..=highest).contains(&number)
        {
            return Ok(number);
        }
        let named = (lowest..)
            .zip(self.names())
            .find(|(_, name)| piece.is(name));
        named
            .map(|(value, _)| value)
            .ok_or_else(|| self.not_a_value(piece))
    }

    fn not_a_value(self, piece: Piece<'_>) -> ScheduleError {
        let (lowest, highest) = self.limits();
        let article = if self == Self::Hour { "an" } else { "a" };
        let (name, plural) = (self.name(), self.plural());
        let names = match self {
            Self::Month => ", or JAN to DEC",
            Self::DayOfWeek => " (0 and 7 are Sunday, 1 is Monday), or SUN to SAT",
            _ => "",
        };
        if piece.text.is_empty() {
            let error = piece.error(format!("{article} {name} is missing here"));
            return error.hint(format!("{plural} go from {lowest} to {highest}{names}"));
        }
        let text = piece.text;
        let error = piece.error(format!(
            "`{text}` is not {article} {name}: {plural} go from {lowest} to {highest}{names}"
        ));
        error.hint(self.cure(piece))
    }

    /// What somebody who wrote `piece` as a value may have meant.
    fn cure(self, piece: Piece<'_>) -> String {
        let short = piece
            .text
            .get(..3)
            .map(str::to_ascii_uppercase)
            .unwrap_or_default();
        if self.names().contains(&short.as_str()) {
            return format!("write `{short}`");
        }
        match (self, piece.text) {
            (Self::Second | Self::Minute, "60") => "write `0` for the full one".into(),
            (Self::Hour, "24") => "midnight is hour `0`".into(),
            (Self::DayOfWeek, _) if piece.is("L") => {
                "write `SAT`, which is what it means in Quartz, or `5L` for the last Friday of the month".into()
            }
            (Self::DayOfMonth, "0") => "write `L` for the last day of a month".into(),
            _ => FIELD_ORDER.into(),
        }
    }
}

/// Which fields there are.
pub(super) const FIELD_ORDER: &str = "5 fields are minute, hour, day of month, month, day of week; 6 have the second first; 7 have the year last too";
