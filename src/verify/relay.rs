//! A link of one replica to the store's server that can be cut: a port of this host behind which
//! the server answers. Cut, it lets nothing through and closes nothing, as a network does that
//! drops packets; mended, what was on its way arrives.
//!
//! Must never: look into what is sent, or keep more of it than one read.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::store::Detour;

/// How much is passed on at a time.
const PIECE: usize = 16 * 1024;

/// A link. Dropped, it is gone, with all connections on it.
pub(super) struct Relay {
    port: u16,
    is_open: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// A link to that server.
    pub(super) async fn to(server: &Detour) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (is_open, watched) = watch::channel(true);
        let server = Arc::new(server.clone());
        let accepting = tokio::spawn(accept(listener, server, watched));
        Ok(Self {
            port,
            is_open,
            accepting,
        })
    }

    /// The port of this host.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Lets nothing through from now on, or everything.
    pub(super) fn set_open(&self, open: bool) {
        self.is_open.send_replace(open);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<Detour>, is_open: watch::Receiver<bool>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, for a moment.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let (server, is_open) = (Arc::clone(&server), is_open.clone());
        tokio::spawn(async move {
            // Whatever ends it ends the connection, of which the replica tells.
            let _ = pass(stream, &server, is_open).await;
        });
    }
}

/// Passes on in both directions, until either end closes or the link is gone.
async fn pass(near: TcpStream, server: &Detour, is_open: watch::Receiver<bool>) -> io::Result<()> {
    let mut opened = is_open.clone();
    wait(&mut opened).await?;
    let far = TcpStream::connect((server.host.as_str(), server.port)).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (mut from_near, mut to_near) = near.into_split();
    let (mut from_far, mut to_far) = far.into_split();
    tokio::select! {
        ended = carry(&mut from_near, &mut to_far, is_open.clone()) => ended,
        ended = carry(&mut from_far, &mut to_near, is_open) => ended,
        gone = async { loop { if let Err(gone) = opened.changed().await { break gone } } } => {
            Err(io::Error::other(gone))
        }
    }
}

async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut is_open: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        wait(&mut is_open).await?;
        let length = from.read(&mut piece).await?;
        if length == 0 {
            return Ok(());
        }
        wait(&mut is_open).await?;
        to.write_all(&piece[..length]).await?;
    }
}

async fn wait(is_open: &mut watch::Receiver<bool>) -> io::Result<()> {
    let waited = is_open.wait_for(|open| *open).await;
    waited.map(|_| ()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says what it is told; and a link to it.
    async fn echo() -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        let server = Detour {
            host: "127.0.0.1".to_owned(),
            port,
            tls: false,
        };
        Relay::to(&server).await.unwrap()
    }

    #[tokio::test]
    async fn a_link_that_is_cut_lets_nothing_through_until_it_is_mended() {
        let relay = echo().await;
        let mut stream = TcpStream::connect(("127.0.0.1", relay.port()))
            .await
            .unwrap();
        let mut answer = [0; 4];
        stream.write_all(b"one\n").await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"one\n");

        relay.set_open(false);
        stream.write_all(b"two\n").await.unwrap();
        let patience = std::time::Duration::from_millis(200);
        let heard = tokio::time::timeout(patience, stream.read_exact(&mut answer)).await;
        assert!(heard.is_err(), "it came through: {answer:?}");

        relay.set_open(true);
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"two\n");
    }

    #[tokio::test]
    async fn a_link_that_is_gone_closes_what_was_on_it() {
        let relay = echo().await;
        let mut stream = TcpStream::connect(("127.0.0.1", relay.port()))
            .await
            .unwrap();
        stream.write_all(b"one\n").await.unwrap();
        stream.read_exact(&mut [0; 4]).await.unwrap();
        drop(relay);
        assert_eq!(stream.read(&mut [0; 4]).await.unwrap(), 0);
    }
}
