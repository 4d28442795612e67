//! Gathers the summaries of the blocks of a part while it is written.
//!
//! A block has a summary only if each of its records is the only record of its key in the part, and
//! a complete state that is not deleted: a `Set` or a `SetSeparated`. A block with any other record
//! must be read. The folded value is left out if it is long, because reading it would cost more
//! than it saves, or if a value is separated.

use std::sync::Arc;

use folddb_base::{OpKind, Record};
use folddb_layout::summaries::{Summaries, Summary};
use folddb_rules::{Aggregate, FoldRules};

/// The folded value of a block is at most this fraction of the length of a block.
const FOLD_SHARE: usize = 8;

/// The longest folded value of a whole part, in bytes.
const TOTAL_FOLD_BYTES_MAX: usize = 64 << 10;

/// What is gathered so far.
pub(crate) struct Gathering {
    rules: Arc<FoldRules>,
    covers_many: bool,
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
    /// The folded value is not known.
    is_unfolded: bool,
}

impl Gathering {
    /// For blocks of this size, and values that fold by `rules`.
    pub(crate) fn new(rules: Arc<FoldRules>, block_bytes: usize) -> Gathering {
        let done = Summaries { leaves: vec![Vec::new()] };
        let (fold_bytes_max, block, total) = (block_bytes / FOLD_SHARE, Count::default(), Count::default());
        Gathering { covers_many: rules.covers_many(), rules, fold_bytes_max, block, done, total }
    }

    /// Takes the next record. `continues`: it has the key of the last one.
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
        self.block.is_unfolded |= self.block.is_mixed || record.kind != OpKind::Set || !self.covers_many;
        if !self.block.is_unfolded {
            self.block.is_unfolded = self.block.sum.push(&self.rules, record.payload).is_err();
        }
    }

    /// The current key has another record: no block that holds one of them has a summary.
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

    /// The current block ends.
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

    /// The current leaf ends.
    pub(crate) fn end_leaf(&mut self) {
        self.done.leaves.push(Vec::new());
    }

    /// The summaries of the blocks, and of all of them together. The last leaf has ended.
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
