//! `quantiles`, `quantiles:ALPHA`: any quantile of the numbers seen, each within the relative error
//! ALPHA (default 0.01).
//!
//! A quantile is the number of the nearest rank, as in SQL's `percentile_disc`: number ⌈q·n⌉ of n
//! numbers in order, the first at which at least the share q of all has been reached. The smallest
//! and the largest are exact.
//!
//! DDSketch (Masson, Rim, Lee, VLDB 2019): buckets that widen with the numbers, so that a bucket's
//! middle is within ALPHA of everything in it. Merging adds the counts of equal buckets, which is
//! associative; buckets are never collapsed, for that would depend on the order of merging. Counts
//! saturate at 2^64-1.
//!
//! ```text
//!   nothing seen   (empty)
//!   one number     8 bytes: f64 little-endian
//!   several        [smallest f64][largest f64][zeros varint]
//!                  [n varint] n x ([bucket][count varint])      numbers below zero, by magnitude
//!                  [n varint] n x ([bucket][count varint])      numbers above zero
//!                  bucket: the first as zigzag varint, each next as the varint of its distance - 1
//! ```
//!
//! The bucket of a number must be the same on every machine, so no logarithm is taken: bucket =
//! ⌊k·f(x)⌋ with k = 0.7 / ln γ, γ = (1 + ALPHA) / (1 - ALPHA), and f the cubic interpolation of
//! log2 between powers of two, made of additions and products only. f'(x)·x >= 10/7, so a bucket
//! spans a factor of at most γ; it costs 1 % more buckets than the logarithm. Infinities fall into
//! the outermost bucket; NaN is refused as an operand.

use folddb_base::bytes::{Malformed, Reader, put_varint};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{self, BuiltIn, fill_varint, malformed, unexpected};

const WHAT: &str = "a quantile sketch";

/// The error if the spec names none.
pub(crate) const ALPHA_DEFAULT: f64 = 0.01;

/// The mapping of numbers to buckets, for one error bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mapping {
    pub(crate) alpha: f64,
    buckets_per_unit: f64,
}

const A: f64 = 6.0 / 35.0;
const B: f64 = -3.0 / 5.0;
const C: f64 = 10.0 / 7.0;

impl Mapping {
    /// `alpha` is clamped to 0.0001 to 0.5.
    pub(crate) const fn new(alpha: f64) -> Mapping {
        let alpha = if alpha.is_nan() { ALPHA_DEFAULT } else { alpha.clamp(0.0001, 0.5) };
        // ln((1+a)/(1-a)) = 2 (a + a^3/3 + a^5/5 + ...): the same on every machine, as library
        // logarithms are not.
        let (mut ln_gamma, mut power, mut odd) = (0.0, alpha, 1u32);
        while odd < 120 {
            ln_gamma += 2.0 * power / odd as f64;
            power *= alpha * alpha;
            odd += 2;
        }
        Mapping { alpha, buckets_per_unit: 0.7 / ln_gamma }
    }

    /// The bucket of a positive number.
    #[inline]
    fn bucket(&self, number: f64) -> i32 {
        let number = number.min(f64::MAX);
        let (mut bits, mut exponent) = (number.to_bits(), -1023);
        if bits >> 52 == 0 {
            bits = (number * (1u64 << 54) as f64).to_bits();
            exponent -= 54;
        }
        exponent += (bits >> 52) as i32;
        let s = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52) - 1.0;
        let log = ((A * s + B) * s + C) * s + f64::from(exponent);
        (log * self.buckets_per_unit).floor() as i32
    }

    /// The lower boundary of a bucket; the inverse of f by bisection.
    fn boundary(&self, bucket: i32) -> f64 {
        let log = f64::from(bucket) / self.buckets_per_unit;
        let exponent = log.floor().clamp(-1100.0, 1100.0);
        let target = log - exponent;
        let (mut low, mut high) = (0.0f64, 1.0f64);
        for _ in 0..60 {
            let s = 0.5 * (low + high);
            if ((A * s + B) * s + C) * s <= target { low = s } else { high = s }
        }
        let half = (exponent / 2.0).floor();
        (1.0 + low) * half.exp2() * (exponent - half).exp2()
    }

    /// A number within `alpha` of every number in a bucket.
    fn middle(&self, bucket: i32) -> f64 {
        let (low, high) = (self.boundary(bucket), self.boundary(bucket.saturating_add(1)).min(f64::MAX));
        // The harmonic mean, written so that nothing overflows.
        if low > 0.0 { high * (2.0 / (1.0 + high / low)) } else { high }
    }
}

