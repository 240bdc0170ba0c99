//! The daemon as a service: what it tells the service manager and the journal, the units, and the
//! package that brings them.

mod journal;
mod manager;
mod package;
mod protocol;
mod units;
