//! How a URL is shown without its secrets.
//!
//! ```text
//!  understood        redis://bob:***@h/0              the password alone
//!  not understood    redis:***@h, ***@h:6379          all up to the last `@`: nobody knows which
//!                    redis://h:***                    part is what, so that any may be a password
//! ```
//!
//! Must never: trust a text that can't be taken apart to have its secrets where they belong.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::{ALIASES, RedisUrl, SeveralUrl, check, is_scheme, schemes};

/// What stands in place of a password.
const REDACTED: &str = "***";

/// Names of query parameters whose values are secrets.
const SECRET_PARAMETERS: [&str; 8] = [
    "password",
    "sentinel_password",
    "pass",
    "passwd",
    "pwd",
    "auth",
    "token",
    "secret",
];

/// The URL with `***` for the password: scheme, user, host and the rest stay.
///
/// A password in which `@`, `/` or `?` was not escaped is still hidden as a whole: everything
/// from the first `:` after the scheme to the last `@` counts as password. Of a URL that names no
/// store, as it can't be taken apart, all up to the last `@` is hidden.
pub fn redact(url: &str) -> String {
    match is_understood(url) {
        true => replaced(url, secret_ranges(url)),
        false => replaced(url, secrets_of_refused(url)),
    }
}

/// A word of a command with `***` for the password of a URL in it, whatever that is for.
#[cfg(feature = "daemon")]
pub(crate) fn redact_word(word: &str) -> String {
    replaced(word, secret_ranges(word))
}

fn replaced(text: &str, secrets: Vec<Range<usize>>) -> String {
    let mut shown = text.to_owned();
    for range in secrets.into_iter().rev() {
        shown.replace_range(range, REDACTED);
    }
    shown
}

/// Whether it is known which part of a URL is what.
fn is_understood(url: &str) -> bool {
    match url.split_once(':') {
        // A path, and none of a host.
        Some(("sqlite", path)) => !path.starts_with("//") || path.starts_with("///"),
        Some(("memory", rest)) => rest.is_empty(),
        _ => (RedisUrl::is_one(url) || SeveralUrl::is_one(url)) && check(url).is_ok(),
    }
}

/// What is not to be seen of a URL that names no store, in order and apart: all that may have been
/// meant for a password, wherever it stands.
pub(crate) fn secrets_of_refused(url: &str) -> Vec<Range<usize>> {
    let start = length_of_beginning(url);
    let rest = &url[start..];
    let mut ranges = Vec::new();
    let to_end = |from: usize| from..url.len();
    // Some escape the one `@` that should not be.
    let at = [("@", 1), ("%40", 3)].map(|(mark, length)| Some((rest.rfind(mark)?, length)));
    match at.into_iter().flatten().max() {
        Some((at, length)) => {
            ranges.push(start..start + at);
            let hosts = start + at + length;
            // A number that is none of a port, as people mistype it, is no password.
            let port = no_port(&url[hosts..]).map(|port| hosts + port);
            ranges.extend(port.filter(|port| !is_numeric(&url[*port..])).map(to_end));
        }
        None => ranges.extend(no_port(rest).map(|port| to_end(start + port))),
    }
    ranges.extend(secret_settings(url, start));
    ranges.retain(|range| !range.is_empty());
    joined(ranges)
}

/// Whether what stands before a path is made of numbers.
fn is_numeric(hosts: &str) -> bool {
    let authority = hosts.split(['/', '?', '#']).next().unwrap_or_default();
    authority.chars().all(|c| c.is_ascii_digit() || c == ':')
}

/// What is set to secrets in a refused URL, as in a query, or as other programs write it:
/// `HOST:PORT,password=…`, `Server=…;Pwd=…`, `host=… password=…`.
fn secret_settings(url: &str, start: usize) -> Vec<Range<usize>> {
    let parts = |c: char| "?&#;,".contains(c) || c.is_whitespace();
    let marks = url[start..].match_indices(parts);
    let settings = marks.map(|(at, mark)| start + at + mark.len());
    let mut ranges = Vec::new();
    for setting in [start].into_iter().chain(settings) {
        if let Some((name, value)) = url[setting..].split_once('=')
            && SECRET_PARAMETERS.contains(&name.trim().to_ascii_lowercase().as_str())
        {
            let value_at = setting + name.len() + 1;
            let length = value.find('&').unwrap_or(value.len());
            ranges.push(value_at..value_at + length);
        }
    }
    ranges
}

/// How much of a refused URL is certain to be no secret: its scheme, and the slashes after it.
fn length_of_beginning(url: &str) -> usize {
    let Some((scheme, rest)) = url.split_once(':') else {
        return 0;
    };
    let slashes = rest.len() - rest.trim_start_matches('/').len();
    let aliases = ALIASES
        .iter()
        .map(|(written, _)| written.trim_end_matches(['/', ':']));
    let is_known = || {
        schemes()
            .chain(aliases)
            .any(|known| scheme.eq_ignore_ascii_case(known))
    };
    match (is_scheme(scheme) && slashes >= 2) || is_known() {
        true => scheme.len() + 1 + slashes,
        false => 0,
    }
}

