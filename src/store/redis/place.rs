//! Where a URL says that the server is, and what people may see of it.
//!
//! Must never: show a password.

use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2};
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::store::StoreError;
use crate::store_url::redact;

/// When an idle connection is first probed, so that a peer that vanished without a word is
/// noticed even where nothing is sent.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long what was sent may stay unacknowledged before the system gives the connection up.
const USER_TIMEOUT: Duration = Duration::from_secs(10);

/// The client and the place that a URL names. Nothing is connected.
pub(super) fn parse(url: &str) -> Result<(Client, String), StoreError> {
    let bad = |cause: String| StoreError::BadUrl {
        url: redact(url),
        cause,
    };
    if url.starts_with("rediss:") {
        return Err(bad("TLS is not built into this soloist".to_owned()));
    }
    let known = ["redis:", "redis+unix:", "unix:"];
    if !known.iter().any(|scheme| url.starts_with(scheme)) {
        let cause = "it starts with none of redis://, redis+unix:// and unix://";
        return Err(bad(cause.to_owned()));
    }
    let info: ConnectionInfo = url
        .into_connection_info()
        .map_err(|error| bad(error.to_string()))?;
    let place = describe(&info);
    let info = info.set_tcp_settings(tcp_settings());
    let client = Client::open(info).map_err(|error| bad(error.to_string()))?;
    Ok((client, place))
}

fn tcp_settings() -> TcpSettings {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 3);
    TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(USER_TIMEOUT)
}

fn describe(info: &ConnectionInfo) -> String {
    let db = info.redis_settings().db();
    match info.addr() {
        ConnectionAddr::Tcp(host, port) if host.contains(':') => {
            format!("redis://[{host}]:{port}/{db}")
        }
        ConnectionAddr::Unix(path) if db == 0 => format!("unix://{}", path.display()),
        ConnectionAddr::Unix(path) => format!("unix://{}?db={db}", path.display()),
        other => format!("redis://{other}/{db}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> String {
        parse(url).unwrap().1
    }

    #[test]
    fn a_place_shows_no_secret() {
        assert_eq!(
            place("redis://me:secret@10.0.0.1:6380/3"),
            "redis://10.0.0.1:6380/3"
        );
        assert_eq!(place("redis://localhost"), "redis://localhost:6379/0");
        assert_eq!(place("redis://[::1]:7000"), "redis://[::1]:7000/0");
        assert_eq!(
            place("unix:///run/redis.sock?pass=secret&db=2"),
            "unix:///run/redis.sock?db=2"
        );
    }

    #[test]
    fn a_bad_url_is_shown_without_its_secret() {
        for url in [
            "redis://me:se/cret@10.0.0.1:99999999/3",
            "rediss://:secret@host/0",
            "http://:secret@host",
            "redis://:secret@host/seven",
            "redis+unix:relative?pass=secret",
        ] {
            let error = parse(url).map(|_| ()).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
