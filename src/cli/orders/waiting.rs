//! `--wait`: looking at the ledger until an occurrence is over.
//!
//! News shorten the wait between two looks and are never relied on. Must never: look more often
//! than once in [`Pace::shortest`], or touch the occurrence: who stops waiting leaves it running.

use std::future::Future;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::progress::{Fate, Progress};
use crate::clock::{Clock, SystemClock};
use crate::scheduler::lease::Outcome;
use crate::scheduler::time::BootTime;
use crate::store::{Store, StoreError, StoreEvent};

/// How long one look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the store may be away where no time-out is given.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often is looked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// However much happens.
    pub(super) shortest: Duration,
    /// However long it takes: an end is seen this much later at most. The wait grows with the
    /// time that has passed, from the shortest to this.
    pub(super) longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            shortest: Duration::from_secs(1),
            longest: Duration::from_secs(5),
        }
    }
}

/// The part of the time waited so far that passes between two looks.
const GROWTH: u32 = 30;

/// How a wait ended.
#[derive(Debug)]
pub(super) enum End {
    /// The occurrence is over.
    Over(Outcome),
    /// It is over, and the ledger doesn't keep how.
    Forgotten,
    /// The store lost its data, and with them what it knew of it.
    Lost,
    /// The time-out passed.
    TimedOut,
    /// The store was away for too long, or refuses.
    StoreLost(StoreError),
    /// A signal said so.
    Stopped,
}

/// Somebody who waits.
pub(super) struct Wait<'w> {
    store: &'w dyn Store,
    progress: Progress,
    pace: Pace,
    timeout: Option<Duration>,
    began: BootTime,
    /// Since when the store is away, and why.
    away: Option<(BootTime, StoreError)>,
}

impl<'w> Wait<'w> {
    pub(super) fn new(
        store: &'w dyn Store,
        progress: Progress,
        timeout: Option<Duration>,
        pace: Pace,
    ) -> Self {
        Self {
            store,
            progress,
            pace,
            timeout,
            began: SystemClock.boot(),
            away: None,
        }
    }

    /// Waits until the occurrence is over, the time is up, or `stop` completes.
    pub(super) async fn end(
        mut self,
        stop: impl Future<Output = ()>,
        mut say: impl FnMut(&str),
    ) -> End {
        let timeout = self.timeout;
        let time_is_up = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            end = self.follow(&mut say) => return end,
            () = stop => match self.progress.is_missing() {
                true => return End::Lost,
                false => return End::Stopped,
            },
            () = time_is_up => {}
        }
        match self.away {
            Some((_, cause)) => End::StoreLost(cause),
            None if self.progress.is_missing() => End::Lost,
            None => End::TimedOut,
        }
    }

    async fn follow(&mut self, say: &mut impl FnMut(&str)) -> End {
        let mut news = self.store.events();
        loop {
            match self.look().await {
                Ok((lines, fate)) => {
                    if self.away.take().is_some() {
                        say("the store is back");
                    }
                    lines.iter().for_each(|line| say(line));
                    match fate {
                        Fate::Open => {}
                        Fate::Over(outcome) => return End::Over(outcome),
                        Fate::Forgotten => return End::Forgotten,
                        Fate::Lost => return End::Lost,
                    }
                }
                Err(cause) => {
                    if let Some(end) = self.lost(cause, say) {
                        return end;
                    }
                }
            }
            self.rest(&mut news).await;
        }
    }

    /// Takes note that a look failed; the end of all waiting, where it was not the first for long.
    fn lost(&mut self, cause: StoreError, say: &mut impl FnMut(&str)) -> Option<End> {
        let now = SystemClock.boot();
        if !matches!(cause, StoreError::Unreachable { .. }) {
            return Some(End::StoreLost(cause));
        }
        let Some((since, _)) = &self.away else {
            say(&format!("{cause}; waiting for it"));
            self.away = Some((now, cause));
            return None;
        };
        let patience = self.timeout.unwrap_or(PATIENCE);
        (now.saturating_since(*since) > patience).then_some(End::StoreLost(cause))
    }

    /// The lines are read after the snapshot: what had its end by then is among them.
    async fn look(&mut self) -> Result<(Vec<String>, Fate), StoreError> {
        let store = self.store;
        let (job, wanted) = (&self.progress.job, self.progress.lines_wanted());
        let asked = async {
            let snapshot = store.snapshot().await?;
            Ok((snapshot, store.history(Some(job), wanted).await?))
        };
        let answer = tokio::time::timeout(LOOK_TIMEOUT, asked).await;
        let (snapshot, lines) = answer.unwrap_or_else(|_| {
            Err(StoreError::Unreachable {
                place: store.place(),
                cause: format!("no answer within {LOOK_TIMEOUT:?}"),
            })
        })?;
        Ok(self.progress.look(snapshot.now, &snapshot.answer, &lines))
    }

    async fn rest(&self, news: &mut broadcast::Receiver<StoreEvent>) {
        let Pace { shortest, longest } = self.pace;
        tokio::time::sleep(shortest).await;
        let waited = SystemClock.boot().saturating_since(self.began);
        let whole = (waited / GROWTH).clamp(shortest, longest);
        let rest = whole.saturating_sub(shortest);
        let something = async {
            // What was missed is news as well.
            if let Err(RecvError::Closed) = news.recv().await {
                std::future::pending().await
            }
        };
        let _ = tokio::time::timeout(rest, something).await;
    }
}

#[cfg(test)]
mod tests;
