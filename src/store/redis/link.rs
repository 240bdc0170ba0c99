//! One connection to one server, shared by all calls and made anew when it fails.
//!
//! A call never waits long: it has a time-out, and while the server is away it fails at once
//! between one attempt to connect and the next. A connection on which a call ran out of time is
//! ended, since whatever holds it up holds up all that comes after it. Where the caller ran out of
//! patience first, as one with short leases does, the next call gets a new connection, and what
//! else waits for this one goes on waiting. What must not be held up by other calls has a link of
//! its own.
//!
//! ```text
//!  none ── call ─▶ connecting ──▶ live ── out of time, closed, wrong server ─▶ none
//!    ▲                │ failed                        │ before it answered anything
//!    └── back-off ◀───┴───────────────────────────────┘
//! ```
//!
//! Must never: send a request again whose fate is unknown. The caller decides that; every
//! request has an identity of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::select_ok;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue as _, Pipeline, RedisError, Value};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout};

use super::back_off::BackOff;
use super::connector::Connector;
use super::fault::Fault;
use super::handshake::{self, Driver, Opened};
use super::request::Request;
use super::scripts::Call;
use super::server::ServerInfo;
use crate::own_thread;

/// How long connecting may take, with all that is asked of a new connection: several round
/// trips, so longer than a call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one attempt to connect is alone.
const HEAD_START: Duration = Duration::from_millis(500);
/// How long after a failed attempt to connect the next one may be made.
const FIRST_BACK_OFF: Duration = Duration::from_millis(20);
/// How long at most: a server that comes back is found within this.
const LONGEST_BACK_OFF: Duration = Duration::from_millis(500);

/// A connection that is there when it is needed.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    connector: Arc<dyn Connector>,
    call_timeout: Duration,
    state: Mutex<State>,
    /// Where connections live, if not on the runtime of whoever calls first: that may be busy with
    /// other things than to read answers.
    runtime: Option<Handle>,
}

struct State {
    live: Option<Live>,
    failed: Option<Failed>,
    back_off: BackOff,
    /// How many connections were made: names each of them.
    made: u64,
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    server: Arc<ServerInfo>,
    number: u64,
    /// The connector's term when it was made.
    term: u64,
    /// It has answered a call.
    proven: Arc<AtomicBool>,
    driver: Arc<Driver>,
}

/// What the last attempt to connect came to, if it was in vain.
struct Failed {
    fault: Fault,
    retry_at: Instant,
}

/// What came of a call.
enum Outcome<T> {
    Answered(Result<T, RedisError>),
    /// It took longer than a call may.
    OutOfTime,
    /// Whoever made it waits no longer.
    GivenUp,
}

impl Link {
    /// A link that isn't connected yet.
    pub(super) fn new(connector: Arc<dyn Connector>, call_timeout: Duration) -> Self {
        let state = State {
            live: None,
            failed: None,
            back_off: BackOff::new(FIRST_BACK_OFF, LONGEST_BACK_OFF),
            made: 0,
        };
        Self(Arc::new(Shared {
            connector,
            call_timeout,
            state: Mutex::new(state),
            runtime: own_thread::entered(),
        }))
    }

