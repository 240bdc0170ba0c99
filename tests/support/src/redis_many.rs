//! Several Redis servers that make one store: a master with replicas under Sentinels, or a
//! cluster.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::redis::{RedisOptions, RedisServer};

/// How long servers may take to find each other, on a busy machine. A Sentinel that this kept from its
/// work for two seconds does nothing for half a minute (its "tilt mode").
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// The name by which the Sentinels know the master.
pub const MASTER: &str = "main";

/// After how long without an answer a server counts as gone.
pub const DOWN_AFTER: Duration = Duration::from_secs(2);

/// A master, two replicas and three Sentinels.
#[derive(Debug)]
pub struct Sentinels {
    /// The master first, at the start.
    pub servers: Vec<RedisServer>,
    /// Those who watch.
    pub sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts them, and returns once all Sentinels know each other and both replicas.
    #[must_use]
    pub fn start() -> Self {
        Self::start_as(&RedisServer::options())
    }

    /// The same with these options for each of them.
    #[must_use]
    pub fn start_as(options: &RedisOptions) -> Self {
        let master = options.start();
        let port = master.announced_port().to_string();
        let replica = || {
            let address = format!("127.0.0.1 {port}");
            options
                .clone()
                .argument("--replicaof", &address)
                .argument("--repl-diskless-sync-delay", "0")
                .start()
        };
        let servers = vec![replica(), replica()];
        let config = format!(
            "sentinel monitor {MASTER} 127.0.0.1 {port} 2\n\
             sentinel down-after-milliseconds {MASTER} {}\n\
             sentinel failover-timeout {MASTER} 10000\n",
            DOWN_AFTER.as_millis()
        );
        let sentinel = || options.clone().config(&config).sentinel().start();
        let all = Self {
            servers: std::iter::once(master).chain(servers).collect(),
            sentinels: (0..3).map(|_| sentinel()).collect(),
        };
        all.wait_until_settled();
        all
    }

    /// Each Sentinel knows the others, a master that is there, and replicas that follow it.
    pub fn wait_until_settled(&self) {
        wait_for("Sentinels that know each other and both replicas", || {
            self.sentinels.iter().all(|sentinel| {
                let about = about_master(sentinel);
                let says = |field: &str| about.get(field).map_or("", String::as_str);
                says("num-other-sentinels") == "2"
                    && says("num-slaves") == "2"
                    && says("flags") == "master"
                    && sentinel
                        .command(&["SENTINEL", "REPLICAS", MASTER])
                        .matches("master-link-status\nok")
                        .count()
                        == 2
            })
        });
    }

    /// `redis+sentinel://…`, with the first Sentinel alone: it knows the others.
    #[must_use]
    pub fn url(&self) -> String {
        let port = self.sentinels[0].announced_port();
        format!("redis+sentinel://127.0.0.1:{port}/{MASTER}")
    }

    /// The same with all Sentinels.
    #[must_use]
    pub fn full_url(&self) -> String {
        let ports = self.sentinels.iter().map(RedisServer::announced_port);
        let hosts: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// Which server the Sentinels take for the master.
    #[must_use]
    pub fn master(&self) -> usize {
        let answering = self.sentinels.iter().find(|one| !one.is_down());
        let about = about_master(answering.expect("one Sentinel is left"));
        let port = about.get("port").expect("a port");
        let mut servers = self.servers.iter();
        let master = servers.position(|server| server.announced_port().to_string() == *port);
        master.expect("one of ours")
    }

    /// Waits until another server than this is the master.
    pub fn wait_for_failover(&self, from: usize) -> usize {
        let mut master = from;
        wait_for("another master", || {
            master = self.master();
            master != from
                && self.servers[master]
                    .question(&["ROLE"])
                    .starts_with("master")
        });
        master
    }
}

fn about_master(sentinel: &RedisServer) -> std::collections::BTreeMap<String, String> {
    let text = sentinel.command(&["SENTINEL", "MASTER", MASTER]);
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks(2).filter_map(|pair| match pair {
        [name, value] => Some(((*name).to_owned(), (*value).to_owned())),
        _ => None,
    });
    pairs.collect()
}

/// Six nodes: three masters with a replica each.
#[derive(Debug)]
pub struct Cluster {
    /// In no order.
    pub nodes: Vec<RedisServer>,
}

impl Cluster {
    /// Starts the nodes, joins them, and returns once the cluster is up.
    ///
    /// # Panics
    ///
    /// When they don't come together.
    #[must_use]
    pub fn start() -> Self {
        Self::start_as(&RedisServer::options())
    }

