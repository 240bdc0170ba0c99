//! In the place of TLS where it is not built in.
//!
//! Must never: let a connection be made without it where it was asked for.

use std::io;

use tokio::net::TcpStream;

use super::connector::Stream;
use super::fault::Fault;
use crate::store_url::TlsFiles;

/// There is none.
pub(super) enum Tls {}

impl Tls {
    pub(super) fn new(_: &TlsFiles, _: &str) -> Result<Self, String> {
        Err("TLS is not built in: build soloist with its feature `tls`".to_owned())
    }

    pub(super) async fn wrap(&self, _: &str, _: TcpStream) -> Result<Stream, Fault> {
        match *self {}
    }
}

/// What an error of a fresh connection means.
pub(super) fn told(place: &str, error: &io::Error) -> Fault {
    Fault::unreachable(place, error.to_string())
}
