//! Opening a store: builds an engine from the log and the manifest, for its one writer or for a
//! secondary.

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
