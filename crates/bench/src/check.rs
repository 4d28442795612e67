//! What must be in the store, worked out without it.

use crate::generate::mix;

/// A sum over rows that does not depend on their order, with their number, and whether keys ascended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSum {
    pub(crate) rows: u64,
    pub(crate) sum: u64,
}

impl RowSum {
    /// Takes in a row of numbers.
    #[inline]
    pub(crate) fn add(&mut self, key: u64, value: u64) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(mix(key ^ mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))));
    }
}

/// Checks that keys ascend strictly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ascending {
    last: Option<u64>,
    broken: u64,
}

impl Ascending {
    #[inline]
    pub(crate) fn next(&mut self, key: u64) {
        if self.last.is_some_and(|last| key <= last) {
            self.broken += 1;
        }
        self.last = Some(key);
    }

    pub(crate) fn holds(&self) -> bool {
        self.broken == 0
    }
}

#[cfg(test)]
#[path = "check/tests.rs"]
mod tests;
