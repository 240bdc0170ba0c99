//! Where a URL says that the server is.
//!
//! Must never: connect, or show a password.

use std::sync::Arc;

use super::cluster::Cluster;
use super::connector::{Connector, Login, Nodes, Server};
use super::keys::Keys;
use super::sentinel::Sentinels;
use super::tls::Tls;
use crate::store::StoreError;
use crate::store_url::{Address, RedisUrl, Several, SeveralUrl, TlsFiles, redact};

/// The way that a URL names. Nothing is connected; what a TLS connection takes is read once,
/// so that a file that is missing is found now.
pub(super) fn parse(
    url: &str,
    namespace: &str,
    files: &TlsFiles,
) -> Result<Arc<dyn Connector>, StoreError> {
    let bad = |cause: String| StoreError::BadUrl {
        url: redact(url),
        cause,
    };
    if SeveralUrl::is_one(url) {
        let parsed = SeveralUrl::parse(url);
        let parsed = parsed.map_err(|error| bad(format!("{error}; {}", error.hint())))?;
        return several(parsed, namespace, files).map_err(bad);
    }
    if !RedisUrl::is_one(url) {
        let cause = "it starts with none of redis://, rediss:// and unix://";
        return Err(bad(cause.to_owned()));
    }
    let parsed = RedisUrl::parse(url).map_err(|error| bad(format!("{error}; {}", error.hint())))?;
    let place = parsed.to_string();
    let tls = match (&parsed.address, parsed.tls) {
        (Address::Tcp { host, .. }, true) => Some(Tls::new(files, host).map_err(bad)?),
        _ => None,
    };
    Ok(Arc::new(Server {
        place,
        address: parsed.address,
        tls,
        login: Login {
            user: parsed.user,
            password: parsed.password,
            db: parsed.db,
        },
    }))
}

/// The way to one of several servers. The error is a cause with its cure.
fn several(
    url: SeveralUrl,
    namespace: &str,
    files: &TlsFiles,
) -> Result<Arc<dyn Connector>, String> {
    if url.tls {
        for (host, _) in &url.hosts {
            Tls::new(files, host)?;
        }
    }
    let servers = Nodes {
        place: url.to_string(),
        tls: url.tls.then(|| files.clone()),
        login: Login {
            user: url.user,
            password: url.password,
            db: url.db,
        },
    };
    match url.kind {
        Several::Sentinels {
            master,
            user,
            password,
        } => {
            let login = Login {
                user,
                password,
                db: 0,
            };
            Ok(Arc::new(Sentinels::new(servers, login, url.hosts, master)))
        }
        // One way leads to one server: see [`super::quorum`].
        Several::Quorum => Err("a quorum has no one place".to_owned()),
        Several::Cluster => {
            let key = Keys::new(namespace).jobs;
            Ok(Arc::new(Cluster::new(servers, url.hosts, key)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_url_is_shown_without_its_secret() {
        for url in [
            "redis://me:se/cret@10.0.0.1:99999999/3",
            "rediss://:secret@host/0#insecure",
            "http://:secret@host",
            "redis://:secret@host/seven",
            "redis+unix:relative?pass=secret",
        ] {
            let error = parse(url, "default", &TlsFiles::default());
            let error = error.map(|_| ()).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
