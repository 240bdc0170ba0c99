//! Redis in its kinds, on servers that all laws of a kind share, one at a time: the law sets their clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use soloist::store::{LeaseStore, open_leases};
use soloist::store_url::StoreOptions;
use test_support::acl::{rule, rule_in_cluster, set_user};
use test_support::clock_shim::SteppingClock;
use test_support::redis::{RedisOptions, RedisServer, fresh_namespace};
use test_support::redis_many::{Cluster, MASTER};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::ground::Ground;

/// Servers with one clock.
struct Servers {
    clock: SteppingClock,
    shift_ms: AtomicI64,
    /// Those that keep data.
    all: Vec<RedisServer>,
    /// Those that watch over them.
    _sentinel: Option<RedisServer>,
    url: String,
    /// Who plays a law on them.
    turn: Mutex<()>,
}

impl Servers {
    /// Who keeps data may step, and who watches over it does not: by its own clock it would be dead then.
    fn new(
        keeps: impl Fn(&RedisOptions) -> Vec<RedisServer>,
        watches: impl FnOnce(&[RedisServer]) -> Option<RedisServer>,
        url: impl FnOnce(&[RedisServer], Option<&RedisServer>) -> String,
    ) -> Self {
        let clock = SteppingClock::new();
        let all = keeps(&RedisServer::options().environment(clock.environment()));
        let sentinel = watches(&all);
        Self {
            url: url(&all, sentinel.as_ref()),
            clock,
            shift_ms: AtomicI64::new(0),
            all,
            _sentinel: sentinel,
            turn: Mutex::new(()),
        }
    }
}

/// A law's turn on them.
pub(crate) struct Turn {
    servers: &'static Servers,
    prefix: String,
    /// The rule by which a user is allowed a namespace; none where all are.
    rule: Option<fn(&str) -> Vec<String>>,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    async fn of(
        servers: &'static OnceCell<Servers>,
        make: impl FnOnce() -> Servers + Send + 'static,
        rule: Option<fn(&str) -> Vec<String>>,
    ) -> Self {
        let start = async || {
            let made = tokio::task::spawn_blocking(make).await;
            made.expect("the servers start")
        };
        let servers = servers.get_or_init(start).await;
        Self {
            _turn: servers.turn.lock().await,
            prefix: fresh_namespace(),
            servers,
            rule,
        }
    }

    async fn way(&self, namespace: &str) -> Arc<dyn LeaseStore> {
        let namespace = format!("{}.{namespace}", self.prefix);
        let mut url = self.servers.url.clone();
        if let Some(rule) = self.rule {
            for server in &self.servers.all {
                set_user(server, &namespace, &rule(&namespace));
            }
            url = url.replace("://", &format!("://{namespace}:any@"));
        }
        let store = open_leases(Some(&url), &namespace, &StoreOptions::default());
        store.expect("the URL is good")
    }

    fn step_ms(&self, by: i64) {
        let shift = self.servers.shift_ms.fetch_add(by, Ordering::SeqCst) + by;
        self.servers.clock.set(shift);
    }

    fn lose(&self) {
        for server in &self.servers.all {
            assert_eq!(server.command(&["FLUSHALL"]), "OK");
        }
    }
}

/// What the manual says that a user needs who has leases in a namespace.
fn allowed(namespace: &str) -> Vec<String> {
    let mut rule = rule(namespace);
    rule.push(format!("&soloist:{{{namespace}}}:leases:events"));
    rule
}

/// The same in a cluster.
fn allowed_in_cluster(namespace: &str) -> Vec<String> {
    let mut rule = rule_in_cluster(namespace);
    rule.push(format!("&soloist:{{{namespace}}}:leases:events"));
    rule
}

/// A kind of servers: its name, and how they are made.
macro_rules! ground {
    ($(#[$doc:meta])* $kind:ident, $rule:expr, $make:expr $(, repeats_news: $repeats:expr)?) => {
        $(#[$doc])*
        pub(crate) struct $kind(Turn);

        impl Ground for $kind {
            $(const REPEATS_NEWS: bool = $repeats;)?

            async fn new() -> Self {
                static SERVERS: OnceCell<Servers> = OnceCell::const_new();
                Self(Turn::of(&SERVERS, $make, $rule).await)
            }

            async fn way(&self, namespace: &str) -> Arc<dyn LeaseStore> {
                self.0.way(namespace).await
            }

            fn step_ms(&self, by: i64) {
                self.0.step_ms(by);
            }

            fn lose(&self) {
                self.0.lose();
            }
        }
    };
}

fn nobody(_: &[RedisServer]) -> Option<RedisServer> {
    None
}

fn address(server: &RedisServer) -> String {
    format!("127.0.0.1:{}", server.port())
}

fn one() -> Servers {
    let url =
        |all: &[RedisServer], _: Option<&RedisServer>| format!("redis://{}", address(&all[0]));
    Servers::new(|options| vec![options.start()], nobody, url)
}

fn behind_sentinel() -> Servers {
    let sentinel = |all: &[RedisServer]| {
        let port = all[0].announced_port();
        let config = format!("sentinel monitor {MASTER} 127.0.0.1 {port} 1\n");
        Some(RedisServer::options().config(&config).sentinel().start())
    };
    let url = |_: &[RedisServer], sentinel: Option<&RedisServer>| {
        let sentinel = sentinel.expect("there is one");
        format!(
            "redis+sentinel://127.0.0.1:{}/{MASTER}",
            sentinel.announced_port()
        )
    };
    Servers::new(|options| vec![options.start()], sentinel, url)
}

fn in_cluster() -> Servers {
    let url = |all: &[RedisServer], _: Option<&RedisServer>| {
        format!("redis+cluster://127.0.0.1:{}", all[0].announced_port())
    };
    let servers = Servers::new(|options| vec![Cluster::alone(options)], nobody, url);
    // It takes up its slots some seconds after its start, by its clock.
    while !servers.all[0]
        .command(&["CLUSTER", "INFO"])
        .contains("cluster_state:ok")
    {
        let shift = servers.shift_ms.fetch_add(100, Ordering::SeqCst);
        servers.clock.set(shift);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    servers
}

fn majority() -> Servers {
    let url = |all: &[RedisServer], _: Option<&RedisServer>| {
        let hosts: Vec<String> = all.iter().map(address).collect();
        format!("redis+quorum://{}", hosts.join(","))
    };
    Servers::new(
        |options| (0..3).map(|_| options.start()).collect(),
        nobody,
        url,
    )
}

ground! {
    /// One server.
    One, Some(allowed), one
}
ground! {
    /// One that a Sentinel knows.
    BehindSentinel, None, behind_sentinel
}
ground! {
    /// A node that has all slots of its cluster.
    InCluster, Some(allowed_in_cluster), in_cluster
}
ground! {
    /// Three that know nothing of each other.
    Majority, Some(allowed), majority, repeats_news: true
}
