//! The facts about a store that advice depends on, and the advice.

use std::fmt;

use crate::maintenance::finding::Finding;
use crate::store::metrics::StoreStats;
use crate::table::stats::TableStats;
use folddb_engine::state::feed_state::FeedStats;

/// How severe an advice is: a scale of three, which will not get more steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Good to know.
    Minor,
    /// Something is slower or larger than necessary, or will soon fail.
    Costly,
    /// Something does not work, or data is at risk.
    Broken,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// Its severity.
    pub weight: Weight,
    /// What is wrong.
    pub what: String,
    /// What it costs.
    pub costs: String,
    /// What to do, with the command to run if there is one.
    pub todo: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Broken => "broken",
            Weight::Costly => "costly",
            Weight::Minor => "minor",
        };
        write!(f, "{weight}: {}\n  costs: {}\n  do:    {}", self.what, self.costs, self.todo)
    }
}

/// What is known about a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Its path, for commands.
    pub(crate) store: String,
    /// True if they are of an open store, and valid only while that is open.
    pub(crate) is_live: bool,
    /// The findings of verifying its files.
    pub(crate) findings: Vec<Finding>,
    /// Parts that this build cannot read.
    pub(crate) parts_unread: u64,
    /// No manifest lists what lives: a repair needs the list of a backup.
    pub(crate) needs_list: bool,
    /// Why it does not open, if it does not.
    pub(crate) refused: Option<String>,
    /// Its figures.
    pub(crate) stats: StoreStats,
    /// Its tables.
    pub(crate) tables: Vec<TableFacts>,
    /// Bytes free in the file system.
    pub(crate) free_bytes: u64,
    /// Bytes that must stay free for writes to be allowed.
    pub(crate) reserve_bytes: u64,
    /// What the store may use, if it has a bound.
    pub(crate) bytes_max: Option<u64>,
    /// Bytes of memory for blocks, leaves and filters of runs.
    pub(crate) cache_bytes: u64,
    /// How many runs of a tier are merged into one.
    pub(crate) merge_factor: usize,
    /// Bytes of runs that merges should have read already.
    pub(crate) overdue_bytes: u64,
    /// Bytes of memtables that wait to be flushed, and how many may.
    pub(crate) sealed_bytes: u64,
    /// Batches in an unclosed log, which an opening replays.
    pub(crate) batches_to_replay: u64,
    /// Intact batches at its end that the opening cuts instead.
    pub(crate) batches_cut: u64,
    /// Bytes of the segments of the log that memtables retain.
    pub(crate) log_bytes: u64,
    /// The size of the longest segment in bytes.
    pub(crate) segment_bytes: u64,
    /// Its feeds.
    pub(crate) feeds: Vec<FeedStats>,
}

/// What is known about a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableFacts {
    /// Its figures.
    pub(crate) stats: TableStats,
    /// Filter bits a key.
    pub(crate) filter_bits: u32,
    /// Which functions of its rules are not available, in words.
    pub(crate) missing: Option<String>,
    /// A value that its fold does not take, among the first rows of a closed store, in words.
    pub(crate) unfit: Option<String>,
    /// Its rules archive its log forever, but it is not archived.
    pub(crate) lacks_log: bool,
}
