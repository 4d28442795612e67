//! `hll:P`: how many distinct members there were, with a standard error of 1.04 / sqrt(2^P) (1.6 %
//! for P = 12).
//!
//! HyperLogLog (Flajolet et al. 2007) with a 64-bit hash: member to hash (xxh3-64, frozen), the top
//! P bits choose one of m = 2^P registers, which keeps the largest count of leading zeros + 1 in
//! the rest.
//!
//! ```text
//!   sparse   3n bytes, while 3n < m   [register << 6 | rank, u24 little-endian] ...   ascending; ranks not 0
//!   dense    m bytes                  [rank u8] ...
//! ```
//!
//! Folding takes the larger of each register, which is associative (and commutative). The form
//! follows from the registers alone: sparse exactly while that is shorter; so equal registers are
//! equal bytes under any merge schedule; a dense sketch never becomes sparse again, since ranks
//! only rise. m is a power of two and no multiple of three, so the length says which form it is.
//! The empty sketch is no bytes. The estimator is the improved raw one of Ertl (2017, "New
//! cardinality estimation algorithms for HyperLogLog sketches", algorithm 6), unbiased over the
//! whole range without tables.

use folddb_base::checksum::key_hash;

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome, fold_in_pairs};

use super::built_in::{BuiltIn, SEVERAL, plain_bytes};

/// Least P.
pub(crate) const PRECISION_MIN: u32 = 4;
/// Largest P.
pub(crate) const PRECISION_MAX: u32 = 18;

const ENTRY_BYTES: usize = 3;
const RANK_BITS: u32 = 6;

/// `hll:P`.
pub(crate) struct HllFold {
    pub(crate) precision: u32,
}

/// A sketch in one of its forms, borrowed.
#[derive(Clone, Copy)]
enum Form<'a> {
    Sparse(&'a [u8]),
    Dense(&'a [u8]),
}

#[inline]
fn entry(bytes: &[u8]) -> u32 {
    match *bytes {
        [a, b, c, ..] => u32::from_le_bytes([a, b, c, 0]),
        _ => 0,
    }
}

#[inline]
fn put_entry(out: &mut Vec<u8>, entry: u32) {
    let [a, b, c, _] = entry.to_le_bytes();
    out.extend_from_slice(&[a, b, c]);
}

#[inline]
fn entries(sparse: &[u8]) -> impl Iterator<Item = u32> {
    sparse.chunks_exact(ENTRY_BYTES).map(entry)
}

/// Where the entry of `register` is in a sparse form, or would be.
fn place_of(sparse: &[u8], register: usize) -> usize {
    let (mut low, mut high) = (0, sparse.len() / ENTRY_BYTES);
    while low < high {
        let middle = (low + high) / 2;
        if split(entry(&sparse[ENTRY_BYTES * middle..])).0 < register {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    ENTRY_BYTES * low
}

fn split(entry: u32) -> (usize, u8) {
    ((entry >> RANK_BITS) as usize, (entry & ((1 << RANK_BITS) - 1)) as u8)
}

impl HllFold {
    fn registers(&self) -> usize {
        1 << self.precision
    }

    fn form<'a>(&self, value: &'a [u8]) -> Result<Form<'a>, FoldFailure> {
        let registers = self.registers();
        if value.len() == registers {
            return Ok(Form::Dense(value));
        }
        if value.len() < registers && value.len().is_multiple_of(ENTRY_BYTES) {
            return Ok(Form::Sparse(value));
        }
        Err(FoldFailure::new(format!(
            "expected a sketch of {registers} registers (shorter and a multiple of 3 bytes, or {registers} bytes), \
             found {} bytes",
            value.len()
        )))
    }

    fn raise(&self, ranks: &mut [u8], sparse: &[u8]) {
        for (register, rank) in entries(sparse).map(split) {
            if let Some(have) = ranks.get_mut(register) {
                *have = (*have).max(rank);
            }
        }
    }

    fn merge_sparse(&self, a: &[u8], b: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let (mut left, mut right) = (entries(a).peekable(), entries(b).peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => left.next(),
                (None, Some(_)) => right.next(),
                (Some(&x), Some(&y)) => match (x >> RANK_BITS).cmp(&(y >> RANK_BITS)) {
                    std::cmp::Ordering::Less => left.next(),
                    std::cmp::Ordering::Greater => right.next(),
                    std::cmp::Ordering::Equal => {
                        right.next();
                        left.next().map(|x| x.max(y))
                    }
                },
            };
            put_entry(out, next.unwrap_or(0));
        }
        self.settle(start, out);
    }

    /// Makes the sparse form that begins at `start` dense when it is no longer shorter.
    fn settle(&self, start: usize, out: &mut Vec<u8>) {
        if out.len() - start >= self.registers() {
            let sparse = out.split_off(start);
            out.resize(start + self.registers(), 0);
            self.raise(&mut out[start..], &sparse);
        }
    }

    /// The entry of one member.
    fn entry_of(&self, member: &[u8]) -> u32 {
        let hash = key_hash(member);
        let register = (hash >> (64 - self.precision)) as u32;
        let rest_bits = 64 - self.precision;
        let rank = (hash << self.precision).leading_zeros().min(rest_bits) + 1;
        register << RANK_BITS | rank
    }

    /// Largest rank that a hash can have.
    fn rank_max(&self) -> u8 {
        (64 - self.precision + 1) as u8
    }

    /// How many registers hold each rank.
    fn histogram(&self, value: &[u8]) -> Result<[u32; 64], FoldFailure> {
        let mut counts = [0u32; 64];
        match self.form(value)? {
            Form::Dense(ranks) => ranks.iter().for_each(|&rank| counts[usize::from(rank & 63)] += 1),
            Form::Sparse(sparse) => {
                entries(sparse).for_each(|entry| counts[usize::from(split(entry).1)] += 1);
                counts[0] += (self.registers() - sparse.len() / ENTRY_BYTES) as u32;
            }
        }
        Ok(counts)
    }

    fn estimate(&self, value: &[u8]) -> Result<f64, FoldFailure> {
        let counts = self.histogram(value)?;
        let registers = self.registers() as f64;
        let longest = 64 - self.precision as usize;
        let mut z = registers * tau((registers - f64::from(counts[longest + 1])) / registers);
        for rank in (1..=longest).rev() {
            z = 0.5 * (z + f64::from(counts[rank]));
        }
        z += registers * sigma(f64::from(counts[0]) / registers);
        const ALPHA_INFINITE: f64 = 0.5 / std::f64::consts::LN_2;
        Ok(ALPHA_INFINITE * registers * registers / z)
    }
}

