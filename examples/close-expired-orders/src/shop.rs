//! What a shop can do, whatever the database under it.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::postgres::PostgresShop;
use crate::sqlite::SqliteShop;

/// The shop's database.
pub(crate) trait Shop {
    /// Closes the expired orders and puts their stock back: all of it or, when the token is
    /// stale or anything fails, nothing.
    fn close_expired(&mut self, closing: &Closing<'_>) -> Result<Outcome, ShopError>;

    /// Takes stock and notes the order; `false` when no product has enough left.
    fn place_order(&mut self, placing: &Placing) -> Result<bool, ShopError>;

    /// Answers queries of one integer each, all from one snapshot.
    fn numbers(&mut self, queries: &[&str]) -> Result<Vec<i64>, ShopError>;
}

/// Who closes, and what.
#[derive(Debug)]
pub(crate) struct Closing<'a> {
    pub(crate) job: &'a str,
    pub(crate) token: i64,
    pub(crate) attempt: i64,
    pub(crate) run_id: &'a str,
    pub(crate) older_than: Duration,
    /// For demonstrations and tests.
    pub(crate) pause_before_commit: Duration,
}

/// Being refused is an outcome of a run, not a failure of the database.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Committed.
    Closed { orders: i64, items: i64 },
    /// A higher token has been here; nothing was changed.
    Stale { newest: i64 },
}

/// An order to place, of whatever product has enough stock.
#[derive(Debug)]
pub(crate) struct Placing {
    pub(crate) quantity: i64,
    pub(crate) paid: bool,
    pub(crate) placed_ago: Duration,
}

/// The database could not be reached, or refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShopError {
    #[error("SQLite file {path}")]
    OpenSqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("cannot connect to PostgreSQL")]
    OpenPostgres(#[source] postgres::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
}

impl ShopError {
    /// The message and those of its causes, on one line.
    pub(crate) fn with_causes(&self) -> String {
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

/// Opens the shop, and fits it out if this is its first day.
pub(crate) fn open(database: &str) -> Result<Box<dyn Shop>, ShopError> {
    if database.starts_with("postgres://") || database.starts_with("postgresql://") {
        return Ok(Box::new(PostgresShop::open(database)?));
    }
    let path = database.strip_prefix("sqlite:").unwrap_or(database);
    Ok(Box::new(SqliteShop::open(path.as_ref())?))
}

/// Waits, and says so, because whoever asked for it wants to interfere right now.
pub(crate) fn pause(duration: Duration, state: &str) {
    if duration.is_zero() {
        return;
    }
    eprintln!(
        "{state}; waiting {duration:?} (process {})",
        std::process::id()
    );
    std::thread::sleep(duration);
}
