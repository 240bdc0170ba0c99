//! The library as programs use it: by its facade alone, with functions for jobs; on a store in
//! memory by a clock that is told to go on, and on a real Redis.

#[cfg(feature = "tokio-cron-scheduler")]
mod adapter;
mod blocked;
mod by_the_clock;
mod calendars;
mod descriptors;
mod endings;
mod fleet;
mod orders;
mod redis;
mod refusals;
mod runtimes;
mod shutdown;
#[cfg(feature = "tokio-cron-scheduler")]
mod slow_start;
mod stretches;
mod world;
