//! Beside the floors of FoldDB: what it is tested with.
//!
//! - [`model`]: what a store means, told naively; [`tables`]: the same for the rules of tables.
//! - [`program`]: random programs over the whole public interface; [`play`]: playing one on a store and on the
//!   model, which must agree after every action.
//!
//! A program that fails shrinks and prints itself; its seed is kept in `tests/model.rs`. Longer runs:
//! `cargo run -p folddb-sim --release --example programs -- --seeds 1000`.

#![forbid(unsafe_code)]

pub mod chance;
pub mod tables;
pub mod model;
pub mod program;
pub mod play;
