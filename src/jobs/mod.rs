//! What makes a table of jobs sound, whether it was written in jobs.toml or in Rust: limits,
//! defaults, names, zones, calendars, contradictions; and in short what a table says.
//!
//! ```text
//!  config (jobs.toml) ─┐
//!                      ├─▶ jobs ─▶ scheduler
//!  embed (the builder) ┘
//! ```
//!
//! Must never: know how a job was written; where it stands and how to mend it there is said by
//! whoever read it.

pub(crate) mod calendars;
pub(crate) mod circles;
pub(crate) mod digest;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod rules;
pub(crate) mod tags;
pub(crate) mod zone;

/// Why a value is none of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    /// What is wrong with the text, made to follow it: "`5` has no unit".
    pub(crate) message: String,
    /// What to write instead.
    pub(crate) hint: String,
}
