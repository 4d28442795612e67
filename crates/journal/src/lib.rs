//! Floor 2 of FoldDB: the append-only history, the log.
//! Internal, no promises: `folddb` is the public API.
//!
//! ```text
//!   LSN     0           x            y            z
//!   log     |segment f3 |segment f7  |segment f8  |...     each segment may have another length
//!           [frames SEAL...]         ^ active     ^ made ahead by background work
//! ```
//!
//! A batch is one frame; [`Journal::append`] writes it to the kernel, mostly without a system call,
//! and [`JournalSync::sync_to`] makes it durable; one sync is for all threads that wait. [`replay`]
//! reads the frames, and distinguishes a torn tail, which it cuts, from damage, which is an error.
//! [`examine`] lists all damage and continues after it. The bytes are in `folddb_layout::{segment,
//! frame}`.
//!
//! Invariants:
//!
//! - LSNs grow, and each segment has a fixed range of them, full or not. Seqs have no gaps.
//! - Segments are written once. Recovery never appends to an existing one; it begins a fresh chain.
//! - Segments are synced in the order of their LSNs, so everything before `durable_lsn` is durable.
//! - After a failed write or sync nothing more is written: every later append and sync returns the
//!   first cause. A full disk is not a failure: that append did not happen, and a later one may
//!   succeed.
//! - Appends do nothing slow under their lock as long as [`JournalSync::background`] is called
//!   every few milliseconds. If that is late, an append makes the next segment itself.

#![forbid(unsafe_code)]

mod options;
mod growth;
mod segment_file;
mod tail;
mod ahead;
mod journal;
mod segment_reader;
mod replay;
mod examine;
pub mod archived_log;
pub mod follow;

pub use examine::{LogFault, LogReport, TornEnd, examine};
pub use journal::{Handover, Journal, JournalStart, JournalSync, SegmentFacts, SyncBefore};
pub use options::JournalOptions;
pub use replay::{LogEnd, ReplayFrame, ReplayFrom, Replayed, replay, replay_checked};

#[cfg(test)]
mod tests;
