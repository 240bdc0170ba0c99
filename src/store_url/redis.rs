//! The URLs of one Redis or Valkey server, taken apart.
//!
//! ```text
//!  redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]        rediss://…  the same, with TLS
//!  unix://[[USER]:PASSWORD@]/PATH[?db=DB&user=USER&pass=PASSWORD]   redis+unix://…  the same
//! ```
//!
//! User, password and path may be percent-encoded. Must never: put a part of the URL into an
//! error, as any part may be half a password; or take a word for "do not verify".

use std::fmt;
use std::path::PathBuf;

use super::StoreUrlError;

/// The port of a server whose URL names none.
const DEFAULT_PORT: u16 = 6379;

/// How a URL of this kind is written.
const FORM: &str = "write `redis://USER:PASSWORD@HOST:PORT/DB`; all but the host may be left out, and `@`, `/`, `?` and `#` in a password are written `%40`, `%2F`, `%3F` and `%23`";

/// What is meant by most who write a user alone.
const PASSWORD_FORM: &str = "a password without a user has a colon before it: write `redis://:PASSWORD@HOST`; with a user, `redis://USER:PASSWORD@HOST`";

/// How that of a socket is written.
const SOCKET_FORM: &str =
    "write `unix:///PATH?db=DB&user=USER&pass=PASSWORD`; all but the path may be left out";

const VERIFICATION: &str =
    "the store's URL asks for TLS without verification, which can't be switched off";

const VERIFICATION_CURE: &str = "leave that out, and name the CA that signed the server's certificate by `tls_ca` in [scheduler]; where the certificate has another name than the URL, say which by `tls_server_name`";

/// Parts of the names by which other programs take the order not to verify.
const UNVERIFIED: [&str; 5] = ["insecure", "verify", "cert_reqs", "check_hostname", "trust"];

/// Where a server is, and as whom one goes there.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    pub(crate) address: Address,
    /// The connection is a TLS one.
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) db: u32,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The host as a name, or an address without brackets.
    Tcp { host: String, port: u16 },
    /// A socket on this host.
    Unix(PathBuf),
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisUrl").field(&self.to_string()).finish()
    }
}

/// The place without user and password.
impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let db = self.db;
        match &self.address {
            Address::Tcp { host, port } if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}/{db}")
            }
            Address::Tcp { host, port } => write!(f, "{scheme}://{host}:{port}/{db}"),
            Address::Unix(path) if db == 0 => write!(f, "unix://{}", path.display()),
            Address::Unix(path) => write!(f, "unix://{}?db={db}", path.display()),
        }
    }
}

fn wrong(what: &'static str) -> StoreUrlError {
    StoreUrlError::Redis { what, cure: FORM }
}

fn wrong_socket(what: &'static str) -> StoreUrlError {
    let cure = SOCKET_FORM;
    StoreUrlError::Redis { what, cure }
}

impl RedisUrl {
    /// Whether a URL is one of these, by its beginning.
    pub(crate) fn is_one(url: &str) -> bool {
        let scheme = url.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| {
            let names = ["redis", "rediss", "unix", "redis+unix"];
            names.iter().any(|name| scheme.eq_ignore_ascii_case(name))
        })
    }

    /// What is wrong with `USER:PASSWORD@HOST`.
    pub(super) fn without_scheme() -> StoreUrlError {
        wrong("the store's URL does not begin with `redis://`")
    }

    /// Takes a URL apart.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreUrlError> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        let scheme = scheme.to_ascii_lowercase();
        if scheme.ends_with("unix") {
            return Self::of_socket(rest);
        }
        let rest = rest.strip_prefix("//");
        let rest = rest.ok_or_else(|| wrong("the store's URL has no `//` before its host"))?;
        Self::of_host(rest, scheme == "rediss")
    }

    /// The same URL with another place: a port of this host.
    #[cfg(feature = "daemon")]
    pub(crate) fn by_way_of(url: &str, port: u16) -> String {
        let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
        let (user_info, place) = match rest.rsplit_once('@') {
            Some((user_info, place)) => (format!("{user_info}@"), place),
            None => (String::new(), rest),
        };
        let after = place.find(['/', '?', '#']).map_or("", |at| &place[at..]);
        format!("{scheme}://{user_info}127.0.0.1:{port}{after}")
    }

    /// What follows `redis://`.
    fn of_host(rest: &str, tls: bool) -> Result<Self, StoreUrlError> {
        // To the last `@`: one in a password is often written as it is.
        let (user_info, place) = match rest.rsplit_once('@') {
            Some((user_info, place)) => (Some(user_info), place),
            None => (None, rest),
        };
        let (user, password) = user_info.map_or(Ok((None, None)), credentials)?;
        let (place, fragment) = split_off(place, '#');
        let (place, query) = split_off(place, '?');
        refuse_fragment(fragment)?;
        let mut db = None;
        for (name, value) in parameters(query) {
            match name.as_str() {
                "db" => db = Some(number(&value)?),
                _ => return Err(unknown_parameter(&name, FORM)),
            }
        }
        let (authority, path) = split_off(place, '/');
        let address = address(authority)?;
        let path = path.unwrap_or_default().trim_end_matches('/');
        if !path.is_empty() {
            let of_path = number(path)?;
            if db.is_some_and(|db| db != of_path) {
                return Err(wrong("the store's URL names two databases"));
            }
            db = Some(of_path);
        }
        Ok(Self {
            address,
            tls,
            user,
            password,
            db: db.unwrap_or(0),
        })
    }

    /// What follows `unix:`.
    fn of_socket(rest: &str) -> Result<Self, StoreUrlError> {
        let (rest, fragment) = split_off(rest, '#');
        let (place, query) = split_off(rest, '?');
        refuse_fragment(fragment)?;
        let (mut user, mut password) = (None, None);
        let path = match place.strip_prefix("//") {
            Some(place) => match place.split_once('/') {
                Some(("", path)) => path,
                Some((authority, path)) => {
                    let user_info = authority.strip_suffix('@');
                    let beside = "the store's URL names a host beside its socket";
                    (user, password) = credentials(user_info.ok_or_else(|| wrong_socket(beside))?)?;
                    path
                }
                None => return Err(wrong_socket("the store's URL has no path")),
            },
            None => place.strip_prefix('/').unwrap_or_default(),
        };
        if path.is_empty() {
            let what = "the store's URL has no path from the root of the file system";
            return Err(wrong_socket(what));
        }
        let path = format!("/{}", decoded(path)?);
        let mut db = 0;
        for (name, value) in parameters(query) {
            match name.as_str() {
                "db" => db = number(&value)?,
                "user" | "username" => user = Some(decoded(&value)?),
                "pass" | "password" => password = Some(decoded(&value)?),
                _ => return Err(unknown_parameter(&name, SOCKET_FORM)),
            }
        }
        let (user, password) = checked(user, password)?;
        Ok(Self {
            address: Address::Unix(PathBuf::from(path)),
            tls: false,
            user,
            password,
            db,
        })
    }
}

