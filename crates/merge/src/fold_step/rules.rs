//! What a merge is told about the table and the moment, once.

use folddb_base::Seq;
use folddb_rules::{FoldRules, KeyOrder};

use crate::range_sweep::RangeDelete;

/// Answers yes or no for a key.
pub type KeyRule = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Whether nothing older than what the job sees exists.
pub enum BottomRule {
    /// The job sees the oldest run of the table: nothing older exists for any key.
    Always,
    /// Older runs may hold any of the keys.
    Never,
    /// True for the keys of which nothing older exists.
    ByKey(KeyRule),
}

impl BottomRule {
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        match self {
            BottomRule::Always => true,
            BottomRule::Never => false,
            BottomRule::ByKey(rule) => rule(key),
        }
    }
}

/// What a merge is told about the table and the moment, once.
pub struct StepRules {
    /// The order of the table's keys.
    pub order: KeyOrder,
    /// The fold of the table.
    pub fold: FoldRules,
    /// The seqs of the live snapshots, rising, taken after the inputs were frozen and published.
    pub boundaries: Vec<Seq>,
    /// The live range deletes of the table, in any order. They stay in force for readers of the
    /// output.
    pub range_deletes: Vec<RangeDelete>,
    /// Where nothing older exists.
    pub bottom: BottomRule,
}

/// What a merge is told of the past that it keeps, and of what has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// So many events of a key are kept as they are, but for the oldest of them, into which older
    /// ones fold: 1 keeps none.
    pub newest: u32,
    /// Events that are newer than this are kept as they are.
    pub since: Seq,
    /// What had expired by then goes; 0 where nothing may. The caller vouches that whoever wrote to
    /// a key of the inputs later than these, in a run or a memtable that is none of them, did so at
    /// this time or after it.
    pub sweep_ms: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { newest: 1, since: Seq::MAX, sweep_ms: 0 }
    }
}

impl Times {
    /// Whether any of the past is kept.
    pub(super) fn keeps_past(&self) -> bool {
        self.newest > 1 || self.since < Seq::MAX
    }
}
