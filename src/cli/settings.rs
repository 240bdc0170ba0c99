//! What holds for a command: flag, `SOLOIST_*` variable, file, default, in this order.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::args::Global;
use super::{Exit, complain, print_error, stderr_has_colour};
use crate::config::{self, Config, Rendering, Report, SchedulerConfig, Strictness};
use crate::guardian::identity::Identity;
use crate::scheduler::job::{OnCrash, check_name};
use crate::store_url;

/// The table, when none is named.
const DEFAULT_TABLE: &str = "jobs.toml";

/// The table with what flags and environment say over it: `config.scheduler` is what holds.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The file it came from.
    pub(crate) path: PathBuf,
    /// The table, overridden.
    pub(crate) config: Config,
}

impl Settings {
    /// For a command that needs the table; says on stderr what is wrong. Warnings are in
    /// `config.warnings`, for commands that people check a table with.
    pub(crate) fn load(global: &Global, strictness: Strictness) -> Result<Self, Exit> {
        let path = table(global).unwrap_or_else(|| DEFAULT_TABLE.into());
        // Asked once for each: the services behind it may be far away, and jobs are many.
        let answers = RefCell::new(HashMap::new());
        let accounts = |user: Option<&str>, group: Option<&str>| {
            let identity = Identity {
                user: user.map(str::to_owned),
                group: group.map(str::to_owned),
            };
            let mut answers = answers.borrow_mut();
            let answer = answers.entry(identity).or_insert_with_key(Identity::check);
            answer
                .clone()
                .map_err(|refusal| (refusal.cause, refusal.cure))
        };
        let mut config = config::load_as(&path, strictness, &accounts).map_err(|error| {
            show(&error.0);
            Exit::Usage
        })?;
        override_by(global, &mut config.scheduler)?;
        warn_of_failovers(&mut config);
        Ok(Self { path, config })
    }

    /// For a command that only talks to the store: without any table, flags, environment and
    /// defaults have to do. A table that was named has to be there.
    pub(crate) fn load_for_store(
        global: &Global,
    ) -> Result<(SchedulerConfig, Option<Config>), Exit> {
        if table(global).is_none() && !Path::new(DEFAULT_TABLE).exists() {
            let mut scheduler = SchedulerConfig::default();
            override_by(global, &mut scheduler)?;
            return Ok((scheduler, None));
        }
        let settings = Self::load(global, Strictness::Look)?;
        Ok((settings.config.scheduler.clone(), Some(settings.config)))
    }
}

/// The table that flag or environment name; a variable set to nothing counts as not set.
fn table(global: &Global) -> Option<PathBuf> {
    let config = global.config.as_ref()?;
    (!config.is_empty()).then(|| config.into())
}

/// A variable that is set to nothing counts as not set.
fn given(value: Option<&String>) -> Option<&String> {
    value.filter(|value| !value.is_empty())
}

fn override_by(global: &Global, scheduler: &mut SchedulerConfig) -> Result<(), Exit> {
    if let Some(store) = given(global.store.as_ref()) {
        config::check_store(store).map_err(|(message, hint)| {
            let message = format!("`--store` or SOLOIST_STORE: {message}");
            complain(Exit::Usage, &message, Some(&hint))
        })?;
        scheduler.store = Some(store.clone());
    }
    if let Some(namespace) = given(global.namespace.as_ref()) {
        scheduler.namespace = checked_name("--namespace", "SOLOIST_NAMESPACE", namespace)?;
    }
    Ok(())
}

/// Says what a failover of the store may do to jobs that may run once only.
fn warn_of_failovers(config: &mut Config) {
    let scheduler = &config.scheduler;
    let url = scheduler.store.as_deref().unwrap_or_default();
    if scheduler.min_replicas_ack > 0 || !store_url::follows_elections(url) {
        return;
    }
    let once: Vec<_> = config
        .jobs
        .iter()
        .filter(|job| job.on_crash == OnCrash::Skip)
        .collect();
    let Some(first) = once.first() else {
        return;
    };
    let whose = match once.len() - 1 {
        0 => format!("`{}`", first.name),
        1 => format!("`{}` and another job", first.name),
        others => format!("`{}` and {others} other jobs", first.name),
    };
    let message = format!(
        "{whose} with `on_crash = \"skip\"`: what falls due in the first lease after a failover is missed, and may start twice where replicas are cut off with the former master for longer than that"
    );
    let hint = "set `min_replicas_ack = 1` in [scheduler]: then a grant counts when a replica of the server has it; see docs/guarantees.md";
    config.warnings.warn(message, hint);
}

/// A name that came by a flag or a variable.
pub(crate) fn checked_name(flag: &str, variable: &str, name: &str) -> Result<String, Exit> {
    match check_name(name) {
        Ok(()) => Ok(name.into()),
        Err(error) => {
            let message = format!("`{flag}` or {variable} is `{name}`: {error}");
            Err(complain(Exit::Usage, &message, None))
        }
    }
}

/// Shows the problems of a table on stderr.
pub(crate) fn show(report: &Report) {
    if report.is_empty() {
        return;
    }
    let rendering = if stderr_has_colour() {
        Rendering::Styled
    } else {
        Rendering::Plain
    };
    print_error(&report.render(rendering));
}
