//! `soloist healthcheck`: asks the replica on this host how it is, for images without shell and curl.
//!
//! Must never fail for a table that is broken: a replica whose file was broken meanwhile runs on with
//! the table that it has, and nobody should restart it for that. Of the table only `listen` is read.

use std::borrow::Cow;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use url::Url;

use super::args::{Global, HealthcheckArgs};
use super::{Exit, complain, print, settings};
use crate::config::{listen_of, parse_listen};

/// Where a replica is looked for that nobody says more of.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7373);

/// For all of it. Less than the 5 s after which Docker gives up without a word of why.
const LIMIT: Duration = Duration::from_secs(3);

/// How much of an answer is looked at.
const ANSWER_BYTES: u64 = 16 * 1024;

/// Done where the replica answers 200, failed where it answers anything else, or not at all.
pub(super) fn run(global: &Global, args: &HealthcheckArgs) -> Result<Exit, Exit> {
    let url = url(place(global, args)?, args.ready)?;
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_global(Some(LIMIT))
        .build();
    let mut response = Agent::new_with_config(config)
        .get(url.as_str())
        .call()
        .map_err(|cause| silent(&url, &cause))?;
    if response.status() == 200 {
        return Ok(print(format!("OK: {url}\n")));
    }
    let mut body = Vec::new();
    // What could be read of it has to do.
    let reader = response.body_mut().as_reader();
    let _ = reader.take(ANSWER_BYTES).read_to_end(&mut body);
    let message = format!(
        "{url} answers {}: {}",
        response.status().as_u16(),
        reason(&body)
    );
    Err(complain(Exit::Failed, &message, None))
}

/// Where the replica listens: what `run` goes by, in its order.
fn place(global: &Global, args: &HealthcheckArgs) -> Result<SocketAddr, Exit> {
    let given = args.listen.as_deref().filter(|listen| !listen.is_empty());
    let (address, whose) = match given {
        Some(given) => {
            let whose = "`--listen` or SOLOIST_LISTEN";
            let parsed = parse_listen(given).map_err(|(message, hint)| {
                complain(Exit::Usage, &format!("{whose}: {message}"), Some(&hint))
            });
            (parsed?, whose.to_owned())
        }
        None => {
            let table = settings::path(global);
            let listen = listen_of(&table).unwrap_or(Some(DEFAULT_LISTEN));
            (listen, format!("`listen` of {}", table.display()))
        }
    };
    address.ok_or_else(|| {
        let message = format!("{whose} is `off`: there is nobody to ask");
        let hint = "let the replica listen, `127.0.0.1:7373` will do, or check it by other means";
        complain(Exit::Usage, &message, Some(hint))
    })
}

/// What to ask: the replica itself, from where it runs.
fn url(address: SocketAddr, ready: bool) -> Result<Url, Exit> {
    let path = if ready { "readyz" } else { "healthz" };
    let place = SocketAddr::new(reachable(address.ip()), address.port());
    Url::parse(&format!("http://{place}/{path}")).map_err(|error| {
        let message = format!("failed to ask {place}: {error}");
        complain(Exit::Failed, &message, None)
    })
}

/// Whoever listens on all addresses is reached by loopback.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

fn silent(url: &Url, cause: &ureq::Error) -> Exit {
    complain(
        Exit::Failed,
        &format!("{url} does not answer: {cause}"),
        Some(
            "is the replica up, and does it listen there? `--listen`, SOLOIST_LISTEN and `listen` of the table mean here what they mean to `soloist run`",
        ),
    )
}

/// What went wrong, of the `detail` of a problem (RFC 9457), or of any other text; on one line.
fn reason(body: &[u8]) -> String {
    let problem: Option<Value> = serde_json::from_slice(body).ok();
    let detail = problem
        .as_ref()
        .and_then(|problem| problem["detail"].as_str());
    let text = detail.map_or_else(|| String::from_utf8_lossy(body), Cow::Borrowed);
    let parts = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if words.is_empty() {
        return "without a reason".to_owned();
    }
    words.join(" ")
}
