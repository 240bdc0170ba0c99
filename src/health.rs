//! How a replica is: what probes, `status` and the service manager are told.
//!
//! Must never: hold a secret.

use std::time::Duration;

use crate::scheduler::time::Timestamp;

/// How a replica is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How far it has come.
    pub phase: Phase,
    /// Why the store doesn't answer, while it doesn't.
    pub store_away: Option<String>,
    /// The table that it goes by.
    pub table: TableHealth,
    /// The file with the API's tokens could not be read anew, and those from before stay in force.
    pub tokens_refused: Option<Refusal>,
    /// How many attempts run.
    pub running: usize,
}

/// How far a replica has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for the store, or makes its jobs known to it.
    Starting,
    /// It claims what falls due.
    Ready,
    /// It takes nothing new, and ends when nothing runs any more.
    Draining,
}

/// The table that a replica goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHealth {
    /// Its digest, as in `status`.
    pub digest: String,
    /// How many jobs it has that are not disabled.
    pub jobs: usize,
    /// Since when it goes by it.
    pub since: Timestamp,
    /// It is reading another one.
    pub reloading: bool,
    /// When it began to read another one, the last time that it did: on CLOCK_MONOTONIC, by which
    /// the service manager tells whether that was after it asked.
    pub reload_began: Option<Duration>,
    /// A newer one could not be read.
    pub refused: Option<Refusal>,
    /// How many times one was read since the start and taken, or refused.
    pub reloads: Reloads,
}

/// A table, or a file of tokens, that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When that was tried last.
    pub at: Timestamp,
    /// The first thing that is wrong with it, with its place.
    pub cause: String,
}

/// How many times a table was read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloads {
    /// And taken.
    pub taken: u64,
    /// And refused.
    pub refused: u64,
}

impl Health {
    /// Of a replica that has just begun, with a table.
    pub fn starting(digest: String, jobs: usize, now: Timestamp) -> Self {
        Self {
            phase: Phase::Starting,
            store_away: None,
            table: TableHealth {
                digest,
                jobs,
                since: now,
                reloading: false,
                reload_began: None,
                refused: None,
                reloads: Reloads::default(),
            },
            tokens_refused: None,
            running: 0,
        }
    }

    /// Why no work should be counted on from this replica; none when it is ready.
    pub fn unready(&self) -> Option<String> {
        match (self.phase, &self.store_away) {
            (Phase::Draining, _) => Some("draining: nothing new is started".to_owned()),
            (_, Some(cause)) => Some(format!("the store is away: {cause}")),
            (Phase::Starting, None) => Some("starting: jobs are made known to the store".into()),
            (Phase::Ready, None) => None,
        }
    }

    /// In a line, for the service manager.
    pub fn in_words(&self) -> String {
        let state = match self.unready() {
            Some(why) => why,
            None => format!(
                "ready: {} jobs, {} attempts running",
                self.table.jobs, self.running
            ),
        };
        let refusal = |what: &str, refusal: &Option<Refusal>| match refusal {
            Some(refusal) => format!("; {what} refused: {}", refusal.cause),
            None => String::new(),
        };
        let table = refusal("the new table was", &self.table.refused);
        let tokens = refusal("new tokens were", &self.tokens_refused);
        format!("{state}{table}{tokens}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Health {
        let health = Health::starting("0".into(), 3, Timestamp::from_second(0));
        Health {
            phase: Phase::Ready,
            ..health
        }
    }

    #[test]
    fn a_replica_is_ready_with_a_store_and_until_it_drains() {
        assert_eq!(ready().unready(), None);
        let mut one = ready();
        one.store_away = Some("refused".into());
        assert_eq!(one.unready().unwrap(), "the store is away: refused");
        one.phase = Phase::Draining;
        assert!(one.unready().unwrap().starts_with("draining"));
        let fresh = Health::starting("0".into(), 3, Timestamp::from_second(0));
        assert!(fresh.unready().unwrap().starts_with("starting"));
    }

    #[test]
    fn a_refused_table_is_told_and_keeps_nobody_from_being_ready() {
        let mut one = ready();
        one.table.refused = Some(Refusal {
            at: Timestamp::from_second(1),
            cause: "jobs.toml:3:1: unknown key".into(),
        });
        assert_eq!(one.unready(), None);
        assert_eq!(
            one.in_words(),
            "ready: 3 jobs, 0 attempts running; the new table was refused: jobs.toml:3:1: unknown key"
        );
    }

    #[test]
    fn refused_tokens_are_told_beside_whatever_else_is() {
        let mut one = ready();
        let refusal = |cause: &str| Refusal {
            at: Timestamp::from_second(1),
            cause: cause.into(),
        };
        one.tokens_refused = Some(refusal("line 1: no role"));
        assert_eq!(one.unready(), None);
        let state = "ready: 3 jobs, 0 attempts running";
        let told = format!("{state}; new tokens were refused: line 1: no role");
        assert_eq!(one.in_words(), told);
        one.table.refused = Some(refusal("x"));
        let both = "the new table was refused: x; new tokens were refused: line 1: no role";
        assert_eq!(one.in_words(), format!("{state}; {both}"));
    }
}
