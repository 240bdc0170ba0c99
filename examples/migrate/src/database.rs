//! The database that is migrated: a SQLite file. Each transaction begins by showing it the fencing
//! token, and one that is lower than a token it has seen changes nothing.
//!
//! ```text
//!  lease, token 7 ──▶ take_over ──▶ step ─▶ commit ──▶ step ─▶ commit …
//!                         │          │
//!                     raise_fence  raise_fence: lower than the highest? Stale
//! ```
//!
//! Must never: change anything before the fence was raised, or outside of the transaction that did.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use soloist::scheduler::lease::FencingToken;

use crate::steps::{STEPS, Step};

/// How long to wait for another process to finish its transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const SCHEMA: &str = include_str!("database.sql");

/// Why the database was not migrated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("failed to migrate {}: {source}. Nothing of the step was kept", path.display())]
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error(
        "the database was shown token {newest} already, and this one is {own}: another host has \
         taken over. Nothing was changed"
    )]
    Stale { own: FencingToken, newest: i64 },
    #[error(
        "{} has version {found}, and this program knows {known} at most: it is older than what it \
         was to migrate. Deploy a newer one",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: usize,
    },
    #[error(
        "{} had version {expected} and has {found}: somebody migrates it without the lease. \
         Nothing was changed",
        path.display()
    )]
    Moved {
        path: PathBuf,
        expected: usize,
        found: usize,
    },
}

/// The database, as the holder of one lease sees it.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
    token: FencingToken,
}

/// A step that is done but not committed. Dropping it undoes it.
pub(crate) struct Prepared<'d> {
    transaction: Transaction<'d>,
    path: &'d Path,
}

impl Database {
    /// Opens the file and shows it the token, so that whoever had the lease before is refused from
    /// here on. Answers with the version of the schema.
    pub(crate) fn take_over(
        path: &Path,
        token: FencingToken,
    ) -> Result<(Self, usize), DatabaseError> {
        let sqlite = failed(path);
        let open = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(connection)
        };
        let mut connection = open().map_err(&sqlite)?;
        let transaction = begin(&mut connection).map_err(&sqlite)?;
        transaction.execute_batch(SCHEMA).map_err(&sqlite)?;
        raise_fence(&transaction, path, token)?;
        let version = version(&transaction, path)?;
        transaction.commit().map_err(&sqlite)?;
        let path = path.to_path_buf();
        let database = Self {
            connection,
            path,
            token,
        };
        Ok((database, version))
    }

    /// Does the step that leads on from this version, all but the commit.
    pub(crate) fn step(
        &mut self,
        expected: usize,
        step: &Step,
        by_whom: &str,
    ) -> Result<Prepared<'_>, DatabaseError> {
        let (path, token) = (self.path.as_path(), self.token);
        let sqlite = failed(path);
        let transaction = begin(&mut self.connection).map_err(&sqlite)?;
        raise_fence(&transaction, path, token)?;
        let found = version(&transaction, path)?;
        if found != expected {
            return Err(DatabaseError::Moved {
                path: path.to_path_buf(),
                expected,
                found,
            });
        }
        let run = || {
            transaction.execute_batch(step.sql)?;
            transaction.execute("UPDATE schema_version SET version = version + 1", [])?;
            transaction.execute(
                "INSERT INTO migrations (version, name, token, by_whom)
                 SELECT version, ?1, token, ?2 FROM schema_version",
                params![step.name, by_whom],
            )
        };
        run().map_err(&sqlite)?;
        Ok(Prepared { transaction, path })
    }
}

impl Prepared<'_> {
    pub(crate) fn commit(self) -> Result<(), DatabaseError> {
        self.transaction.commit().map_err(failed(self.path))
    }
}

/// SQLite lets one writer in at a time. To take that place at once means that nothing changes
/// between the look at the fence and the commit.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Shows the token to the database. An equal one passes: it is this holder's own, which runs many
/// transactions with it.
fn raise_fence(
    transaction: &Transaction<'_>,
    path: &Path,
    token: FencingToken,
) -> Result<(), DatabaseError> {
    // A token is below 2^53.
    let shown = token.get().cast_signed();
    let raise = || {
        let raised = transaction.execute(
            "UPDATE schema_version SET token = ?1 WHERE token <= ?1",
            [shown],
        )?;
        let newest = "SELECT token FROM schema_version";
        let newest = transaction.query_row(newest, [], |row| row.get(0))?;
        Ok((raised, newest))
    };
    match raise().map_err(failed(path))? {
        (1, _) => Ok(()),
        (_, newest) => Err(DatabaseError::Stale { own: token, newest }),
    }
}

fn version(transaction: &Transaction<'_>, path: &Path) -> Result<usize, DatabaseError> {
    let version = "SELECT version FROM schema_version";
    let found: i64 = transaction
        .query_row(version, [], |row| row.get(0))
        .map_err(failed(path))?;
    match usize::try_from(found) {
        Ok(version) if version <= STEPS.len() => Ok(version),
        _ => Err(DatabaseError::Newer {
            path: path.to_path_buf(),
            found,
            known: STEPS.len(),
        }),
    }
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> DatabaseError {
    |source| DatabaseError::Sqlite {
        path: path.to_path_buf(),
        source,
    }
}
