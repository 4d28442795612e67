//! Writing: a batch is encoded, checked, given its place in the log, applied to memtables, and
//! published.

pub mod ops;
pub mod encoded_batch;
pub mod index_entries;
pub mod read_set;
pub mod hashed;
pub mod stall;
pub mod commit;
pub mod stream;
pub mod sync_later;
