//! Beside the floors of FoldDB: what it is tested with.
//!
//! - [`model`]: what a store means, told naively; [`tables`]: the same for the rules of tables.
//! - [`program`]: random programs over the whole public interface; [`play`]: playing one on a store and on the
//!   model, which must agree after every action.
//! - [`numbered`]: batches that tell which of them are there.
//! - [`faulty_files`]: files that run out of space and fail on command.
//!
//! A program that fails shrinks and prints itself; its seed is kept in `tests/model.rs`. Longer runs:
//! `cargo run -p folddb-sim --release --example programs -- --seeds 1000`.

#![forbid(unsafe_code)]

pub mod chance;
pub mod tables;
pub mod model;
pub mod program;
pub mod play;
pub mod numbered;
pub mod faulty_files;

/// Where tests that sync very often put their files: in memory, where the system has such a place, so that they
/// take seconds and not minutes. What they test is not the disk.
pub fn memory_dir() -> std::path::PathBuf {
    let shared = std::path::Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}
