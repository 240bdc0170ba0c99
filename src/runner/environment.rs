//! The environment of a job: the daemon's, the job's own `env`, and the contract's, each over
//! the one before.
//!
//! The daemon's is handed on as cron's successors in containers do, and as systemd does with a
//! unit's: a `DATABASE_URL` of the pod or unit reaches the job. What is meant for the daemon
//! itself stays with it: its `SOLOIST_*` settings, which may hold the store's password, what the
//! service manager told it, and what was preloaded into it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::scheduler::Attempt;

/// Variables that are about the daemon's own process: sd_notify(3), sd_listen_fds(3),
/// systemd.exec(5), ld.so(8).
const KEPT_BACK: [&str; 13] = [
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "MAINPID",
    "NOTIFY_SOCKET",
    "OLDPWD",
    "PWD",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// How the daemon's own settings begin.
const SETTINGS: &str = "SOLOIST_";

/// `PATH` where neither the daemon nor the job has one: what a login would have.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every job of this daemon inherits.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    /// The name of this replica.
    replica: Arc<str>,
    inherited: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Keeps of `variables` what is handed on.
    pub(super) fn passing_on(
        replica: String,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut inherited: BTreeMap<_, _> = variables
            .into_iter()
            .filter(|(name, _)| is_passed_on(name))
            .collect();
        inherited
            .entry("PATH".into())
            .or_insert_with(|| DEFAULT_PATH.into());
        Self {
            replica: replica.into(),
            inherited,
        }
    }

    /// The name of this replica.
    pub(super) fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    /// The whole environment of one attempt.
    pub(super) fn of(&self, attempt: &Attempt) -> BTreeMap<OsString, OsString> {
        let mut variables = self.inherited.clone();
        let own = &attempt.job.command.env;
        variables.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
        variables.extend(
            self.contract(attempt)
                .map(|(name, value)| (name.into(), value.into())),
        );
        variables
    }

    /// What the contract promises to every job; the job's own `env` can't change any of it.
    fn contract(&self, attempt: &Attempt) -> [(&'static str, String); 8] {
        [
            ("SOLOIST_JOB", attempt.job.name.to_string()),
            ("SOLOIST_SCHEDULED_AT", attempt.scheduled_at.to_string()),
            ("SOLOIST_ATTEMPT", attempt.number.to_string()),
            ("SOLOIST_FENCING_TOKEN", attempt.token.to_string()),
            ("SOLOIST_RUN_ID", attempt.run_id.to_string()),
            ("SOLOIST_REPLICA", self.replica.to_string()),
            // No job is sharded yet, and the contract gives these two to those that aren't.
            ("SOLOIST_SHARD_INDEX", "0".to_owned()),
            ("SOLOIST_SHARD_TOTAL", "1".to_owned()),
        ]
    }
}

fn is_passed_on(name: &OsStr) -> bool {
    let setting = name.as_encoded_bytes().starts_with(SETTINGS.as_bytes());
    !setting && !KEPT_BACK.iter().any(|kept_back| name == *kept_back)
}
