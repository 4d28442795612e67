//! Opening a store: what the log and the manifest tell becomes an engine, for its one writer or for a reader beside it.

pub mod format;
pub mod archived_tail;

pub mod secondary;
pub mod primary;
pub mod open;
