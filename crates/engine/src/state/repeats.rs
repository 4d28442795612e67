//! How much merging frees of the bytes that the runs of a table hold in duplicate, and what gets
//! have cost that found records of one key in several runs.
//!
//! ```text
//!   a merge     says what it has freed                       freed ->  folddb_merge::freed
//!   a get       that joins n runs costs (n - 1) · 4 KiB      joined -> once the sum reaches the price,
//!                                                                      a merge of the table is planned
//!   planning    sets the price: bytes of all runs            price; none: costs of gets do not count
//! ```
//!
//! Neither is stored: after an opening all duplicates count as garbage, until the first merge has
//! measured how much it frees.

use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_merge::freed::freed_after;

/// What a get pays for each run beyond the first in which it finds its key, as bytes that a merge
/// moves: some 20 µs of background work. A lookup in a run takes 0.6 µs where its block is in the
/// cache, 8 µs where the system has it, 100 µs where the disk has.
pub const JOIN_BYTES: u64 = 4 << 10;

/// See the module.
#[derive(Debug)]
pub struct Repeats {
    /// An `f64` by its bits.
    freed: AtomicU64,
    joined_bytes: AtomicU64,
    price_bytes: AtomicU64,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats {
            freed: AtomicU64::new(1f64.to_bits()),
            joined_bytes: AtomicU64::new(0),
            price_bytes: AtomicU64::new(u64::MAX),
        }
    }
}

impl Repeats {
    /// The share of repeated bytes that merging frees.
    pub fn freed(&self) -> f64 {
        f64::from_bits(self.freed.load(Ordering::Relaxed))
    }

    /// Notes a merge whose inputs repeated this share of their bytes.
    pub fn note_merge(&self, repeated: f64, bytes_in: u64, bytes_out: u64) {
        let freed = freed_after(self.freed(), repeated, bytes_in, bytes_out);
        self.freed.store(freed.to_bits(), Ordering::Relaxed);
    }

    /// Notes a get that has found its key in this many runs. True for the one get with which the
    /// costs reach the price; after it gets add nothing until planning sets a price again. A get
    /// that finds a price below the costs so far returns true as well, so none is missed.
    #[inline]
    pub fn note_get(&self, runs: usize) -> bool {
        let price = self.price_bytes.load(Ordering::Relaxed);
        if runs < 2 || price == u64::MAX {
            return false;
        }
        let paid = (runs as u64 - 1) * JOIN_BYTES;
        let joined = self.joined_bytes.fetch_add(paid, Ordering::Relaxed) + paid;
        joined >= price && self.price_bytes.swap(u64::MAX, Ordering::Relaxed) != u64::MAX
    }

    /// What gets have paid.
    pub fn joined_bytes(&self) -> u64 {
        self.joined_bytes.load(Ordering::Relaxed)
    }

    /// Sets the price of a merge for gets, in bytes; none if their costs do not count.
    pub fn set_price(&self, price: Option<u64>) {
        self.price_bytes.store(price.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A merge for gets was planned: from now on costs count for the next.
    pub fn spend(&self) {
        self.joined_bytes.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "repeats/tests.rs"]
mod tests;
