//! `stats:f64`: count, sum, smallest and largest, and from them mean and variance.
//!
//! ```text
//!   nothing seen   (empty)
//!   one number     [0xF0 | n][n high bytes of the f64, big-endian, its trailing zero bytes cut off]
//!   several        [lengths u16][count varint][smallest][largest][sum][sum of squares]
//!                  lengths: four nibbles in this order, lowest first; n <= 8: a cut f64 as above;
//!                  15: the long form of an exact sum (see exact_sum.rs), which says its own length
//! ```
//!
//! Associative byte for byte: the sums are exact and rounded only when shown, the count saturates
//! at 2^64-1, smallest and largest are choices. NaN counts and makes both sums NaN, but is ignored
//! among smallest and largest unless there is nothing else. Numbers with few digits are short: 12.5
//! takes three bytes.

use folddb_base::bytes::{Reader, put_varint};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome, fold_in_pairs};

use super::built_in::{self, BuiltIn, NAN, SEVERAL, malformed};
use super::exact_sum::{self, ExactSum, Term};
use super::exact_total::Total;

const SINGLE: u8 = 0xf0;
const LONG: u8 = 15;

/// What a value says, borrowed.
#[derive(Clone, Copy)]
struct Parts<'a> {
    count: u64,
    smallest: f64,
    largest: f64,
    sum: Term<'a>,
    squares: Term<'a>,
}

impl<'a> Parts<'a> {
    fn of(number: f64) -> Parts<'static> {
        let extreme = if number.is_nan() { NAN } else { number };
        Parts {
            count: 1,
            smallest: extreme,
            largest: extreme,
            sum: Term::Plain(number),
            squares: Term::square_of(number),
        }
    }

    fn from_bytes(value: &'a [u8]) -> Result<Parts<'a>, FoldFailure> {
        match value {
            [] => Ok(Parts { count: 0, ..Parts::of(NAN) }),
            [tag @ SINGLE..=u8::MAX, number @ ..] => {
                let len = usize::from(tag - SINGLE);
                if len > 8 || len != number.len() {
                    return Err(built_in::wrong_length(len.min(8), number.len()));
                }
                Ok(Parts::of(cut_number(number)))
            }
            [extremes, sums, ..] => several(value, *extremes, *sums),
            [_] => Err(FoldFailure::new("expected statistics, the bytes end too early")),
        }
    }
}

fn several<'a>(value: &'a [u8], extremes: u8, sums: u8) -> Result<Parts<'a>, FoldFailure> {
    let mut reader = Reader::new(&value[2..]);
    let count = reader.varint().map_err(malformed("statistics"))?;
    let mut at = value.len() - reader.rest().len();
    let smallest = number_at(value, &mut at, extremes & 15)?;
    let largest = number_at(value, &mut at, extremes >> 4)?;
    let sum = sum_at(value, &mut at, sums & 15)?;
    let squares = sum_at(value, &mut at, sums >> 4)?;
    if at != value.len() {
        return Err(FoldFailure::new("expected the end of statistics, found more bytes"));
    }
    Ok(Parts { count, smallest, largest, sum, squares })
}

fn sum_at<'a>(value: &'a [u8], at: &mut usize, len: u8) -> Result<Term<'a>, FoldFailure> {
    if len != LONG {
        return number_at(value, at, len).map(Term::Plain);
    }
    let (term, rest) = Term::long_prefix(&value[*at..])?;
    *at = value.len() - rest.len();
    Ok(term)
}

/// The cut number of `len` bytes at `at`, which moves past it.
#[inline]
fn number_at(value: &[u8], at: &mut usize, len: u8) -> Result<f64, FoldFailure> {
    let len = usize::from(len);
    let (start, end) = (*at, *at + len);
    if len > 8 || end > value.len() {
        return Err(FoldFailure::new("expected statistics, the bytes end too early"));
    }
    *at = end;
    if len == 0 {
        return Ok(0.0);
    }
    // The high bytes of a word that begins where the number begins, or, near the end of the value,
    // ends where it ends.
    let bits = match (value[start..].first_chunk::<8>(), value[..end].last_chunk::<8>()) {
        (Some(word), _) => u64::from_be_bytes(*word) >> (64 - 8 * len) << (64 - 8 * len),
        (None, Some(word)) => u64::from_be_bytes(*word) << (64 - 8 * len),
        (None, None) => return Ok(cut_number(&value[start..end])),
    };
    Ok(f64::from_bits(bits))
}

