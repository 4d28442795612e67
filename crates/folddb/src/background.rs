//! Background work: flush, merge, reclaim, saving the indexes of hashed tables; when each is due, and on which thread.
//!
//! A file is one job and knows only its own duty. `scheduler` is the one room that knows all of them; `workers` has the
//! threads. What somebody asks for and waits for (`compact`, `reclaim_now`) stands above.

pub(crate) mod step;
pub(crate) mod ranges;
pub(crate) mod output;
pub(crate) mod summaries;
pub(crate) mod stale;
pub(crate) mod clean;
pub(crate) mod expire;
pub(crate) mod hash_checkpoint;
pub(crate) mod hash_sweep;
pub(crate) mod live_values;
pub(crate) mod hidden_values;
pub(crate) mod reclaim_report;
pub(crate) mod reclaim_job;
pub(crate) mod reclaiming;
pub(crate) mod dead_segments;
pub(crate) mod sweep_directories;
pub(crate) mod snapshot_files;
pub(crate) mod merge_job;
pub(crate) mod merges;
pub(crate) mod jobs;
pub(crate) mod drop_expired;
pub(crate) mod merge;
pub(crate) mod reclaim;
pub(crate) mod flush;
pub(crate) mod unflushed;
pub(crate) mod tidy;
pub(crate) mod scheduler;
pub(crate) mod workers;
pub(crate) mod compact;
pub(crate) mod reclaim_now;
