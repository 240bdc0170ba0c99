//! News in a cluster: on a node that has the slot of the channel, and nowhere else.
//!
//! ```text
//!  HELLO 3 ─▶ SSUBSCRIBE ─▶ smessage … ─┬─ sunsubscribe: the slot has left this node
//!                 ▲                     ├─ closed
//!                 └── silence ◀─────────┴─ no answer, or MOVED ─▶ over
//! ```
//!
//! It speaks RESP3, in which what is pushed can be told from what is answered: a subscription
//! goes on while it is asked for again, which tells a node that is frozen, or has the slot no
//! more, from one that has no news (<https://redis.io/docs/latest/commands/ssubscribe/>).
//!
//! While the slot moves, some publish at the new node already, and others still listen at the old
//! one: what they miss, their next look finds.
//!
//! Must never: matter, or go on with a node that doesn't answer.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ProtocolVersion, PushInfo, PushKind, RedisError, Value};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connector::Connector;
use super::fault::Fault;
use super::handshake::{self, Driver};

/// How many messages may wait. One that finds no room is lost, and those that wait bring about
/// the same look.
const CAPACITY: usize = 64;

/// How long a node has to say that it still has the slot.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A subscription to the channel.
pub(super) struct Shard {
    connection: MultiplexedConnection,
    pushed: mpsc::Receiver<PushInfo>,
    channel: String,
    asking: bool,
    _driver: Driver,
}

impl Shard {
    /// Subscribes. Whoever asks sees to the time-out.
    pub(super) async fn subscribe(connector: &dyn Connector, channel: &str) -> Result<Self, Fault> {
        let told = |error: &RedisError| Fault::of(connector.place(), error).disconnecting();
        let stream = handshake::reach(connector).await?;
        let (sender, pushed) = mpsc::channel(CAPACITY);
        let config = handshake::config().set_push_sender(move |push| sender.try_send(push));
        let login = connector.login().info();
        let login = login.set_protocol(ProtocolVersion::RESP3);
        let made = MultiplexedConnection::new_with_config(&login, stream, config).await;
        let (connection, driver) = made.map_err(|error| told(&error))?;
        let mut shard = Self {
            connection,
            pushed,
            channel: channel.to_owned(),
            asking: connector.asking(),
            _driver: Driver::spawn(driver),
        };
        match shard.ask().await {
            Ok(()) => Ok(shard),
            Err(error) => {
                connector.redirected(&error);
                Err(told(&error))
            }
        }
    }

    /// Asks for the subscription, also where there is one.
    async fn ask(&mut self) -> Result<(), RedisError> {
        let mut commands = redis::pipe();
        if self.asking {
            // The slot is on its way to this node, and so are we.
            commands.cmd("ASKING").ignore();
        }
        commands.cmd("SSUBSCRIBE").arg(&self.channel);
        let answers = handshake::ask(&mut self.connection, &commands).await?;
        let answer = answers.into_iter().next_back();
        answer.unwrap_or(Value::Nil).extract_error().map(|_| ())
    }

    /// The next message; none when the subscription is over.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            let PushInfo { kind, data } = self.pushed.recv().await?;
            match kind {
                // Channel and message.
                PushKind::SMessage => {
                    let message = data.into_iter().nth(1).unwrap_or(Value::Nil);
                    return Some(redis::from_redis_value(message).unwrap_or_default());
                }
                PushKind::SUnsubscribe | PushKind::Disconnection => return None,
                _ => {}
            }
        }
    }

    /// Whether the node still has the slot. Where it says who has, that is taken in.
    pub(super) async fn lasts(&mut self, connector: &dyn Connector) -> bool {
        match timeout(ANSWER_TIMEOUT, self.ask()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                connector.redirected(&error);
                false
            }
            Err(_) => {
                connector.lost();
                false
            }
        }
    }
}
