//! Who may do what: reading is open on loopback alone; on any other address, and for every change,
//! a bearer token is required. Probes may always ask.
//!
//! "On loopback" means that the address that is listened on *and* the client's are of this host,
//! that the request names this host (a web page whose name leads here, "DNS rebinding", names
//! itself), and that no proxy says that it asks for somebody else.
//!
//! Must never: take a wrong token for none; or tell a token, or how much of it was right.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, FORWARDED, HOST};
use axum::http::{HeaderMap, Method, Request};
use tokio::sync::watch;

use super::problem::Problem;
use super::tokens::{Role, Tokens};

/// What orchestrators ask, who have no token.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Decides who is let in.
pub(super) struct Gate {
    on_loopback: bool,
    tokens: watch::Receiver<Arc<Tokens>>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The name of its token.
    pub(super) name: Option<String>,
    /// It may read; a probe from elsewhere may not.
    pub(super) reads: bool,
}

impl Gate {
    pub(super) fn new(address: SocketAddr, tokens: watch::Receiver<Arc<Tokens>>) -> Self {
        Self {
            on_loopback: address.ip().to_canonical().is_loopback(),
            tokens,
        }
    }

    /// Lets a request in, or says why not.
    pub(super) fn admit<B>(&self, peer: IpAddr, request: &Request<B>) -> Result<Visitor, Problem> {
        let reads_only = matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS
        );
        let is_probe = reads_only && PROBES.contains(&request.uri().path());
        let tokens = Arc::clone(&self.tokens.borrow());
        let credentials = credentials(request.headers());
        let holder = match &credentials {
            Credentials::Token(token) => tokens.find(token),
            Credentials::None | Credentials::Strange => None,
        };
        let stands_open = self.is_local(peer, request);
        if let Some(holder) = holder {
            if !reads_only && holder.role == Role::Read {
                let detail = "this token may read; a change takes one of role `operator`";
                return Err(Problem::unauthorized(Some("insufficient_scope"), detail));
            }
            return Ok(Visitor {
                name: Some(holder.name.clone()),
                reads: true,
            });
        }
        let open = reads_only && stands_open && credentials == Credentials::None;
        if open || is_probe {
            return Ok(Visitor {
                name: None,
                reads: open,
            });
        }
        Err(refusal(
            &credentials,
            reads_only,
            self.on_loopback,
            tokens.is_empty(),
        ))
    }

    fn is_local<B>(&self, peer: IpAddr, request: &Request<B>) -> bool {
        let headers = request.headers();
        let is_passed_on =
            headers.contains_key(FORWARDED) || headers.contains_key("x-forwarded-for");
        let host = match request.uri().host() {
            Some(host) => Some(host),
            None => headers.get(HOST).and_then(|host| host.to_str().ok()),
        };
        self.on_loopback
            && peer.to_canonical().is_loopback()
            && host.is_some_and(names_this_host)
            && headers.get_all(HOST).iter().count() <= 1
            && !is_passed_on
    }
}

/// No page on the web has an address, or `localhost`, for its name unless it comes from there.
fn names_this_host(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
    let bracketed = |text: &str| {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        Some(is_ip(inner))
    };
    [host, without_port].into_iter().any(|name| {
        name.eq_ignore_ascii_case("localhost") || bracketed(name).unwrap_or_else(|| is_ip(name))
    })
}

#[derive(PartialEq, Eq)]
enum Credentials {
    None,
    Token(String),
    /// Of another scheme, or several.
    Strange,
}

/// RFC 6750: one header, whose scheme may be written in any case.
fn credentials(headers: &HeaderMap) -> Credentials {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(first), None) = (all.next(), all.next()) else {
        return match headers.contains_key(AUTHORIZATION) {
            true => Credentials::Strange,
            false => Credentials::None,
        };
    };
    let read = || {
        let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        is_bearer.then(|| token.trim().to_owned())
    };
    read().map_or(Credentials::Strange, Credentials::Token)
}

fn refusal(credentials: &Credentials, reads: bool, on_loopback: bool, no_tokens: bool) -> Problem {
    let set_some = match no_tokens {
        true => {
            "; none is set here: name a file with tokens by `api_tokens` in [scheduler], or by SOLOIST_API_TOKENS_FILE"
        }
        false => "",
    };
    match credentials {
        Credentials::Token(_) => {
            let detail = format!("the token is not one of those that are set{set_some}");
            Problem::unauthorized(Some("invalid_token"), detail)
        }
        Credentials::Strange => {
            let detail = "one header `Authorization: Bearer TOKEN` is what is taken";
            Problem::unauthorized(Some("invalid_token"), detail)
        }
        Credentials::None => {
            let detail = match (reads, on_loopback) {
                (false, _) => {
                    "a change takes a token of role `operator`: send `Authorization: Bearer TOKEN`"
                }
                (true, true) => {
                    "without a token reading is open on this host alone, by its address or as `localhost`: \
                                 send `Authorization: Bearer TOKEN`"
                }
                (true, false) => {
                    "other hosts can reach this address, so that reading takes a token: \
                                  send `Authorization: Bearer TOKEN`"
                }
            };
            Problem::unauthorized(None, format!("{detail}{set_some}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_named_by_an_address_or_as_localhost_and_by_nothing_else() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7373",
            "[::1]:7373",
            "[::1]",
            "::1",
            "localhost",
            "LocalHost:80",
            "10.0.0.5:1",
        ] {
            assert!(names_this_host(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:7373",
            "localhost.evil.example",
            "",
            ":80",
            "[evil]",
        ] {
            assert!(!names_this_host(host), "{host}");
        }
    }
}
