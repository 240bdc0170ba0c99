//! `smtp` of a mail: the server that takes it.
//!
//! Must never: show user or password, or send them without TLS to another host.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::config::http::{Named, Shape, sample};
use crate::config::read::Reader;

/// The port of mail by TLS from the start (RFC 8314).
const TLS_PORT: u16 = 465;

/// The port of mail that is submitted.
const SUBMISSION_PORT: u16 = 587;

/// A server that takes mails.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpServer {
    /// Its name or address.
    pub host: String,
    /// Its port. Default: 465 with TLS from the start, otherwise 587.
    pub port: u16,
    /// How the connection is made safe.
    pub security: Security,
    /// Who asks it; nobody by default.
    pub user: Option<(String, String)>,
}

/// How a connection is made safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// `smtps://`: TLS from the start.
    Tls,
    /// `smtp://`: nothing is said before the server has changed to TLS.
    StartTls,
    /// `smtp://HOST?tls=none`: not at all.
    None,
}

impl fmt::Debug for SmtpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field has to be thought of here.
        let Self {
            host,
            port,
            security,
            user,
        } = self;
        f.debug_struct("SmtpServer")
            .field("host", host)
            .field("port", port)
            .field("security", security)
            .field("user", &user.as_ref().map(|_| "***"))
            .finish()
    }
}

pub(super) fn read_smtp(reader: &mut Reader<'_>, url: Named<'_, '_>) -> Option<SmtpServer> {
    let (template, span) = reader.template(url, Shape::Url)?;
    super::check_variables(reader, &template, &span)?;
    match server_of(&template.fill(sample)) {
        Ok(server) => Some(server),
        Err((message, hint)) => {
            reader.error(&span, format!("`smtp` {message}"), hint);
            None
        }
    }
}

fn server_of(text: &str) -> Result<SmtpServer, (&'static str, &'static str)> {
    const FORM: &str = "write `smtps://USER:PASSWORD@HOST:PORT`, of which all but the host may be left out, or `smtp://…` for STARTTLS; `@`, `/`, `?` and `#` in a password are written `%40`, `%2F`, `%3F` and `%23`";
    let url = Url::parse(text).map_err(|_| ("is no URL", FORM))?;
    let plain = match url.query() {
        None | Some("") => false,
        Some("tls=none") => true,
        Some(_) => return Err(("takes `?tls=none` alone", FORM)),
    };
    let (security, port) = match (url.scheme(), plain) {
        ("smtps", false) => (Security::Tls, TLS_PORT),
        ("smtp", false) => (Security::StartTls, SUBMISSION_PORT),
        ("smtp", true) => (Security::None, SUBMISSION_PORT),
        ("smtps", true) => return Err(("says both TLS and none", FORM)),
        _ => return Err(("does not begin with `smtps://` or `smtp://`", FORM)),
    };
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or(("names no host", FORM))?;
    if !matches!(url.path(), "" | "/") {
        return Err(("has a path", FORM));
    }
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let user = match (url.username(), url.password()) {
        ("", None) => None,
        (_, None) => return Err(("has a user and no password", FORM)),
        (user, Some(password)) => Some((decoded(user), decoded(password))),
    };
    if user.is_some() && plain {
        let hint = "leave out `?tls=none`: the server is to offer STARTTLS";
        return Err(("would send a password that anybody can read", hint));
    }
    Ok(SmtpServer {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port().unwrap_or(port),
        security,
        user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_by_tls_unless_that_is_said_not_to_be() {
        for (url, security, port) in [
            ("smtps://h", Security::Tls, 465),
            ("smtp://h", Security::StartTls, 587),
            ("smtp://h:25?tls=none", Security::None, 25),
        ] {
            let server = server_of(url).unwrap();
            assert_eq!((server.security, server.port), (security, port), "{url}");
        }
    }

    #[test]
    fn a_password_is_decoded_never_shown_and_never_sent_in_the_clear() {
        let server = server_of("smtps://me%40x:p%2Fw@h").unwrap();
        assert_eq!(server.user, Some(("me@x".into(), "p/w".into())));
        assert!(!format!("{server:?}").contains("p/w"));
        for url in [
            "smtp://u:p@h?tls=none",
            "smtps://u@h",
            "http://h",
            "smtps://",
            "smtps://h/x",
            "smtps://h?tls=none",
            "h:25",
        ] {
            assert!(server_of(url).is_err(), "{url}");
        }
    }
}
