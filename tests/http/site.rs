//! A replica that listens, and what is needed for it.
//!
//! Must never: listen on a port that was chosen before; the replica says which one it has.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::fleet::{Fleet, Replica};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::client::{AGES, Client};

pub(crate) const READER: &str = "reader-0123456789abcdef0123456789abcdef";
pub(crate) const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";
pub(crate) const WRONG: &str = "wrong-0123456789abcdef0123456789abcdef00";

/// A table with something of each kind.
pub(crate) const JOBS: &str = r#"
[jobs.report]
description = "says hello"
schedule = "@manual"
command = ["echo", "hello"]

[jobs.nightly]
schedule = "30 22 * * *"
timezone = "Asia/Shanghai"
command = ["true"]

[jobs.off]
schedule = "@hourly"
command = ["true"]
enabled = false

[jobs.long]
schedule = "@manual"
command = ["sleep", "600"]
kill_grace = "100ms"
"#;

/// A replica that listens.
pub(crate) struct Site {
    pub(crate) fleet: Fleet,
    pub(crate) replica: Replica,
    pub(crate) client: Client,
}

impl Site {
    /// On a Redis of its own namespace, with these jobs.
    pub(crate) fn start(listen: &str, jobs: &str) -> Self {
        Self::start_on(&RedisServer::shared().url(), listen, jobs)
    }

    /// On this store.
    pub(crate) fn start_on(store: &str, listen: &str, jobs: &str) -> Self {
        let site = Self::begin_on(store, listen, jobs);
        site.replica.wait_until_ready();
        // What it announced as ready it may be told of a moment later.
        site.until("/readyz", |answer| (answer.status == 200).then_some(()));
        site
    }

    /// The same, without waiting for it to be ready.
    pub(crate) fn begin_on(store: &str, listen: &str, jobs: &str) -> Self {
        let namespace = fresh_namespace();
        let head = format!(
            "[scheduler]\nnamespace = \"{namespace}\"\nlisten = \"{listen}\"\napi_tokens = \"tokens\"\nshutdown_grace = \"30s\"\n"
        );
        let fleet = Fleet::new(store, &format!("{head}{jobs}"));
        write_tokens(
            &fleet,
            &format!("read grafana {READER}\noperator deploy {OPERATOR}\n"),
        );
        let replica = fleet.start("r1");
        let client = Client(address_of(&replica));
        Self {
            fleet,
            replica,
            client,
        }
    }

    /// Asks until the answer is as wanted.
    pub(crate) fn until<T>(
        &self,
        path: &str,
        wanted: impl Fn(&crate::client::Answer) -> Option<T>,
    ) -> T {
        let end = Instant::now() + AGES;
        loop {
            let answer = self.client.get_as(READER, path);
            if let Some(found) = wanted(&answer) {
                return found;
            }
            assert!(
                Instant::now() < end,
                "{path}: {answer:?}\n{}",
                self.replica.tail()
            );
            // What a server will say can't be waited on.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Triggers a job and waits for the end of it; gives its line.
    pub(crate) fn run(&self, job: &str) -> Value {
        let path = format!("/api/v1/jobs/{job}/trigger");
        let order = self.client.post_as(OPERATOR, &path);
        assert_eq!(order.status, 202, "{order:?}");
        let at = order.json()["scheduled_at"].clone();
        self.until(&format!("/api/v1/attempts?job={job}"), |answer| {
            let lines = answer.json();
            let mut items = lines["items"].as_array()?.iter();
            items.find(|line| line["scheduled_at"] == at).cloned()
        })
    }
}

/// Where a replica says that it listens.
pub(crate) fn address_of(replica: &Replica) -> SocketAddr {
    let line = replica.wait_for_line(&["serving health and API over HTTP"]);
    let (_, rest) = line.split_once("address=").expect("its address");
    let text = rest.split_whitespace().next().expect("its address");
    let mut address: SocketAddr = text.parse().expect("an address");
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

/// Where a fleet's tokens are.
pub(crate) fn tokens_of(fleet: &Fleet) -> PathBuf {
    fleet.dir().join("tokens")
}

/// Writes them, for nobody else to read.
pub(crate) fn write_tokens(fleet: &Fleet, text: &str) {
    let path = tokens_of(fleet);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
}
