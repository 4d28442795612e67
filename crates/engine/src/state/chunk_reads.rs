//! What readers pay for the chunks of a table's active memtable, and when these are merged for it.
//!
//! ```text
//!   a reader     meets more than 16 chunks            full generations are merged
//!                meets more than 3, and so have many  all chunks become one
//! ```
//!
//! A table that is only written to keeps its chunks, since a flush is faster than merging them.

use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Most chunks that a reader searches before full generations are merged.
const CHUNKS_READ_MAX: usize = 16;
/// Chunks that cost readers next to nothing.
const CHUNKS_FEW: usize = 3;
/// Merging a record costs about as much as searching this many chunks: 50 to 96 ns, and 35 to 86 ns
/// for each (decision 42).
const SEARCHES_PER_RECORD: u64 = 2;

/// Which chunks readers want merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Full generations.
    Generations,
    /// All of them.
    Whole,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ChunkReads {
    is_asked: AtomicBool,
    /// Chunks that readers have searched since all were merged last, where they met more than a
    /// few.
    searched: AtomicU64,
    is_whole_asked: AtomicBool,
}

impl ChunkReads {
    /// Notes a reader that meets this many chunks with that many records. True if a merge must be
    /// asked for, and has not been yet.
    #[inline]
    pub fn note(&self, chunks: usize, records: usize) -> bool {
        chunks > CHUNKS_FEW && self.note_many(chunks as u64, records as u64)
    }

    fn note_many(&self, chunks: u64, records: u64) -> bool {
        let searched = self.searched.fetch_add(chunks, Ordering::Relaxed) + chunks;
        let is_whole =
            searched > records * SEARCHES_PER_RECORD && !self.is_whole_asked.swap(true, Ordering::Relaxed);
        let is_many = chunks > CHUNKS_READ_MAX as u64 && !self.is_asked.swap(true, Ordering::Relaxed);
        is_whole || is_many
    }

    /// Takes what readers have asked for; they can ask again from now on.
    pub fn take(&self) -> Wish {
        self.is_asked.store(false, Ordering::Relaxed);
        if !self.is_whole_asked.load(Ordering::Relaxed) {
            return Wish::Generations;
        }
        self.searched.store(0, Ordering::Relaxed);
        self.is_whole_asked.store(false, Ordering::Relaxed);
        Wish::Whole
    }
}

#[cfg(test)]
#[path = "chunk_reads/tests.rs"]
mod tests;
