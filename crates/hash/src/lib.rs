//! Floor 2 of FoldDB: the index of a hashed table.
//! Internal, no promises: `folddb` is the public API.
//!
//! It says for each key where its value lies, in about fourteen bytes of memory and none for the
//! bytes of the key. It is saved beside, shard by shard while writers go on, and loaded shard by
//! shard when it is first used, so that opening reads a directory only; what is saved and has not
//! changed may leave memory again. What came after it was saved is replayed from the journal.
//!
//! ```text
//!   key ──hash──> point ──> sector (a lock) ──> shard (a range of points) ──> line ──> slot: address, size class
//! ```
//!
//! The index compares points, not keys: a look-up gives candidates, nearly always none or the one,
//! and whoever asked reads the record and compares the key. It knows no file but its checkpoints,
//! no clock and no table. The modules stand bottom-up.

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
