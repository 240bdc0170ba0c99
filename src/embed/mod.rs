//! The library: a scheduler in a program of one's own, whose jobs are functions.
//!
//! ```text
//!  Builder, Job ── check ──▶ scheduler::job::Job, as of a table
//!      │                              │
//!      └─ start ──▶ Scheduler ─▶ supervisor ─▶ Driver ─▶ functions ─▶ attempt (a task each)
//!                      │                         │           └─ Context: lease, cancellation
//!                    Handle ─▶ orders, status    └─ events ─▶ Events
//! ```
//!
//! What may be called from outside is named in `lib.rs`; the rest of the crate can change from one
//! version to the next.
//!
//! Must never: decide about leases, or let a type of the inside into a signature.

mod attempt;
mod builder;
mod calendar;
mod check;
mod context;
mod course;
mod error;
mod events;
mod functions;
mod handle;
mod home;
mod job;
#[cfg(feature = "tokio-cron-scheduler")]
mod singletons;
mod store;
mod stretch;
mod supervisor;
mod views;

pub use self::builder::Builder;
pub use self::calendar::Calendar;
pub use self::context::{CancelReason, Cancelled, Context};
pub use self::error::{Error, Fault, Faults};
pub use self::events::{AttemptId, Event, Events};
pub use self::handle::{Handle, Scheduler, Shutdown};
pub use self::job::Job;
#[cfg(feature = "tokio-cron-scheduler")]
pub use self::singletons::Singletons;
pub use self::store::SharedStore;
pub use self::views::{EndedAttempt, JobStatus, LastAttempt, Paused, ReplicaStatus, State, Status};