/// Where among hosts something begins that stands in the place of a port and is none.
fn no_port(hosts: &str) -> Option<usize> {
    let authority = hosts.split(['/', '?', '#']).next().unwrap_or_default();
    let mut from = 0;
    for piece in authority.split(',') {
        let host = match piece.find(']') {
            Some(closed) if piece.starts_with('[') => closed + 1,
            _ => piece.find(':').unwrap_or(piece.len()),
        };
        let port = piece[host..].strip_prefix(':');
        let is_port = port.is_none_or(|port| host > 0 && port.parse::<u16>().is_ok());
        if !is_port && piece.parse::<Ipv6Addr>().is_err() {
            return Some(from + host + 1);
        }
        from += piece.len() + 1;
    }
    None
}

/// The same ranges in order, those that meet as one.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
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

/// As people mistype them: what is shown of each, and `s3cret` never.
#[cfg(test)]
pub(crate) const REFUSED: [(&str, &str); 37] = [
    ("redis:/u:s3cret@h", "redis:/***@h"),
    ("redis:u:s3cret@h", "redis:***@h"),
    ("redis//u:s3cret@h", "***@h"),
    ("u:s3cret@h:6379", "***@h:6379"),
    (":s3cret@h", "***@h"),
    ("s3cret@h", "***@h"),
    ("redis://s3cret@h", "redis://***@h"),
    ("redis://s3cret:@h", "redis://***@h"),
    ("Redis:///s3cret@h", "Redis:///***@h"),
    ("redis://u:s3cret@h:99999", "redis://***@h:99999"),
    ("redis://u:s3cret@h:1:2/0", "redis://***@h:1:2/0"),
    ("redis://u:s3cret@", "redis://***@"),
    ("redis://u@x:s3cret@h/seven", "redis://***@h/seven"),
    ("redis://u:s3cret%40h:6379", "redis://***%40h:6379"),
    ("redis://u:s3cret", "redis://u:***"),
    ("redis://:s3cret:6379", "redis://:***"),
    ("redis://:s3cret/0", "redis://:***"),
    ("redis:u:s3cret", "redis:u:***"),
    ("u:s3cret", "u:***"),
    ("redis+quorum://a:1,b:s3cret", "redis+quorum://a:1,b:***"),
    ("redis+quorum://u:s3cret@a,b", "redis+quorum://***@a,b"),
    ("redis+sentinel://u:s3cret@a:1", "redis+sentinel://***@a:1"),
    ("redis+cluster:u:s3cret@a:1", "redis+cluster:***@a:1"),
    ("redis://h?password=s3cret@x", "redis://***"),
    ("redis://h#x?token=s3cret&y=1", "redis://h#x?token=***&y=1"),
    ("unix://u:s3cret@h/run/r", "unix://***@h/run/r"),
    ("unix:run/r?pass=s3cret&db=2", "unix:run/r?pass=***&db=2"),
    ("sqlite://u:s3cret@h/x.db", "sqlite://***@h/x.db"),
    ("memory:u:s3cret@h", "memory:***@h"),
    ("postgres://s3cret@h/db", "postgres://***@h/db"),
    ("jdbc:redis://u:s3cret@h", "***@h"),
    ("redis://u@h:s3cret", "redis://***@h:***"),
    (
        "redis+cluster://:x@a:1,b:s3cret/0",
        "redis+cluster://***@a:1,b:***",
    ),
    ("h:6380,password=s3cret,ssl=True", "h:6380,password=***"),
    (
        "redis://h:6380,Password = s3cret",
        "redis://h:6380,Password =***",
    ),
    ("Server=h;Pwd=s3cret;Timeout=1", "Server=h;Pwd=***"),
    ("password=s3cret host=h", "password=***"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_url_keeps_everything_but_the_password() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:pw@h:6379/0", "redis://:***@h:6379/0"),
            ("rediss://bob:pw@h", "rediss://bob:***@h"),
            ("redis://bob:p@w/x?y@h/0", "redis://bob:***@h/0"),
            (
                "redis+sentinel://:p:w@a:1,b:2/m/0",
                "redis+sentinel://:***@a:1,b:2/m/0",
            ),
            (
                "postgres://h/db?user=a&password=pw&x=1",
                "postgres://h/db?user=a&password=***&x=1",
            ),
            ("redis+unix:/r?password=p@w", "redis+unix:/r?password=***"),
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
    fn nothing_before_the_last_at_is_shown_of_a_url_that_is_not_understood() {
        for (url, shown) in REFUSED {
            assert_eq!(redact(url), shown, "{url}");
            assert_eq!(redact(shown), shown, "{url}");
            let error = check(url).err();
            let hint = error.as_ref().map(|error| error.hint());
            let told = format!("{error:?} {hint:?}");
            assert!(!told.contains("s3cret"), "{url}: {told}");
        }
    }

    #[test]
    fn where_no_password_can_be_meant_a_refused_url_is_shown_as_it_is() {
        for url in [
            "rdis://h",
            "redis://h:6379/seven",
            "redis://[::1]:6379/x",
            "redis://::1",
            "redis+quorum://a:1,b:2",
            "localhost:6379",
            "/var/lib/a:b",
            "soloist.db",
            "",
        ] {
            assert_eq!(redact(url), url);
        }
    }
}
