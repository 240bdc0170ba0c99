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

use std::ops::Range;

#[cfg(feature = "redis")]
pub(crate) use self::redis::Address;
pub(crate) use self::redis::RedisUrl;
#[cfg(feature = "redis")]
pub(crate) use self::several::Several;
pub(crate) use self::several::SeveralUrl;
pub use self::tls::{StoreOptions, TlsFiles};

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod redis;
mod several;
mod tls;

/// What stands in place of a password.
const REDACTED: &str = "***";

/// What a store can be, for hints.
const KINDS: &str = "a store is `sqlite:PATH`, `memory:` or `redis://HOST:PORT`; leave it out for an embedded SQLite file";

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

const ENGINES_TODAY: &str = "today a store is one Redis or Valkey, `redis://HOST:PORT`, or a file of one host, `sqlite:PATH`";

/// Other ways in which people write them.
const ALIASES: [(&str, &str); 4] = [
    ("postgresql://", "postgres://"),
    ("valkey://", "redis://"),
    ("valkeys://", "rediss://"),
    ("sqlite3:", "sqlite:"),
];

/// Names of query parameters whose values are secrets.
const SECRET_PARAMETERS: [&str; 7] = [
    "password",
    "sentinel_password",
    "pass",
    "passwd",
    "auth",
    "token",
    "secret",
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
            Self::NoScheme => format!("for a file, write `sqlite:PATH`; {KINDS}"),
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

/// The URL with `***` for the password: scheme, user, host and the rest stay.
///
/// A password in which `@`, `/` or `?` was not escaped is still hidden as a whole: everything
/// from the first `:` after the scheme to the last `@` counts as password.
pub fn redact(url: &str) -> String {
    let mut shown = url.to_owned();
    for range in secret_ranges(url).into_iter().rev() {
        shown.replace_range(range, REDACTED);
    }
    shown
}

/// What URLs in a text are known by; that of a socket may have no `//`.
const MARKS: [&str; 2] = ["://", "unix:"];

/// The same text with stars for the passwords of all URLs in it, byte for byte as long.
pub fn star_passwords(text: &str) -> String {
    let mut shown = text.to_owned();
    let lower = text.to_ascii_lowercase();
    for mark in MARKS {
        let mut from = 0;
        while let Some(found) = lower[from..].find(mark) {
            let start = from + found;
            let after = start + mark.len();
            let end = after + length_of_rest(&text[..start], &text[after..]);
            for range in secret_ranges(&text[start..end]) {
                let stars = "*".repeat(range.len());
                shown.replace_range(start + range.start..start + range.end, &stars);
            }
            from = end;
        }
    }
    shown
}

/// How far the rest of a URL goes: to the quote that it stands in, if it stands in one, or to the
/// end of the line. Another quote is part of it, and may be part of its password.
fn length_of_rest(before: &str, rest: &str) -> usize {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let opened = line.chars().fold((None, false), |(quote, escaped), next| {
        match (quote, next) {
            (Some('"'), '\\') => (quote, !escaped),
            (Some(open), close) if open == close && !escaped => (None, false),
            (None, '"' | '\'') => (Some(next), false),
            _ => (quote, false),
        }
    });
    let (quote, _) = opened;
    let mut escaped = false;
    for (at, next) in rest.char_indices() {
        match next {
            '\n' => return at,
            _ if Some(next) == quote && !escaped => return at,
            _ => escaped = quote == Some('"') && next == '\\' && !escaped,
        }
    }
    rest.len()
}

/// Whether it is the URL of a socket that names no user in front of its path.
fn is_bare_socket(url: &str) -> bool {
    let parts = url.split_once(':');
    parts.is_some_and(|(scheme, rest)| {
        let has_path_alone = !rest.starts_with("//") || rest.starts_with("///");
        scheme.to_ascii_lowercase().ends_with("unix") && has_path_alone
    })
}

/// Where the secrets of a URL are, in order and apart; empty ones are left out.
fn secret_ranges(url: &str) -> Vec<Range<usize>> {
    // Without `//` there is no user and no password (RFC 3986), but there may be parameters. What
    // looks like one further on in the URL of a socket is part of those.
    let authority = url.find("://").map(|scheme| scheme + "://".len());
    let authority = authority.filter(|_| !is_bare_socket(url));
    let at = authority.and_then(|authority| Some(authority + url[authority..].rfind('@')?));
    let authority = authority.unwrap_or(0);
    let mut ranges = Vec::new();
    let password = at.and_then(|at| {
        let colon = url[authority..at].find(':')?;
        Some(authority + colon + 1..at)
    });
    // Parameters within what counts as password are hidden with it.
    let rest = password.as_ref().map_or(authority, |range| range.end);
    ranges.extend(password);
    if let Some(query) = url[rest..].find('?') {
        let mut start = rest + query + 1;
        for parameter in url[start..].split('&') {
            if let Some((name, value)) = parameter.split_once('=')
                && SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
            {
                let value_at = start + name.len() + 1;
                ranges.push(value_at..value_at + value.len());
            }
            start += parameter.len() + 1;
        }
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_url_keeps_everything_but_the_password() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:pw@h:6379/0", "redis://:***@h:6379/0"),
            ("rediss://bob:pw@h", "rediss://bob:***@h"),
            ("redis://bob@h:6379", "redis://bob@h:6379"),
            ("redis://bob:p@w/x?y@h/0", "redis://bob:***@h/0"),
            (
                "redis+sentinel://:p:w@a:1,b:2/m/0",
                "redis+sentinel://:***@a:1,b:2/m/0",
            ),
            (
                "postgres://h/db?user=a&password=pw&x=1",
                "postgres://h/db?user=a&password=***&x=1",
            ),
            ("redis://h?password=p@w", "redis://h?password=***"),
            ("redis://:@h", "redis://:@h"),
            (
                "redis+unix:/run/r?pass=pw&db=2",
                "redis+unix:/run/r?pass=***&db=2",
            ),
            ("unix:/run/r?pass=p://w@", "unix:/run/r?pass=***"),
            (
                "unix:///run/r?user=ops:eu@shop&pass=secret",
                "unix:///run/r?user=ops:eu@shop&pass=***",
            ),
            ("jdbc:redis://u:pw@h", "jdbc:redis://u:***@h"),
            ("sqlite:/var/lib/soloist.db", "sqlite:/var/lib/soloist.db"),
            ("memory:", "memory:"),
            ("", ""),
        ] {
            assert_eq!(redact(url), shown);
        }
    }

    #[test]
    fn starring_out_keeps_the_length_and_the_other_urls() {
        let text = "store = \"redis://:gehëim@h\" # or \"redis://u:pw@h2\"\nx = 1";
        let shown = star_passwords(text);
        assert_eq!(shown.len(), text.len());
        assert_eq!(
            shown,
            "store = \"redis://:*******@h\" # or \"redis://u:**@h2\"\nx = 1"
        );
        for (text, shown) in [
            (
                "'redis+unix:/r?pass=secret1&db=2'",
                "'redis+unix:/r?pass=*******&db=2'",
            ),
            (
                "'Unix:///r?db=2&pass=secret1'",
                "'Unix:///r?db=2&pass=*******'",
            ),
            ("unix: redis://u:secret1@h", "unix: redis://u:*******@h"),
            // A quote other than the one that it stands in may be part of a password.
            ("redis://:it's@h", "redis://:****@h"),
            ("\"redis://:it's@h\" 'y@h'", "\"redis://:****@h\" 'y@h'"),
            (
                r#"a = "it\"s redis://:a\"b@h" # x@y"#,
                r#"a = "it\"s redis://:****@h" # x@y"#,
            ),
        ] {
            assert_eq!(star_passwords(text), shown);
        }
    }

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
