//! What must be in the store, computed without it.

use crate::generate::mix;

/// A sum over rows that does not depend on their order, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSum {
    /// How many rows there were.
    pub rows: u64,
    /// The sum over them.
    pub sum: u64,
}

impl RowSum {
    /// Adds a row of numbers.
    #[inline]
    pub fn add(&mut self, key: u64, value: u64) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(mix(key ^ mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))));
    }
}

/// Checks that keys ascend strictly.
#[derive(Clone, Debug, Default)]
pub struct Ascending {
    last: Option<u64>,
    broken: u64,
}

impl Ascending {
    /// Takes the next key.
    #[inline]
    pub fn next(&mut self, key: u64) {
        if self.last.is_some_and(|last| key <= last) {
            self.broken += 1;
        }
        self.last = Some(key);
    }

    /// True when every key was above the one before.
    pub fn holds(&self) -> bool {
        self.broken == 0
    }
}

#[cfg(test)]
#[path = "check/tests.rs"]
mod tests;
