//! Background work: flush, merge, reclaim, saving the indexes of hashed tables; when each is due,
//! and on which thread.
//!
//! Each file is one job and knows only that, or answers a question of several jobs (`ranges`,
//! `summaries`, `expire`, `covered`). `scheduler` is the only module that knows all jobs; `workers`
//! has the threads. Jobs that a caller requests and waits for (`compact`, `reclaim_now`) are above
//! it.

pub mod step;
pub mod ranges;
pub mod output;
pub mod summaries;
pub mod stale;
pub mod clean;
pub mod expire;
pub mod covered;
pub mod hash_checkpoint;
pub mod hash_sweep;
pub mod live_values;
pub mod hidden_values;
pub mod reclaim_report;
pub mod reclaim_job;
pub mod reclaiming;
pub mod dead_segments;
pub mod sweep_directories;
pub mod snapshot_files;
pub mod merge_base;
pub mod split;
pub mod merge_job;
pub mod merges;
pub mod state;
pub mod drop_parts;
pub mod merge;
pub mod reclaim;
pub mod flush;
pub mod unflushed;
pub mod join_history;
pub mod tidy;
pub mod chunks;
pub mod log;
pub mod scheduler;
pub mod workers;
pub mod compact;
pub mod compact_range;
pub mod reclaim_now;
