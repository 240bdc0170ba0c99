//! Requests as the scripts read them: the order of the arguments is in the header of each file
//! under `lua/`.
//!
//! Must never: put the caller's own time into a request, save where the protocol asks for it.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::Cmd;

use super::CALL_TIMEOUT;
use super::keys::{CURRENT_LAYOUT, Keys};
use super::news;
use super::record::{LinePart, NO_AGENDA, line_parts, value_of};
use super::reply::Shown;
use super::scripts::{Call, Operation};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Caller, Replica, RunId, Scope};
use crate::scheduler::time::{Timestamp, millis};
use crate::store::draft::{Changes, Line};
use crate::store::engine::{Room, Terms, Window};
use crate::store::history::encode_output;
use crate::store::rules::{Group, STEP_BACK_TOLERATED_US, time_us};
use crate::store::{ABANDONED_AFTER, REPLICA_RETENTION, ReplicaInfo};

/// Stands for the value of a job on which nothing hangs.
const NOT_COMPARED: &str = "*";

/// Stands for the value of a job that goes.
const FORGOTTEN: &str = "-";

/// A script with its keys and arguments; which process the server is, is added when it is sent.
pub(super) struct Request {
    operation: Operation,
    keys: Vec<String>,
    arguments: Arguments,
}

impl Request {
    /// The command, for a server that was this process when it was connected to.
    pub(super) fn command(&self, call: Call, process: &str) -> Cmd {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let mut command = self.operation.evaluate(call, &keys);
        if self.operation != Operation::Output {
            command.arg(process);
        }
        command.arg(&self.arguments.0);
        command
    }
}

/// For how long nobody else is promised anything.
#[derive(Clone, Copy)]
pub(super) enum Peace {
    /// Until the step is taken, at most.
    ForAStep(Duration),
    /// Whatever is taken meanwhile.
    Lasting(Duration),
}

/// What is asked of a server beside what it shows.
#[derive(Clone, Copy)]
pub(super) enum Wish<'b> {
    /// Nothing: it holds the ledger by itself.
    Nothing,
    /// How it stands among several.
    Standing,
    /// That it takes no step of an older ballot, and leaves whoever asks in peace.
    Promise { ballot: &'b str, peace: Peace },
}

/// What a step begins with.
pub(super) fn read(keys: &Keys, jobs: &[JobName], wish: Wish<'_>) -> Request {
    let mut arguments = Arguments::default();
    let nothing = Peace::ForAStep(Duration::ZERO);
    let (ballot, peace) = match wish {
        Wish::Nothing => ("", nothing),
        Wish::Standing => ("?", nothing),
        Wish::Promise { ballot, peace } => (ballot, peace),
    };
    let (time, lasting) = match peace {
        Peace::ForAStep(time) => (time, ""),
        Peace::Lasting(time) => (time, "1"),
    };
    arguments.text(ballot);
    arguments.text(time.as_micros().to_string());
    arguments.text(lasting);
    for job in jobs {
        arguments.text(job.as_str());
    }
    Request {
        operation: Operation::Read,
        keys: vec![keys.jobs.clone()],
        arguments,
    }
}

/// What a step wants written, if what it hangs on is still as it was shown.
pub(super) fn write(keys: &Keys, terms: &Terms, shown: &Shown, changes: &Changes) -> Request {
    accept(keys, terms, shown, changes, ["", ""])
}

/// Until when a step may be written. Where the caller doesn't know the store's time yet, that is
/// for as long as anybody waits for it: stuck on its way, it would take something for nobody.
fn write_by(terms: &Terms, shown: &Shown) -> Option<Timestamp> {
    let decided_at = time_us(&shown.reading.group, shown.reading.clock_us).div_euclid(1000);
    let decided_at = Timestamp::from_millis(decided_at);
    match terms.send_by {
        // What was decided after the deadline has taken it into account.
        Some(limit) => Some(limit).filter(|limit| decided_at <= *limit),
        None => (terms.room == Room::Takes).then(|| decided_at + CALL_TIMEOUT),
    }
}

