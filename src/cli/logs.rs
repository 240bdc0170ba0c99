//! `soloist logs`: what an attempt printed.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::args::{Global, LogsArgs};
use super::history::{check_known, detail, parse_name};
use super::next::instant;
use super::settings::Settings;
use super::{Exit, complain, print, print_error, store};
use crate::scheduler::lease::{Captured, Output};
use crate::store::{AttemptRecord, Snapshot};

/// How far back the attempt that is asked for is looked for.
const LOOK_BACK: usize = 10_000;

/// Shows what an attempt printed: its stdout on stdout, its stderr on stderr.
pub(super) fn run(global: &Global, args: &LogsArgs) -> Result<Exit, Exit> {
    let (scheduler, table) = Settings::load_for_store(global)?;
    let job = parse_name(&args.job)?;
    let at = args
        .at
        .as_deref()
        .map(|text| instant("--at", text, &TimeZone::UTC))
        .transpose()?;
    let wanted = |record: &AttemptRecord| {
        record.attempt > 0
            && at.is_none_or(|at| record.scheduled_at == at)
            && args.attempt.is_none_or(|attempt| record.attempt == attempt)
    };
    let found = store::look(&scheduler, async |store| {
        let attempts = store.history(Some(&job), LOOK_BACK).await?;
        let Some(attempt) = attempts.into_iter().find(wanted) else {
            return Ok(Err(store.snapshot().await?.answer));
        };
        let printed = store.output(&job, attempt.run_id).await?;
        Ok(Ok((attempt, printed)))
    })?;
    let nothing = |snapshot: &Snapshot| {
        let table = table.as_ref().map_or(&[][..], |table| &table.jobs);
        if let Err(exit) = check_known(&job, table, snapshot) {
            return exit;
        }
        let message = if at.is_none() && args.attempt.is_none() {
            format!("no attempt of `{job}` has ended yet, as far as the store knows")
        } else {
            format!("no ended attempt of `{job}` is like that")
        };
        let hint = format!("`soloist history {job}` lists them");
        complain(Exit::Failed, &message, Some(&hint))
    };
    let (attempt, printed) = found.map_err(|snapshot| nothing(&snapshot))?;
    let how = match detail(&attempt) {
        detail if detail.is_empty() => detail,
        detail => format!(", {detail}"),
    };
    print_error(&format!(
        "{job} at {}, attempt {} on {}: {}{how}\n",
        attempt.scheduled_at, attempt.attempt, attempt.replica, attempt.outcome
    ));
    if let Some(printed) = printed {
        return Ok(show(&printed));
    }
    print_error(
        "its output is not kept: it printed nothing or to a terminal (`run-once`), or newer attempts took the place\n",
    );
    Ok(Exit::Done)
}

fn show(printed: &Output) -> Exit {
    let exit = print(bytes(&printed.stdout));
    // When even stderr is gone, there is nowhere left to show it.
    let _ = io::stderr().lock().write_all(&bytes(&printed.stderr));
    exit
}

fn bytes(stream: &Captured) -> Vec<u8> {
    let mut bytes = stream.head.clone();
    if stream.cut() > 0 {
        bytes.extend(format!("\n[… {} bytes are not kept …]\n", stream.cut()).bytes());
    }
    bytes.extend(&stream.tail);
    bytes
}
