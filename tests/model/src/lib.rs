//! The lease protocol as a model, the locks that it is to be better than, and a search of both to
//! the end of a stated bound. `docs/model.md` has what is in it, what isn't, and the figures.
//!
//! ```text
//!   scenarios ──▶ protocol │ locks ──▶ search (stateright) ──▶ report ──▶ docs/model.md
//! ```
//!
//! Must never: depend on the scheduler. `tests/rules.rs` holds the model's store against the real
//! rules, and could not if both were the same.

pub mod locks;
pub mod page;
pub mod protocol;
pub mod report;
pub mod scenarios;
pub mod search;
