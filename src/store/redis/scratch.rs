//! What a self-test does in a namespace of its own beside what replicas do there: the lock that
//! everybody writes, to compare with, and the end of all its keys.
//!
//! Must never: search for keys, or touch one that the namespace doesn't name.

use std::time::Duration;

use redis::{Pipeline, Value};

use super::RedisStore;
use super::fault::Fault;
use super::keys::Keys;
use super::reply::Misread;
use super::server::{field, text_of};
use crate::scheduler::job::JobName;
use crate::store::StoreError;

/// What a server is to have left of its `maxmemory`, in bytes: what is written, connections and
/// their buffers came to 2 MB in a minute with five replicas.
const ROOM: u64 = 32 << 20;

impl RedisStore {
    /// Every key of the namespace, with those of plain locks.
    pub(in crate::store) fn scratch_keys(&self, jobs: &[JobName], locks: &[String]) -> Vec<String> {
        let locks = locks.iter().map(|lock| self.keys.plain_lock(lock));
        self.keys.all(jobs).into_iter().chain(locks).collect()
    }

    /// What a user who is held to patterns needs for all namespaces whose names begin so.
    pub(in crate::store) fn scratch_rule(beginning: &str) -> String {
        let keys = Keys::pattern(beginning);
        format!("~{keys} &{keys}")
    }

    /// Whether a self-test finds room in the server: one whose memory is short deletes keys of others,
    /// or refuses what they write. Who may not ask is told nothing.
    pub(in crate::store) async fn has_room(&self) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("INFO").arg("memory");
        let Ok(answers) = self.asking.send(commands).await else {
            return Ok(());
        };
        let text = answers.first().map(text_of).unwrap_or_default();
        let number = |name: &str| field(text, name)?.parse::<u64>().ok();
        let (Some(most @ 1..), Some(used)) = (number("maxmemory"), number("used_memory")) else {
            return Ok(());
        };
        if most.saturating_sub(used) >= ROOM {
            return Ok(());
        }
        let policy = field(text, "maxmemory_policy").unwrap_or_default();
        let does = match policy {
            "" | "noeviction" => "would refuse what others write",
            _ => "would delete keys of others",
        };
        Err(Fault::refused(
            &self.place,
            format!(
                "of its {} MiB (maxmemory) {} are used: while a self-test takes some, it {does}",
                most >> 20,
                used >> 20
            ),
            format!(
                "test on a server with {} MiB to spare, or raise maxmemory",
                ROOM >> 20
            ),
        )
        .error)
    }

    /// Deletes every key of the namespace; answers how many were there.
    pub(in crate::store) async fn unlink_scratch(
        &self,
        jobs: &[JobName],
        locks: &[String],
    ) -> Result<i64, StoreError> {
        let mut commands = redis::pipe();
        let keys = self.scratch_keys(jobs, locks);
        commands.cmd("UNLINK").arg(&keys);
        match self.once(commands, "delete keys", "+unlink").await? {
            Value::Int(count) => Ok(count),
            _ => Err(Fault::misread(&self.place, &Misread::Form).error),
        }
    }

    /// `SET key owner NX PX ttl`.
    pub(in crate::store) async fn set_plain(
        &self,
        lock: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let mut commands = redis::pipe();
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let command = commands.cmd("SET").arg(self.keys.plain_lock(lock));
        command.arg(owner).arg("NX").arg("PX").arg(ttl);
        Ok(self.plain(commands).await? != Value::Nil)
    }

    /// `DEL key`.
    pub(in crate::store) async fn delete_plain(&self, lock: &str) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("DEL").arg(self.keys.plain_lock(lock));
        self.plain(commands).await.map(|_| ())
    }

    /// Sends one command of the plain lock.
    async fn plain(&self, command: Pipeline) -> Result<Value, StoreError> {
        let rule = "+set +del, which nothing else needs";
        self.once(command, "use a plain lock", rule).await
    }

    /// Sends one command, for which the user may have no permission.
    async fn once(&self, command: Pipeline, what: &str, rule: &str) -> Result<Value, StoreError> {
        let answers = self.asking.send(command).await;
        let answers = answers.map_err(|fault| match fault.denied {
            // None of it is what replicas need.
            true => {
                let user = self.connector.login().name();
                Fault::refused(
                    &self.place,
                    format!("the user `{user}` may not {what} (NOPERM)"),
                    format!("allow it with {rule}"),
                )
                .error
            }
            false => fault.error,
        })?;
        Ok(answers.into_iter().next().unwrap_or(Value::Nil))
    }
}
