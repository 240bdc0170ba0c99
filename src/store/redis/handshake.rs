//! What is said on a new connection before it is used.
//!
//! ```text
//!  PING ─▶ AUTH ─▶ SELECT ─▶ INFO, SCRIPT LOAD
//! ```
//!
//! `PING` comes first because the first answer may be of no command at all: that there are too
//! many clients, that none may come from this host, that TLS is wanted, or a certificate. What
//! it says of itself doesn't matter. Must never: hand out a connection to a server that won't do,
//! or put a password into an error.

use std::io;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;

use super::access::lacks;
use super::connector::{Connector, Login, Stream};
use super::fault::Fault;
use super::scripts::Operation;
use super::server::ServerInfo;
use super::tls;

/// `PING`, as a server reads it.
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// The first answer is a line, and none is longer.
const LONGEST_LINE: u64 = 4096;

/// How a server tells whom it has no room for. It gives no code of its own for that, and closes
/// the connection.
const TOO_MANY_CLIENTS: &str = "-ERR max number of clients";

/// A connection that is ready, and what the server said of itself.
pub(super) struct Opened {
    pub(super) connection: MultiplexedConnection,
    pub(super) driver: Driver,
    pub(super) server: ServerInfo,
}

/// What moves bytes for a connection; none move after it is dropped.
pub(super) struct Driver(JoinHandle<()>);

impl Driver {
    /// Moves them from now on.
    pub(super) fn spawn(driver: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(driver))
    }

    /// Ends the connection: all that wait for an answer hear of it.
    pub(super) fn stop(&self) {
        self.0.abort();
    }

    /// The server has closed the connection, or it was ended here.
    pub(super) fn has_stopped(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes a connection. Whoever asks sees to the time-out.
pub(super) async fn open(connector: &dyn Connector) -> Result<Opened, Fault> {
    let place = connector.place();
    let (mut connection, driver) = talk(connector).await?;
    let server = get_ready(&mut connection, place, connector.login()).await?;
    Ok(Opened {
        connection,
        driver,
        server,
    })
}

/// Makes a connection on which nothing but the login was said.
pub(super) async fn talk(
    connector: &dyn Connector,
) -> Result<(MultiplexedConnection, Driver), Fault> {
    let place = connector.place();
    let stream = reach(connector).await?;
    // Nothing is left for the client's handshake: its errors don't tell what was refused.
    let nobody = RedisConnectionInfo::default().set_skip_set_lib_name();
    let told = |error: RedisError| Fault::of(place, &error).disconnecting();
    let (mut connection, driver) =
        MultiplexedConnection::new_with_config(&nobody, stream, config())
            .await
            .map_err(told)?;
    let driver = Driver::spawn(driver);
    log_in(&mut connection, place, connector.login()).await?;
    Ok((connection, driver))
}

/// The time-outs are of whole calls; the client's own would cut long answers off.
pub(super) fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
}

/// A stream on which the server has answered.
pub(super) async fn reach(connector: &dyn Connector) -> Result<Stream, Fault> {
    let mut stream = connector.reach().await?;
    match greet(&mut stream).await {
        Ok(line) => judge(connector.place(), &line).map(|()| stream),
        Err(error) => Err(tls::told(connector.place(), &error)),
    }
}

