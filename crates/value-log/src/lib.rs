//! Floor 2 of FoldDB: the value log, which holds separated values.
//! Internal, no promises: `folddb` is the public API.
//!
//! ```text
//!   000012.values                 a segment: records one after the other            segment.rs, value_log.rs
//!   000031.shelf/000001.value     a segment that is a directory: a file each        directories.rs, long_value.rs
//!   000044.moved                  relocated values: the live ones of some segments     relocated.rs
//! ```
//!
//! A [`ValueLog`] writes values; [`ValueFiles`] says which file has a value, and reads it.
//!
//! A pointer leads to a unit of a segment of any kind. The value is written before the frame that
//! has the pointer, and [`ValueLog::sync`] makes it durable before that frame is durable. The bytes
//! are in `folddb_layout::{values, relocated}`.
//!
//! Invariants:
//!
//! - Segments are written once. A value log never appends to one that existed before it.
//! - Pointers lead only to segments that the manifest lists: the owner of the value log makes a
//!   segment, lists it durably, and only then hands it over.
//! - A value that is read is checked against its pointer. A mismatch is damage, and the error names
//!   file and offset.
//! - After a failed write or sync nothing more is written: every later append and sync returns the
//!   first cause. A full disk is not a failure: that append did not happen, and a later one may
//!   succeed.

#![forbid(unsafe_code)]

pub mod segment;
pub mod relocated;
pub mod long_value;
pub mod directories;
mod value_log;
pub mod value_file;
mod segment_map;
mod value_files;

pub use segment::ValuesEnd;
pub use segment_map::SegmentMap;
pub use value_file::ValueFile;
pub use value_files::ValueFiles;
pub use value_log::{OpenValues, ValueLog, ValueOptions};

#[cfg(test)]
#[path = "../../journal/src/tests/world.rs"]
mod world;
