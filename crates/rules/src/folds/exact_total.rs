//! Many numbers added up at once, exactly: the accumulator of `exact_sum.rs` in full length.
//!
//! A chain of sums makes the form of each total between, which is most of its cost. Here each
//! number is two or three additions, and the form is made once. What is negative is added up on its
//! own, so that no borrow runs through the whole length.

use crate::fold::FoldFailure;

use super::exact_sum::{Piece, Term, UNIT_BITS, WIDEST, emit, minus, negate, parts};

/// What was added up.
pub(super) struct Total {
    /// Magnitudes in units of 2^-2176, lowest limb first: of what is positive, and negative.
    limbs: [[u64; WIDEST]; 2],
    has_negative: bool,
}

impl Total {
    pub(super) fn new() -> Total {
        Total { limbs: [[0; WIDEST]; 2], has_negative: false }
    }

    /// Adds a number. False if it is an infinity or NaN, which is not added.
    #[inline]
    pub(super) fn add(&mut self, term: Term<'_>) -> bool {
        match term {
            Term::Plain(x) if !x.is_finite() => return false,
            Term::Plain(x) => {
                let (mantissa, exponent) = parts(x);
                self.add_at((exponent + UNIT_BITS) as usize, x.is_sign_negative(), mantissa.into());
            }
            Term::Wide { negative, place, magnitude } => self.add_at(16 * place, negative, magnitude),
            Term::Long { .. } => self.add_long(&Piece::new(term)),
        }
        true
    }

    /// Adds a magnitude whose lowest bit is this one.
    #[inline]
    fn add_at(&mut self, bit: usize, negative: bool, magnitude: u128) {
        self.has_negative |= negative;
        let (limbs, at, shift) = (&mut self.limbs[usize::from(negative)], bit / 64, bit % 64);
        let low = magnitude << shift;
        put(limbs, at, low as u64);
        put(limbs, at + 1, (low >> 64) as u64);
        if magnitude.leading_zeros() < shift as u32 {
            put(limbs, at + 2, (magnitude >> (128 - shift)) as u64);
        }
    }

    /// Adds a number of many bytes.
    fn add_long(&mut self, piece: &Piece<'_>) {
        self.has_negative |= piece.negative;
        let (limbs, mut at) = (&mut self.limbs[usize::from(piece.negative)], piece.place / 4);
        let shift = 16 * (piece.place % 4);
        for eight in piece.bytes().chunks(8) {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            let word = u128::from(u64::from_le_bytes(word)) << shift;
            put(limbs, at, word as u64);
            put(limbs, at + 1, (word >> 64) as u64);
            at += 1;
        }
    }

    /// Returns the total when it is a double, else appends its long form.
    ///
    /// # Errors
    /// When it is out of range.
    pub(super) fn put(mut self, out: &mut Vec<u8>) -> Result<Option<f64>, FoldFailure> {
        let [total, negative] = &mut self.limbs;
        let mut is_negative = false;
        if self.has_negative && minus(total, negative) {
            is_negative = true;
            negate(total);
        }
        emit(total, is_negative, 0, out)
    }
}

/// Adds a word at a limb. The two spare limbs at the end take any carry: 2^64 of the largest terms
/// are needed to fill them.
#[inline]
fn put(limbs: &mut [u64; WIDEST], at: usize, word: u64) {
    let mut carry = word;
    for limb in limbs.iter_mut().skip(at) {
        let (sum, over) = limb.overflowing_add(carry);
        *limb = sum;
        if !over {
            return;
        }
        carry = 1;
    }
}
