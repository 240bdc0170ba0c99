//! Store URLs as text: which kinds there are, and how to show one.
//!
//! A URL may hold a password. Whoever logs, prints or stores one for display must pass it
//! through [`redact`] first. Must never: connect to anything, or put a secret into an error.

#![cfg_attr(
    not(feature = "redis"),
    allow(
        dead_code,
        reason = "a URL of a Redis is known as one, and taken no further"
    )
)]

#[cfg(test)]
pub(crate) use self::hiding::REFUSED;
pub use self::hiding::{redact, star_passwords};
#[cfg(feature = "daemon")]
pub(crate) use self::hiding::{redact_word, secrets_of_refused};
#[cfg(feature = "redis")]
pub(crate) use self::redis::Address;
pub(crate) use self::redis::RedisUrl;
#[cfg(feature = "redis")]
pub(crate) use self::several::Several;
pub(crate) use self::several::SeveralUrl;
pub use self::tls::{StoreOptions, TlsFiles};

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod hiding;
mod redis;
mod several;
mod tls;

/// What a store can be, for hints.
const KINDS: &str = "a store is `redis://HOST:PORT`, or several servers by `redis+sentinel://`, `redis+cluster://` or `redis+quorum://`; `sqlite:PATH`, for one host; or `memory:`, for one process";

/// The beginnings of the URLs that name a store that this version opens.
const NOW: [&str; 12] = [
    "sqlite:",
    "memory:",
    "redis://",
    "rediss://",
    "unix:",
    "redis+unix:",
    "redis+sentinel://",
    "rediss+sentinel://",
    "redis+cluster://",
    "rediss+cluster://",
    "redis+quorum://",
    "rediss+quorum://",
];

/// The beginnings of those that a later version will, with what to do until then.
const LATER: [(&str, &str); 4] = [
    ("postgres://", ENGINES_TODAY),
    ("mysql://", ENGINES_TODAY),
    ("etcd://", ENGINES_TODAY),
    ("zookeeper://", ENGINES_TODAY),
];

const ENGINES_TODAY: &str = "today a store is Redis or Valkey, `redis://HOST:PORT` or several servers of it, or a file of one host, `sqlite:PATH`";

/// Other ways in which people write them.
const ALIASES: [(&str, &str); 4] = [
    ("postgresql://", "postgres://"),
    ("valkey://", "redis://"),
    ("valkeys://", "rediss://"),
    ("sqlite3:", "sqlite:"),
];

/// Why a text names no store that can be opened. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// Nothing there.
    #[error("the store's URL is empty")]
    Empty,
    /// A path, or a host alone.
    #[error("the store is no URL")]
    NoScheme,
    /// What stands before the `:` is no kind of store.
    #[error("no store is called `{0}`")]
    Unknown(String),
    /// Another way of writing a kind.
    #[error("no store is called `{written}`")]
    Alias {
        /// As it was written.
        written: &'static str,
        /// As it is called here.
        known: &'static str,
    },
    /// A kind that a later version opens.
    #[error("a `{scheme}` store is not supported yet")]
    NotYet {
        /// The beginning of the URL.
        scheme: &'static str,
        /// What to do until then.
        today: &'static str,
    },
    /// `redis://` without a host, with a port that is no number, or the like.
    #[error("{what}")]
    Redis {
        /// What is wrong with it.
        what: &'static str,
        /// How it is written.
        cure: &'static str,
    },
}

impl StoreUrlError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Empty | Self::Unknown(_) => KINDS.into(),
            Self::NoScheme => {
                "for a Redis, write `redis://HOST:PORT`; for a file, `sqlite:PATH`".into()
            }
            Self::Alias { known, .. } => format!("did you mean `{known}`?"),
            Self::NotYet { today, .. } => (*today).into(),
            Self::Redis { cure, .. } => (*cure).into(),
        }
    }
}

/// The names of all kinds of stores, to find the one that was probably meant.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    let later = LATER.iter().map(|(beginning, _)| *beginning);
    NOW.into_iter()
        .chain(later)
        .map(|beginning| beginning.trim_end_matches(['/', ':']))
}

