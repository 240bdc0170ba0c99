//! `soloist check`: validates the table and shows when its jobs are due, without any store;
//! `check --store` also compares it with the ledger.
//!
//! Must never: change anything in the store.

use std::fmt::Write as _;
use std::sync::Arc;

use super::args::{CheckArgs, Global};
use super::policies;
use super::preview::{Preview, due_after, when};
use super::settings::{Settings, show};
use super::{Exit, now, print, store};
use crate::config::{Strictness, format_duration};
use crate::scheduler::job::{CommandSpec, Job, Program};
use crate::scheduler::time::Timestamp;
use crate::store::Store;
use crate::store_url;

mod comparison;

use comparison::Comparison;

/// How many occurrences of each job are shown.
const SHOWN: u32 = 3;

/// Checks the table; errors have been told by then.
pub(super) fn run(global: &Global, args: &CheckArgs) -> Exit {
    let settings = match Settings::load(global, Strictness::Edit) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    show(&settings.config.warnings);
    let printed = print(describe(&settings, now()));
    match args.compare {
        true => printed.or(compare(&settings)),
        false => printed,
    }
}

/// Shows what a replica that starts with this table would find changed.
fn compare(settings: &Settings) -> Exit {
    let config = &settings.config;
    let looked = store::look(&config.scheduler, async |store: Arc<dyn Store>| {
        Ok((store.place(), store.snapshot().await?))
    });
    match looked {
        Ok((place, answered)) => {
            let comparison = Comparison::of(&config.jobs, &answered.answer);
            print(format!("\n{}", comparison.render(&place)))
        }
        Err(exit) => exit,
    }
}

fn describe(settings: &Settings, now: Timestamp) -> String {
    let config = &settings.config;
    let count = config.jobs.len();
    let jobs = if count == 1 { "job" } else { "jobs" };
    let store = config.scheduler.store.as_deref().map(store_url::redact);
    let mut text = format!(
        "{}: {count} {jobs}, namespace {}, store {}\n",
        settings.path.display(),
        config.scheduler.namespace,
        store.as_deref().unwrap_or("embedded")
    );
    for job in &config.jobs {
        text.push('\n');
        text.push_str(&describe_job(job, now));
    }
    text
}

fn describe_job(job: &Job, now: Timestamp) -> String {
    let zone = job.schedule.zone();
    let mut text = format!(
        "{}  {}{}\n",
        job.name,
        when(job, zone),
        if job.enabled { "" } else { "  (disabled)" }
    );
    // Writing to a string can't fail.
    if let Some(description) = &job.description {
        let _ = writeln!(text, "  {}", one_line(description));
    }
    let timeout = job.timeout.map_or("no timeout".into(), |timeout| {
        format!("timeout {}", format_duration(timeout))
    });
    let (program, identity) = (program(&job.command.program), identity(&job.command));
    let _ = writeln!(text, "  runs {program}{identity}; {timeout}");
    if let Some(policies) = policies::line(job) {
        let _ = writeln!(text, "  {policies}");
    }
    if job.enabled && !job.after.is_empty() {
        let _ = writeln!(text, "  {}", due_after(&job.after));
    } else if job.enabled {
        let preview = Preview {
            schedule: &job.schedule,
            zone,
            from: now,
            now,
            count: SHOWN,
        };
        text.push_str(&preview.lines("  "));
    }
    text
}

fn program(program: &Program) -> String {
    let text = match program {
        Program::Command(argv) => format!("{argv:?}"),
        Program::Shell(script) => format!("sh -c {:?}", one_line(script)),
        Program::Http(request) => format!("{} {}", request.method, request.shown_url()),
    };
    store_url::star_passwords(&text)
}

/// As whom it runs, where the table says so.
fn identity(command: &CommandSpec) -> String {
    match (&command.user, &command.group) {
        (Some(user), Some(group)) => format!(" as user {user}, group {group}"),
        (Some(user), None) => format!(" as user {user}"),
        (None, Some(group)) => format!(" as group {group}"),
        (None, None) => String::new(),
    }
}

/// The first line, and whether there is more.
fn one_line(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\n') {
        Some((first, _)) => format!("{first} …"),
        None => text.into(),
    }
}
