//! `after` of a job: the jobs whose success brings its occurrences about.
//!
//! ```text
//!  each job:  after = ["a", "b"] ──read_after──▶ names ┐
//!  the table: names that no job has, circles, parents  ├─check──▶ problems
//!             that never run                           ┘
//! ```
//!
//! Must never: follow a name without an end to it: what goes round is told, and left.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::diagnostics::Diagnostic;
use super::names::nearest;
use super::raw::Entry;
use super::read::{Reader, Text};
use crate::scheduler::job::Job;

/// A job that waits for others.
pub(super) struct Wait<'k> {
    pub(super) job: &'k str,
    /// Whether the names stand in the job, not in `[defaults]`.
    pub(super) is_own: bool,
    pub(super) names: Vec<Text>,
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
    for circle in circles(waits) {
        let problem = Diagnostic::error(
            circle.span,
            format!("jobs wait for each other: {}", circle.names.join(" → ")),
        )
        .hint(
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

/// Jobs that wait for each other, the first of them once more at the end.
struct Circle<'w> {
    names: Vec<&'w str>,
    /// The name that closes it.
    span: Range<usize>,
}

/// How far the search for circles has got with a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// On the path that is being followed, so far from its begin.
    OnPath(usize),
    Done,
}

/// A circle for each name that closes one, as they are met with in the order of the file: with
/// these names taken out, none is left. A job that waits for itself is not among them.
fn circles<'w>(waits: &'w [Wait<'_>]) -> Vec<Circle<'w>> {
    let by_job: BTreeMap<&str, &Wait<'_>> = waits.iter().map(|wait| (wait.job, wait)).collect();
    let mut search: BTreeMap<&str, Search> = BTreeMap::new();
    let mut circles = Vec::new();
    for start in waits {
        if search.contains_key(start.job) {
            continue;
        }
        // Kept here and not by recursion: a table may have a chain of thousands.
        let mut path = vec![(start, start.names.iter())];
        search.insert(start.job, Search::OnPath(0));
        while let Some((wait, names)) = path.last_mut() {
            let wait = *wait;
            let Some(name) = names.next() else {
                search.insert(wait.job, Search::Done);
                path.pop();
                continue;
            };
            let Some(next) = by_job.get(name.value.as_str()) else {
                continue;
            };
            match search.get(next.job) {
                None => {
                    search.insert(next.job, Search::OnPath(path.len()));
                    path.push((next, next.names.iter()));
                }
                Some(Search::OnPath(at)) if next.job != wait.job => {
                    let around = path[*at..].iter().map(|(wait, _)| wait.job);
                    circles.push(Circle {
                        names: around.chain([next.job]).collect(),
                        span: name.span.clone(),
                    });
                }
                Some(_) => {}
            }
        }
    }
    circles
}
