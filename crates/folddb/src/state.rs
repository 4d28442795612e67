//! What an open store is: its data and its locks, with no verbs. Whatever is done to a store is a function of a room
//! above.

pub(crate) mod bell;
pub(crate) mod counters;
pub(crate) mod numbers;
pub(crate) mod health;
pub(crate) mod debt;
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
pub(crate) mod committer;
pub(crate) mod manifest;
pub(crate) mod times;
pub(crate) mod feed_state;
pub(crate) mod value_state;
pub(crate) mod work;
pub(crate) mod engine;
pub(crate) mod clock;
pub(crate) mod log_sync;
pub(crate) mod pressure;
