//! What an open store is: its data and its locks, with no verbs. Whatever is done to a store is a function of a room
//! above.

pub(crate) mod counters;
pub(crate) mod health;
pub(crate) mod disk_quota;
pub(crate) mod range_deletes;
pub(crate) mod empty_ranges;
pub(crate) mod value_files;
pub(crate) mod view;
pub(crate) mod hash_files;
pub(crate) mod hash_index;
pub(crate) mod catalog;
pub(crate) mod pinned_files;
pub(crate) mod snapshots;
pub(crate) mod engine;
pub(crate) mod clock;
pub(crate) mod feed_state;