/// The same of one of several servers, if it has taken the step of the first ballot and promised
/// the second.
pub(super) fn accept(
    keys: &Keys,
    terms: &Terms,
    shown: &Shown,
    changes: &Changes,
    ballots: [&str; 2],
) -> Request {
    let mut arguments = Arguments::default();
    arguments.text(&shown.process);
    arguments.text(shown.reading.clock_us.to_string());
    arguments.text(STEP_BACK_TOLERATED_US.to_string());
    let write_by = write_by(terms, shown).map(Timestamp::as_millis);
    arguments.text(write_by.map_or(String::new(), |limit| limit.to_string()));
    arguments.text(CURRENT_LAYOUT);
    arguments.text(&shown.epoch);
    arguments.group(&shown.reading.group, changes.group.as_ref());
    arguments.text(&keys.history_prefix);
    arguments.text(&keys.output_prefix);
    arguments.text(&keys.events);
    arguments.text(news::message(&changes.news));
    ballots
        .into_iter()
        .for_each(|ballot| arguments.text(ballot));
    arguments.text(keys.spread.publish());
    arguments.text(shown.values.len().to_string());
    arguments.jobs(&shown.values, changes);
    for line in &changes.lines {
        arguments.line(line);
    }
    Request {
        operation: match terms.room {
            Room::Takes => Operation::Write,
            Room::Frees | Room::Tidies => Operation::WriteWithoutRoom,
        },
        keys: written(keys, changes),
        arguments,
    }
}

/// All that is written to. The script finds histories and outputs by itself; they are named as a
/// cluster looks at what is named before it lets a script run. While a slot moves, a line to a
/// key that is elsewhere would be refused in the middle of the step, and be lost.
fn written(keys: &Keys, changes: &Changes) -> Vec<String> {
    let lines = changes.lines.iter();
    let of_lines = lines.flat_map(|line| {
        let output = line.output.as_ref().map(|_| keys.output(&line.job));
        std::iter::once(keys.history(&line.job)).chain(output)
    });
    let records = [keys.jobs.clone(), keys.agenda.clone()];
    records.into_iter().chain(of_lines).collect()
}

/// Has one of several servers change by what it lacks of another one.
pub(super) fn adopt(keys: &Keys, adoption: &Adoption<'_>) -> Request {
    let mut arguments = Arguments::default();
    let (how, next_mark, ballots, joins) = match adoption.how {
        Adopted::Aside { next_mark } => ("aside", next_mark, [""; 3], false),
        Adopted::Counts { ballots, joins } => match adoption.mark {
            None => ("here", "", ballots, joins),
            Some(_) => ("swap", "", ballots, joins),
        },
    };
    for text in [how, adoption.process, adoption.mark.unwrap_or_default()] {
        arguments.text(text);
    }
    arguments.text(next_mark);
    ballots
        .into_iter()
        .for_each(|ballot| arguments.text(ballot));
    arguments.text(if joins { "1" } else { "" });
    arguments.text(&keys.history_prefix);
    arguments.text(&keys.output_prefix);
    arguments.text(adoption.values.len().to_string());
    for (field, value) in adoption.values {
        arguments.bytes(field.to_vec());
        arguments.bytes(value.to_vec());
    }
    for field in adoption.gone {
        arguments.bytes(field.to_vec());
    }
    Request {
        operation: Operation::Adopt,
        keys: vec![
            keys.jobs.clone(),
            keys.agenda.clone(),
            keys.aside.clone(),
            keys.aside_agenda.clone(),
        ],
        arguments,
    }
}

/// See [`adopt`].
pub(super) struct Adoption<'a> {
    /// The process that it was when it was read; another one changes nothing.
    pub(super) process: &'a str,
    /// The mark of what it has put aside, where that is to change, or to take its place.
    pub(super) mark: Option<&'a str>,
    /// Fields of the jobs hash that change or are new, with their values.
    pub(super) values: &'a [(&'a [u8], &'a [u8])],
    /// Fields that go.
    pub(super) gone: &'a [&'a [u8]],
    pub(super) how: Adopted<'a>,
}

