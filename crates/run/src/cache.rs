//! The cache of one store, or of several that share it: blocks, leaves and filters by place, and
//! open files.
//!
//! The bound counts decoded bytes, including what parts keep in memory (`kept.rs`); open files are
//! bounded by their number. Each store has a number in the cache, which is part of the keys of its
//! pieces, so that a store that is closed drops its own pieces and no others.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use folddb_host::ReadFile;
use folddb_layout::block::Block;
use folddb_layout::filter::Filter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Lifecycle, OptionsBuilder, UnitWeighter, Weighter};

use crate::separators::Leaf;

/// A shard of the cache holds at least this many bytes, so that one filter partition is a small
/// part of it.
const SHARD_BYTES: u64 = 4 << 20;

/// The assumed size of an item in bytes, to estimate the number of items.
const ITEM_BYTES: u64 = 8 << 10;

/// The first read-ahead window, in bytes.
pub(crate) const WINDOW_BYTES_MIN: u64 = 32 << 10;

/// The longest window, in bytes, if there is enough memory.
const WINDOW_BYTES_MAX: u64 = 256 << 10;

/// A window is at most this share of the cache: a merge has one for each of its inputs, and several
/// merges may be running.
const WINDOWS_IN_CACHE: u64 = 24;

/// The filters and leaves of a new part are put into the cache at once if they are at most this
/// share of it.
const WARM_IN_CACHE: u64 = 16;

/// The same share for the blocks of a new part.
const WARM_BLOCKS_IN_CACHE: u64 = 4;

/// All parts together may keep pieces in memory up to this many eighths of the cache.
const KEPT_EIGHTHS: u64 = 5;

/// The same limit for pieces of the oldest runs. It is lower, so that there is room for pieces of
/// newer runs, which every get reads.
const KEPT_EIGHTHS_OLDEST: u64 = 4;

/// While the cache is full, one in this many blocks that gets read enters it. If all blocks are
/// read equally often, it does not matter which are in the cache, and an eviction costs a third of
/// a read. Blocks that are read more often still enter the cache soon.
const DISPLACE_EVERY: u64 = 4;

/// The low bits of the number of a part, which count within its store. The bits above are the
/// number of the store.
const PART_BITS: u32 = 40;

/// The cache of one store, or of several.
pub struct BlockCache {
    pub(crate) pieces: Cache<PieceKey, Piece, PieceWeight, PlaceHash, Displaced>,
    pub(crate) files: Cache<u64, Arc<dyn ReadFile>, UnitWeighter, PlaceHash>,
    /// Whether the cache has evicted something since room was given to it.
    is_full: Arc<AtomicBool>,
    /// Whether a get has read a block since the blocks of a new part were last put into the cache.
    is_read: AtomicBool,
    cache_bytes: AtomicU64,
    /// Bytes that parts keep in memory: the capacity of `pieces` is reduced by them.
    kept_bytes: AtomicU64,
    next_store: AtomicU64,
    /// Stores that use it now.
    merges: AtomicU64,
}

/// What is in the cache.
#[derive(Clone)]
pub(crate) enum Piece {
    Block(Arc<Block>),
    Leaf(Arc<Leaf>),
    Filter(Arc<Filter>),
    /// A page of a file that is not a part.
    Page(Arc<[u8]>),
}

/// The key of a piece: the number of its part within this cache, and its offset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PieceKey {
    pub(crate) part: u64,
    pub(crate) offset: u64,
}

impl Hash for PieceKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.part);
        state.write_u64(self.offset);
    }
}

impl BlockCache {
    /// A cache of about `cache_bytes` bytes, which keeps at most `files_open_max` files open.
    /// Readers in the middle of a read may hold a few more.
    pub fn new(cache_bytes: u64, files_open_max: usize) -> Arc<BlockCache> {
        let files_open_max = files_open_max.max(1);
        let pieces = OptionsBuilder::new()
            .shards((cache_bytes / SHARD_BYTES).clamp(1, 64) as usize)
            .estimated_items_capacity((cache_bytes / ITEM_BYTES).max(16) as usize)
            .weight_capacity(cache_bytes)
            .build()
            .expect("all required settings are given");
        let files = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(files_open_max)
            .weight_capacity(files_open_max as u64)
            .build()
            .expect("all required settings are given");
        let is_full = Arc::new(AtomicBool::new(false));
        let displaced = Displaced { is_full: Arc::clone(&is_full) };
        Arc::new(BlockCache {
            pieces: Cache::with_options(pieces, PieceWeight, PlaceHash, displaced),
            files: Cache::with_options(files, UnitWeighter, PlaceHash, DefaultLifecycle::default()),
            is_full,
            is_read: AtomicBool::new(false),
            cache_bytes: AtomicU64::new(cache_bytes),
            kept_bytes: AtomicU64::new(0),
            next_store: AtomicU64::new(0),
            merges: AtomicU64::new(0),
        })
    }

    /// Bytes that are in it now, including what parts keep in memory.
    pub fn bytes(&self) -> u64 {
        self.pieces.weight() + self.kept_bytes()
    }

    /// Bytes that parts keep in memory.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    /// Registers a store; returns the first number for its parts.
    pub(crate) fn enter(&self) -> u64 {
        self.merges.fetch_add(1, Ordering::Relaxed);
        self.next_store.fetch_add(1, Ordering::Relaxed) << PART_BITS
    }

