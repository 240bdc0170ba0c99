//! One connection to the server, shared by all calls and made anew when it fails.
//!
//! A call never waits long: it has a time-out, and while the server is away it fails at once
//! between one attempt to connect and the next. A connection on which a call ran out of time is
//! dropped, since whatever holds it up holds up all that comes after it.
//!
//! Must never: send a request again whose fate is unknown. The caller decides that; every
//! request has an identity of its own.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::fault::Fault;
use super::request::Request;
use super::scripts::{Call, Operation};
use super::server::ServerInfo;
use crate::store::StoreError;

/// How long connecting may take, with all that is asked of a new connection: several round
/// trips, so longer than a call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long after a failed attempt to connect the next one may be made; twice as long after
/// each further one.
const FIRST_BACK_OFF: Duration = Duration::from_millis(20);
/// How long at most: a server that comes back is found within this.
const LONGEST_BACK_OFF: Duration = Duration::from_millis(500);

/// A connection that is there when it is needed.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    client: Client,
    place: String,
    call_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Live>,
    failed: Option<Failed>,
    /// How many connections were made: names each of them.
    made: u64,
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    server: Arc<ServerInfo>,
    number: u64,
}

/// Attempts to connect that failed since the last one that didn't.
struct Failed {
    error: StoreError,
    retry_at: Instant,
    back_off: Duration,
}

impl Link {
    /// A link that isn't connected yet.
    pub(super) fn new(client: Client, place: String, call_timeout: Duration) -> Self {
        Self(Arc::new(Shared {
            client,
            place,
            call_timeout,
            state: Mutex::default(),
        }))
    }

    /// What the server says of itself.
    pub(super) async fn server(&self) -> Result<Arc<ServerInfo>, StoreError> {
        let shared = self.0.clone();
        self.detached(async move { shared.live().await.map(|live| live.server) })
            .await
    }

    /// Has a conversation, of which the whole may take no longer than a call.
    pub(super) async fn converse<T, W, F>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(Talk) -> F + Send + 'static,
        F: Future<Output = Result<T, RedisError>> + Send,
    {
        let shared = self.0.clone();
        self.detached(async move { shared.converse(work).await })
            .await
    }

    /// Runs a script; one round trip, unless the server forgot the script.
    pub(super) async fn run(&self, request: Request) -> Result<Value, StoreError> {
        self.converse(|mut talk| async move { talk.run(&request).await })
            .await
    }

    /// Sends commands in one go; the answer has a value for each.
    pub(super) async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, StoreError> {
        let shared = self.0.clone();
        self.detached(async move { shared.send(&commands).await })
            .await
    }

    /// Lets work go on when whoever waits for it has given up: a time-out shorter than ours
    /// must not keep us from noticing that the connection is stuck, nor begin connecting anew.
    async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let result = tokio::spawn(work).await;
        result
            .unwrap_or_else(|error| Err(Fault::unreachable(&self.0.place, error.to_string()).error))
    }
}

impl State {
    fn connected(&mut self, connection: MultiplexedConnection, server: ServerInfo) -> Live {
        self.made += 1;
        self.failed = None;
        let live = Live {
            connection,
            server: Arc::new(server),
            number: self.made,
        };
        self.live = Some(live.clone());
        live
    }

    fn failed(&mut self, error: StoreError) {
        let last = self.failed.as_ref().map(|failed| failed.back_off);
        let back_off = last.map_or(FIRST_BACK_OFF, |last| (last * 2).min(LONGEST_BACK_OFF));
        self.failed = Some(Failed {
            error,
            retry_at: Instant::now() + back_off,
            back_off,
        });
    }
}

