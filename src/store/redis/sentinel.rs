//! The way to a master that Sentinels watch over: what `redis+sentinel://` opens.
//!
//! ```text
//!  reach ─▶ ask all Sentinels ─▶ a majority answers ─▶ the master of the newest epoch ─▶ connect
//!             ▲ again each second                          │ another one, or no majority
//!             └────────────────────────────────────────────┴─▶ a new term: links begin anew
//! ```
//!
//! All Sentinels are asked, those of the URL and those that they tell of, and a majority of all
//! that there are has to answer. Whoever is cut off with a minority can't know that a new master
//! was elected on the other side: it lets go of the old one within 2.4 s, while the others wait for
//! `down-after-milliseconds`, elect another one and then grant nothing for the length of a lease.
//! <https://redis.io/docs/latest/develop/reference/sentinel-clients/> asks one Sentinel alone.
//!
//! Must never: take the word of a minority, or go on with a master that a newer one replaced.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Pipeline, RedisError, Value};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connector::{Connector, Login, Nodes, Stream};
use super::fault::Fault;
use super::handshake::{self, Driver};

/// How long a Sentinel has to answer, with connecting to it: less than connecting to the master
/// may take, of which it is a part.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(700);

/// From one look whether the master is still the same to the next.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// A host without brackets, and a port.
type Address = (String, u16);

/// A master, by way of its Sentinels.
pub(super) struct Sentinels {
    watch: Arc<Watch>,
    watcher: OnceLock<Watcher>,
}

/// The task that looks whether the master is still the same.
struct Watcher(JoinHandle<()>);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Watch {
    /// The Sentinels.
    sentinels: Nodes,
    /// What they watch over.
    servers: Nodes,
    master: String,
    /// All Sentinels that were heard of.
    known: Mutex<BTreeSet<Address>>,
    talks: tokio::sync::Mutex<HashMap<Address, Talk>>,
    /// Where links were led last.
    led_to: Mutex<Option<Address>>,
    term: AtomicU64,
}

/// A connection to a Sentinel.
#[derive(Clone)]
struct Talk {
    connection: MultiplexedConnection,
    _driver: Arc<Driver>,
}

/// What a Sentinel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Which Sentinel it is, whatever addresses it has.
    id: String,
    pub(super) master: Address,
    /// How often the master was chosen anew.
    epoch: u64,
    others: usize,
    sentinels: Vec<Address>,
}

impl Sentinels {
    /// A way to the master of this name. Nothing is connected yet.
    pub(super) fn new(
        servers: Nodes,
        sentinel_login: Login,
        listed: Vec<Address>,
        master: String,
    ) -> Self {
        let sentinels = Nodes {
            login: sentinel_login,
            ..servers.clone()
        };
        let watch = Watch {
            sentinels,
            servers,
            master,
            known: Mutex::new(listed.into_iter().collect()),
            talks: tokio::sync::Mutex::default(),
            led_to: Mutex::default(),
            term: AtomicU64::new(0),
        };
        Self {
            watch: Arc::new(watch),
            watcher: OnceLock::new(),
        }
    }
}

#[async_trait]
impl Connector for Sentinels {
    fn place(&self) -> &str {
        &self.watch.servers.place
    }

    fn login(&self) -> &Login {
        &self.watch.servers.login
    }

    fn follows_elections(&self) -> bool {
        true
    }

    async fn reach(&self) -> Result<Stream, Fault> {
        let watch = &self.watch;
        let (host, port) = watch.find().await?;
        watch.lead_to(Some((host.clone(), port)));
        self.watcher
            .get_or_init(|| Watcher(tokio::spawn(watch_over(Arc::clone(watch)))));
        watch.servers.server(&host, port)?.reach().await
    }

    fn term(&self) -> u64 {
        self.watch.term.load(Ordering::Acquire)
    }
}

