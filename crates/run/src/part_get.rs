//! A get in one part: it first uses what is in memory about the key, and only then reads blocks.
//!
//! A get takes four steps, each in memory if there is room (`kept.rs`, else the cache), and none of
//! them copies or allocates:
//!
//! 1. top index, in memory: the one leaf that may have the key;
//! 2. filter partition of that leaf: mostly shows that an absent key is absent;
//! 3. leaf index block: the one data block;
//! 4. data block, searched in place.
//!
//! Step 1 is the probe, which also asks the processor for the line of step 2: a reader of several
//! runs first probes all of them. A reader of several keys takes all steps side by side
//! (`near.rs`).

use std::cell::Cell;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use folddb_base::{Record, Result, Seq};
use folddb_host::prefetch::prefetch;
use folddb_layout::block::{Block, BlockCursor, Place};

use crate::cache::Piece;
use crate::near::Near;
use crate::part::{Part, Rank, seek_block};
use crate::probe::{Probe, Says};
use crate::shared::{Tally, count};

/// In the oldest part the filter is read for one in this many keys, so that filters enter a cache
/// that has room for them.
const FILTER_READ_EVERY: u64 = 4;

/// Whether a get reads a filter that is not in memory.
fn asks_filter(rank: Rank, key_hash: u64) -> bool {
    rank != Rank::Oldest || key_hash.is_multiple_of(FILTER_READ_EVERY)
}

/// What a thread keeps from one get to the next, so that gets do not allocate.
struct Scratch {
    at: BlockCursor,
    /// The buffer for a block that bypasses the cache.
    stored: Vec<u8>,
}

/// A thread keeps no buffer that is longer than this, in bytes.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { at: BlockCursor::new(0), stored: Vec::new() }
    }
}

/// The block that a get searches.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack of one get")]
enum Found {
    Cached(Arc<Block>),
    /// Read for this get alone.
    Read(Block),
}

impl Deref for Found {
    type Target = Block;
    #[inline]
    fn deref(&self) -> &Block {
        match self {
            Found::Cached(block) => block,
            Found::Read(block) => block,
        }
    }
}

impl Scratch {
    /// Takes back the buffer of a block that was read for one get, unless the next one needs it.
    #[inline]
    fn put_back(&mut self, block: Found, near: Option<&mut Near<'_>>) {
        let Found::Read(block) = block else { return };
        let block = match near {
            Some(near) => near.keep(block),
            None => Some(block),
        };
        if let Some(block) = block {
            // The buffer keeps its length, so that it need not be zeroed before the next read.
            self.stored = block.into_bytes();
            self.stored.truncate(SCRATCH_BYTES_MAX);
            self.stored.shrink_to(SCRATCH_BYTES_MAX);
        }
    }
}

