//! Numbers for new files and runs; none is used twice.

use folddb_base::FileNumber;
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_manifest::{Change, NUMBERS_RESERVED};

/// Most numbers that are reserved at a time, so that few edits are needed.
pub(crate) const SET_ASIDE_MAX: u64 = 1000;

/// Assigns the numbers of files and runs; none twice, even after a crash: the manifest reserves
/// them before they are used. It reserves as many as this process has used so far, so that a
/// process which uses few leaves few unused.
#[derive(Debug)]
pub struct Numbers {
    first: u64,
    next: AtomicU64,
    /// Numbers below this one were reserved at the last check.
    set_aside: AtomicU64,
}

impl Numbers {
    pub fn starting_at(next: u64) -> Numbers {
        Numbers { first: next, next: AtomicU64::new(next), set_aside: AtomicU64::new(0) }
    }

    /// How many numbers should be reserved beyond the next one.
    fn ahead(&self) -> u64 {
        (self.peek() - self.first).clamp(NUMBERS_RESERVED, SET_ASIDE_MAX)
    }

    /// Whether fewer than half of these were reserved at the last check.
    pub(crate) fn run_short(&self) -> bool {
        self.set_aside.load(Ordering::Relaxed) < self.peek() + self.ahead() / 2
    }

    /// The change that reserves more, if they run short of `set_aside`, which is durable.
    pub fn change(&self, set_aside: u64) -> Option<Change> {
        self.set_aside.fetch_max(set_aside, Ordering::Relaxed);
        let next_number = self.peek() + self.ahead();
        self.run_short().then_some(Change::ReserveNumbers { next_number })
    }

    pub fn take(&self) -> FileNumber {
        FileNumber(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub fn peek(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}
