//! A link to a server that a test may cut without anybody being told: what is sent into it is
//! held back, and arrives late if it is mended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// A relay from a port of its own to one on 127.0.0.1. It ends with the test process.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    cut: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, cut: bool) {
        *self.cut.lock().unwrap_or_else(PoisonError::into_inner) = cut;
        self.changed.notify_all();
    }

    fn wait_until_open(&self) {
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        while *cut {
            cut = self
                .changed
                .wait(cut)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Relay {
    /// A relay to this port.
    ///
    /// # Panics
    ///
    /// When there is no free port.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let relay = Self {
            port: listener.local_addr().expect("a bound address").port(),
            gate: Arc::default(),
        };
        let gate = Arc::clone(&relay.gate);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let gate = Arc::clone(&gate);
                thread::spawn(move || connect(&client, port, &gate));
            }
        });
        relay
    }

    /// `redis://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Nothing passes from now on, and nobody is told. Who connects waits as well.
    pub fn cut(&self) {
        self.gate.set(true);
    }

    /// All goes on, with what was held back first.
    pub fn mend(&self) {
        self.gate.set(false);
    }
}

fn connect(client: &TcpStream, port: u16, gate: &Arc<Gate>) {
    gate.wait_until_open();
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let there = Arc::clone(gate);
    thread::spawn(move || pass(from_client, to_server, &there));
    if let Ok(to_client) = client.try_clone() {
        pass(server, to_client, gate);
    }
}

/// Passes what comes on, until either side closes.
fn pass(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        gate.wait_until_open();
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_sent_into_a_cut_link_arrives_when_it_is_mended() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port());
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut buffer = [0; 4];
        client.write_all(b"ping").unwrap();
        served.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"ping");
        relay.cut();
        client.write_all(b"late").unwrap();
        served
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        assert!(served.read(&mut buffer).is_err(), "the link is cut");
        relay.mend();
        served
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        served.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"late");
    }
}
