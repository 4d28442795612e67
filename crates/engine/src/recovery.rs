//! Opening a store: what the log and the manifest tell becomes an engine, for its one writer or for
//! a reader beside it.

pub mod format;
pub mod archived_tail;
pub mod secondary;
pub mod torn;
pub mod listed;
pub mod tables;
pub mod rewrites;
pub mod replay;
pub mod log;
pub mod install;
pub mod primary;
pub mod open;
