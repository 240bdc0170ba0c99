//! What holds for a command: flag, `SOLOIST_*` variable, file, default, in this order.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::args::Global;
use super::{Exit, complain, print_error, stderr_has_colour};
use crate::config::{
    self, Accounts, Broken, Config, Given, Rendering, Report, SchedulerConfig, Strictness,
};
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
        let mut settings = Self::read(global, strictness).map_err(|error| {
            show(&error.0);
            Exit::Usage
        })?;
        override_by(global, &mut settings.config.scheduler)?;
        warn_of_failovers(&mut settings.config);
        Ok(settings)
    }

    /// The table anew, for a daemon that runs: what is wrong with it is for the log.
    pub(crate) fn read_again(global: &Global) -> Result<Config, config::Error> {
        let mut config = Self::read(global, Strictness::Start)?.config;
        // What flags and environment say was right at the start, and is the same.
        let _ = override_by(global, &mut config.scheduler);
        warn_of_failovers(&mut config);
        Ok(config)
    }

    /// The table, without what flags and environment say over it.
    fn read(global: &Global, strictness: Strictness) -> Result<Self, config::Error> {
        let path = path(global);
        let config = with_accounts(|accounts| config::load_as(&path, strictness, accounts))?;
        Ok(Self { path, config })
    }

    /// For a command that only talks to the store: without any table, flags, environment and
    /// defaults have to do. A table that was named has to be there, and one that is broken to say
    /// where the store is, unless that and the namespace were named too: then it is gone without.
    pub(crate) fn load_for_store(
        global: &Global,
    ) -> Result<(SchedulerConfig, Option<Config>), Exit> {
        Self::load_to_ask(global, false)
    }

    /// The same for a command that has nothing to do with jobs: a table without any will do.
    pub(crate) fn load_for_leases(global: &Global) -> Result<SchedulerConfig, Exit> {
        Self::load_to_ask(global, true).map(|(scheduler, _)| scheduler)
    }

    fn load_to_ask(
        global: &Global,
        no_jobs: bool,
    ) -> Result<(SchedulerConfig, Option<Config>), Exit> {
        let mut scheduler = SchedulerConfig::default();
        let (mut table, mut broken_at) = (None, None);
        if self::table(global).is_some() || Path::new(DEFAULT_TABLE).exists() {
            let path = path(global);
            let given = Given {
                store: given(global.store.as_ref()).is_some(),
                namespace: given(global.namespace.as_ref()).is_some(),
                no_jobs,
            };
            match with_accounts(|accounts| config::load_to_ask(&path, accounts, given)) {
                Ok(config) => {
                    scheduler = config.scheduler.clone();
                    table = Some(config);
                }
                Err(broken) => {
                    let is_enough = no_jobs && broken.lacks_jobs_alone;
                    if is_enough && broken.connection.is_none() && !given.is_all() {
                        return Err(names_no_store(&path));
                    }
                    scheduler = without_jobs(*broken, given)?;
                    broken_at = (!is_enough).then_some(path);
                }
            }
        } else if given(global.store.as_ref()).is_none() {
            let message = format!("there is no {DEFAULT_TABLE} here, and no store is named");
            let hint = "name the table by `--config`, or the store by `--store URL` and `--namespace NAME`";
            return Err(complain(Exit::Usage, &message, Some(hint)));
        }
        override_by(global, &mut scheduler)?;
        if let Some(path) = broken_at {
            tell_without(&path, &scheduler, no_jobs);
        }
        Ok((scheduler, table))
    }
}

/// What a `soloist` below this process is to be told, so that it goes to the same store. What was
/// named by flag or variable is; what ./jobs.toml says, any that runs there reads for itself, and may
/// hold a secret that was never in an environment.
pub(crate) fn passed_on(global: &Global, scheduler: &SchedulerConfig) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut tell = |name: &str, value: String| variables.insert(name.to_owned(), value);
    let store = given(global.store.as_ref());
    if let Some(store) = store {
        tell("SOLOIST_STORE", from_anywhere(store));
    }
    // The namespace goes with the store: either alone would name another place.
    if store.is_some() || given(global.namespace.as_ref()).is_some() {
        tell("SOLOIST_NAMESPACE", scheduler.namespace.clone());
    }
    let table = table(global).and_then(|path| std::path::absolute(path).ok());
    if let Some(table) = table.as_ref().and_then(|path| path.to_str()) {
        tell("SOLOIST_CONFIG", table.to_owned());
    }
    variables
}

/// A store's URL that means the same in another directory.
fn from_anywhere(store: &str) -> String {
    let path = store.strip_prefix("sqlite:");
    let path = path.and_then(|path| std::path::absolute(path).ok());
    match path.as_ref().and_then(|path| path.to_str()) {
        Some(path) => format!("sqlite:{path}"),
        None => store.to_owned(),
    }
}

/// Says that a table, which has no jobs either, names no store: it may have been cut off.
fn names_no_store(path: &Path) -> Exit {
    let message = format!("`{}` names no store", path.display());
    let hint = "name one in it, `store = \"redis://HOST:PORT\"` in [scheduler], or by `--store`";
    complain(Exit::Usage, &message, Some(hint))
}

/// What a broken table says of the store, where it says all that is needed.
fn without_jobs(broken: Broken, given: Given) -> Result<SchedulerConfig, Exit> {
    let unneeded = given.is_all().then(SchedulerConfig::default);
    let Some(scheduler) = broken.connection.or(unneeded) else {
        show(&broken.error.0);
        print_error(
            "\nhelp: without the table, name store and namespace: `--store URL --namespace NAME`\n",
        );
        return Err(Exit::Usage);
    };
    Ok(scheduler)
}

/// Says that a table is broken, and how it is gone without.
fn tell_without(path: &Path, scheduler: &SchedulerConfig, no_jobs: bool) {
    let store = scheduler.store.as_deref().map(store_url::redact);
    let without = match no_jobs {
        true => "",
        false => ", without the jobs' schedules",
    };
    print_error(&format!(
        "warning: {} can't be used, so that this goes by the store alone ({}, namespace {}){without}; `soloist check` tells why\n",
        path.display(),
        store.unwrap_or_default(),
        scheduler.namespace
    ));
}

/// Reads a table where users and groups are looked up on this host.
fn with_accounts<T>(read: impl FnOnce(Accounts<'_>) -> T) -> T {
    // Asked once for each: the services behind it may be far away, and jobs are many.
    let answers = RefCell::new(HashMap::new());
    read(&|user: Option<&str>, group: Option<&str>| {
        let identity = Identity {
            user: user.map(str::to_owned),
            group: group.map(str::to_owned),
        };
        let mut answers = answers.borrow_mut();
        let answer = answers.entry(identity).or_insert_with_key(Identity::check);
        answer
            .clone()
            .map_err(|refusal| (refusal.cause, refusal.cure))
    })
}

/// The table's file.
pub(crate) fn path(global: &Global) -> PathBuf {
    table(global).unwrap_or_else(|| DEFAULT_TABLE.into())
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
