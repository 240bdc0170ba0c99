//! One cron table on many machines: each occurrence of a job runs on one replica alone.
//!
//! The crate is a library under a thin binary. Dependencies run one way:
//! `cli → driver → {store, runner, clock} → scheduler`, and `config → scheduler`; `store_url` and
//! `clock` are leaves that store and config share, `tls_trouble` is one of store and guardian; `why`
//! knows `store` and `scheduler`. `tests/tidy.rs` holds it.

#[cfg(feature = "daemon")]
pub mod cli;
pub mod clock;
#[cfg(feature = "daemon")]
pub mod config;
pub mod driver;
pub mod guardian;
pub mod runner;
pub mod scheduler;
pub mod store;
pub mod store_url;
#[cfg(any(feature = "http", feature = "tls"))]
mod tls_trouble;
pub mod why;
