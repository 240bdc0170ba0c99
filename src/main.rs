//! The `soloist` command; everything it does lives in the library.

fn main() {}