impl Shared {
    async fn converse<T, F>(&self, work: impl FnOnce(Talk) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, RedisError>>,
    {
        let live = self.live().await?;
        let talk = Talk {
            connection: live.connection.clone(),
            server: live.server.clone(),
        };
        self.settle(live.number, timeout(self.call_timeout, work(talk)).await)
            .await
    }

    async fn send(&self, commands: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let live = self.live().await?;
        let mut connection = live.connection.clone();
        let work = send_all(&mut connection, commands);
        self.settle(live.number, timeout(self.call_timeout, work).await)
            .await
    }

    /// Tells what came of a call, and drops its connection where that is of no use any more.
    async fn settle<T>(
        &self,
        number: u64,
        result: Result<Result<T, RedisError>, tokio::time::error::Elapsed>,
    ) -> Result<T, StoreError> {
        let fault = match result {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Fault::of(&self.place, &error),
            Err(_) => Fault::unreachable(
                &self.place,
                format!("no answer within {} ms", self.call_timeout.as_millis()),
            ),
        };
        if fault.disconnect {
            let mut state = self.state.lock().await;
            if state
                .live
                .as_ref()
                .is_some_and(|live| live.number == number)
            {
                tracing::warn!(store = %self.place, error = %fault.error, "connection dropped");
                state.live = None;
            }
        }
        Err(fault.error)
    }

    /// The connection, made now if there is none. Whoever comes while it is being made waits
    /// for that.
    async fn live(&self) -> Result<Live, StoreError> {
        let mut state = self.state.lock().await;
        if let Some(live) = &state.live {
            return Ok(live.clone());
        }
        if let Some(failed) = &state.failed
            && Instant::now() < failed.retry_at
        {
            return Err(failed.error.clone());
        }
        match self.connect().await {
            Ok((connection, server)) => {
                tracing::debug!(store = %self.place, server = %server.version, "connected");
                Ok(state.connected(connection, server))
            }
            Err(error) => {
                state.failed(error.clone());
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, ServerInfo), StoreError> {
        let connected = timeout(CONNECT_TIMEOUT, self.open()).await;
        let late = || format!("not connected within {} s", CONNECT_TIMEOUT.as_secs());
        connected
            .unwrap_or_else(|_| Err(Fault::unreachable(&self.place, late())))
            .map_err(|fault| fault.error)
    }

    async fn open(&self) -> Result<(MultiplexedConnection, ServerInfo), Fault> {
        let told = |error: RedisError| Fault::of_connecting(&self.place, &error);
        // The time-outs here are of whole calls; the client's own would cut long answers off.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let mut connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(told)?;
        let answers = send_all(&mut connection, &ServerInfo::questions())
            .await
            .map_err(told)?;
        let server = ServerInfo::read(&self.place, &answers)?;
        send_all(&mut connection, &all_scripts())
            .await
            .map_err(told)?;
        Ok((connection, server))
    }
}

/// A connection for as long as one call lasts: what it asks, one server answers.
pub(super) struct Talk {
    connection: MultiplexedConnection,
    server: Arc<ServerInfo>,
}

impl Talk {
    /// Runs a script by its digest. A server that doesn't know it has done nothing, so it is
    /// sent once more with its text, which the server keeps: whatever flushes the scripts in
    /// between can't come between those two. Calls in flight beside it find out by themselves.
    pub(super) async fn run(&mut self, request: &Request) -> Result<Value, RedisError> {
        let run_id = &self.server.run_id;
        let by_digest = request.command(Call::ByDigest, run_id);
        match send_one(&mut self.connection, &by_digest).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                let by_text = request.command(Call::ByText, run_id);
                send_one(&mut self.connection, &by_text).await
            }
            result => result,
        }
    }
}

fn all_scripts() -> Pipeline {
    let mut commands = redis::pipe();
    for operation in Operation::ALL {
        commands.add_command(operation.load());
    }
    commands
}

async fn send_one(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> Result<Value, RedisError> {
    let answer = connection.send_packed_command(command).await?;
    answer.extract_error()
}

/// The first error among the answers is the error of all.
async fn send_all(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<Vec<Value>, RedisError> {
    let mut commands = commands.clone();
    let answers: Vec<Value> = commands.ignore_errors().query_async(connection).await?;
    answers.into_iter().map(Value::extract_error).collect()
}
