//! The state of an open store: its data and its locks, without verbs. Operations on a store are
//! functions of modules above.

pub mod counters;
pub mod latency;
pub mod sync_waiters;
pub mod numbers;
pub mod health;
pub mod event_queue;
pub mod debt;
pub mod disk_quota;
pub mod range_deletes;
pub mod empty_ranges;
pub mod repeats;
pub mod chunk_reads;
pub mod coverage;
pub mod view;
pub mod key_range;
pub mod hash_files;
pub mod hash_index;
pub mod catalog;
pub mod pinned_files;
pub mod snapshots;
pub mod committer;
pub mod manifest;
pub mod write_times;
pub mod feed_state;
pub mod value_state;
pub mod tables_at_work;
pub mod engine;
pub mod timing;
pub mod clock;
pub mod log_sync;
pub mod pressure;