/// A number from its high bytes; at most eight are examined.
fn cut_number(bytes: &[u8]) -> f64 {
    let mut word = [0u8; 8];
    for (place, byte) in word.iter_mut().zip(bytes) {
        *place = *byte;
    }
    f64::from_bits(u64::from_be_bytes(word))
}

/// Appends the high bytes of a number, and says how many.
#[inline]
fn put_cut(number: f64, out: &mut Vec<u8>) -> u8 {
    let bits = number.to_bits();
    let cut = bits.trailing_zeros() as usize / 8;
    // Writes eight bytes, then cuts: this is cheaper than a copy of a length that varies.
    out.extend_from_slice(&bits.to_be_bytes());
    out.truncate(out.len() - cut);
    8 - cut as u8
}

/// Appends the form for one number.
fn put_single(number: f64, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    out[start] = SINGLE | put_cut(number, out);
}

/// Appends a total that `put` appends, unless it is a double, which is cut.
fn put_total(
    put: impl FnOnce(&mut Vec<u8>) -> Result<Option<f64>, FoldFailure>,
    out: &mut Vec<u8>,
) -> Result<u8, FoldFailure> {
    Ok(match put(out)? {
        Some(plain) => put_cut(plain, out),
        None => LONG,
    })
}

fn put_several(a: &Parts<'_>, b: &Parts<'_>, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
    let extremes = (built_in::least(a.smallest, b.smallest), built_in::greatest(a.largest, b.largest));
    put_parts(
        a.count.saturating_add(b.count),
        extremes,
        |out| exact_sum::add(a.sum, b.sum, out),
        |out| exact_sum::add(a.squares, b.squares, out),
        out,
    )
}

/// Appends the form for several numbers; the sums are appended by functions.
#[inline]
fn put_parts(
    count: u64,
    (smallest, largest): (f64, f64),
    sum: impl FnOnce(&mut Vec<u8>) -> Result<Option<f64>, FoldFailure>,
    squares: impl FnOnce(&mut Vec<u8>) -> Result<Option<f64>, FoldFailure>,
    out: &mut Vec<u8>,
) -> Result<(), FoldFailure> {
    let start = out.len();
    out.reserve(64);
    out.extend_from_slice(&[0, 0]);
    put_varint(out, count);
    let smallest = put_cut(smallest, out);
    let largest = put_cut(largest, out);
    let sum = put_total(sum, out)?;
    let squares = put_total(squares, out)?;
    out[start] = smallest | largest << 4;
    out[start + 1] = sum | squares << 4;
    Ok(())
}

/// `stats:f64`.
pub(crate) struct StatsF64;

impl Fold for StatsF64 {
    fn spec(&self) -> String {
        "stats:f64".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (a, b) = (Parts::from_bytes(a)?, Parts::from_bytes(b)?);
        if b.count == 0 {
            return Ok(Outcome::KeepEarlier);
        }
        if a.count == 0 {
            return Ok(Outcome::KeepLater);
        }
        put_several(&a, &b, out)?;
        Ok(Outcome::Value)
    }

    fn fold_all(&self, key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let some = values.iter().filter(|value| !value.is_empty()).count();
        if some < SEVERAL {
            return fold_in_pairs(self, key, values, out);
        }
        let (mut count, mut extremes) = (0u64, (NAN, NAN));
        let (mut sum, mut squares) = (Total::new(), Total::new());
        for value in values.iter().filter(|value| !value.is_empty()) {
            let parts = Parts::from_bytes(value)?;
            if !(sum.add(parts.sum) && squares.add(parts.squares)) {
                return fold_in_pairs(self, key, values, out);
            }
            count = count.saturating_add(parts.count);
            extremes.0 = built_in::least(extremes.0, parts.smallest);
            extremes.1 = built_in::greatest(extremes.1, parts.largest);
        }
        put_parts(count, extremes, |out| sum.put(out), |out| squares.put(out), out)
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        Stats::from_bytes(value).map(|_| ())
    }

