//! The tables, and whose file it is.
//!
//! All namespaces share the tables; each row begins with its namespace, and no statement is
//! without it. Times are milliseconds since the Unix epoch, lengths milliseconds too.
//!
//! Must never: write a byte into a file that is not known to be soloist's or empty.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::fault::Fault;

/// "SOLO": says in the file's header whose it is (`PRAGMA application_id`).
const APPLICATION_ID: i32 = 0x534F_4C4F;
/// The version of the tables and of the records in them (`PRAGMA user_version`). A file of
/// another one is left alone: no release has written a lower one.
const LAYOUT: i32 = 2;

/// How long the engine waits for another process's lock in one go.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// What is left of the write-ahead log after a checkpoint, at most.
const LOG_BYTES_KEPT: i64 = 16 << 20;
/// All statements there are, and some room.
const STATEMENTS_CACHED: usize = 48;

const TABLES: &str = "
CREATE TABLE host (
    boot_id TEXT NOT NULL
) STRICT;
CREATE TABLE epoch (
    namespace TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    grace_until_ms INTEGER NOT NULL,
    clock_us INTEGER NOT NULL,
    born_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE job (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    record TEXT NOT NULL,
    agenda_ms INTEGER,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_agenda ON job (namespace, agenda_ms) WHERE agenda_ms IS NOT NULL;
CREATE TABLE attempt (
    namespace TEXT NOT NULL,
    job TEXT NOT NULL,
    number INTEGER NOT NULL,
    scheduled_at_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    replica TEXT NOT NULL,
    started_at_ms INTEGER NOT NULL,
    ended_at_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (namespace, job, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_of_job_by_end ON attempt (namespace, job, ended_at_ms);
CREATE INDEX attempt_by_end ON attempt (namespace, ended_at_ms);
CREATE TABLE output (
    namespace TEXT NOT NULL,
    job TEXT NOT NULL,
    number INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (namespace, job, number)
) STRICT;
CREATE TRIGGER output_goes_with_its_attempt AFTER DELETE ON attempt BEGIN
    DELETE FROM output
    WHERE namespace = old.namespace AND job = old.job AND number = old.number;
END;
CREATE TABLE replica (
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    info TEXT NOT NULL,
    seen_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;
";

/// What files lack that were begun before there was something to put there. Who does not know of it
/// does without, so that it takes no version of its own.
const ADDED_TABLES: &str = "
CREATE TABLE IF NOT EXISTS published (
    namespace TEXT NOT NULL,
    digest TEXT NOT NULL,
    jobs TEXT NOT NULL,
    PRIMARY KEY (namespace, digest)
) STRICT, WITHOUT ROWID;
";
const ADDED_COLUMN: &str = "ALTER TABLE epoch ADD COLUMN tables TEXT NOT NULL DEFAULT ''";

/// Makes a freshly opened file ready: sees whose it is, creates the tables where it is empty,
/// and sets what holds for this connection.
pub(super) fn prepare(connection: &mut Connection, boot_id: &str) -> Result<(), Fault> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // The first read of the file: of the schema too, so that another program's is seen.
    let mine = is_mine(connection)?;
    if connection.is_readonly("main")? {
        return Err(Fault::refused(
            "the file can only be read",
            "make it writable for the user that soloist runs as (`chmod u+w`, `chown`)",
        ));
    }
    write_ahead(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    if mine {
        check_health(connection)?;
    }
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been first between the look above and this lock.
    if !is_mine(&step)? {
        step.execute_batch(TABLES)?;
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", LAYOUT)?;
    }
    add_what_is_lacking(&step)?;
    enter_boot(&step, boot_id)?;
    step.commit()?;
    Ok(())
}

fn add_what_is_lacking(connection: &Connection) -> Result<(), Fault> {
    connection.execute_batch(ADDED_TABLES)?;
    if !connection.column_exists(None, "epoch", "tables")? {
        connection.execute_batch(ADDED_COLUMN)?;
    }
    Ok(())
}

/// Whether the file is soloist's; false where it is empty. Any other is refused.
fn is_mine(connection: &Connection) -> Result<bool, Fault> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application_id, layout) = (number("application_id")?, layout_of(connection)?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application_id, layout) {
        (APPLICATION_ID, LAYOUT) => Ok(true),
        (APPLICATION_ID, other) => Err(of_another_version(other)),
        (0, 0) if tables == 0 => Ok(false),
        (id, _) => Err(Fault::refused(
            format!(
                "the file is another program's database (application_id {id}, {tables} tables and indexes)"
            ),
            "name another path",
        )),
    }
}

fn layout_of(connection: &Connection) -> Result<i32, Fault> {
    let layout = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(layout)
}

/// Sees inside a transaction that the tables are still what they were when the file was opened:
/// another process may have taken them to another version meanwhile.
pub(super) fn check(connection: &Connection) -> Result<(), Fault> {
    match layout_of(connection)? {
        LAYOUT => Ok(()),
        other => Err(of_another_version(other)),
    }
}

/// What is told of a file that another version keeps. It is left alone, so that those who keep it
/// go on, and looked at again with each call.
fn of_another_version(layout: i32) -> Fault {
    let (cause, cure) = match layout {
        ..LAYOUT => (
            format!("its layout is version {layout}, of an older soloist, and not {LAYOUT}"),
            "stop all replicas of that version and move it away (`mv`): a new ledger begins then",
        ),
        _ => (
            format!("its layout is version {layout}, and this soloist knows up to {LAYOUT}"),
            "run the newer soloist that wrote it, or name another path; until then this one waits",
        ),
    };
    let cure = cure.to_owned();
    Fault::OtherVersion { cause, cure }
}

/// Readers don't block the writer, and a commit is one write and one fsync(2).
fn write_ahead(connection: &Connection) -> Result<(), Fault> {
    let mode = |name: &str| name.eq_ignore_ascii_case("wal");
    let now: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode(&now) {
        return Ok(());
    }
    let then: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode(&then) {
        return Ok(());
    }
    Err(Fault::refused(
        "its file system can't share memory between processes (no write-ahead log)",
        "put the file on a disk of this host",
    ))
}

/// Looks through the tables that decide who may run. The history can be gigabytes and decides
/// nothing: damage to it shows where it is read.
fn check_health(connection: &Connection) -> Result<(), Fault> {
    for table in ["epoch", "job"] {
        let found: String =
            connection.query_row(&format!("PRAGMA quick_check('{table}')"), [], |row| {
                row.get(0)
            })?;
        if found != "ok" {
            return Err(Fault::refused(
                format!("the file is damaged ({found})"),
                "stop all replicas and restore it, or move it away: a new ledger begins then",
            ));
        }
    }
    Ok(())
}

/// Notes a boot of the host that is new to the file. No grace window opens for it: every
/// holder of the boot before ended with it, so there is nobody to re-assert a lease, and with
/// `synchronous = FULL` no committed grant is missing. Their leases are taken over by the same
/// watch as any other; only the list of replicas is cleared of them at once.
fn enter_boot(connection: &Connection, boot_id: &str) -> Result<(), Fault> {
    let known: Option<String> = connection
        .query_row("SELECT boot_id FROM host", [], |row| row.get(0))
        .optional()?;
    match known {
        Some(known) if known == boot_id => {}
        Some(_) => {
            connection.execute("DELETE FROM replica", [])?;
            connection.execute("UPDATE host SET boot_id = ?1", [boot_id])?;
        }
        None => {
            connection.execute("INSERT INTO host (boot_id) VALUES (?1)", [boot_id])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_agenda_is_found_by_its_index() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        let plan: String = connection
            .query_row(
                &format!("EXPLAIN QUERY PLAN {}", super::super::ledger::AGENDA),
                rusqlite::params!["shop", 0, 1, 2],
                |row| row.get("detail"),
            )
            .unwrap();
        assert!(plan.contains("USING INDEX job_agenda"), "{plan}");
        assert!(plan.contains("agenda_ms>?"), "{plan}");
    }
}
