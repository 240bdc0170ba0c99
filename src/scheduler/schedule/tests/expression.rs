//! Random expressions that know, by arithmetic of their own, what they match.

use std::fmt;

use proptest::prelude::*;

/// One item of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Star,
    Every(u32),
    One(u32),
    From(u32, u32),
    Range(u32, u32),
    Stepped(u32, u32, u32),
    /// Day of month only: so many days before the last.
    BeforeLast(u32),
    /// Day of month only: nearest weekday.
    Nearest(u32),
    /// Day of month only: the last weekday.
    LastWeekday,
    /// Day of week only.
    Nth(u32, u32),
    /// Day of week only.
    Last(u32),
}

/// A list of items.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List(pub(super) Vec<Item>);

/// Six fields.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) second: List,
    pub(super) minute: List,
    pub(super) hour: List,
    pub(super) day: List,
    pub(super) month: List,
    pub(super) weekday: List,
}

/// A local time as the wall shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    pub(super) second: u32,
    pub(super) minute: u32,
    pub(super) hour: u32,
    pub(super) day: u32,
    pub(super) month: u32,
    /// 0 is Sunday.
    pub(super) weekday: u32,
    pub(super) days_in_month: u32,
}

impl Item {
    /// Whether a plain value, of a field that starts at `lowest`, matches.
    fn has(&self, value: u32, lowest: u32) -> bool {
        match *self {
            Self::Star => true,
            Self::Every(step) => (value - lowest).is_multiple_of(step),
            Self::One(one) => value == one,
            Self::From(from, step) => value >= from && (value - from).is_multiple_of(step),
            Self::Range(from, to) => (from..=to).contains(&value),
            Self::Stepped(from, to, step) => {
                (from..=to).contains(&value) && (value - from).is_multiple_of(step)
            }
            _ => false,
        }
    }

    fn has_day(&self, wall: &Wall) -> bool {
        // The weekday of another day of the same month.
        let weekday_of = |day: u32| (wall.weekday + 35 + day - wall.day) % 7;
        match *self {
            Self::BeforeLast(before) => wall.day + before == wall.days_in_month,
            Self::Nearest(day) if day <= wall.days_in_month => {
                let by_distance = [0i64, -1, 1, -2, 2];
                let candidates = by_distance.map(|shift| i64::from(day) + shift);
                let within = |day: &i64| (1..=i64::from(wall.days_in_month)).contains(day);
                let working = |day: &i64| !matches!(weekday_of(*day as u32), 0 | 6);
                let mut nearest = candidates.into_iter().filter(within).filter(working);
                nearest.next() == Some(i64::from(wall.day))
            }
            Self::Nearest(_) => false,
            Self::LastWeekday => {
                let working = |day: u32| !matches!(weekday_of(day), 0 | 6);
                working(wall.day) && !(wall.day + 1..=wall.days_in_month).any(working)
            }
            _ => self.has(wall.day, 1),
        }
    }

    fn has_weekday(&self, wall: &Wall) -> bool {
        match *self {
            Self::Nth(weekday, nth) => wall.weekday == weekday && wall.day.div_ceil(7) == nth,
            Self::Last(weekday) => wall.weekday == weekday && wall.day + 7 > wall.days_in_month,
            _ => self.has(wall.weekday, 0),
        }
    }
}

impl List {
    fn has(&self, value: u32, lowest: u32) -> bool {
        self.0.iter().any(|item| item.has(value, lowest))
    }

    /// Whether it is unrestricted as crontab(5) has it.
    pub(super) fn has_star(&self) -> bool {
        matches!(self.0.first(), Some(Item::Star | Item::Every(_)))
    }
}

impl Expression {
    /// Whether a local time matches.
    pub(super) fn matches(&self, wall: &Wall) -> bool {
        // The rarest first: a walk asks for every instant.
        self.minute.has(wall.minute, 0)
            && self.second.has(wall.second, 0)
            && self.hour.has(wall.hour, 0)
            && self.month.has(wall.month, 1)
            && self.matches_day(wall)
    }

    fn matches_day(&self, wall: &Wall) -> bool {
        let day = self.day.0.iter().any(|item| item.has_day(wall));
        let weekday = self.weekday.0.iter().any(|item| item.has_weekday(wall));
        if self.day.has_star() || self.weekday.has_star() {
            day && weekday
        } else {
            day || weekday
        }
    }

