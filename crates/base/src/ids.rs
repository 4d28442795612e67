//! Numbers with a meaning.

use std::fmt;
use std::sync::Arc;

/// The place of a record in the one history of the store: dense, increasing, starting at 1.
pub type Seq = u64;

/// A byte position in the log, counted over all segments.
pub type Lsn = u64;

/// The number of a table, for the whole life of the store; never reused after a drop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A file of the store, of any kind. One counter numbers them all and no number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(#[doc(hidden)] pub u64); // for the crates that name files; users have `From`

/// A sorted run of a table, numbered from the same counter as files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(#[doc(hidden)] pub u64); // as the number of a file

/// Hands out file numbers, each only once.
pub type NumberSource = Arc<dyn Fn() -> FileNumber + Send + Sync>;

macro_rules! shows_as {
    ($type:ty, $letter:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}
shows_as!(TableId, "t");
shows_as!(FileNumber, "f");
shows_as!(RunId, "r");

impl From<FileNumber> for u64 {
    fn from(file: FileNumber) -> u64 {
        file.0
    }
}

impl From<RunId> for u64 {
    fn from(run: RunId) -> u64 {
        run.0
    }
}
