//! Each policy by its decisive case on real replicas: processes of the real program on a real
//! store, jobs that write down when they ran, and what the ledger says of it.

mod busy;
mod edits;
mod late;
mod orders;
mod placement;
mod retries;
mod scene;
mod sequel;
mod spreading;
