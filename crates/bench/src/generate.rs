//! Where the keys and values of the benches come from: pure functions of a seed, so that a second
//! pass knows what must be in the store without having kept anything.

mod objects;

pub use objects::{Appends, Objects, Pareto};

/// A bijection of 64-bit numbers that looks random: the finalizer of MurmurHash3 (Appleby).
#[inline]
pub fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Random numbers by a counter: splitmix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Chance {
        Chance { state: mix(seed ^ 0x9e37_79b9_7f4a_7c15) }
    }

    /// The next number.
    #[inline]
    #[allow(clippy::should_implement_trait)] // numbers without end need no Option
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`, which is not 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from 0 to 1, excluding 1.
    #[inline]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The rows of `hugedb`: the key of an index is its image under a bijection, so keys are distinct
/// by construction, and any index after the last gives a key that is absent. The value follows from
/// the key.
#[derive(Clone, Copy, Debug)]
pub struct RandomRows {
    offset: u64,
}

impl RandomRows {
    /// The same seed gives the same rows.
    pub fn new(seed: u64) -> RandomRows {
        RandomRows { offset: mix(seed.wrapping_add(1)) }
    }

    /// The key of an index.
    #[inline]
    pub fn key(&self, index: u64) -> u64 {
        mix(index.wrapping_add(self.offset))
    }

    /// The value of a key.
    #[inline]
    pub fn value(&self, key: u64) -> u64 {
        mix(key ^ 0x5bd1_e995_7b1f_2d3c)
    }
}

/// Ranks from 1 to n with probability proportional to 1/rank, by rejection-inversion
/// (Hörmann and Derflinger 1996, with exponent 1).
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    low: f64,
    high: f64,
    sure: f64,
}

impl Zipf {
    /// Ranks up to `n`, which is at least 1.
    pub fn new(n: u64) -> Zipf {
        let n = n.max(1);
        Zipf { n, low: 1.5f64.ln() - 1.0, high: (n as f64 + 0.5).ln(), sure: 2.0 - (2.5f64.ln() - 0.5).exp() }
    }

    /// The next rank.
    pub fn rank(&self, chance: &mut Chance) -> u64 {
        loop {
            let u = self.high + chance.unit() * (self.low - self.high);
            let x = u.exp();
            let rank = (x + 0.5).clamp(1.0, self.n as f64).floor();
            if rank - x <= self.sure || u >= (rank + 0.5).ln() - 1.0 / rank {
                return rank as u64;
            }
        }
    }
}

/// The writes of `osmos`: sums on keys by Zipf's law. The hot keys are scattered over the key
/// space.
#[derive(Clone, Debug)]
pub struct ZipfWrites {
    zipf: Zipf,
    keys: u64,
    stride: u64,
    chance: Chance,
}

/// Bytes of a key of `osmos`: `user:` and ten digits.
pub const USER_KEY_BYTES: usize = 15;

impl ZipfWrites {
    /// Writes on this many keys. The same seed gives the same writes.
    pub fn new(seed: u64, keys: u64) -> ZipfWrites {
        let keys = keys.max(1);
        let mut stride = (keys as f64 * 0.618_033_988_749_895) as u64 | 1;
        while greatest_common_divisor(stride, keys) != 1 {
            stride += 2;
        }
        ZipfWrites { zipf: Zipf::new(keys), keys, stride, chance: Chance::new(seed) }
    }

    /// The number of the next key.
    pub fn next_key(&mut self) -> u64 {
        let rank = self.zipf.rank(&mut self.chance) - 1;
        // A stride without a common divisor with the number of keys visits each of them once.
        (u128::from(rank) * u128::from(self.stride) % u128::from(self.keys)) as u64
    }

    /// What is added next: 1 to 100.
    pub fn next_operand(&mut self) -> u64 {
        1 + self.chance.below(100)
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A key of `osmos`, as text without an allocation.
pub struct UserKey([u8; USER_KEY_BYTES]);

impl UserKey {
    /// The key of a number of at most ten digits.
    #[inline]
    pub fn new(mut number: u64) -> UserKey {
        let mut text = *b"user:0000000000";
        for digit in text[5..].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        UserKey(text)
    }

    /// The key as text.
    #[inline]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default() // always ASCII
    }

    /// The number of a key that [`UserKey::new`] made.
    pub fn parse(text: &str) -> Option<u64> {
        text.strip_prefix("user:").filter(|digits| digits.len() == 10)?.parse().ok()
    }
}

#[cfg(test)]
#[path = "generate/tests.rs"]
mod tests;
