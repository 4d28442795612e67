//! Where the bytes are that may end a field: the delimiter, line ends and quotes.
//!
//! ```text
//!   text    a,"b,c"\n...     64 bytes at a time
//!   marks   01101011...      a bit for each byte, the first one lowest
//! ```
//!
//! Each byte of a text is compared once, however many fields there are, and sixteen at a time.

use wide::u8x16;

use crate::import::dialect::Dialect;

const BLOCK: usize = 64;

/// The marks of the block that was asked for last.
pub(super) struct Marks {
    wanted: [u8; 4],
    /// Where the block begins in the text; [`NONE`] if none is known.
    block: usize,
    bits: u64,
}

const NONE: usize = usize::MAX;

impl Marks {
    /// Those of a delimiter, line ends and quotes, if there are any.
    pub(super) fn of(Dialect { delimiter, quote, .. }: Dialect) -> Marks {
        Marks { wanted: [delimiter, b'\n', b'\r', quote.unwrap_or(delimiter)], block: NONE, bits: 0 }
    }

    /// Forgets what is known: the text is another one.
    pub(super) fn forget(&mut self) {
        self.block = NONE;
    }

    /// The first mark in a text at `at` or after it. The text is that of the last call, unless
    /// [`Marks::forget`] was called since.
    #[inline]
    pub(super) fn next(&mut self, text: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let block = at & !(BLOCK - 1);
            if block != self.block {
                self.bits = self.bits_of(text.get(block..)?);
                self.block = block;
            }
            let rest = self.bits >> (at - block);
            if rest != 0 {
                return Some(at + rest.trailing_zeros() as usize);
            }
            at = block + BLOCK;
        }
    }

    /// The marks of the first block of a text.
    fn bits_of(&self, text: &[u8]) -> u64 {
        if let Some(block) = text.first_chunk() {
            return bits(block, self.wanted);
        }
        let mut block = [0; BLOCK];
        block[..text.len()].copy_from_slice(text);
        bits(&block, self.wanted) & ((1 << text.len()) - 1)
    }
}

/// A bit for each byte that is one of four.
#[inline]
fn bits(block: &[u8; BLOCK], wanted: [u8; 4]) -> u64 {
    let [a, b, c, d] = wanted.map(u8x16::splat);
    let of_sixteen = |bytes: &[u8; 16]| {
        let bytes = u8x16::new(*bytes);
        (bytes.simd_eq(a) | bytes.simd_eq(b) | bytes.simd_eq(c) | bytes.simd_eq(d)).to_bitmask()
    };
    let sixteens = block.as_chunks().0.iter().enumerate();
    sixteens.fold(0, |bits, (number, bytes)| bits | u64::from(of_sixteen(bytes)) << (16 * number))
}

#[cfg(test)]
#[path = "marks/tests.rs"]
mod tests;
