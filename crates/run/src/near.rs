//! Keys that are read together, on their way to their blocks. A get waits for memory about ten
//! times, each time for what the one before has led to. So a reader of several keys takes one step
//! with all of them before the next with any: each step asks the processor for what the next one
//! reads, and the waits of the keys overlap.
//!
//! 1. the probe (`part_get.rs`): the leaf of the index, and the line of the filter;
//! 2. if the filter admits the key: the leaf;
//! 3. its separators;
//! 4. the place of the block;
//! 5. the block, from the cache;
//! 6. the columns of the block, where the key should be.
//!
//! Nothing is read from files, and no answer is given: a get that knows how near its key is begins
//! there. It stops early if a piece is not in memory.

use std::sync::Arc;

use folddb_host::prefetch::{prefetch, prefetch_all};
use folddb_layout::block::{Block, Place};
use folddb_rules::KeyOrder;

use crate::part::{Part, Rank};
use crate::probe::Probe;
use crate::separators::Leaf;

/// How near a key is to its block in one part: see the top of this file.
pub struct Near<'p> {
    part: &'p Part,
    leaf: usize,
    step: Step<'p>,
    /// Whether the next key is in the same block, as far as is known.
    is_shared: bool,
}

/// What was asked for last.
enum Step<'p> {
    Probed,
    Leaf(&'p Leaf),
    Separators(&'p Leaf),
    Place(&'p Leaf, usize),
    Block(At),
    /// The columns of the block, or nothing more: some piece is not in memory.
    End(Option<At>),
}

/// The block of a key: its number within the leaf, and its place.
struct At {
    number: usize,
    place: Place,
    /// None if the cache does not have it.
    block: Option<Arc<Block>>,
}

impl<'p> Near<'p> {
    /// How many steps there are after the probe.
    pub const STEPS: usize = 5;

    /// The way to a key that was probed; none if the part does not have it. A filter that is not in
    /// memory mostly rejects, except in the oldest part.
    #[inline]
    pub fn of(part: &'p Part, probe: Probe<'_>, rank: Rank, key_hash: u64) -> Option<Near<'p>> {
        let is_likely = probe.may_have(key_hash) && (rank == Rank::Oldest || !probe.asks_filter());
        is_likely.then(|| Near { part, leaf: probe.leaf(), step: Step::Probed, is_shared: false })
    }

    /// Takes the next step with the key that was probed.
    #[inline]
    pub fn step(&mut self, key: &[u8]) {
        let part = self.part;
        self.step = match std::mem::replace(&mut self.step, Step::End(None)) {
            Step::Probed => {
                let Some(leaf) = part.kept.leaf(self.leaf) else { return };
                prefetch_all(&**leaf);
                Step::Leaf(leaf)
            }
            Step::Leaf(leaf) => {
                leaf.separators.prefetch();
                Step::Separators(leaf)
            }
            Step::Separators(leaf) => {
                let number = leaf.separators.bound(part.order(), key, false);
                let Some(place) = leaf.places.get(number) else { return };
                prefetch(place);
                Step::Place(leaf, number)
            }
            Step::Place(leaf, number) => {
                let Some(&place) = leaf.places.get(number) else { return };
                let block = part.block_in_cache(place);
                if let Some(block) = &block {
                    prefetch_all(&**block);
                }
                Step::Block(At { number, place, block })
            }
            Step::Block(at) => {
                if let Some(block) = &at.block {
                    let is_descending = matches!(part.order(), KeyOrder::Reversed);
                    block.where_searched(key, is_descending).into_iter().for_each(prefetch_all);
                }
                Step::End(Some(at))
            }
            end @ Step::End(_) => end,
        };
    }

    /// Notes whether `next`, which is read after this key, needs the same block: a block that is
    /// read from the file for this one is then kept for it.
    pub fn note_next(&mut self, next: &Near<'_>) {
        self.is_shared = match (self.at(), next.at()) {
            (Some(at), Some(other)) => {
                other.block.is_none() && at.place == other.place && std::ptr::eq(self.part, next.part)
            }
            _ => false,
        };
    }

    /// After this key was read: passes its block on to the next, if they share it.
    pub fn pass_on(&mut self, next: &mut Near<'_>) {
        if self.is_shared
            && let (Step::End(Some(at)), Step::End(Some(other))) = (&mut self.step, &mut next.step)
        {
            other.block = at.block.take();
        }
    }

    fn at(&self) -> Option<&At> {
        match &self.step {
            Step::End(at) => at.as_ref(),
            _ => None,
        }
    }

    /// The number of the block within its leaf, if it is known.
    pub(crate) fn number(&self) -> Option<usize> {
        self.at().map(|at| at.number)
    }

    /// The block; none if it must be read.
    pub(crate) fn take_block(&mut self) -> Option<Arc<Block>> {
        match &mut self.step {
            Step::End(Some(at)) if self.is_shared => at.block.clone(),
            Step::End(Some(at)) => at.block.take(),
            _ => None,
        }
    }

    /// Takes a block that was read from the file, if the next key needs it; else returns it.
    pub(crate) fn keep(&mut self, block: Block) -> Option<Block> {
        match &mut self.step {
            Step::End(Some(at)) if self.is_shared => {
                at.block = Some(Arc::new(block));
                None
            }
            _ => Some(block),
        }
    }
}
