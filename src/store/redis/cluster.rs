//! The way to the node of a cluster that has our keys: what `redis+cluster://` opens.
//!
//! All keys of a namespace lie in one slot, so that a step is atomic there as it is in one
//! server; another namespace most likely lies on another node. Nodes are asked who has the slot
//! (`CLUSTER NODES`), and of those that say so the one of the newest epoch is it. What is moved
//! meanwhile is followed by `MOVED` and `ASK`
//! (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>, "Redirection").
//!
//! Must never: spread a namespace over nodes, or repeat a request whose fate is unknown.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use redis::{FromRedisValue as _, RedisError, Value};
use tokio::time::timeout;

use super::connector::{Connector, Login, Nodes, Stream};
use super::fault::Fault;
use super::handshake;
use super::news::Spread;

/// How long a node has to answer, with connecting to it: less than connecting to the one that
/// has the slot may take, of which it is a part.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// A host without brackets, and a port.
type Address = (String, u16);

/// A cluster, of which one node has our keys.
pub(super) struct Cluster {
    nodes: Nodes,
    /// Any of our keys.
    key: String,
    /// All nodes that were heard of.
    known: Mutex<BTreeSet<Address>>,
    /// Where the last one that was asked sent us.
    sent_to: Mutex<Option<Address>>,
    /// Our keys are being moved, and those who come after them have to say so (`ASKING`).
    asking: AtomicBool,
    term: AtomicU64,
}

impl Cluster {
    /// The way to the node that has this key. Nothing is connected yet.
    pub(super) fn new(nodes: Nodes, seeds: Vec<Address>, key: String) -> Self {
        Self {
            nodes,
            key,
            known: Mutex::new(seeds.into_iter().collect()),
            sent_to: Mutex::default(),
            asking: AtomicBool::new(false),
            term: AtomicU64::new(0),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<Address>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent_to(&self) -> MutexGuard<'_, Option<Address>> {
        self.sent_to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all nodes who has our keys.
    async fn find(&self) -> Result<Address, Fault> {
        let known: Vec<Address> = self.known().iter().cloned().collect();
        let answers = join_all(known.iter().map(|address| self.ask(address))).await;
        let mut first_fault = None;
        let mut newest: Option<(u64, Address)> = None;
        for answer in answers {
            match answer {
                Ok(map) => {
                    self.known().extend(map.nodes);
                    newest = newest.max(map.holder);
                }
                Err(fault) => {
                    first_fault.get_or_insert(fault);
                }
            }
        }
        match (newest, first_fault) {
            (Some((_, address)), _) => Ok(address),
            (None, Some(fault)) => Err(fault),
            (None, None) => {
                let cause = "no node has the slot of our keys: see what CLUSTER INFO says, and bring back the nodes that are missing";
                Err(Fault::unreachable(&self.nodes.place, cause))
            }
        }
    }

    async fn ask(&self, (host, port): &Address) -> Result<Map, Fault> {
        let asked = timeout(ANSWER_TIMEOUT, self.converse(host, *port)).await;
        asked.unwrap_or_else(|_| {
            let cause = format!("the node at {host}:{port} does not answer");
            Err(Fault::unreachable(&self.nodes.place, cause))
        })
    }

    async fn converse(&self, host: &str, port: u16) -> Result<Map, Fault> {
        let server = self.nodes.server(host, port)?;
        let (mut connection, _driver) = handshake::talk(&server).await?;
        let mut commands = redis::pipe();
        commands.cmd("CLUSTER").arg("KEYSLOT").arg(&self.key);
        commands.cmd("CLUSTER").arg("NODES");
        let place = server.place();
        let answers = handshake::ask(&mut connection, &commands).await;
        let answers = answers.map_err(|error| Fault::of(place, &error))?;
        let answers: Result<Vec<Value>, RedisError> =
            answers.into_iter().map(Value::extract_error).collect();
        let answers = answers.map_err(|error| match error.code() {
            Some("ERR") => {
                let cure = "name it by `redis://HOST:PORT`, or set cluster-enabled there";
                Fault::refused(place, "it is no node of a cluster", cure).disconnecting()
            }
            Some("NOPERM") => {
                let rules = ["+cluster|keyslot", "+cluster|nodes"];
                let user = self.nodes.login.name();
                super::access::lacks(place, user, &rules, None).disconnecting()
            }
            _ => Fault::of(place, &error),
        })?;
        read(&answers, host, self.nodes.tls.is_some())
            .ok_or_else(|| Fault::unreachable(place, "what answers there is no node of a cluster"))
    }
}

#[async_trait]
impl Connector for Cluster {
    fn place(&self) -> &str {
        &self.nodes.place
    }

    fn login(&self) -> &Login {
        &self.nodes.login
    }

    fn follows_elections(&self) -> bool {
        true
    }

    async fn reach(&self) -> Result<Stream, Fault> {
        let sent_to = self.sent_to().clone();
        let (host, port) = match sent_to {
            Some(address) => address,
            None => self.find().await?,
        };
        let stream = self.nodes.server(&host, port)?.reach().await;
        if stream.is_err() {
            *self.sent_to() = None;
        }
        stream
    }

    fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    fn spread(&self) -> Spread {
        Spread::Shard
    }

    fn asking(&self) -> bool {
        self.asking.load(Ordering::Acquire)
    }

    fn redirected(&self, error: &RedisError) -> bool {
        let (code, asking) = match error.code() {
            Some(code @ "MOVED") => (code, false),
            Some(code @ "ASK") => (code, true),
            // The node may have been replaced.
            Some("CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING") => {
                *self.sent_to() = None;
                return false;
            }
            _ => return false,
        };
        let to = error.detail().and_then(redirection);
        tracing::debug!(store = %self.nodes.place, ?to, code, "sent elsewhere");
        self.known().extend(to.clone());
        *self.sent_to() = to;
        self.asking.store(asking, Ordering::Release);
        // The other links would find out by themselves, each by a call that fails.
        self.term.fetch_add(1, Ordering::Release);
        true
    }

    fn lost(&self) {
        *self.sent_to() = None;
    }
}

/// `SLOT HOST:PORT`, as `MOVED` and `ASK` say it.
fn redirection(detail: &str) -> Option<Address> {
    let (_, address) = detail.rsplit_once(' ')?;
    let (host, port) = address.rsplit_once(':')?;
    // An empty host is that of whoever says so, which we know no more by now.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| Some((host.to_owned(), port.parse().ok()?)))?
}

/// What a node knows of its cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Map {
    nodes: Vec<Address>,
    /// Who has the slot, since which epoch.
    holder: Option<(u64, Address)>,
}

pub(super) fn read(answers: &[Value], asked: &str, tls: bool) -> Option<Map> {
    let [slot, nodes] = answers else {
        return None;
    };
    let slot = u16::from_redis_value(slot.clone()).ok()?;
    let text = String::from_redis_value(nodes.clone()).ok()?;
    let mut map = Map {
        nodes: Vec::new(),
        holder: None,
    };
    for node in text.lines().filter_map(|line| node(line, asked, tls)) {
        if node.master && node.has(slot) {
            map.holder = map.holder.max(Some((node.epoch, node.address.clone())));
        }
        map.nodes.push(node.address);
    }
    Some(map)
}

/// A line of `CLUSTER NODES`.
struct Node<'l> {
    address: Address,
    master: bool,
    epoch: u64,
    slots: Vec<&'l str>,
}

