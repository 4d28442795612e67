//! What all parts of a store share: the cache, which other stores may use as well, and the
//! counters.
//!
//! A look-up of a piece returns an `Arc`, so nothing is copied, and no lock is held while the piece
//! is read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use folddb_host::ReadFile;

use crate::cache::{BlockCache, Piece, PieceKey};

/// See the top of this file.
pub struct Shared {
    cache: Arc<BlockCache>,
    counters: Counters,
    /// Where the numbers of its parts begin.
    first_part: u64,
    next_part: AtomicU64,
    /// How many merges it may have running.
    merges: u64,
    has_left: AtomicBool,
}

/// How much has been read since the store was opened, and how well the cache and the filters work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Blocks, leaves, filter partitions and other pieces that were read from files. A read-ahead
    /// window counts as one.
    pub pieces_read: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Requested pieces that were in the cache or kept by their part.
    pub cache_hits: u64,
    /// Requested pieces that were not.
    pub cache_misses: u64,
    /// Keys that a filter knew to be absent.
    pub filter_rejects: u64,
    /// Keys that a filter let pass.
    pub filter_passes: u64,
    /// As many of those were not there.
    pub filter_false_passes: u64,
    /// What filters have said to scans of prefixes.
    pub prefixes: PrefixTally,
    /// Bytes in the cache now, of all stores that use it, including what parts keep in memory.
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
    pub(crate) filter_false_passes: AtomicU64,
    pub(crate) prefix_rejects: AtomicU64,
    pub(crate) prefix_passes: AtomicU64,
    pub(crate) prefix_false_passes: AtomicU64,
}

#[inline]
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// What one search has met. It is counted once, at its end: with a counter for each run, the
/// processor could not work on the next run while it waits for the memory of this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pieces that parts had in memory.
    pub(crate) kept: u64,
    pub(crate) filter_rejects: u64,
    pub(crate) filter_passes: u64,
    pub(crate) filter_false_passes: u64,
}

/// What the filters of parts have said to scans of prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixTally {
    /// Parts that they knew to have no such key.
    pub rejects: u64,
    /// Parts that they let pass.
    pub passes: u64,
    /// As many of those had no such key.
    pub false_passes: u64,
}

impl Tally {
    /// How often a filter has admitted the key.
    #[inline]
    pub fn filter_passes(&self) -> u64 {
        self.filter_passes
    }

    /// Since there were so many passes, no part has had the key.
    #[inline]
    pub fn count_false_passes_since(&mut self, passes: u64) {
        self.filter_false_passes += self.filter_passes - passes;
    }
}

impl Shared {
    /// For a store with a cache of its own: see [`BlockCache::new`].
    pub fn new(cache_bytes: u64, files_open_max: usize) -> Arc<Shared> {
        Shared::of(&BlockCache::new(cache_bytes, files_open_max), 1)
    }

    /// For one more store that uses this cache. It may have so many merges running at once, which
    /// share the memory for reading ahead.
    pub fn of(cache: &Arc<BlockCache>, merges: usize) -> Arc<Shared> {
        let first_part = cache.enter();
        let next_part = AtomicU64::new(first_part);
        let merges = (merges as u64).max(1);
        cache.add_merges(merges - 1);
        Arc::new(Shared {
            cache: Arc::clone(cache),
            counters: Counters::default(),
            first_part,
            next_part,
            merges,
            has_left: AtomicBool::new(false),
        })
    }