    fn spawn<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.0.runtime {
            Some(runtime) => runtime.spawn(call),
            None => tokio::spawn(call),
        }
    }

    /// What the server says of itself.
    pub(super) async fn server(&self) -> Result<Arc<ServerInfo>, Fault> {
        let shared = Arc::clone(&self.0);
        let live = async move { shared.live().await.map(|live| live.server) };
        self.joined(self.spawn(live).await)
    }

    /// Has a conversation, of which the whole may take no longer than a call.
    ///
    /// It goes on when whoever waits for it has given up: connecting must not begin anew each
    /// time, and a time-out shorter than ours is what tells that the connection is stuck.
    pub(super) async fn converse<T, W, F>(&self, work: W) -> Result<T, Fault>
    where
        T: Send + 'static,
        W: FnOnce(Talk) -> F + Send + 'static,
        F: Future<Output = Result<T, RedisError>> + Send,
    {
        let shared = Arc::clone(&self.0);
        let (waiting, given_up) = oneshot::channel();
        let call = self.spawn(async move { shared.converse(work, given_up).await });
        let result = self.joined(call.await);
        drop(waiting);
        result
    }

    /// Runs a script; one round trip, unless the server forgot the script.
    pub(super) async fn run(&self, request: Request) -> Result<Value, Fault> {
        self.converse(|mut talk| async move { talk.run(&request).await })
            .await
    }

    /// Sends commands in one go; the answer has a value for each. The first error among the
    /// answers is the error of all.
    pub(super) async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, Fault> {
        let work = |mut talk: Talk| async move {
            let answers = talk.send_all(&commands).await?;
            answers.into_iter().map(Value::extract_error).collect()
        };
        self.converse(work).await
    }

    /// The same; an error among the answers stays where it is.
    pub(super) async fn try_out(&self, commands: Pipeline) -> Result<Vec<Value>, Fault> {
        let work = |mut talk: Talk| async move { talk.send_all(&commands).await };
        self.converse(work).await
    }

    fn joined<T>(&self, result: Result<Result<T, Fault>, JoinError>) -> Result<T, Fault> {
        let place = self.0.connector.place();
        result.unwrap_or_else(|error| Err(Fault::unreachable(place, error.to_string())))
    }
}

impl State {
    fn connected(&mut self, opened: Opened, term: u64) -> Live {
        self.made += 1;
        self.failed = None;
        let live = Live {
            connection: opened.connection,
            server: Arc::new(opened.server),
            number: self.made,
            term,
            proven: Arc::default(),
            driver: Arc::new(opened.driver),
        };
        self.live = Some(live.clone());
        live
    }

    fn failed(&mut self, fault: Fault) {
        self.failed = Some(Failed {
            fault,
            retry_at: Instant::now() + self.back_off.pause(),
        });
    }

    /// A connection is of no use any more. One that never was, as of a server that only takes
    /// connections, counts like one that didn't come about.
    fn dropped(&mut self, live: &Live, fault: &Fault) {
        self.live = None;
        if live.proven.load(Ordering::Relaxed) {
            self.back_off.reset();
        } else {
            self.failed(fault.clone());
        }
    }
}

