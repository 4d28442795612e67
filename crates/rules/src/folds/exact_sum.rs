//! The exact accumulator under every sum of floating-point numbers, and the form of its totals,
//! which is that of `sum:f64`.
//!
//! Rounded addition is not associative, so a sum is kept exactly and rounded only when read: the
//! same bytes under any merge schedule. The total is an integer in units of 2^-2176, wide enough
//! for 2^64 squares of doubles (Kulisch's long accumulator; sparse, as in Neal, "Fast exact
//! summation using small and large superaccumulators", 2015). Most totals are again doubles, and
//! those are stored as such:
//!
//! ```text
//!   plain   8 bytes      f64 little-endian: the total is exactly this double; or infinite, or NaN
//!   long    3+4n bytes   [place u16, sign in bit 15][n u8][n words u32, lowest first]
//!                        total = ± words · 2^(16·place - 2176)
//!                        neither the lowest 16 bits nor the last word are 0
//! ```
//!
//! The form is a function of the total alone: plain exactly when a double can hold it. Infinities
//! and NaN absorb the finite part (+inf and -inf meet in NaN), which is associative too. Adding two
//! plain numbers with an exact sum costs one two-sum (Knuth); otherwise words are added in a window
//! of the accumulator that covers both. A lone operand may also be -0 or any NaN; folding makes
//! them +0 and the one NaN.

use crate::fold::FoldFailure;

use super::built_in::NAN;

/// log2 of one over the unit of the accumulator.
pub(super) const UNIT_BITS: i32 = 2176;

/// Length of the accumulator in bytes: bits 0 to 4351. The largest total, 2^2112 (2^64 squares),
/// needs 4289 of them.
const SPAN_BYTES: usize = 544;

const SIGN: u16 = 0x8000;

/// One thing to add.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term<'a> {
    /// A double of any kind.
    Plain(f64),
    /// A magnitude of up to 128 bits at a place.
    Wide { negative: bool, place: usize, magnitude: u128 },
    /// The long form.
    Long { negative: bool, place: usize, words: &'a [u8] },
}

impl<'a> Term<'a> {
    /// Reads a whole value of `sum:f64`.
    #[inline]
    pub(crate) fn from_bytes(value: &'a [u8]) -> Result<Term<'a>, FoldFailure> {
        if let Ok(plain) = <[u8; 8]>::try_from(value) {
            return Ok(Term::Plain(f64::from_le_bytes(plain)));
        }
        let (term, rest) = Term::long_prefix(value)?;
        if rest.is_empty() {
            Ok(term)
        } else {
            Err(FoldFailure::new("expected the end of a sum, found more bytes"))
        }
    }

    /// Reads a long form, which says its own length, off the front of `bytes`.
    pub(crate) fn long_prefix(bytes: &'a [u8]) -> Result<(Term<'a>, &'a [u8]), FoldFailure> {
        let short =
            || FoldFailure::new("expected a sum (8 bytes, or its long form), the bytes end too early");
        let ([low, high, words], rest) = bytes.split_first_chunk::<3>().ok_or_else(short)?;
        let (words, rest) = rest.split_at_checked(4 * usize::from(*words)).ok_or_else(short)?;
        let head = u16::from_le_bytes([*low, *high]);
        let place = usize::from(head & !SIGN);
        if words.is_empty() || 2 * place + words.len() > SPAN_BYTES + 4 {
            return Err(FoldFailure::new("expected a sum, its place is out of range"));
        }
        Ok((Term::Long { negative: head & SIGN != 0, place, words }, rest))
    }

    /// Fails unless this long form is the one form of its total.
    pub(crate) fn check_canonical(&self) -> Result<(), FoldFailure> {
        let Term::Long { .. } = self else {
            return Ok(());
        };
        let mut canonical = Vec::new();
        if add(*self, Term::Plain(0.0), &mut canonical)?.is_none() {
            let same = Term::long_prefix(&canonical)?.0;
            if let (Term::Long { place: p, words: w, .. }, Term::Long { place, words, .. }) = (same, *self)
                && (p, w) == (place, words)
            {
                return Ok(());
            }
        }
        Err(FoldFailure::new("expected a sum in its shortest form"))
    }

    /// The square of `x`, exactly.
    #[inline]
    pub(crate) fn square_of(x: f64) -> Term<'static> {
        if !x.is_finite() {
            return Term::Plain(x * x);
        }
        let (mantissa, exponent) = parts(x);
        if mantissa == 0 {
            return Term::Plain(0.0);
        }
        let zeros = mantissa.trailing_zeros();
        let (odd, exponent) = (mantissa >> zeros, 2 * (exponent + zeros as i32));
        if odd < 1 << 26 && (-1022..960).contains(&exponent) {
            return Term::Plain(x * x);
        }
        wide(false, u128::from(odd) * u128::from(odd), exponent)
    }

