//! What all parts of a store, or of several stores, share: the cache of blocks, the open files, the
//! counters.
//!
//! The cache is bounded by the bytes of decoded blocks and filters, those that parts keep at hand
//! (`kept.rs`) included; the open files by their number, so that a store of many parts stays within
//! the descriptors of its process. Whoever looks a piece up gets an `Arc`, so nothing is copied and
//! nothing is held locked while it is read.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use folddb_host::ReadFile;
use folddb_layout::block::Block;
use folddb_layout::filter::Filter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Lifecycle, OptionsBuilder, UnitWeighter, Weighter};

use crate::separators::Leaf;

/// A shard of the cache holds at least so many bytes, so that one filter partition is a small part
/// of it.
const SHARD_BYTES: u64 = 4 << 20;

/// Bytes that an item is taken to weigh, when the number of items is guessed.
const ITEM_BYTES: u64 = 8 << 10;

/// The first stretch that a reader ahead takes, in bytes.
pub(crate) const WINDOW_BYTES_MIN: u64 = 32 << 10;

/// The longest, in bytes, where there is memory enough.
const WINDOW_BYTES_MAX: u64 = 256 << 10;

/// A stretch is at most this share of the cache: a merge has one for each of its inputs, and
/// several merges may be under way.
const WINDOWS_IN_CACHE: u64 = 24;

/// The filters and leaves of a new part are put into the cache at once, where they are at most this
/// share of it.
const WARM_IN_CACHE: u64 = 16;

/// The blocks of a new part are, too, where they are at most this share of it.
const WARM_BLOCKS_IN_CACHE: u64 = 4;

/// Of so many eighths of the cache's room all parts together may keep pieces at hand.
const KEPT_EIGHTHS: u64 = 5;

/// Where those of the oldest runs end, so that the newer ones, which every get asks, find room
/// beside them.
const KEPT_EIGHTHS_OLDEST: u64 = 4;

/// Of the blocks that gets read while the cache is full, one in so many displaces another. Where
/// all blocks are asked equally often any choice of them is as good, and to displace costs as much
/// as a third of the read; those that are asked more often come into the cache soon enough.
const DISPLACE_EVERY: u64 = 4;

/// Shared by parts, for their whole life.
pub struct Shared {
    pieces: Cache<PieceKey, Piece, PieceWeight, PlaceHash, Displaced>,
    files: Cache<u64, Arc<dyn ReadFile>, UnitWeighter, PlaceHash>,
    counters: Counters,
    next_part: AtomicU64,
    /// Whether the cache has displaced something since room was given to it.
    is_full: Arc<AtomicBool>,
    /// Whether a get has read a block since parts were last asked to have theirs in the cache.
    is_read: AtomicBool,
    cache_bytes: AtomicU64,
    /// What parts keep at hand: so much less is the capacity of `pieces`.
    kept_bytes: AtomicU64,
    window_bytes_max: u64,
    warm_bytes_max: u64,
}

/// How much has been read since the beginning, and how well the cache and the filters do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Blocks and filter partitions read from files.
    pub pieces_read: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Pieces asked for that were in memory.
    pub cache_hits: u64,
    /// Pieces asked for that were not.
    pub cache_misses: u64,
    /// Keys that a filter knew to be absent.
    pub filter_rejects: u64,
    /// Keys that a filter let pass.
    pub filter_passes: u64,
    /// Bytes of blocks and filters in the cache now.
    pub cache_bytes: u64,
    /// Files open now.
    pub files_open: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) pieces_read: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) cache_misses: AtomicU64,
    pub(crate) filter_rejects: AtomicU64,
    pub(crate) filter_passes: AtomicU64,
}

#[inline]
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// What one search has met, counted together at its end: counting run by run would keep the
/// processor from looking into the next one while it waits for this one's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pieces that parts had at hand.
    pub(crate) kept: u64,
    pub(crate) filter_rejects: u64,
    pub(crate) filter_passes: u64,
}

