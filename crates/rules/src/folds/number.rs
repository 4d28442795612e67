//! Whole numbers and extremes: `sum:i64`, `sum:u64`, `sum:i128`, `min:` and `max:` of `i64`, `u64`,
//! `f64`, `time`.
//!
//! ```text
//!   [number, 8 bytes little-endian; of sum:i128 16]
//! ```
//!
//! - `sum:i64` **wraps** at 2^63: addition modulo 2^64 is associative, saturating signed addition
//!   is not ((MAX + 1) - 1 ≠ MAX + (1 - 1)).
//! - `sum:u64` **saturates** at 2^64-1: min(MAX, a+b+c) is the same from either side, since nothing
//!   is ever subtracted. A counter that has reached 2^64-1 stays there.
//! - `sum:i128` is for sums that may outgrow these: 2^63 numbers of 64 bits, of either sign, fit
//!   into it. Beyond 2^127 it wraps, as `sum:i64` does: if it failed instead, whether it fails
//!   would depend on the order of merging.
//! - `min`, `max` cannot overflow. Of floats, NaN is ignored unless there is nothing else, -0 is
//!   less than +0. A `time` is an `i64`, the microseconds since 1970, and shown as ISO 8601.

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};
use crate::time_text;
use crate::words::WordFold;

use super::built_in::{self, BuiltIn, NAN, word};

/// `sum:i64`.
pub(crate) struct SumI64;

impl Fold for SumI64 {
    fn spec(&self) -> String {
        "sum:i64".to_owned()
    }
    #[inline]
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let total = i64::from_le_bytes(word(a)?).wrapping_add(i64::from_le_bytes(word(b)?));
        out.extend_from_slice(&total.to_le_bytes());
        Ok(Outcome::Value)
    }
    fn fold_all(&self, _key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let mut total = 0i64;
        for value in values {
            total = total.wrapping_add(i64::from_le_bytes(word(value)?));
        }
        if !values.is_empty() {
            out.extend_from_slice(&total.to_le_bytes());
        }
        Ok(())
    }
    fn words(&self) -> Option<WordFold> {
        Some(WordFold { fold: u64::wrapping_add, strongest: None })
    }
    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        word(value).map(|_| ())
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::Int(i64::from_le_bytes(word(value)?).into()))
    }
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&built_in::integer_i64(datum)?.to_le_bytes());
        Ok(())
    }
    fn fixed_len(&self) -> Option<usize> {
        Some(8)
    }
}

impl BuiltIn for SumI64 {
    fn identity(&self, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&[0; 8]);
        true
    }
}

/// `sum:u64`.
pub(crate) struct SumU64;

impl Fold for SumU64 {
    fn spec(&self) -> String {
        "sum:u64".to_owned()
    }
    #[inline]
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let total = u64::from_le_bytes(word(a)?).saturating_add(u64::from_le_bytes(word(b)?));
        out.extend_from_slice(&total.to_le_bytes());
        Ok(Outcome::Value)
    }
    fn fold_all(&self, _key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let mut total = 0u64;
        for value in values {
            total = total.saturating_add(u64::from_le_bytes(word(value)?));
        }
        if !values.is_empty() {
            out.extend_from_slice(&total.to_le_bytes());
        }
        Ok(())
    }
    fn words(&self) -> Option<WordFold> {
        Some(WordFold { fold: u64::saturating_add, strongest: Some(u64::MAX) })
    }
    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        *value == [0xff; 8]
    }
    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        word(value).map(|_| ())
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::Int(u64::from_le_bytes(word(value)?).into()))
    }
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&built_in::integer_u64(datum)?.to_le_bytes());
        Ok(())
    }
    fn fixed_len(&self) -> Option<usize> {
        Some(8)
    }
}

impl BuiltIn for SumU64 {
    fn identity(&self, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&[0; 8]);
        true
    }
}

/// `sum:i128`.
pub(crate) struct SumI128;

fn wide(value: &[u8]) -> Result<i128, FoldFailure> {
    value.try_into().map(i128::from_le_bytes).map_err(|_| built_in::wrong_length(16, value.len()))
}

impl Fold for SumI128 {
    fn spec(&self) -> String {
        "sum:i128".to_owned()
    }
    #[inline]
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.extend_from_slice(&wide(a)?.wrapping_add(wide(b)?).to_le_bytes());
        Ok(Outcome::Value)
    }
    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        wide(value).map(|_| ())
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::Int(wide(value)?))
    }
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&built_in::integer(datum)?.to_le_bytes());
        Ok(())
    }
    fn fixed_len(&self) -> Option<usize> {
        Some(16)
    }
}

impl BuiltIn for SumI128 {
    fn identity(&self, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&[0; 16]);
        true
    }
}

/// A type of number that `min` and `max` know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    I64,
    U64,
    F64,
    Time,
}

