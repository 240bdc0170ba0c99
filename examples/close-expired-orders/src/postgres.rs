//! The shop in PostgreSQL, for processes on many machines.
//!
//! The fence row is the first row that a closing transaction locks, and the lock lasts until it
//! ends. So attempts at one job pass one after another, and each sees all that the ones before it
//! have done. Had the check been a plain SELECT, a newer attempt could commit between this one's
//! check and its commit.

use std::collections::BTreeMap;
use std::time::Duration;

use postgres::{Client, GenericClient, IsolationLevel, NoTls, Row, Transaction};

use crate::shop::{Closing, Outcome, Placing, Shop, ShopError, pause};

/// How long a transaction may sit idle before the server ends it. A process frozen between two
/// statements would hold the fence row, and all newer attempts up, until it thaws.
const IDLE_LIMIT: Duration = Duration::from_secs(5);

/// Names the advisory lock under which the schema is created; any number that is ours alone.
const SCHEMA_LOCK: i64 = 0x73_6f_6c_6f_73_68_6f_70; // "soloshop"

const SCHEMA: &str = include_str!("postgres.sql");

pub(crate) struct PostgresShop {
    client: Client,
}

impl PostgresShop {
    pub(crate) fn open(url: &str) -> Result<Self, ShopError> {
        let mut client = Client::connect(url, NoTls).map_err(ShopError::OpenPostgres)?;
        create_schema(&mut client)?;
        Ok(Self { client })
    }

    /// Each statement sees what was committed before the statement began, not before the
    /// transaction did: after a wait for the fence row, that is what the former attempt has done.
    fn write(&mut self) -> Result<Transaction<'_>, postgres::Error> {
        self.client
            .build_transaction()
            .isolation_level(IsolationLevel::ReadCommitted)
            .start()
    }
}

impl Shop for PostgresShop {
    fn close_expired(&mut self, closing: &Closing<'_>) -> Result<Outcome, ShopError> {
        let mut transaction = self.write()?;
        limit_idleness(&mut transaction, closing.pause_before_commit)?;
        if !raise_fence(&mut transaction, closing)? {
            let newest = "SELECT token FROM fence WHERE job = $1";
            let newest = transaction.query_one(newest, &[&closing.job])?.try_get(0)?;
            return Ok(Outcome::Stale { newest }); // dropping the transaction rolls it back
        }
        let closed = close_orders(&mut transaction, closing)?;
        pause(closing.pause_before_commit, "changed but not committed");
        transaction.commit()?;
        Ok(closed)
    }

    fn place_order(&mut self, placing: &Placing) -> Result<Option<i64>, ShopError> {
        let Placing {
            quantity,
            paid,
            placed_ago,
        } = placing;
        let placed = self.client.query_opt(
            "WITH chosen AS (
                 SELECT id FROM products WHERE stock >= $1 ORDER BY random() LIMIT 1
             ), taken AS (
                 UPDATE products SET stock = stock - $1 FROM chosen
                 WHERE products.id = chosen.id
                   AND stock >= $1 -- once more: another customer may have been faster
                 RETURNING products.id
             )
             INSERT INTO orders (product_id, quantity, state, ordered_at)
             SELECT id, $1, CASE WHEN $2 THEN 'paid' ELSE 'unpaid' END,
                    now() - make_interval(secs => $3)
             FROM taken
             RETURNING id",
            &[quantity, paid, &placed_ago.as_secs_f64()],
        )?;
        Ok(placed.map(|row| row.try_get(0)).transpose()?)
    }

    fn pay(&mut self, order: i64) -> Result<bool, ShopError> {
        let sql = "UPDATE orders SET state = 'paid' WHERE id = $1 AND state = 'unpaid'";
        Ok(self.client.execute(sql, &[&order])? == 1)
    }

    fn stock(&mut self) -> Result<BTreeMap<String, i64>, ShopError> {
        let products = self.client.query("SELECT name, stock FROM products", &[])?;
        let product = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        Ok(products
            .iter()
            .map(product)
            .collect::<Result<_, postgres::Error>>()?)
    }

    fn numbers(&mut self, queries: &[&str]) -> Result<Vec<i64>, ShopError> {
        let level = IsolationLevel::RepeatableRead; // one snapshot for all statements
        let mut snapshot = self
            .client
            .build_transaction()
            .isolation_level(level)
            .read_only(true)
            .start()?;
        let number = |query: &&str| snapshot.query_one(*query, &[])?.try_get(0);
        Ok(queries
            .iter()
            .map(number)
            .collect::<Result<_, postgres::Error>>()?)
    }
}

