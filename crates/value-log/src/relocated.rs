//! Files of relocated values: the live values of some segments of the value log, copied into one
//! file.
//!
//! ```text
//!   000012.values   | header | record | #### | record | #### |          # dead
//!   000031.values   | header | #### | #### | record |
//!   000044.moved    | header | record | record | record | map | top |   carries segments 12 and 31
//! ```
//!
//! Pointers do not change: the map says where each record is now. A [`RelocatedWriter`] writes such
//! a file once. A [`Source`] copies the records from an earlier file, and checks each of them. Then
//! the file is synced, and only after that may a manifest list it. The bytes are in
//! `folddb_layout::relocated`.

mod writer;
mod copy;
mod file;
mod salvage;

pub use copy::{CopyFault, Source};
pub use file::RelocatedFile;
pub use salvage::{open_damaged, read_past_errors, write_salvaged};
pub use writer::{RelocatedWriter, relocated_path};

#[cfg(test)]
#[path = "relocated/tests.rs"]
mod tests;
