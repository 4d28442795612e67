//! The manifest, and the views of tables that follow it: how a change becomes durable, and then what all readers see.

pub(crate) mod install;
pub(crate) mod feeds;
pub(crate) mod log_archive;
pub(crate) mod old_snapshots;
pub(crate) mod indexes;
