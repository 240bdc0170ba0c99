//! The search against croner 4, in UTC.
//!
//! Where croner has another rule, the expressions are changed into ones on which both agree, and
//! `where_croner_differs_a_walk_bears_us_out` shows that the rule, not the search, is different:
//! - one day field beginning with a step, the other restricted, as in `*/2 * MON`: croner takes
//!   either, crontab(5) and soloist both;
//! - `a/n` in day of week: croner goes on to 7, Sunday; soloist to 6, Saturday, as for `*`;
//! - `L` in a list with `LW`: croner reads the pair as `LW`;
//! - `*` within a list, and `L-3`: croner refuses them.

use jiff::Zoned;
use proptest::prelude::*;

use super::expression::{Expression, Item, List, Wall, expression, plain};
use super::*;

/// The nearest expression that croner reads as soloist does.
fn common(mut expression: Expression) -> Expression {
    let Expression {
        second,
        minute,
        hour,
        day,
        month,
        weekday,
    } = &mut expression;
    for list in [second, minute, hour, &mut *day, month, &mut *weekday] {
        if list.0.len() > 1 {
            list.0.retain(|item| *item != Item::Star);
        }
        if list.0.is_empty() {
            list.0.push(Item::Star);
        }
    }
    let has_last_weekday = day.0.contains(&Item::LastWeekday);
    for item in &mut day.0 {
        match item {
            Item::BeforeLast(before) if has_last_weekday => *item = Item::Nearest(*before + 1),
            Item::BeforeLast(before) => *before = 0,
            _ => {}
        }
    }
    for item in &mut weekday.0 {
        if let Item::From(from, step) = *item {
            *item = Item::Stepped(from, 6, 1 + step % (7 - from));
        }
    }
    let is_star = |list: &List| list.0[..] == [Item::Star];
    if !is_star(day) && !is_star(weekday) {
        for (list, lowest, highest) in [(day, 1, 31), (weekday, 0, 6)] {
            if let Item::Every(step) = list.0[0] {
                list.0[0] = Item::Stepped(lowest, highest, step);
            }
        }
    }
    expression
}

fn croner(text: &str) -> Option<croner::Cron> {
    let parser = croner::parser::CronParser::builder()
        .seconds(croner::parser::Seconds::Required)
        .sloppy_ranges(true)
        .build();
    parser.parse(text).ok()
}

fn in_utc(at: Timestamp) -> Zoned {
    at.to_jiff().to_zoned(TimeZone::UTC)
}

fn instant(found: Zoned) -> Timestamp {
    found.timestamp().into()
}

fn their_next(theirs: &croner::Cron, after: Timestamp) -> Option<Timestamp> {
    let found = theirs.find_next_occurrence(&in_utc(after), false);
    found.ok().map(instant)
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn a_search_in_utc_finds_what_croner_finds(
        expression in expression(plain(0, 59, 1)).prop_map(common),
        second in 0..4_000_000_000i64,
    ) {
        let text = expression.to_string();
        let theirs = croner(&text);
        prop_assert!(theirs.is_some(), "`{text}` is no expression to croner");
        let theirs = theirs.expect("just checked");
        let start = Timestamp::from_second(second);
        let Ok(ours) = read(&text, "job") else {
            prop_assert_eq!(their_next(&theirs, start), None, "`{}`", &text);
            return Ok(());
        };
        let mut now = start;
        for _ in 0..3 {
            let next = ours.next_after(now);
            prop_assert_eq!(their_next(&theirs, now), next, "next of `{}` at {}", &text, now);
            let Some(next) = next else { break };
            now = next;
        }
        let last = theirs.find_previous_occurrence(&in_utc(start), false).ok().map(instant);
        prop_assert_eq!(last, ours.last_before(start), "last of `{}` at {}", &text, start);
    }
}

/// The midnights from `start` on at which an expression is due, found by asking for each.
fn walk(expression: &Expression, start: Timestamp, count: usize) -> Vec<Timestamp> {
    let number = |n: i8| u32::try_from(n).expect("not negative");
    let is_due = |at: &Timestamp| {
        let local = in_utc(*at);
        expression.matches(&Wall {
            second: 0,
            minute: 0,
            hour: 0,
            day: number(local.day()),
            month: number(local.month()),
            weekday: number(local.weekday().to_sunday_zero_offset()),
            days_in_month: number(local.days_in_month()),
        })
    };
    let midnights = (1..).map(|day| Timestamp::from_second(start.as_second() + day * 86_400));
    midnights.filter(is_due).take(count).collect()
}

#[test]
fn where_croner_differs_a_walk_bears_us_out() {
    let one = |item| List(vec![item]);
    let star = || one(Item::Star);
    let days = |day, weekday| Expression {
        second: one(Item::One(0)),
        minute: one(Item::One(0)),
        hour: one(Item::One(0)),
        day,
        month: star(),
        weekday,
    };
    let both_last = List(vec![Item::BeforeLast(0), Item::LastWeekday]);
    let star_in_list = List(vec![Item::One(5), Item::Star]);
    for (expression, text, croner_reads_it) in [
        (
            days(one(Item::Every(2)), one(Item::One(1))),
            "0 0 0 */2 * 1",
            true,
        ),
        (
            days(one(Item::One(13)), one(Item::Every(5))),
            "0 0 0 13 * */5",
            true,
        ),
        (days(star(), one(Item::From(5, 2))), "0 0 0 * * 5/2", true),
        (days(both_last, star()), "0 0 0 L,LW * *", true),
        (
            days(one(Item::BeforeLast(3)), star()),
            "0 0 0 L-3 * *",
            false,
        ),
        (days(star_in_list, star()), "0 0 0 5,* * *", false),
    ] {
        assert_eq!(expression.to_string(), text);
        let start = at("2026-11-20T00:00:00Z");
        let walked = walk(&expression, start, 40);
        let following = |next: &dyn Fn(Timestamp) -> Option<Timestamp>| -> Vec<Timestamp> {
            let all = std::iter::successors(next(start), |at| next(*at));
            all.take(40).collect()
        };
        let ours = utc(text);
        assert_eq!(following(&|at| ours.next_after(at)), walked, "{text}");
        let theirs = croner(text);
        assert_eq!(theirs.is_some(), croner_reads_it, "{text}");
        if let Some(theirs) = theirs {
            // Once they agree, the difference has no place in `common` any more.
            assert_ne!(following(&|at| their_next(&theirs, at)), walked, "{text}");
        }
    }
}
