//! Ports at which nobody listens.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A port of 127.0.0.1 that refuses connections for as long as this lives.
///
/// It is bound and never listens. A listener that was closed is no such port: somebody else may
/// be given it, and a process that another test is about to start holds a copy until it executes
/// its program.
#[derive(Debug)]
pub struct ClosedPort {
    _socket: OwnedFd,
    port: u16,
}

impl ClosedPort {
    /// Takes one.
    ///
    /// # Panics
    ///
    /// Where there is no socket or no port left.
    #[must_use]
    pub fn take() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let bound = getsockname(&socket).expect("its address");
        let address = SocketAddrV4::try_from(bound).expect("of IPv4");
        Self {
            _socket: socket,
            port: address.port(),
        }
    }

    /// Its number.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn it_refuses_whoever_connects_and_is_nobody_elses() {
        let closed = ClosedPort::take();
        let refused = TcpStream::connect(closed.address()).expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let taken = std::net::TcpListener::bind(closed.address()).expect_err("it is taken");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    }
}
