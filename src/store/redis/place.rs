//! Where a URL says that the server is.
//!
//! Must never: connect, or show a password.

use super::connector::{Login, Server};
use super::tls::Tls;
use crate::store::StoreError;
use crate::store_url::{Address, RedisUrl, TlsFiles, redact};

/// The server that a URL names. Nothing is connected; what a TLS connection takes is read once,
/// so that a file that is missing is found now.
pub(super) fn parse(url: &str, files: &TlsFiles) -> Result<Server, StoreError> {
    let bad = |cause: String| StoreError::BadUrl {
        url: redact(url),
        cause,
    };
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
    Ok(Server {
        place,
        address: parsed.address,
        tls,
        login: Login {
            user: parsed.user,
            password: parsed.password,
            db: parsed.db,
        },
    })
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
            let error = parse(url, &TlsFiles::default());
            let error = error.map(|_| ()).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
