//! A server of one connection, which does what a test has written down.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Serves one connection, or none.
pub(super) struct Server<T> {
    pub(super) address: SocketAddr,
    serving: JoinHandle<T>,
}

impl<T: Send + 'static> Server<T> {
    /// Has `serve` have the first connection.
    pub(super) fn start(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            serve(stream)
        });
        Self { address, serving }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What `serve` came to.
    pub(super) fn served(self) -> T {
        self.serving.join().expect("the server's thread ends well")
    }
}

/// Answers with these bytes, closes, and tells what was asked.
pub(super) fn answering(answer: impl Into<Vec<u8>>) -> Server<String> {
    let answer = answer.into();
    Server::start(move |mut stream| {
        let asked = asked(&mut stream);
        stream.write_all(&answer).expect("the client listens");
        asked
    })
}

/// A whole request: its head, and as much of a body as the head announces.
pub(super) fn asked(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("the rest of a head");
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).expect("a head is text");
    let announced = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().expect("a length"))
    });
    let mut body = vec![0; announced.unwrap_or(0)];
    stream.read_exact(&mut body).expect("the body as announced");
    head + &String::from_utf8(body).expect("a body of text")
}
