//! Checks the summaries of the blocks of a part: their values are folded again while the part is
//! verified.

use folddb_base::{OpKind, Record, Result};
use folddb_rules::{Aggregate, FoldRules};
use folddb_run::Part;

/// The folds of the blocks so far.
#[derive(Default)]
pub(crate) struct Refolded {
    /// Where each block begins, and what its values fold to; none if they do not fold.
    blocks: Vec<(u64, Option<Aggregate>)>,
}

impl Refolded {
    /// Takes the next record, which is in the block at this offset.
    pub(crate) fn push(&mut self, rules: &FoldRules, offset: u64, record: &Record<'_>) {
        if self.blocks.last().is_none_or(|(begins, _)| *begins != offset) {
            self.blocks.push((offset, Some(Aggregate::default())));
        }
        let Some((_, block)) = self.blocks.last_mut() else { return };
        let folded = block.take().filter(|_| record.kind == OpKind::Set);
        *block = folded.and_then(|mut sum| sum.push(rules, record.payload).is_ok().then_some(sum));
    }

    /// The first block whose values fold to something other than its summary, by its offset. Valid
    /// if every block of the part was read.
    ///
    /// # Errors
    /// The summaries cannot be read.
    pub(crate) fn fault(&self, part: &Part) -> Result<Option<u64>> {
        let said = part.summaries()?.unwrap_or_default();
        let all = said.leaves.iter().flatten();
        let wrong = all.zip(&self.blocks).find(|(said, (_, folded))| {
            let said = said.as_ref().and_then(|said| said.fold.as_deref());
            said.is_some_and(|said| folded.as_ref().and_then(Aggregate::value) != Some(said))
        });
        Ok(wrong.map(|(_, (offset, _))| *offset))
    }
}