/// What a value says, borrowed.
#[derive(Clone, Copy)]
struct Parts<'a> {
    smallest: f64,
    largest: f64,
    zeros: u64,
    negative: Buckets<'a>,
    positive: Buckets<'a>,
}

/// Buckets in order: either encoded, or the one of a lone number.
#[derive(Clone, Copy)]
struct Buckets<'a> {
    left: u64,
    bytes: &'a [u8],
    next: i64,
    first: bool,
    lone: Option<i32>,
}

impl<'a> Buckets<'a> {
    const NONE: Buckets<'static> = Buckets { left: 0, bytes: &[], next: 0, first: true, lone: None };

    fn lone(bucket: i32) -> Buckets<'static> {
        Buckets { left: 1, lone: Some(bucket), ..Buckets::NONE }
    }

    /// Reads the buckets at the front of `reader` by walking over them.
    fn read(reader: &mut Reader<'a>) -> Result<Buckets<'a>, Malformed> {
        let left = reader.varint()?;
        let buckets = Buckets { left, bytes: reader.rest(), ..Buckets::NONE };
        let mut walk = buckets;
        while walk.advance()?.is_some() {}
        *reader = Reader::new(walk.bytes);
        Ok(buckets)
    }

    /// The next bucket with its count.
    #[inline]
    fn advance(&mut self) -> Result<Option<(i32, u64)>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if let Some(bucket) = self.lone {
            return Ok(Some((bucket, 1)));
        }
        let mut reader = Reader::new(self.bytes);
        let step = reader.varint()?;
        let bucket = if self.first {
            (step >> 1) as i64 ^ -((step & 1) as i64)
        } else {
            i64::try_from(step).ok().and_then(|step| self.next.checked_add(step)).ok_or(Malformed::Bounds)?
        };
        let count = reader.varint()?;
        self.bytes = reader.rest();
        self.first = false;
        let bucket = i32::try_from(bucket).map_err(|_| Malformed::Bounds)?;
        self.next = i64::from(bucket) + 1;
        Ok(Some((bucket, count)))
    }
}

impl<'a> Parts<'a> {
    fn of(number: f64, mapping: &Mapping) -> Parts<'static> {
        let side = |wanted: bool| {
            if wanted { Buckets::lone(mapping.bucket(number.abs())) } else { Buckets::NONE }
        };
        Parts {
            smallest: number,
            largest: number,
            zeros: u64::from(number == 0.0),
            negative: side(number < 0.0),
            positive: side(number > 0.0),
        }
    }

    /// None for the empty sketch.
    fn from_bytes(value: &'a [u8], mapping: &Mapping) -> Result<Option<Parts<'a>>, FoldFailure> {
        if value.is_empty() {
            return Ok(None);
        }
        if let Ok(number) = <[u8; 8]>::try_from(value) {
            let number = f64::from_le_bytes(number);
            if number.is_nan() {
                return Err(FoldFailure::new("expected a quantile sketch, found NaN"));
            }
            return Ok(Some(Parts::of(number, mapping)));
        }
        let mut reader = Reader::new(value);
        let wrong = malformed(WHAT);
        let smallest = f64::from_bits(reader.u64().map_err(&wrong)?);
        let largest = f64::from_bits(reader.u64().map_err(&wrong)?);
        let zeros = reader.varint().map_err(&wrong)?;
        let negative = Buckets::read(&mut reader).map_err(&wrong)?;
        let positive = Buckets::read(&mut reader).map_err(&wrong)?;
        reader.finish().map_err(&wrong)?;
        Ok(Some(Parts { smallest, largest, zeros, negative, positive }))
    }
}

/// Writes buckets in order.
struct BucketWriter {
    last: Option<i32>,
}

impl BucketWriter {
    #[inline]
    fn put(&mut self, out: &mut Vec<u8>, bucket: i32, count: u64) {
        match self.last.replace(bucket) {
            None => {
                let bucket = i64::from(bucket);
                put_varint(out, ((bucket << 1) ^ (bucket >> 63)) as u64);
            }
            Some(last) => put_varint(out, (i64::from(bucket) - i64::from(last) - 1) as u64),
        }
        put_varint(out, count);
    }
}

