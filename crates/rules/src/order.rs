//! The order of the keys of a table.
//!
//! Everything that compares keys does it through here. Two orders have a fast path: a `u64` prefix
//! that decides most comparisons. A custom order (osmos' `key_less`) has none and is called every
//! time; its ties are broken by the bytes, so that keys are equal exactly when their bytes are,
//! which filters and folds rely on.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use folddb_base::bytes::{common_prefix_len, prefix_u64};

/// A named order that a user provides.
pub trait CustomOrder: Send + Sync {
    /// The name that the store keeps; opening the table with an order of another name is refused.
    fn name(&self) -> &str;

    /// Compares two keys. Must be a total preorder, the same in every process and forever.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// How the keys of a table are ordered. Any further order is a custom one.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum KeyOrder {
    /// By their bytes, as unsigned numbers.
    #[default]
    Bytewise,
    /// The exact reverse of bytewise.
    Reversed,
    /// By a user's function.
    Custom(Arc<dyn CustomOrder>),
}

impl KeyOrder {
    /// The name under which the store keeps the order.
    pub fn name(&self) -> &str {
        match self {
            KeyOrder::Bytewise => "bytewise",
            KeyOrder::Reversed => "reversed",
            KeyOrder::Custom(order) => order.name(),
        }
    }

    /// Compares two keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            KeyOrder::Reversed => b.cmp(a),
            KeyOrder::Custom(order) => order.compare(a, b).then_with(|| a.cmp(b)),
        }
    }

    /// True when byte prefixes are ranges of this order, so that prefix scans can seek.
    pub fn has_byte_prefixes(&self) -> bool {
        !matches!(self, KeyOrder::Custom(_))
    }
}

/// What memtables and runs ask of an order, and users do not: keys as numbers, and short keys.
pub trait PrefixOrder {
    /// A number that orders keys as far as it reaches: `prefix(a) < prefix(b)` implies a < b,
    /// provided that both share their first `skip` bytes (see [`PrefixOrder::shared_prefix_len`]).
    /// Equal numbers say nothing.
    fn prefix(&self, key: &[u8], skip: usize) -> u64;

    /// How many bytes all keys between `low` and `high` (inclusive) share, for use as `skip`.
    fn shared_prefix_len(&self, low: &[u8], high: &[u8]) -> usize;

    /// A short key `s` with `low <= s < high`, for an index: a separator between two blocks with
    /// these last and first keys. Shortened in bytewise order only.
    fn separator(&self, low: &[u8], high: &[u8]) -> Vec<u8>;
}

impl PrefixOrder for KeyOrder {
    #[inline]
    fn prefix(&self, key: &[u8], skip: usize) -> u64 {
        match self {
            KeyOrder::Bytewise => prefix_u64(key, skip),
            KeyOrder::Reversed => !prefix_u64(key, skip),
            KeyOrder::Custom(_) => 0,
        }
    }

    #[inline]
    fn shared_prefix_len(&self, low: &[u8], high: &[u8]) -> usize {
        match self {
            KeyOrder::Bytewise | KeyOrder::Reversed => common_prefix_len(low, high),
            KeyOrder::Custom(_) => 0,
        }
    }

    fn separator(&self, low: &[u8], high: &[u8]) -> Vec<u8> {
        if let KeyOrder::Bytewise = self {
            let shared = common_prefix_len(low, high);
            if let (Some(&a), Some(&b)) = (low.get(shared), high.get(shared))
                && a + 1 < b
            {
                let mut short = low[..=shared].to_vec();
                short[shared] = a + 1;
                return short;
            }
        }
        low.to_vec()
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
#[path = "order/tests.rs"]
mod tests;
