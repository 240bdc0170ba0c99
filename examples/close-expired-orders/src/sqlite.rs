//! The shop in a SQLite file, for processes on one machine.
//!
//! SQLite lets one writer in at a time. `BEGIN IMMEDIATE` takes that place at once, so nothing
//! changes between the look at the fence and the commit. A process frozen in between keeps all
//! other writers out until it is killed, which soloist does when its lease runs out, or, where the
//! whole host was paused, when that is resumed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};

use crate::shop::{Closing, Outcome, Placing, Shop, ShopError, pause};

/// How long to wait for another process to finish its transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const SCHEMA: &str = include_str!("sqlite.sql");

#[derive(Debug)]
pub(crate) struct SqliteShop {
    connection: Connection,
}

impl SqliteShop {
    pub(crate) fn open(path: &Path) -> Result<Self, ShopError> {
        let open = || {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            use_write_ahead_log(&connection)?;
            create_schema(&mut connection)?;
            Ok(Self { connection })
        };
        open().map_err(|source| ShopError::OpenSqlite {
            path: path.to_path_buf(),
            source,
        })
    }

    fn write(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

impl Shop for SqliteShop {
    fn close_expired(&mut self, closing: &Closing<'_>) -> Result<Outcome, ShopError> {
        let transaction = self.write()?;
        if !raise_fence(&transaction, closing)? {
            let newest = "SELECT token FROM fence WHERE job = ?1";
            let newest = transaction.query_row(newest, [closing.job], |row| row.get(0))?;
            return Ok(Outcome::Stale { newest }); // dropping the transaction rolls it back
        }
        let expired = close_orders(&transaction, closing.older_than)?;
        for order in &expired {
            put_back(&transaction, order)?;
            record(&transaction, order, closing)?;
        }
        pause(closing.pause_before_commit, "changed but not committed");
        transaction.commit()?;
        Ok(Outcome::Closed {
            orders: expired.len().try_into().unwrap_or(i64::MAX),
            items: expired.iter().map(|order| order.quantity).sum(),
        })
    }

    fn place_order(&mut self, placing: &Placing) -> Result<Option<i64>, ShopError> {
        let transaction = self.write()?;
        let Some(product_id) = take_stock(&transaction, placing.quantity)? else {
            return Ok(None);
        };
        transaction.execute(
            "INSERT INTO orders (product_id, quantity, state, ordered_at)
             VALUES (?1, ?2, iif(?3, 'paid', 'unpaid'), unixepoch('subsec') - ?4)",
            params![
                product_id,
                placing.quantity,
                placing.paid,
                placing.placed_ago.as_secs_f64()
            ],
        )?;
        let order = transaction.last_insert_rowid();
        transaction.commit()?;
        Ok(Some(order))
    }

    fn pay(&mut self, order: i64) -> Result<bool, ShopError> {
        let sql = "UPDATE orders SET state = 'paid' WHERE id = ?1 AND state = 'unpaid'";
        Ok(self.connection.execute(sql, [order])? == 1)
    }

    fn stock(&mut self) -> Result<BTreeMap<String, i64>, ShopError> {
        let mut statement = self
            .connection
            .prepare("SELECT name, stock FROM products")?;
        let products = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(products.collect::<rusqlite::Result<_>>()?)
    }

    fn numbers(&mut self, queries: &[&str]) -> Result<Vec<i64>, ShopError> {
        let snapshot = self.connection.transaction()?;
        let number = |query: &&str| snapshot.query_row(query, [], |row| row.get(0));
        Ok(queries
            .iter()
            .map(number)
            .collect::<rusqlite::Result<_>>()?)
    }
}

struct ExpiredOrder {
    id: i64,
    product_id: i64,
    quantity: i64,
}

/// Shows the token to the database; `false` when a higher one was here before.
///
/// An equal token passes: it belongs to this same attempt, which may run several transactions.
/// A new attempt always has a higher one.
fn raise_fence(transaction: &Transaction<'_>, closing: &Closing<'_>) -> rusqlite::Result<bool> {
    let raised = transaction.execute(
        "INSERT INTO fence (job, token) VALUES (?1, ?2)
         ON CONFLICT (job) DO UPDATE SET token = excluded.token
         WHERE fence.token <= excluded.token",
        params![closing.job, closing.token],
    )?;
    Ok(raised == 1)
}

/// Only unpaid orders, so that one already closed is not closed again.
fn close_orders(
    transaction: &Transaction<'_>,
    older_than: Duration,
) -> rusqlite::Result<Vec<ExpiredOrder>> {
    let mut statement = transaction.prepare(
        "UPDATE orders SET state = 'closed'
         WHERE state = 'unpaid' AND ordered_at <= unixepoch('subsec') - ?1
         RETURNING id, product_id, quantity",
    )?;
    let expired = statement.query_map([older_than.as_secs_f64()], |row| {
        Ok(ExpiredOrder {
            id: row.get(0)?,
            product_id: row.get(1)?,
            quantity: row.get(2)?,
        })
    })?;
    expired.collect()
}

fn put_back(transaction: &Transaction<'_>, order: &ExpiredOrder) -> rusqlite::Result<()> {
    let sql = "UPDATE products SET stock = stock + ?1 WHERE id = ?2";
    transaction
        .prepare_cached(sql)?
        .execute([order.quantity, order.product_id])?;
    Ok(())
}

fn record(
    transaction: &Transaction<'_>,
    order: &ExpiredOrder,
    closing: &Closing<'_>,
) -> rusqlite::Result<()> {
    let Closing {
        job,
        token,
        attempt,
        run_id,
        ..
    } = closing;
    let sql = "INSERT INTO closings (order_id, job, token, attempt, run_id)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction
        .prepare_cached(sql)?
        .execute(params![order.id, job, token, attempt, run_id])?;
    Ok(())
}

/// From any product that has enough; `None` when none has.
fn take_stock(transaction: &Transaction<'_>, quantity: i64) -> rusqlite::Result<Option<i64>> {
    let sql = "UPDATE products SET stock = stock - ?1
               WHERE id = (SELECT id FROM products WHERE stock >= ?1 ORDER BY random() LIMIT 1)
               RETURNING id";
    transaction
        .query_row(sql, [quantity], |row| row.get(0))
        .optional()
}

/// Readers and the writer do not wait for each other in this mode. The file remembers it.
///
/// Switching needs the file to oneself for a moment, and SQLite reports "busy" at once instead of
/// waiting when several processes switch together; so this waits.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

/// Looks before it writes: a shop that exists must not make anybody wait for the writer's place.
fn create_schema(connection: &mut Connection) -> rusqlite::Result<()> {
    if connection.table_exists(None, "closings")? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.commit()
}
