//! The command as users meet it: the real binary, its output and its exit codes.

mod bad_input;
mod calendar_faults;
mod calendars;
mod commands;
mod comparison;
mod faults;
mod history;
mod http_faults;
mod orders;
mod policies;
mod policy_faults;
mod soloist;
mod surroundings;
mod why;
