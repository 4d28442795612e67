//! The filter of a chunk: most keys that a chunk does not hold are turned away by one cache line.
//!
//! A split block Bloom filter (Putze, Sanders, Singler 2007; the layout is Apache Parquet's): the hash picks
//! a block of 256 bits, and one bit in each of its eight words. Ten bits a key give about 1 % false hits.

const BITS_PER_KEY: usize = 10;
const BLOCK_BITS: usize = 256;

/// Odd constants that pick a bit in each word; Parquet's.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A set of key hashes that answers "certainly not" or "perhaps".
#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Vec<[u32; 8]>,
}

impl Filter {
    /// A filter of these hashes, one for each key.
    pub(crate) fn of(hashes: &[u32]) -> Filter {
        let count = (hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BITS).max(1);
        let mut blocks = vec![[0u32; 8]; count];
        for &hash in hashes {
            let block = &mut blocks[block_of(hash, count)];
            for (word, bit) in block.iter_mut().zip(bits_of(hash)) {
                *word |= bit;
            }
        }
        Filter { blocks }
    }

    /// A filter that turns nothing away, for pieces that are only scanned.
    pub(crate) fn none() -> Filter {
        Filter { blocks: Vec::new() }
    }

    /// False when no key of this hash was put in.
    #[inline]
    pub(crate) fn may_hold(&self, hash: u32) -> bool {
        let Some(block) = self.blocks.get(block_of(hash, self.blocks.len())) else { return true };
        let mut missing = 0;
        for (word, bit) in block.iter().zip(bits_of(hash)) {
            missing |= bit & !word;
        }
        missing == 0
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<[u32; 8]>()
    }
}

#[inline]
fn block_of(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

#[inline]
fn bits_of(hash: u32) -> [u32; 8] {
    SALTS.map(|salt| 1 << (hash.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
#[path = "filter/tests.rs"]
mod tests;
