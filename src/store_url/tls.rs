//! What a TLS connection to the store takes beside its URL.
//!
//! Must never: hold a key itself, or a way not to verify.

use std::path::PathBuf;

/// The files of a TLS connection, all PEM. They are read when a connection is made, so that
/// renewed ones count from the next connection on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of those who may sign the server's: none for those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate that the client shows, with what leads up to its CA; none where the
    /// server asks for none.
    pub cert: Option<PathBuf>,
    /// The private key to that.
    pub key: Option<PathBuf>,
    /// The name that the server's certificate has to have, and that the server is told (SNI):
    /// none for the host of the URL.
    pub server_name: Option<String>,
}

/// What a store takes beside its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// For a connection with TLS.
    pub tls: TlsFiles,
    /// How many replicas of the server have to acknowledge what is written before it counts.
    pub min_replicas_ack: u32,
}

impl From<TlsFiles> for StoreOptions {
    fn from(tls: TlsFiles) -> Self {
        Self {
            tls,
            ..Self::default()
        }
    }
}

impl TlsFiles {
    /// Nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
