//! Which snapshots are live, and so where folding must stop.
//!
//! A snapshot is a registered sequence number. It is registered under the commit lock, so every record
//! sealed later than that sees its border, and every record folded earlier is wholly below it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::Seq;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicU64, Ordering};

/// The live snapshots of a store.
#[derive(Debug, Default)]
pub(crate) struct Borders {
    live: Mutex<BTreeMap<Seq, Live>>,
    /// Grows with every change, so that the committer knows when to look again.
    version: AtomicU64,
}

#[derive(Debug)]
struct Live {
    holders: usize,
    since: Duration,
}

impl Borders {
    /// Registers a snapshot at `seq`. The caller holds the commit lock.
    pub(crate) fn hold(self: &Arc<Borders>, seq: Seq, now: Duration) -> Held {
        self.live.lock().entry(seq).or_insert(Live { holders: 0, since: now }).holders += 1;
        self.held(seq)
    }

    /// Registers one more holder of `seq`, where it has one.
    pub(crate) fn hold_if_live(self: &Arc<Borders>, seq: Seq) -> Option<Held> {
        self.live.lock().get_mut(&seq)?.holders += 1;
        Some(self.held(seq))
    }

    fn held(self: &Arc<Borders>, seq: Seq) -> Held {
        self.version.fetch_add(1, Ordering::Release);
        Held { borders: Arc::clone(self), seq }
    }

    /// The borders, ascending.
    pub(crate) fn all(&self) -> Vec<Seq> {
        self.live.lock().keys().copied().collect()
    }

    /// True when no snapshot is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.live.lock().is_empty()
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// How many snapshots are live, and since when the oldest is.
    pub(crate) fn summary(&self) -> (usize, Option<Duration>) {
        let live = self.live.lock();
        (live.values().map(|live| live.holders).sum(), live.values().map(|live| live.since).min())
    }

    fn release(&self, seq: Seq) {
        let mut live = self.live.lock();
        if let Some(entry) = live.get_mut(&seq) {
            entry.holders -= 1;
            if entry.holders == 0 {
                live.remove(&seq);
            }
        }
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// Keeps a border until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    borders: Arc<Borders>,
    /// The snapshot sees records up to this one.
    pub(crate) seq: Seq,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.borders.release(self.seq);
    }
}

#[cfg(test)]
#[path = "borders/tests.rs"]
mod tests;