/// What is in the cache.
#[derive(Clone)]
pub(crate) enum Piece {
    Block(Arc<Block>),
    Leaf(Arc<Leaf>),
    Filter(Arc<Filter>),
    /// Of a file that is no part.
    Page(Arc<[u8]>),
}

/// Which piece: of which part, by its own number within this `Shared`, and at which offset.
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

impl Shared {
    /// A cache of about `cache_bytes` bytes, and at most `files_open_max` open files at rest.
    /// Readers in the middle of a read may hold a few more.
    pub fn new(cache_bytes: u64, files_open_max: usize) -> Arc<Shared> {
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
        Arc::new(Shared {
            pieces: Cache::with_options(pieces, PieceWeight, PlaceHash, displaced),
            files: Cache::with_options(files, UnitWeighter, PlaceHash, DefaultLifecycle::default()),
            counters: Counters::default(),
            next_part: AtomicU64::new(0),
            is_full,
            is_read: AtomicBool::new(false),
            cache_bytes: AtomicU64::new(cache_bytes),
            kept_bytes: AtomicU64::new(0),
            window_bytes_max: (cache_bytes / WINDOWS_IN_CACHE).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX),
            warm_bytes_max: cache_bytes / WARM_IN_CACHE,
        })
    }

    /// Gives the cache room for about so many bytes from now on, if that is more than it has.
    pub fn grow_cache(&self, bytes: u64) {
        self.cache_bytes.fetch_max(bytes, Ordering::Relaxed);
        self.fit_cache();
        self.note_room();
    }

    /// What has been counted so far.
    pub fn stats(&self) -> ReadStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReadStats {
            pieces_read: get(&self.counters.pieces_read),
            bytes_read: get(&self.counters.bytes_read),
            cache_hits: get(&self.counters.cache_hits),
            cache_misses: get(&self.counters.cache_misses),
            filter_rejects: get(&self.counters.filter_rejects),
            filter_passes: get(&self.counters.filter_passes),
            cache_bytes: self.pieces.weight() + self.kept_bytes.load(Ordering::Relaxed),
            files_open: self.files.len() as u64,
        }
    }

    /// Adds what searches have met.
    pub fn count(&self, tally: &Tally) {
        for (counter, by) in [
            (&self.counters.cache_hits, tally.kept),
            (&self.counters.filter_rejects, tally.filter_rejects),
            (&self.counters.filter_passes, tally.filter_passes),
        ] {
            if by > 0 {
                count(counter, by);
            }
        }
    }

    /// What parts keep at hand.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    /// Takes room from the cache for a piece that a part keeps at hand. False where there is none
    /// to be had.
    pub(crate) fn take_room(&self, bytes: u64, is_oldest: bool) -> bool {
        let eighths = if is_oldest { KEPT_EIGHTHS_OLDEST } else { KEPT_EIGHTHS };
        let most = self.cache_bytes.load(Ordering::Relaxed) / 8 * eighths;
        let taken = self.kept_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
            Some(kept + bytes).filter(|sum| *sum <= most)
        });
        if taken.is_ok() {
            self.fit_cache();
        }
        taken.is_ok()
    }

    /// Gives such room back to the cache.
    pub(crate) fn give_room_back(&self, bytes: u64) {
        if bytes > 0 {
            self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.fit_cache();
            self.note_room();
        }
    }

    /// The cache has what is not kept. Of two who meet here the later one's bound may be the older
    /// by a piece; the next one sets it right.
    fn fit_cache(&self) {
        let cache_bytes = self.cache_bytes.load(Ordering::Relaxed);
        self.pieces.set_capacity(cache_bytes.saturating_sub(self.kept_bytes.load(Ordering::Relaxed)));
    }

    /// The page at `offset` of a file that is no part and has taken this number by
    /// [`Shared::number_file`]: from the cache, or by `read` into it.
    ///
    /// # Errors
    /// What `read` returns.
    pub fn page<E>(
        &self,
        file: u64,
        offset: u64,
        read: impl FnOnce() -> Result<Arc<[u8]>, E>,
    ) -> Result<Arc<[u8]>, E> {
        let key = PieceKey { part: file, offset };
        if let Some(Piece::Page(page)) = self.piece(key) {
            count(&self.counters.cache_hits, 1);
            return Ok(page);
        }
        count(&self.counters.cache_misses, 1);
        let page = read()?;
        count(&self.counters.pieces_read, 1);
        count(&self.counters.bytes_read, page.len() as u64);
        self.keep_piece(key, Piece::Page(Arc::clone(&page)));
        Ok(page)
    }

    /// Counts a block that the cache does not have. True when it is to be kept there.
    #[inline]
    pub(crate) fn counts_miss_to_keep(&self) -> bool {
        let misses = self.counters.cache_misses.fetch_add(1, Ordering::Relaxed);
        self.is_read.store(true, Ordering::Relaxed);
        !self.is_full.load(Ordering::Relaxed) || misses.is_multiple_of(DISPLACE_EVERY)
    }

    /// Whether a new part whose blocks take so many bytes is to have them in the cache: it is small
    /// beside it, and gets have had to read blocks since this was last asked.
    pub(crate) fn warms_blocks(&self, bytes: u64) -> bool {
        let most = self.cache_bytes.load(Ordering::Relaxed) / WARM_BLOCKS_IN_CACHE;
        bytes <= most && self.is_read.swap(false, Ordering::Relaxed)
    }

    fn note_room(&self) {
        if self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }

    /// A number for a file that is no part, whose pages are to be cached.
    pub fn number_file(&self) -> u64 {
        self.number_part()
    }

    /// Drops all that is cached and closes all files; what is in use lives on with its users.
    pub fn clear(&self) {
        self.pieces.clear();
        self.note_room();
        self.files.clear();
    }

    /// The longest stretch that a reader ahead holds.
    pub(crate) fn window_bytes_max(&self) -> u64 {
        self.window_bytes_max
    }

    /// The most filters and leaves of a part that are put into the cache before anybody has asked.
    pub(crate) fn warm_bytes_max(&self) -> u64 {
        self.warm_bytes_max
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A number that no other part of this `Shared` has, also not one of another store with the
    /// same file.
    pub(crate) fn number_part(&self) -> u64 {
        self.next_part.fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn piece(&self, key: PieceKey) -> Option<Piece> {
        self.pieces.get(&key)
    }

    /// Like [`Shared::piece`], for readers whose interest says nothing about the future.
    pub(crate) fn peek(&self, key: PieceKey) -> Option<Piece> {
        self.pieces.peek(&key)
    }

    pub(crate) fn keep_piece(&self, key: PieceKey, piece: Piece) {
        self.pieces.insert(key, piece);
    }

    pub(crate) fn forget_piece(&self, key: PieceKey) {
        if self.pieces.remove(&key).is_some() {
            self.note_room();
        }
    }

    pub(crate) fn file(&self, part: u64) -> Option<Arc<dyn ReadFile>> {
        self.files.get(&part)
    }

    pub(crate) fn keep_file(&self, part: u64, file: Arc<dyn ReadFile>) {
        self.files.insert(part, file);
    }

    pub(crate) fn close_file(&self, part: u64) {
        self.files.remove(&part);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(f)
    }
}

/// Notes that something was displaced; what that was goes outside of the cache's locks, as by
/// default.
#[derive(Clone)]
struct Displaced {
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
struct PieceWeight;

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

/// Hashes numbers by folded multiplication. Parts and offsets are not chosen by users, so no key is
/// needed.
#[derive(Clone, Copy, Default)]
struct PlaceHash;

impl BuildHasher for PlaceHash {
    type Hasher = PlaceHasher;
    #[inline]
    fn build_hasher(&self) -> PlaceHasher {
        PlaceHasher(0x243f_6a88_85a3_08d3)
    }
}

struct PlaceHasher(u64);

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
