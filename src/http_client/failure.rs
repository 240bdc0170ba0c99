//! Why a request got no answer, in words: the place, the cause, and what may be done. Of a URL
//! only scheme, host and port are ever named.

use std::fmt;
use std::io::{self, ErrorKind};

use ureq::{Error, Timeout};
use url::Url;

use super::CONNECT_LIMIT;
use crate::tls_trouble::{Trouble, inside};

/// A host has no address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NameNotFound(pub(crate) io::Error);

/// What was asked, and where.
pub(crate) struct Place {
    method: String,
    origin: String,
    host: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.origin)
    }
}

impl Place {
    pub(crate) fn of(method: &str, url: &Url) -> Self {
        Self {
            method: method.to_owned(),
            origin: url.origin().ascii_serialization(),
            host: url.host_str().unwrap_or_default().to_owned(),
        }
    }

    /// Why there was no answer.
    pub(crate) fn explain(&self, error: &Error) -> String {
        let why = match error {
            Error::Other(inner) if inner.is::<NameNotFound>() => self.no_address(inner),
            Error::HostNotFound => self.no_address(&"it has none"),
            Error::Timeout(Timeout::Resolve) => {
                self.no_address(&format_args!("no answer within {CONNECT_LIMIT:?}"))
            }
            Error::Timeout(Timeout::Connect) => format!(
                "no connection within {CONNECT_LIMIT:?}: a firewall may drop what is sent there{}",
                proxy_note()
            ),
            Error::Timeout(Timeout::Global) => "no answer in the time that it may take".to_owned(),
            Error::Io(error) => match inside(error) {
                Some(error) => self.tls(error),
                None => self.io(error),
            },
            Error::Rustls(error) => self.tls(error),
            Error::Protocol(error) => format!(
                "what answers there does not speak HTTP ({error}): check scheme and port of `url`"
            ),
            Error::LargeResponseHeader(..) => {
                "the header of its answer is over 64 KiB: something else may answer there".into()
            }
            other => other.to_string(),
        };
        format!("{self} failed: {why}")
    }

    /// Why an answer is not complete.
    pub(crate) fn broke_off(&self, status: u16, length: u64, error: io::Error) -> String {
        let error = Error::from(error);
        let why = match &error {
            Error::Io(error) if is_end(error.kind()) => "the server closed the connection".into(),
            other => other.to_string(),
        };
        format!(
            "{self} answered {status}, and its answer broke off after {length} bytes: {why}; its own log may say why"
        )
    }

    fn no_address(&self, why: &dyn fmt::Display) -> String {
        format!(
            "no address was found for `{0}` ({why}): check the name, and on this host `getent hosts {0}`{1}",
            self.host,
            proxy_note()
        )
    }

    fn io(&self, error: &io::Error) -> String {
        match error.kind() {
            ErrorKind::ConnectionRefused => format!(
                "nothing listens there ({error}): check that the service is up, and the port of `url`"
            ),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => format!(
                "no way leads there from this host ({error}): check its routes and firewall{}",
                proxy_note()
            ),
            kind if is_end(kind) => format!(
                "the server closed the connection without an answer ({error}): its own log may say why; a port for TLS wants `https://`"
            ),
            _ => error.to_string(),
        }
    }

    fn tls(&self, error: &rustls::Error) -> String {
        let trouble = match Trouble::of(error) {
            // What was shown was none: nothing is known of what is wanted.
            Trouble::ClientCertificateRefused => Trouble::Other,
            trouble => trouble,
        };
        let cure = match trouble {
            Trouble::Untrusted => {
                "add the issuer's certificate to those of the system, or to a file that SSL_CERT_FILE names in soloist's environment"
            }
            Trouble::OtherName => {
                "write into `url` a name that the certificate has among its alternative names"
            }
            Trouble::NoTls => "write `http://`, or the port for TLS",
            Trouble::ClientCertificateWanted => {
                "soloist has none: run curl with `--cert` as a `command`"
            }
            other => other.cure().unwrap_or(
                "check what the server offers with `openssl s_client`: TLS 1.2 or 1.3, and a certificate of its own that is no issuer's",
            ),
        };
        format!("{} ({error}): {cure}", trouble.cause())
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
    )
}

/// Where everything goes through a proxy, connecting fails just so.
fn proxy_note() -> &'static str {
    const NAMES: [&str; 6] = [
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ];
    match NAMES.iter().any(|name| std::env::var_os(name).is_some()) {
        true => {
            "; soloist uses no proxy, although the environment names one: run curl as a `command`"
        }
        false => "",
    }
}
