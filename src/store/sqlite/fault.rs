//! What can go wrong with the file, and what people are told of it.
//!
//! Every engine error is told apart by its code, never by its message. What mends itself is
//! `Unreachable`; what somebody has to mend is `Refused` and names the cure.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::store::{StoreError, draft};

/// Why a step could not be done.
#[derive(Debug)]
pub(super) enum Fault {
    /// The engine says so.
    Engine(rusqlite::Error),
    /// A row holds what no version of this layout writes.
    Unreadable(String),
    /// The step itself can't be taken.
    OfStep(draft::Fault),
    /// Found out before the engine was asked, or from what it answered.
    Refused { cause: String, cure: String },
    /// The tables are another version's.
    OtherVersion { cause: String, cure: String },
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Engine(error)
    }
}

impl From<draft::Fault> for Fault {
    fn from(fault: draft::Fault) -> Self {
        Fault::OfStep(fault)
    }
}

impl Fault {
    pub(super) fn refused(cause: impl Into<String>, cure: impl Into<String>) -> Self {
        Fault::Refused {
            cause: cause.into(),
            cure: cure.into(),
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Fault::Engine(error) => error.sqlite_error_code(),
            _ => None,
        }
    }

    /// Somebody else has the file's lock: the same again may work.
    pub(super) fn is_busy(&self) -> bool {
        matches!(
            self.code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        )
    }

    /// It lies in one job's rows; the other steps of a transaction may work without it.
    pub(super) fn is_of_one_step(&self) -> bool {
        matches!(self, Fault::Unreadable(_) | Fault::OfStep(_))
    }

    /// As the callers of the store are told.
    pub(super) fn to_store_error(&self, path: &Path) -> StoreError {
        let place = place(path);
        match self {
            Fault::OfStep(fault) => fault.at(&place),
            Fault::Unreadable(cause) => StoreError::Unreadable {
                place,
                cause: cause.clone(),
                cure: draft::CURE_OF_UNREADABLE.to_owned(),
            },
            Fault::OtherVersion { cause, cure } => StoreError::OtherVersion {
                place,
                cause: cause.clone(),
                cure: cure.clone(),
            },
            Fault::Refused { cause, cure } => StoreError::Refused {
                place,
                cause: cause.clone(),
                cure: cure.clone(),
            },
            Fault::Engine(_) if self.is_busy() => StoreError::Unreachable {
                place,
                cause: "another process kept the file locked for too long".to_owned(),
            },
            Fault::Engine(error) => match cure(error, path) {
                Some((cause, cure)) => StoreError::Refused { place, cause, cure },
                None => StoreError::Unreachable {
                    place,
                    cause: error.to_string(),
                },
            },
        }
    }
}

/// What is wrong in words and what to do about it, where somebody has to.
fn cure(error: &rusqlite::Error, path: &Path) -> Option<(String, String)> {
    let shown = path.display();
    let (cause, cure) = match error.sqlite_error_code()? {
        ErrorCode::DatabaseCorrupt => (
            format!("the file is damaged ({error})"),
            format!(
                "stop all replicas and restore it, or move it away (`mv {shown} {shown}.damaged`): a new ledger begins then"
            ),
        ),
        ErrorCode::NotADatabase => (
            "the file is no SQLite database".to_owned(),
            "name another path".to_owned(),
        ),
        ErrorCode::DiskFull => ("the disk is full".to_owned(), "free space".to_owned()),
        ErrorCode::ReadOnly => (
            "the file or its directory can't be written to".to_owned(),
            format!(
                "`chmod u+w` or `chown` {shown}, its directory and its `-wal` and `-shm` files for the user that soloist runs as"
            ),
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => (
            format!("the file can't be opened ({error})"),
            format!(
                "see that the directory of {shown} exists and that the user soloist runs as may read and write in it"
            ),
        ),
        _ => return None,
    };
    Some((cause, cure))
}

/// How the store at a path is called.
pub(super) fn place(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn told(code: i32) -> StoreError {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        Fault::Engine(error).to_store_error(Path::new("/var/lib/x.db"))
    }

    #[test]
    fn what_somebody_has_to_mend_is_refused_and_what_mends_itself_is_not() {
        for (code, cure) in [
            (ffi::SQLITE_FULL, "free space"),
            (ffi::SQLITE_READONLY, "chmod"),
            (ffi::SQLITE_READONLY_DIRECTORY, "chmod"),
            (ffi::SQLITE_CANTOPEN, "/var/lib/x.db"),
            (ffi::SQLITE_CORRUPT, "/var/lib/x.db.damaged"),
            (ffi::SQLITE_NOTADB, "another path"),
        ] {
            let error = told(code);
            assert!(matches!(error, StoreError::Refused { .. }), "{error}");
            assert!(error.to_string().contains(cure), "{error}");
        }
        let passing = [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_RECOVERY,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_PROTOCOL,
        ];
        for code in passing {
            assert!(
                matches!(told(code), StoreError::Unreachable { .. }),
                "{code}"
            );
        }
    }
}
