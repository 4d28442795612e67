//! How much of the bytes that the runs of a table repeat merging frees, and what gets pay if that
//! alone does not justify a merge.
//!
//! ```text
//!   a merge     says what it has freed                       freed ->  folddb_merge::freed
//!   a get       that joins n runs pays (n - 1) · 8 KiB       joined -> once it comes to the price,
//!                                                                      the table is planned for anew
//!   planning    says the price of one run of all             price; none: gets pay nothing
//! ```
//!
//! Neither outlives the closing of the store: afterwards everything repeated counts as garbage,
//! until the first merge knows better.

use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_merge::freed::freed_after;

/// What a get pays for each run beyond the first in which it finds its key: what a merge moves in
/// about the time of a lookup in a run, including a block read and the operands' fold.
pub const JOIN_BYTES: u64 = 8 << 10;

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

    /// Notes a get that has found its key in this many runs. True once gets have paid the price:
    /// for one of them, and from then on they pay nothing until planning sets a price again. A get
    /// that meets a price below what was paid returns true as well, so none is ever missed.
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

    /// The price of a merge for gets, in bytes; none if they pay nothing.
    pub fn set_price(&self, price: Option<u64>) {
        self.price_bytes.store(price.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A merge for gets was planned: they now pay for the next.
    pub fn spend(&self) {
        self.joined_bytes.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "repeats/tests.rs"]
mod tests;
