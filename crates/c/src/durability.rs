//! The durability of a commit, as a number of C.

use std::ffi::c_int;

use folddb::{Durability, Error, Result};

/// When a commit is acknowledged.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitDurability {
    /// In memory. The last 10 ms or 256 KiB may be lost when the process dies.
    Buffered = 0,
    /// Given to the operating system: survives the death of the process, not a power cut.
    Process = 1,
    /// On the disk: survives a power cut. Commits of several threads share one sync.
    Sync = 2,
}

/// The meaning of this number of C.
pub(crate) fn durability(number: c_int) -> Result<Durability> {
    match number {
        n if n == CommitDurability::Buffered as c_int => Ok(Durability::Buffered),
        n if n == CommitDurability::Process as c_int => Ok(Durability::Process),
        n if n == CommitDurability::Sync as c_int => Ok(Durability::Sync),
        n => Err(Error::invalid(format!("{n} is not one of folddb_durability"))),
    }
}