/// Looks again and again whether the master is the same. One look that fails may be an accident.
async fn watch_over(watch: Arc<Watch>) {
    let mut failed_before = false;
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        let found = watch.find().await;
        let store = &watch.servers.place;
        match found {
            Ok(master) => {
                failed_before = false;
                watch.lead_to(Some(master));
            }
            Err(fault) if std::mem::replace(&mut failed_before, true) => {
                if watch.lead_to(None) {
                    tracing::warn!(store, error = %fault.error, "the master is left alone");
                }
            }
            Err(_) => {}
        }
    }
}

impl Watch {
    fn known(&self) -> MutexGuard<'_, BTreeSet<Address>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where links lead from now on. Those that lead elsewhere are of no use any more; answers
    /// whether there may be any.
    fn lead_to(&self, master: Option<Address>) -> bool {
        let mut led_to = self.led_to.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *led_to, master);
        let elsewhere = before.is_some() && *led_to != before;
        if elsewhere {
            self.term.fetch_add(1, Ordering::Release);
        }
        if let (true, Some((host, port))) = (elsewhere, &*led_to) {
            let store = &self.servers.place;
            tracing::warn!(store, "the master is another one now, {host}:{port}");
        }
        elsewhere
    }

    /// Asks all Sentinels for the master.
    async fn find(&self) -> Result<Address, Fault> {
        let known: Vec<Address> = self.known().iter().cloned().collect();
        let answers = join_all(known.iter().map(|address| self.ask(address))).await;
        let (told, faults): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        let told: Vec<Told> = told.into_iter().flatten().collect();
        let heard_of = told.iter().flat_map(|told| told.sentinels.iter().cloned());
        let new: Vec<Address> = {
            let mut known = self.known();
            heard_of
                .filter(|address| known.insert(address.clone()))
                .collect()
        };
        let mut told = told;
        let more = join_all(new.iter().map(|address| self.ask(address))).await;
        told.extend(more.into_iter().flatten());
        choose(told).map_err(|count| self.undecided(count, faults))
    }

    fn undecided(
        &self,
        (answered, all): (usize, usize),
        faults: Vec<Result<Told, Fault>>,
    ) -> Fault {
        let first = faults.into_iter().find_map(Result::err);
        match (answered, first) {
            (0, Some(fault)) => fault,
            _ => {
                let cause = format!(
                    "{answered} of {all} Sentinels answer, and which server is the master is for more than half of them to say: bring the others back, or SENTINEL RESET those that are gone for good"
                );
                Fault::unreachable(&self.servers.place, cause)
            }
        }
    }

    /// Asks one Sentinel.
    async fn ask(&self, address: &Address) -> Result<Told, Fault> {
        let asked = timeout(ANSWER_TIMEOUT, self.converse(address)).await;
        let result = asked.unwrap_or_else(|_| {
            let (host, port) = address;
            let cause = format!("the Sentinel at {host}:{port} does not answer");
            Err(Fault::unreachable(&self.servers.place, cause))
        });
        if result.is_err() {
            self.talks.lock().await.remove(address);
        }
        result
    }

    async fn converse(&self, address: &Address) -> Result<Told, Fault> {
        let known = self.talks.lock().await.get(address).cloned();
        let mut talk = match known {
            Some(talk) => talk,
            None => {
                let server = self.sentinels.server(&address.0, address.1)?;
                let (connection, driver) = handshake::talk(&server).await?;
                let talk = Talk {
                    connection,
                    _driver: Arc::new(driver),
                };
                let mut talks = self.talks.lock().await;
                talks.entry(address.clone()).or_insert(talk).clone()
            }
        };
        let answers = handshake::ask(&mut talk.connection, &questions(&self.master)).await;
        let place = &self.servers.place;
        let answers = answers.map_err(|error| Fault::of(place, &error))?;
        let answers: Result<Vec<Value>, RedisError> =
            answers.into_iter().map(Value::extract_error).collect();
        let answers = answers.map_err(|error| self.refused(address, &error))?;
        read(&answers).ok_or_else(|| {
            let (host, port) = address;
            let cause = format!("what answers at {host}:{port} is no Sentinel");
            Fault::unreachable(place, cause)
        })
    }

    fn refused(&self, (host, port): &Address, error: &RedisError) -> Fault {
        let place = &self.servers.place;
        match error.code() {
            Some("ERR") => {
                let master = &self.master;
                let cause = format!(
                    "the Sentinel at {host}:{port} does not know a master `{master}`, or is none ({error})"
                );
                let cure = "name the master in the store's URL as SENTINEL MASTERS does";
                Fault::refused(place, cause, cure).disconnecting()
            }
            Some("NOAUTH" | "WRONGPASS") => {
                let cause = format!("the Sentinel at {host}:{port} asks for another password");
                let cure = "give it by `?sentinel_user=USER&sentinel_password=PASSWORD` in the store's URL";
                Fault::refused(place, cause, cure).disconnecting()
            }
            _ => Fault::of(place, error),
        }
    }
}