    /// Gives the cache room for about this many bytes from now on, if that is more than it has.
    pub fn grow_cache(&self, bytes: u64) {
        self.cache.grow(bytes);
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
            filter_false_passes: get(&self.counters.filter_false_passes),
            prefixes: PrefixTally {
                rejects: get(&self.counters.prefix_rejects),
                passes: get(&self.counters.prefix_passes),
                false_passes: get(&self.counters.prefix_false_passes),
            },
            cache_bytes: self.cache.bytes(),
            files_open: self.cache.files.len() as u64,
        }
    }

    /// Adds what a search has met to the counters.
    pub fn count(&self, tally: &Tally) {
        for (counter, by) in [
            (&self.counters.cache_hits, tally.kept),
            (&self.counters.filter_rejects, tally.filter_rejects),
            (&self.counters.filter_passes, tally.filter_passes),
            (&self.counters.filter_false_passes, tally.filter_false_passes),
        ] {
            if by > 0 {
                count(counter, by);
            }
        }
    }

    /// Adds what filters have said to the scan of a prefix.
    pub fn count_prefix(&self, tally: PrefixTally) {
        for (counter, by) in [
            (&self.counters.prefix_rejects, tally.rejects),
            (&self.counters.prefix_passes, tally.passes),
            (&self.counters.prefix_false_passes, tally.false_passes),
        ] {
            if by > 0 {
                count(counter, by);
            }
        }
    }

    /// What parts keep in memory.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.cache.kept_bytes()
    }

    /// See [`BlockCache::take_room`].
    pub(crate) fn take_room(&self, bytes: u64, is_oldest: bool) -> bool {
        self.cache.take_room(bytes, is_oldest)
    }

    /// See [`BlockCache::give_room_back`].
    pub(crate) fn give_room_back(&self, bytes: u64) {
        self.cache.give_room_back(bytes);
    }

    /// The page at `offset` of a file that is not a part; [`Shared::number_file`] gave its number.
    /// From the cache; if it is not there, `read` reads it and it is put there.
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

    /// Counts a block that the cache does not have. True if it should be put there.
    #[inline]
    pub(crate) fn counts_miss_to_keep(&self) -> bool {
        let misses = self.counters.cache_misses.fetch_add(1, Ordering::Relaxed);
        self.cache.keeps_miss(misses)
    }

    /// See [`BlockCache::warms_blocks`].
    pub(crate) fn warms_blocks(&self, bytes: u64) -> bool {
        self.cache.warms_blocks(bytes)
    }

    /// A number for a file that is not a part, to cache its pages.
    pub fn number_file(&self) -> u64 {
        self.number_part()
    }

    /// Drops everything that is cached for this store and closes its files; called when the store
    /// is closed. Pieces and files in use are freed by their last user.
    pub fn leave(&self) {
        if !self.has_left.swap(true, Ordering::AcqRel) {
            self.cache.leave(self.first_part, self.merges);
        }
    }

    /// The longest read-ahead window.
    pub(crate) fn window_bytes_max(&self) -> u64 {
        self.cache.window_bytes_max()
    }

    /// See [`BlockCache::warm_bytes_max`].
    pub(crate) fn warm_bytes_max(&self) -> u64 {
        self.cache.warm_bytes_max()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A number that no other part in the cache has, not even the same file opened by another
    /// store.
    pub(crate) fn number_part(&self) -> u64 {
        self.next_part.fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn piece(&self, key: PieceKey) -> Option<Piece> {
        self.cache.pieces.get(&key)
    }

    /// Like [`Shared::piece`], for readers that read the piece once.
    pub(crate) fn peek(&self, key: PieceKey) -> Option<Piece> {
        self.cache.pieces.peek(&key)
    }

    pub(crate) fn keep_piece(&self, key: PieceKey, piece: Piece) {
        self.cache.pieces.insert(key, piece);
    }

    pub(crate) fn forget_piece(&self, key: PieceKey) {
        if self.cache.pieces.remove(&key).is_some() {
            self.cache.note_room();
        }
    }

    pub(crate) fn file(&self, part: u64) -> Option<Arc<dyn ReadFile>> {
        self.cache.files.get(&part)
    }

    pub(crate) fn keep_file(&self, part: u64, file: Arc<dyn ReadFile>) {
        self.cache.files.insert(part, file);
    }

    pub(crate) fn close_file(&self, part: u64) {
        self.cache.files.remove(&part);
    }
}

/// A closed store leaves nothing in a cache that others still use.
impl Drop for Shared {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(f)
    }
}
