//! Whether the blocks of a part come to what their summaries say: their values are folded once more
//! while the part is verified.

use folddb_base::{OpKind, Record, Result};
use folddb_rules::{Aggregate, FoldRules};
use folddb_run::Part;

/// What the blocks so far come to.
#[derive(Default)]
pub(crate) struct Refolded {
    /// Of each block where it begins, and what its values fold to; none where they do not.
    blocks: Vec<(u64, Option<Aggregate>)>,
}

impl Refolded {
    /// Takes the next record, which stands in the block at this offset.
    pub(crate) fn push(&mut self, rules: &FoldRules, offset: u64, record: &Record<'_>) {
        if self.blocks.last().is_none_or(|(begins, _)| *begins != offset) {
            self.blocks.push((offset, Some(Aggregate::default())));
        }
        let Some((_, block)) = self.blocks.last_mut() else { return };
        let folded = block.take().filter(|_| record.kind == OpKind::Set);
        *block = folded.and_then(|mut sum| sum.push(rules, record.payload).is_ok().then_some(sum));
    }

    /// The first block whose values fold to something else than the part says, by its offset. To be
    /// asked where each block of the part was read.
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
