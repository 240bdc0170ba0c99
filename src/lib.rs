//! A distributed cron: every replica of a service has the same
//! jobs, and each occurrence of a job runs on one replica alone, the one that wins its lease in a
//! store that all of them share (Redis or Valkey, a SQLite file, memory). If that replica dies, another
//! takes the occurrence over; if the lease can't be held, the job is ended before another may start it.
//!
//! This crate is the library under the `soloist` command. Embedded in a program of one's own, jobs are
//! async functions:
//!
//! ```
//! use std::time::Duration;
//!
//! use soloist::{Context, Job, Retry, Scheduler};
//! # use soloist::ManualClock;
//!
//! async fn close_expired_orders(ctx: Context) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//!     for order in [17, 23] {
//!         ctx.check()?; // May I still write? No round trip.
//!         println!("closing order {order} under token {}", ctx.fencing_token());
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), soloist::Error> {
//! # let clock = ManualClock::at("2026-11-20T22:00:30Z".parse().unwrap());
//! let scheduler = Scheduler::builder()
//!     .store("memory:") // for a fleet: redis://127.0.0.1:6379
//!     .namespace("shop")
//!     .job(
//!         Job::new("close-expired-orders", "* * * * *", close_expired_orders)
//!             .timeout(Duration::from_secs(50))
//!             .retry(Retry::times(3)),
//!     )
//! #   .clock(clock.clone())
//!     .start()
//!     .await?;
//!
//! # clock.advance(Duration::from_secs(60)).await;
//! # assert_eq!(scheduler.history(None, 10).await?.len(), 1);
//! // … the rest of the service …
//! scheduler.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | see |
//! |---|---|
//! | say what runs, when, and what becomes of failures | [`Job`], [`Calendar`] |
//! | say where: the store, the namespace, who this is | [`Builder`] |
//! | write a job that stops in time, and fence its writes | [`Context`] |
//! | trigger, pause, resume, kill; how jobs stand; the past | [`Handle`] |
//! | hear what happens | [`Events`] |
//! | have something for oneself by name, first come first served | [`Leases`], [`Lease`] |
//! | test jobs through a day of occurrences in a moment | [`ManualClock`], [`SharedStore`] |
//!
//! [`docs/embedding.md`](https://docs.rs/crate/soloist/latest/source/docs/embedding.md) goes through it
//! in five minutes, with what is not guaranteed; `docs/guarantees.md` has the assumptions.
//!
//! # Features
//!
//! Embedders switch the default off and name their store:
//! `soloist = { version = "0.1", default-features = false, features = ["redis"] }`.
//!
//! | feature | brings |
//! |---|---|
//! | (none) | the scheduler and a store in memory |
//! | `redis` | `redis://`, `unix:`, `redis+sentinel://`, `redis+cluster://`, `redis+quorum://`: Redis 7 and Valkey |
//! | `tls` | `rediss://`, by rustls and the system's certificates; implies `redis` |
//! | `sqlite` | `sqlite:PATH`, for replicas on one host; SQLite is built in, which takes a C compiler |
//! | `daemon` (default) | the `soloist` command: `jobs.toml`, processes as jobs, HTTP, metrics; implies `redis`, `sqlite`, `tls`, `http`. An embedder needs none of it |
//! | `http` | jobs that are HTTP requests; a part of `daemon` |
//! | `tokio-cron-scheduler` | `Singletons`: jobs of that crate's `JobScheduler` run once over all replicas |
//! | `otlp` | traces by OTLP; implies `daemon` |
//! | `tracing-appender` | nothing by itself: the name of a dependency of `daemon` |
//!
//! What happens is logged by `tracing`, a line each, with the fields `job`, `scheduled_at`, `attempt`,
//! `token` and `replica`; what a function logs is within a span `attempt` with the same fields.
//!
//! # What may change
//!
//! What stands here follows SemVer. The rest of the crate is hidden from this documentation: it is
//! `pub` for the command and for tests, and changes from one version to the next.

#![deny(missing_docs)]

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

// Dependencies run one way: `cli → daemon → http → driver → {store, runner, clock} → scheduler`,
// `cli → import → config → jobs → scheduler` and `embed → {driver, orders, store, jobs}`; `store_url`
// and `clock` are leaves that store and config share, `own_thread` is one of store, embed and leases,
// `tls_trouble` one of store and guardian; `why`
// knows `store` and `scheduler`; `verify` starts replicas from outside, and knows what it takes to judge
// them. `tests/tidy.rs` holds it.

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
#[doc(hidden)]
pub mod leases;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod metrics;
#[cfg(soloist_mutants)]
#[doc(hidden)]
pub mod mutants;
#[cfg(feature = "daemon")]
mod notify;
mod orders;
mod own_thread;
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
#[cfg(feature = "tokio-cron-scheduler")]
pub use crate::embed::Singletons;
pub use crate::embed::{
    AttemptId, Builder, Calendar, CancelReason, Cancelled, Context, EndedAttempt, Error, Event,
    Events, Fault, Faults, Handle, Job, JobStatus, LastAttempt, Paused, ReplicaStatus, Scheduler,
    SharedStore, Shutdown, State, Status,
};
pub use crate::scheduler::job::OnCrash;
pub use crate::scheduler::lease::{
    Busy, FencingToken, HeldName, LeaseName, LeaseNameError, Mode, NameState, Outcome, Sighting,
};
pub use crate::scheduler::policy::{CatchUp, Concurrency, Retry};
pub use crate::scheduler::schedule::{DstFold, DstGap};
pub use crate::scheduler::time::{BootTime, Timestamp};
pub use crate::store::StoreError;

/// The page for those who embed the crate: its first program is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
pub use crate::leases::{
    AcquireError, Acquisition, DEFAULT_TTL as DEFAULT_LEASE_TTL, Holder, Lease, LeaseLost, Leases,
};
