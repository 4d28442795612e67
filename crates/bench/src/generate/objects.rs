//! Larger values: documents that grow by small appends (`ydb`), and objects of some kilobytes that
//! are replaced whole (`more-than-ram`, `leveled`, `elliptics`). Each is a function of its key and
//! of how often it was written, so a reader can check what it finds from two numbers.

use super::{Chance, mix};

/// Appends to random documents: the updates of YDB's benchmark. Ten of them let an item grow to
/// about 142 bytes.
#[derive(Clone, Debug)]
pub struct Appends {
    chance: Chance,
    documents: u64,
    operand: [u8; APPEND_BYTES_MAX],
}

const APPEND_BYTES_MIN: u64 = 4;
const APPEND_BYTES_MAX: usize = 24;

impl Appends {
    /// Appends to this many documents. The same seed gives the same appends.
    pub fn new(seed: u64, documents: u64) -> Appends {
        Appends { chance: Chance::new(seed), documents: documents.max(1), operand: [0; APPEND_BYTES_MAX] }
    }

    /// The number of the next document, and what is appended to it: 4 to 24 bytes.
    #[inline]
    #[allow(clippy::should_implement_trait)] // what it lends ends with the next call
    pub fn next(&mut self) -> (u64, &[u8]) {
        let document = self.chance.below(self.documents);
        let choices = APPEND_BYTES_MAX as u64 - APPEND_BYTES_MIN + 1;
        let len_bytes = (APPEND_BYTES_MIN + self.chance.below(choices)) as usize;
        for word in self.operand.chunks_mut(8) {
            word.copy_from_slice(&self.chance.next().to_le_bytes()[..word.len()]);
        }
        (document, &self.operand[..len_bytes])
    }
}

/// Values that look random: each is a stamp of its own, and then a piece of one pool of bytes. They
/// are made at the speed of a copy, and no two are equal, so a wrong value is always noticed.
#[derive(Clone, Debug)]
pub struct Objects {
    pool: Vec<u8>,
    bytes_min: usize,
    bytes_max: usize,
}

/// A stamp is the key, and how often it was written before.
const STAMP_BYTES: usize = 16;

impl Objects {
    /// Objects of this many bytes, both bounds included; `bytes_min` is at least 16. The same seed
    /// gives the same objects.
    pub fn new(seed: u64, bytes_min: usize, bytes_max: usize) -> Objects {
        let (bytes_min, bytes_max) = (bytes_min.max(STAMP_BYTES), bytes_max.max(bytes_min).max(STAMP_BYTES));
        let mut chance = Chance::new(seed ^ 0x6f62_6a65_6374_7321);
        let words = (1 << 17) + bytes_max.div_ceil(8);
        let pool = (0..words).flat_map(|_| chance.next().to_le_bytes()).collect();
        Objects { pool, bytes_min, bytes_max }
    }

    /// How long a version of an object is.
    #[inline]
    pub fn len_bytes(&self, key: u64, version: u64) -> usize {
        let choices = (self.bytes_max - self.bytes_min + 1) as u64;
        self.bytes_min + (mix(key ^ version.rotate_left(40)) % choices) as usize
    }

    /// Puts a version of an object into `value`.
    #[inline]
    pub fn fill(&self, key: u64, version: u64, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&key.to_le_bytes());
        value.extend_from_slice(&version.to_le_bytes());
        value.extend_from_slice(self.body(key, version));
    }

    /// The key and the version in the stamp of a value, if the rest of it is right.
    #[inline]
    pub fn read(&self, value: &[u8]) -> Option<(u64, u64)> {
        let (key, rest) = value.split_first_chunk()?;
        let (version, body) = rest.split_first_chunk()?;
        let (key, version) = (u64::from_le_bytes(*key), u64::from_le_bytes(*version));
        (body == self.body(key, version)).then_some((key, version))
    }

    /// What follows the stamp.
    fn body(&self, key: u64, version: u64) -> &[u8] {
        let len_bytes = self.len_bytes(key, version) - STAMP_BYTES;
        let start = mix(key.wrapping_mul(31) ^ version) as usize % (self.pool.len() - len_bytes);
        &self.pool[start..start + len_bytes]
    }
}

/// Numbers below a bound. The first fifth of them gets four fifths of all hits, and the same holds
/// within it: the self-similar distribution of Gray et al. («Quickly generating billion-record
/// synthetic databases», 1994), which is Pareto's rule.
#[derive(Clone, Copy, Debug)]
pub struct Pareto {
    numbers: u64,
    exponent: f64,
}

impl Pareto {
    /// Numbers below `numbers`, which is at least 1.
    pub fn new(numbers: u64) -> Pareto {
        Pareto { numbers: numbers.max(1), exponent: 0.2f64.ln() / 0.8f64.ln() }
    }

    /// The next number.
    #[inline]
    pub fn number(&self, chance: &mut Chance) -> u64 {
        let number = (self.numbers as f64 * chance.unit().powf(self.exponent)) as u64;
        number.min(self.numbers - 1)
    }
}

#[cfg(test)]
#[path = "objects/tests.rs"]
mod tests;