impl Part {
    /// Passes the records of `key` with a seq up to `max_seq` to `visit`, newest first, until it
    /// breaks. `key_hash` is `checksum::key_hash(key)`. Returns `Break` if it did.
    ///
    /// # Errors
    /// A read error, damage (naming file and offset), or an error of `visit`.
    pub fn get(
        &self,
        key: &[u8],
        key_hash: u64,
        max_seq: Seq,
        visit: &mut dyn FnMut(Record<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let mut tally = Tally::default();
        let flow = self.get_as(Rank::Young, key, key_hash, max_seq, &mut tally, visit);
        self.shared().count(&tally);
        flow
    }

    /// As [`Part::get`], for a reader that says whether there are older parts. It adds to `tally`;
    /// the reader passes that to [`Shared::count`](crate::Shared::count) at the end.
    ///
    /// # Errors
    /// As for [`Part::get`].
    pub fn get_as(
        &self,
        rank: Rank,
        key: &[u8],
        key_hash: u64,
        max_seq: Seq,
        tally: &mut Tally,
        visit: &mut dyn FnMut(Record<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let probe = self.probe(key, key_hash, max_seq);
        self.get_probed((probe, None), rank, key, key_hash, max_seq, tally, visit)
    }

    /// Finds the leaf of a key, and asks the processor for the line of its filter, if that is in
    /// memory; [`Part::get_probed`] continues. A reader of several runs probes all of them first,
    /// so that the waits for their memory overlap.
    #[inline(always)] // shared by two callers, it would cost each get 17 instructions a run
    pub fn probe(&self, key: &[u8], key_hash: u64, max_seq: Seq) -> Probe<'_> {
        let leaf = self.separators.bound(self.order(), key, false);
        let Some(entry) = self.frame().top.leaves.get(leaf) else {
            return Probe { leaf: 0, says: Says::Nothing };
        };
        let says = match entry.filter {
            _ if max_seq < self.facts().min_seq => Says::Nothing,
            None => Says::NoFilter,
            Some(number) => match self.kept.filter(number as usize).and_then(|kept| kept.line(key_hash)) {
                Some(line) => {
                    prefetch(line);
                    Says::Line(line)
                }
                None => Says::Ask,
            },
        };
        Probe { leaf: leaf as u32, says }
    }

    /// As [`Part::get_as`], for a reader that has probed the part with the same key, and may have
    /// come nearer to it.
    ///
    /// # Errors
    /// As for [`Part::get`].
    #[inline]
    pub fn get_probed(
        &self,
        (probe, near): (Probe<'_>, Option<&mut Near<'_>>),
        rank: Rank,
        key: &[u8],
        key_hash: u64,
        max_seq: Seq,
        tally: &mut Tally,
        visit: &mut dyn FnMut(Record<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let leaf = probe.leaf as usize;
        let admits = match probe.says {
            Says::Nothing => return Ok(ControlFlow::Continue(())),
            Says::NoFilter => None,
            Says::Line(line) => {
                tally.kept += 1;
                Some(line.may_contain(key_hash))
            }
            Says::Ask => self.cached_filter_admits(rank, leaf, key_hash)?,
        };
        match admits {
            Some(false) => {
                tally.filter_rejects += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Some(true) => tally.filter_passes += 1,
            None => {}
        }
        tally.kept += u64::from(self.kept.leaf(leaf).is_some());
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let flow = self.visit_key(near, rank, leaf, key, max_seq, &mut scratch, visit);
        SCRATCH.set(Some(scratch));
        flow
    }

    /// Asks the system for the filter and the leaf that a get of a probed key will read, as far as
    /// they are not in memory. Waits for nothing.
    pub fn ask_for_index(&self, probe: Probe<'_>, rank: Rank, key_hash: u64) {
        let leaf = probe.leaf as usize;
        let top = &self.frame().top;
        let (true, Some(entry)) = (probe.may_have(key_hash), top.leaves.get(leaf)) else { return };
        let filter = entry.filter.and_then(|number| top.filters.get(number as usize).copied());
        if let (Says::Ask, Some(place)) = (probe.says, filter)
            && asks_filter(rank, key_hash)
            && self.shared().peek(self.key_of(place)).is_none()
        {
            self.ask_for(place);
        }
        if self.leaf_in_memory(leaf, entry.place).is_none() {
            self.ask_for(entry.place);
        }
    }

    /// Asks the system for the block that a get of a probed key will read, if it is not in memory.
    /// Reads filter and leaf to know which one.
    ///
    /// # Errors
    /// Of these reads.
    pub fn ask_for_block(&self, probe: Probe<'_>, rank: Rank, key: &[u8], key_hash: u64) -> Result<()> {
        let leaf = probe.leaf as usize;
        let may_have = probe.may_have(key_hash)
            && !(probe.asks_filter() && self.cached_filter_admits(rank, leaf, key_hash)? == Some(false));
        if !may_have {
            return Ok(());
        }
        let leaf = self.leaf(rank, leaf)?;
        let number = leaf.separators.bound(self.order(), key, false);
        if let Some(&place) = leaf.places.get(number)
            && self.shared().peek(self.key_of(place)).is_none()
        {
            self.ask_for(place);
        }
        Ok(())
    }

    fn ask_for(&self, place: Place) {
        if let Ok(file) = self.file()
            && place.end() <= self.facts().file_bytes
        {
            file.will_need(place.offset, place.len_bytes.into());
        }
    }

    /// Whether a filter that is not kept admits the key; none if there is no filter, or if reading
    /// it is not worth it.
    #[inline(never)]
    pub(crate) fn cached_filter_admits(
        &self,
        rank: Rank,
        leaf: usize,
        key_hash: u64,
    ) -> Result<Option<bool>> {
        let top = &self.frame().top;
        let Some(number) = top.leaves.get(leaf).and_then(|entry| entry.filter) else { return Ok(None) };
        let number = number as usize;
        let Some(place) = top.filters.get(number).copied() else { return Ok(None) };
        if let Some(Piece::Filter(filter)) = self.shared().piece(self.key_of(place)) {
            count(&self.shared().counters().cache_hits, 1);
            return Ok(Some(filter.may_contain(key_hash)));
        }
        if !asks_filter(rank, key_hash) {
            return Ok(None);
        }
        count(&self.shared().counters().cache_misses, 1);
        let filter = self.read_filter(place)?;
        let admits = filter.may_contain(key_hash);
        self.keep_filter(rank, number, place, filter);
        Ok(Some(admits))
    }

    fn visit_key(
        &self,
        mut near: Option<&mut Near<'_>>,
        rank: Rank,
        mut leaf_number: usize,
        key: &[u8],
        max_seq: Seq,
        scratch: &mut Scratch,
        visit: &mut dyn FnMut(Record<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        scratch.at.set_implied_seq(self.facts().max_seq);
        while leaf_number < self.frame().top.leaves.len() {
            let looked_up;
            let leaf = match self.kept.leaf(leaf_number) {
                Some(leaf) => leaf,
                None => {
                    looked_up = self.leaf(rank, leaf_number)?;
                    &looked_up
                }
            };
            // Only the first block that is searched may be known.
            let mut near = near.take();
            let known = near.as_ref().and_then(|near| near.number());
            let mut number = known.unwrap_or_else(|| leaf.separators.bound(self.order(), key, false));
            while let Some(place) = leaf.places.get(number).copied() {
                let mut near = near.take();
                let cached = match &mut near {
                    Some(near) if known.is_some() => near.take_block(),
                    _ => self.block_in_cache(place),
                };
                let block = self.block_of_get(cached, place, &mut scratch.stored)?;
                let looked = self.visit_block(&block, place, key, max_seq, &mut scratch.at, visit)?;
                scratch.put_back(block, near);
                if let Some(flow) = looked {
                    return Ok(flow);
                }
                // The block ends with this key. The key has records in the next block only if the
                // separator equals it.
                if leaf.separators.get(number) != key {
                    return Ok(ControlFlow::Continue(()));
                }
                number += 1;
            }
            leaf_number += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits the records of `key` in a block. None if more of them may be in the next block.
    fn visit_block(
        &self,
        block: &Block,
        place: Place,
        key: &[u8],
        max_seq: Seq,
        at: &mut BlockCursor,
        visit: &mut dyn FnMut(Record<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<Option<ControlFlow<()>>> {
        let fault = |fault| self.damage(place, fault);
        at.enter(block);
        seek_block(at, block, self.order(), key, false).map_err(fault)?;
        while let Some(record) = at.record(block) {
            if record.key != key {
                return Ok(Some(ControlFlow::Continue(())));
            }
            if record.seq <= max_seq && visit(record)?.is_break() {
                return Ok(Some(ControlFlow::Break(())));
            }
            at.next(block).map_err(fault)?;
        }
        Ok(None)
    }

    /// The block of a get, if it was in the cache, or from the file. A block from the file enters
    /// the cache only if that has room, or if it is its turn (`DISPLACE_EVERY`); otherwise it uses
    /// the buffer `stored`.
    #[inline]
    fn block_of_get(&self, cached: Option<Arc<Block>>, place: Place, stored: &mut Vec<u8>) -> Result<Found> {
        if let Some(block) = cached {
            count(&self.shared().counters().cache_hits, 1);
            return Ok(Found::Cached(block));
        }
        if self.shared().counts_miss_to_keep() {
            let block = Arc::new(self.read_block(place)?);
            self.shared().keep_piece(self.key_of(place), Piece::Block(Arc::clone(&block)));
            return Ok(Found::Cached(block));
        }
        let mut stored = std::mem::take(stored);
        self.read_stored_into(place, &mut stored)?;
        let block = Block::open(stored, self.seed(place)).map_err(|fault| self.unread(place, fault))?;
        Ok(Found::Read(block))
    }
}
