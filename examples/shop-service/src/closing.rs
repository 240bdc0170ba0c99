//! The job `close-expired-orders`: what one attempt does, in whichever instance.
//!
//! Must never: write without showing the database the attempt's fencing token.

use std::time::Duration;

use close_expired_orders::shop::{self, Closing, Outcome, ShopError};
use soloist::{Cancelled, Context};

use crate::front::Front;
use crate::options::Options;

/// How the shop closes orders.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    older_than: Duration,
    slow_start: Duration,
    slow: Duration,
}

impl Rules {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            older_than: options.older_than,
            slow_start: options.slow_start,
            slow: options.slow,
        }
    }
}

/// Why an attempt closed nothing; the history shows it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotClosed {
    /// Its lease is over, or it was told to end.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// It came too late: another attempt has written since.
    #[error(
        "a newer attempt (token {newest}) has already written; this one (token {token}) is stale"
    )]
    Stale {
        /// This attempt's.
        token: i64,
        /// The highest that the database has seen.
        newest: i64,
    },
    /// The database failed.
    #[error("{}", .0.with_causes())]
    Shop(#[from] ShopError),
}

/// Closes what nobody paid for in time, and puts it back on sale.
pub(crate) async fn close_expired_orders(
    ctx: Context,
    front: Front,
    rules: Rules,
) -> Result<(), NotClosed> {
    ctx.check()?; // Is it still mine? No round trip.
    let token = i64::try_from(ctx.fencing_token()).unwrap_or(i64::MAX); // below 2^53
    let close = move |shop: &mut dyn shop::Shop| {
        // A thread is not stopped when its attempt is: here a host may stand still for an hour.
        shop::pause(rules.slow_start, "not begun yet");
        let closed = shop.close_expired(&Closing {
            job: ctx.job(),
            token, // The database refuses it if it has seen a higher one.
            attempt: i64::from(ctx.attempt()),
            run_id: &ctx.run_id(),
            older_than: rules.older_than,
            pause_before_commit: rules.slow,
        })?;
        // Told here: of an attempt whose lease is over nobody waits for the thread any more.
        match &closed {
            Outcome::Closed { orders, items } => {
                tracing::info!(token, orders, items, "closed expired orders");
            }
            Outcome::Stale { newest } => {
                tracing::warn!(token, newest, "came too late: refused, nothing was changed");
            }
        }
        Ok(closed)
    };
    match front.ask(close).await? {
        Outcome::Closed { .. } => Ok(()),
        Outcome::Stale { newest } => Err(NotClosed::Stale { token, newest }),
    }
}
