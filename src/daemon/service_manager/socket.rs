//! The service manager's end of the line: a datagram socket, named by a path or in the abstract.
//!
//! Must never: wait for whoever should read, beyond a limit.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tracing::{debug, warn};

use super::news::Line;

/// How long to wait for room in the other side's queue.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the service manager hears.
#[derive(Debug)]
pub(super) struct Socket(SocketAddr);

impl Socket {
    /// As in NOTIFY_SOCKET: a path, or `@` and an abstract name (unix(7)).
    pub(super) fn named(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
            _ => {
                let why = "neither a path from the root nor an abstract name";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        };
        Ok(Self(address))
    }

    /// Tells it these lines at once. That it can't be told is in the log and nowhere else.
    pub(super) async fn tell(&self, lines: &[Line]) {
        let lines: Vec<_> = lines.iter().map(Line::to_string).collect();
        let message = lines.join("\n");
        let sent = tokio::time::timeout(PATIENCE, self.send(&message)).await;
        match sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(()) => debug!(message, "told the service manager"),
            Err(cause) => warn!(message, "the service manager could not be told: {cause}"),
        }
    }

    /// A socket for each message: the other side may have been started anew since the last one.
    async fn send(&self, message: &str) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect_addr(&self.0)?;
        let socket = tokio::net::UnixDatagram::from_std(socket)?;
        // A datagram is sent as a whole or not at all.
        socket.send(message.as_bytes()).await.map(|_| ())
    }
}
