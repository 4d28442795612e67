//! The command line of FoldDB.
fn main() {}
