//! Requests as the scripts read them: the order of the arguments is in the header of each file
//! under `lua/`.
//!
//! Must never: put the caller's own time into a request, save where the protocol asks for it.

use std::time::Duration;

use redis::Cmd;

use super::keys::Keys;
use super::scripts::{Call, Operation};
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::lease::{
    Caller, Claim, Origin, Release, Renewal, Replica, Retention, RunId, Scope,
};
use crate::scheduler::time::{Timestamp, millis};
use crate::store::history::encode_output;
use crate::store::{
    ABANDONED_AFTER, OVERDUE_LIMIT, REPLICA_RETENTION, ReplicaInfo, SCOPE_ALL_LIMIT,
};

/// A script with its keys and arguments; the server's run id is added when it is sent.
pub(super) struct Request {
    operation: Operation,
    keys: Vec<String>,
    arguments: Arguments,
}

impl Request {
    /// The command, for a server that called itself `run_id` when it was connected to.
    pub(super) fn command(&self, call: Call, run_id: &str) -> Cmd {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let mut command = self.operation.evaluate(call, &keys);
        if self.operation != Operation::Output {
            command.arg(run_id);
        }
        command.arg(&self.arguments.0);
        command
    }

    /// What all scripts that judge leases begin with.
    fn judged(operation: Operation, keys: &Keys, caller: &Caller) -> Self {
        let mut arguments = Arguments::default();
        arguments.millis(caller.quarantine);
        arguments.text(&keys.history_prefix);
        arguments.text(&keys.output_prefix);
        arguments.text(caller.token_floor.to_string());
        arguments.text(&keys.events);
        Self {
            operation,
            keys: vec![keys.jobs.clone(), keys.leases.clone()],
            arguments,
        }
    }

    fn held_by(operation: Operation, keys: &Keys, caller: &Caller) -> Self {
        let mut request = Self::judged(operation, keys, caller);
        request.arguments.text(holder(&caller.replica));
        request
    }
}

/// Who holds a lease, as records have it.
fn holder(replica: &Replica) -> String {
    format!("{}/{}", replica.name, replica.id)
}

pub(super) fn register(keys: &Keys, caller: &Caller, jobs: &[JobName]) -> Request {
    let mut request = Request::held_by(Operation::Register, keys, caller);
    for job in jobs {
        request.arguments.text(job.as_str());
    }
    request
}

pub(super) fn claim(keys: &Keys, caller: &Caller, claims: &[Claim]) -> Request {
    let mut request = Request::held_by(Operation::Claim, keys, caller);
    let arguments = &mut request.arguments;
    arguments.time_or_empty(caller.send_by);
    for claim in claims {
        arguments.text(claim.occurrence.job.as_str());
        arguments.time(claim.occurrence.scheduled_at);
        arguments.origin(claim.origin);
        arguments.text(claim.run_id.to_string());
        arguments.on_crash(claim.on_crash);
        arguments.text(claim.max_attempts.to_string());
        arguments.time(claim.start_by);
        arguments.millis(claim.ttl);
        let token = claim.watched.map(|sighting| sighting.token.to_string());
        arguments.text(token.unwrap_or_default());
        arguments.time_or_empty(claim.watched.map(|sighting| sighting.deadline));
        arguments.retention(claim.retention);
    }
    request
}

pub(super) fn renew(keys: &Keys, caller: &Caller, renewals: &[Renewal]) -> Request {
    let mut request = Request::held_by(Operation::Renew, keys, caller);
    let arguments = &mut request.arguments;
    for renewal in renewals {
        arguments.text(renewal.occurrence.job.as_str());
        arguments.time(renewal.occurrence.scheduled_at);
        arguments.origin(renewal.origin);
        arguments.text(renewal.run_id.to_string());
        arguments.text(renewal.token.to_string());
        arguments.text(renewal.attempt.to_string());
        arguments.on_crash(renewal.on_crash);
        arguments.millis(renewal.ttl);
        arguments.time(renewal.last_deadline);
    }
    request
}

pub(super) fn release(keys: &Keys, caller: &Caller, releases: &[Release]) -> Request {
    let mut request = Request::held_by(Operation::Release, keys, caller);
    let arguments = &mut request.arguments;
    for release in releases {
        arguments.text(release.occurrence.job.as_str());
        arguments.time(release.occurrence.scheduled_at);
        arguments.origin(release.origin);
        arguments.text(release.run_id.to_string());
        arguments.text(release.token.to_string());
        arguments.text(release.attempt.to_string());
        arguments.on_crash(release.on_crash);
        arguments.text(release.outcome.as_str());
        arguments.text(serde_json::to_string(&release.detail).unwrap_or_default());
        arguments.bytes(printed(release));
        arguments.retention(release.retention);
    }
    request
}

/// Nothing where nothing was printed: then there is nothing to keep.
fn printed(release: &Release) -> Vec<u8> {
    let output = &release.output;
    if output.stdout.is_empty() && output.stderr.is_empty() {
        Vec::new()
    } else {
        encode_output(output)
    }
}

pub(super) fn observe(keys: &Keys, caller: &Caller, info: &ReplicaInfo, scope: Scope) -> Request {
    let mut request = Request::judged(Operation::Observe, keys, caller);
    request.keys.push(keys.replicas.clone());
    let (scope, limit) = match scope {
        Scope::Overdue => ("overdue", OVERDUE_LIMIT),
        Scope::All => ("all", SCOPE_ALL_LIMIT),
    };
    let arguments = &mut request.arguments;
    arguments.text(caller.replica.id.to_string());
    arguments.text(told(&caller.replica, info));
    arguments.text(scope);
    arguments.text(limit.to_string());
    arguments.millis(ABANDONED_AFTER);
    arguments.millis(REPLICA_RETENTION);
    request
}

/// What a replica says of itself, as the ledger keeps it.
fn told(replica: &Replica, info: &ReplicaInfo) -> String {
    serde_json::to_string(&(&replica.name, info)).unwrap_or_default()
}

pub(super) fn output(keys: &Keys, job: &JobName, run_id: RunId) -> Request {
    let mut arguments = Arguments::default();
    arguments.text(run_id.to_string());
    Request {
        operation: Operation::Output,
        keys: vec![keys.history(job), keys.output(job)],
        arguments,
    }
}

#[derive(Default)]
struct Arguments(Vec<Vec<u8>>);

impl Arguments {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.0.push(bytes);
    }

    fn text(&mut self, text: impl Into<String>) {
        self.bytes(text.into().into_bytes());
    }

    fn time(&mut self, time: Timestamp) {
        self.text(time.as_millis().to_string());
    }

    fn time_or_empty(&mut self, time: Option<Timestamp>) {
        self.text(time.map_or(String::new(), |time| time.as_millis().to_string()));
    }

    fn millis(&mut self, duration: Duration) {
        self.text(millis(duration).to_string());
    }

    fn origin(&mut self, origin: Origin) {
        self.text(match origin {
            Origin::Schedule => "schedule",
            Origin::Manual => "manual",
        });
    }

    fn on_crash(&mut self, on_crash: OnCrash) {
        self.text(match on_crash {
            OnCrash::Rerun => "rerun",
            OnCrash::Skip => "skip",
        });
    }

    fn retention(&mut self, retention: Retention) {
        self.text(retention.limit.to_string());
        self.millis(retention.age);
    }
}
