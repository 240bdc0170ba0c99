//! Makes the request with ureq: blocking, HTTP/1.1, TLS by rustls.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use ureq::config::Config;
use ureq::http::{Request, Response, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};
use url::Url;

use super::HttpCall;
use super::failure::{NameNotFound, Place};

/// How long it may take to find a host's addresses and get a connection, TLS included. Far
/// longer than any that comes about, and short enough to name the cause within a job's minute.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// What is read, and written, of an answer at a time.
const CHUNK_LENGTH: usize = 16 * 1024;

/// Who is asking.
const USER_AGENT: &str = concat!("soloist/", env!("CARGO_PKG_VERSION"));

/// Methods whose request announces its length even where it is nothing (RFC 9110, 8.6).
const ANNOUNCING: [&str; 3] = ["POST", "PUT", "PATCH"];

pub(super) fn perform(call: &HttpCall, answer: &mut impl Write) -> Result<(), String> {
    let url = Url::parse(&call.url).map_err(|error| {
        format!("the URL of the job makes no sense once it is filled in ({error}): see `url`")
    })?;
    let place = Place::of(&call.method, &url);
    let agent = agent(&url)?;
    let request = request(call, &url)
        .map_err(|error| format!("{place} can't be asked for: {error}; see the job's `http`"))?;
    let mut response = send(&agent, call, request).map_err(|error| place.explain(&error))?;
    let status = response.status();
    let passed_on = pass_on(&mut response, &place, answer);
    let expected = call.expect_status.iter();
    if !expected
        .into_iter()
        .any(|(from, to)| (*from..=*to).contains(&status.as_u16()))
    {
        return Err(unexpected(call, &url, &place, &response));
    }
    passed_on
}

/// Nothing of it is shared with any other request.
fn agent(url: &Url) -> Result<Agent, String> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .allow_non_standard_methods(true)
        .proxy(None)
        .user_agent(USER_AGENT)
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

/// All but the body.
fn request(call: &HttpCall, url: &Url) -> Result<Request<()>, String> {
    let mut bare = url.clone();
    bare.set_fragment(None);
    let without_user = bare.set_username("").and_then(|()| bare.set_password(None));
    without_user.map_err(|()| "its URL has no host")?;
    let builder = Request::builder().method(&*call.method).uri(bare.as_str());
    let mut request = builder.body(()).map_err(|error| error.to_string())?;
    // ureq keeps the letters of a name with a request that is built its own way, for methods
    // that it knows. Not all servers know that case does not matter.
    let mut spelt = ureq::get("http://localhost");
    for (name, value) in &call.headers {
        spelt = spelt.header_raw(name, value.as_bytes());
    }
    let names_authorization =
        |(name, _): &(String, String)| name.eq_ignore_ascii_case(header::AUTHORIZATION.as_str());
    if let Some(basic) = basic(url).filter(|_| !call.headers.iter().any(names_authorization)) {
        spelt = spelt.header_raw("Authorization", basic.as_bytes());
    }
    let (Some(headers), Some(extensions)) = (spelt.headers_ref(), spelt.extensions_ref()) else {
        return Err("one of its headers can't be sent".to_owned());
    };
    *request.headers_mut() = headers.clone();
    *request.extensions_mut() = extensions.clone();
    Ok(request)
}

/// User and password of the URL, as a header (RFC 7617).
fn basic(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

fn send(
    agent: &Agent,
    call: &HttpCall,
    request: Request<()>,
) -> Result<Response<Body>, ureq::Error> {
    match &call.body {
        Some(body) => agent.run(request.map(|()| body.as_bytes())),
        None if ANNOUNCING.contains(&&*call.method) => agent.run(request.map(|()| b"".as_slice())),
        None => agent.run(request),
    }
}

/// Writes an answer as it comes.
fn pass_on(
    response: &mut Response<Body>,
    place: &Place,
    answer: &mut impl Write,
) -> Result<(), String> {
    let (version, status) = (response.version(), response.status());
    let reason = status.canonical_reason().unwrap_or_default();
    let line = format!("{version:?} {} {reason}", status.as_u16());
    let unheard = |error| format!("{place} answered, and nobody took down what: {error}");
    writeln!(answer, "{}", line.trim_end()).map_err(unheard)?;
    let mut body = response.body_mut().as_reader();
    let mut chunk = [0; CHUNK_LENGTH];
    let mut length: u64 = 0;
    loop {
        match body.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => {
                answer.write_all(&chunk[..read]).map_err(unheard)?;
                length += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(place.broke_off(status.as_u16(), length, error)),
        }
    }
    answer.flush().map_err(unheard)
}

/// Why a status is no success, and what may be done about it.
fn unexpected(call: &HttpCall, url: &Url, place: &Place, response: &Response<Body>) -> String {
    let status = response.status();
    let reason = status
        .canonical_reason()
        .map_or(String::new(), |reason| format!(" {reason}"));
    let ranges = call.expect_status.iter();
    let expected: Vec<String> = ranges
        .map(|(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from}-{to}"),
        })
        .collect();
    let mut why = format!(
        "{place} answered {}{reason}, expected was {}",
        status.as_u16(),
        expected.join(" or ")
    );
    if !status.is_redirection() {
        return why;
    }
    let location = response.headers().get(header::LOCATION);
    let target = location.and_then(|location| url.join(location.to_str().ok()?).ok());
    // Writing to a string can't fail.
    let _ = match target {
        Some(target) => write!(
            why,
            "; it points to {}: redirects are not followed, so put the address that answers into `url`, or its status into `expect_status`",
            shown(&target, call.path_is_secret)
        ),
        None => write!(
            why,
            "; redirects are not followed: put this status into `expect_status` if it is a success"
        ),
    };
    why
}

/// A URL without user and query, and without its path if that may hold a secret.
fn shown(url: &Url, path_is_secret: bool) -> String {
    let origin = url.origin().ascii_serialization();
    match path_is_secret {
        true => origin,
        false => format!("{origin}{}", url.path()),
    }
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
