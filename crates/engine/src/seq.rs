//! The number of a record, in the public API.
//!
//! Inside, seqs are plain numbers (`folddb_base::Seq`): files have them, and all crates below add
//! and compare them. They become this type on the way to a user, and plain numbers on the way back
//! (decision 46).

use std::fmt;

/// The number of a record in the one history of a store: dense, increasing, starting at 1. 0 is
/// before everything.
///
/// ```
/// # use folddb_engine::seq::Seq;
/// let seq = Seq::from(7);
/// assert!(seq > Seq::default() && u64::from(seq) == 7 && seq.to_string() == "7");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// After everything that will ever be written.
    pub const MAX: Seq = Seq(u64::MAX);
}

impl From<u64> for Seq {
    #[inline]
    fn from(number: u64) -> Seq {
        Seq(number)
    }
}

impl From<Seq> for u64 {
    #[inline]
    fn from(seq: Seq) -> u64 {
        seq.0
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
