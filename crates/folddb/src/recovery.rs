//! Opening a store: what the log and the manifest tell becomes an engine, for its one writer or for a reader beside it.

pub(crate) mod format;
pub(crate) mod kept_tail;

pub(crate) mod secondary;
pub(crate) mod primary;
pub(crate) mod open;
