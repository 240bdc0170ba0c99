//! A job as the scheduler knows it: validated, with every default filled in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lease::{Definition, LeaseName, Occurrence, Retention, Telling, Topics};
use super::notify::Notify;
use super::policy::{CatchUp, Concurrency, Retry, Tags};
use super::request::HttpRequest;
use super::schedule::Schedule;
use super::spread::Spread;
use super::time::Timestamp;

/// The longest name of a job, replica or namespace, in bytes: they become parts of keys.
pub const NAME_LENGTH_LIMIT: usize = 100;

/// A job's name: 1 to 100 of `A-Z a-z 0-9 . _ -`, the first of them a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobName(Arc<str>);

/// Why a text can't be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing there.
    #[error("a name can't be empty")]
    Empty,
    /// Longer than [`NAME_LENGTH_LIMIT`].
    #[error("a name has at most {NAME_LENGTH_LIMIT} characters")]
    TooLong,
    /// A character that would be ambiguous in a key, a log line or a shell.
    #[error(
        "`{0}` can't stand here: a name is made of letters, digits, `.`, `_` and `-`, and starts with a letter or digit"
    )]
    Character(char),
}

/// Checks the rule that all names share.
pub fn check_name(text: &str) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::Character(first));
    }
    if let Some(bad) = text
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c)))
    {
        return Err(NameError::Character(bad));
    }
    if text.len() > NAME_LENGTH_LIMIT {
        return Err(NameError::TooLong);
    }
    Ok(())
}

impl JobName {
    /// Checks and takes a name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        check_name(text)?;
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As what is kept of a lease is called, where a ledger keeps leases and no jobs.
    pub(crate) fn of_lease(name: &LeaseName) -> Self {
        Self(name.as_str().into())
    }

    /// What something is called in a ledger of jobs, or of leases.
    #[cfg(any(feature = "redis", feature = "sqlite"))]
    pub(crate) fn in_ledger(text: &str) -> Option<Self> {
        let lease = LeaseName::new(text).ok();
        lease.map(|name| Self::of_lease(&name))
    }
}

impl TryFrom<String> for JobName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<JobName> for String {
    fn from(name: JobName) -> String {
        name.as_str().to_owned()
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A named entry of the cron table.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name; leases, history and `H` go by it.
    pub name: JobName,
    /// For people.
    pub description: Option<String>,
    /// When it is due.
    pub schedule: Schedule,
    /// A disabled job is shown and never claimed.
    pub enabled: bool,
    /// What an attempt runs.
    pub command: CommandSpec,
    /// How long an attempt may run before it is ended; none by default.
    pub timeout: Option<Duration>,
    /// From TERM to KILL. Default 5 s; cut to fit when a lease is being lost.
    pub kill_grace: Duration,
    /// How long a grant lasts unless it is renewed. Default: the scheduler's, 15 s.
    pub lease_ttl: Duration,
    /// How late an occurrence may start at most. Default 1 min.
    pub starting_deadline: Duration,
    /// What becomes of an occurrence whose holder vanished.
    pub on_crash: OnCrash,
    /// Attempts of one occurrence over all causes and replicas. Default 10.
    pub max_attempts: u32,
    /// How much of its past is kept. Default: 1000 attempts, 30 days.
    pub retention: Retention,
    /// Up to how long after its instant an occurrence starts, the same on every replica for one
    /// occurrence. Default: none.
    pub random_delay: Duration,
    /// What becomes of occurrences that nobody could claim in time.
    pub catch_up: CatchUp,
    /// What becomes of an occurrence that finds the job busy.
    pub concurrency: Concurrency,
    /// What follows a failure.
    pub retry: Retry,
    /// In how many parts each occurrence runs, each under a lease of its own; 1 or more.
    pub shards: u32,
    /// The tags that a replica must have to run it. Default: none.
    pub run_on: Tags,
    /// The jobs whose success brings its occurrences about, in the place of a schedule.
    pub after: Vec<JobName>,
    /// An attempt that runs for longer is told of; none by default.
    pub warn_after: Option<Duration>,
    /// Its occurrences are looked at only once somebody outside said that it is time: another
    /// timer's job, which may be taken away there. By default that is the scheduler's own affair.
    pub waits_for_poke: bool,
    /// Who is told how it goes. Default: nobody.
    pub notify: Notify,
    /// All of the above in short, and the revision of its table. Replicas whose tables differ go
    /// by it: only the newest runs the job. One that says nothing by default: each is as good.
    pub definition: Definition,
}

impl Job {
    /// A job that runs `program` by `schedule`, everything else as the contract has it by
    /// default.
    pub fn new(name: JobName, schedule: Schedule, program: Program) -> Self {
        let minute = Duration::from_secs(60);
        Self {
            name,
            description: None,
            schedule,
            enabled: true,
            command: CommandSpec::new(program),
            timeout: None,
            kill_grace: Duration::from_secs(5),
            lease_ttl: Duration::from_secs(15),
            starting_deadline: minute,
            on_crash: OnCrash::default(),
            max_attempts: 10,
            retention: Retention {
                limit: 1000,
                age: minute * 60 * 24 * 30,
            },
            random_delay: Duration::ZERO,
            catch_up: CatchUp::default(),
            concurrency: Concurrency::default(),
            retry: Retry::default(),
            shards: 1,
            run_on: Tags::new(),
            after: Vec::new(),
            warn_after: None,
            waits_for_poke: false,
            notify: Notify::default(),
            definition: Definition::default(),
        }
    }

