//! The manifest, and the views of tables that follow it: how a change becomes durable, and then
//! what all readers see.

pub mod install;
pub mod feeds;
pub mod log_archive;
pub mod old_snapshots;
pub mod indexes;
pub mod alter;
