//! News of several servers, each of which tells the same.
//!
//! Must never: matter, as with one server ([`super::super::listener`]).

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{SelectAll, unfold};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::Instant;

use crate::store::StoreEvent;

/// How much later the same comes from another server.
const ECHO: Duration = Duration::from_millis(20);

/// Passes on what the servers tell. What one has told, the others repeat.
pub(super) async fn forward(
    heard: Vec<broadcast::Receiver<StoreEvent>>,
    to: broadcast::Sender<StoreEvent>,
) {
    let mut all = SelectAll::new();
    for (number, heard) in heard.into_iter().enumerate() {
        let events = unfold(heard, |mut heard| async move {
            match heard.recv().await {
                Ok(event) => Some((event, heard)),
                Err(RecvError::Lagged(_)) => Some((StoreEvent::Reconnected, heard)),
                Err(RecvError::Closed) => None,
            }
        });
        all.push(Box::pin(events.map(move |event| (number, event))));
    }
    let mut told: BTreeMap<StoreEvent, (usize, Instant)> = BTreeMap::new();
    while let Some((number, event)) = all.next().await {
        let now = Instant::now();
        let echo = told
            .get(&event)
            .is_some_and(|(teller, at)| *teller != number && now < *at + ECHO);
        if !echo {
            // A turn is told once.
            told.retain(|_, (_, at)| now < *at + ECHO);
            told.insert(event, (number, now));
            // Nobody may be listening; that is no fault.
            let _ = to.send(event);
        }
    }
}
