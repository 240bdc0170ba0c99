//! A namespace that is there for a short while only: where it lies in a store, and how all of it
//! is taken away again. For self-tests; replicas know nothing of it.
//!
//! In a server it is made of keys that are all known by name, so that nothing is searched for. A
//! SQLite store is a file of its own, beside the one that was named and so on the same disk: no
//! fault of a test can meet the user's own.
//!
//! Must never: touch a key or a file that the scratch namespace doesn't name, or ask a server for
//! more than a replica does, but for the plain lock (`SET`, `DEL`) that is compared with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::engine::Part;
use super::redis::RedisStore;
use super::redis::quorum::QuorumStore;
use super::url::{create_directory, default_path, sqlite_path};
use super::{StoreError, sqlite};
use crate::scheduler::job::JobName;
use crate::store_url::{RedisUrl, Several, SeveralUrl, StoreOptions, redact};

/// How often a server is asked to delete what there is, until nothing more was there: a write that
/// was on its way may come after the first time.
const ROUNDS: usize = 4;

/// How long a thread of this process may take to be done with a file that it was asked for.
const FILE_REST: Duration = Duration::from_millis(50);

/// A scratch namespace in a store.
pub struct Scratch {
    url: String,
    place: Place,
}

enum Place {
    /// One, or each of a quorum.
    Servers(Vec<RedisStore>),
    /// Of one database, which is the last of them.
    Files(Vec<PathBuf>),
}

/// A lock as everybody writes it: `SET key owner NX PX ttl`, and `DEL key` at the end.
#[derive(Clone, Copy)]
pub struct PlainLock<'s> {
    store: &'s RedisStore,
}

impl Scratch {
    /// The scratch namespace of this name, in the store that `url` names. Nothing is connected, and
    /// no file made.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] for what is no store, or is one process's own.
    pub fn open(
        url: Option<&str>,
        namespace: &str,
        options: &StoreOptions,
    ) -> Result<Self, StoreError> {
        let file = match url {
            None => {
                let path = default_path(|name| std::env::var_os(name))?;
                create_directory(&path)?;
                Some(path)
            }
            Some(url) => match url.split_once(':') {
                Some(("sqlite", path)) => Some(sqlite_path(url, path)?),
                Some(("memory", _)) => {
                    return Err(StoreError::BadUrl {
                        url: redact(url),
                        cause: "it is of one process alone, so that no replicas can share it"
                            .to_owned(),
                    });
                }
                _ => None,
            },
        };
        if let Some(file) = file {
            return Self::beside(&file, namespace);
        }
        let url = url.unwrap_or_default();
        let is_quorum = SeveralUrl::parse(url).is_ok_and(|url| url.kind == Several::Quorum);
        let servers = match is_quorum {
            true => QuorumStore::servers(url, namespace, options, Part::Jobs)?,
            false => vec![RedisStore::open_with(url, namespace, options)?],
        };
        Ok(Self {
            url: url.to_owned(),
            place: Place::Servers(servers),
        })
    }

    /// A file that has the name of the namespace, in the directory of the one that was named.
    fn beside(file: &Path, namespace: &str) -> Result<Self, StoreError> {
        let unreachable = |cause: String| StoreError::Unreachable {
            place: format!("sqlite:{}", file.display()),
            cause,
        };
        let absolute = std::path::absolute(file).map_err(|error| unreachable(error.to_string()))?;
        let path = absolute.with_file_name(format!("{namespace}.db"));
        let text = path
            .to_str()
            .ok_or_else(|| unreachable("its path is no UTF-8".to_owned()))?;
        Ok(Self {
            url: format!("sqlite:{text}"),
            place: Place::Files(sqlite::files(&path, namespace)),
        })
    }

    /// The URL by which replicas of the scratch namespace reach it; it may hold a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it is made of, by name: keys of a server, or a file.
    pub fn names(&self, jobs: &[JobName], locks: &[String]) -> Vec<String> {
        match &self.place {
            Place::Servers(servers) => servers
                .first()
                .map(|server| server.scratch_keys(jobs, locks))
                .unwrap_or_default(),
            Place::Files(files) => files
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        }
    }

    /// What a user who is held to patterns of keys has to be allowed for any scratch namespace
    /// whose name begins so; none where there are no users.
    pub fn permission(&self, beginning: &str) -> Option<String> {
        match &self.place {
            Place::Servers(_) => Some(RedisStore::scratch_rule(beginning)),
            Place::Files(_) => None,
        }
    }

    /// Whether its servers have room for a self-test.
    ///
    /// # Errors
    /// Where one of them would delete, or refuse, what is others'.
    pub async fn has_room(&self) -> Result<(), StoreError> {
        if let Place::Servers(servers) = &self.place {
            for server in servers {
                server.has_room().await?;
            }
        }
        Ok(())
    }

