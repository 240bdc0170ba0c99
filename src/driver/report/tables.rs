//! What people are told of replicas whose tables differ.
//!
//! Must never: make a line as long as a table.

use tracing::{info, warn};

use crate::scheduler::job::JobName;
use crate::scheduler::lease::Definition;
use crate::scheduler::{Difference, Notice, few};

pub(super) fn tell(notice: &Notice, replica: &str) {
    match notice {
        Notice::Drift {
            table,
            is_newer,
            same_revision,
            replicas,
            difference,
        } => {
            let (jobs, whose, what) = (difference.len(), few(replicas), in_words(difference));
            let (they_have, twice) = (they_have(replicas, *is_newer), twice(table, *same_revision));
            warn!(replica, table = %table, jobs, replicas = whose,
                "tables differ: {they_have} one, {table}; {what}{twice}");
        }
        Notice::RevisionsMixed(mixture) => warn!(replica, "{mixture}"),
        Notice::DriftOver { table } => {
            info!(replica, table = %table, "no replica has the table {table} any more");
        }
        Notice::Outdated { jobs, replicas } => {
            let (count, names, whose) = (jobs.len(), names(jobs), others(replicas));
            warn!(
                replica,
                jobs = count,
                replicas = whose,
                "this replica leaves {names} to {whose}, with a newer definition: reload it with the new \
                table, or restart it"
            );
        }
        Notice::Withdrawn { jobs, replicas } => {
            let (count, names, whose) = (jobs.len(), names(jobs), others(replicas));
            let them = if count == 1 { "it" } else { "them" };
            warn!(
                replica,
                jobs = count,
                replicas = whose,
                "this replica runs {names} no more: the newer table of {whose} lacks {them}; tables \
                that are not one and the same belong in a `namespace` each"
            );
        }
        Notice::InForceAgain { jobs } => {
            let (count, names) = (jobs.len(), names(jobs));
            info!(
                replica,
                jobs = count,
                "this replica runs {names} again: no newer definition is there"
            );
        }
        _ => {}
    }
}

fn they_have(replicas: &[String], is_newer: bool) -> String {
    let have = if replicas.len() == 1 { "has" } else { "have" };
    let age = if is_newer { "a newer" } else { "an older" };
    format!("{} {have} {age}", few(replicas))
}

fn twice(table: &Definition, same_revision: bool) -> String {
    match table.revision.filter(|_| same_revision) {
        Some(revision) => format!("; revision {revision} twice: was it forgotten to raise it?"),
        None => String::new(),
    }
}

fn others(replicas: &[String]) -> String {
    match replicas.is_empty() {
        true => "other replicas".to_owned(),
        false => few(replicas),
    }
}

/// What differs, by name.
fn in_words(difference: &Difference) -> String {
    let kinds = [
        ("changed", &difference.changed),
        ("only here", &difference.only_here),
        ("only there", &difference.only_there),
    ];
    let told = kinds.iter().filter(|(_, jobs)| !jobs.is_empty());
    let told: Vec<String> = told
        .map(|(kind, jobs)| format!("{kind}: {}", names(jobs)))
        .collect();
    told.join("; ")
}

fn names(jobs: &[JobName]) -> String {
    few(jobs.iter().map(JobName::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_few_jobs_and_counts_the_rest() {
        let jobs: Vec<JobName> = (0..12)
            .map(|number| JobName::new(&format!("j{number}")).unwrap())
            .collect();
        let difference = Difference {
            changed: jobs[..1].to_vec(),
            only_here: Vec::new(),
            only_there: jobs,
        };
        assert_eq!(
            in_words(&difference),
            "changed: j0; only there: j0, j1, j2, j3, j4, j5, j6, j7, j8, j9 and 2 more"
        );
    }

    #[test]
    fn a_line_says_who_has_which_table() {
        let of = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(they_have(&of(&["b"]), true), "b has a newer");
        assert_eq!(they_have(&of(&["b", "c"]), false), "b, c have an older");
    }

    #[test]
    fn a_revision_that_stands_for_two_tables_is_asked_about_and_a_roll_out_is_not() {
        let table = |revision| Definition {
            digest: "0123456789abcdef".to_owned(),
            revision,
        };
        let asked = "; revision 7 twice: was it forgotten to raise it?";
        assert_eq!(twice(&table(Some(7)), true), asked);
        assert_eq!(twice(&table(Some(7)), false), "");
        assert_eq!(twice(&table(None), false), "");
    }
}
