//! Gathers what the blocks of a part come to while it is written.
//!
//! A block says something only where each of its records is the whole state of a key that stands in
//! no other block: a `Set`, which hides what is older. All else makes its block one that must be
//! read. What the values fold to is left out where it is long, for it would cost more to read than
//! it spares.

use std::sync::Arc;

use folddb_base::{OpKind, Record};
use folddb_layout::summaries::{Summaries, Summary};
use folddb_rules::{Aggregate, FoldRules};

/// The fold of a block may take one byte in so many of it.
const FOLD_SHARE: usize = 8;

/// Longest fold of a whole part, in bytes.
const TOTAL_FOLD_BYTES_MAX: usize = 64 << 10;

/// What is gathered so far.
pub(crate) struct Gathering {
    rules: Arc<FoldRules>,
    tells_of_many: bool,
    fold_bytes_max: usize,
    block: Count,
    done: Summaries,
    total: Count,
}

/// Rows and values so far.
#[derive(Default)]
struct Count {
    rows: u64,
    sum: Aggregate,
    /// Some record is not a row by itself.
    is_mixed: bool,
    /// What the values fold to is not known.
    is_unfolded: bool,
}

impl Gathering {
    /// Nothing yet, of blocks of this size and values that fold by `rules`.
    pub(crate) fn new(rules: Arc<FoldRules>, block_bytes: usize) -> Gathering {
        let done = Summaries { leaves: vec![Vec::new()] };
        let (fold_bytes_max, block, total) = (block_bytes / FOLD_SHARE, Count::default(), Count::default());
        Gathering { tells_of_many: rules.tells_of_many(), rules, fold_bytes_max, block, done, total }
    }

    /// Takes in the next record, which may go on with the key of the last one.
    pub(crate) fn push(&mut self, record: &Record<'_>, continues: bool) {
        if continues {
            self.mix_last();
        }
        let is_row = match record.kind {
            OpKind::Set => !self.rules.is_deleted(record.key, record.payload),
            kind => kind == OpKind::SetSeparated,
        };
        self.block.rows += 1;
        self.block.is_mixed |= continues || !is_row;
        self.block.is_unfolded |= self.block.is_mixed || record.kind != OpKind::Set || !self.tells_of_many;
        if !self.block.is_unfolded {
            self.block.is_unfolded = self.block.sum.push(&self.rules, record.payload).is_err();
        }
    }

    /// The key under way has another record: no block that holds one of them says anything.
    fn mix_last(&mut self) {
        if self.block.rows > 0 {
            return;
        }
        let blocks = self.done.leaves.iter_mut().rev().find_map(|blocks| blocks.last_mut());
        if let Some(block) = blocks {
            *block = None;
        }
        self.total.is_mixed = true;
    }

    /// The block under way ends.
    pub(crate) fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block).summary(self.fold_bytes_max);
        match &block {
            Some(block) => self.total.add(&self.rules, block),
            None => self.total.is_mixed = true,
        }
        if let Some(blocks) = self.done.leaves.last_mut() {
            blocks.push(block);
        }
    }

    /// The leaf under way ends.
    pub(crate) fn end_leaf(&mut self) {
        self.done.leaves.push(Vec::new());
    }

    /// What the blocks come to, and all of them together. The last leaf has ended.
    pub(crate) fn finish(mut self) -> (Summaries, Option<Summary>) {
        self.done.leaves.pop();
        (self.done, self.total.summary(TOTAL_FOLD_BYTES_MAX))
    }
}

impl Count {
    fn add(&mut self, rules: &FoldRules, block: &Summary) {
        self.rows += block.rows;
        match &block.fold {
            Some(fold) if !self.is_unfolded => self.is_unfolded = self.sum.push(rules, fold).is_err(),
            _ => self.is_unfolded = true,
        }
    }

    fn summary(mut self, fold_bytes_max: usize) -> Option<Summary> {
        if self.is_mixed {
            return None;
        }
        let fold = self.sum.take().filter(|fold| !self.is_unfolded && fold.len() <= fold_bytes_max);
        Some(Summary { rows: self.rows, fold })
    }
}