/// `min:T` and `max:T`.
pub(crate) struct Extreme {
    pub(crate) number: NumberType,
    pub(crate) largest: bool,
}

impl Extreme {
    /// The number that loses against every other: the identity. For floats, NaN.
    pub(crate) fn weakest(&self) -> [u8; 8] {
        match (self.number, self.largest) {
            (NumberType::I64 | NumberType::Time, false) => i64::MAX.to_le_bytes(),
            (NumberType::I64 | NumberType::Time, true) => i64::MIN.to_le_bytes(),
            (NumberType::U64, false) => u64::MAX.to_le_bytes(),
            (NumberType::U64, true) => u64::MIN.to_le_bytes(),
            (NumberType::F64, _) => NAN.to_le_bytes(),
        }
    }

    /// The number that wins against every other: nothing before it matters.
    fn strongest(&self) -> [u8; 8] {
        match (self.number, self.largest) {
            (NumberType::I64 | NumberType::Time, true) => i64::MAX.to_le_bytes(),
            (NumberType::I64 | NumberType::Time, false) => i64::MIN.to_le_bytes(),
            (NumberType::U64, true) => u64::MAX.to_le_bytes(),
            (NumberType::U64, false) => u64::MIN.to_le_bytes(),
            (NumberType::F64, true) => f64::INFINITY.to_le_bytes(),
            (NumberType::F64, false) => f64::NEG_INFINITY.to_le_bytes(),
        }
    }
}

/// The largest or the smallest of two floats, as words.
fn of_floats<const LARGEST: bool>(a: u64, b: u64) -> u64 {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    let best = if LARGEST { built_in::greatest(a, b) } else { built_in::least(a, b) };
    best.to_bits()
}

impl Fold for Extreme {
    fn spec(&self) -> String {
        let number = match self.number {
            NumberType::I64 => "i64",
            NumberType::U64 => "u64",
            NumberType::F64 => "f64",
            NumberType::Time => "time",
        };
        format!("{}:{number}", if self.largest { "max" } else { "min" })
    }

    #[inline]
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (a, b) = (word(a)?, word(b)?);
        let earlier_wins = match self.number {
            NumberType::I64 | NumberType::Time => {
                (i64::from_le_bytes(a) >= i64::from_le_bytes(b)) == self.largest
            }
            NumberType::U64 => (u64::from_le_bytes(a) >= u64::from_le_bytes(b)) == self.largest,
            NumberType::F64 => {
                let (a, b) = (f64::from_le_bytes(a), f64::from_le_bytes(b));
                let best = if self.largest { built_in::greatest(a, b) } else { built_in::least(a, b) };
                out.extend_from_slice(&best.to_le_bytes());
                return Ok(Outcome::Value);
            }
        };
        Ok(if earlier_wins { Outcome::KeepEarlier } else { Outcome::KeepLater })
    }

    fn words(&self) -> Option<WordFold> {
        let fold: fn(u64, u64) -> u64 = match (self.number, self.largest) {
            (NumberType::I64 | NumberType::Time, true) => |a: u64, b: u64| (a as i64).max(b as i64) as u64,
            (NumberType::I64 | NumberType::Time, false) => |a: u64, b: u64| (a as i64).min(b as i64) as u64,
            (NumberType::U64, true) => u64::max,
            (NumberType::U64, false) => u64::min,
            (NumberType::F64, true) => of_floats::<true>,
            (NumberType::F64, false) => of_floats::<false>,
        };
        Some(WordFold { fold, strongest: Some(u64::from_le_bytes(self.strongest())) })
    }

    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        *value == self.strongest()
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        word(value).map(|_| ())
    }

    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let word = word(value)?;
        Ok(match self.number {
            NumberType::I64 => Datum::Int(i64::from_le_bytes(word).into()),
            NumberType::U64 => Datum::Int(u64::from_le_bytes(word).into()),
            NumberType::F64 => Datum::Float(f64::from_le_bytes(word)),
            NumberType::Time => time_text::shown(i64::from_le_bytes(word)),
        })
    }

    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&match self.number {
            NumberType::I64 => built_in::integer_i64(datum)?.to_le_bytes(),
            NumberType::U64 => built_in::integer_u64(datum)?.to_le_bytes(),
            NumberType::F64 => built_in::float(datum)?.to_le_bytes(),
            NumberType::Time => built_in::time(datum)?.to_le_bytes(),
        });
        Ok(())
    }

    fn fixed_len(&self) -> Option<usize> {
        Some(8)
    }
}

impl BuiltIn for Extreme {
    fn identity(&self, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.weakest());
        true
    }

    /// The weakest number of `max:u64` is 0, which is an ordinary number; the others are extreme.
    fn is_nothing(&self, value: &[u8]) -> bool {
        *value == self.weakest() && (self.number, self.largest) != (NumberType::U64, true)
    }
}
