//! Stores of each kind, and clients of them.

use std::path::PathBuf;

use soloist::Leases;
use tempfile::TempDir;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::redis_many::{Cluster, Sentinels};

/// A store, by the URL that leads to it, and what it is made of.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) namespace: String,
    _parts: Parts,
}

#[expect(dead_code, reason = "they are there as long as the place")]
enum Parts {
    Shared,
    File(TempDir),
    Servers(Vec<RedisServer>),
    Sentinels(Sentinels),
    Cluster(Cluster),
}

impl Place {
    fn new(url: String, parts: Parts) -> Self {
        Self {
            url,
            namespace: fresh_namespace(),
            _parts: parts,
        }
    }

    /// A server that all tests share.
    pub(crate) fn redis() -> Self {
        Self::new(RedisServer::shared().url(), Parts::Shared)
    }

    pub(crate) fn sqlite() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path: PathBuf = dir.path().join("leases.db");
        Self::new(format!("sqlite:{}", path.display()), Parts::File(dir))
    }

    pub(crate) fn quorum() -> Self {
        let servers: Vec<RedisServer> = (0..3).map(|_| RedisServer::start()).collect();
        let hosts = servers.iter();
        let hosts: Vec<String> = hosts
            .map(|one| format!("127.0.0.1:{}", one.port()))
            .collect();
        let url = format!("redis+quorum://{}", hosts.join(","));
        Self::new(url, Parts::Servers(servers))
    }

    pub(crate) fn sentinel() -> Self {
        let sentinels = Sentinels::start();
        Self::new(sentinels.url(), Parts::Sentinels(sentinels))
    }

    pub(crate) fn cluster() -> Self {
        let cluster = Cluster::start();
        Self::new(cluster.url(), Parts::Cluster(cluster))
    }

    /// A client of its own, with connections of its own.
    pub(crate) async fn client(&self) -> Leases {
        let client = Leases::open(&self.url, &self.namespace).await;
        client.expect("the store can be used")
    }
}
