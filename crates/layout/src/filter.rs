//! Filters: which keys are certainly not in a section of a part.
//!
//! A cache-line-blocked Bloom filter (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient
//! Bloom Filters", 2007): the high half of a key's hash chooses a line of 64 bytes, six bits of
//! that line are set, and a probe therefore costs one cache miss. A partition holds some ten
//! thousand keys, so that it fits the nearest caches while it is built, and is cheap to read on
//! demand.
//!
//! ```text
//!   lines        n × 64 bytes, each eight u64 LE
//! ```

use folddb_base::bytes::Malformed;

use crate::block::{Compression, Encoding, Sealed, seal};

/// Bytes of a line.
const LINE_BYTES: usize = 64;

/// Bits that a key sets.
const PROBES: u32 = 6;

/// What decides about a key: one line of memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Line([u64; 8]);

impl Line {
    /// False if no key with this hash is in the filter. It does not branch on the bits.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        bits_of(hash).fold(0, |missing, (word, bit)| missing | !self.0[word] & bit) == 0
    }
}

/// A partition of a filter in memory.
#[derive(Debug)]
pub struct Filter {
    lines: Vec<Line>,
}

impl Filter {
    /// A filter over keys with these hashes, with about `bits_per_key` bits for each.
    pub fn build(hashes: &[u64], bits_per_key: u32) -> Filter {
        let bits = hashes.len() * bits_per_key as usize;
        let mut lines = vec![Line::default(); bits.div_ceil(LINE_BYTES * 8).max(1)];
        let count = lines.len();
        for hash in hashes {
            let line = &mut lines[line_of(*hash, count)];
            for (word, bit) in bits_of(*hash) {
                line.0[word] |= bit;
            }
        }
        Filter { lines }
    }

    /// False if no key with this hash is in it.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.line(hash).is_none_or(|line| line.may_contain(hash))
    }

    /// The one line that a key with this hash has bits in. Reads nothing of it.
    #[inline]
    pub fn line(&self, hash: u64) -> Option<&Line> {
        self.lines.get(line_of(hash, self.lines.len()))
    }

    /// Appends it as a piece of a file.
    pub fn put(&self, out: &mut Vec<u8>, seed: u64) {
        let start = out.len();
        out.reserve(self.lines.len() * LINE_BYTES + crate::block::TRAILER_BYTES);
        for line in &self.lines {
            line.0.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
        seal(out, start, Encoding::Filter, Compression::None, seed, &mut Vec::new());
    }

    /// Reads what [`Filter::put`] wrote.
    ///
    /// # Errors
    /// The checksum does not match, or the bytes are not a filter.
    pub fn open(stored: &[u8], seed: u64) -> Result<Filter, Malformed> {
        let (lines, rest) = Sealed::open(stored, seed)?.plain(Encoding::Filter)?.as_chunks::<LINE_BYTES>();
        if lines.is_empty() || !rest.is_empty() {
            return Err(Malformed::Bounds);
        }
        let lines = lines.iter().map(|bytes| {
            let mut line = Line::default();
            for (word, bytes) in line.0.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            line
        });
        Ok(Filter { lines: lines.collect() })
    }

    /// The memory that it uses, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Filter>() + self.lines.capacity() * LINE_BYTES
    }
}

/// The line of a hash, by its high half.
#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// The bits of a hash within its line: nine bits of a product select each.
#[inline]
fn bits_of(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..PROBES).map(move |probe| {
        let bit = mixed >> (64 - 9 * (probe + 1));
        ((bit >> 6 & 7) as usize, 1u64 << (bit & 63))
    })
}

#[cfg(test)]
#[path = "filter/tests.rs"]
mod tests;
