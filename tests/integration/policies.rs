//! Each policy by its decisive case on real replicas: processes of the real program on a real
//! store, jobs that write down when they ran, and what the ledger says of it. Each is on one store,
//! Redis or a file in turn: that a policy is the same on all of them, `tests/tables` shows.

mod busy;
mod edits;
mod late;
mod orders;
mod placement;
mod retries;
mod scene;
mod sequel;
mod spreading;