    /// The number itself, if it is an infinity or NaN.
    pub(super) fn special(&self) -> Option<f64> {
        match self {
            Term::Plain(x) if !x.is_finite() => Some(*x),
            _ => None,
        }
    }

    /// The total rounded to the nearest double, ties to even.
    pub(crate) fn rounded(&self) -> f64 {
        let Term::Plain(x) = *self else {
            return round(&self.limbs(), -UNIT_BITS, self.is_negative());
        };
        x
    }

    /// The magnitude in units of 2^-2176, lowest limb first. Empty for infinities and NaN.
    pub(crate) fn limbs(&self) -> Vec<u64> {
        let mut limbs = [0u64; WIDEST];
        if self.special().is_none() {
            limbs = load(&Piece::new(*self), 0);
        }
        let used = limbs.iter().rposition(|&limb| limb != 0).map_or(0, |last| last + 1);
        limbs[..used].to_vec()
    }

    pub(crate) fn is_negative(&self) -> bool {
        match *self {
            Term::Plain(x) => x.is_sign_negative(),
            Term::Wide { negative, .. } | Term::Long { negative, .. } => negative,
        }
    }
}

/// The mantissa and the exponent of a finite number: |x| = m · 2^e.
#[inline]
pub(super) fn parts(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// `magnitude · 2^exponent`; the magnitude has at most 112 bits, the exponent is at least -2148.
#[inline]
fn wide(negative: bool, magnitude: u128, exponent: i32) -> Term<'static> {
    let at = (exponent + UNIT_BITS) as usize;
    Term::Wide { negative, place: at / 16, magnitude: magnitude << (at % 16) }
}

/// A finite term, as bytes at a place.
pub(super) struct Piece<'a> {
    pub(super) negative: bool,
    pub(super) place: usize,
    inline: [u8; 16],
    bytes: Option<&'a [u8]>,
    len: usize,
}

