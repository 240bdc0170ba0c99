//! Jobs that wait for each other.
//!
//! Must never: follow a name without an end to it: what goes round is told, and left.

use std::collections::BTreeMap;

/// A job that waits for others.
pub(crate) struct Wait<'w> {
    pub(crate) job: &'w str,
    pub(crate) names: Vec<&'w str>,
}

/// Jobs that wait for each other, the first of them once more at the end.
pub(crate) struct Circle<'w> {
    pub(crate) names: Vec<&'w str>,
    /// What closes it: a name of a wait, by their numbers.
    pub(crate) closed_by: (usize, usize),
}

impl Circle<'_> {
    /// What is said of it.
    pub(crate) fn message(&self) -> String {
        format!("jobs wait for each other: {}", self.names.join(" → "))
    }
}

/// How far the search for circles has got with a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// On the path that is being followed, so far from its begin.
    OnPath(usize),
    Done,
}

/// A circle for each name that closes one, as they are met with in the order of the table: with
/// these names taken out, none is left. A job that waits for itself is not among them.
pub(crate) fn circles<'w>(waits: &[Wait<'w>]) -> Vec<Circle<'w>> {
    let by_job: BTreeMap<&str, usize> = waits.iter().map(|wait| wait.job).zip(0..).collect();
    let mut search: BTreeMap<&str, Search> = BTreeMap::new();
    let mut circles = Vec::new();
    for (number, start) in waits.iter().enumerate() {
        if search.contains_key(start.job) {
            continue;
        }
        // Kept here and not by recursion: a table may have a chain of thousands.
        let mut path = vec![(number, 0..start.names.len())];
        search.insert(start.job, Search::OnPath(0));
        while let Some((at, names)) = path.last_mut() {
            let (at, wait) = (*at, &waits[*at]);
            let Some(name) = names.next() else {
                search.insert(wait.job, Search::Done);
                path.pop();
                continue;
            };
            let Some(next_at) = by_job.get(wait.names[name]) else {
                continue;
            };
            let next = &waits[*next_at];
            match search.get(next.job) {
                None => {
                    search.insert(next.job, Search::OnPath(path.len()));
                    path.push((*next_at, 0..next.names.len()));
                }
                Some(Search::OnPath(begin)) if next.job != wait.job => {
                    let around = path[*begin..].iter().map(|(at, _)| waits[*at].job);
                    circles.push(Circle {
                        names: around.chain([next.job]).collect(),
                        closed_by: (at, name),
                    });
                }
                Some(_) => {}
            }
        }
    }
    circles
}
