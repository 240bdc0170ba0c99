//! The names of everything that is kept in Redis: the only place that spells them.
//!
//! All keys of a namespace carry the same hash tag, so they lie in one slot and a script may
//! touch several of them.

use super::news::Spread;
use crate::scheduler::job::JobName;
use crate::store::engine::Part;

/// The fields of the jobs hash that belong to no job. A job's name can't hold a `#`.
pub(super) const GROUP_MARK: u8 = b'#';
/// The group field that holds all of it but the marks.
pub(super) const EPOCH: &str = "#epoch";
/// The group field that says in which layout all this is.
pub(super) const LAYOUT: &str = "#layout";
/// The layout that this version writes. Only development versions wrote a lower one.
pub(super) const CURRENT_LAYOUT: &str = "2";

/// The group fields of one of several servers: the ballot that it promised, and until when whoever
/// has the promise is left in peace; whose turn it is then; the ballot of the last step that it
/// took, and as which process.
pub(super) const PROMISED: &str = "#promised";
pub(super) const PEACE_US: &str = "#peace_us";
pub(super) const NEXT: &str = "#next";
pub(super) const BALLOT: &str = "#ballot";
pub(super) const MEMBER: &str = "#member";
/// The field of what is put aside that tells one state of it from all others.
pub(super) const MARK: &str = "#mark";

/// The keys of one namespace.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// What all of them start with.
    pub(super) prefix: String,
    /// Hash: a record for each job, and the fields of the group.
    pub(super) jobs: String,
    /// Sorted set: jobs by when somebody should look at their records.
    pub(super) agenda: String,
    /// Hash and sorted set: jobs and agenda that one of several servers is to hold once they are
    /// complete.
    pub(super) aside: String,
    pub(super) aside_agenda: String,
    /// Hash: what each replica last said of itself.
    pub(super) replicas: String,
    /// Hash: what each table says of its jobs, by its digest.
    pub(super) tables: String,
    /// What the key of a job's history starts with.
    pub(super) history_prefix: String,
    /// What the key of a job's outputs starts with.
    pub(super) output_prefix: String,
    /// Channel: there is something to look at.
    pub(super) events: String,
    /// How far what is published there goes.
    pub(super) spread: Spread,
}

impl Keys {
    /// The keys of a namespace's jobs, whose news go everywhere.
    pub(super) fn new(namespace: &str) -> Self {
        Self::of(namespace, Part::Jobs)
    }

    /// The keys of a part of a namespace.
    pub(super) fn of(namespace: &str, part: Part) -> Self {
        let prefix = match part {
            Part::Jobs => format!("soloist:{{{namespace}}}:"),
            Part::Leases => format!("soloist:{{{namespace}}}:leases:"),
        };
        let key = |part: &str| format!("{prefix}{part}");
        Self {
            jobs: key("jobs"),
            agenda: key("agenda"),
            aside: key("aside"),
            aside_agenda: key("aside_agenda"),
            replicas: key("replicas"),
            tables: key("tables"),
            history_prefix: key("history:"),
            output_prefix: key("output:"),
            events: key("events"),
            spread: Spread::Everywhere,
            prefix,
        }
    }

    /// String, with an expiry: the lock that a self-test compares with; no replica has one.
    #[cfg(feature = "daemon")]
    pub(super) fn plain_lock(&self, name: &str) -> String {
        format!("{}plain:{name}", self.prefix)
    }

    /// Every key that there can be while these are the jobs.
    #[cfg(feature = "daemon")]
    pub(super) fn all(&self, jobs: &[JobName]) -> Vec<String> {
        let of_all = [
            &self.jobs,
            &self.agenda,
            &self.aside,
            &self.aside_agenda,
            &self.replicas,
            &self.tables,
        ];
        let of_jobs = jobs
            .iter()
            .flat_map(|job| [self.history(job), self.output(job)]);
        of_all.into_iter().cloned().chain(of_jobs).collect()
    }

    /// The pattern of all keys and channels of namespaces whose names begin so.
    #[cfg(feature = "daemon")]
    pub(super) fn pattern(beginning: &str) -> String {
        format!("soloist:{{{beginning}*")
    }

    /// Stream: ended attempts of a job.
    pub(super) fn history(&self, job: &JobName) -> String {
        format!("{}{job}", self.history_prefix)
    }

    /// Stream: what attempts of a job printed.
    pub(super) fn output(&self, job: &JobName) -> String {
        format!("{}{job}", self.output_prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_namespace_have_its_hash_tag() {
        let keys = Keys::new("shop");
        let job = JobName::new("close-expired-orders").unwrap();
        let (history, output) = (keys.history(&job), keys.output(&job));
        let all = [
            &keys.jobs,
            &keys.agenda,
            &keys.aside,
            &keys.aside_agenda,
            &keys.replicas,
            &keys.tables,
            &keys.events,
            &history,
            &output,
        ];
        assert!(all.iter().all(|key| key.starts_with("soloist:{shop}:")));
        assert_eq!(history, "soloist:{shop}:history:close-expired-orders");
    }
}
