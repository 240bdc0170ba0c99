//! Real replicas on a real store: what a fleet holds to, with figures. `--nocapture` shows them.
//!
//! Tests start in the order of their names. The first, `closing`, takes five minutes, and others run
//! beside it.

mod clocks;
mod closing;
mod commands;
mod crash;
mod fleet;
mod http;
mod leftovers;
mod links;
mod orders;
mod pid_one;
mod policies;
mod reload;
mod rollout;
mod settings;
mod steady;
mod trouble;
mod upgrade;

use test_support::machine::{alone, together};