impl Shared {
    async fn converse<T, F>(
        &self,
        work: impl FnOnce(Talk) -> F,
        mut given_up: oneshot::Receiver<()>,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, RedisError>>,
    {
        let live = self.live().await?;
        if given_up.try_recv() != Err(oneshot::error::TryRecvError::Empty) {
            // Nobody waits for it, so that it need not be sent.
            return Err(self.late("while it was being connected"));
        }
        let talk = Talk {
            asking: self.connector.asking(),
            connection: live.connection.clone(),
            server: Arc::clone(&live.server),
        };
        let outcome = tokio::select! {
            result = timeout(self.call_timeout, work(talk)) => match result {
                Ok(answer) => Outcome::Answered(answer),
                Err(_) => Outcome::OutOfTime,
            },
            _ = given_up => Outcome::GivenUp,
        };
        self.settle(&live, outcome).await
    }

    /// Tells what came of a call, and lets go of its connection where that is of no use any
    /// more.
    async fn settle<T>(&self, live: &Live, outcome: Outcome<T>) -> Result<T, Fault> {
        let mut redirected = false;
        let fault = match outcome {
            Outcome::Answered(Ok(value)) => {
                live.proven.store(true, Ordering::Relaxed);
                return Ok(value);
            }
            Outcome::Answered(Err(error)) if self.connector.redirected(&error) => {
                redirected = true;
                let cause = format!("its keys are elsewhere ({error})");
                Fault::unreachable(self.connector.place(), cause)
            }
            Outcome::Answered(Err(error)) => Fault::of(self.connector.place(), &error),
            Outcome::OutOfTime => {
                // All who wait for it hear at once that they wait in vain.
                live.driver.stop();
                self.late(&format!("within {} ms", self.call_timeout.as_millis()))
            }
            Outcome::GivenUp => self.late("before its caller gave up"),
        };
        if fault.disconnect {
            if !redirected {
                self.connector.lost();
            }
            let mut state = self.state.lock().await;
            let current = state.live.as_ref().map(|live| live.number);
            if current == Some(live.number) {
                let store = self.connector.place();
                tracing::warn!(store, error = %fault.error, "connection dropped");
                state.dropped(live, &fault);
            }
        } else {
            live.proven.store(true, Ordering::Relaxed);
        }
        Err(fault)
    }

    fn late(&self, when: &str) -> Fault {
        Fault::unreachable(self.connector.place(), format!("no answer {when}"))
    }

    /// The connection, made now if there is none. Whoever comes while it is being made waits
    /// for that.
    async fn live(&self) -> Result<Live, Fault> {
        let mut state = self.state.lock().await;
        // One that was closed while nobody used it costs no call.
        let term = self.connector.term();
        if let Some(live) = &state.live
            && !live.driver.has_stopped()
            && live.term == term
        {
            return Ok(live.clone());
        }
        if let Some(failed) = &state.failed
            && Instant::now() < failed.retry_at
        {
            return Err(failed.fault.clone());
        }
        match self.connect().await {
            Ok(opened) => {
                let (store, server) = (self.connector.place(), opened.server.version);
                tracing::debug!(store, %server, "connected");
                Ok(state.connected(opened, term))
            }
            Err(fault) => {
                self.connector.lost();
                state.failed(fault.clone());
                Err(fault)
            }
        }
    }

    async fn connect(&self) -> Result<Opened, Fault> {
        let opened = timeout(CONNECT_TIMEOUT, self.open()).await;
        opened.unwrap_or_else(|_| {
            let cause = format!("not connected within {} s", CONNECT_TIMEOUT.as_secs());
            Err(Fault::unreachable(self.connector.place(), cause))
        })
    }

    /// Makes a connection; where that hangs, another one beside it, and takes the one that is
    /// ready first: a packet that was lost, or one bad way of several, costs little.
    async fn open(&self) -> Result<Opened, Fault> {
        let mut first = Box::pin(handshake::open(&*self.connector));
        match timeout(HEAD_START, &mut first).await {
            Ok(opened) => opened,
            Err(_) => {
                let second = Box::pin(handshake::open(&*self.connector));
                let (opened, _) = select_ok([first, second]).await?;
                Ok(opened)
            }
        }
    }
}

/// A connection for as long as one call lasts: what it asks, one server answers.
pub(super) struct Talk {
    asking: bool,
    connection: MultiplexedConnection,
    server: Arc<ServerInfo>,
}

impl Talk {
    /// Runs a script by its digest. A server that doesn't know it has done nothing, so it is
    /// sent once more with its text, which the server keeps: whatever flushes the scripts in
    /// between can't come between those two. Calls in flight beside it find out by themselves.
    pub(super) async fn run(&mut self, request: &Request) -> Result<Value, RedisError> {
        let by_digest = request.command(Call::ByDigest, &self.server.process);
        match self.send(by_digest).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                let by_text = request.command(Call::ByText, &self.server.process);
                self.send(by_text).await
            }
            result => result,
        }
    }

    /// Waits until so many replicas have all that was written on this connection; answers how
    /// many have (<https://redis.io/docs/latest/commands/wait/>).
    pub(super) async fn wait(&mut self, replicas: u32, limit: Duration) -> Result<u32, RedisError> {
        let mut command = redis::cmd("WAIT");
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        command.arg(replicas).arg(limit);
        u32::from_redis_value(self.send(command).await?).map_err(RedisError::from)
    }

    /// Sends a command. Where others sent us here, that is said first (`ASKING`).
    async fn send(&mut self, command: Cmd) -> Result<Value, RedisError> {
        if !self.asking {
            let answer = self.connection.send_packed_command(&command).await?;
            return answer.extract_error();
        }
        let mut commands = redis::pipe();
        commands.add_command(command);
        let answers = self.send_all(&commands).await?;
        let answer = answers.into_iter().next_back();
        answer.unwrap_or(Value::Nil).extract_error()
    }

    /// The same with several; an error among the answers stays where it is.
    async fn send_all(&mut self, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
        if !self.asking {
            return handshake::ask(&mut self.connection, commands).await;
        }
        let mut asking = redis::pipe();
        for command in commands.cmd_iter() {
            asking.cmd("ASKING").ignore();
            asking.add_command(command.clone());
        }
        handshake::ask(&mut self.connection, &asking).await
    }
}
