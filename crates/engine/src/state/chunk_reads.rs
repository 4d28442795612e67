//! What readers pay for the chunks of a table's active memtable, and when these are merged for it.
//!
//! ```text
//!   a reader     meets more than 16 chunks            full generations are merged
//!                meets more than 3, and so have many  all chunks become one
//! ```
//!
//! While a whole merge is wished for, nothing is counted. Who merges ends the wish.
//!
//! A table that is only written to keeps its chunks, since a flush is faster than merging them.

use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Most chunks that a reader searches before full generations are merged.
const CHUNKS_READ_MAX: usize = 16;
/// Chunks that cost readers next to nothing.
const CHUNKS_FEW: usize = 3;
/// Copying this many bytes of long values costs about as much as searching a chunk.
const BYTES_PER_SEARCH: u64 = 128;
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
    /// Chunks that readers have met since the last wish for a whole merge ended, where there were
    /// more than a few.
    met: AtomicU64,
    is_whole_asked: AtomicBool,
}

impl ChunkReads {
    /// Notes a reader that meets this many chunks with that many records and bytes. True if a merge
    /// must be asked for, and has not been yet.
    #[inline]
    pub fn note(&self, chunks: usize, records: usize, bytes: usize) -> bool {
        chunks > CHUNKS_FEW && self.note_many(chunks as u64, records as u64, bytes as u64)
    }

    fn note_many(&self, chunks: u64, records: u64, bytes: u64) -> bool {
        if self.is_whole_asked.load(Ordering::Relaxed) {
            return false;
        }
        let met = self.met.fetch_add(chunks, Ordering::Relaxed) + chunks;
        if met > records * SEARCHES_PER_RECORD + bytes / BYTES_PER_SEARCH {
            return !self.is_whole_asked.swap(true, Ordering::Relaxed);
        }
        chunks > CHUNKS_READ_MAX as u64
            && !self.is_asked.load(Ordering::Relaxed)
            && !self.is_asked.swap(true, Ordering::Relaxed)
    }

    /// Takes what readers have asked for. They can ask for generations again from now on, and for a
    /// whole merge once that wish has ended.
    pub fn take(&self) -> Wish {
        self.is_asked.store(false, Ordering::Relaxed);
        if self.is_whole_asked.load(Ordering::Relaxed) { Wish::Whole } else { Wish::Generations }
    }

    /// The wish for a whole merge was carried out, or given up.
    pub fn end_whole(&self) {
        self.met.store(0, Ordering::Relaxed);
        self.is_whole_asked.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "chunk_reads/tests.rs"]
mod tests;