impl<'a> Piece<'a> {
    #[inline]
    pub(super) fn new(term: Term<'a>) -> Piece<'a> {
        let term = match term {
            Term::Plain(x) => {
                let (mantissa, exponent) = parts(x);
                wide(x.is_sign_negative(), mantissa.into(), exponent)
            }
            other => other,
        };
        match term {
            Term::Long { negative, place, words } => {
                Piece { negative, place, inline: [0; 16], bytes: Some(words), len: words.len() }
            }
            Term::Wide { negative, place, magnitude } => {
                let len = (128 - magnitude.leading_zeros() as usize).div_ceil(8);
                Piece { negative, place, inline: magnitude.to_le_bytes(), bytes: None, len }
            }
            Term::Plain(_) => Piece { negative: false, place: 0, inline: [0; 16], bytes: None, len: 0 },
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self.bytes {
            Some(bytes) => bytes,
            None => &self.inline[..self.len],
        }
    }

    fn end_bytes(&self) -> usize {
        2 * self.place + self.len
    }
}

/// Limbs of the whole accumulator, with room for a carry.
pub(super) const WIDEST: usize = SPAN_BYTES / 8 + 2;

/// Adds two terms. A total that is a double is returned; any other is appended in its long form.
///
/// # Errors
/// When the total is beyond what 2^64 squares of doubles can reach.
#[inline]
pub(crate) fn add(a: Term<'_>, b: Term<'_>, out: &mut Vec<u8>) -> Result<Option<f64>, FoldFailure> {
    if let (Term::Plain(x), Term::Plain(y)) = (a, b) {
        let total = x + y;
        if total.is_finite() {
            // Two-sum: the rounding error of an addition is itself a double (Knuth, TAOCP 2,
            // 4.2.2).
            let back = total - x;
            if (x - (total - back)) + (y - back) == 0.0 {
                return Ok(Some(total + 0.0));
            }
        }
    }
    add_slowly(a, b, out)
}

fn add_slowly(a: Term<'_>, b: Term<'_>, out: &mut Vec<u8>) -> Result<Option<f64>, FoldFailure> {
    if a.special().is_some() || b.special().is_some() {
        let total = a.special().unwrap_or(0.0) + b.special().unwrap_or(0.0);
        return Ok(Some(if total.is_nan() { NAN } else { total }));
    }
    let (a, b) = (Piece::new(a), Piece::new(b));
    let base = match (a.len, b.len) {
        (0, _) => b.place,
        (_, 0) => a.place,
        _ => a.place.min(b.place),
    };
    let end = if b.len == 0 {
        a.end_bytes()
    } else {
        b.end_bytes().max(if a.len == 0 { 0 } else { a.end_bytes() })
    };
    // One byte to spare takes the carry.
    match end - 2 * base {
        0..16 => add_within::<2>(&a, &b, base, out),
        16..32 => add_within::<4>(&a, &b, base, out),
        _ => add_within::<WIDEST>(&a, &b, base, out),
    }
}

fn add_within<const N: usize>(
    a: &Piece<'_>,
    b: &Piece<'_>,
    base: usize,
    out: &mut Vec<u8>,
) -> Result<Option<f64>, FoldFailure> {
    let mut total: [u64; N] = load(a, base);
    let addend: [u64; N] = load(b, base);
    let mut negative = a.negative;
    if a.negative == b.negative {
        plus(&mut total, &addend);
    } else if minus(&mut total, &addend) {
        negative = b.negative;
        negate(&mut total);
    }
    emit(&total, negative, base, out)
}

/// The bytes of a piece as limbs, counted from `base`. An empty piece is zero, whatever its place.
#[inline]
fn load<const N: usize>(piece: &Piece<'_>, base: usize) -> [u64; N] {
    let mut window = [[0u8; 8]; N];
    if piece.len > 0 {
        let at = 2 * (piece.place - base);
        let bytes = piece.bytes();
        if let Some(place) = window.as_flattened_mut().get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    window.map(u64::from_le_bytes)
}

fn plus(total: &mut [u64], addend: &[u64]) {
    let mut carry = false;
    for (limb, &other) in total.iter_mut().zip(addend) {
        let (sum, over) = limb.overflowing_add(other);
        let (sum, again) = sum.overflowing_add(u64::from(carry));
        (*limb, carry) = (sum, over | again);
    }
}

/// Subtracts in two's complement; true when the result is below zero.
pub(super) fn minus(total: &mut [u64], other: &[u64]) -> bool {
    let mut borrow = false;
    for (limb, &other) in total.iter_mut().zip(other) {
        let (rest, under) = limb.overflowing_sub(other);
        let (rest, again) = rest.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (rest, under | again);
    }
    borrow
}

pub(super) fn negate(total: &mut [u64]) {
    let mut carry = true;
    for limb in total {
        let (next, over) = (!*limb).overflowing_add(u64::from(carry));
        (*limb, carry) = (next, over);
    }
}

/// Returns the total when it is a double, else appends its long form.
pub(super) fn emit<const N: usize>(
    limbs: &[u64; N],
    negative: bool,
    base: usize,
    out: &mut Vec<u8>,
) -> Result<Option<f64>, FoldFailure> {
    let Some((low, top)) = bit_range(limbs) else {
        return Ok(Some(0.0));
    };
    let exponent = |bit: usize| (16 * base + bit) as i32 - UNIT_BITS;
    if top - low < 53 && exponent(top) <= 1023 && exponent(low) >= -1074 {
        let magnitude = scale(bits_at(limbs, low) & ((1 << (top - low + 1)) - 1), exponent(low));
        return Ok(Some(if negative { -magnitude } else { magnitude }));
    }
    let (first, last) = (low / 16 * 2, top / 8);
    let words = (last - first + 1).div_ceil(4);
    let place = base + low / 16;
    if 2 * place + 4 * words > SPAN_BYTES + 4 {
        return Err(FoldFailure::new("the sum is out of range"));
    }
    let head = place as u16 | if negative { SIGN } else { 0 };
    out.extend_from_slice(&head.to_le_bytes());
    out.push(words as u8);
    let end = out.len() + 4 * words;
    let bytes = limbs.map(u64::to_le_bytes);
    out.extend_from_slice(&bytes.as_flattened()[first..=last]);
    out.resize(end, 0);
    Ok(None)
}

/// The lowest and the highest bit that are set.
fn bit_range(limbs: &[u64]) -> Option<(usize, usize)> {
    let first = limbs.iter().position(|&limb| limb != 0)?;
    let last = limbs.iter().rposition(|&limb| limb != 0)?;
    let low = 64 * first + limbs[first].trailing_zeros() as usize;
    Some((low, 64 * last + 63 - limbs[last].leading_zeros() as usize))
}

/// 64 bits from bit `at` on.
fn bits_at(limbs: &[u64], at: usize) -> u64 {
    let limb = |index: usize| limbs.get(index).copied().unwrap_or(0);
    let (index, shift) = (at / 64, at % 64);
    if shift == 0 { limb(index) } else { limb(index) >> shift | limb(index + 1) << (64 - shift) }
}

/// m · 2^e for m up to 2^53. Exact if the result is a double; infinite above.
pub(crate) fn scale(mantissa: u64, exponent: i32) -> f64 {
    let power = |e: i32| f64::from_bits(((e + 1023) as u64) << 52);
    let half = exponent / 2;
    mantissa as f64 * power(half) * power(exponent - half)
}

/// `± limbs · 2^exponent` as the nearest double, ties to even.
pub(crate) fn round(limbs: &[u64], exponent: i32, negative: bool) -> f64 {
    let Some((low, top)) = bit_range(limbs) else {
        return 0.0;
    };
    let top_exponent = top as i32 + exponent;
    if top_exponent > 1023 {
        return if negative { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    if top_exponent < -1075 {
        return if negative { -0.0 } else { 0.0 };
    }
    // How many leading bits fit; fewer among the subnormal numbers.
    let kept_bits = (top_exponent + 1075).min(53) as usize;
    let first = top as i32 + 1 - kept_bits as i32;
    let magnitude = if first <= 0 {
        scale(bits_at(limbs, 0) & mask(top + 1), exponent)
    } else {
        let first = first as usize;
        let mut kept = bits_at(limbs, first) & mask(kept_bits);
        let half = bits_at(limbs, first - 1) & 1 == 1;
        let beyond_half = low < first - 1;
        if half && (beyond_half || kept & 1 == 1) {
            kept += 1;
        }
        scale(kept, first as i32 + exponent)
    };
    if negative { -magnitude } else { magnitude }
}

fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A sum of doubles without rounding error.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::ExactSum;
/// let mut sum = ExactSum::of(1e100);
/// sum.add(1.0);
/// sum.add(-1e100);
/// assert_eq!(sum.value(), 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ExactSum(Repr);

#[derive(Clone, Debug, PartialEq)]
enum Repr {
    Plain(f64),
    Long(Vec<u8>),
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum::of(0.0)
    }
}

impl ExactSum {
    /// The sum of one number.
    pub fn of(number: f64) -> ExactSum {
        ExactSum(Repr::Plain(number))
    }

    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        self.add_term(Term::Plain(number));
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &ExactSum) {
        self.add_term(other.term());
    }

    pub(crate) fn add_term(&mut self, term: Term<'_>) {
        let mut long = Vec::new();
        match add(self.term(), term, &mut long) {
            Ok(Some(plain)) => self.0 = Repr::Plain(plain),
            Ok(None) => self.0 = Repr::Long(long),
            // Only bytes made up by hand come near the end of the accumulator.
            Err(_) => self.0 = Repr::Plain(NAN),
        }
    }

    /// The sum as the nearest double, ties to even.
    pub fn value(&self) -> f64 {
        self.term().rounded()
    }

    pub(crate) fn term(&self) -> Term<'_> {
        match &self.0 {
            Repr::Plain(number) => Term::Plain(*number),
            // What `add` wrote, it reads.
            Repr::Long(bytes) => Term::long_prefix(bytes).map_or(Term::Plain(NAN), |(term, _)| term),
        }
    }

    pub(crate) fn from_term(term: Term<'_>) -> ExactSum {
        match term {
            Term::Plain(number) => ExactSum(Repr::Plain(number)),
            other => {
                let mut sum = ExactSum::default();
                sum.add_term(other);
                sum
            }
        }
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Plain(number) => out.extend_from_slice(&number.to_le_bytes()),
            Repr::Long(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        self.put(&mut out);
        out
    }

    /// Reads a value of `sum:f64`.
    ///
    /// # Errors
    /// When the bytes are not one.
    pub fn from_bytes(value: &[u8]) -> Result<ExactSum, FoldFailure> {
        let term = Term::from_bytes(value)?;
        term.check_canonical()?;
        Ok(ExactSum::from_term(term))
    }
}

impl From<f64> for ExactSum {
    fn from(number: f64) -> ExactSum {
        ExactSum::of(number)
    }
}

#[cfg(test)]
#[path = "exact_sum/tests.rs"]
mod tests;