/// Shows the token to the database; `false` when a higher one was here before.
///
/// An equal token passes: it belongs to this same attempt, which may run several transactions.
/// A new attempt always has a higher one.
fn raise_fence(
    transaction: &mut Transaction<'_>,
    closing: &Closing<'_>,
) -> Result<bool, postgres::Error> {
    let raised = transaction.execute(
        "INSERT INTO fence (job, token) VALUES ($1, $2)
         ON CONFLICT (job) DO UPDATE SET token = excluded.token
         WHERE fence.token <= excluded.token",
        &[&closing.job, &closing.token],
    )?;
    Ok(raised == 1)
}

/// Closes, gives back and records in one statement. Only unpaid orders, so that one already
/// closed is not closed again; the server's clock, because machines disagree about the time.
fn close_orders(
    transaction: &mut Transaction<'_>,
    closing: &Closing<'_>,
) -> Result<Outcome, postgres::Error> {
    let Closing {
        job,
        token,
        attempt,
        run_id,
        older_than,
        ..
    } = closing;
    let row = transaction.query_one(
        "WITH expired AS (
             UPDATE orders SET state = 'closed'
             WHERE state = 'unpaid' AND ordered_at <= now() - make_interval(secs => $1)
             RETURNING id, product_id, quantity
         ), put_back AS (
             UPDATE products SET stock = products.stock + returned.quantity
             FROM (SELECT product_id, sum(quantity)::bigint AS quantity
                   FROM expired GROUP BY product_id) AS returned
             WHERE products.id = returned.product_id
         ), recorded AS (
             INSERT INTO closings (order_id, job, token, attempt, run_id)
             SELECT id, $2, $3, $4, $5 FROM expired
         )
         SELECT count(*), coalesce(sum(quantity), 0)::bigint FROM expired",
        &[&older_than.as_secs_f64(), job, token, attempt, run_id],
    )?;
    Ok(Outcome::Closed {
        orders: row.try_get(0)?,
        items: row.try_get(1)?,
    })
}

fn limit_idleness(
    transaction: &mut Transaction<'_>,
    planned: Duration,
) -> Result<(), postgres::Error> {
    let limit_ms = (IDLE_LIMIT + planned).as_millis();
    transaction.batch_execute(&format!(
        "SET LOCAL idle_in_transaction_session_timeout = {limit_ms}"
    ))
}

/// Looks before it locks: CREATE INDEX and CREATE TRIGGER wait for running transactions even when
/// there is nothing to create. `IF NOT EXISTS` does not help processes that race, either: both
/// see nothing, and one of them fails. The advisory lock lets one in after another.
fn create_schema(client: &mut Client) -> Result<(), postgres::Error> {
    if schema_exists(client)? {
        return Ok(());
    }
    let mut transaction = client.transaction()?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])?;
    if !schema_exists(&mut transaction)? {
        transaction.batch_execute(SCHEMA)?;
    }
    transaction.commit()
}

/// Reads the catalogue as a table. `to_regclass` reads a cache of it, which within a transaction
/// may still not know of a table that another process has just committed.
fn schema_exists(client: &mut impl GenericClient) -> Result<bool, postgres::Error> {
    let query = "SELECT EXISTS (SELECT FROM pg_tables
                                WHERE schemaname = current_schema() AND tablename = 'closings')";
    client.query_one(query, &[])?.try_get(0)
}
