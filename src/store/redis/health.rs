//! Settings of the server that put the ledger at risk: a policy that evicts, and no persistence.
//! They may be changed under running replicas, so that they are looked at with each new
//! connection and every few minutes, and told when they change.
//!
//! Must never: hold up a call, fail one, or need a permission: who may not ask for a setting is
//! told nothing of it, and doesn't ask.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Pipeline, Value};
use tokio::time::Instant;

use super::fault::Fault;
use super::link::Link;
use super::server::{ServerInfo, field, text_of};
use crate::store::StoreCondition;

/// From one look to the next on a connection that lasts.
const LOOK_INTERVAL: Duration = Duration::from_secs(300);

/// The policies that may delete keys that have no expiry, as all of ours.
const EVICTING_POLICIES: &str = "allkeys-";

/// Answers 1 to whoever may ask for the setting `save`. To ask for it, and be denied, would leave a
/// line in the server's `ACL LOG` each time; this leaves none
/// (<https://redis.io/docs/latest/develop/interact/programmability/lua-api/>, since 7.0).
const MAY_ASK: &str = "#!lua flags=no-writes\n\
    return redis.acl_check_cmd('config', 'get', 'save') and 1 or 0";

/// What everybody may ask.
fn questions() -> Pipeline {
    let mut commands = redis::pipe();
    for section in ["memory", "persistence"] {
        commands.cmd("INFO").arg(section);
    }
    commands.cmd("EVAL").arg(MAY_ASK).arg(0);
    commands
}

/// What the server answers of its settings; of how it saves only where it may be asked.
async fn ask(link: &Link) -> Result<Vec<Value>, Fault> {
    let mut answers = link.try_out(questions()).await?;
    if answers.pop() == Some(Value::Int(1)) {
        let mut command = redis::pipe();
        command.cmd("CONFIG").arg("GET").arg("save");
        answers.extend(link.try_out(command).await?);
    }
    Ok(answers)
}

/// Reads the answers.
pub(super) fn read(answers: &[Value]) -> Vec<StoreCondition> {
    let text: String = answers.iter().map(text_of).collect();
    let mut conditions = Vec::new();
    let policy = field(&text, "maxmemory_policy").unwrap_or_default();
    if policy.starts_with(EVICTING_POLICIES) {
        let policy = policy.to_owned();
        conditions.push(StoreCondition::Evicts { policy });
    }
    let appends = field(&text, "aof_enabled") != Some("0");
    if !appends && answers.get(2).is_some_and(never_saves) {
        conditions.push(StoreCondition::KeepsNothing);
    }
    conditions
}

/// Whether the answers say neither that it is so nor that it isn't: who may ask one day may not ask
/// another, and a server that starts refuses what it answers a moment later.
fn leave_open(answers: &[Value], condition: &StoreCondition) -> bool {
    let text: String = answers.iter().map(text_of).collect();
    match condition {
        StoreCondition::Evicts { .. } => field(&text, "maxmemory_policy").is_none(),
        StoreCondition::KeepsNothing => match field(&text, "aof_enabled") {
            Some("0") => !matches!(answers.get(2), Some(Value::Array(_) | Value::Map(_))),
            Some(_) => false,
            None => true,
        },
    }
}

/// Whether `CONFIG GET save` says that no snapshots are made by themselves.
fn never_saves(answer: &Value) -> bool {
    let save = match answer {
        Value::Array(pair) => pair.get(1),
        Value::Map(pairs) => pairs.first().map(|(_, value)| value),
        _ => None,
    };
    save.is_some_and(|save| matches!(save, Value::BulkString(_)) && text_of(save).is_empty())
}

/// What people are told in `status`.
pub(super) async fn conditions(link: &Link) -> Vec<StoreCondition> {
    let answers = ask(link).await;
    answers.map(|answers| read(&answers)).unwrap_or_default()
}

/// What is known of the server's settings.
pub(super) struct Health {
    place: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    looked_at: Option<Instant>,
    /// What the connection's server said of itself: another one with each connection.
    server: Option<Arc<ServerInfo>>,
    told: Vec<StoreCondition>,
}

impl State {
    /// What people were told, and what there is to tell.
    fn take_in(&mut self, answers: &[Value]) -> (Vec<StoreCondition>, Vec<StoreCondition>) {
        let mut now = read(answers);
        let open = self.told.iter().filter(|one| leave_open(answers, one));
        now.extend(open.cloned());
        (std::mem::replace(&mut self.told, now.clone()), now)
    }