    /// Whether every hour matches, so that it follows elapsed time.
    pub(super) fn is_of_all_hours(&self) -> bool {
        (0..24).all(|hour| self.hour.has(hour, 0))
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = self;
        write!(f, "{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Star => write!(f, "*"),
            Self::Every(step) => write!(f, "*/{step}"),
            Self::One(one) => write!(f, "{one}"),
            Self::From(from, step) => write!(f, "{from}/{step}"),
            Self::Range(from, to) => write!(f, "{from}-{to}"),
            Self::Stepped(from, to, step) => write!(f, "{from}-{to}/{step}"),
            Self::BeforeLast(0) => write!(f, "L"),
            Self::BeforeLast(before) => write!(f, "L-{before}"),
            Self::Nearest(day) => write!(f, "{day}W"),
            Self::LastWeekday => write!(f, "LW"),
            Self::Nth(weekday, nth) => write!(f, "{weekday}#{nth}"),
            Self::Last(weekday) => write!(f, "{weekday}L"),
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(Item::to_string).collect();
        f.write_str(&items.join(","))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            second,
            minute,
            hour,
            day,
            month,
            weekday,
        } = self;
        write!(f, "{second} {minute} {hour} {day} {month} {weekday}")
    }
}

/// An item of a field from `lowest` to `highest`.
fn item(lowest: u32, highest: u32) -> impl Strategy<Value = Item> {
    let size = highest - lowest + 1;
    let range = (lowest..=highest, lowest..=highest).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        1 => Just(Item::Star),
        2 => (1..=size).prop_map(Item::Every),
        6 => (lowest..=highest).prop_map(Item::One),
        2 => (lowest..=highest, 1..=size).prop_map(|(from, step)| Item::From(from, step)),
        3 => range.clone().prop_map(|(from, to)| Item::Range(from, to)),
        2 => (range, 1..=size).prop_map(|((from, to), step)| Item::Stepped(from, to, 1 + step % (to - from + 1))),
    ]
}

fn list(items: impl Strategy<Value = Item>) -> impl Strategy<Value = List> {
    prop::collection::vec(items, 1..4).prop_map(List)
}

fn star() -> impl Strategy<Value = List> {
    Just(List(vec![Item::Star]))
}

/// A field of plain values, often `*`.
pub(super) fn plain(lowest: u32, highest: u32, stars: u32) -> impl Strategy<Value = List> {
    prop_oneof![stars => star(), 3 => list(item(lowest, highest))]
}

/// The hour: often one at which clocks are set.
pub(super) fn hour() -> impl Strategy<Value = List> {
    let early = prop_oneof![0..4u32, Just(23u32)];
    let near = prop_oneof![
        early.clone().prop_map(Item::One),
        (0..3u32, 1..6u32).prop_map(|(from, length)| Item::Range(from, from + length)),
        item(0, 23),
    ];
    prop_oneof![1 => star(), 5 => list(near)]
}

pub(super) fn day() -> impl Strategy<Value = List> {
    let special = prop_oneof![
        (0..=30u32).prop_map(Item::BeforeLast),
        (1..=31u32).prop_map(Item::Nearest),
        Just(Item::LastWeekday),
    ];
    prop_oneof![4 => star(), 2 => list(item(1, 31)), 1 => list(prop_oneof![special, item(1, 31)])]
}

pub(super) fn weekday() -> impl Strategy<Value = List> {
    let special = prop_oneof![
        (0..=6u32, 1..=5u32).prop_map(|(weekday, nth)| Item::Nth(weekday, nth)),
        (0..=6u32).prop_map(Item::Last),
    ];
    prop_oneof![4 => star(), 2 => list(item(0, 6)), 1 => list(prop_oneof![special, item(0, 6)])]
}

/// An expression whose seconds are those given.
pub(super) fn expression(second: impl Strategy<Value = List>) -> impl Strategy<Value = Expression> {
    let fields = (
        second,
        plain(0, 59, 1),
        hour(),
        day(),
        plain(1, 12, 6),
        weekday(),
    );
    fields.prop_map(|(second, minute, hour, day, month, weekday)| Expression {
        second,
        minute,
        hour,
        day,
        month,
        weekday,
    })
}
