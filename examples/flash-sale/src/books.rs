//! The books of the shop, in a SQLite file: what is in the warehouse, which sales there are, and
//! every order, once.
//!
//! Must never: write an order twice, or change a sale for a stale token.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use soloist::scheduler::lease::FencingToken;

use crate::error::SaleError;

/// How long to wait for another process to finish its transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const SCHEMA: &str = include_str!("books.sql");

/// The books, open.
#[derive(Debug)]
pub struct Books {
    connection: Connection,
    path: PathBuf,
}

/// An order as it stands in the stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// The id of its entry.
    pub id: String,
    /// Whose it is.
    pub user: String,
}

/// A sale as the books have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `opening`, `open` or `closed`.
    pub state: String,
    /// Taken from the warehouse for it.
    pub loaded: u64,
    /// Put back when it was closed.
    pub unsold: Option<u64>,
}

impl Books {
    /// Opens the file, and rules it if this is its first day.
    ///
    /// # Errors
    /// When SQLite can't.
    pub fn open(path: &Path) -> Result<Self, SaleError> {
        let open = || {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            let transaction = begin(&mut connection)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.commit()?;
            Ok(connection)
        };
        let connection = open().map_err(failed(path))?;
        Ok(Self {
            connection,
            path: path.to_path_buf(),
        })
    }

    /// Takes the stock of a sale from the warehouse, if nobody has. `opening` says that the rest is
    /// to be done, whoever began it.
    pub(crate) fn begin_sale(
        &mut self,
        name: &str,
        stock: u64,
        token: FencingToken,
    ) -> Result<(), SaleError> {
        let path = self.path.clone();
        let sqlite = failed(&path);
        let transaction = begin(&mut self.connection).map_err(&sqlite)?;
        if let Some(entry) = entry(&transaction, name).map_err(&sqlite)? {
            raise_fence(&transaction, &path, name, token)?;
            transaction.commit().map_err(&sqlite)?;
            let loaded = entry.loaded;
            return match entry.state {
                state if state != "opening" => Err(SaleError::AlreadyOpened { state, loaded }),
                _ if loaded != stock => Err(SaleError::HalfOpen { loaded }),
                _ => Ok(()),
            };
        }
        let has: i64 = transaction
            .query_row("SELECT stock FROM warehouse", [], |row| row.get(0))
            .map_err(&sqlite)?;
        if counted(has) < stock {
            return Err(SaleError::NotEnough {
                has: counted(has),
                wanted: stock,
            });
        }
        let write = || {
            transaction.execute(
                "UPDATE warehouse SET stock = stock - ?1",
                [stock.cast_signed()],
            )?;
            transaction.execute(
                "INSERT INTO sales (name, state, loaded, token) VALUES (?1, 'opening', ?2, ?3)",
                params![name, stock.cast_signed(), token.get().cast_signed()],
            )
        };
        write().map_err(&sqlite)?;
        transaction.commit().map_err(&sqlite)
    }

    /// The stock is in Redis.
    pub(crate) fn sale_is_open(
        &mut self,
        name: &str,
        token: FencingToken,
    ) -> Result<(), SaleError> {
        self.fenced(name, token, |transaction| {
            let query = "UPDATE sales SET state = 'open' WHERE name = ?1 AND state = 'opening'";
            transaction.execute(query, [name])?;
            Ok(())
        })
    }

    /// Puts what was not sold back into the warehouse, once.
    pub(crate) fn close_sale(
        &mut self,
        name: &str,
        unsold: u64,
        token: FencingToken,
    ) -> Result<(), SaleError> {
        self.fenced(name, token, |transaction| {
            let closed = transaction.execute(
                "UPDATE sales SET state = 'closed', unsold = ?2 WHERE name = ?1 AND state = 'open'",
                params![name, unsold.cast_signed()],
            )?;
            if closed == 1 {
                transaction.execute(
                    "UPDATE warehouse SET stock = stock + ?1",
                    [unsold.cast_signed()],
                )?;
            }
            Ok(())
        })
    }

    fn fenced(
        &mut self,
        name: &str,
        token: FencingToken,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), SaleError> {
        let path = self.path.clone();
        let sqlite = failed(&path);
        let transaction = begin(&mut self.connection).map_err(&sqlite)?;
        raise_fence(&transaction, &path, name, token)?;
        write(&transaction).map_err(&sqlite)?;
        transaction.commit().map_err(&sqlite)
    }

    /// Writes orders down, all or none; those that stand there already stay as they are. Answers
    /// how many were new.
    pub(crate) fn write(&mut self, sale: &str, orders: &[Order]) -> Result<usize, SaleError> {
        let mut write = || {
            let transaction = begin(&mut self.connection)?;
            let mut new = 0;
            for order in orders {
                new += transaction.execute(
                    "INSERT INTO orders (sale, id, user) VALUES (?1, ?2, ?3)
                     ON CONFLICT (sale, id) DO NOTHING",
                    params![sale, order.id, order.user],
                )?;
            }
            transaction.commit()?;
            Ok(new)
        };
        write().map_err(failed(&self.path))
    }

    /// A sale; none where it was never opened.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn sale(&self, name: &str) -> Result<Option<Entry>, SaleError> {
        entry(&self.connection, name).map_err(failed(&self.path))
    }

    /// The orders of a sale, sorted.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn orders(&self, sale: &str) -> Result<Vec<Order>, SaleError> {
        let read = || {
            let query = "SELECT id, user FROM orders WHERE sale = ?1 ORDER BY id";
            let mut query = self.connection.prepare(query)?;
            let rows = query.query_map([sale], |row| {
                Ok(Order {
                    id: row.get(0)?,
                    user: row.get(1)?,
                })
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(failed(&self.path))
    }

    /// What is in the warehouse.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn warehouse(&self) -> Result<u64, SaleError> {
        let query = "SELECT stock FROM warehouse";
        let stock = self.connection.query_row(query, [], |row| row.get(0));
        stock.map(counted).map_err(failed(&self.path))
    }
}

/// SQLite lets one writer in at a time. To take that place at once means that nothing changes
/// between the look at the fence and the commit.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn entry(connection: &Connection, name: &str) -> rusqlite::Result<Option<Entry>> {
    let query = "SELECT state, loaded, unsold FROM sales WHERE name = ?1";
    let entry = connection.query_row(query, [name], |row| {
        Ok(Entry {
            state: row.get(0)?,
            loaded: counted(row.get(1)?),
            unsold: row.get::<_, Option<i64>>(2)?.map(counted),
        })
    });
    entry.optional()
}

/// Shows the token to the sale. An equal one passes: it is this holder's own.
fn raise_fence(
    transaction: &Transaction<'_>,
    path: &Path,
    name: &str,
    token: FencingToken,
) -> Result<(), SaleError> {
    let raise = || {
        let raised = transaction.execute(
            "UPDATE sales SET token = ?2 WHERE name = ?1 AND token <= ?2",
            params![name, token.get().cast_signed()],
        )?;
        let newest = "SELECT token FROM sales WHERE name = ?1";
        let newest: i64 = transaction.query_row(newest, [name], |row| row.get(0))?;
        Ok((raised, newest))
    };
    match raise().map_err(failed(path))? {
        (1, _) => Ok(()),
        (_, newest) => Err(SaleError::Stale {
            own: token.get(),
            newest: counted(newest),
        }),
    }
}

/// What is counted here is never below zero.
fn counted(number: i64) -> u64 {
    number.try_into().unwrap_or(0)
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> SaleError {
    |source| SaleError::Books {
        path: path.to_path_buf(),
        source,
    }
}