/// Ertl's σ: what registers still at zero contribute.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Ertl's τ: what saturated registers contribute.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

impl Fold for HllFold {
    fn spec(&self) -> String {
        format!("hll:{}", self.precision)
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let start = out.len();
        match (self.form(a)?, self.form(b)?) {
            (Form::Sparse(a), Form::Sparse(b)) => self.merge_sparse(a, b, out),
            (Form::Dense(dense), Form::Sparse(sparse)) | (Form::Sparse(sparse), Form::Dense(dense)) => {
                out.extend_from_slice(dense);
                self.raise(&mut out[start..], sparse);
            }
            (Form::Dense(a), Form::Dense(b)) => out.extend(a.iter().zip(b).map(|(x, y)| *x.max(y))),
        }
        Ok(Outcome::Value)
    }

    /// By way of all registers, if the values are not much shorter than these.
    fn fold_all(&self, key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let registers = self.registers();
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        if values.len() < SEVERAL || bytes < registers / 16 {
            return fold_in_pairs(self, key, values, out);
        }
        let mut ranks = vec![0; registers];
        for value in values {
            match self.form(value)? {
                Form::Dense(dense) => ranks.iter_mut().zip(dense).for_each(|(x, y)| *x = (*x).max(*y)),
                Form::Sparse(sparse) => self.raise(&mut ranks, sparse),
            }
        }
        if ranks.iter().filter(|rank| **rank > 0).count() * ENTRY_BYTES >= registers {
            out.extend_from_slice(&ranks);
            return Ok(());
        }
        for (register, rank) in (0..).zip(ranks).filter(|(_, rank)| *rank > 0) {
            put_entry(out, register << RANK_BITS | u32::from(rank));
        }
        Ok(())
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        let wrong = |what: &str| Err(FoldFailure::new(format!("expected a sketch, {what}")));
        match self.form(value)? {
            Form::Dense(ranks) => {
                if ranks.iter().any(|&rank| rank > self.rank_max()) {
                    return wrong("a rank is out of range");
                }
                if ranks.iter().filter(|&&rank| rank > 0).count() * ENTRY_BYTES < self.registers() {
                    return wrong("its sparse form would be shorter");
                }
            }
            Form::Sparse(sparse) => {
                let mut last = None;
                for (register, rank) in entries(sparse).map(split) {
                    if rank == 0 || rank > self.rank_max() || register >= self.registers() {
                        return wrong("a rank or register is out of range");
                    }
                    if last.replace(register).is_some_and(|last| last >= register) {
                        return wrong("its registers are out of order");
                    }
                }
            }
        }
        Ok(())
    }

    /// The estimated number of distinct members.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::Int(self.estimate(value)?.round() as i128))
    }

    /// A member, or a list of members. A number counts as it is written.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        match datum {
            Datum::List(items) => {
                let mut sketch = Sketch::new(self.precision);
                for item in items {
                    sketch.insert(&plain_bytes(item)?);
                }
                out.extend_from_slice(sketch.as_bytes());
            }
            one => put_entry(out, self.entry_of(&plain_bytes(one)?)),
        }
        Ok(())
    }
}

