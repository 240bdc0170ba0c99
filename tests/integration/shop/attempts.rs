//! The attempts of a shop's jobs, as they noted themselves.

use std::collections::HashSet;

/// The program's own exit code for a token that is too low.
pub(crate) const STALE: i32 = 4;

/// An attempt, as it was noted.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Or places new ones.
    pub(crate) closes: bool,
    pub(crate) scheduled_at: String,
    pub(crate) number: u32,
    pub(crate) token: String,
    /// `None` for as long as it runs.
    pub(crate) code: Option<i32>,
}

impl Attempt {
    pub(crate) fn is_stale(&self) -> bool {
        self.closes && self.code == Some(STALE)
    }
}

/// Reads `JOB SCHEDULED_AT ATTEMPT TOKEN`, then `began` or the exit code.
pub(crate) fn attempts(notes: &str) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for line in notes.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[job, at, number, token, what] = words.as_slice() else {
            panic!("a note of five words: {line}");
        };
        let closes = job == "close-expired-orders";
        if what == "began" {
            attempts.push(Attempt {
                closes,
                scheduled_at: at.to_owned(),
                number: number.parse().expect("a number"),
                token: token.to_owned(),
                code: None,
            });
        } else {
            let mut begun = attempts.iter_mut().rev();
            let mine = begun.find(|begun| begun.closes == closes && begun.token == token);
            mine.expect("a beginning").code = what.parse().ok();
        }
    }
    attempts
}

pub(crate) fn taken_over(attempts: &[Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.number > 1).count()
}

pub(crate) fn ended_with(attempts: &[Attempt], code: i32) -> usize {
    let ended = attempts.iter().filter(|attempt| attempt.code == Some(code));
    ended.count()
}

/// No token is given twice, nor is an attempt.
pub(crate) fn tokens_are_unique(attempts: &[Attempt]) {
    let mut tokens = HashSet::new();
    let mut numbers = HashSet::new();
    for attempt in attempts {
        let Attempt { closes, token, .. } = attempt;
        assert!(tokens.insert((closes, token)), "token twice: {attempt:?}");
        let number = (closes, &attempt.scheduled_at, attempt.number);
        assert!(numbers.insert(number), "attempt twice: {attempt:?}");
    }
}
