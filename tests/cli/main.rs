//! The command as users meet it: the real binary, its output and its exit codes.

mod bad_input;
mod broken_table;
mod calendar_faults;
mod calendars;
mod commands;
mod comparison;
mod faults;
mod healthcheck;
mod history;
mod http_faults;
mod import;
mod include;
mod manual;
mod orders;
mod policies;
mod policy_faults;
mod schema;
mod soloist;
mod surroundings;
mod terminal;
mod watch;
mod why;
