//! Floor 1 of FoldDB: bytes on disk, pure functions both ways.
//! Internal, no promises: `folddb` is the public API.
//!
//! Nothing here does I/O or knows the order of a table's keys. Decoders never panic on any bytes.

#![forbid(unsafe_code)]

pub mod file_name;
pub mod version;
pub mod segment;
pub mod frame;
pub mod feed_state;
pub mod manifest_edit;
pub mod block;
pub mod filter;
pub mod sketch;
pub mod liveness;
pub mod summaries;
pub mod part;
pub mod values;
pub mod relocated;
pub mod hash_checkpoint;
pub mod hash_changes;
pub mod hash_front;
pub mod backup;
pub mod cursor_token;
pub mod digest;
