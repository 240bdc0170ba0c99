//! `soloist why`: what became of an occurrence, and why.

use std::sync::Arc;

use super::args::{Global, WhyArgs};
use super::history::parse_name;
use super::settings::Settings;
use super::{Exit, complain, output, print, store};
use crate::config;
use crate::scheduler::job::{Job, JobName};
use crate::store::{Snapshot, Store};
use crate::why::{self, View, Written};

/// How many lines are looked at: more than a job keeps.
const LINES_LIMIT: usize = 1_000_000;

/// Tells what became of an occurrence.
pub(super) fn run(global: &Global, args: &WhyArgs) -> Result<Exit, Exit> {
    let job = parse_name(&args.job)?;
    let text = args.time.join(" ");
    let written = Written::parse(&text).map_err(|error| {
        let message = format!("`{text}`: {error}");
        complain(Exit::Usage, &message, Some(error.hint()))
    })?;
    let (scheduler, table) = Settings::load_for_store(global)?;
    let (place, snapshot, lines) = store::look(&scheduler, async |store: Arc<dyn Store>| {
        // In this order: what ends in between has its line.
        let snapshot = store.snapshot().await?;
        let lines = store.history(Some(&job), LINES_LIMIT).await?;
        Ok((store.place(), snapshot, lines))
    })?;
    let table = table.as_ref().map(|table| &table.jobs[..]);
    let view = View {
        job: &job,
        table,
        snapshot: &snapshot.answer,
        now: snapshot.now,
        lines: &lines,
    };
    if !view.is_known() {
        return Err(unknown(&job, table.unwrap_or_default(), &view, &place));
    }
    let asked = written.in_zone(&view.zone(), view.now);
    let answer = why::answer(&view, &asked);
    Ok(match args.json {
        true => output::json(&answer),
        false => print(why::tell(&answer)),
    })
}

fn unknown(job: &JobName, table: &[Job], view: &View<'_>, place: &str) -> Exit {
    let Snapshot { jobs, .. } = view.snapshot;
    let in_ledger = jobs.iter().map(|state| state.job.as_str());
    let names = table.iter().map(|job| job.name.as_str()).chain(in_ledger);
    let hint = match config::nearest(job.as_str(), names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`soloist status` lists the jobs that are known".to_owned(),
    };
    let what = match view.table {
        Some(_) => "neither the table nor the ledger",
        None => "no table that can be read is here, and the ledger",
    };
    let verb = if view.table.is_some() {
        "has"
    } else {
        "does not have"
    };
    let message = format!("{what} at {place} {verb} a job `{job}`");
    complain(Exit::Failed, &message, Some(&hint))
}
