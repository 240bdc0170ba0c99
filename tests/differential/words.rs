//! Names and texts that are easy to get wrong.

use std::sync::Arc;

use soloist::scheduler::job::{JobName, NAME_LENGTH_LIMIT};
use soloist::scheduler::lease::{Captured, Output};

use crate::chance::Chance;

/// Names of jobs: short and as long as may be, made like numbers, like the signs of other
/// engines, and like each other but for what comes last; in no order.
pub(crate) fn jobs(count: usize) -> Vec<JobName> {
    let longest = "Z".repeat(NAME_LENGTH_LIMIT);
    let odd = [
        "a",
        "a-",
        "9007199254740993",
        "A",
        "a.b",
        "1e5",
        "nil",
        "a_",
    ];
    let name = |number: usize| match odd.get(number) {
        Some(name) => (*name).to_owned(),
        None if number == odd.len() => longest.clone(),
        None => format!("crowd.{}", 1000 - number),
    };
    let names = (0..count).map(|number| JobName::new(&name(number)).expect("a good name"));
    names.collect()
}

/// One job alone, that keeps all its past.
pub(crate) fn one_job() -> Vec<JobName> {
    vec![JobName::new("nil").expect("a good name")]
}

/// What people and hosts may be called, and what may stand in a reason.
const TEXTS: [&str; 12] = [
    "",
    "alice",
    "a|b|c",
    "\"quoted\" \\ and / slashed",
    "line\nbreak\r\n\ttab",
    "nul\0byte",
    "zürich 東京 🕰",
    "\u{2028}\u{feff}\u{7f}\u{1b}[31m",
    "%s %d %.0f %%",
    "-",
    "*",
    "'; DROP TABLE job; --",
];

/// A part of a text that is longer than a buffer.
const LONG: &str = "more and more and more, ";

/// The same text, without what nobody wants to read.
pub(crate) fn shortened(text: &str) -> String {
    text.replace(&LONG.repeat(LONGER), "more …")
}

const LONGER: usize = 800;

pub(crate) fn text(chance: &mut Chance) -> String {
    match chance.below(40) {
        0 => LONG.repeat(LONGER),
        _ => (*chance.of(&TEXTS).expect("some")).to_owned(),
    }
}

/// Short names that keys may be made of, as tables have them.
pub(crate) fn some(chance: &mut Chance) -> Arc<[String]> {
    let count = 1 + chance.index(2);
    (0..count).map(|_| text(chance)).collect()
}

/// What an attempt printed: nothing, text, or any bytes.
pub(crate) fn output(chance: &mut Chance) -> Output {
    Output {
        stdout: captured(chance),
        stderr: captured(chance),
    }
}

fn captured(chance: &mut Chance) -> Captured {
    let (head, tail) = match chance.below(8) {
        0..4 => (Vec::new(), Vec::new()),
        4 => (text(chance).into_bytes(), Vec::new()),
        5 => (chance.bytes(3), chance.bytes(70)),
        6 => (chance.bytes(300), Vec::new()),
        _ => (b"printed\n".to_vec(), Vec::new()),
    };
    let kept = (head.len() + tail.len()) as u64;
    let cut = chance.some(6, |chance| chance.below(1 << 60)).unwrap_or(0);
    Captured {
        head,
        tail,
        total: kept + cut,
    }
}
