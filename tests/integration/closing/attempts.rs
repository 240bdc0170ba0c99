//! The attempts of a shop's jobs, as they noted themselves.

use std::collections::HashSet;

/// The program's own exit code for a token that is too low.
pub(crate) const STALE: i32 = 4;

/// An attempt, as it was noted.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Or places new ones.
    pub(crate) closes: bool,
    pub(crate) scheduled_at: String,
    pub(crate) number: u32,
    pub(crate) token: String,
    pub(crate) replica: String,
    /// Of its first process.
    pub(crate) pid: i32,
    /// `None` for as long as it runs, and for ever if it was cut short.
    pub(crate) code: Option<i32>,
}

impl Attempt {
    pub(crate) fn is_stale(&self) -> bool {
        self.closes && self.code == Some(STALE)
    }
}

/// Reads `JOB SCHEDULED_AT ATTEMPT TOKEN REPLICA PID`, then `began` or the exit code.
pub(crate) fn attempts(notes: &str) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for line in notes.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[job, at, number, token, replica, pid, what] = words.as_slice() else {
            panic!("a note of seven words: {line}");
        };
        let closes = job == "close-expired-orders";
        if what == "began" {
            attempts.push(Attempt {
                closes,
                scheduled_at: at.to_owned(),
                number: number.parse().expect("a number"),
                token: token.to_owned(),
                replica: replica.to_owned(),
                pid: pid.parse().expect("a number"),
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

/// Those that never came to their end.
pub(crate) fn cut_short(attempts: &[Attempt], closes: bool) -> Vec<&Attempt> {
    let all = attempts.iter();
    all.filter(|attempt| attempt.closes == closes && attempt.code.is_none())
        .collect()
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
