//! The environment of a job: what describes the host and its user, the job's own `env`, and the
//! contract's, each over the one before.
//!
//! Of the daemon's own environment only [`PASSED_ON`] reaches a job. What configures a program,
//! its secrets above all, is named in the table: `env = { DATABASE_URL = "${DATABASE_URL}" }`.
//! docs/decisions/0010-environment.md has the reasons.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::scheduler::Attempt;
use crate::scheduler::variable::Variable;

/// What of the daemon's environment reaches its jobs, apart from [`OF_USER`] and `LC_*`.
const PASSED_ON: [&str; 15] = [
    "PATH",
    // How programs talk, and what time they show.
    "LANG",
    "LANGUAGE",
    "TZ",
    // Where this host wants temporary files.
    "TMPDIR",
    // How this host's network is to be used, and whom it trusts. Programs differ in whether they
    // read capitals (curl(1)).
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// What is said of the daemon's user: not for a job that runs as another, which is told of its own.
const OF_USER: [&str; 4] = ["HOME", "USER", "LOGNAME", "SHELL"];

/// How the single kinds of a locale begin, such as `LC_TIME` (locale(7)).
const LOCALE: &str = "LC_";

/// `PATH` where neither the daemon nor the job has one: what a login would have.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every job of this daemon inherits.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    /// The name of this replica.
    replica: Arc<str>,
    inherited: BTreeMap<OsString, OsString>,
    /// What of the contract is told.
    told: &'static [Variable],
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
            told: &Variable::ALL,
        }
    }

    /// Keeps all of `variables`: for a command that a person, or a script, runs under a lease.
    pub(super) fn whole(
        name: String,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self {
            replica: name.into(),
            inherited: variables.into_iter().collect(),
            told: &[Variable::FencingToken, Variable::RunId],
        }
    }

    /// The name of this replica.
    pub(super) fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    /// The whole environment of one attempt, but for what a job with a `user` is told of it:
    /// that is known once the user was looked up, and stands back behind the job's own `env`.
    pub(super) fn of(&self, attempt: &Attempt) -> BTreeMap<OsString, OsString> {
        let mut variables = self.inherited.clone();
        let command = &attempt.job.command;
        if command.user.is_some() {
            variables.retain(|name, _| !is_one_of(&OF_USER, name));
        }
        let own = command.env.iter();
        variables.extend(own.map(|(name, value)| (name.into(), value.into())));
        variables.extend(
            self.contract(attempt)
                .map(|(name, value)| (name.into(), value.into())),
        );
        variables
    }

    /// What the contract promises to every job; the job's own `env` can't change any of it.
    fn contract(&self, attempt: &Attempt) -> impl Iterator<Item = (&'static str, String)> {
        let value = |variable: Variable| variable.of(attempt, &self.replica);
        let told = self.told.iter();
        told.map(move |variable| (variable.name(), value(*variable)))
    }
}

fn is_passed_on(name: &OsStr) -> bool {
    is_one_of(&PASSED_ON, name)
        || is_one_of(&OF_USER, name)
        || name.as_encoded_bytes().starts_with(LOCALE.as_bytes())
}

fn is_one_of(names: &[&str], name: &OsStr) -> bool {
    names.iter().any(|one| name == *one)
}