    /// The same with these options for each of them.
    ///
    /// # Panics
    ///
    /// When they don't come together.
    #[must_use]
    pub fn start_as(options: &RedisOptions) -> Self {
        let node = |_| {
            options
                .clone()
                .cluster()
                .argument(
                    "--cluster-node-timeout",
                    &DOWN_AFTER.as_millis().to_string(),
                )
                .argument("--repl-diskless-sync-delay", "0")
                .start()
        };
        let all = Self {
            nodes: (0..6).map(node).collect(),
        };
        let hosts = all
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.announced_port()));
        // Who is who, the test knows without a certificate.
        let tls: &[&str] = match options.has_tls() {
            true => &["--tls", "--insecure"],
            false => &[],
        };
        let joined = Command::new("redis-cli")
            .args(tls)
            .args(["--cluster", "create"])
            .args(hosts)
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .expect("redis-cli starts");
        let told = String::from_utf8_lossy(&joined.stdout);
        assert!(joined.status.success(), "the nodes don't join:\n{told}");
        all.wait_until_settled();
        all
    }

    /// One node that has all slots, without a replica. It is up some seconds later, by its clock.
    #[must_use]
    pub fn alone(options: &RedisOptions) -> RedisServer {
        let node = options.clone().cluster().start();
        node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        node
    }

    /// All nodes that answer say that the cluster is up, with all its replicas.
    pub fn wait_until_settled(&self) {
        wait_for("a cluster that is up", || {
            self.nodes
                .iter()
                .filter(|node| !node.is_down())
                .all(|node| {
                    let up = node.command(&["CLUSTER", "INFO"]);
                    let replication = node.command(&["INFO", "replication"]);
                    let follows = replication.contains("master_link_status:up")
                        || replication.contains("connected_slaves:1");
                    up.contains("cluster_state:ok") && follows
                })
        });
    }

    /// `redis+cluster://…`, with one node alone: it knows the others.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "redis+cluster://127.0.0.1:{}",
            self.nodes[0].announced_port()
        )
    }

    /// The same with all nodes.
    #[must_use]
    pub fn full_url(&self) -> String {
        let ports = self.nodes.iter().map(RedisServer::announced_port);
        let hosts: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The slot of a namespace.
    #[must_use]
    pub fn slot(&self, namespace: &str) -> String {
        self.nodes[0].command(&["CLUSTER", "KEYSLOT", &format!("{{{namespace}}}")])
    }

    /// Which node has a namespace's keys, by what a node that answers says.
    #[must_use]
    pub fn holder(&self, namespace: &str) -> usize {
        self.known_holder(namespace)
            .expect("some node has the slot")
    }

    /// The same; in the moment of a change it may be none.
    fn known_holder(&self, namespace: &str) -> Option<usize> {
        let answering = self.nodes.iter().find(|node| !node.is_down());
        let answering = answering.expect("a node is left");
        let slot: u32 = answering
            .command(&["CLUSTER", "KEYSLOT", &format!("{{{namespace}}}")])
            .parse()
            .expect("a slot");
        let ranges = answering.command(&["CLUSTER", "NODES"]);
        let port = ranges.lines().find_map(|line| {
            let mut words = line.split(' ');
            let address = words.nth(1)?;
            let masters = words.next()?.contains("master");
            let mut slots = words.skip(5);
            let has = slots.any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let first = first.parse::<u32>();
                let last = last.parse::<u32>();
                matches!((first, last), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
            });
            let port = address.split('@').next()?.rsplit(':').next()?;
            (masters && has).then(|| port.to_owned())
        });
        let port = port?;
        let mut nodes = self.nodes.iter();
        let holder = nodes.position(|node| node.port().to_string() == port);
        Some(holder.expect("one of ours"))
    }

    /// A master that is not this one.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn other_master(&self, than: usize) -> usize {
        let answering = |node: &RedisServer| !node.is_down();
        let mut nodes = self.nodes.iter().enumerate();
        let other = nodes.find(|(number, node)| {
            *number != than && answering(node) && node.command(&["ROLE"]).starts_with("master")
        });
        other.expect("three masters").0
    }

    /// The node that replicates this one.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn replica_of(&self, master: usize) -> usize {
        let id = self.nodes[master].command(&["CLUSTER", "MYID"]);
        let told = self.nodes[master].command(&["CLUSTER", "REPLICAS", &id]);
        let replica = self.nodes.iter().position(|node| {
            let port = format!(":{}@", node.port());
            told.contains(&port)
        });
        replica.expect("a replica")
    }

    /// Waits until another node than this has a namespace's keys.
    pub fn wait_for_failover(&self, namespace: &str, from: usize) -> usize {
        let mut holder = None;
        wait_for("another holder of the slot", || {
            holder = self.known_holder(namespace);
            holder.is_some_and(|holder| holder != from)
        });
        holder.expect("it was waited for")
    }

    /// Waits until this node has taken its dead master's place, and all that live say that no slot
    /// lacks a node.
    pub fn wait_until_served_by(&self, heir: usize) {
        wait_for("a cluster that serves all slots again", || {
            let mut living = self.nodes.iter().filter(|node| !node.is_down());
            self.nodes[heir].command(&["ROLE"]).starts_with("master")
                && living.all(|node| {
                    let told = node.command(&["CLUSTER", "INFO"]);
                    told.contains("cluster_state:ok")
                })
        });
    }
}

