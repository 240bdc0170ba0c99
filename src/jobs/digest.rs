//! A short text that is the same for tables that mean the same, for people to see which replicas
//! run another one.
//!
//! It is made of jobs as they were read, with every default filled in, so that order, spacing
//! and comments don't count, nor where a value stands. `[scheduler]` is left out where it differs
//! between replicas on purpose; what it says for jobs is in the jobs.
//!
//! Must never take in what may be a secret, of which a digest would let guesses be checked:
//! values of `env`, headers and body, user and query of a URL, passwords in a command.

use std::fmt::Write as _;

use crate::scheduler::job::{CommandSpec, Job, Program};
use crate::scheduler::lease::Definition;
use crate::scheduler::request::HttpRequest;
use crate::scheduler::spread::Spread;
use crate::store_url::star_passwords;

/// 16 hexadecimal digits, the same for tables that mean the same but for their secrets.
pub(crate) fn table_digest(jobs: &[Job]) -> String {
    let mut jobs: Vec<&Job> = jobs.iter().collect();
    jobs.sort_by_key(|job| &job.name);
    let texts = jobs.into_iter().map(text_of);
    let digest = texts.fold(Spread::default(), |digest, text| {
        digest.bytes(text.as_bytes()).bytes(&[0])
    });
    format!("{:016x}", digest.number())
}

/// 16 hexadecimal digits, the same for jobs that mean the same but for their secrets.
pub(crate) fn job_digest(job: &Job) -> String {
    let digest = Spread::default().bytes(text_of(job).as_bytes());
    format!("{:016x}", digest.number())
}

/// Gives each job of a table its definition.
pub(crate) fn define(jobs: &mut [Job], revision: Option<u64>) {
    for job in jobs {
        let digest = job_digest(job);
        job.definition = Definition { digest, revision };
    }
}

/// A job in a text that no other job has. Taken apart, so that a new field has to be thought of
/// here.
fn text_of(job: &Job) -> String {
    let Job {
        name,
        description,
        schedule,
        enabled,
        command,
        timeout,
        kill_grace,
        lease_ttl,
        starting_deadline,
        on_crash,
        max_attempts,
        retention,
        random_delay,
        catch_up,
        concurrency,
        retry,
        shards,
        run_on,
        after,
        warn_after,
        notify,
        // By what a replica hears that it is due is its own affair: what runs, and when, is the same.
        waits_for_poke: _,
        // What this is for.
        definition: _,
    } = job;
    // All that decides when it is due, the days of its calendars too.
    let schedule = schedule.identity();
    let mut after = after.clone();
    after.sort();
    let mut text = String::new();
    // Writing to a string can't fail. `{:?}` quotes texts, so that parts can't run together.
    let _ = write!(
        text,
        "{name:?} {description:?} {schedule:?} {enabled} {} {timeout:?} {kill_grace:?} \
         {lease_ttl:?} {starting_deadline:?} {on_crash:?} {max_attempts} {retention:?} \
         {random_delay:?} {catch_up:?} {concurrency:?} {retry:?} {shards} {run_on:?} {after:?} \
         {warn_after:?} {notify:?}",
        text_of_command(command)
    );
    text
}

fn text_of_command(command: &CommandSpec) -> String {
    let CommandSpec {
        program,
        env,
        working_dir,
        user,
        group,
        umask,
        success_codes,
        output_limit,
    } = command;
    let variables: Vec<&String> = env.keys().collect();
    let program = match program {
        Program::Command(argv) => {
            let argv: Vec<String> = argv.iter().map(|text| without_passwords(text)).collect();
            format!("command {argv:?}")
        }
        Program::Shell(script) => format!("shell {:?}", without_passwords(script)),
        Program::Http(request) => text_of_request(request),
        Program::Function => "function".to_owned(),
    };
    format!(
        "{program} {variables:?} {working_dir:?} {user:?} {group:?} {umask:?} {success_codes:?} {output_limit}"
    )
}

/// With one star for each password, whatever its length.
fn without_passwords(text: &str) -> String {
    let mut text = star_passwords(text);
    let mut before = ' ';
    text.retain(|c| {
        let is_repeated = c == '*' && before == '*';
        before = c;
        !is_repeated
    });
    text
}

fn text_of_request(request: &HttpRequest) -> String {
    let HttpRequest {
        url: _,
        method,
        headers,
        body,
        expect_status,
    } = request;
    let mut names: Vec<&String> = headers.iter().map(|(name, _)| name).collect();
    names.sort();
    let (url, has_body) = (request.shown_url(), body.is_some());
    format!("http {url:?} {method:?} {names:?} {has_body} {expect_status:?}")
}
