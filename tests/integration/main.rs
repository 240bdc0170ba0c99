//! Real replicas on a real store: what a fleet holds to, with figures. `--nocapture` shows them.

mod commands;
mod crash;
mod fleet;
mod http;
mod leftovers;
mod links;
mod orders;
mod pid_one;
mod policies;
mod shop;
mod steady;
mod trouble;

use test_support::machine::{alone, together};
