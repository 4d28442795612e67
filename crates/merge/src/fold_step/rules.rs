//! What a merge must know about its table. It is fixed when the merge begins.

use folddb_base::Seq;
use folddb_rules::{FoldRules, KeyOrder};

use crate::range_sweep::RangeDelete;

/// Answers yes or no for a key.
pub type KeyRule = Box<dyn Fn(&[u8]) -> bool + Send>;

/// For which keys nothing older exists than what the merge sees.
pub enum BottomRule {
    /// For all keys: the merge sees the oldest run of the table.
    Always,
    /// For no key: older runs may hold any of them.
    Never,
    /// For the keys for which this is true.
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

/// What a merge must know about its table. It is fixed when the merge begins.
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
    /// For which keys nothing older exists.
    pub bottom: BottomRule,
}

/// The past that a merge keeps, and what has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How many events of a key are kept. All but the oldest of them stay unchanged; older events
    /// fold into that one. 1 keeps no past.
    pub newest: u32,
    /// Events that are newer than this are kept unchanged.
    pub since: Seq,
    /// Values that had expired by this time are dropped; 0 if none may be dropped. The caller
    /// guarantees that every later write to a key of the inputs, in another run or a memtable, was
    /// made at this time or later.
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