/// What becomes of what a server adopts.
#[derive(Clone, Copy)]
pub(super) enum Adopted<'a> {
    /// It is put aside, under a mark that tells it from all that lay there before.
    Aside { next_mark: &'a str },
    /// It is what the server holds.
    Counts {
        /// The one that it promised, that of its last step when it was read, and the one that
        /// stands for what it holds then.
        ballots: [&'a str; 3],
        /// It counts from now on, as the process that it is.
        joins: bool,
    },
}

/// Longer ago than anything: a century.
const EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub(super) fn observe(keys: &Keys, caller: &Caller, info: &ReplicaInfo, scope: Scope) -> Request {
    let mut arguments = Arguments::default();
    arguments.text(STEP_BACK_TOLERATED_US.to_string());
    arguments.text(CURRENT_LAYOUT);
    arguments.text(caller.replica.id.to_string());
    arguments.text(told(&caller.replica, info));
    arguments.text(match scope {
        Scope::Overdue => "overdue",
        Scope::All => "all",
    });
    let window = Window::of(scope, Timestamp::default());
    arguments.text(window.limit.to_string());
    arguments.millis(match scope {
        Scope::Overdue => ABANDONED_AFTER,
        Scope::All => EVER,
    });
    arguments.millis(REPLICA_RETENTION);
    Request {
        operation: Operation::Observe,
        keys: vec![
            keys.jobs.clone(),
            keys.agenda.clone(),
            keys.replicas.clone(),
            keys.tables.clone(),
        ],
        arguments,
    }
}

/// What a replica says of itself, as the ledger keeps it.
fn told(replica: &Replica, info: &ReplicaInfo) -> String {
    serde_json::to_string(&(&replica.name, info)).unwrap_or_default()
}

pub(super) fn output(keys: &Keys, job: &JobName, run_id: RunId) -> Request {
    let mut arguments = Arguments::default();
    arguments.text(run_id.to_string());
    Request {
        operation: Operation::Output,
        keys: vec![keys.history(job), keys.output(job)],
        arguments,
    }
}

#[derive(Default)]
struct Arguments(Vec<Vec<u8>>);

impl Arguments {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.0.push(bytes);
    }

    fn text(&mut self, text: impl Into<String>) {
        self.bytes(text.into().into_bytes());
    }

    fn millis(&mut self, duration: Duration) {
        self.text(millis(duration).to_string());
    }

    /// The epoch where it changes, and the marks.
    fn group(&mut self, read: &Group, group: Option<&Group>) {
        let becomes = group.unwrap_or(read);
        self.text(match becomes.has_epoch_of(read) {
            true => String::new(),
            false => serde_json::to_string(becomes).unwrap_or_default(),
        });
        self.text(becomes.token.to_string());
        self.text(becomes.clock_us.to_string());
    }

    fn jobs(&mut self, values: &BTreeMap<JobName, Option<String>>, changes: &Changes) {
        for (job, read) in values {
            self.text(job.as_str());
            self.text(match changes.compared.contains(job) {
                true => read.as_deref().unwrap_or_default(),
                false => NOT_COMPARED,
            });
            match changes.records.get(job) {
                Some(kept) => {
                    self.text(value_of(kept));
                    let agenda = kept.agenda.map(|at| at.as_millis().to_string());
                    self.text(agenda.unwrap_or_else(|| NO_AGENDA.to_owned()));
                }
                None => {
                    self.text(match changes.forgotten.contains(job) {
                        true => FORGOTTEN,
                        false => "",
                    });
                    self.text(NO_AGENDA);
                }
            }
        }
    }

    fn line(&mut self, line: &Line) {
        let parts = line_parts(&line.entry);
        self.text(line.job.as_str());
        self.text(line.retention.limit.to_string());
        self.millis(line.retention.age);
        self.text(line.entry.ended_at.as_millis().to_string());
        self.bytes(line.output.as_ref().map(encode_output).unwrap_or_default());
        self.text(parts.len().to_string());
        for LinePart { name, value } in parts {
            self.text(name);
            self.text(value);
        }
    }
}
