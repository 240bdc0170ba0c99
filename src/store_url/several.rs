//! The URLs of several Redis servers that make one store, taken apart.
//!
//! ```text
//!  redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT],HOST[:PORT]…/MASTER[/DB]
//!                    [?sentinel_user=USER&sentinel_password=PASSWORD]
//!  redis+cluster://[[USER]:PASSWORD@]HOST[:PORT],HOST[:PORT]…
//!  redis+quorum://[[USER]:PASSWORD@]HOST[:PORT],HOST[:PORT],HOST[:PORT]…[/DB]
//!  rediss+sentinel://…, rediss+cluster://…, rediss+quorum://…  the same, with TLS to all of them
//! ```
//!
//! Must never: put a part of the URL into an error, as any part may be half a password.

use std::collections::BTreeSet;
use std::fmt;

use super::StoreUrlError;
use super::redis::{
    Credentials, credentials, decoded, host_and_port, number, parameters, refuse_fragment,
    split_off, unknown_parameter,
};

const SENTINEL_PORT: u16 = 26379;
const NODE_PORT: u16 = 6379;

const SENTINEL_FORM: &str = "write `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DB` with the Sentinels' hosts and the name by which they know the master; where the Sentinels have users of their own, add `?sentinel_user=USER&sentinel_password=PASSWORD`";
const CLUSTER_FORM: &str = "write `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT` with some of the cluster's nodes; it has no databases";

const QUORUM_FORM: &str = "write `redis+quorum://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/DB` with three, five or seven servers, that are no replicas of each other";

/// Servers that are asked where the ledger is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SeveralUrl {
    pub(crate) kind: Several,
    /// Whom to ask: hosts without brackets, and ports.
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) db: u32,
}

/// What they are to each other.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Several {
    /// Sentinels, that watch over a master of this name, and what they ask of whom they answer.
    Sentinels {
        master: String,
        user: Option<String>,
        password: Option<String>,
    },
    /// Nodes of a cluster.
    Cluster,
    /// Servers that know nothing of each other, of which a majority holds the ledger.
    Quorum,
}

impl Several {
    fn form(&self) -> &'static str {
        match self {
            Several::Sentinels { .. } => SENTINEL_FORM,
            Several::Cluster => CLUSTER_FORM,
            Several::Quorum => QUORUM_FORM,
        }
    }
}

impl fmt::Debug for SeveralUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SeveralUrl")
            .field(&self.to_string())
            .finish()
    }
}

/// The place without users and passwords.
impl fmt::Display for SeveralUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let host = |(host, port): &(String, u16)| match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let hosts: Vec<String> = self.hosts.iter().map(host).collect();
        let hosts = hosts.join(",");
        match &self.kind {
            Several::Sentinels { master, .. } => {
                write!(f, "{scheme}+sentinel://{hosts}/{master}/{}", self.db)
            }
            Several::Cluster => write!(f, "{scheme}+cluster://{hosts}"),
            Several::Quorum => write!(f, "{scheme}+quorum://{hosts}/{}", self.db),
        }
    }
}

impl SeveralUrl {
    /// Whether a URL is one of these, by its beginning.
    pub(crate) fn is_one(url: &str) -> bool {
        url.split_once(':')
            .is_some_and(|(scheme, _)| kind_of(scheme).is_some())
    }

