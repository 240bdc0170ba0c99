//! A worker that writes orders down: from the stream in Redis into the books, each at least once,
//! which by its id comes to once.
//!
//! ```text
//!  stream ─ XREADGROUP ─▶ worker ─ commit ─▶ books
//!     ▲        or           │
//!     └ XAUTOCLAIM ─────────┴─ XACK, once that is on the disk
//! ```
//!
//! Killed before the commit, nothing happened; killed after it, the orders come again and are
//! found written. What a worker took and didn't acknowledge, another one claims in a while.
//!
//! Must never: acknowledge what is not committed.

use std::collections::HashMap;
use std::time::Duration;

use redis::cmd;
use tokio::task::block_in_place;

use crate::books::{Books, Order};
use crate::error::SaleError;
use crate::moment::{Moment, Moments};
use crate::sale::Sale;

/// All workers are of this group: each order goes to one of them.
const GROUP: &str = "books";

/// How long a worker waits for orders before it looks at all else again, such as being told to
/// stop.
const LOOK: Duration = Duration::from_millis(200);

/// How long a worker waits when Redis failed.
const RETRY: Duration = Duration::from_secs(1);

/// An order as Redis tells it: its id, and its fields.
type Told = (String, HashMap<String, String>);

/// Which orders are drained, by whom, and how.
#[derive(Clone, Debug)]
pub struct Drain {
    /// The URL of Redis.
    pub redis: String,
    /// The name of the sale.
    pub name: String,
    /// What the worker is called in the group, for people who look at it (XINFO CONSUMERS).
    pub consumer: String,
    /// How many orders go into one transaction, at most.
    pub batch: u32,
    /// After how long what a worker took is taken for forgotten.
    pub idle: Duration,
    /// End when no order is left, instead of waiting for more.
    pub until_empty: bool,
}

impl Drain {
    /// Works until it is told to stop. A Redis that is away is waited for.
    ///
    /// # Errors
    /// When the books can't be written.
    pub async fn run(&self, books: &mut Books, moments: &mut Moments) -> Result<(), SaleError> {
        loop {
            match self.work(books, moments).await {
                Err(error @ SaleError::Redis { .. }) => {
                    eprintln!("flash-sale: {error}. Next try in {RETRY:?}");
                    tokio::select! {
                        () = moments.stop() => return Ok(()),
                        () = tokio::time::sleep(RETRY) => {}
                    }
                }
                Err(SaleError::Stopped) => return Ok(()),
                other => return other,
            }
        }
    }

    /// Works for as long as one connection lasts.
    async fn work(&self, books: &mut Books, moments: &mut Moments) -> Result<(), SaleError> {
        let sale = Sale::connect(&self.redis, &self.name).await?;
        join(&sale).await?;
        loop {
            let mut entries = self.forgotten(&sale).await?;
            if entries.is_empty() {
                entries = self.untaken(&sale).await?;
            }
            let nothing = entries.is_empty();
            self.settle(&sale, books, moments, entries).await?;
            tokio::select! {
                biased;
                () = moments.stop() => return Ok(()),
                () = std::future::ready(()) => {}
            }
            if nothing && self.until_empty && taken(&sale).await? == 0 {
                return Ok(());
            }
        }
    }

    /// What other workers took so long ago that they must be dead, or this one before it lost its
    /// connection.
    async fn forgotten(&self, sale: &Sale) -> Result<Vec<Told>, SaleError> {
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(sale.stream()).arg(GROUP).arg(&self.consumer);
        claim.arg(millis(self.idle)).arg("0-0");
        claim.arg("COUNT").arg(self.batch);
        let (_next, entries, _deleted): (String, Vec<Told>, Vec<String>) = sale.ask(&claim).await?;
        Ok(entries)
    }

    /// What nobody has taken; waits a moment for it.
    async fn untaken(&self, sale: &Sale) -> Result<Vec<Told>, SaleError> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer);
        read.arg("COUNT").arg(self.batch);
        read.arg("BLOCK").arg(millis(LOOK));
        read.arg("STREAMS").arg(sale.stream()).arg(">");
        let streams: Option<Vec<(String, Vec<Told>)>> = sale.ask(&read).await?;
        let entries = streams
            .into_iter()
            .flatten()
            .flat_map(|(_, entries)| entries);
        Ok(entries.collect())
    }

    /// Writes them down, and acknowledges them then.
    async fn settle(
        &self,
        sale: &Sale,
        books: &mut Books,
        moments: &mut Moments,
        entries: Vec<Told>,
    ) -> Result<(), SaleError> {
        if entries.is_empty() {
            return Ok(());
        }
        let orders = entries.into_iter().map(|entry| order(sale, entry));
        let orders: Vec<Order> = orders.collect::<Result<_, _>>()?;
        moments.at(Moment::Books).await?;
        let new = block_in_place(|| books.write(&self.name, &orders))?;
        println!("wrote {} orders, {new} of them new", orders.len());
        moments.at(Moment::Ack).await?;
        let mut ack = cmd("XACK");
        ack.arg(sale.stream()).arg(GROUP);
        for order in &orders {
            ack.arg(&order.id);
        }
        let _acknowledged: u64 = sale.ask(&ack).await?;
        Ok(())
    }
}

/// Makes the group, from the first order on, if it is not there.
async fn join(sale: &Sale) -> Result<(), SaleError> {
    let mut create = cmd("XGROUP");
    create.arg("CREATE").arg(sale.stream()).arg(GROUP).arg("0");
    create.arg("MKSTREAM");
    match sale.ask::<()>(&create).await {
        Err(SaleError::Redis { source, .. }) if source.code() == Some("BUSYGROUP") => Ok(()),
        other => other,
    }
}

/// How many orders workers have taken and not acknowledged.
async fn taken(sale: &Sale) -> Result<u64, SaleError> {
    let mut pending = cmd("XPENDING");
    pending.arg(sale.stream()).arg(GROUP);
    type Pending = (
        u64,
        Option<String>,
        Option<String>,
        Option<Vec<(String, u64)>>,
    );
    let (taken, _, _, _): Pending = sale.ask(&pending).await?;
    Ok(taken)
}

fn order(sale: &Sale, (id, mut fields): Told) -> Result<Order, SaleError> {
    match fields.remove("user") {
        Some(user) => Ok(Order { id, user }),
        None => Err(SaleError::Entry {
            stream: sale.stream().to_owned(),
            id,
        }),
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