/// Moves a slot with all its keys, as `redis-cli --cluster reshard` does, and waits in between.
#[derive(Debug)]
pub struct Move<'c> {
    from: &'c RedisServer,
    to: &'c RedisServer,
    all: &'c [RedisServer],
    slot: String,
}

impl<'c> Move<'c> {
    /// Of the slot of a namespace, from where it is to this node.
    #[must_use]
    pub fn of(cluster: &'c Cluster, namespace: &str, to: usize) -> Self {
        Self {
            from: &cluster.nodes[cluster.holder(namespace)],
            to: &cluster.nodes[to],
            all: &cluster.nodes,
            slot: cluster.slot(namespace),
        }
    }

    fn id(server: &RedisServer) -> String {
        server.command(&["CLUSTER", "MYID"])
    }

    /// Both nodes are told that it moves.
    ///
    /// # Panics
    ///
    /// When one of them doesn't take it.
    pub fn begin(&self) {
        let (from, to) = (Self::id(self.from), Self::id(self.to));
        let answer = self
            .to
            .command(&["CLUSTER", "SETSLOT", &self.slot, "IMPORTING", &from]);
        assert_eq!(answer, "OK");
        let answer = self
            .from
            .command(&["CLUSTER", "SETSLOT", &self.slot, "MIGRATING", &to]);
        assert_eq!(answer, "OK");
    }

    /// Its keys move.
    ///
    /// # Panics
    ///
    /// When one of them doesn't.
    pub fn keys(&self) {
        let keys = self
            .from
            .command(&["CLUSTER", "GETKEYSINSLOT", &self.slot, "100"]);
        let port = self.to.announced_port().to_string();
        for key in keys.lines() {
            let answer = self
                .from
                .command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
            assert_eq!(answer, "OK", "{key}");
        }
    }

    /// All are told that it has moved.
    pub fn end(&self) {
        let to = Self::id(self.to);
        for server in [self.to, self.from].into_iter().chain(self.all) {
            // Replicas don't take it.
            server.command(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &to]);
        }
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    while !condition() {
        assert!(
            Instant::now() < deadline,
            "{what} within {SETTLE_TIMEOUT:?}"
        );
        thread::sleep(POLL);
    }
}
