//! How often what was asked, and what was said to it: a test that only ever hears refusals proves
//! little.

use std::collections::BTreeMap;
use std::fmt;

use soloist::scheduler::lease::{
    ClaimAnswer, OrderAnswer, Registration, ReleaseAnswer, RenewalAnswer,
};

use crate::steps::{Asked, Call, Reply};

/// Counts of one engine.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sequences: u64,
    /// Sequences that came to no end, as the store did not answer in time.
    pub(crate) given_up: u64,
    /// Sequences of which some news were not heard, as the host had no watch to give.
    pub(crate) deaf: u64,
    /// Calls of both sides.
    pub(crate) operations: u64,
    /// Those that came at the same time as another one.
    pub(crate) crossed: u64,
    /// Losses, failovers, restarts.
    pub(crate) troubles: u64,
    calls: BTreeMap<&'static str, u64>,
    answers: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, asked: &Asked, reply: &Reply) {
        self.operations += 1;
        let name = asked.call.name();
        *self.calls.entry(name).or_default() += 1;
        for answer in answers(&asked.call, reply) {
            *self.answers.entry((name, answer)).or_default() += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.sequences += other.sequences;
        self.given_up += other.given_up;
        self.deaf += other.deaf;
        self.operations += other.operations;
        self.crossed += other.crossed;
        self.troubles += other.troubles;
        for (name, count) in &other.calls {
            *self.calls.entry(name).or_default() += count;
        }
        for (answer, count) in &other.answers {
            *self.answers.entry(*answer).or_default() += count;
        }
    }

    /// How often that was said to this call.
    pub(crate) fn answered(&self, call: &'static str, answer: &'static str) -> u64 {
        self.answers.get(&(call, answer)).copied().unwrap_or(0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.calls {
            write!(f, "  {name:9}{count:>9}  ")?;
            let answers = self.answers.iter().filter(|((of, _), _)| of == name);
            let words = answers.map(|((_, answer), count)| format!("{answer} {count}"));
            writeln!(f, "{}", words.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// In a word for each request of a batch, or for the call.
fn answers(call: &Call, reply: &Reply) -> Vec<&'static str> {
    let some = |there: bool| vec![if there { "some" } else { "none" }];
    match reply {
        Reply::Registered(answered) => answered.answer.iter().map(of_registration).collect(),
        Reply::Claimed(answered) => {
            let claims = match call {
                Call::Claim(claims) => claims.as_slice(),
                _ => &[],
            };
            let watched = claims.iter().map(|claim| claim.watched.is_some());
            let answers = answered.answer.iter().zip(watched);
            answers
                .map(|(answer, watched)| of_claim(answer, watched))
                .collect()
        }
        Reply::Renewed(answered) => answered.answer.iter().map(of_renewal).collect(),
        Reply::Released(answered) => answered.answer.iter().map(of_release).collect(),
        Reply::Ordered(answered) => answered.answer.iter().map(of_order).collect(),
        Reply::Delivered(answered) => {
            let word = |go_on: &bool| if *go_on { "to tell" } else { "over" };
            answered.answer.iter().map(word).collect()
        }
        Reply::Observed(seen) => {
            let look = &seen.answer;
            let shown = [
                ("leases", !look.leases.is_empty()),
                ("openings", !look.openings.is_empty()),
                ("untold", !look.untold.is_empty()),
                ("grace", !look.grace.is_zero()),
                ("tables", !look.published.is_empty()),
            ];
            let words: Vec<_> = shown.into_iter().filter(|(_, there)| *there).collect();
            match words.is_empty() {
                true => vec!["nothing"],
                false => words.into_iter().map(|(word, _)| word).collect(),
            }
        }
        Reply::Published(_) | Reply::Departed => vec!["done"],
        Reply::Table(table) => some(table.is_some()),
        Reply::Swept(answered) => some(!answered.answer.is_empty()),
        Reply::Snapshot(state) => some(!state.answer.jobs.is_empty()),
        Reply::History(lines) => some(!lines.is_empty()),
        Reply::Output(output) => some(output.is_some()),
        Reply::Refused(..) => vec!["refused"],
    }
}

fn of_registration(answer: &Registration) -> &'static str {
    match answer {
        one if one.new => "new",
        one if one.former_schedule.is_some() => "other schedule",
        one if one.outdated.is_some() => "outdated",
        one if one.pause_came_back => "pause came back",
        one if one.paused.is_some() => "paused",
        _ => "known",
    }
}

fn of_claim(answer: &ClaimAnswer, watched: bool) -> &'static str {
    match answer {
        ClaimAnswer::Granted(_) if watched => "granted, watched",
        ClaimAnswer::Granted(_) => "granted",
        ClaimAnswer::Held(_) => "held",
        ClaimAnswer::Overlap(_) => "overlap",
        ClaimAnswer::Waiting => "waiting",
        ClaimAnswer::NoRoom => "no room",
        ClaimAnswer::Skipped(_) => "skipped",
        ClaimAnswer::Suspended { .. } => "suspended",
        ClaimAnswer::Finished => "finished",
        ClaimAnswer::Early { .. } => "early",
        ClaimAnswer::TooLate => "too late",
        ClaimAnswer::Closed => "closed",
        ClaimAnswer::Grace { .. } => "grace",
        ClaimAnswer::RequestExpired => "expired",
        ClaimAnswer::Outdated { .. } => "outdated",
    }
}

fn of_renewal(answer: &RenewalAnswer) -> &'static str {
    match answer {
        RenewalAnswer::Renewed { stop: Some(_), .. } => "renewed, to stop",
        RenewalAnswer::Renewed { stop: None, .. } => "renewed",
        RenewalAnswer::Lost => "lost",
    }
}

fn of_release(answer: &ReleaseAnswer) -> &'static str {
    match answer {
        ReleaseAnswer::Released => "released",
        ReleaseAnswer::Superseded => "superseded",
    }
}

fn of_order(answer: &OrderAnswer) -> &'static str {
    match answer {
        OrderAnswer::Unknown => "unknown",
        OrderAnswer::Disabled => "disabled",
        OrderAnswer::Full => "full",
        OrderAnswer::Triggered { .. } => "triggered",
        OrderAnswer::Paused { .. } => "paused",
        OrderAnswer::Resumed { since: Some(_) } => "resumed",
        OrderAnswer::Resumed { since: None } => "resumed nothing",
        OrderAnswer::Killed { .. } => "killed",
        OrderAnswer::Idle => "idle",
    }
}