impl Node<'_> {
    fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
            bounds.is_some_and(|(first, last)| (first..=last).contains(&slot))
        })
    }
}

/// `ID IP:PORT@BUS[,HOST] FLAGS MASTER PING PONG EPOCH STATE SLOTS…`; none for a node that is of
/// no use.
fn node<'l>(line: &'l str, asked: &str, tls: bool) -> Option<Node<'l>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, address, flags, _, _, _, epoch, _, slots @ ..] = words.as_slice() else {
        return None;
    };
    let flags: Vec<&str> = flags.split(',').collect();
    if flags.contains(&"noaddr") || flags.contains(&"handshake") || flags.contains(&"fail") {
        return None;
    }
    let (address, names) = address.split_once('@').unwrap_or((address, ""));
    // A certificate is for a name, if the nodes have any.
    let name = names
        .split(',')
        .nth(1)
        .filter(|name| tls && !name.is_empty());
    let (ip, port) = address.rsplit_once(':')?;
    let host = match (name, ip) {
        (Some(name), _) => name,
        (None, "") => asked,
        (None, ip) => ip,
    };
    Some(Node {
        address: (host.to_owned(), port.parse().ok()?),
        master: flags.contains(&"master"),
        epoch: epoch.parse().ok()?,
        slots: slots.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "\
07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002,hostname2 master - 0 1426238316232 2 connected 5461-10922
292f :30003@31003 myself,master - 0 0 3 connected 10923-16383 [93->-292f]
6ec2 127.0.0.1:30005@31005,hostname5 master,fail - 0 1426238316232 1 connected 0-5460
824f 127.0.0.1:30006@31006,hostname6 master - 0 1426238317741 7 connected 0-5459 5460
";

    fn map(slot: i64, tls: bool) -> Map {
        let answers = [
            Value::Int(slot),
            Value::BulkString(NODES.as_bytes().to_vec()),
        ];
        read(&answers, "there", tls).unwrap()
    }

    fn at(host: &str, port: u16) -> Address {
        (host.to_owned(), port)
    }

    #[test]
    fn who_has_a_slot_is_read_from_the_nodes() {
        assert_eq!(map(6000, false).holder, Some((2, at("127.0.0.1", 30002))));
        assert_eq!(map(6000, true).holder, Some((2, at("hostname2", 30002))));
        // The former holder has failed, and the node that was asked knows no address of its own.
        assert_eq!(map(5460, false).holder, Some((7, at("127.0.0.1", 30006))));
        assert_eq!(map(16383, false).holder, Some((3, at("there", 30003))));
        assert_eq!(map(0, false).nodes.len(), 4);
    }

    #[test]
    fn a_redirection_names_host_and_port() {
        assert_eq!(
            redirection("3999 127.0.0.1:6381"),
            Some(at("127.0.0.1", 6381))
        );
        assert_eq!(redirection("3999 ::1:6381"), Some(at("::1", 6381)));
        assert_eq!(redirection("3999 [::1]:6381"), Some(at("::1", 6381)));
        assert_eq!(redirection("3999 :6381"), None);
        assert_eq!(redirection("?"), None);
    }
}