    /// A map of `count`, `sum`, `min`, `max`, `mean` and `variance` (of the population).
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let stats = Stats::from_bytes(value)?;
        let mut fields = vec![("count".to_owned(), Datum::Int(stats.count.into()))];
        if stats.count > 0 {
            let mut number = |name: &str, value: f64| fields.push((name.to_owned(), Datum::Float(value)));
            number("sum", stats.sum());
            number("min", stats.smallest);
            number("max", stats.largest);
            number("mean", stats.mean());
            number("variance", stats.variance());
        }
        Ok(Datum::Map(fields))
    }

    /// A number, or a list of them.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        match datum {
            Datum::List(items) => {
                let mut stats = Stats::default();
                for item in items {
                    stats.add(built_in::float(item)?);
                }
                stats.put(out);
            }
            one => put_single(built_in::float(one)?, out),
        }
        Ok(())
    }
}

impl BuiltIn for StatsF64 {}

/// Statistics of numbers: the value type of `stats:f64`.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::Stats;
/// let mut delays = Stats::of(12.5);
/// delays.add(7.5);
/// assert_eq!((delays.count(), delays.mean(), delays.variance()), (2, 10.0, 6.25));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    count: u64,
    smallest: f64,
    largest: f64,
    sum: ExactSum,
    squares: ExactSum,
}

impl Stats {
    /// The statistics of one number.
    pub fn of(number: f64) -> Stats {
        Stats::from_parts(&Parts::of(number))
    }

    fn from_parts(parts: &Parts<'_>) -> Stats {
        if parts.count == 0 {
            return Stats::default();
        }
        Stats {
            count: parts.count,
            smallest: parts.smallest,
            largest: parts.largest,
            sum: ExactSum::from_term(parts.sum),
            squares: ExactSum::from_term(parts.squares),
        }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            count: self.count,
            smallest: self.smallest,
            largest: self.largest,
            sum: self.sum.term(),
            squares: self.squares.term(),
        }
    }

    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        self.merge(&Stats::of(number));
    }

    /// Adds the numbers of `other`.
    pub fn merge(&mut self, other: &Stats) {
        if self.count == 0 {
            *self = other.clone();
        } else if other.count > 0 {
            self.count = self.count.saturating_add(other.count);
            self.smallest = built_in::least(self.smallest, other.smallest);
            self.largest = built_in::greatest(self.largest, other.largest);
            self.sum.add_sum(&other.sum);
            self.squares.add_sum(&other.squares);
        }
    }

    /// How many numbers there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, rounded once.
    pub fn sum(&self) -> f64 {
        self.sum.value()
    }

    /// The smallest; none when nothing was seen. NaN when there was nothing but NaN.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.smallest)
    }

    /// The largest; none when nothing was seen. NaN when there was nothing but NaN.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.largest)
    }

    /// The arithmetic mean; NaN when nothing was seen.
    pub fn mean(&self) -> f64 {
        let plain = self.sum() / self.count as f64;
        if plain.is_infinite() && self.sum.value().is_infinite() {
            // The sum is beyond all doubles, the mean is not.
            let (limbs, negative) = (self.sum.term().limbs(), self.sum.term().is_negative());
            if !limbs.is_empty() {
                return divided(&limbs, -2176, self.count as f64, negative);
            }
        }
        plain
    }

    /// The variance of the numbers seen (of the population, divided by n); NaN when nothing was
    /// seen.
    ///
    /// Computed as (n·Σx² - (Σx)²) / n² in whole numbers, so that nothing cancels.
    pub fn variance(&self) -> f64 {
        let (sum, squares) = (self.sum.term(), self.squares.term());
        if let (Term::Plain(sum), Term::Plain(squares)) = (sum, squares)
            && !(sum.is_finite() && squares.is_finite())
        {
            return NAN;
        }
        if self.count == 0 || self.squares.value().is_nan() {
            return NAN;
        }
        short_variance(self.count, sum, squares).unwrap_or_else(|| self.long_variance())
    }

    /// The same, for totals of any size.
    fn long_variance(&self) -> f64 {
        let (sum, squares) = (self.sum.term(), self.squares.term());
        // Both totals are in units of 2^-2176, so the square of the sum is in units of 2^-4352.
        let mut difference = vec![0u64; 2176 / 64];
        difference.extend(times(&squares.limbs(), &[self.count]));
        let square = times(&sum.limbs(), &sum.limbs());
        subtract(&mut difference, &square);
        divided(&difference, -4352, self.count as f64 * self.count as f64, false)
    }

    /// The square root of [`Stats::variance`].
    pub fn standard_deviation(&self) -> f64 {
        self.variance().sqrt()
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        match (self.count, &self.sum.term()) {
            (0, _) => {}
            (1, Term::Plain(number)) => put_single(*number, out),
            _ => {
                let nothing = Parts {
                    count: 0,
                    smallest: NAN,
                    largest: NAN,
                    sum: Term::Plain(0.0),
                    squares: Term::Plain(0.0),
                };
                // Adding nothing to a total that was in range cannot leave the range.
                let _ = put_several(&self.parts(), &nothing, out);
            }
        }
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        self.put(&mut out);
        out
    }

    /// Reads a value of `stats:f64`.
    ///
    /// # Errors
    /// When the bytes are not one, or not in their shortest form.
    pub fn from_bytes(value: &[u8]) -> Result<Stats, FoldFailure> {
        let parts = Parts::from_bytes(value)?;
        parts.sum.check_canonical()?;
        parts.squares.check_canonical()?;
        let stats = Stats::from_parts(&parts);
        if stats.to_bytes() != value {
            return Err(FoldFailure::new("expected statistics in their shortest form"));
        }
        Ok(stats)
    }
}

