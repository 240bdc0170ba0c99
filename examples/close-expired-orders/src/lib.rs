//! A shop whose orders take their stock when they are placed, and give it back when nobody pays for
//! them in time: closed once, whoever tries, however often.
//!
//! soloist runs the closing on one replica at a time. Still, a whole host may be paused in the middle
//! of a run (a virtual machine that is migrated or suspended) and wake up after its lease went to
//! another, with a write in flight. No scheduler can prevent that from the outside; the database can.
//! Every grant of a lease carries a fencing token higher than all before it, and each transaction here
//! first shows its token to the database, which refuses one that is lower than a token it has already
//! seen. The four lines that do so are `raise_fence` in `sqlite.rs` and in `postgres.rs`.
//!
//! The program of this package is the closing as a command; `shop-service`, beside it, has the same
//! shop in a web service.
//!
//! Must never: write on behalf of a job without having shown its token.

pub mod audit;
mod postgres;
pub mod shop;
mod sqlite;