/// Calls `each` with the buckets of both sides in order, counts of equal ones added.
fn merge(mut a: Buckets<'_>, mut b: Buckets<'_>, mut each: impl FnMut(i32, u64)) -> Result<(), Malformed> {
    let (mut x, mut y) = (a.advance()?, b.advance()?);
    loop {
        match (x, y) {
            (None, None) => return Ok(()),
            (Some((p, m)), Some((q, n))) if p == q => {
                each(p, m.saturating_add(n));
                (x, y) = (a.advance()?, b.advance()?);
            }
            (Some((p, m)), other) if other.is_none_or(|(q, _)| p < q) => {
                each(p, m);
                x = a.advance()?;
            }
            (_, Some((q, n))) => {
                each(q, n);
                y = b.advance()?;
            }
            (Some(_), None) => return Ok(()),
        }
    }
}

fn put_merged(a: Buckets<'_>, b: Buckets<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let at = out.len();
    out.push(0);
    let mut buckets = 0;
    let mut writer = BucketWriter { last: None };
    merge(a, b, |bucket, count| {
        writer.put(out, bucket, count);
        buckets += 1;
    })?;
    fill_varint(out, at, buckets);
    Ok(())
}

/// `quantiles:ALPHA`.
pub(crate) struct QuantilesFold {
    pub(crate) mapping: Mapping,
}

impl Fold for QuantilesFold {
    fn spec(&self) -> String {
        if self.mapping.alpha == ALPHA_DEFAULT {
            "quantiles".to_owned()
        } else {
            format!("quantiles:{}", self.mapping.alpha)
        }
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (a, b) = (Parts::from_bytes(a, &self.mapping)?, Parts::from_bytes(b, &self.mapping)?);
        let Some(b) = b else { return Ok(Outcome::KeepEarlier) };
        let Some(a) = a else { return Ok(Outcome::KeepLater) };
        out.extend_from_slice(&built_in::least(a.smallest, b.smallest).to_le_bytes());
        out.extend_from_slice(&built_in::greatest(a.largest, b.largest).to_le_bytes());
        put_varint(out, a.zeros.saturating_add(b.zeros));
        put_merged(a.negative, b.negative, out).map_err(malformed(WHAT))?;
        put_merged(a.positive, b.positive, out).map_err(malformed(WHAT))?;
        Ok(Outcome::Value)
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        Sketch::from_bytes(self.mapping, value).map(|_| ())
    }

    /// A map of `count`, `min`, `p50`, `p90`, `p99` and `max`.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let sketch = Sketch::from_bytes(self.mapping, value)?;
        let mut fields = vec![("count".to_owned(), Datum::Int(sketch.count().into()))];
        for (name, q) in [("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
            fields.extend(sketch.quantile(q).map(|number| (name.to_owned(), Datum::Float(number))));
        }
        Ok(Datum::Map(fields))
    }

    /// A number, or a list of them; not NaN.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let number = |datum: &Datum| match built_in::float(datum)? {
            number if number.is_nan() => unexpected("a number", datum),
            number => Ok(number),
        };
        let mut sketch = Sketch::by(self.mapping);
        match datum {
            Datum::List(items) => {
                for item in items {
                    sketch.add(number(item)?);
                }
            }
            one => sketch.add(number(one)?),
        }
        out.extend_from_slice(&sketch.bytes);
        Ok(())
    }
}

impl BuiltIn for QuantilesFold {}

/// A quantile of a value of the fold that this spec names.
pub(crate) fn of_spec(spec: &str, value: &[u8], q: f64) -> Result<Option<f64>, FoldFailure> {
    let alpha = match spec.strip_prefix("quantiles") {
        Some("") => Some(ALPHA_DEFAULT),
        Some(rest) => rest.strip_prefix(':').and_then(|alpha| alpha.parse().ok()),
        None => None,
    };
    let Some(alpha) = alpha else {
        return Err(FoldFailure::new(format!("expected the fold `quantiles`, found `{spec}`")));
    };
    Ok(Sketch::from_bytes(Mapping::new(alpha), value)?.quantile(q))
}

