//! What FoldDB is tested with.
//!
//! - [`model`]: what a store means, in a naive form; [`tables`]: the same for the rules of tables.
//! - [`program`]: random programs over the whole public interface; [`play`]: playing one on a store
//!   and on the model, which must agree after every action.
//! - [`everything`]: a store with every fold and every codec in it; [`fixtures`]: stores that all
//!   later versions must open.
//! - [`numbered`]: batches that show which of them a store has.
//! - [`threads`]: real threads at once, with a checker.
//! - [`faulty_files`]: files that run out of space and fail on command; [`world`]: a whole
//!   simulated world, whose power may fail.
//! - [`place`]: a temporary directory with a store in it.
//! - [`process`]: tests that are processes of their own, and what a process uses.
//! - [`openings`]: a store that is opened for every single write, as by a cron job.
//! - [`soak`]: processes that use a whole store, killed at any moment.
//!
//! - [`disaster`]: a small program, crashed at every moment and with every call failing.
//! - [`flips`]: a small store whose every byte is flipped in turn.
//! - [`harm`]: a small store whose files are cut, removed, swapped, or hold the bytes of others.
//!
//! A program that fails shrinks and prints itself; its seed is kept in `tests/model.rs` or
//! `tests/power.rs`. Longer runs: `cargo run -p folddb-sim --release --example programs -- --seeds
//! 1000`, and the example `disasters`.

#![forbid(unsafe_code)]

pub mod chance;
pub mod place;
pub mod faulty_files;
pub mod world;
pub mod small_store;
pub mod tables;
pub mod model;
pub mod program;
mod compare;
mod known;
mod replica;
pub mod play;
pub mod disaster;
pub mod numbered;
pub mod threads;
pub mod everything;
pub mod fixtures;
pub mod flips;
pub mod harm;
pub mod process;
pub mod soak;
pub mod openings;

/// The place for files of tests that sync very often: in memory, where the system has such a place,
/// so that they take seconds and not minutes. They do not test the disk.
pub fn memory_dir() -> std::path::PathBuf {
    let shared = std::path::Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}
