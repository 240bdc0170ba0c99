//! Opening and closing a sale: stock goes from the books to Redis and back. That is two systems, and
//! no transaction spans both; so each way has steps that can be done again, one host at a time does
//! them, and a host that comes late is refused in either place by its token.
//!
//! ```text
//!  open   books: warehouse - n, `opening` ─▶ Redis: open, n ─────────▶ books: `open`
//!  close  Redis: closed, says what is left ─▶ books: warehouse + that, `closed`
//! ```
//!
//! Must never: take a step without having asked the lease.

use std::time::Duration;

use soloist::leases::AcquireError;
use soloist::{Lease, Leases};
use tokio::task::block_in_place;

use crate::books::Books;
use crate::error::SaleError;
use crate::moment::{Moment, Moments};
use crate::sale::{Opened, Sale};

/// Keeps the leases of this example apart from those of other fleets in the same Redis.
pub const NAMESPACE: &str = "flash-sale";

/// How the lease of a sale is taken.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long it is waited for.
    pub wait: Duration,
    /// How long after the death of who has it another one may go on.
    pub ttl: Duration,
}

/// A sale with all that it takes to open or close it.
#[derive(Debug)]
pub struct Trade<'t> {
    /// Its name.
    pub name: &'t str,
    /// In Redis.
    pub sale: &'t Sale,
    /// The books.
    pub books: &'t mut Books,
    /// Told to stop?
    pub moments: &'t mut Moments,
}

impl Trade<'_> {
    /// Opens the sale with so many items.
    ///
    /// # Errors
    /// When it was opened before, there are too few, or something failed on the way. Then it can
    /// be done again, and goes on.
    pub async fn open(
        &mut self,
        leases: &Leases,
        patience: Patience,
        stock: u64,
    ) -> Result<(), SaleError> {
        let lease = self.lease(leases, patience).await?;
        let opened = self.open_under(&lease, stock).await;
        // However it went: the next one need not wait for it to run out.
        lease.release().await;
        opened
    }

    /// Closes the sale; answers how many items were put back.
    ///
    /// # Errors
    /// When it was never opened, or something failed on the way. Then it can be done again, and
    /// goes on.
    pub async fn close(&mut self, leases: &Leases, patience: Patience) -> Result<u64, SaleError> {
        let lease = self.lease(leases, patience).await?;
        let closed = self.close_under(&lease).await;
        lease.release().await;
        closed
    }

    async fn lease(&mut self, leases: &Leases, patience: Patience) -> Result<Lease, SaleError> {
        let asked = leases.lease(self.name).ttl(patience.ttl);
        tokio::select! {
            lease = asked.acquire_within(patience.wait) => lease.map_err(|error| match error {
                AcquireError::TimedOut(_) => SaleError::StillBusy(patience.wait),
                other => SaleError::Acquire(other),
            }),
            () = self.moments.stop() => Err(SaleError::Stopped),
        }
    }

    async fn open_under(&mut self, lease: &Lease, stock: u64) -> Result<(), SaleError> {
        let token = lease.token();
        still_held(lease)?;
        // SQLite blocks; what the lease hangs on runs on other threads.
        block_in_place(|| self.books.begin_sale(self.name, stock, token))?;
        still_held(lease)?;
        self.moments.at(Moment::Sale).await?;
        match self.sale.open(stock, token).await? {
            Opened::Now => {}
            // Whoever began it came to here.
            Opened::Before { state, loaded } if state == "open" && loaded == stock => {}
            Opened::Before { state, loaded } => {
                return Err(SaleError::AlreadyOpened { state, loaded });
            }
        }
        still_held(lease)?;
        self.moments.at(Moment::Books).await?;
        block_in_place(|| self.books.sale_is_open(self.name, token))
    }

    async fn close_under(&mut self, lease: &Lease) -> Result<u64, SaleError> {
        let token = lease.token();
        let known = block_in_place(|| self.books.sale(self.name))?;
        let known = known.ok_or(SaleError::NeverOpened)?;
        match (known.state.as_str(), known.unsold) {
            ("closed", Some(unsold)) => return Ok(unsold),
            ("opening", _) => {
                return Err(SaleError::HalfOpen {
                    loaded: known.loaded,
                });
            }
            _ => {}
        }
        still_held(lease)?;
        self.moments.at(Moment::Sale).await?;
        let unsold = self.sale.close(token).await?;
        still_held(lease)?;
        self.moments.at(Moment::Books).await?;
        block_in_place(|| self.books.close_sale(self.name, unsold, token))?;
        Ok(unsold)
    }
}

fn still_held(lease: &Lease) -> Result<(), SaleError> {
    lease.check().map_err(|_| SaleError::Lost)
}
