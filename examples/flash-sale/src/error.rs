//! What goes wrong: where, why, and what to do about it.
//!
//! Must never: show a secret of a URL.

use std::path::PathBuf;
use std::time::Duration;

use soloist::leases::AcquireError;
use soloist::store::StoreError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum SaleError {
    /// Redis can't be asked, or refuses. What was asked may have been done all the same.
    #[error(
        "failed to ask Redis at {place}: {source}. Look whether it is up; to do the same again is \
         safe"
    )]
    Redis {
        /// Host and port.
        place: String,
        /// Why.
        source: redis::RedisError,
    },
    /// A URL that leads nowhere.
    #[error("failed to read the URL of Redis: {0}. It looks like redis://HOST:6379")]
    Url(redis::RedisError),
    /// A script answered what it never answers.
    #[error("{script} answered {reply:?}: it is not of this version. Deploy one version only")]
    Reply {
        /// Which script.
        script: &'static str,
        /// What it answered.
        reply: Vec<String>,
    },
    /// An entry of the stream is no order.
    #[error(
        "the entry {id} of {stream} is no order: somebody else wrote it. Look at it (XRANGE), and \
         acknowledge it by hand (XACK)"
    )]
    Entry {
        /// Which stream.
        stream: String,
        /// Which entry.
        id: String,
    },
    /// The database failed.
    #[error("failed to use the books in {}: {source}. Nothing of this step was kept", path.display())]
    Books {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// There are no leases to be had.
    #[error("failed to open the leases: {0}")]
    Leases(StoreError),
    /// Somebody opens or closes it now, and takes too long.
    #[error(
        "the lease of the sale was not to be had within {0:?}: somebody else opens or closes it, \
         or died at it less than a TTL ago. Do this again"
    )]
    StillBusy(Duration),
    /// The lease can't be waited for.
    #[error("failed to get the lease of the sale: {0}")]
    Acquire(AcquireError),
    /// The lease was lost, so that nothing more was done.
    #[error("the lease was lost on the way. Do this again: it goes on where this stopped")]
    Lost,
    /// Somebody with a newer lease was here.
    #[error(
        "somebody with a newer lease was here (token {newest}, this is {own}): nothing was done"
    )]
    Stale {
        /// The token of the lease that was held.
        own: u64,
        /// The highest that was shown.
        newest: u64,
    },
    /// A sale is opened once.
    #[error("the sale was opened before, with {loaded} items, and is {state}: choose another name")]
    AlreadyOpened {
        /// How it stands.
        state: String,
        /// What was put on sale.
        loaded: u64,
    },
    /// The warehouse hasn't got so many.
    #[error("the warehouse has {has} items, and not {wanted}: put fewer on sale")]
    NotEnough {
        /// In the warehouse.
        has: u64,
        /// What was to be put on sale.
        wanted: u64,
    },
    /// There is nothing to close.
    #[error("the sale was never opened: look at its name")]
    NeverOpened,
    /// Whoever opened it stopped half way.
    #[error("whoever opened the sale stopped half way: open it again with {loaded} items")]
    HalfOpen {
        /// What is to be put on sale.
        loaded: u64,
    },
    /// Redis has lost its data.
    #[error(
        "the sale is in the books and not in Redis, which has lost its data: what was sold and not \
         drained is lost too. Count what `report` shows, and put the rest back by hand"
    )]
    Forgotten,
    /// There are no signals to be had.
    #[error("failed to listen for signals: {0}")]
    Signals(std::io::Error),
    /// SIGTERM, or Ctrl-C.
    #[error("told to stop. Do this again: it goes on where this stopped")]
    Stopped,
}

impl SaleError {
    /// It was refused, and will be again; the others may pass.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Stale { .. }
                | Self::AlreadyOpened { .. }
                | Self::NotEnough { .. }
                | Self::NeverOpened
                | Self::HalfOpen { .. }
        )
    }
}