    /// Takes a URL apart.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreUrlError> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        let (tls, kind) = kind_of(scheme).ok_or(StoreUrlError::NoScheme)?;
        let cure = kind.form();
        let wrong = |what| StoreUrlError::Redis { what, cure };
        let rest = rest.strip_prefix("//");
        let rest = rest.ok_or_else(|| wrong("the store's URL has no `//` before its hosts"))?;
        let (user_info, place) = match rest.rsplit_once('@') {
            Some((user_info, place)) => (Some(user_info), place),
            None => (None, rest),
        };
        let (user, password): Credentials = user_info.map_or(Ok((None, None)), credentials)?;
        let (place, fragment) = split_off(place, '#');
        refuse_fragment(fragment)?;
        let (place, query) = split_off(place, '?');
        let (authority, path) = split_off(place, '/');
        let port = match kind {
            Several::Sentinels { .. } => SENTINEL_PORT,
            Several::Cluster | Several::Quorum => NODE_PORT,
        };
        let hosts = authority.split(',').map(|one| host_and_port(one, port));
        let mut parsed = Self {
            kind,
            hosts: hosts.collect::<Result<_, _>>()?,
            tls,
            user,
            password,
            db: 0,
        };
        let path = path.unwrap_or_default().trim_end_matches('/');
        parsed.take_path(path)?;
        parsed.check_count()?;
        for (name, value) in parameters(query) {
            parsed.take_parameter(&name, &value)?;
        }
        Ok(parsed)
    }

    /// Of fewer than three servers none may fail, and of an even number as many as of one less.
    fn check_count(&self) -> Result<(), StoreUrlError> {
        if self.kind != Several::Quorum {
            return Ok(());
        }
        let cure = self.kind.form();
        let all: BTreeSet<_> = self.hosts.iter().collect();
        if all.len() < self.hosts.len() {
            let what = "the store's URL names a server twice";
            return Err(StoreUrlError::Redis { what, cure });
        }
        if all.len() < 3 || all.len() % 2 == 0 {
            let what = "the store's URL does not name three servers, five or seven";
            return Err(StoreUrlError::Redis { what, cure });
        }
        Ok(())
    }

    fn take_path(&mut self, path: &str) -> Result<(), StoreUrlError> {
        let cure = self.kind.form();
        let wrong = |what| StoreUrlError::Redis { what, cure };
        match &mut self.kind {
            Several::Cluster => match path {
                "" | "0" => Ok(()),
                _ => Err(wrong("the store's URL names a database of a cluster")),
            },
            Several::Quorum => {
                let db = Some(path).filter(|path| !path.is_empty());
                self.db = db.map_or(Ok(0), number)?;
                Ok(())
            }
            Several::Sentinels { master, .. } => {
                let (name, db) = split_off(path, '/');
                if name.is_empty() {
                    return Err(wrong("the store's URL does not name the master"));
                }
                *master = decoded(name)?;
                self.db = db.map_or(Ok(0), number)?;
                Ok(())
            }
        }
    }

    fn take_parameter(&mut self, name: &str, value: &str) -> Result<(), StoreUrlError> {
        let cure = self.kind.form();
        match (name, &mut self.kind) {
            ("sentinel_user", Several::Sentinels { user, .. }) => *user = Some(decoded(value)?),
            ("sentinel_password", Several::Sentinels { password, .. }) => {
                *password = Some(decoded(value)?);
            }
            ("db", Several::Sentinels { .. } | Several::Quorum) => self.db = number(value)?,
            _ => return Err(unknown_parameter(name, cure)),
        }
        Ok(())
    }
}

/// What a scheme stands for: with TLS or not, and which kind.
fn kind_of(scheme: &str) -> Option<(bool, Several)> {
    let (first, second) = scheme.split_once('+')?;
    let tls = match first.to_ascii_lowercase().as_str() {
        "redis" => false,
        "rediss" => true,
        _ => return None,
    };
    let kind = match second.to_ascii_lowercase().as_str() {
        "sentinel" => Several::Sentinels {
            master: String::new(),
            user: None,
            password: None,
        },
        "cluster" => Several::Cluster,
        "quorum" => Several::Quorum,
        _ => return None,
    };
    Some((tls, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> SeveralUrl {
        SeveralUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn a_url_says_whom_to_ask_for_what() {
        for (url, place) in [
            (
                "redis+sentinel://a,b:2,[::1]:3/mymaster/4",
                "redis+sentinel://a:26379,b:2,[::1]:3/mymaster/4",
            ),
            (
                "redis+sentinel://u:p@a/main",
                "redis+sentinel://a:26379/main/0",
            ),
            (
                "rediss+sentinel://a/main?db=2",
                "rediss+sentinel://a:26379/main/2",
            ),
            ("redis+cluster://a,b:1", "redis+cluster://a:6379,b:1"),
            ("Rediss+Cluster://a:1/0", "rediss+cluster://a:1"),
            (
                "redis+quorum://a,b,c/2",
                "redis+quorum://a:6379,b:6379,c:6379/2",
            ),
        ] {
            assert_eq!(parsed(url).to_string(), place, "{url}");
        }
    }

    #[test]
    fn sentinels_may_ask_for_a_password_of_their_own() {
        let url = parsed("redis+sentinel://me:one@a/main?sentinel_user=s&sentinel_password=t%26wo");
        assert_eq!(url.user.as_deref(), Some("me"));
        assert_eq!(url.password.as_deref(), Some("one"));
        let Several::Sentinels { user, password, .. } = url.kind else {
            panic!("Sentinels were named");
        };
        assert_eq!(user.as_deref(), Some("s"));
        assert_eq!(password.as_deref(), Some("t&wo"));
    }

    #[test]
    fn what_is_missing_or_too_much_is_told_without_a_secret() {
        for (url, what) in [
            ("redis+sentinel:a/m", "no `//`"),
            ("redis+sentinel://:cret@a", "does not name the master"),
            ("redis+sentinel://:cret@a,/m", "no host"),
            ("redis+sentinel://a/m/cret", "no number"),
            ("redis+sentinel://a/m?cret=1", "a parameter"),
            ("redis+sentinel://a/m#insecure", "without verification"),
            ("redis+cluster://:cret@", "no host"),
            ("redis+cluster://a:0", "no number from 1"),
            ("redis+cluster://a/3", "a database of a cluster"),
            ("redis+quorum://a,b", "three servers"),
            ("redis+quorum://a,b,c,d", "three servers"),
            ("redis+quorum://a,b,a:6379", "a server twice"),
        ] {
            let error = SeveralUrl::parse(url).expect_err(url);
            let text = format!("{error}; {}", error.hint());
            assert!(text.contains(what), "{url}: {text}");
            assert!(!text.contains("cret"), "{url}: {text}");
        }
    }
}
