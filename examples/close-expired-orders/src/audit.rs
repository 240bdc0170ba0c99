//! Looks for the damage that two closers at once would do.
//!
//! Must never: write.

use std::fmt;

use crate::shop::{Shop, ShopError};

/// Each finds one kind of damage and counts it; the SQL is common to both databases.
const CHECKS: [(&str, &str); 4] = [
    (
        // Closing an order twice gives its stock back twice.
        "products whose stock does not add up",
        "SELECT count(*) FROM products WHERE initial_stock <> stock + coalesce(
             (SELECT CAST(sum(quantity) AS bigint) FROM orders
              WHERE product_id = products.id AND state IN ('unpaid', 'paid')), 0)",
    ),
    (
        "orders closed more than once",
        "SELECT count(*) FROM
             (SELECT order_id FROM closings GROUP BY order_id HAVING count(*) > 1) AS repeated",
    ),
    (
        "orders closed without a record, or recorded without being closed",
        "SELECT count(*) FROM orders WHERE (state = 'closed')
             <> EXISTS (SELECT 1 FROM closings WHERE order_id = orders.id)",
    ),
    (
        // A lower token after a higher one: a stale attempt has written.
        "closings with a token lower than the one before",
        "SELECT count(*) FROM
             (SELECT token, lag(token) OVER (PARTITION BY job ORDER BY seq) AS former
              FROM closings) AS pairs
         WHERE token < former",
    ),
];

const FIGURES: [&str; 4] = [
    "SELECT count(*) FROM orders WHERE state = 'unpaid'",
    "SELECT count(*) FROM orders WHERE state = 'paid'",
    "SELECT count(*) FROM orders WHERE state = 'closed'",
    "SELECT coalesce(max(token), 0) FROM fence",
];

/// What the audit found.
#[derive(Debug)]
pub struct Report {
    damage: Vec<(&'static str, i64)>,
    unpaid: i64,
    paid: i64,
    closed: i64,
    newest_token: i64,
}

/// Checks everything, in one snapshot.
///
/// # Errors
/// When the database fails.
pub fn audit(shop: &mut dyn Shop) -> Result<Report, ShopError> {
    let checks = CHECKS.map(|(_, query)| query);
    let numbers = shop.numbers(&[checks, FIGURES].concat())?;
    let (counts, figures) = numbers.split_at(CHECKS.len());
    let names = CHECKS.map(|(name, _)| name);
    Ok(Report {
        damage: names
            .into_iter()
            .zip(counts.iter().copied())
            .filter(|(_, n)| *n > 0)
            .collect(),
        unpaid: figures[0],
        paid: figures[1],
        closed: figures[2],
        newest_token: figures[3],
    })
}

impl Report {
    /// Whether no damage was found.
    pub fn passed(&self) -> bool {
        self.damage.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.passed() {
            "audit passed"
        } else {
            "audit FAILED"
        })?;
        for (name, count) in &self.damage {
            write!(f, ", {name}: {count}")?;
        }
        let Self {
            unpaid,
            paid,
            closed,
            newest_token,
            ..
        } = self;
        write!(
            f,
            "; {unpaid} orders unpaid, {paid} paid, {closed} closed; "
        )?;
        write!(f, "newest token {newest_token}")
    }
}
