//! Connections: so many at once, and each with limits of time and size.
//!
//! Must never: let a client hold a connection by doing nothing, whichever side's turn it is.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::App;
use super::answer::answer;
use super::patient::Patient;
use super::problem::{Kind, PROBLEM_JSON, Problem};

/// The most headers of a request, and the most bytes of its head: up to that it is read, and what
/// is longer is not taken though the rest of it came at once.
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 32 * 1024;

/// The wait where no connection can be taken, as when descriptors run out.
const BACK_OFF: Duration = Duration::from_millis(100);

/// For how long answers that are on their way go on being sent once all is to end, and a client
/// that has its answer is heard out.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// And for how long all of them are waited for.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What a client may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections at once; more of them wait until one is closed.
    pub(super) connections: usize,
    /// How long a request's head may take; it is also how long a connection may idle.
    pub(super) head: Duration,
    /// How long a body may take to arrive, and an answer to be made.
    pub(super) request: Duration,
    /// How long a client may leave an answer unread.
    pub(super) unread: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs(10);
        Self {
            connections: 256,
            head: seconds,
            request: seconds,
            unread: seconds,
        }
    }
}

/// Takes connections until it is told to stop.
pub(super) async fn accept(
    listener: TcpListener,
    app: Arc<App>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        // Those that ended are forgotten.
        while connections.try_join_next().is_some() {}
        let next = async {
            // It is never closed.
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = told_to(&mut stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Answers are short: to wait for more to send would only make them late.
                let _ = stream.set_nodelay(true);
                let serving = serve(stream, peer.ip(), Arc::clone(&app), limits, stop.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(cause) => {
                warn!("failed to take a connection: {cause}");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_ANSWERS, ended).await;
}

/// Waits until it is said, or nobody is left to say it.
async fn told_to(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Answers what comes over a stream, until it is closed.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: IpAddr,
    app: Arc<App>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let peer = peer.to_canonical();
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let app = Arc::clone(&app);
        async move {
            let response = answer(&app, peer, limits.request, request.map(Body::new)).await;
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(Patient::new(stream, limits.unread));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(HEADERS)
        .max_header_size(HEAD_BYTES)
        .max_buf_size(HEAD_BYTES)
        // Who has asked all may say so, as `nc -N` does, and still wants the answer.
        .half_close(true)
        .serve_connection(stream, service);
    let mut connection = connection;
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = told_to(&mut stop) => {
            Pin::new(&mut connection).graceful_shutdown();
            match tokio::time::timeout(LAST_WORDS, &mut connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    let mut stream = connection.into_parts().io.into_inner();
    match ended {
        Ok(()) => {}
        Err(cause) if cause.is_parse_version_h2() => refuse_http2(&mut stream).await,
        Err(cause) => {
            debug!(%peer, "a connection ended early: {cause}");
            if !cause.is_parse() {
                return;
            }
        }
    }
    tokio::select! {
        () = heard_out(stream) => {}
        () = told_to(&mut stop) => {}
    }
}

/// Says in HTTP/1.1, which whoever comes with HTTP/2 knows for what it is, that it is HTTP/1.1
/// that is spoken here: hyper would close the connection without a word.
async fn refuse_http2(stream: &mut (impl AsyncWrite + Unpin)) {
    let detail = "HTTP/1.1 alone is spoken here; without TLS, HTTP/2 is no choice";
    let body = Problem::new(Kind::VersionNotSupported, detail).text();
    let answer = format!(
        "HTTP/1.1 505 HTTP Version Not Supported\r\nconnection: close\r\ncache-control: no-store\r\n\
         content-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // Whoever has gone has no need of it.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Lets a client finish that was answered before it had sent all: were its connection closed with
/// something unread, it would be reset, and the answer perhaps lost (RFC 9112, 9.6).
async fn heard_out(mut stream: impl AsyncRead + Unpin) {
    let mut scrap = [0; 16 * 1024];
    let heard = async { while matches!(stream.read(&mut scrap).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(LAST_WORDS, heard).await;
}