/// The variance from totals that are doubles of similar size, as most are: in 128 bits, with the
/// same result as [`Stats::long_variance`], bit for bit. None if 128 bits are too few.
fn short_variance(count: u64, sum: Term<'_>, squares: Term<'_>) -> Option<f64> {
    let (Term::Plain(sum), Term::Plain(squares)) = (sum, squares) else { return None };
    let ((sum, sum_exponent), (squares, exponent)) = (odd_part(sum), odd_part(squares));
    let (square, square_exponent) = (u128::from(sum) * u128::from(sum), 2 * sum_exponent);
    let low = exponent.min(square_exponent);
    let product = shifted(u128::from(count) * u128::from(squares), exponent - low)?;
    let difference = product.checked_sub(shifted(square, square_exponent - low)?)?;
    let divisor = count as f64 * count as f64;
    (low.abs() <= 800).then(|| difference as f64 / divisor * exact_sum::scale(1, low))
}

/// The mantissa of a finite number without the zeros at its end, and the exponent.
fn odd_part(number: f64) -> (u64, i32) {
    let (mantissa, exponent) = exact_sum::parts(number);
    match mantissa {
        0 => (0, 0),
        _ => (mantissa >> mantissa.trailing_zeros(), exponent + mantissa.trailing_zeros() as i32),
    }
}

/// `number · 2^bits`, if 128 bits hold that.
fn shifted(number: u128, bits: i32) -> Option<u128> {
    let bits = u32::try_from(bits).ok()?;
    if number == 0 {
        return Some(0);
    }
    (bits <= number.leading_zeros()).then(|| number << bits)
}

/// `± limbs · 2^exponent / divisor`, without overflow on the way.
fn divided(limbs: &[u64], exponent: i32, divisor: f64, negative: bool) -> f64 {
    let Some(last) = limbs.iter().rposition(|&limb| limb != 0) else {
        return 0.0;
    };
    // Divides a number near one. Its true size is put back at the end.
    let size = 64 * last as i32;
    let near_one = exact_sum::round(&limbs[..=last], -size, negative) / divisor;
    let mut exponent = exponent + size;
    let mut value = near_one;
    while exponent > 900 && value.is_finite() {
        (value, exponent) = (value * exact_sum::scale(1, 900), exponent - 900);
    }
    while exponent < -900 && value != 0.0 {
        (value, exponent) = (value * exact_sum::scale(1, -900), exponent + 900);
    }
    value * exact_sum::scale(1, exponent.clamp(-900, 900))
}

fn times(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut product = vec![0u64; a.len() + b.len()];
    for (at, &x) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (limb, &y) in product[at..].iter_mut().zip(b.iter().chain(std::iter::once(&0))) {
            carry += u128::from(*limb) + u128::from(x) * u128::from(y);
            *limb = carry as u64;
            carry >>= 64;
        }
    }
    product
}

/// a - b for a >= b, which the Cauchy-Schwarz inequality guarantees for `variance`; zero if bytes
/// made by hand break it.
fn subtract(a: &mut Vec<u64>, b: &[u64]) {
    let len = a.len().max(b.len());
    a.resize(len, 0);
    let mut borrow = false;
    for (limb, other) in a.iter_mut().zip(b.iter().copied().chain(std::iter::repeat(0))) {
        let (rest, under) = limb.overflowing_sub(other);
        let (rest, again) = rest.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (rest, under | again);
    }
    if borrow {
        a.clear();
    }
}

#[cfg(test)]
#[path = "stats/tests.rs"]
mod tests;