    /// The plain lock in its server; none where there is none, or there are several.
    pub fn plain_lock(&self) -> Option<PlainLock<'_>> {
        match &self.place {
            Place::Servers(servers) => match &servers[..] {
                [store] => Some(PlainLock { store }),
                _ => None,
            },
            Place::Files(_) => None,
        }
    }

    /// Deletes all of it, when nobody writes to it any more.
    ///
    /// # Errors
    /// Where something may be left: [`Scratch::names`] has what.
    pub async fn erase(&self, jobs: &[JobName], locks: &[String]) -> Result<(), StoreError> {
        match &self.place {
            Place::Servers(servers) => {
                let mut result = Ok(());
                // One of a quorum that is away must not keep the others.
                for server in servers {
                    let erased = erase_from(server, jobs, locks).await;
                    result = result.and(erased);
                }
                result
            }
            Place::Files(files) => erase_files(files).await,
        }
    }
}

/// Deletes the files of a store that nobody uses any more.
async fn erase_files(files: &[PathBuf]) -> Result<(), StoreError> {
    for _ in 0..ROUNDS {
        files.iter().try_for_each(|path| remove(path))?;
        // What is asked for last finds no file, and makes a new one.
        tokio::time::sleep(FILE_REST).await;
        if !files.iter().any(|path| path.exists()) {
            return Ok(());
        }
    }
    let path = files.last().map(|path| path.display().to_string());
    Err(still_written(format!(
        "sqlite:{}",
        path.unwrap_or_default()
    )))
}

fn still_written(place: String) -> StoreError {
    StoreError::Unreachable {
        place,
        cause: "somebody still writes to the scratch namespace".to_owned(),
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Unreachable {
                place: format!("sqlite:{}", path.display()),
                cause: error.to_string(),
            })
        }
        _ => Ok(()),
    }
}

async fn erase_from(
    server: &RedisStore,
    jobs: &[JobName],
    locks: &[String],
) -> Result<(), StoreError> {
    for _ in 0..ROUNDS {
        if server.unlink_scratch(jobs, locks).await? == 0 {
            return Ok(());
        }
    }
    Err(still_written(super::Store::place(server)))
}

impl PlainLock<'_> {
    /// `SET key owner NX PX ttl`: whether it was taken.
    ///
    /// # Errors
    /// Where the server can't be reached, or refuses.
    pub async fn take(&self, key: &str, owner: &str, ttl: Duration) -> Result<bool, StoreError> {
        self.store.set_plain(key, owner, ttl).await
    }

    /// `DEL key`, whoever has it by now.
    ///
    /// # Errors
    /// Where the server can't be reached, or refuses.
    pub async fn drop(&self, key: &str) -> Result<(), StoreError> {
        self.store.delete_plain(key).await
    }
}

/// How a URL's server is reached by way of a port of this host: where it is, the URL that leads
/// there by that port, and whether TLS has to be told the server's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The server's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The connection is a TLS one, to be told the host's name.
    pub tls: bool,
}

impl Detour {
    /// Of one server that is reached by TCP; none of any other URL.
    pub fn of(url: &str) -> Option<Self> {
        let parsed = RedisUrl::is_one(url).then(|| RedisUrl::parse(url).ok())??;
        match parsed.address {
            crate::store_url::Address::Tcp { host, port } => Some(Self {
                host,
                port,
                tls: parsed.tls,
            }),
            crate::store_url::Address::Unix(_) => None,
        }
    }

    /// The same URL, by that port of this host.
    pub fn url(url: &str, port: u16) -> String {
        RedisUrl::by_way_of(url, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str) -> Result<Scratch, StoreError> {
        Scratch::open(Some(url), "soloist-verify-1", &StoreOptions::default())
    }

    #[test]
    fn a_file_of_its_own_lies_beside_the_users() {
        let scratch = open("sqlite:/var/lib/soloist/soloist.db").unwrap();
        assert_eq!(scratch.url(), "sqlite:/var/lib/soloist/soloist-verify-1.db");
        let names = scratch.names(&[], &[]);
        assert_eq!(names.len(), 5);
        for name in names {
            let own = "/var/lib/soloist/soloist-verify-1.db";
            assert!(name.starts_with(own), "{name}");
        }
        assert!(scratch.plain_lock().is_none());
    }

    #[test]
    fn nobody_shares_the_memory_of_one_process() {
        assert!(matches!(open("memory:"), Err(StoreError::BadUrl { .. })));
    }

    #[test]
    fn a_detour_leaves_all_of_a_url_but_its_host() {
        for (url, by_way) in [
            ("redis://h", "redis://127.0.0.1:9"),
            ("redis://h:7000/3", "redis://127.0.0.1:9/3"),
            (
                "rediss://u:p@w/x@[::1]:7/1",
                "rediss://u:p@w/x@127.0.0.1:9/1",
            ),
            ("redis://:p@h?db=2", "redis://:p@127.0.0.1:9?db=2"),
        ] {
            assert!(Detour::of(url).is_some(), "{url}");
            assert_eq!(Detour::url(url, 9), by_way);
        }
        for url in ["unix:///run/r.sock", "redis+cluster://h", "sqlite:x"] {
            assert_eq!(Detour::of(url), None, "{url}");
        }
    }
}
