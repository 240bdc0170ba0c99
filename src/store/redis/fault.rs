//! What went wrong on the wire, told by its code: what the caller hears, and whether the
//! connection can still be used.
//!
//! Must never: go by the free text of a message.

use redis::{ErrorKind, RedisError};

use super::keys::{CURRENT_LAYOUT, PERMISSION};
use super::reply::Misread;
use crate::store::StoreError;

/// An error of the store, and what it means for the connection.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    /// The connection is of no use any more, or leads to the wrong server.
    pub(super) disconnect: bool,
}

impl Fault {
    pub(super) fn unreachable(place: &str, cause: impl Into<String>) -> Self {
        let (place, cause) = (place.to_owned(), cause.into());
        Self {
            error: StoreError::Unreachable { place, cause },
            disconnect: true,
        }
    }

    pub(super) fn refused(place: &str, cause: impl Into<String>, cure: impl Into<String>) -> Self {
        let (place, cause, cure) = (place.to_owned(), cause.into(), cure.into());
        Self {
            error: StoreError::Refused { place, cause, cure },
            disconnect: false,
        }
    }

    pub(super) fn unreadable(place: &str, cause: impl Into<String>) -> Self {
        let (place, cause) = (place.to_owned(), cause.into());
        Self {
            error: StoreError::Unreadable { place, cause },
            disconnect: false,
        }
    }

    /// The ledger is in a layout that this version doesn't write.
    pub(super) fn layout(place: &str, layout: &str) -> Self {
        let cause = format!("its ledger has layout {layout}, and not {CURRENT_LAYOUT}");
        let number = |text: &str| text.parse::<u64>().ok();
        let older = number(layout) < number(CURRENT_LAYOUT) && number(layout).is_some();
        let cure = match older {
            true => {
                "a development version wrote it: stop all replicas, and choose another namespace \
                 or delete the keys of this one; a new ledger begins then"
            }
            false => "a newer soloist wrote it: upgrade this one, or choose another namespace",
        };
        Self::refused(place, cause, cure)
    }

    /// A reply could not be read.
    pub(super) fn misread(place: &str, misread: &Misread) -> Self {
        match misread {
            Misread::Layout(layout) => Self::layout(place, layout),
            Misread::Step(fault) => Self {
                error: fault.at(place),
                disconnect: false,
            },
            Misread::Form => Self::unreadable(place, "a script's reply in another form"),
        }
    }

    fn disconnecting(self, disconnect: bool) -> Self {
        Self { disconnect, ..self }
    }

    /// What an error in answer to a command means.
    pub(super) fn of(place: &str, error: &RedisError) -> Self {
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Self::credentials(place, error);
        }
        match error.code() {
            Some("WRONGPASS" | "NOAUTH") => Self::credentials(place, error),
            Some("NOPERM") => Self::refused(place, error.to_string(), PERMISSION),
            Some("WRONGTYPE") => Self::refused(
                place,
                error.to_string(),
                "something else uses soloist's keys: choose another namespace, or delete them",
            ),
            Some(code) => Self::of_code(place, code, error),
            None => Self::unreachable(place, error.to_string()),
        }
    }

    fn of_code(place: &str, code: &str, error: &RedisError) -> Self {
        let cause = match code {
            "READONLY" => "it is a read-only replica".to_owned(),
            "LOADING" => "it is still loading its data".to_owned(),
            "MASTERDOWN" => "it is a replica without its master".to_owned(),
            "OOM" => {
                let cure = "raise maxmemory, or delete what fills it";
                return Self::refused(place, "it is out of memory (maxmemory)", cure);
            }
            "MISCONF" => {
                let cure = "mend its disk, as its log says";
                return Self::refused(place, "it can't save to disk and takes no writes", cure);
            }
            "NOREPLICAS" => "it has too few replicas to take writes".to_owned(),
            "BUSY" => "it is busy with somebody's script".to_owned(),
            "CLUSTERDOWN" => "its cluster is down".to_owned(),
            // How servers before 7.2 say that a script may not do what the user may not.
            "ERR" => return Self::refused(place, error.to_string(), PERMISSION),
            _ => error.to_string(),
        };
        // Behind these, another connection may find a server that does better.
        let elsewhere = ["READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN"];
        Self::unreachable(place, cause).disconnecting(elsewhere.contains(&code))
    }

    /// What an error while connecting means. A plain `ERR` then is of no command of ours: too
    /// many clients, most often.
    pub(super) fn of_connecting(place: &str, error: &RedisError) -> Self {
        match error.code() {
            Some("ERR") => Self::unreachable(place, error.to_string()),
            _ => Self::of(place, error).disconnecting(true),
        }
    }

    fn credentials(place: &str, error: &RedisError) -> Self {
        // The message may name the user, which is no secret; it never holds the password.
        let cure = "set the user and password in the store's URL: redis://USER:PASSWORD@HOST:PORT";
        Self::refused(place, error.to_string(), cure).disconnecting(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_of_another_layout_is_refused_with_what_to_do_about_it() {
        for (layout, cure) in [("1", "delete the keys"), ("3", "upgrade"), ("x", "upgrade")] {
            let error = Fault::layout("redis://there", layout).error.to_string();
            assert!(error.contains(cure), "{error}");
        }
    }
}