/// Whether a text names a store that this version opens.
pub fn check(url: &str) -> Result<(), StoreUrlError> {
    if url.trim().is_empty() {
        return Err(StoreUrlError::Empty);
    }
    let begins = |beginning: &str| {
        url.get(..beginning.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    };
    if RedisUrl::is_one(url) {
        return RedisUrl::parse(url).map(|_| ());
    }
    if SeveralUrl::is_one(url) {
        return SeveralUrl::parse(url).map(|_| ());
    }
    if NOW.iter().any(|beginning| begins(beginning)) {
        return Ok(());
    }
    if let Some(&(scheme, today)) = LATER.iter().find(|(beginning, _)| begins(beginning)) {
        return Err(StoreUrlError::NotYet { scheme, today });
    }
    if let Some(&(written, known)) = ALIASES.iter().find(|(written, _)| begins(written)) {
        return Err(StoreUrlError::Alias { written, known });
    }
    match url.split_once(':') {
        // Of `USER:PASSWORD@HOST` the user is no kind of store.
        _ if url.contains('@') && !url.contains("://") => Err(RedisUrl::without_scheme()),
        Some((scheme, _)) if is_scheme(scheme) => Err(StoreUrlError::Unknown(scheme.into())),
        _ => Err(StoreUrlError::NoScheme),
    }
}

/// Whether a URL names a Redis server that may have replicas.
#[cfg(feature = "daemon")]
pub(crate) fn may_have_replicas(url: &str) -> bool {
    let several = SeveralUrl::parse(url).ok();
    RedisUrl::is_one(url) || several.is_some_and(|url| url.kind != Several::Quorum)
}

/// Whether a URL leads to servers of which one takes another's place by an election.
#[cfg(feature = "daemon")]
pub(crate) fn follows_elections(url: &str) -> bool {
    let several = SeveralUrl::parse(url).ok();
    several.is_some_and(|url| url.kind != Several::Quorum)
}

/// RFC 3986, section 3.1, and not so long that it could be a secret pasted into the wrong place.
fn is_scheme(text: &str) -> bool {
    text.len() <= 20
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_of_this_version_pass() {
        for url in [
            "sqlite:soloist.db",
            "memory:",
            "redis://h",
            "Redis://h:6379",
            "redis://u:p@w@h:1/15",
            "rediss://h",
            "unix:///run/redis.sock",
            "redis://[::1]",
            "redis://[::1]:6379/0",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_store_of_a_later_version_says_so_and_what_to_do() {
        for (beginning, today) in LATER {
            let error = check(&format!("{beginning}u:secret@h:1")).expect_err(beginning);
            assert!(error.to_string().contains("not supported yet"), "{error}");
            assert!(error.to_string().contains(beginning), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert_eq!(error.hint(), today);
        }
    }

    #[test]
    fn a_text_that_names_no_store_is_refused() {
        for (url, message) in [
            ("", "the store's URL is empty"),
            (" ", "the store's URL is empty"),
            ("rdis://u:pw@h", "no store is called `rdis`"),
            ("valkey://h", "no store is called `valkey://`"),
            ("valkeys://h", "no store is called `valkeys://`"),
            ("soloist.db", "the store is no URL"),
            ("/var/lib/a:b", "the store is no URL"),
            ("redis://", "the store's URL has no host"),
            ("redis://:pw@:6379", "the store's URL has no host"),
            (
                "redis://h:pw",
                "the port of the store's URL is no number from 1 to 65535",
            ),
            (
                "redis://h:0",
                "the port of the store's URL is no number from 1 to 65535",
            ),
            (
                "redis://h:1/one",
                "the database of the store's URL is no number",
            ),
        ] {
            let error = check(url).expect_err(url);
            assert_eq!(error.to_string(), message, "{url}");
            assert!(!error.hint().is_empty(), "{url}");
        }
    }
}