/// A sketch with an error that is known at run time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sketch {
    mapping: Mapping,
    bytes: Vec<u8>,
}

impl Sketch {
    /// An empty sketch.
    fn by(mapping: Mapping) -> Sketch {
        Sketch { mapping, bytes: Vec::new() }
    }

    /// Counts a number. NaN is not counted.
    pub(crate) fn add(&mut self, number: f64) {
        if !number.is_nan() {
            self.merge_bytes(&number.to_le_bytes());
        }
    }

    /// Adds the numbers of `other`.
    ///
    /// # Errors
    /// When the sketches differ in their error.
    pub(crate) fn merge(&mut self, other: &Sketch) -> Result<(), FoldFailure> {
        if self.mapping != other.mapping {
            return Err(FoldFailure::new(format!(
                "expected a sketch with the error {}, found one with {}",
                self.mapping.alpha, other.mapping.alpha
            )));
        }
        self.merge_bytes(&other.bytes);
        Ok(())
    }

    fn merge_bytes(&mut self, other: &[u8]) {
        let mut out = Vec::new();
        let fold = QuantilesFold { mapping: self.mapping };
        match fold.fold(&[], &self.bytes, other, &mut out) {
            Ok(Outcome::Value) => self.bytes = out,
            Ok(Outcome::KeepLater) => self.bytes = other.to_vec(),
            // Both are sketches: nothing can fail.
            Ok(Outcome::KeepEarlier | Outcome::Delete) | Err(_) => {}
        }
    }

    fn parts(&self) -> Option<Parts<'_>> {
        Parts::from_bytes(&self.bytes, &self.mapping).ok().flatten()
    }

    /// How many numbers there were.
    pub(crate) fn count(&self) -> u64 {
        let Some(parts) = self.parts() else { return 0 };
        let mut total = parts.zeros;
        let mut add = |_, count| total = u64::saturating_add(total, count);
        let _ = merge(parts.negative, Buckets::NONE, &mut add);
        let _ = merge(parts.positive, Buckets::NONE, &mut add);
        total
    }

    /// The smallest number seen, exactly.
    pub(crate) fn min(&self) -> Option<f64> {
        self.parts().map(|parts| parts.smallest)
    }

    /// The largest number seen, exactly.
    pub(crate) fn max(&self) -> Option<f64> {
        self.parts().map(|parts| parts.largest)
    }

    /// The least number such that at least the share `q` (0 to 1) of all numbers is not above it,
    /// within the relative error: the nearest rank, as in SQL's `percentile_disc`. The smallest and
    /// the largest number are exact. None if nothing was seen.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let parts = self.parts()?;
        let q = if q.is_nan() { 0.5 } else { q.clamp(0.0, 1.0) };
        let (rank, last) = (nearest_rank(q, self.count()), self.count().saturating_sub(1));
        if rank == 0 || rank == last {
            return Some(if rank == 0 { parts.smallest } else { parts.largest });
        }
        let number = self.ranked(&parts, rank);
        Some(if number < parts.smallest || number > parts.largest {
            if number < parts.smallest { parts.smallest } else { parts.largest }
        } else {
            number
        })
    }

    /// The number with `rank` numbers before it.
    fn ranked(&self, parts: &Parts<'_>, rank: u64) -> f64 {
        let mut negative = Vec::new();
        let _ = merge(parts.negative, Buckets::NONE, |bucket, count| negative.push((bucket, count)));
        let mut seen = 0u64;
        for (bucket, count) in negative.into_iter().rev() {
            seen = seen.saturating_add(count);
            if seen > rank {
                return -self.mapping.middle(bucket);
            }
        }
        seen = seen.saturating_add(parts.zeros);
        if seen > rank {
            return 0.0;
        }
        let mut positive = parts.positive;
        while let Ok(Some((bucket, count))) = positive.advance() {
            seen = seen.saturating_add(count);
            if seen > rank {
                return self.mapping.middle(bucket);
            }
        }
        parts.largest
    }

    /// The value's bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads a value; fails when the bytes are not a sketch.
    pub(crate) fn from_bytes(mapping: Mapping, value: &[u8]) -> Result<Sketch, FoldFailure> {
        let sketch = Sketch { mapping, bytes: value.to_vec() };
        let parts = Parts::from_bytes(value, &sketch.mapping)?;
        if let Some(parts) = parts
            && value.len() != 8
        {
            sketch.check_several(&parts)?;
        }
        Ok(sketch)
    }

    fn check_several(&self, parts: &Parts<'_>) -> Result<(), FoldFailure> {
        let outermost = (self.mapping.bucket(f64::from_bits(1)), self.mapping.bucket(f64::MAX));
        let mut in_range = !parts.smallest.is_nan() && !parts.largest.is_nan() && self.count() >= 2;
        let mut see = |bucket, count| in_range &= count > 0 && bucket >= outermost.0 && bucket <= outermost.1;
        merge(parts.negative, Buckets::NONE, &mut see).map_err(malformed(WHAT))?;
        merge(parts.positive, Buckets::NONE, &mut see).map_err(malformed(WHAT))?;
        if in_range { Ok(()) } else { Err(malformed(WHAT)(Malformed::Order)) }
    }
}

