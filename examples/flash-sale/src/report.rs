//! Whether Redis and the books agree, and add up.
//!
//! Must never: change anything.

use std::collections::HashSet;
use std::fmt;

use crate::books::{Books, Entry};
use crate::error::SaleError;
use crate::sale::{Counters, Sale};

/// How a sale stands.
#[derive(Clone, Debug)]
pub struct Report {
    counters: Counters,
    entry: Option<Entry>,
    warehouse: u64,
    written: u64,
    twice: u64,
}

impl Report {
    /// Looks at both; what is sold in between is on its way.
    ///
    /// # Errors
    /// When either can't be asked.
    pub async fn of(name: &str, sale: &Sale, books: &Books) -> Result<Self, SaleError> {
        // The books first: what is drained after that was sold before Redis is asked.
        let (entry, orders) = (books.sale(name)?, books.orders(name)?);
        let users: HashSet<&str> = orders.iter().map(|order| order.user.as_str()).collect();
        Ok(Self {
            entry,
            warehouse: books.warehouse()?,
            written: orders.len() as u64,
            twice: (orders.len() - users.len()) as u64,
            counters: sale.counters().await?,
        })
    }

    /// What is wrong; empty where all is well.
    pub fn damage(&self) -> Vec<String> {
        let Counters {
            loaded,
            stock,
            unsold,
            buyers,
            orders,
            ..
        } = self.counters;
        let known = self.counters.state.is_some();
        let mut damage = Vec::new();
        let mut find = |wrong: bool, what: String| damage.extend(wrong.then_some(what));
        find(
            stock + unsold + buyers != loaded,
            format!("{loaded} items became {stock} on sale, {unsold} put back, {buyers} sold"),
        );
        find(
            buyers != orders,
            format!("{buyers} buyers have {orders} orders"),
        );
        find(
            self.twice > 0,
            format!("{} orders too many for their users", self.twice),
        );
        find(
            self.written > orders,
            format!("{} orders in the books, {orders} in Redis", self.written),
        );
        if let Some(entry) = &self.entry {
            find(
                self.written > entry.loaded,
                format!("{} sold of {}", self.written, entry.loaded),
            );
            find(
                !known && entry.state != "opening",
                "Redis has lost the sale".to_owned(),
            );
        }
        damage
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters {
            loaded,
            stock,
            unsold,
            orders,
            ..
        } = self.counters;
        let state = self.entry.as_ref().map(|entry| entry.state.as_str());
        let state = state.unwrap_or("unknown");
        let on_the_way = orders.saturating_sub(self.written);
        write!(
            f,
            "the sale is {state}: {loaded} items, {orders} sold, {stock} on sale, {unsold} put back; \
             {} orders in the books, {on_the_way} on their way; {} items in the warehouse",
            self.written, self.warehouse
        )
    }
}
