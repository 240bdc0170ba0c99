//! What a shop can do, whatever the database under it.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::postgres::PostgresShop;
use crate::sqlite::SqliteShop;

/// The shop's database.
pub trait Shop {
    /// Closes the expired orders and puts their stock back: all of it or, when the token is
    /// stale or anything fails, nothing.
    fn close_expired(&mut self, closing: &Closing<'_>) -> Result<Outcome, ShopError>;

    /// Takes stock and notes the order, and answers with its number; none when no product has enough
    /// left.
    fn place_order(&mut self, placing: &Placing) -> Result<Option<i64>, ShopError>;

    /// Has an unpaid order paid; `false` when there is none of this number, any more.
    fn pay(&mut self, order: i64) -> Result<bool, ShopError>;

    /// What is left of each product, by its name.
    fn stock(&mut self) -> Result<BTreeMap<String, i64>, ShopError>;

    /// Answers queries of one integer each, all from one snapshot.
    fn numbers(&mut self, queries: &[&str]) -> Result<Vec<i64>, ShopError>;
}

/// Who closes, and what.
#[derive(Debug)]
pub struct Closing<'a> {
    /// The job whose tokens these are.
    pub job: &'a str,
    /// The attempt's fencing token.
    pub token: i64,
    /// Its number, for the record.
    pub attempt: i64,
    /// Its id, for the record.
    pub run_id: &'a str,
    /// How long an order may stay unpaid.
    pub older_than: Duration,
    /// For demonstrations and tests.
    pub pause_before_commit: Duration,
}

/// Being refused is an outcome of a run, not a failure of the database.
#[derive(Debug)]
pub enum Outcome {
    /// Committed.
    Closed {
        /// How many orders were closed.
        orders: i64,
        /// How many items went back on sale by that.
        items: i64,
    },
    /// A higher token has been here; nothing was changed.
    Stale {
        /// The highest.
        newest: i64,
    },
}

/// An order to place, of whatever product has enough stock.
#[derive(Debug)]
pub struct Placing {
    /// How many items.
    pub quantity: i64,
    /// It is paid at once.
    pub paid: bool,
    /// How long ago, for demonstrations and tests.
    pub placed_ago: Duration,
}

/// The database could not be reached, or refused.
#[derive(Debug, thiserror::Error)]
pub enum ShopError {
    /// The file could not be opened.
    #[error("SQLite file {path}")]
    OpenSqlite {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The server could not be reached, or refused.
    #[error("cannot connect to PostgreSQL")]
    OpenPostgres(#[source] postgres::Error),
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL failed.
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
}

impl ShopError {
    /// The message and those of its causes, on one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// Opens the shop, and fits it out if this is its first day. The database is a SQLite file, or
/// `postgres://USER@HOST/DATABASE`.
///
/// # Errors
/// When the database can't be opened.
pub fn open(database: &str) -> Result<Box<dyn Shop>, ShopError> {
    if database.starts_with("postgres://") || database.starts_with("postgresql://") {
        return Ok(Box::new(PostgresShop::open(database)?));
    }
    let path = database.strip_prefix("sqlite:").unwrap_or(database);
    Ok(Box::new(SqliteShop::open(path.as_ref())?))
}

/// Waits, and says so, because whoever asked for it wants to interfere right now.
pub fn pause(duration: Duration, state: &str) {
    if duration.is_zero() {
        return;
    }
    eprintln!(
        "{state}; waiting {duration:?} (process {})",
        std::process::id()
    );
    std::thread::sleep(duration);
}
