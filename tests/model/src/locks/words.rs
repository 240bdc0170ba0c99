//! A trace of a lock in words, for people.
//!
//! Must never: tell of a step anything that the states before and after it do not say.

use super::{Action, Client, Fault, Lock, Place, State};

/// The steps of a trace, each with its time, and what is broken in the end.
pub fn trace(model: &Lock, path: &[(State, Option<Action>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for pair in path.windows(2) {
        let (before, after) = (&pair[0].0, &pair[1].0);
        let step = pair[0].1.map(|action| step(model, before, action, after));
        for words in step.into_iter().flatten() {
            lines.push(format!("t={} {words}", after.now));
        }
    }
    if let Some((last, _)) = path.last()
        && !model.holds(last)
    {
        lines.push(format!("t={} BROKEN: {}", last.now, model.law()));
    }
    lines
}

fn name(at: usize) -> char {
    (b'A' + at as u8) as char
}

fn step(model: &Lock, before: &State, action: Action, after: &State) -> Vec<String> {
    let line = match action {
        Action::Tick => return tick(before, after),
        Action::Command(at) => command(model, before, after, at as usize),
        Action::Finish(at) => format!("{} has finished its work", name(at as usize)),
        Action::Crash(at) => format!("{} crashes", name(at as usize)),
        Action::Replicate => "the replica gets what the server has".to_owned(),
        Action::Promote => "the server dies, and its replica takes its place".to_owned(),
    };
    vec![line]
}

fn tick(before: &State, after: &State) -> Vec<String> {
    let mut lines = Vec::new();
    if before.key.is_some() && after.key.is_none() {
        lines.push("the lock runs out".to_owned());
    }
    let clients = before.clients.iter().zip(&after.clients).enumerate();
    let stopped = clients.filter(|(_, (before, after))| before.at != after.at);
    lines.extend(stopped.map(|(at, _)| format!("{} stops, as its time is over", name(at))));
    lines
}

fn command(model: &Lock, before: &State, after: &State, at: usize) -> String {
    let (was, is) = (&before.clients[at], &after.clients[at]);
    let name = name(at);
    let by_time = matches!(
        model.fault,
        Fault::TimeForAName | Fault::TimeForANameAndSkew
    );
    match (was.at, is.at) {
        (Place::Outside, Place::Working) if by_time => {
            format!("{name} sends SETNX with the value {}, and works", is.until)
        }
        (Place::Outside, Place::Working) => {
            format!("{name} sends SET NX PX, and works until {}", is.until)
        }
        (Place::Outside, Place::HalfWay) if by_time => {
            format!("{name} sends GET: {}, over", is.until)
        }
        (Place::Outside, Place::HalfWay) => format!("{name} sends SETNX: the lock is its own"),
        (Place::HalfWay, Place::Working) if by_time => {
            format!(
                "{name} sends GETSET {}: told {}, it works",
                is.until, was.until
            )
        }
        (Place::HalfWay, Place::Working) => format!("{name} sends EXPIRE, and works"),
        (Place::HalfWay, _) => getset_lost(name, before, after),
        (Place::Leaving, Place::Compared) => format!("{name} sends GET: the lock is its own"),
        (Place::Compared, _) => deleted(name, "DEL", before),
        (Place::Leaving, _) if model.fault == Fault::DeletesBlindly => deleted(name, "DEL", before),
        (Place::Leaving, _) => deleted(name, "its compare-and-delete", before),
        _ => format!("{name} finds the lock taken"),
    }
}

fn getset_lost(name: char, before: &State, after: &State) -> String {
    let value = |state: &State| state.key.map_or(0, |key| key.until);
    let (set, told) = (value(after), value(before));
    format!("{name} sends GETSET {set}: told {told}, it has lost")
}

fn deleted(by: char, command: &str, before: &State) -> String {
    let owner = before.key.map(|key| (key.owner as usize, &before.clients));
    let works = |(at, clients): (usize, &[Client; super::CLIENTS])| {
        (name(at) != by).then(|| (name(at), clients[at].at))
    };
    match owner.and_then(works) {
        Some((owner, Place::Working)) => {
            format!("{by} sends {command}: the lock of {owner}, who works, is gone")
        }
        Some((owner, _)) => format!("{by} sends {command}; the lock is {owner}'s"),
        None => format!("{by} sends {command}"),
    }
}