impl BuiltIn for HllFold {}

/// A sketch with a precision that is known at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sketch {
    precision: u32,
    bytes: Vec<u8>,
}

impl Sketch {
    /// An empty sketch. `precision` is clamped to 4 to 18.
    pub(crate) fn new(precision: u32) -> Sketch {
        Sketch { precision: precision.clamp(PRECISION_MIN, PRECISION_MAX), bytes: Vec::new() }
    }

    fn fold(&self) -> HllFold {
        HllFold { precision: self.precision }
    }

    /// Counts a member.
    pub(crate) fn insert(&mut self, member: &[u8]) {
        let fold = self.fold();
        let (register, rank) = split(fold.entry_of(member));
        if self.bytes.len() == fold.registers() {
            self.bytes[register] = self.bytes[register].max(rank);
            return;
        }
        let new = (register as u32) << RANK_BITS | u32::from(rank);
        let place = place_of(&self.bytes, register);
        let found = self.bytes.get(place..place + ENTRY_BYTES).map(entry);
        match found {
            // Of one register the larger entry has the larger rank.
            Some(have) if have >> RANK_BITS == register as u32 => {
                let bytes = have.max(new).to_le_bytes();
                self.bytes[place..place + ENTRY_BYTES].copy_from_slice(&bytes[..ENTRY_BYTES]);
            }
            _ => {
                self.bytes.splice(place..place, new.to_le_bytes()[..ENTRY_BYTES].iter().copied());
                fold.settle(0, &mut self.bytes);
            }
        }
    }

    /// Adds the members of `other`.
    ///
    /// # Errors
    /// When the sketches differ in precision.
    pub(crate) fn merge(&mut self, other: &Sketch) -> Result<(), FoldFailure> {
        if self.precision != other.precision {
            return Err(FoldFailure::new(format!(
                "expected a sketch of precision {}, found one of {}",
                self.precision, other.precision
            )));
        }
        let mut out = Vec::new();
        self.fold().fold(&[], &self.bytes, &other.bytes, &mut out)?;
        self.bytes = out;
        Ok(())
    }

    /// How many distinct members there were, about.
    pub(crate) fn estimate(&self) -> u64 {
        self.fold().estimate(&self.bytes).map_or(0, |estimate| estimate.round() as u64)
    }

    /// The value's bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads a value of `hll:P`.
    ///
    /// # Errors
    /// When the bytes are not a sketch of this precision.
    pub(crate) fn from_bytes(precision: u32, value: &[u8]) -> Result<Sketch, FoldFailure> {
        let mut sketch = Sketch::new(precision);
        sketch.fold().check(value)?;
        sketch.bytes = value.to_vec();
        Ok(sketch)
    }
}

/// A sketch of how many distinct members there were: the value type of `hll:P`.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::Hll;
/// let mut seen = <Hll>::default(); // of precision 12
/// for day in 0..3 {
///     for visitor in 0..1000u32 { seen.insert(&(visitor + day).to_le_bytes()); }
/// }
/// assert!((980..1020).contains(&seen.estimate()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hll<const P: u32 = 12>(Sketch);

impl<const P: u32> Default for Hll<P> {
    fn default() -> Hll<P> {
        Hll::new()
    }
}

impl<const P: u32> Hll<P> {
    /// An empty sketch. A precision that is not from 4 to 18 does not compile.
    pub fn new() -> Hll<P> {
        const { assert!(PRECISION_MIN <= P && P <= PRECISION_MAX, "the precision of a sketch is from 4 to 18") };
        Hll(Sketch::new(P))
    }

    /// A sketch of one member.
    pub fn of(member: impl AsRef<[u8]>) -> Hll<P> {
        let mut sketch = Hll::new();
        sketch.insert(member);
        sketch
    }

    /// Counts a member.
    pub fn insert(&mut self, member: impl AsRef<[u8]>) {
        self.0.insert(member.as_ref());
    }

    /// Adds the members of `other`.
    pub fn merge(&mut self, other: &Hll<P>) {
        let _ = self.0.merge(&other.0); // both have the same precision: nothing can fail
    }

    /// How many distinct members there were, about.
    pub fn estimate(&self) -> u64 {
        self.0.estimate()
    }

    /// The value's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Reads a value of `hll:P`.
    ///
    /// # Errors
    /// When the bytes are not a sketch of this precision.
    pub fn from_bytes(value: &[u8]) -> Result<Hll<P>, FoldFailure> {
        Sketch::from_bytes(Hll::<P>::new().0.precision, value).map(Hll)
    }
}

#[cfg(test)]
#[path = "hll/tests.rs"]
mod tests;
