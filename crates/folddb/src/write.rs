//! Writing: a batch is encoded, checked, given its place in the log, applied to memtables, and published.

pub(crate) mod ops;
pub(crate) mod encoded_batch;
pub(crate) mod index_entries;
pub(crate) mod read_set;
pub(crate) mod hashed;
pub(crate) mod stall;
pub(crate) mod commit;
pub(crate) mod stream;
