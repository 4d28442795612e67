//! Floor 2 of FoldDB: the memtable, which holds the newest records of a table.
//! Internal, no promises: `folddb` is the public API.
//!
//! A write appends to the *tail* and searches nothing. A full tail (4096 records) is sorted, folded
//! within stripes and sealed into an immutable *chunk* with a small filter; background work merges
//! chunks of one generation into a larger one of the next. A flush sorts the chunks slice by slice
//! of the keys. Nothing is ever changed in place, so what a reader has captured never changes.
//!
//! ```text
//!   push ──> tail ──(full: sort, fold)──> chunk chunk ... ──(merge_step)──> larger chunk ──> flush
//!            hash of 8192 slots           filter of 10 bits a key
//! ```
//!
//! The engine calls [`Memtable::apply`] under its commit lock. Any thread may call
//! [`Memtable::get`] and [`Memtable::capture`]; they never wait for a writer. Background work calls
//! [`Memtable::merge_step`] and [`Memtable::stream`]. The modules are in bottom-up order.

#![forbid(unsafe_code)]

mod hash;
mod filter;
mod packed;
mod tail;
mod sort;
mod chunk;
mod front;
mod fold_stack;
mod seal;
mod kway;
mod slices;
mod capture;
mod merge_plan;
mod memtable;

pub use capture::{Captured, FlushStream, MemStream};
pub use kway::Jump;
pub use memtable::{Counts, Memtable, MemtableLimits, MemtableView, ReadAt, Seen, Whereabouts, Writer};
pub use tail::TailLimits;