async fn greet(stream: &mut Stream) -> io::Result<Vec<u8>> {
    stream.write_all(PING).await?;
    stream.flush().await?;
    let mut line = Vec::new();
    let mut limited = stream.take(LONGEST_LINE);
    while line.last() != Some(&b'\n') {
        match limited.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

/// What the first answer means. An error that has a code comes again, in answer to something
/// that matters, or doesn't matter.
fn judge(place: &str, line: &[u8]) -> Result<(), Fault> {
    let line = String::from_utf8_lossy(line);
    let Some(line) = line.strip_suffix("\r\n") else {
        let cause = match line.is_empty() {
            true => {
                "it closed the connection without a word: where that port is for TLS, write `rediss://`; its own log may say more"
            }
            false => "what answers there is no Redis: check host and port in the store's URL",
        };
        return Err(Fault::unreachable(place, cause));
    };
    if line.starts_with(TOO_MANY_CLIENTS) {
        let cause = "it has no room for another client (maxclients): raise maxclients, or find by CLIENT LIST who keeps so many connections";
        return Err(Fault::unreachable(place, cause));
    }
    if line.starts_with("-DENIED ") {
        return Err(Fault::of_code(place, "DENIED"));
    }
    if !line.starts_with(['+', '-']) {
        let cause = "what answers there is no Redis: check host and port in the store's URL";
        return Err(Fault::unreachable(place, cause));
    }
    Ok(())
}

async fn log_in(
    connection: &mut MultiplexedConnection,
    place: &str,
    login: &Login,
) -> Result<(), Fault> {
    if let Some(password) = &login.password {
        let mut command = redis::cmd("AUTH");
        command.arg(login.user.as_deref()).arg(password);
        let answer = connection.send_packed_command(&command).await;
        if let Err(error) = answer.and_then(Value::extract_error) {
            return Err(not_logged_in(place, login, &error));
        }
    }
    if login.db != 0 {
        let mut command = redis::cmd("SELECT");
        command.arg(login.db);
        let answer = connection.send_packed_command(&command).await;
        if let Err(error) = answer.and_then(Value::extract_error) {
            return Err(not_selected(place, login, &error));
        }
    }
    Ok(())
}

fn not_logged_in(place: &str, login: &Login, error: &RedisError) -> Fault {
    let fault = match error.code() {
        // It says so where it has no password at all.
        Some("ERR") => {
            let cause = "it takes no password from its default user, and the store's URL has one";
            let cure = "leave the password out, name the user, or set `requirepass` there";
            Fault::refused(place, cause, cure)
        }
        Some("WRONGPASS") => {
            let cause = format!(
                "the password of the user `{}` is wrong, or there is no such user",
                login.name()
            );
            Fault::refused(place, cause, super::fault::CREDENTIALS)
        }
        _ => Fault::of(place, error),
    };
    fault.disconnecting()
}

fn not_selected(place: &str, login: &Login, error: &RedisError) -> Fault {
    let fault = match error.code() {
        Some("ERR") => {
            let cause = format!("it has no database {}", login.db);
            let cure = "choose another one at the end of the store's URL: a server has as many as `databases` in its configuration says, 16 as a rule (0 to 15), and a cluster has 0 alone";
            Fault::refused(place, cause, cure)
        }
        Some("NOPERM") => lacks(place, login.name(), &["+select"], None),
        _ => Fault::of(place, error),
    };
    fault.disconnecting()
}

/// Asks the server about itself, and sends it the scripts.
async fn get_ready(
    connection: &mut MultiplexedConnection,
    place: &str,
    login: &Login,
) -> Result<ServerInfo, Fault> {
    let questions = ServerInfo::questions();
    let mut commands = questions.clone();
    for operation in Operation::ALL {
        commands.add_command(operation.load());
    }
    let answers = ask(connection, &commands).await;
    let answers = answers.map_err(|error| Fault::of(place, &error).disconnecting())?;
    let (about, loaded) = answers
        .split_at_checked(questions.len())
        .unwrap_or_default();
    let (told, not_loaded) = (first_error(about), first_error(loaded));
    let denied = |error: &Option<RedisError>| {
        let code = error.as_ref().and_then(RedisError::code);
        code == Some("NOPERM")
    };
    let rules = [
        (denied(&told), "+info"),
        (denied(&not_loaded), "+script|load"),
    ];
    let rules: Vec<&str> = rules
        .iter()
        .filter(|(denied, _)| *denied)
        .map(|(_, rule)| *rule)
        .collect();
    if !rules.is_empty() {
        return Err(lacks(place, login.name(), &rules, None).disconnecting());
    }
    if let Some(error) = told.or(not_loaded) {
        return Err(Fault::of(place, &error).disconnecting());
    }
    let server = ServerInfo::read(place, about).map_err(Fault::disconnecting)?;
    match server.is_master {
        true => Ok(server),
        false => Err(Fault::of_code(place, "READONLY")),
    }
}

/// Sends commands in one go; an error among the answers stays where it is.
pub(super) async fn ask(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<Vec<Value>, RedisError> {
    let mut commands = commands.clone();
    commands.ignore_errors().query_async(connection).await
}

fn first_error(answers: &[Value]) -> Option<RedisError> {
    let mut answers = answers.iter().cloned();
    answers.find_map(|answer| answer.extract_error().err())
}
