//! Which chunks to merge next. A pure function.
//!
//! Chunks are in order, oldest first, and their generations never rise from old to new. When
//! `factor` neighbors have one generation, the oldest `factor` of them become one chunk of the
//! next. So there are at most `factor - 1` of each generation, and a get searches a logarithmic
//! number of chunks. Readers may ask for all chunks to become one; it is of the oldest generation.
//!
//! A chunk with records newer than the last boundary is not merged yet: a new boundary may still
//! come between its records.

use std::fmt;
use std::ops::Range;

use folddb_base::Seq;

/// The most bytes of records in a merged chunk, so that offsets fit 32 bits.
const MERGED_BYTES_MAX: usize = 1 << 30;

/// What a plan needs to know of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkFacts {
    pub(crate) generation: u32,
    pub(crate) records: usize,
    pub(crate) bytes: usize,
    pub(crate) base_seq: Seq,
    pub(crate) max_seq: Seq,
}

/// Merge the chunks of `range` (indexes, oldest first) into one of `generation`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergePlan {
    pub(crate) range: Range<usize>,
    pub(crate) generation: u32,
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl fmt::Display for MergePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MergePlan { range, generation, records, bytes } = self;
        write!(f, "chunks {range:?} into generation {generation}: {records} records, {bytes} bytes")
    }
}

/// The next merge, if there is one. The newest chunks first: their merges are the smallest.
pub(crate) fn plan_merge(chunks: &[ChunkFacts], factor: usize, last_boundary: Seq) -> Option<MergePlan> {
    let factor = factor.max(2);
    let settled = settled(chunks, last_boundary);
    let mut end = settled.len();
    for equals in settled.chunk_by(|a, b| a.generation == b.generation).rev() {
        let start = end - equals.len();
        end = start;
        let Some(inputs) = equals.get(..factor) else { continue };
        if fit_together(inputs) {
            return Some(merge_of(inputs, start, inputs[0].generation + 1));
        }
    }
    None
}

/// The merge of all chunks, if there are several.
pub(crate) fn plan_whole(chunks: &[ChunkFacts], last_boundary: Seq) -> Option<MergePlan> {
    let inputs = settled(chunks, last_boundary);
    if inputs.len() < 2 || !fit_together(inputs) {
        return None;
    }
    Some(merge_of(inputs, 0, inputs[0].generation))
}

/// The chunks without records newer than the last boundary.
fn settled(chunks: &[ChunkFacts], last_boundary: Seq) -> &[ChunkFacts] {
    let count = chunks.iter().take_while(|chunk| chunk.max_seq <= last_boundary).count();
    &chunks[..count]
}

/// Whether the bytes and seqs of a merged chunk fit their fields.
fn fit_together(inputs: &[ChunkFacts]) -> bool {
    let bytes: usize = inputs.iter().map(|chunk| chunk.bytes).sum();
    let oldest = inputs.iter().map(|chunk| chunk.base_seq).min().unwrap_or(0);
    let newest = inputs.iter().map(|chunk| chunk.max_seq).max().unwrap_or(0);
    bytes <= MERGED_BYTES_MAX && newest - oldest <= Seq::from(u32::MAX)
}

fn merge_of(inputs: &[ChunkFacts], start: usize, generation: u32) -> MergePlan {
    MergePlan {
        range: start..start + inputs.len(),
        generation,
        records: inputs.iter().map(|chunk| chunk.records).sum(),
        bytes: inputs.iter().map(|chunk| chunk.bytes).sum(),
    }
}

#[cfg(test)]
#[path = "merge_plan/tests.rs"]
mod tests;
