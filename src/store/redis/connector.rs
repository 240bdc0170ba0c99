//! How a server is reached: the way to it, apart from what is said on it.
//!
//! A [`Connector`] is asked anew for each connection, so that one may look for the right server
//! first. [`Server`] is the plain one: a URL names the server, by TCP, with TLS or without, or
//! by a socket of this host.
//!
//! Must never: send anything of ours, or keep a connection; [`super::link`] owns those.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::select_ok;
use redis::aio::AsyncStream;
use redis::{RedisConnectionInfo, RedisError};
use rustix::net::sockopt;
use tokio::net::{TcpStream, UnixStream, lookup_host};

use super::fault::Fault;
use super::news::Spread;
use super::tls::Tls;
use crate::store_url::{Address, TlsFiles};

/// When an idle connection is first probed, how often then, and how many probes may be lost: a
/// peer that vanished without a word is noticed even where nothing is sent.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_PROBES: u32 = 3;
/// How long what was sent may stay unacknowledged before the system gives the connection up.
/// Calls give it up earlier; this is for whatever waits without sending.
const USER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one address of a name is tried alone before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(200);

/// A stream to a server.
pub(super) type Stream = Pin<Box<dyn AsyncStream + Send + Sync>>;

/// A way to a server.
#[async_trait]
pub(super) trait Connector: Send + Sync {
    /// The server, as people know it, without secrets.
    fn place(&self) -> &str;

    /// As whom one goes there.
    fn login(&self) -> &Login;

    /// A new stream, on which nothing was said yet. Whoever asks sees to the time-out.
    async fn reach(&self) -> Result<Stream, Fault>;

    /// Rises when connections that were made before lead to the wrong server, or may.
    fn term(&self) -> u64 {
        0
    }

    /// How far news go that are published there.
    fn spread(&self) -> Spread {
        Spread::Everywhere
    }

    /// It leads to the server that others have elected, and that they may replace.
    fn follows_elections(&self) -> bool {
        false
    }

    /// Requests have to say that they were sent here by another server.
    fn asking(&self) -> bool {
        false
    }

    /// Takes in an error that says where to go instead; answers whether it does. Nothing was done
    /// then.
    fn redirected(&self, _error: &RedisError) -> bool {
        false
    }

    /// A connection broke off, or came to nothing: what led there is forgotten.
    fn lost(&self) {}
}

/// Servers that are reached in the same way, each by its host.
#[derive(Clone)]
pub(super) struct Nodes {
    /// Of all of them together.
    pub(super) place: String,
    /// None without TLS.
    pub(super) tls: Option<TlsFiles>,
    pub(super) login: Login,
}

impl Nodes {
    /// One of them.
    pub(super) fn server(&self, host: &str, port: u16) -> Result<Server, Fault> {
        let tls = self.tls.as_ref().map(|files| Tls::new(files, host));
        let cure = "see `tls_ca`, `tls_cert`, `tls_key` and `tls_server_name` in [scheduler]";
        let tls = tls
            .transpose()
            .map_err(|cause| Fault::refused(&self.place, cause, cure).disconnecting())?;
        Ok(Server {
            place: format!("{} ({host}:{port})", self.place),
            address: Address::Tcp {
                host: host.to_owned(),
                port,
            },
            tls,
            login: self.login.clone(),
        })
    }
}

/// As whom, and to which database.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) db: u32,
}

impl Login {
    /// The same for the client's own handshake.
    pub(super) fn info(&self) -> RedisConnectionInfo {
        let mut info = RedisConnectionInfo::default()
            .set_skip_set_lib_name()
            .set_db(self.db.into());
        if let Some(user) = &self.user {
            info = info.set_username(user);
        }
        if let Some(password) = &self.password {
            info = info.set_password(password);
        }
        info
    }

    /// The user's name at the server.
    pub(super) fn name(&self) -> &str {
        self.user.as_deref().unwrap_or("default")
    }
}

/// One server that a URL names.
pub(super) struct Server {
    pub(super) place: String,
    pub(super) address: Address,
    pub(super) tls: Option<Tls>,
    pub(super) login: Login,
}

#[async_trait]
impl Connector for Server {
    fn place(&self) -> &str {
        &self.place
    }

    fn login(&self) -> &Login {
        &self.login
    }

    async fn reach(&self) -> Result<Stream, Fault> {
        match &self.address {
            Address::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::pin(stream)),
                Err(error) => Err(Fault::unreachable(&self.place, of_socket(path, &error))),
            },
            Address::Tcp { host, port } => {
                let stream = connect(host, *port).await;
                let stream = stream.map_err(|cause| Fault::unreachable(&self.place, cause))?;
                match &self.tls {
                    Some(tls) => tls.wrap(&self.place, stream).await,
                    None => Ok(Box::pin(stream)),
                }
            }
        }
    }
}

fn of_socket(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "there is no socket {path}: check that the server is up, and `unixsocket` in its configuration"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "this process may not use the socket {path}: see `unixsocketperm` in the server's configuration, and the groups of soloist's user"
        ),
        io::ErrorKind::ConnectionRefused => {
            format!("nobody listens at the socket {path}: check that the server is up")
        }
        _ => format!("the socket {path} can't be used: {error}"),
    }
}

/// Connects to the first address of a name that lets itself be connected to (RFC 8305, without
/// its sorting): one that is dead takes no time from those after it.
async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port))
        .await
        .map_err(|error| {
            format!("its name can't be looked up ({error}): check the host in the store's URL")
        })?
        .collect();
    let attempts = addresses.into_iter().zip(0u32..).map(|(address, turn)| {
        Box::pin(async move {
            tokio::time::sleep(HEAD_START * turn).await;
            let stream = TcpStream::connect(address).await?;
            configure(&stream)?;
            Ok::<_, io::Error>(stream)
        })
    });
    let attempts: Vec<_> = attempts.collect();
    if attempts.is_empty() {
        return Err("its name has no address: check the host in the store's URL".to_owned());
    }
    match select_ok(attempts).await {
        Ok((stream, _)) => Ok(stream),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(format!(
            "nothing listens there ({error}): check that the server is up, and host and port in the store's URL"
        )),
        Err(error) => Err(error.to_string()),
    }
}

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    let limit = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, limit)?;
    Ok(())
}
