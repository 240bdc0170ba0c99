//! What replicas publish of their tables, as long as one of them is listed that names it.
//!
//! Must never: look into a text.

use rusqlite::{OptionalExtension, Row, params};

use super::fault::Fault;
use super::ledger::{Ledger, collect, read};
use crate::scheduler::lease::Lineage;

impl Ledger<'_> {
    pub(super) fn keep_table(&self, digest: &str, text: &str) -> Result<(), Fault> {
        let sql = "INSERT OR REPLACE INTO published (namespace, digest, jobs) VALUES (?1, ?2, ?3)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![self.namespace, digest, text])?;
        Ok(())
    }

    pub(super) fn table(&self, digest: &str) -> Result<Option<String>, Fault> {
        let sql = "SELECT jobs FROM published WHERE namespace = ?1 AND digest = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([self.namespace, digest], |row| row.get(0));
        Ok(found.optional()?)
    }

    /// The digests of those that are kept.
    pub(super) fn published(&self) -> Result<Vec<String>, Fault> {
        let sql = "SELECT digest FROM published WHERE namespace = ?1 ORDER BY digest";
        let mut statement = self.connection.prepare_cached(sql)?;
        collect(statement.query([self.namespace])?, |row| {
            read(row, "digest")
        })
    }

    /// All that are kept, each by its digest.
    pub(super) fn tables(&self) -> Result<Vec<(String, String)>, Fault> {
        let sql = "SELECT digest, jobs FROM published WHERE namespace = ?1 ORDER BY digest";
        let mut statement = self.connection.prepare_cached(sql)?;
        let pair = |row: &Row<'_>| Ok((read(row, "digest")?, read(row, "jobs")?));
        collect(statement.query([self.namespace])?, pair)
    }

    /// Drops those that no listed replica names.
    pub(super) fn drop_unnamed_tables(&self) -> Result<(), Fault> {
        let sql = "DELETE FROM published WHERE namespace = ?1 AND NOT EXISTS ( \
             SELECT 1 FROM replica WHERE replica.namespace = ?1 \
             AND instr(replica.info, published.digest) > 0)";
        self.connection
            .prepare_cached(sql)?
            .execute([self.namespace])?;
        Ok(())
    }
}

/// The order of tables, as the row of the epoch has it.
pub(super) fn read_lineage(row: &Row<'_>, column: &str) -> Result<Lineage, Fault> {
    let text: String = read(row, column)?;
    match text.as_str() {
        // Of a file that is older than they are.
        "" => Ok(Lineage::default()),
        text => serde_json::from_str(text)
            .map_err(|error| Fault::Unreadable(format!("column {column}: {error}"))),
    }
}
