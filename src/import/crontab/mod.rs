//! crontab(5): lines in the order of the file, each under the variables that stand above it.
//!
//! Read as Vixie cron, Debian's cron and cronie read it, with what FreeBSD and OpenBSD add; where
//! they differ among themselves, the report says so. Must never: run a command, or take a line
//! for what cron would not take it for.

mod command;
mod comments;
mod environment;
mod fields;
mod job;
mod line;

use super::draft::Item;
use super::{Columns, Found, ImportError, Request};
use crate::config::find_zone;
use comments::Comments;
use environment::Surroundings;
use line::Line;

/// What is true of cron wherever it runs.
const ONE_HOST: &str = "cron ran it on each host that has this crontab; soloist runs each occurrence on one replica: leave out what each host has to do for itself, such as rotating its own logs";
const OVERLAP: &str = "cron starts it again while it still runs; here such an occurrence is skipped (`concurrency_policy = \"queue\"` keeps it for later)";
const MISSED: &str = "what fell due while cron was down is lost; here the newest runs if it can start within `starting_deadline`, 1m (`catch_up = \"none\"` does as cron)";
const MAIL: &str =
    "cron mails output, to MAILTO or the owner; here it is kept with the attempt: `soloist logs`";
const LEFT_BEHIND: &str = "what a command leaves running in the background, cron leaves alone; here it ends with the attempt";
const HOST_ZONE: &str = "cron reads times in the zone of its host; here they are read in UTC: name that zone by `--timezone`, unless it was UTC";
const DEFAULT_PATH: &str =
    "without a PATH of its own cron gives /usr/bin:/bin; here a job has the daemon's PATH";
const HOME: &str = "cron starts in the user's home; here it is the daemon's directory: write `working_dir` where a command has relative paths";
const OWNER: &str = "it ran as the crontab's owner, whom the text doesn't name; here it runs as the daemon's user: write `user` in [defaults]";
const AS_ROOT: &str =
    "`user` takes a daemon that runs as root; another one can run jobs as nobody but itself";

/// Reads a crontab.
pub(super) fn read(request: &Request<'_>) -> Result<Found, ImportError> {
    let mut surroundings = Surroundings::default();
    let mut comments = Comments::default();
    let mut items = Vec::new();
    let mut all = Seen::default();
    let mut before = "";
    for (number, text) in (1..).zip(request.text.split('\n')) {
        // An editor of Windows; for cron it would be a part of the command.
        let text = text.strip_suffix('\r').unwrap_or(text);
        match line::read(text) {
            Line::Blank => comments.end(),
            Line::Comment(comment) => comments.add(comment),
            Line::Variable { name, value } => {
                comments.end();
                surroundings.set(name, value);
            }
            Line::Entry(entry) => {
                let description = comments.take();
                let scene = job::Scene {
                    request,
                    surroundings: &surroundings,
                    description,
                    number,
                    text,
                    follows_backslash: before.trim_end().ends_with('\\'),
                };
                all.look(&surroundings);
                items.push(match job::draft(&scene, entry) {
                    Ok(draft) => Item::Job(Box::new(draft)),
                    Err(refused) => Item::Refused(refused),
                });
            }
        }
        before = text;
    }
    if items.is_empty() {
        return Err(ImportError {
            message: format!("`{}` has no entry of a crontab", request.label),
            hint: "an entry is five fields, or a word such as @daily, and a command; `--from` says what a text is".into(),
        });
    }
    let everywhere = everywhere(request, &all);
    Ok(Found { items, everywhere })
}

/// What the surroundings of all entries had in common.
struct Seen {
    all_have_zone: bool,
    all_have_path: bool,
    all_have_home: bool,
    none_mails: bool,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            all_have_zone: true,
            all_have_path: true,
            all_have_home: true,
            none_mails: true,
        }
    }
}

impl Seen {
    fn look(&mut self, surroundings: &Surroundings) {
        self.all_have_zone &= surroundings.timezone().is_some();
        self.all_have_path &= surroundings.get("PATH").is_some();
        self.all_have_home &= surroundings.get("HOME").is_some();
        self.none_mails &= surroundings.get("MAILTO") == Some("");
    }
}

fn everywhere(request: &Request<'_>, seen: &Seen) -> Vec<String> {
    let mut told = vec![ONE_HOST];
    if request.timezone.is_none() && !seen.all_have_zone {
        told.push(HOST_ZONE);
    }
    told.extend([OVERLAP, MISSED]);
    if !seen.none_mails {
        told.push(MAIL);
    }
    told.push(LEFT_BEHIND);
    if !seen.all_have_path {
        told.push(DEFAULT_PATH);
    }
    if !seen.all_have_home {
        told.push(HOME);
    }
    told.push(match request.columns {
        Columns::User => OWNER,
        Columns::System => AS_ROOT,
    });
    told.into_iter().map(str::to_owned).collect()
}

/// Whether a zone sets its clocks, ever; also when there is no such zone, which is told elsewhere.
fn sets_clocks(zone: &str) -> bool {
    find_zone(zone).map_or(true, |zone| zone.to_fixed_offset().is_err())
}
