//! What becomes of jobs' processes, whatever dies, freezes or is cut off: real daemons, real
//! signals, trees of processes that do their best to get away. `--show-output` shows the figures.
//!
//! Seen from outside alone: the daemon's child `job-guardian` and its children `job-keeper` are
//! known by name, and nothing else of how they work.

mod ending;
mod failures;
mod figures;
mod frozen;
mod init;
mod killed;
mod leak;
mod leftovers;
mod output;
mod replaced;
mod scene;
mod surroundings;
