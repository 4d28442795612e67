//! Where random numbers come from. The store needs few: its identity, and a salt for each segment.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A source of random numbers.
pub trait Chance: Send + Sync {
    /// A random number.
    fn next_u64(&self) -> u64;
}

/// The operating system's randomness, through the keys that the standard library seeds its maps
/// with.
#[derive(Debug, Default)]
pub struct SystemChance {}

impl Chance for SystemChance {
    fn next_u64(&self) -> u64 {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(u64::from(std::process::id()));
        hasher.finish()
    }
}
