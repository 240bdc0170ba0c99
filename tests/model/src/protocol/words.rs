//! A trace in words, for people.
//!
//! Must never: tell of a step anything that the states before and after it do not say.

use super::setup::{Jump, Wipe};
use super::state::{AHEAD, Answer, Call, Doing, Life, PARTS, Replica, Request, State, Verb};
use super::{Action, Protocol, asked};

/// The steps of a trace, each with its time, and what is broken in the end.
pub fn trace(model: &Protocol, path: &[(State, Option<Action>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for pair in path.windows(2) {
        let (before, after) = (&pair[0].0, &pair[1].0);
        let step = pair[0].1.map(|action| step(model, before, action, after));
        for words in step.into_iter().flatten() {
            lines.push(format!("t={} {words}", after.now));
        }
    }
    if let Some((last, _)) = path.last()
        && let Some(law) = model.broken(last)
    {
        let running: Vec<String> = (0..last.replicas.len())
            .filter(|at| is_running(&last.replicas[*at]))
            .map(|at| {
                format!(
                    "{} runs under token {}",
                    name(at as u8),
                    last.replicas[at].token
                )
            })
            .collect();
        let end = match running.len() > 1 {
            true => format!(": {}", running.join(", ")),
            false => String::new(),
        };
        lines.push(format!("t={} BROKEN: {}{end}", last.now, law.name()));
    }
    lines
}

fn is_running(replica: &Replica) -> bool {
    replica.life == Life::Alive && replica.doing == Doing::Running
}

fn name(at: u8) -> char {
    (b'A' + at) as char
}

/// A tick says nothing but what it did.
fn step(model: &Protocol, before: &State, action: Action, after: &State) -> Vec<String> {
    let line = match action {
        Action::Tick => return tick(before, after),
        Action::Deliver(_) | Action::DeliverStray(_) => deliver(model, before, action),
        Action::Hear(at) => hear(before, after, at),
        Action::TakeOver(at) => take_over(after, at),
        Action::Look(at) => look(after, at),
        Action::Claim(at, occurrence) => format!("{} claims #{}", name(at), occurrence + 1),
        Action::Reclaim(at) => format!("{} claims what was handed over", name(at)),
        Action::Resend(at) => format!("{} sends its claim again", name(at)),
        Action::Renew(at) => format!("{} asks to renew its lease", name(at)),
        Action::End(at) => format!("{}'s job ends", name(at)),
        Action::Release(at) => format!("{} gives its lease back", name(at)),
        Action::GiveUp(at) => format!("{}'s call fails", name(at)),
        Action::Copy(at) => format!("{}'s request is on its way twice", name(at)),
        Action::Crash(at) => format!("{} crashes", name(at)),
        Action::Freeze(at) => format!("{}'s host stands still", name(at)),
        Action::Thaw(at) => format!("{}'s host goes on", name(at)),
        Action::Leave(at) => format!("{} hears of the elected master", name(at)),
        Action::Save => "what was written so far is saved".to_owned(),
        Action::Pause => "somebody pauses the job".to_owned(),
        Action::Unpause => "somebody resumes the job".to_owned(),
        Action::Wipe => match model.setup.wipe {
            Wipe::Empty => "the store loses all its data".to_owned(),
            Wipe::Older => "the store falls back to what was saved".to_owned(),
            Wipe::Election { .. } => {
                "a server with what was saved is elected; the former one lives on".to_owned()
            }
        },
        Action::Jump => match model.setup.jump {
            Jump::Forward => "the store's clock steps forward".to_owned(),
            _ => "the store's clock steps back".to_owned(),
        },
    };
    vec![line]
}

fn tick(before: &State, after: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, (before, after)) in before.replicas.iter().zip(&after.replicas).enumerate() {
        let name = name(at as u8);
        let given_up = before.call != Call::None && after.call == Call::None;
        if is_running(before) && !is_running(after) {
            lines.push(format!("{name}'s guardian has killed its job"));
        } else if given_up {
            lines.push(format!("{name} gives up its call, as it takes too long"));
        }
    }
    lines
}

fn deliver(model: &Protocol, before: &State, action: Action) -> String {
    let Some((at, request)) = asked(before, action) else {
        return String::new();
    };
    let (verb, name) = (verb(request), name(at));
    let by = match before.former.is_some() && before.replicas[at as usize].behind {
        true => "the former master",
        false => "the store",
    };
    let answer = answer(model, before, action);
    match action {
        Action::DeliverStray(_) => format!("{by} hears an old {verb} of {name}: {answer}"),
        _ => format!("{by} hears {name}'s {verb}: {answer}"),
    }
}

fn verb(request: Request) -> &'static str {
    match request.verb {
        Verb::Claim => "claim",
        Verb::TakeOver => "takeover",
        Verb::Renew => "renewal",
        Verb::Release => "release",
    }
}

/// What the store answers, found by asking a copy of it.
fn answer(model: &Protocol, before: &State, action: Action) -> String {
    match model.answer_to(before, action).unwrap_or_default() {
        Answer::Granted {
            token,
            attempt,
            deadline,
            ..
        } => {
            let until = instant(deadline);
            format!("attempt {attempt}, token {token}, until {until}")
        }
        Answer::Held(held) => format!(
            "token {} has it until {}",
            held.token,
            instant(held.deadline)
        ),
        Answer::Finished => "nothing to be had".to_owned(),
        Answer::NotNow => "not now".to_owned(),
        Answer::Grace(wait) => format!("nothing is granted for {wait}"),
        Answer::Renewed(deadline) => format!("until {}", instant(deadline)),
        Answer::Refused => "refused".to_owned(),
        Answer::Released => "done".to_owned(),
    }
}

/// A moment of the store's clock, as if it had never stepped.
fn instant(deadline: u8) -> String {
    let (ticks, parts) = ((deadline / PARTS).saturating_sub(AHEAD), deadline % PARTS);
    match parts {
        0 => format!("{ticks}"),
        _ => format!("{ticks} and {parts} ms"),
    }
}

fn hear(before: &State, after: &State, at: u8) -> String {
    let (was, is) = (&before.replicas[at as usize], &after.replicas[at as usize]);
    let name = name(at);
    match (was.doing, is.doing) {
        (Doing::Claiming, Doing::Running) => {
            format!(
                "{name} hears of it: its job starts, to be killed at {}",
                is.kill_at
            )
        }
        (Doing::Claiming, _) => format!("{name} hears of it too late to start anything"),
        _ => format!("{name} hears that its lease is lost, and kills its job"),
    }
}

fn take_over(after: &State, at: u8) -> String {
    let watched = after.replicas[at as usize].watched.unwrap_or_default();
    let until = instant(watched.deadline);
    format!(
        "{} takes #{} over: it has watched token {}, until {until}",
        name(at),
        watched.occurrence + 1,
        watched.token
    )
}

fn look(after: &State, at: u8) -> String {
    let Some(seen) = after.replicas[at as usize].seen else {
        return format!("{} looks", name(at));
    };
    let (token, until) = (seen.sighting.token, instant(seen.sighting.deadline));
    format!("{} looks: token {token} has it until {until}", name(at))
}