fn questions(master: &str) -> Pipeline {
    let mut commands = redis::pipe();
    commands.cmd("SENTINEL").arg("MYID");
    commands.cmd("SENTINEL").arg("MASTER").arg(master);
    commands.cmd("SENTINEL").arg("SENTINELS").arg(master);
    commands
}

pub(super) fn read(answers: &[Value]) -> Option<Told> {
    let [id, master, sentinels] = answers else {
        return None;
    };
    let master = fields(master)?;
    let others = Vec::<Value>::from_redis_value(sentinels.clone()).ok()?;
    let address = |fields: &BTreeMap<String, String>| {
        Some((fields.get("ip")?.clone(), fields.get("port")?.parse().ok()?))
    };
    let others: Vec<_> = others.iter().filter_map(fields).collect();
    Some(Told {
        id: String::from_redis_value(id.clone()).ok()?,
        master: address(&master)?,
        epoch: master.get("config-epoch")?.parse().ok()?,
        others: master.get("num-other-sentinels")?.parse().ok()?,
        sentinels: others.iter().filter_map(address).collect(),
    })
}

fn fields(answer: &Value) -> Option<BTreeMap<String, String>> {
    FromRedisValue::from_redis_value(answer.clone()).ok()
}

/// The master of the newest epoch, where more than half of all Sentinels answered; else how many
/// did, and how many there are.
pub(super) fn choose(told: Vec<Told>) -> Result<Address, (usize, usize)> {
    let told: BTreeMap<String, Told> = told.into_iter().map(|one| (one.id.clone(), one)).collect();
    let all = told
        .values()
        .map(|one| one.others.saturating_add(1))
        .max()
        .unwrap_or(0);
    let newest = told.values().max_by_key(|one| one.epoch);
    match newest {
        Some(newest) if told.len() * 2 > all => Ok(newest.master.clone()),
        _ => Err((told.len(), all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: &str, port: u16, epoch: u64) -> Told {
        Told {
            id: id.to_owned(),
            master: ("10.0.0.1".to_owned(), port),
            epoch,
            others: 2,
            sentinels: Vec::new(),
        }
    }

    #[test]
    fn the_newest_epoch_counts_where_a_majority_answers() {
        let behind = [told("a", 1, 4), told("b", 2, 5), told("c", 1, 4)];
        assert_eq!(choose(behind.to_vec()), Ok(("10.0.0.1".to_owned(), 2)));
        assert_eq!(choose(behind[..2].to_vec()), Ok(("10.0.0.1".to_owned(), 2)));
        assert_eq!(choose(behind[..1].to_vec()), Err((1, 3)));
        assert_eq!(choose(Vec::new()), Err((0, 0)));
    }

    #[test]
    fn any_number_of_others_that_a_sentinel_claims_is_no_majority() {
        let others = usize::MAX;
        let one = Told {
            others,
            ..told("a", 1, 4)
        };
        assert_eq!(choose(vec![one]), Err((1, usize::MAX)));
    }

    #[test]
    fn a_sentinel_that_answers_by_two_addresses_counts_once() {
        let twice = vec![told("a", 1, 4), told("a", 1, 4)];
        assert_eq!(choose(twice), Err((1, 3)));
    }
}
