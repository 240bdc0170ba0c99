//! What went wrong on the wire, told by its code: what the caller hears, and whether the
//! connection can still be used. [`TABLE`] has every code that is known; one that isn't is as if
//! the server were away.
//!
//! Must never: go by the free text of a message, or take an error for an answer.

use redis::RedisError;

use super::keys::CURRENT_LAYOUT;
use super::reply::Misread;
use crate::store::StoreError;
use crate::store::draft::CURE_OF_UNREADABLE;

/// An error of the store, and what it means for the connection.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    /// The connection is of no use any more, or leads to the wrong server.
    pub(super) disconnect: bool,
    /// The user may lack a permission; which one, [`super::access`] finds out.
    pub(super) denied: bool,
}

impl Fault {
    pub(super) fn unreachable(place: &str, cause: impl Into<String>) -> Self {
        let (place, cause) = (place.to_owned(), cause.into());
        Self {
            error: StoreError::Unreachable { place, cause },
            disconnect: true,
            denied: false,
        }
    }

    pub(super) fn refused(place: &str, cause: impl Into<String>, cure: impl Into<String>) -> Self {
        let (place, cause, cure) = (place.to_owned(), cause.into(), cure.into());
        Self {
            error: StoreError::Refused { place, cause, cure },
            disconnect: false,
            denied: false,
        }
    }

    pub(super) fn unreadable(place: &str, cause: impl Into<String>) -> Self {
        let (place, cause) = (place.to_owned(), cause.into());
        let cure = CURE_OF_UNREADABLE.to_owned();
        Self {
            error: StoreError::Unreadable { place, cause, cure },
            disconnect: false,
            denied: false,
        }
    }

    /// The ledger is in a layout that this version doesn't write: it is left alone, so that
    /// those who do go on, and is asked for again, as it may be this version's by then.
    pub(super) fn layout(place: &str, layout: &str) -> Self {
        let cause = format!("its ledger has layout {layout}, and not {CURRENT_LAYOUT}");
        let number = |text: &str| text.parse::<u64>().ok();
        let older = number(layout) < number(CURRENT_LAYOUT) && number(layout).is_some();
        let cure = match older {
            true => {
                "an older soloist wrote it, which this one waits for: stop all replicas of that \
                 version, and choose another namespace or delete the keys of this one; a new \
                 ledger begins then"
            }
            false => {
                "a newer soloist wrote it: upgrade this one, or choose another namespace; until \
                 then it waits"
            }
        };
        let (place, cure) = (place.to_owned(), cure.to_owned());
        Self {
            error: StoreError::OtherVersion { place, cause, cure },
            disconnect: false,
            denied: false,
        }
    }

    /// A reply could not be read.
    pub(super) fn misread(place: &str, misread: &Misread) -> Self {
        match misread {
            Misread::Layout(layout) => Self::layout(place, layout),
            Misread::Step(fault) => Self {
                error: fault.at(place),
                disconnect: false,
                denied: false,
            },
            Misread::Form => Self::unreadable(place, "a script's reply in another form"),
        }
    }

    /// The connection is of no use any more.
    pub(super) fn disconnecting(self) -> Self {
        let disconnect = true;
        Self { disconnect, ..self }
    }

    /// What an error in answer to a command means.
    pub(super) fn of(place: &str, error: &RedisError) -> Self {
        match error.code() {
            None if error.is_io_error() => {
                Self::unreachable(place, format!("the connection broke off ({error})"))
            }
            None => Self::unreachable(place, error.to_string()),
            Some(code) if row(code).is_some() => Self::of_code(place, code),
            // How servers before 7.2 say that a script may not do what the user may not.
            Some("ERR") => Self {
                denied: true,
                ..Self::refused(place, error.to_string(), UNKNOWN)
            },
            Some("NOPERM") => Self {
                denied: true,
                ..Self::refused(
                    place,
                    error.to_string(),
                    "see docs/redis.md for what soloist needs",
                )
            },
            Some(_) => Self::unreachable(place, error.to_string()),
        }
    }

    /// What a code of the table means.
    pub(super) fn of_code(place: &str, code: &str) -> Self {
        let Some(row) = row(code) else {
            return Self::unreachable(place, code).disconnecting();
        };
        let cause = format!("{} ({code})", row.cause);
        let fault = match row.reaction {
            Reaction::Wait | Reaction::Reconnect => {
                Self::unreachable(place, format!("{cause}: {}", row.cure))
            }
            Reaction::GiveUp | Reaction::LeaveAndGiveUp => Self::refused(place, cause, row.cure),
        };
        let disconnect = matches!(row.reaction, Reaction::Reconnect | Reaction::LeaveAndGiveUp);
        Self {
            disconnect,
            ..fault
        }
    }
}

/// What is done about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// As if the server were away: it passes by itself, and the connection is good.
    Wait,
    /// The same, but another connection may find a server that does better.
    Reconnect,
    /// Told as a refusal: somebody has to do something.
    GiveUp,
    /// The same, and the connection is of no use either.
    LeaveAndGiveUp,
}

/// An error code, and what is to be made of it.
struct Row {
    code: &'static str,
    reaction: Reaction,
    cause: &'static str,
    cure: &'static str,
}

const fn on(
    code: &'static str,
    reaction: Reaction,
    cause: &'static str,
    cure: &'static str,
) -> Row {
    Row {
        code,
        reaction,
        cause,
        cure,
    }
}

