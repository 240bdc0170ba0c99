//! Asks for a URL with ureq: blocking, HTTP/1.1, TLS by rustls. What the requests of jobs and of
//! notifications have in common.
//!
//! Must never: follow a redirect, skip the verification of a certificate, go through a proxy, or
//! name more of a URL than scheme, host and port.

mod failure;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use ureq::Agent;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use url::Url;

use self::failure::NameNotFound;

pub(crate) use self::failure::Place;

/// How long it may take to find a host's addresses and get a connection, TLS included. Far
/// longer than any that comes about, and short enough to name the cause within a job's minute.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Who is asking.
const USER_AGENT: &str = concat!("soloist/", env!("CARGO_PKG_VERSION"));

/// Asks for a URL of its scheme; all of it may take that long, if there is a limit. Nothing of it
/// is shared with any other request.
pub(crate) fn agent(url: &Url, within: Option<Duration>) -> Result<Agent, String> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .allow_non_standard_methods(true)
        .proxy(None)
        .user_agent(USER_AGENT)
        .timeout_global(within)
        .timeout_connect(Some(CONNECT_LIMIT))
        .timeout_resolve(Some(CONNECT_LIMIT));
    if url.scheme() == "https" {
        config = config.tls_config(tls()?);
    }
    let connector = DefaultConnector::default();
    Ok(Agent::with_parts(
        config.build(),
        connector,
        Names::default(),
    ))
}

fn tls() -> Result<TlsConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let mut why = String::new();
        for error in &found.errors {
            // Writing to a string can't fail.
            let _ = write!(why, " ({error})");
        }
        return Err(format!(
            "no certificate to trust was found on this host{why}: install ca-certificates, or name a file of certificates by SSL_CERT_FILE in soloist's environment"
        ));
    }
    let certificates = found.certs.iter();
    let roots: Vec<_> = certificates
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

/// A URL as it is asked for: without user, password and fragment.
pub(crate) fn bare(url: &Url) -> Result<Url, String> {
    let mut bare = url.clone();
    bare.set_fragment(None);
    let without_user = bare.set_username("").and_then(|()| bare.set_password(None));
    without_user.map_err(|()| "its URL has no host")?;
    Ok(bare)
}

/// User and password of the URL, as a header (RFC 7617).
pub(crate) fn basic(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

/// The system's resolver, whose failures can be told from others.
#[derive(Debug, Default)]
struct Names(DefaultResolver);

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout);
        found.map_err(|error| match error {
            ureq::Error::Io(error) => ureq::Error::Other(Box::new(NameNotFound(error))),
            other => other,
        })
    }
}
