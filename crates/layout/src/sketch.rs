//! How many distinct keys several parts hold together, without reading them.
//!
//! Each part keeps the 256 smallest hashes of its keys (k minimum values; Bar-Yossef et al.,
//! "Counting Distinct Elements in a Data Stream", 2002). The union of several sketches is again a
//! sketch, and its 256th value gives the number of keys within about 6 %. So a merge knows
//! beforehand how much it will shrink.

/// Hashes that a sketch keeps.
pub const SKETCH_HASHES: usize = 256;

/// Collects the smallest hashes of keys.
#[derive(Debug, Default)]
pub struct SketchBuilder {
    /// Up to twice as many as are kept; sorted and truncated when full.
    hashes: Vec<u64>,
    /// Hashes from here on need not be examined; zero stands for all.
    limit: u64,
}

impl SketchBuilder {
    /// Takes the hash of a key. Each key is taken once.
    #[inline]
    pub fn push(&mut self, hash: u64) {
        if hash < self.limit || self.limit == 0 {
            self.keep(hash);
        }
    }

    fn keep(&mut self, hash: u64) {
        self.hashes.push(hash);
        if self.hashes.len() >= 2 * SKETCH_HASHES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes.truncate(SKETCH_HASHES);
        if let (SKETCH_HASHES, Some(largest)) = (self.hashes.len(), self.hashes.last()) {
            self.limit = *largest;
        }
    }

    /// The sketch: at most [`SKETCH_HASHES`] hashes, ascending.
    pub fn finish(mut self) -> Vec<u64> {
        self.cut();
        self.hashes
    }
}

/// About how many distinct keys there are in all parts whose sketches these are.
pub fn estimate_keys<'a>(sketches: impl IntoIterator<Item = &'a [u64]>) -> u64 {
    let mut union: Vec<u64> = sketches.into_iter().flatten().copied().collect();
    union.sort_unstable();
    union.dedup();
    if union.len() < SKETCH_HASHES {
        return union.len() as u64;
    }
    let kth = union[SKETCH_HASHES - 1].max(1);
    let keys = (SKETCH_HASHES as f64 - 1.0) * (u64::MAX as f64 / kth as f64);
    (keys as u64).max(SKETCH_HASHES as u64)
}

#[cfg(test)]
#[path = "sketch/tests.rs"]
mod tests;
