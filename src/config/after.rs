//! `after` of a job: the jobs whose success brings its occurrences about.
//!
//! ```text
//!  each job:  after = ["a", "b"] ──read_after──▶ names ┐
//!  the table: names that no job has, circles, parents  ├─check──▶ problems
//!             that never run                           ┘
//! ```
//!
//! Must never: look for circles itself: the library has the same ones.

use std::collections::{BTreeMap, BTreeSet};

use super::diagnostics::Diagnostic;
use super::names::nearest;
use super::raw::Entry;
use super::read::{Reader, Text};
use crate::jobs::circles;
use crate::scheduler::job::Job;

/// A job that waits for others.
pub(super) struct Wait<'k> {
    pub(super) job: &'k str,
    /// Whether the names stand in the job, not in `[defaults]`.
    pub(super) is_own: bool,
    pub(super) names: Vec<Text>,
}

impl Wait<'_> {
    fn by_name(&self) -> circles::Wait<'_> {
        circles::Wait {
            job: self.job,
            names: self.names.iter().map(|name| name.value.as_str()).collect(),
        }
    }
}

/// The names of `after`; none when it is wrong.
pub(super) fn read_after(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Vec<Text>> {
    let names = if entry.value.get_ref().is_str() {
        vec![reader.full_text(entry)?]
    } else {
        reader.texts(entry)?
    };
    if names.is_empty() {
        let hint = format!("for example `{}`", entry.key.example);
        let message = "`after` names no job".into();
        reader.error(&entry.value.span(), message, hint);
        return None;
    }
    for (index, name) in names.iter().enumerate() {
        if names[..index].iter().any(|one| one.value == name.value) {
            let message = format!("the job {} is there twice", name.quoted());
            reader.error(&name.span, message, "keep one of them");
        }
    }
    Some(names)
}

/// Tells what is wrong between the jobs of a table. Among `names` are those of jobs that are
/// wrong too: their own errors have been told.
pub(super) fn check(
    reader: &mut Reader<'_>,
    waits: &[Wait<'_>],
    names: &BTreeSet<&str>,
    jobs: &[Job],
) {
    let jobs: BTreeMap<&str, &Job> = jobs.iter().map(|job| (job.name.as_str(), job)).collect();
    for wait in waits {
        for name in &wait.names {
            if name.value == wait.job {
                refuse_itself(reader, wait, name);
            } else if !names.contains(name.value.as_str()) {
                refuse_unknown(reader, name, names);
            } else {
                warn_if_disabled(reader, wait, name, &jobs);
            }
        }
    }
    let by_name: Vec<circles::Wait<'_>> = waits.iter().map(Wait::by_name).collect();
    for circle in circles::circles(&by_name) {
        let (wait, name) = circle.closed_by;
        let span = waits[wait].names[name].span.clone();
        let problem = Diagnostic::error(span, circle.message()).hint(
            "each of these runs after the next one, so none ever does: take one of the names out",
        );
        reader.problems.push(problem);
    }
}

fn refuse_itself(reader: &mut Reader<'_>, wait: &Wait<'_>, name: &Text) {
    let message = format!("the job `{}` waits for itself", wait.job);
    let hint = if wait.is_own {
        "name the jobs that come before it".to_owned()
    } else {
        format!(
            "what is in [defaults] holds for `{}` too: give it a `schedule` of its own",
            wait.job
        )
    };
    reader.error(&name.span, message, hint);
}

fn refuse_unknown(reader: &mut Reader<'_>, name: &Text, names: &BTreeSet<&str>) {
    let hint = match nearest(&name.value, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`after` names jobs of this table: `[jobs.NAME]`".to_owned(),
    };
    let message = format!("no job is called `{}`", name.value.escape_debug());
    let unknown = Diagnostic::error(name.span.clone(), message).hint(hint);
    reader.problems.push_unknown(unknown);
}

fn warn_if_disabled(
    reader: &mut Reader<'_>,
    wait: &Wait<'_>,
    name: &Text,
    jobs: &BTreeMap<&str, &Job>,
) {
    let is_enabled = |name: &str| jobs.get(name).is_none_or(|job| job.enabled);
    if is_enabled(&name.value) || !is_enabled(wait.job) {
        return;
    }
    let message = format!(
        "`{}` is disabled, so that `{}` never comes about by itself",
        name.value, wait.job
    );
    let hint = format!(
        "enable `{}`, take it out of `after`, or disable `{}` too",
        name.value, wait.job
    );
    let warning = Diagnostic::warning(name.span.clone(), message).hint(hint);
    reader.problems.push(warning);
}
