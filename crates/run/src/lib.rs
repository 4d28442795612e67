//! Floor 2 of FoldDB: immutable sorted runs.
//! Internal, no promises: `folddb` is the public API.
//!
//! A run is a sequence of parts, files of records in the total order with disjoint key ranges.
//! [`PartWriter`] makes one from a stream; [`Part::get`] finds the records of a key, [`PartCursor`]
//! and [`RunCursor`] walk them both ways; [`verify`] and [`examine`] check a file from end to end,
//! and [`search_blocks`] finds the blocks of a part without its index. Higher floors decide what is
//! visible, and what the records of a key resolve to. The modules are in bottom-up order.

#![forbid(unsafe_code)]

mod separators;
mod cache;
mod shared;
mod kept;
mod summary;
mod leading;
mod write;
mod part;
mod probe;
mod near;
mod part_get;
mod part_prefix;
mod extent;
mod gap_search;
mod window;
mod part_cursor;
mod run_cursor;
mod verify;
mod salvage;
#[cfg(test)]
mod tests;

pub use cache::BlockCache;
pub use extent::Extent;
pub use folddb_layout::block::Compression;
pub use folddb_layout::part::PartFacts;
pub use gap_search::GapSearch;
pub use leading::PrefixRange;
pub use near::Near;
pub use part::{Part, Rank, other_part};
pub use part_cursor::{PartCursor, ReadMode};
pub use probe::Probe;
pub use run_cursor::RunCursor;
pub use salvage::{Search, search_blocks};
pub use separators::Spans;
pub use shared::{PrefixTally, ReadStats, Shared, Tally};
pub use verify::{Depth, Fault, Inspect, KeySpan, examine, verify};
pub use write::{PartWriter, WriteOptions};
