//! Floor 2 of FoldDB: the index of a hashed table.
//! Internal, no promises: `folddb` is the public API.
//!
//! It says for each key where its value is, in about fourteen bytes of memory, without storing the
//! key. It is saved shard by shard while writers continue, and loaded shard by shard when it is
//! first used, so that opening reads only a directory; shards that are saved and have not changed
//! may leave memory again. Changes after the save are replayed from the log.
//!
//! ```text
//!   key ──hash──> point ──> sector (a lock) ──> shard (a range of points) ──> line ──> slot: address, size class
//! ```
//!
//! The index compares points, not keys: a look-up returns candidates, nearly always none or the
//! right one, and the caller reads the record and compares the key. It knows no files except its
//! checkpoints, no clock and no table. The modules are in bottom-up order.

#![forbid(unsafe_code)]

mod slot;
mod line;
mod sheets;
mod shard;
mod undone;
mod checkpoint;
mod changes;
mod sector;
mod index;
#[cfg(test)]
mod tests;

pub use changes::{Made, changes_bytes, load_changes, write_changes};
pub use checkpoint::{Checkpoint, CheckpointFacts, CheckpointWriter, SegmentTally};
pub use index::{HashIndex, IndexCursor, IndexFacts, IndexOptions, IndexRange, Past};
pub use shard::Change;
pub use slot::{Point, SizeClass, Slot, false_candidates};
