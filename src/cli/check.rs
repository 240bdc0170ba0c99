//! `soloist check`: validates the table and shows when its jobs are due, without any store;
//! `check --store` also compares it with the ledger.
//!
//! Must never: change anything in the store, or show of a webhook or a ping more than its host.

use std::fmt::Write as _;
use std::sync::Arc;

use super::args::{CheckArgs, Global};
use super::policies;
use super::preview::{Preview, due_after, when};
use super::settings::{Settings, show};
use super::{Exit, complain, now, print, store};
use crate::config::{self, Config, Sources, Strictness, Target, format_duration};
use crate::http;
use crate::scheduler::job::{CommandSpec, Job, Program};
use crate::scheduler::lease::{Definition, Topic};
use crate::scheduler::notify::Notify;
use crate::scheduler::time::Timestamp;
use crate::store::Store;
use crate::store_url;

mod comparison;

use comparison::{Comparison, Offered, Shown};

/// How many occurrences of each job are shown.
const SHOWN: u32 = 3;

/// Checks the table; errors have been told by then.
pub(super) fn run(global: &Global, args: &CheckArgs) -> Exit {
    let mut settings = match Settings::load(global, Strictness::Edit) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    if let Err(exit) = look_at_tokens(&mut settings.config) {
        return exit;
    }
    show(&settings.config.warnings);
    let printed = print(describe(&settings, now()));
    match args.compare {
        true => printed.or(compare(&settings)),
        false => printed,
    }
}

/// Tells what is wrong with the file of the API's tokens. Where it can't be read that is a warning:
/// who checks a table need be neither the daemon's user nor on its host.
fn look_at_tokens(config: &mut Config) -> Result<(), Exit> {
    let Some(file) = &config.scheduler.api_tokens else {
        return Ok(());
    };
    let Err(error) = http::check_tokens(file) else {
        return Ok(());
    };
    let (message, cure) = error.told();
    if !error.is_out_of_reach() {
        return Err(complain(Exit::Usage, &message, Some(cure)));
    }
    let refuses = match config.scheduler.listen {
        Some(_) => "`soloist run` by this user on this host refuses to start with it",
        None => {
            "once it is to listen, `soloist run` by this user on this host refuses to start with it"
        }
    };
    config.warnings.warn(format!("{message}; {refuses}"), cure);
    Ok(())
}

/// Shows what a replica that starts with this table would find changed. It fails where such a
/// replica would leave jobs to others: whoever rolls this table out means it to be run.
fn compare(settings: &Settings) -> Exit {
    let config = &settings.config;
    let looked = store::look(&config.scheduler, async |store: Arc<dyn Store>| {
        Ok((store.place(), store.snapshot().await?))
    });
    match looked {
        Ok((place, answered)) => {
            let offered = Offered {
                jobs: &config.jobs,
                table: Definition {
                    digest: config.digest(),
                    revision: config.scheduler.revision,
                },
            };
            let shown = Shown {
                snapshot: &answered.answer,
                now: answered.now,
            };
            let comparison = Comparison::of(&offered, shown);
            let printed = print(format!("\n{}", comparison.render(&place)));
            match comparison.is_outdated() {
                true => printed.or(Exit::Failed),
                false => printed,
            }
        }
        Err(exit) => exit,
    }
}

fn describe(settings: &Settings, now: Timestamp) -> String {
    let config = &settings.config;
    let count = config.jobs.len();
    let jobs = if count == 1 { "job" } else { "jobs" };
    let store = config.scheduler.store.as_deref().map(store_url::redact);
    let revision = config.scheduler.revision;
    let revision = revision.map_or(String::new(), |revision| format!(", revision {revision}"));
    let listen = config.scheduler.listen;
    let listen = listen.map_or(String::new(), |address| format!(", listens on {address}"));
    let mut text = format!(
        "{}: {count} {jobs}, namespace {}, store {}{revision}{listen}\n",
        settings.path.display(),
        config.scheduler.namespace,
        store.as_deref().unwrap_or("embedded")
    );
    text.push_str(&includes(&config.sources));
    for (name, target) in &config.targets {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  notifies {name} by {}", way_to(target));
    }
    for job in &config.jobs {
        text.push('\n');
        text.push_str(&describe_job(job, now));
    }
    text
}

/// How somebody is told, as far as it is no secret.
fn way_to(target: &Target) -> String {
    match target {
        Target::Webhook(webhook) => {
            let signed = webhook.secret.as_ref().map_or("", |_| ", signed");
            format!("webhook at {}{signed}", config::origin_of(&webhook.url))
        }
        Target::Email(email) => {
            let to: Vec<String> = email.to.iter().map(ToString::to_string).collect();
            let (host, port) = (&email.server.host, email.server.port);
            format!("mail to {} over {host}:{port}", to.join(", "))
        }
    }
}

/// The files that were read beside the main one, or where there could have been some.
fn includes(sources: &Sources) -> String {
    let included = sources.tables.iter().skip(1);
    let lines = included.map(|path| format!("  includes {}\n", path.display()));
    let text: String = lines.collect();
    if text.is_empty() && !sources.directories.is_empty() {
        let places = sources.directories.iter();
        let places: Vec<_> = places.map(|path| path.display().to_string()).collect();
        return format!(
            "  includes no file: none matches in {}\n",
            places.join(", ")
        );
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
    if let Some(told) = who_is_told(&job.notify) {
        let _ = writeln!(text, "  {told}");
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

/// Who is told how it goes, and of what where that isn't everything.
fn who_is_told(notify: &Notify) -> Option<String> {
    let Notify { telling, ping } = notify;
    let to = &telling.to;
    let default = Notify::default().telling;
    let mut people = format!("notifies {}", to.join(", "));
    if telling.topics != default.topics {
        let topics = Topic::ALL.iter();
        let topics = topics.filter(|topic| telling.topics.has(**topic));
        let topics: Vec<&str> = topics.map(|topic| topic.as_str()).collect();
        people += &format!(" of {}", topics.join(", "));
    }
    if telling.repeat != default.repeat {
        people += &format!(", again after {}", format_duration(telling.repeat));
    }
    let ping = ping.as_ref().map(|ping| {
        let output = if ping.output { " with its output" } else { "" };
        format!("pings {}{output}", config::origin_of(&ping.url))
    });
    let people = (!to.is_empty()).then_some(people);
    let told: Vec<String> = people.into_iter().chain(ping).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn program(program: &Program) -> String {
    let text = match program {
        Program::Command(argv) => format!("{argv:?}"),
        Program::Shell(script) => format!("sh -c {:?}", one_line(script)),
        Program::Http(request) => format!("{} {}", request.method, request.shown_url()),
        Program::Function => "a function".to_owned(),
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
