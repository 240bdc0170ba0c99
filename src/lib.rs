//! One cron table on many machines: each occurrence of a job runs on one replica alone.
//!
//! The crate is a library under a thin binary. Dependencies run one way:
//! `cli → daemon → http → driver → {store, runner, clock} → scheduler`, and
//! `cli → import → config → scheduler`; `store_url` and `clock` are leaves that store and config
//! share, `tls_trouble` is one of store and guardian; `why` knows `store` and `scheduler`; `verify`
//! starts replicas from outside, and knows what it takes to judge them.
//! `tests/tidy.rs` holds it.

/// Whether a deliberate fault is on: see the module `mutants`.
macro_rules! mutant {
    ($fault:ident) => {{
        #[cfg(soloist_mutants)]
        let on = crate::mutants::is_on(crate::mutants::Mutant::$fault);
        #[cfg(not(soloist_mutants))]
        let on = false;
        on
    }};
}

#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod clock;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod config;
#[cfg(feature = "daemon")]
mod daemon;
#[doc(hidden)]
pub mod driver;
mod embed;
#[cfg(all(feature = "daemon", any(test, fuzzing)))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod guardian;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod health;
#[cfg(feature = "daemon")]
mod http;
#[cfg(feature = "http")]
mod http_client;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod import;
mod jobs;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod metrics;
#[cfg(soloist_mutants)]
#[doc(hidden)]
pub mod mutants;
#[cfg(feature = "daemon")]
mod notify;
mod orders;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod runner;
#[doc(hidden)]
pub mod scheduler;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod store_url;
#[cfg(any(feature = "http", feature = "tls"))]
mod tls_trouble;
#[cfg(feature = "otlp")]
#[doc(hidden)]
pub mod traces;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod verify;
#[cfg(feature = "daemon")]
mod views;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod why;

pub use crate::clock::{Clock, ManualClock, SystemClock};
pub use crate::embed::{
    AttemptId, Builder, CancelReason, Cancelled, Context, EndedAttempt, Error, Event, Events,
    Fault, Faults, Handle, Job, JobStatus, LastAttempt, Paused, ReplicaStatus, Scheduler,
    SharedStore, Shutdown, State, Status,
};
pub use crate::scheduler::job::OnCrash;
pub use crate::scheduler::lease::Outcome;
pub use crate::scheduler::policy::{CatchUp, Concurrency, Retry};
pub use crate::scheduler::schedule::{DstFold, DstGap};
pub use crate::scheduler::time::{BootTime, Timestamp};
