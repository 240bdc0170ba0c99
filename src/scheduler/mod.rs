//! The pure core: given the time and an event, it decides what is to be done.

pub mod schedule;
pub mod time;
