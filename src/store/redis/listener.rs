//! News from other replicas, over a connection of its own.
//!
//! Must never: matter. What is missed here is found by the next observation.

use std::time::Duration;

use futures_util::StreamExt as _;
use redis::{Client, RedisError};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::news;
use crate::store::StoreEvent;

/// How long subscribing may take.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after a failure it is tried again; twice as long after each further one.
const FIRST_BACK_OFF: Duration = Duration::from_millis(100);
/// How long at most. A user that may not subscribe is asked for no more often.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);

/// A task that listens until this is dropped.
pub(super) struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is listened for, and who is told.
pub(super) struct Subscription {
    pub(super) client: Client,
    pub(super) place: String,
    pub(super) channel: String,
    pub(super) events: broadcast::Sender<StoreEvent>,
}

impl Subscription {
    /// Listens from now on.
    pub(super) fn listen(self) -> Listener {
        Listener(tokio::spawn(self.run()))
    }

    async fn run(self) {
        let mut heard_before = false;
        let mut back_off = FIRST_BACK_OFF;
        loop {
            let subscribed = timeout(SUBSCRIBE_TIMEOUT, self.subscribe()).await;
            match subscribed {
                Ok(Ok(mut messages)) => {
                    back_off = FIRST_BACK_OFF;
                    if heard_before {
                        self.tell(StoreEvent::Reconnected);
                    }
                    heard_before = true;
                    while let Some(message) = messages.next().await {
                        let told: String = message.get_payload().unwrap_or_default();
                        news::read(&told)
                            .into_iter()
                            .for_each(|event| self.tell(event));
                    }
                }
                Ok(Err(error)) => {
                    tracing::debug!(store = %self.place, %error, "failed to subscribe to events");
                }
                Err(_) => {
                    tracing::debug!(store = %self.place, "no answer to subscribing to events");
                }
            }
            tokio::time::sleep(back_off).await;
            back_off = (back_off * 2).min(LONGEST_BACK_OFF);
        }
    }

    async fn subscribe(&self) -> Result<redis::aio::PubSubStream, RedisError> {
        let (mut sink, messages) = self.client.get_async_pubsub().await?.split();
        sink.subscribe(&self.channel).await?;
        Ok(messages)
    }

    fn tell(&self, event: StoreEvent) {
        // Nobody may be listening; that is no fault.
        let _ = self.events.send(event);
    }
}
