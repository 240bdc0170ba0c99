//! What can go wrong for whoever embeds the library.
//!
//! Must never: show a store's URL with its password.

use std::fmt;
use std::io;

use crate::store::StoreError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something in the jobs or the scheduler's settings is wrong. Mended in the program.
    #[error("{0}")]
    Invalid(Faults),
    /// The store can't be reached, or refuses. The text names it, without its password.
    #[error("{message}")]
    Store {
        /// What happened, and what helps.
        message: String,
        /// It may work later: the store is away, or another version's still.
        is_temporary: bool,
    },
    /// It was started where no tokio runtime is, on which its functions could run.
    #[error(
        "there is no tokio runtime here for functions to run on: start the scheduler within one, \
         as in a `main` under `#[tokio::main]`"
    )]
    NoRuntime,
    /// The kernel refused a timer: descriptors ran out.
    #[error("this process can have no timer: {0}; raise its limit of open files")]
    Timers(#[source] io::Error),
    /// The scheduler can't have a thread of its own: threads, memory or descriptors ran out.
    #[error(
        "this process can have no thread for the scheduler: {0}; raise its limits of threads and of open files"
    )]
    Thread(#[source] io::Error),
    /// No job that the ledger or this scheduler knows is called so.
    #[error("no job is called `{name}`{}", did_you_mean(.near))]
    UnknownJob {
        /// As it was asked for.
        name: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// The job is disabled: nobody would run it.
    #[error(
        "`{job}` is disabled, so that nothing would run it: take `enabled(false)` from it, in all \
         replicas"
    )]
    Disabled {
        /// Which.
        job: String,
    },
    /// So many of the job's occurrences wait already that no more are written down. What a policy
    /// skips, such as one that a queue has no room for, is written down, and no error: see
    /// [`Handle::trigger`](crate::Handle::trigger).
    #[error(
        "too many occurrences of `{job}` wait for their turn already: `status` tells which replicas \
         there are; see that one of them runs it"
    )]
    Full {
        /// Which.
        job: String,
    },
    /// The scheduler ended in a way it never should: its task panicked, which the log tells of.
    #[error("the scheduler's task failed: {0}")]
    Broken(String),
}

fn did_you_mean(near: &Option<String>) -> String {
    let near = near.as_ref();
    near.map_or(String::new(), |near| format!(": did you mean `{near}`?"))
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let is_temporary = matches!(
            error,
            StoreError::Unreachable { .. } | StoreError::OtherVersion { .. }
        );
        Error::Store {
            message: error.to_string(),
            is_temporary,
        }
    }
}

/// All that is wrong with jobs and settings. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub(super) Vec<Fault>);

/// One thing that is wrong with a job or a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// Of which job; none for a setting of the scheduler.
    pub job: Option<String>,
    /// Which setting, by its name in the builder and in `jobs.toml`.
    pub key: &'static str,
    /// What is wrong with it.
    pub cause: String,
    /// What to do about it.
    pub cure: String,
}

impl Faults {
    /// One by one, in the order of the jobs.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.job {
            Some(job) => write!(f, "job `{}`, `{}`: ", job.escape_debug(), self.key)?,
            None => write!(f, "scheduler, `{}`: ", self.key)?,
        }
        write!(f, "{}; {}", self.cause, self.cure)
    }
}

/// A line each.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Fault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Faults {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_done_is_told_with_what_helps() {
        let job = || "render".to_owned();
        let full = Error::Full { job: job() };
        let told = "too many occurrences of `render` wait for their turn already: `status` tells \
                    which replicas there are; see that one of them runs it";
        assert_eq!(full.to_string(), told);
        let disabled = Error::Disabled { job: job() };
        let told = "`render` is disabled, so that nothing would run it: take `enabled(false)` from \
                    it, in all replicas";
        assert_eq!(disabled.to_string(), told);
    }
}
