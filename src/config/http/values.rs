//! What the values of `http` may be: pure checks, whose messages follow the name of the value
//! and never hold the value of a URL, a header or a body.

use std::ops::RangeInclusive;

use url::Url;

use crate::config::names::nearest;
use crate::config::values::ValueError;
use crate::scheduler::variable::Variable;

/// Statuses that an answer can end with; those below announce another.
pub(in crate::config) const STATUSES: RangeInclusive<u16> = 200..=599;

/// Methods that everybody knows; any other in capitals is taken as well.
const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
];

/// Methods whose requests have no body (RFC 9110, 9.3).
const BODILESS: [&str; 2] = ["HEAD", "TRACE"];

/// Headers that are not the table's to set, in small letters, and why.
const RESERVED_HEADERS: [(&str, &str); 12] = [
    (
        "idempotency-key",
        "soloist sends `Idempotency-Key: JOB/SCHEDULED_AT`, the same for all attempts of an occurrence; give another key a header of another name",
    ),
    ("host", "soloist takes it from `url`"),
    ("content-length", LENGTH),
    ("transfer-encoding", LENGTH),
    ("connection", CONNECTION),
    ("keep-alive", CONNECTION),
    ("proxy-connection", CONNECTION),
    ("proxy-authorization", CONNECTION),
    ("upgrade", CONNECTION),
    ("expect", CONNECTION),
    ("te", CONNECTION),
    ("trailer", CONNECTION),
];
const LENGTH: &str = "soloist sends the length of the `body` itself: leave it out";
const CONNECTION: &str = "it is about the connection, which soloist sees to: leave it out";

fn error<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, ValueError> {
    Err(ValueError {
        message: message.into(),
        hint: hint.into(),
    })
}

/// What a variable might be, so that a text with variables can be checked before there is any.
pub(in crate::config) fn sample(variable: Variable) -> String {
    let text = match variable {
        Variable::ScheduledAt => "2026-11-20T22:00:00Z",
        Variable::RunId => "0192f0c1-7a6e-7d3b-9c55-0f4b8f1d2a3e",
        Variable::Job | Variable::Replica => "x",
        _ => "1",
    };
    text.into()
}

/// Whether a text is a URL that can be asked; says whether it has a fragment.
pub(in crate::config) fn check_url(url: &str) -> Result<Fragment, ValueError> {
    const EXAMPLE: &str = "for example `url = \"https://shop.example/close-expired-orders\"`";
    if url.is_empty() {
        return error("is empty", EXAMPLE);
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return error(
            "has a blank or a line break in it",
            "in a URL a blank is written `%20`",
        );
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return error("does not begin with `http://` or `https://`", EXAMPLE);
    };
    if !["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return error(
            "does not begin with `http://` or `https://`",
            "an `http` job speaks HTTP alone; for anything else run curl as a `command`",
        );
    }
    if rest.starts_with(['/', '?', '#']) || rest.is_empty() {
        return error("names no host", EXAMPLE);
    }
    match Url::parse(url) {
        Ok(url) if url.fragment().is_some() => Ok(Fragment::Lost),
        Ok(_) => Ok(Fragment::None),
        Err(why) => error(
            format!("is no URL: {why}"),
            "write `https://USER:PASSWORD@HOST:PORT/PATH?QUERY`, of which all but the host may be left out; `@`, `/`, `?` and `#` in a password are written `%40`, `%2F`, `%3F` and `%23`",
        ),
    }
}

/// Whether a URL has something after a `#`, which is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Fragment {
    /// It hasn't.
    None,
    /// It has.
    Lost,
}

/// Whether a text is a method that may be asked for.
pub(super) fn check_method(method: &str) -> Result<(), ValueError> {
    const EXAMPLE: &str = "for example `method = \"POST\"`";
    if METHODS.contains(&method) {
        return Ok(());
    }
    if let Some(near) = nearest(method, METHODS) {
        return error("is no method", format!("did you mean `{near}`?"));
    }
    if method == "CONNECT" {
        let hint = "it makes a tunnel, which is nothing that a job can be; run curl as a `command`";
        return error("is not supported", hint);
    }
    let in_capitals = |c: char| c.is_ascii_uppercase() || c == '-';
    if method.is_empty() || method.len() > 20 || !method.chars().all(in_capitals) {
        return error(
            "is no method",
            format!("it is a word in capitals, {EXAMPLE}"),
        );
    }
    Ok(())
}

/// Whether requests by this method may have a body.
pub(super) fn may_have_body(method: &str) -> bool {
    !BODILESS.contains(&method)
}

/// Whether the table may set a header of this name.
pub(in crate::config) fn check_header_name(name: &str) -> Result<(), ValueError> {
    // RFC 9110, 5.6.2: token.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        let hint = "a name is made of letters, digits and `-`, such as `X-Api-Key`";
        return error("can't name a header", hint);
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("soloist-") {
        let hint = "headers that begin with `Soloist-` are set by soloist itself";
        return error("is reserved", hint);
    }
    match RESERVED_HEADERS
        .iter()
        .find(|(reserved, _)| *reserved == lower)
    {
        Some((_, why)) => error("is reserved", *why),
        None => Ok(()),
    }
}

