//! Filters and leaves that a part keeps in memory. A get reads them without a look-up in the cache,
//! without a lock and without counting a reference, so that the waits for the memory of one run
//! overlap with those of the next.
//!
//! What is kept takes room from the cache ([`Shared::take_room`]), and gives it back when the part
//! is dropped. It is never evicted: the first pieces that are read are kept. The oldest runs have
//! the most pieces, so their pieces are kept only while less than half of the cache is taken. If
//! there is no room, a piece goes through the cache.
//!
//! Called by `part.rs`.

use std::sync::{Arc, OnceLock};

use folddb_layout::filter::Filter;
use folddb_layout::part::TopIndex;

use crate::separators::Leaf;
use crate::shared::Shared;

/// The pieces of one part that it keeps.
#[derive(Debug)]
pub(crate) struct Kept {
    filters: Box<[OnceLock<Filter>]>,
    leaves: Box<[OnceLock<Arc<Leaf>>]>,
}

impl Kept {
    /// Room for the pieces of a part; none is kept yet.
    pub(crate) fn new(top: &TopIndex) -> Kept {
        Kept {
            filters: top.filters.iter().map(|_| OnceLock::new()).collect(),
            leaves: top.leaves.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The filter partition of this number, if it is kept.
    #[inline]
    pub(crate) fn filter(&self, number: usize) -> Option<&Filter> {
        self.filters.get(number)?.get()
    }

    /// The leaf of this number, if it is kept.
    #[inline]
    pub(crate) fn leaf(&self, number: usize) -> Option<&Arc<Leaf>> {
        self.leaves.get(number)?.get()
    }

    /// Keeps a filter partition, or returns it, if there is no room for it or it is already kept.
    pub(crate) fn keep_filter(
        &self,
        shared: &Shared,
        is_oldest: bool,
        number: usize,
        filter: Filter,
    ) -> Result<(), Filter> {
        let Some(slot) = self.filters.get(number) else { return Err(filter) };
        keep(shared, is_oldest, filter.memory_bytes(), slot, filter)
    }

    /// Keeps a leaf, unless there is no room or it is already kept.
    pub(crate) fn keep_leaf(
        &self,
        shared: &Shared,
        is_oldest: bool,
        number: usize,
        leaf: &Arc<Leaf>,
    ) -> bool {
        let Some(slot) = self.leaves.get(number) else { return false };
        keep(shared, is_oldest, leaf.memory_bytes(), slot, Arc::clone(leaf)).is_ok()
    }

    /// Bytes that the kept pieces have taken from the cache.
    pub(crate) fn bytes(&self) -> usize {
        let filters = self.filters.iter().filter_map(OnceLock::get).map(Filter::memory_bytes);
        let leaves = self.leaves.iter().filter_map(OnceLock::get).map(|leaf| leaf.memory_bytes());
        filters.sum::<usize>() + leaves.sum::<usize>()
    }

    /// Bytes of the slots for pieces, filled or not.
    pub(crate) fn slots_bytes(&self) -> usize {
        size_of_val(&self.filters[..]) + size_of_val(&self.leaves[..])
    }
}

fn keep<T>(shared: &Shared, is_oldest: bool, bytes: usize, slot: &OnceLock<T>, piece: T) -> Result<(), T> {
    if !shared.take_room(bytes as u64, is_oldest) {
        return Err(piece);
    }
    // Another reader may have been here in the meantime.
    slot.set(piece).inspect_err(|_| shared.give_room_back(bytes as u64))
}