    /// Whether it is time to look; if so, it counts as done.
    fn is_due(&mut self, server: &Arc<ServerInfo>, now: Instant) -> bool {
        let known = self
            .server
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, server));
        let lately = self.looked_at.is_some_and(|at| now < at + LOOK_INTERVAL);
        if known && lately {
            return false;
        }
        self.server = Some(Arc::clone(server));
        self.looked_at = Some(now);
        true
    }
}

impl Health {
    pub(super) fn new(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Looks beside whatever else is going on, if it is time to.
    pub(super) async fn watch(self: &Arc<Self>, link: &Link) {
        let Ok(server) = link.server().await else {
            return;
        };
        let due = self.state().is_due(&server, Instant::now());
        if due {
            let (health, link) = (Arc::clone(self), link.clone());
            tokio::spawn(async move { health.look(&link).await });
        }
    }

    /// Looks, and tells what has changed.
    pub(super) async fn look(&self, link: &Link) {
        let Ok(answers) = ask(link).await else {
            return;
        };
        let (before, now) = self.state().take_in(&answers);
        for condition in now.iter().filter(|one| !before.contains(one)) {
            self.tell(condition);
        }
        for condition in before.iter().filter(|one| !now.contains(one)) {
            tracing::info!(store = %self.place, "no longer so: {condition}");
        }
    }

    fn tell(&self, condition: &StoreCondition) {
        match condition {
            StoreCondition::Evicts { .. } => tracing::warn!(store = %self.place, "{condition}"),
            StoreCondition::KeepsNothing => tracing::info!(store = %self.place, "{condition}"),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn save(value: &str) -> Value {
        Value::Array(vec![info("save"), info(value)])
    }

    #[test]
    fn what_puts_the_ledger_at_risk_is_told_and_what_is_not_known_is_not() {
        let nothing = Vec::new();
        let evicts = |policy: &str| StoreCondition::Evicts {
            policy: policy.to_owned(),
        };
        let denied = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
        for (policy, appends, save, told) in [
            ("noeviction", 1, save(""), nothing.clone()),
            ("volatile-lru", 1, save(""), nothing.clone()),
            ("allkeys-lru", 1, save(""), vec![evicts("allkeys-lru")]),
            ("noeviction", 0, save("3600 1"), nothing.clone()),
            (
                "noeviction",
                0,
                save(""),
                vec![StoreCondition::KeepsNothing],
            ),
            ("noeviction", 0, denied, nothing),
        ] {
            let memory = info(&format!("# Memory\r\nmaxmemory_policy:{policy}\r\n"));
            let persistence = info(&format!("# Persistence\r\naof_enabled:{appends}\r\n"));
            assert_eq!(read(&[memory, persistence, save]), told);
        }
        assert_eq!(read(&[]), Vec::new());
    }

    #[test]
    fn what_is_not_answered_for_once_is_as_it_was() {
        let memory = |policy: &str| info(&format!("# Memory\r\nmaxmemory_policy:{policy}\r\n"));
        let persistence = |appends: u8| info(&format!("aof_enabled:{appends}\r\n"));
        let loading = redis::parse_redis_value(b"-LOADING wait\r\n").unwrap();
        let risky = [memory("allkeys-lru"), persistence(0), save("")];
        let mut state = State::default();
        assert_eq!(state.take_in(&risky).1.len(), 2);
        for unknown in [
            vec![memory("allkeys-lru"), persistence(0)],
            vec![memory("allkeys-lru"), persistence(0), loading.clone()],
            vec![loading.clone(), loading],
            risky.to_vec(),
        ] {
            let (before, now) = state.take_in(&unknown);
            assert_eq!(before, now);
        }
        let well = [memory("noeviction"), persistence(1)];
        assert_eq!(state.take_in(&well).1, []);
    }

    #[tokio::test]
    async fn settings_are_looked_at_with_a_new_connection_and_every_few_minutes() {
        let answers = [info("redis_version:7.2.4\r\nrun_id:abc\r\n")];
        let server = || Arc::new(ServerInfo::read("redis://there", &answers).ok().unwrap());
        let (mut state, first, now) = (State::default(), server(), Instant::now());
        assert!(state.is_due(&first, now));
        assert!(!state.is_due(&first, now + Duration::from_secs(299)));
        assert!(state.is_due(&first, now + LOOK_INTERVAL));
        assert!(state.is_due(&server(), now + LOOK_INTERVAL));
    }
}
