//! TLS on the way to a server: whom it trusts, what it shows of itself, and what went wrong.
//!
//! The server's certificate is always verified, against the CAs of the system or of a file, and
//! for the name that the connection was made to. Files are looked at for each connection, and
//! read again where they have changed. Must never: connect without verifying, or fall back to a
//! connection without TLS.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::connector::Stream;
use super::fault::Fault;
use crate::store_url::TlsFiles;

mod files;
mod trouble;

pub(super) use self::trouble::told;

/// How long shaking hands may take: a part of the time for connecting, also where the attempt is a
/// second one that began later. A Redis without TLS takes
/// the beginning of a handshake for that of a command, and waits for the rest.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(1250);

/// How to speak TLS with one server.
pub(super) struct Tls {
    files: TlsFiles,
    name: ServerName<'static>,
    made: Arc<Mutex<Option<Made>>>,
}

/// What was made of the files, and how they were then.
struct Made {
    stamps: Vec<Option<Stamp>>,
    config: Arc<ClientConfig>,
}

/// What tells whether a file is still the same: device, inode, size, and time of change.
type Stamp = (u64, u64, u64, i64, i64);

impl Tls {
    /// TLS with a server at this host. The error is a cause with its cure.
    pub(super) fn new(files: &TlsFiles, host: &str) -> Result<Self, String> {
        let name = files.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            "the host is no name that a certificate could be for; say which by `tls_server_name`"
        })?;
        let tls = Self {
            files: files.clone(),
            name,
            made: Arc::default(),
        };
        current(&tls.files, &tls.made)?;
        Ok(tls)
    }

    /// Shakes hands on a connection.
    pub(super) async fn wrap(&self, place: &str, stream: TcpStream) -> Result<Stream, Fault> {
        let (files, made) = (self.files.clone(), Arc::clone(&self.made));
        // Files may lie far away.
        let config = tokio::task::spawn_blocking(move || current(&files, &made)).await;
        let config = match config {
            Ok(Ok(config)) => config,
            Ok(Err(cause)) => {
                let cure = "see `tls_ca`, `tls_cert` and `tls_key` in [scheduler]";
                return Err(Fault::refused(place, cause, cure).disconnecting());
            }
            Err(error) => return Err(Fault::unreachable(place, error.to_string())),
        };
        let connector = TlsConnector::from(config);
        let handshake = connector.connect(self.name.clone(), stream);
        match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => Ok(Box::pin(stream)),
            Ok(Err(error)) => Err(told(place, &error)),
            Err(_) => {
                let cause = format!(
                    "no answer to the TLS handshake within {HANDSHAKE_TIMEOUT:?}: where that port is without TLS, write `redis://`"
                );
                Err(Fault::unreachable(place, cause))
            }
        }
    }
}

/// The configuration of the files as they are now.
fn current(files: &TlsFiles, made: &Mutex<Option<Made>>) -> Result<Arc<ClientConfig>, String> {
    let stamps: Vec<Option<Stamp>> = [&files.ca, &files.cert, &files.key]
        .into_iter()
        .map(|file| file.as_deref().and_then(stamp))
        .collect();
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = made.as_ref().filter(|made| made.stamps == stamps) {
        return Ok(Arc::clone(&made.config));
    }
    let config = Arc::new(files::config(files)?);
    *made = Some(Made {
        stamps,
        config: Arc::clone(&config),
    });
    Ok(config)
}

fn stamp(path: &Path) -> Option<Stamp> {
    let of = |data: Metadata| {
        (
            data.dev(),
            data.ino(),
            data.size(),
            data.ctime(),
            data.ctime_nsec(),
        )
    };
    path.metadata().ok().map(of)
}
