//! A flash sale: many buyers at once, few items, one for each. What is decided in which place:
//!
//! ```text
//!            open, close: under a lease, fenced        buy: one script
//!                  │            │                            │
//!                  ▼            ▼                            ▼
//!   books.db ◀──────────▶ {flash-sale:NAME}:sale, :buyers, :orders
//!        ▲                                                   │
//!        └────────────────── drain: a consumer group ◀───────┘
//! ```
//!
//! A lease for each purchase would be a queue of ten thousand; one script is one round trip. The
//! lease is for what happens once and takes several steps in two systems: see [`trade`].
//!
//! Must never: say that something is sold which is not.

pub mod books;
pub mod drain;
mod error;
pub mod moment;
pub mod report;
pub mod sale;
pub mod trade;

pub use self::error::SaleError;