/// What is before the first such character, and what is after it.
pub(super) fn split_off(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

pub(super) fn parameters(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    let pairs = query.unwrap_or_default().split('&');
    pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_ascii_lowercase(), value.to_owned())
    })
}

pub(super) fn unknown_parameter(name: &str, cure: &'static str) -> StoreUrlError {
    if UNVERIFIED.iter().any(|part| name.contains(part)) {
        return unverified();
    }
    let what = "the store's URL has a parameter that it can't have";
    StoreUrlError::Redis { what, cure }
}

fn unverified() -> StoreUrlError {
    StoreUrlError::Redis {
        what: VERIFICATION,
        cure: VERIFICATION_CURE,
    }
}

/// `#insecure` is how clients in Rust are told to trust anybody.
pub(super) fn refuse_fragment(fragment: Option<&str>) -> Result<(), StoreUrlError> {
    match fragment {
        None => Ok(()),
        Some(text) if UNVERIFIED.iter().any(|part| text.contains(part)) => Err(unverified()),
        Some(_) => Err(wrong("the store's URL has something after a `#`")),
    }
}

pub(super) type Credentials = (Option<String>, Option<String>);

/// `USER:PASSWORD`, either of which may be empty.
pub(super) fn credentials(user_info: &str) -> Result<Credentials, StoreUrlError> {
    let (user, password) = split_off(user_info, ':');
    let decode = |text: &str| decoded(text).map(|text| Some(text).filter(|text| !text.is_empty()));
    checked(decode(user)?, password.map_or(Ok(None), decode)?)
}

fn checked(user: Option<String>, password: Option<String>) -> Result<Credentials, StoreUrlError> {
    match (&user, &password) {
        // For a user without a password any will do, so that there is a way to write it.
        (Some(_), None) => Err(StoreUrlError::Redis {
            what: "the store's URL has a user without a password",
            cure: PASSWORD_FORM,
        }),
        _ => Ok((user, password)),
    }
}

pub(super) fn number(db: &str) -> Result<u32, StoreUrlError> {
    db.parse()
        .map_err(|_| wrong("the database of the store's URL is no number"))
}

fn address(authority: &str) -> Result<Address, StoreUrlError> {
    let (host, port) = host_and_port(authority, DEFAULT_PORT)?;
    Ok(Address::Tcp { host, port })
}

/// `HOST[:PORT]`, the host without its brackets.
pub(super) fn host_and_port(
    authority: &str,
    default_port: u16,
) -> Result<(String, u16), StoreUrlError> {
    let (host, port) = match authority.rsplit_once(':') {
        // The colons of `[::1]` are no port's.
        Some((_, port)) if port.ends_with(']') => (authority, None),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if bare.is_none() && host.contains(':') {
        return Err(wrong(
            "the store's URL has two ports, or an IPv6 address without `[` and `]` around it",
        ));
    }
    let host = bare.unwrap_or(host);
    if host.is_empty() {
        return Err(wrong("the store's URL has no host"));
    }
    if host.contains(|c: char| c.is_whitespace() || "[]%,".contains(c)) {
        return Err(wrong("the host of the store's URL is no host's name"));
    }
    match port.map_or(Ok(default_port), str::parse) {
        Ok(port) if port != 0 => Ok((host.to_owned(), port)),
        _ => Err(wrong(
            "the port of the store's URL is no number from 1 to 65535",
        )),
    }
}

/// The text with its percent-encoded bytes (RFC 3986, section 2.1) decoded. A `%` after which no
/// two hexadecimal digits follow stands for itself, as a password is often written as it is.
pub(super) fn decoded(text: &str) -> Result<String, StoreUrlError> {
    let bytes = text.as_bytes();
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = digit(at + 1).zip(digit(at + 2)).filter(|_| byte == b'%');
        let pair = pair.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        decoded.push(pair.unwrap_or(byte));
        at += if pair.is_some() { 3 } else { 1 };
    }
    let what = "the store's URL has percent-encoded bytes that are no UTF-8";
    String::from_utf8(decoded).map_err(|_| wrong(what))
}

#[cfg(test)]
mod tests;
