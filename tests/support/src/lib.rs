//! Real servers for tests. Each one is started by the test that needs it, on a port of its own
//! and in a directory of its own, and ends with the test process, however that ends.
//!
//! A server program that is not installed fails the test, and the message says what installs it:
//! a test that skips itself proves nothing.

pub mod account;
pub mod acl;
mod c;
pub mod cgroup;
pub mod clock_shim;
pub mod closed;
pub mod dice;
pub mod family;
pub mod fleet;
pub mod hold;
pub mod machine;
pub mod postgres;
pub mod probe;
pub mod process;
pub mod redis;
pub mod redis_many;
pub mod redis_model;
pub mod redis_program;
pub mod relay;
mod resp;
pub mod schema;
