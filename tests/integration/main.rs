//! Real replicas on a real store: what a fleet holds to, with figures. `--nocapture` shows them.
//!
//! What is measured is measured alone: such a test takes [`alone`], others take [`together`].

mod commands;
mod crash;
mod fleet;
mod http;
mod leftovers;
mod pid_one;
mod shop;
mod steady;
mod trouble;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// The machine for one test.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine shared with others that measure nothing fine.
fn together() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}