    /// How long after an instant it starts: the part of `random_delay` that is drawn for it.
    pub fn delay(&self, at: Timestamp) -> Duration {
        let longest = self.random_delay;
        if longest.is_zero() {
            return longest;
        }
        let occurrence = Occurrence {
            job: self.name.clone(),
            scheduled_at: at,
        };
        let part = Spread::of("delay", &occurrence).fraction();
        let millis = longest.mul_f64(part).as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// What the store is to tell of its occurrences' ends; none where nobody wants to know.
    pub(super) fn telling(&self) -> Option<Telling> {
        let Notify { telling, .. } = &self.notify;
        (!self.notify.is_nobody()).then(|| match telling.to.is_empty() {
            // A ping goes with each end, and is no news.
            true => Telling {
                topics: Topics::default(),
                ..telling.clone()
            },
            false => telling.clone(),
        })
    }

    /// Until when an occurrence may start.
    pub fn start_by(&self, at: Timestamp) -> Timestamp {
        at + self.delay(at) + self.starting_deadline
    }
}

/// What an attempt runs, and in what surroundings.
///
/// Values of `env` may be secrets: [`fmt::Debug`] shows the names alone.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program, script or request.
    pub program: Program,
    /// Added to what every job is given, and over it.
    pub env: BTreeMap<String, String>,
    /// Where it runs; the daemon's own working directory by default.
    pub working_dir: Option<PathBuf>,
    /// Who it runs as, by name or by an id in digits; whoever the daemon runs as by default.
    pub user: Option<String>,
    /// Its group, by name or by an id in digits; the user's own first group by default.
    pub group: Option<String>,
    /// What is taken from the modes of files that it makes; the daemon's own by default.
    pub umask: Option<u32>,
    /// Exit codes that count as success. Default: 0 alone.
    pub success_codes: Vec<i32>,
    /// How many bytes of stdout, and of stderr, are kept of one attempt. Default 8 KiB each.
    pub output_limit: usize,
}

impl CommandSpec {
    /// A program in the surroundings that the contract gives by default.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            env: BTreeMap::new(),
            working_dir: None,
            user: None,
            group: None,
            umask: None,
            success_codes: vec![0],
            output_limit: 8 * 1024,
        }
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field has to be thought of here.
        let Self {
            program,
            env,
            working_dir,
            user,
            group,
            umask,
            success_codes,
            output_limit,
        } = self;
        let names: Vec<&String> = env.keys().collect();
        f.debug_struct("CommandSpec")
            .field("program", program)
            .field("env", &names)
            .field("working_dir", working_dir)
            .field("user", user)
            .field("group", group)
            .field("umask", umask)
            .field("success_codes", success_codes)
            .field("output_limit", output_limit)
            .finish()
    }
}

/// `command`, `shell` or `http` of a job, or a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// An argument vector, given to execve(2) as it stands; never empty.
    Command(Vec<String>),
    /// A script for `/bin/sh -c`.
    Shell(String),
    /// A request, which the job is the answer to. `env`, `working_dir` and `success_codes` don't
    /// apply.
    Http(Box<HttpRequest>),
    /// A function of the program that embeds the library, which knows it by the job's name. Nothing
    /// of a [`CommandSpec`] applies.
    Function,
}

/// What becomes of an occurrence whose holder vanished in the middle of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCrash {
    /// It is run again as the next attempt: at least once.
    #[default]
    Rerun,
    /// It is closed as lost: at most once.
    Skip,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_shown_for_debugging_names_its_variables_and_keeps_their_values() {
        let command = CommandSpec {
            program: Program::Shell("true".to_owned()),
            env: BTreeMap::from([("PASSWORD".to_owned(), "hunter2".to_owned())]),
            working_dir: None,
            user: None,
            group: None,
            umask: None,
            success_codes: vec![0],
            output_limit: 8192,
        };
        let shown = format!("{command:?} {command:#?}");
        assert!(shown.contains("PASSWORD"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