/// How credentials are given.
pub(super) const CREDENTIALS: &str = "set user and password in the store's URL, redis://USER:PASSWORD@HOST:PORT, with `@`, `/`, `?` and `#` percent-encoded";

const UNKNOWN: &str = "no cure is known; the server's own log may say more";

const OF_A_CLUSTER: &str = "it is a node of a cluster, and not the one that has our keys";
const NOT_A_CLUSTER: &str = "name the cluster in the store's URL, redis+cluster://HOST:PORT";

/// What each code means. `NOSCRIPT` is here for a server that forgets a script that it was just
/// sent: else the script is sent once more, and nobody hears of it.
const TABLE: [Row; 19] = [
    on(
        "READONLY",
        Reaction::Reconnect,
        "it is a read-only replica",
        "name its master in the store's URL, or promote it",
    ),
    on(
        "LOADING",
        Reaction::Reconnect,
        "it is still loading its data",
        "wait; its log says how far it is",
    ),
    on(
        "MASTERDOWN",
        Reaction::Reconnect,
        "it is a replica without its master",
        "name a master in the store's URL, or promote it",
    ),
    on(
        "CLUSTERDOWN",
        Reaction::Reconnect,
        "its cluster is down",
        "see what CLUSTER INFO says, and bring back the nodes that are missing",
    ),
    on(
        "NOSCRIPT",
        Reaction::Reconnect,
        "it forgets scripts as soon as it has them",
        "find who runs SCRIPT FLUSH over and over",
    ),
    on(
        "BUSY",
        Reaction::Wait,
        "it is busy with somebody's script",
        "SCRIPT KILL ends one that has written nothing; CLIENT LIST tells whose it is",
    ),
    on(
        "NOREPLICAS",
        Reaction::Wait,
        "it has too few replicas to take writes",
        "bring them back, or lower min-replicas-to-write",
    ),
    on(
        "TRYAGAIN",
        Reaction::Wait,
        "its cluster is moving our keys",
        "wait",
    ),
    on(
        "OOM",
        Reaction::GiveUp,
        "it is out of memory (maxmemory)",
        "raise maxmemory, or delete what fills it; running jobs keep their leases meanwhile",
    ),
    on(
        "MISCONF",
        Reaction::GiveUp,
        "it can't save to disk and takes no writes",
        "mend its disk, as its log says; stop-writes-on-bgsave-error has it write all the same",
    ),
    on(
        "QUORUM",
        Reaction::GiveUp,
        "it holds this namespace together with other servers",
        "name all of them in the store's URL, redis+quorum://, as the other replicas do; to leave a quorum, stop all replicas and choose another namespace",
    ),
    on(
        "WRONGTYPE",
        Reaction::GiveUp,
        "one of soloist's keys holds something else",
        "something else uses soloist's keys: choose another namespace, or delete them",
    ),
    on("MOVED", Reaction::GiveUp, OF_A_CLUSTER, NOT_A_CLUSTER),
    on("ASK", Reaction::GiveUp, OF_A_CLUSTER, NOT_A_CLUSTER),
    on("CROSSSLOT", Reaction::GiveUp, OF_A_CLUSTER, NOT_A_CLUSTER),
    on(
        "NOAUTH",
        Reaction::LeaveAndGiveUp,
        "it asks for a password",
        CREDENTIALS,
    ),
    on(
        "WRONGPASS",
        Reaction::LeaveAndGiveUp,
        "the password is wrong, or there is no such user",
        CREDENTIALS,
    ),
    on(
        "DENIED",
        Reaction::LeaveAndGiveUp,
        "it is in protected mode and takes nobody from another host",
        "set a password there (`requirepass`, or a user by ACL SETUSER), and name it in the store's URL",
    ),
    on(
        "NOPROTO",
        Reaction::LeaveAndGiveUp,
        "it speaks neither RESP2 nor, for news of a cluster, RESP3",
        "use Redis 7.0, Valkey 7.2 or newer",
    ),
];

fn row(code: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_there_once_with_cause_and_cure() {
        let codes: std::collections::HashSet<&str> = TABLE.iter().map(|row| row.code).collect();
        assert_eq!(codes.len(), TABLE.len());
        for row in &TABLE {
            let said = Fault::of_code("redis://there", row.code).error.to_string();
            for part in [row.code, row.cause, row.cure] {
                assert!(said.contains(part), "{said}");
            }
        }
    }

    /// No server that is new enough says so to us; something in between might.
    #[test]
    fn a_server_of_another_protocol_is_refused_and_left() {
        let answer = redis::parse_redis_value(b"-NOPROTO unsupported protocol version\r\n");
        let error = answer.unwrap().extract_error().unwrap_err();
        let fault = Fault::of("redis://there", &error);
        assert!(matches!(fault.error, StoreError::Refused { .. }));
        assert!(fault.disconnect && !fault.denied);
        let said = fault.error.to_string();
        assert!(
            said.contains("NOPROTO") && said.contains("Redis 7.0"),
            "{said}"
        );
    }

    #[test]
    fn the_manual_has_every_code() {
        let manual = include_str!("../../../docs/redis.md");
        for row in &TABLE {
            assert!(manual.contains(&format!("`{}`", row.code)), "{}", row.code);
        }
    }

    #[test]
    fn a_ledger_of_another_layout_is_told_with_what_to_do_about_it() {
        for (layout, cure) in [("1", "delete the keys"), ("3", "upgrade"), ("x", "upgrade")] {
            let error = Fault::layout("redis://there", layout).error.to_string();
            assert!(error.contains(cure), "{error}");
        }
    }
}