/// Whether a text can be the value of a header.
pub(in crate::config) fn check_header_value(value: &str) -> Result<(), ValueError> {
    if value.chars().all(|c| c == '\t' || (' '..='~').contains(&c)) {
        return Ok(());
    }
    error(
        "has a character that no header can have",
        "a header is one line of ASCII: take out line breaks, and encode the rest as the server wants it",
    )
}

/// Whether a number is a status.
pub(super) fn check_status(number: i64) -> Result<u16, ValueError> {
    match u16::try_from(number) {
        Ok(status) if STATUSES.contains(&status) => Ok(status),
        _ => error(
            "is no status that an answer can have",
            "they go from 200 to 599; for example `expect_status = 204`",
        ),
    }
}

/// Reads `204`, `2xx` or `200-299`.
pub(super) fn parse_statuses(text: &str) -> Result<RangeInclusive<u16>, ValueError> {
    const EXAMPLE: &str =
        "write `204`, `\"2xx\"` or `\"200-299\"`, or a list of these: `[\"2xx\", 404]`";
    let number = |text: &str| match text.parse() {
        Ok(number) if text.len() == 3 => check_status(number),
        _ => error("is no status", EXAMPLE),
    };
    if let Some(class) = text.strip_suffix("xx").or(text.strip_suffix("XX")) {
        let first = number(&format!("{class}00"))?;
        return Ok(first..=first + 99);
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (number(from.trim())?, number(to.trim())?);
    if from > to {
        return error("ends before it begins", EXAMPLE);
    }
    Ok(from..=to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_http_or_https_with_a_host() {
        for url in [
            "http://h",
            "https://h:8443/a?b=c",
            "HTTP://h/",
            "https://u:p@h/",
            "http://[::1]:8080/",
            "https://b\u{fc}cher.example/\u{e4}?\u{f6}",
            "http://my_service/",
        ] {
            assert_eq!(check_url(url), Ok(Fragment::None), "{url}");
        }
        assert_eq!(check_url("http://h/#x"), Ok(Fragment::Lost));
        for (url, message) in [
            ("", "is empty"),
            ("shop.example/x", "does not begin with"),
            ("mailto:x", "does not begin with"),
            ("ftp://h", "does not begin with"),
            ("http://", "names no host"),
            ("http:///x", "names no host"),
            ("http://h/a b", "has a blank"),
            ("http://h/\n", "has a blank"),
            ("http://h:port/", "is no URL: invalid port number"),
            ("http://u:p/w@h/", "is no URL: invalid port number"),
            ("http://a|b/", "is no URL: invalid"),
        ] {
            let error = check_url(url).expect_err(url);
            assert!(
                error.message.starts_with(message),
                "{url}: {}",
                error.message
            );
        }
    }

    #[test]
    fn a_method_is_a_word_in_capitals_and_no_slip_of_the_pen() {
        for method in ["GET", "POST", "PURGE", "PROPFIND", "M-SEARCH"] {
            assert_eq!(check_method(method), Ok(()), "{method}");
        }
        for (method, hint) in [
            ("post", "did you mean `POST`?"),
            ("PSOT", "did you mean `POST`?"),
            ("DELET", "did you mean `DELETE`?"),
            ("purge", "in capitals"),
            ("A B", "in capitals"),
            ("", "in capitals"),
            ("CONNECT", "tunnel"),
        ] {
            let error = check_method(method).expect_err(method);
            assert!(error.hint.contains(hint), "{method}: {}", error.hint);
        }
    }

    #[test]
    fn headers_of_the_protocol_and_of_soloist_are_reserved() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "content-type",
            "User-Agent",
            "x_y",
        ] {
            assert_eq!(check_header_name(name), Ok(()), "{name}");
        }
        for (name, hint) in [
            ("Soloist-Job", "by soloist itself"),
            ("soloist-anything", "by soloist itself"),
            ("IDEMPOTENCY-KEY", "the same for all attempts"),
            ("host", "from `url`"),
            ("Content-Length", "the length"),
            ("Transfer-Encoding", "the length"),
            ("Connection", "about the connection"),
            ("", "made of letters"),
            ("X Key", "made of letters"),
            ("X:", "made of letters"),
            ("\u{e4}", "made of letters"),
        ] {
            let error = check_header_name(name).expect_err(name);
            assert!(error.hint.contains(hint), "{name}: {}", error.hint);
        }
    }

    #[test]
    fn the_value_of_a_header_is_one_line_of_ascii() {
        for value in ["", "a b\t\"c\"", "~!"] {
            assert_eq!(check_header_value(value), Ok(()), "{value}");
        }
        for value in ["a\nb", "a\rb", "\u{e4}", "\u{7f}"] {
            assert!(check_header_value(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn statuses_are_numbers_classes_or_ranges() {
        for (text, range) in [
            ("204", 204..=204),
            ("2xx", 200..=299),
            ("5XX", 500..=599),
            ("200-299", 200..=299),
            ("200 - 204", 200..=204),
        ] {
            assert_eq!(parse_statuses(text), Ok(range), "{text}");
        }
        for text in [
            "", "xx", "1xx", "6xx", "2x", "x2x", "100", "600", "-200", "299-200", "200-",
            "200,204", "0204", "+20", "ok",
        ] {
            assert!(parse_statuses(text).is_err(), "{text}");
        }
        assert_eq!(check_status(599), Ok(599));
        for number in [-1, 0, 199, 600, 1 << 40] {
            assert!(check_status(number).is_err(), "{number}");
        }
    }
}
