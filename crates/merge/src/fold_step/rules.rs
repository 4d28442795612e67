//! What a merge needs to know about its table and the moment, fixed when it begins.

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
    /// True for keys with nothing older.
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

/// What a merge needs to know about its table and the moment, fixed when it begins.
pub struct StepRules {
    /// The order of the table's keys.
    pub order: KeyOrder,
    /// The fold of the table.
    pub fold: FoldRules,
    /// The seqs of the live snapshots, ascending, taken after the inputs were frozen and published.
    pub boundaries: Vec<Seq>,
    /// The live range deletes of the table, in any order. They stay in force for readers of the
    /// output.
    pub range_deletes: Vec<RangeDelete>,
    /// Where nothing older exists.
    pub bottom: BottomRule,
}

/// The past that a merge keeps, and what has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// This many events of a key are kept unchanged, except the oldest of them, into which older
    /// ones fold: 1 keeps none.
    pub newest: u32,
    /// Events that are newer than this are kept unchanged.
    pub since: Seq,
    /// Values that had expired by this time are dropped; 0 if none may be. The caller guarantees
    /// that every later write to a key of the inputs, in another run or a memtable, was made at
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