    /// Forgets a registered store.
    pub(crate) fn leave(&self, first_part: u64, merges: u64) {
        self.clear(first_part);
        self.merges.fetch_sub(merges, Ordering::Relaxed);
    }

    /// Drops everything that is cached for a store and closes its files. Pieces and files in use
    /// are freed by their last user.
    fn clear(&self, first_part: u64) {
        let is_others = |part: u64| part >> PART_BITS != first_part >> PART_BITS;
        self.pieces.retain(|key, _| is_others(key.part));
        self.files.retain(|part, _| is_others(*part));
        self.note_room();
    }

    /// Gives the cache room for about this many bytes from now on, if that is more than it has.
    pub(crate) fn grow(&self, bytes: u64) {
        self.cache_bytes.fetch_max(bytes, Ordering::Relaxed);
        self.fit();
        self.note_room();
    }

    /// Takes room from the cache for a piece that a part keeps in memory. False if there is none.
    pub(crate) fn take_room(&self, bytes: u64, is_oldest: bool) -> bool {
        let eighths = if is_oldest { KEPT_EIGHTHS_OLDEST } else { KEPT_EIGHTHS };
        let most = self.cache_bytes.load(Ordering::Relaxed) / 8 * eighths;
        let taken = self.kept_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
            Some(kept + bytes).filter(|sum| *sum <= most)
        });
        if taken.is_ok() {
            self.fit();
        }
        taken.is_ok()
    }

    /// Gives room that [`BlockCache::take_room`] took back to the cache.
    pub(crate) fn give_room_back(&self, bytes: u64) {
        if bytes > 0 {
            self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.fit();
            self.note_room();
        }
    }

    /// Sets the capacity for pieces to what parts do not keep. If two threads do this at the same
    /// time, the older value may win, which differs by one piece; the next call corrects it.
    fn fit(&self) {
        let cache_bytes = self.cache_bytes.load(Ordering::Relaxed);
        self.pieces.set_capacity(cache_bytes.saturating_sub(self.kept_bytes()));
    }

    /// Whether to keep a block that was not in the cache. `misses` is the number of misses before
    /// it.
    #[inline]
    pub(crate) fn keeps_miss(&self, misses: u64) -> bool {
        self.is_read.store(true, Ordering::Relaxed);
        !self.is_full.load(Ordering::Relaxed) || misses.is_multiple_of(DISPLACE_EVERY)
    }

    /// Whether to put the blocks of a new part into the cache. They take `bytes`. True if that is
    /// little compared with the cache, and gets have had to read blocks since it was last true.
    pub(crate) fn warms_blocks(&self, bytes: u64) -> bool {
        let most = self.cache_bytes.load(Ordering::Relaxed) / WARM_BLOCKS_IN_CACHE;
        bytes <= most && self.is_read.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn note_room(&self) {
        if self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }

    /// Counts merges that a store may have running, in addition to one.
    pub(crate) fn add_merges(&self, merges: u64) {
        self.merges.fetch_add(merges, Ordering::Relaxed);
    }

    /// The longest read-ahead window, in bytes. Each store may have a merge running, or several.
    pub(crate) fn window_bytes_max(&self) -> u64 {
        let merges = self.merges.load(Ordering::Relaxed).max(1);
        let cache_bytes = self.cache_bytes.load(Ordering::Relaxed);
        (cache_bytes / (WINDOWS_IN_CACHE * merges)).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
    }

    /// The most bytes of filters and leaves of a new part that are put into the cache before any
    /// reader needs them.
    pub(crate) fn warm_bytes_max(&self) -> u64 {
        self.cache_bytes.load(Ordering::Relaxed) / WARM_IN_CACHE
    }
}

/// Notes that the cache has evicted something. The piece is dropped outside of the locks of the
/// cache, as by default.
#[derive(Clone)]
pub(crate) struct Displaced {
    is_full: Arc<AtomicBool>,
}

impl Lifecycle<PieceKey, Piece> for Displaced {
    type RequestState = <DefaultLifecycle<PieceKey, Piece> as Lifecycle<PieceKey, Piece>>::RequestState;
    #[inline]
    fn on_evict(&self, state: &mut Self::RequestState, key: PieceKey, piece: Piece) {
        self.is_full.store(true, Ordering::Relaxed);
        DefaultLifecycle::default().on_evict(state, key, piece);
    }
}

#[derive(Clone)]
pub(crate) struct PieceWeight;

impl Weighter<PieceKey, Piece> for PieceWeight {
    fn weight(&self, _key: &PieceKey, piece: &Piece) -> u64 {
        match piece {
            Piece::Block(block) => block.memory_bytes() as u64,
            Piece::Leaf(leaf) => leaf.memory_bytes() as u64,
            Piece::Filter(filter) => filter.memory_bytes() as u64,
            Piece::Page(page) => page.len() as u64,
        }
    }
}

/// Hashes numbers by folded multiplication. Users do not choose parts and offsets, so no key is
/// needed.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlaceHash;

impl BuildHasher for PlaceHash {
    type Hasher = PlaceHasher;
    #[inline]
    fn build_hasher(&self) -> PlaceHasher {
        PlaceHasher(0x243f_6a88_85a3_08d3)
    }
}

pub(crate) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0xf39c_c060_5ced_c835_u128;
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