/// A sketch of a distribution: the value type of `quantiles`. Its relative error is given in
/// hundredths of a percent: `Quantiles<100>`, the default, is that of `quantiles:0.01`.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::Quantiles;
/// let mut delays = <Quantiles>::default();
/// (1..=1000).for_each(|delay| delays.add(f64::from(delay)));
/// let median = delays.quantile(0.5).unwrap();
/// assert!((median - 500.0).abs() <= 5.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles<const BASIS_POINTS: u32 = 100>(Sketch);

impl<const BASIS_POINTS: u32> Default for Quantiles<BASIS_POINTS> {
    fn default() -> Self {
        Quantiles::new()
    }
}

impl<const BASIS_POINTS: u32> Quantiles<BASIS_POINTS> {
    const MAPPING: Mapping = {
        assert!(1 <= BASIS_POINTS && BASIS_POINTS <= 5000, "the relative error is from 0.0001 to 0.5");
        Mapping::new(Self::ALPHA)
    };

    /// The relative error.
    pub const ALPHA: f64 = BASIS_POINTS as f64 / 10_000.0;

    /// An empty sketch. A relative error that is not from 0.0001 to 0.5 does not compile.
    pub fn new() -> Self {
        Quantiles(Sketch::by(Self::MAPPING))
    }

    /// A sketch of one number; an empty one for NaN.
    pub fn of(number: f64) -> Self {
        let mut sketch = Quantiles::new();
        sketch.add(number);
        sketch
    }

    /// Counts a number. NaN is not counted.
    pub fn add(&mut self, number: f64) {
        self.0.add(number);
    }

    /// Adds the numbers of `other`.
    pub fn merge(&mut self, other: &Self) {
        let _ = self.0.merge(&other.0); // both have the same error: nothing can fail
    }

    /// How many numbers there were.
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// The smallest number seen, exactly.
    pub fn min(&self) -> Option<f64> {
        self.0.min()
    }

    /// The largest number seen, exactly.
    pub fn max(&self) -> Option<f64> {
        self.0.max()
    }

    /// The least number such that at least the share `q` (0 to 1) of all numbers is not above it,
    /// within the relative error: the nearest rank, as in SQL's `percentile_disc`. The smallest and
    /// the largest number are exact. None if nothing was seen.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.0.quantile(q)
    }

    /// The value's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Reads a value of `quantiles:ALPHA`.
    ///
    /// # Errors
    /// When the bytes are not a sketch.
    pub fn from_bytes(value: &[u8]) -> Result<Self, FoldFailure> {
        Sketch::from_bytes(Self::MAPPING, value).map(Quantiles)
    }
}

/// How many of `count` numbers come before the one at which the share `q` of them is reached:
/// ⌈q·count⌉ - 1. A product that is whole except for rounding counts as whole: 0.07 of 100 is 7.
fn nearest_rank(q: f64, count: u64) -> u64 {
    let passed = q * count as f64;
    let whole = passed.round();
    let is_whole = (passed - whole).abs() <= whole * (2.0 * f64::EPSILON);
    let number = if is_whole { whole } else { passed.ceil() } as u64;
    number.clamp(1, count.max(1)) - 1
}

#[cfg(test)]
#[path = "quantiles/tests.rs"]
mod tests;
