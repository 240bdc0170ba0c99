//! Closes unpaid orders and puts their stock back on sale, guarded by the fencing token.
fn main() {}
