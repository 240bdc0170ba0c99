//! What a table says otherwise than the one before it, for people who reload it.
//!
//! Must never: show what a job or a key says. Names are enough to look it up by, and among the
//! rest are secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::digest::job_digest;
use super::{Config, SchedulerConfig, Targets};
use crate::scheduler::job::{Job, JobName};

/// How many names of a kind are shown.
const SHOWN: usize = 10;

/// What has changed from one table to the next, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Jobs that are new.
    pub added: Vec<JobName>,
    /// Jobs that are gone.
    pub removed: Vec<JobName>,
    /// Jobs that mean something else, if only by a secret.
    pub changed: Vec<JobName>,
    /// Targets of notifications that are new, gone, or mean something else.
    pub targets: Vec<String>,
    /// Keys of `[scheduler]` whose change takes effect at once.
    pub applied: Vec<&'static str>,
    /// Keys of `[scheduler]` whose change waits for the next start.
    pub at_restart: Vec<&'static str>,
}

impl Changes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Config {
    /// What a table that takes the place of this one says otherwise.
    pub fn diff(&self, new: &Self) -> Changes {
        let (before, after) = (by_name(&self.jobs), by_name(&new.jobs));
        let missing = |from: &BTreeMap<&JobName, &Job>, names: &BTreeMap<&JobName, &Job>| {
            let names = names.keys().filter(|name| !from.contains_key(*name));
            names.map(|name| (*name).clone()).collect()
        };
        let differs = |(name, job): (&&JobName, &&Job)| -> Option<JobName> {
            let old = before.get(*name)?;
            is_other(old, job).then(|| (*name).clone())
        };
        let (applied, at_restart) = other_keys(&self.scheduler, &new.scheduler);
        Changes {
            added: missing(&before, &after),
            removed: missing(&after, &before),
            changed: after.iter().filter_map(differs).collect(),
            targets: other_targets(&self.targets, &new.targets),
            applied,
            at_restart,
        }
    }
}

fn by_name(jobs: &[Job]) -> BTreeMap<&JobName, &Job> {
    jobs.iter().map(|job| (&job.name, job)).collect()
}

/// All that may be a secret is in what the job runs and whom it pings, and no digest has it.
fn is_other(old: &Job, new: &Job) -> bool {
    old.command != new.command || old.notify != new.notify || job_digest(old) != job_digest(new)
}

fn other_targets(old: &Targets, new: &Targets) -> Vec<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differ = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name));
    differ.cloned().collect()
}

/// The keys that differ, those that take effect at once first. Taken apart, so that a new field
/// has to be thought of here.
fn other_keys(
    old: &SchedulerConfig,
    new: &SchedulerConfig,
) -> (Vec<&'static str>, Vec<&'static str>) {
    let SchedulerConfig {
        namespace,
        store,
        lease_ttl,
        shutdown_grace,
        replica,
        history_limit,
        tags,
        max_running,
        tls,
        min_replicas_ack,
        listen,
        api_tokens,
        watch,
        revision,
    } = new;
    let only = |keys: &[(&'static str, bool)]| {
        let other = keys.iter().filter(|(_, is_other)| *is_other);
        other.map(|(key, _)| *key).collect()
    };
    let applied = [
        ("api_tokens", *api_tokens != old.api_tokens),
        // What jobs take from here is in the jobs too, and changes there.
        ("history_limit", *history_limit != old.history_limit),
        ("lease_ttl", *lease_ttl != old.lease_ttl),
        ("max_running", *max_running != old.max_running),
        ("revision", *revision != old.revision),
        ("shutdown_grace", *shutdown_grace != old.shutdown_grace),
        ("tags", *tags != old.tags),
        ("watch", *watch != old.watch),
    ];
    // Leases, ledger and links that are there belong to these.
    let at_restart = [
        ("listen", *listen != old.listen),
        (
            "min_replicas_ack",
            *min_replicas_ack != old.min_replicas_ack,
        ),
        ("namespace", *namespace != old.namespace),
        ("replica", *replica != old.replica),
        ("store", *store != old.store),
        ("tls_ca", tls.ca != old.tls.ca),
        ("tls_cert", tls.cert != old.tls.cert),
        ("tls_key", tls.key != old.tls.key),
        ("tls_server_name", tls.server_name != old.tls.server_name),
    ];
    (only(&applied), only(&at_restart))
}

impl fmt::Display for Changes {
    /// As in `added b; changed a; max_running; store at the next start`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_jobs = |what, names: &[JobName]| {
            let names: Vec<_> = names.iter().map(JobName::as_str).collect();
            (!names.is_empty()).then(|| format!("{what} {}", listed(&names)))
        };
        let targets: Vec<_> = self.targets.iter().map(String::as_str).collect();
        let applied = &self.applied;
        let at_restart = &self.at_restart;
        let parts = [
            of_jobs("added", &self.added),
            of_jobs("removed", &self.removed),
            of_jobs("changed", &self.changed),
            (!targets.is_empty()).then(|| format!("[notify] {}", listed(&targets))),
            (!applied.is_empty()).then(|| format!("[scheduler] {}", listed(applied))),
            (!at_restart.is_empty()).then(|| format!("at the next start {}", listed(at_restart))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.write_str("nothing changed"),
            false => f.write_str(&parts.join("; ")),
        }
    }
}

fn listed(names: &[&str]) -> String {
    let shown = &names[..names.len().min(SHOWN)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
