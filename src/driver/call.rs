//! One call to the store: what is asked, as whom, since when, and how long its sender waits.
//!
//! Must never: lose its event. Whatever happens to a call, [`Call::make`] tells what came of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::scheduler::lease::Caller;
use crate::scheduler::margins::Margins;
use crate::scheduler::time::{BootTime, format_duration};
use crate::scheduler::{Effect, Event};
use crate::store::{ReplicaInfo, Store, StoreError};

/// The time-out of calls on which no lease hangs.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// That of a look through all jobs, which is many calls.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A call to the store, ready to be sent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) effect: Arc<Effect>,
    pub(super) caller: Arc<Caller>,
    pub(super) info: Arc<ReplicaInfo>,
    pub(super) sent: BootTime,
    pub(super) timeout: Duration,
}

/// How long whoever sends a call waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the call's time-out, by tokio's timers.
    Timeout,
    /// As long as it takes: the sender minds the time.
    Endless,
    /// Not at all. The store isn't asked, and the event is that of a call that was not answered.
    None,
}

impl Call {
    /// What is asked.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// Who asks.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What the caller says of itself, where the call is one that says it.
    pub fn info(&self) -> &ReplicaInfo {
        &self.info
    }

    /// How long its sender waits: no longer than the shortest of its leases allows. What comes
    /// back later comes to nobody.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks the store, and answers with the event that tells what came of it, stamped with the
    /// boot time *before* the call was sent.
    ///
    /// # Panics
    /// If the effect is none that asks the store something.
    pub async fn make(&self, store: &dyn Store, patience: Patience) -> Event {
        let (caller, sent) = (&*self.caller, self.sent);
        match &*self.effect {
            Effect::Register(jobs) => Event::Registered {
                jobs: jobs.clone(),
                sent,
                result: self.answer(patience, store.register(caller, jobs)).await,
            },
            Effect::Claim(claims) => Event::Claimed {
                claims: claims.clone(),
                sent,
                result: self.answer(patience, store.claim(caller, claims)).await,
            },
            Effect::Renew(renewals) => Event::Renewed {
                renewals: renewals.clone(),
                sent,
                result: self.answer(patience, store.renew(caller, renewals)).await,
            },
            Effect::Release(releases) => Event::Released {
                runs: releases.iter().map(|release| release.run_id).collect(),
                sent,
                result: self.answer(patience, store.release(caller, releases)).await,
            },
            Effect::Observe(scope) => Event::Observed {
                scope: *scope,
                sent,
                result: {
                    let look = store.observe(caller, &self.info, *scope);
                    self.answer(patience, look).await
                },
            },
            Effect::Sweep => Event::Swept {
                result: self.answer(patience, store.sweep(caller)).await,
            },
            Effect::Publish(table) => Event::Published {
                sent,
                result: self.answer(patience, store.publish(caller, table)).await,
            },
            Effect::ReadTable(digest) => Event::TableRead {
                digest: digest.clone(),
                result: self.answer(patience, store.table(digest)).await,
            },
            other => unreachable!("not a call to the store: {other:?}"),
        }
    }

    async fn answer<T>(
        &self,
        patience: Patience,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, String> {
        let answered = match patience {
            Patience::Timeout => tokio::time::timeout(self.timeout, call).await.ok(),
            Patience::Endless => Some(call.await),
            Patience::None => None,
        };
        match answered {
            Some(answer) => answer.map_err(|error| error.to_string()),
            None => Err(format!(
                "no answer within {}",
                format_duration(self.timeout)
            )),
        }
    }
}

/// How long a call that an effect asks for may take.
pub(super) fn timeout_of(effect: &Effect) -> Duration {
    let shortest = match effect {
        Effect::Claim(claims) => claims.iter().map(|claim| claim.ttl).min(),
        Effect::Renew(renewals) => renewals.iter().map(|renewal| renewal.ttl).min(),
        Effect::Sweep => return SWEEP_TIMEOUT,
        _ => None,
    };
    shortest.map_or(CALL_TIMEOUT, |ttl| Margins::of(ttl).call_timeout())
}
