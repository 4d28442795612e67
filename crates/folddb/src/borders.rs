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

/// The moment that a reader reads at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// It sees records up to this one.
    pub(crate) seq: Seq,
    /// And of these the values whose deadline is after this.
    pub(crate) time_ms: u64,
}

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
    /// The time that the snapshot reads at, in milliseconds since 1970.
    time_ms: u64,
}

impl Borders {
    /// Registers a snapshot at `seq`. The caller holds the commit lock.
    pub(crate) fn hold(self: &Arc<Borders>, at: At, now: Duration) -> Held {
        let mut live = self.live.lock();
        let entry = live.entry(at.seq).or_insert(Live { holders: 0, since: now, time_ms: at.time_ms });
        entry.holders += 1;
        entry.time_ms = entry.time_ms.min(at.time_ms);
        drop(live);
        self.held(at)
    }

    /// Registers one more holder of `seq`, where it has one; it reads at the time that the first does.
    pub(crate) fn hold_if_live(self: &Arc<Borders>, seq: Seq) -> Option<Held> {
        let mut live = self.live.lock();
        let entry = live.get_mut(&seq)?;
        entry.holders += 1;
        let at = At { seq, time_ms: entry.time_ms };
        drop(live);
        Some(self.held(at))
    }

    fn held(self: &Arc<Borders>, at: At) -> Held {
        self.version.fetch_add(1, Ordering::Release);
        Held { borders: Arc::clone(self), at }
    }

    /// The borders, ascending.
    pub(crate) fn all(&self) -> Vec<Seq> {
        self.live.lock().keys().copied().collect()
    }

    /// True when no snapshot is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.live.lock().is_empty()
    }

    /// The oldest time that a snapshot reads at.
    pub(crate) fn oldest_ms(&self) -> Option<u64> {
        self.live.lock().values().map(|live| live.time_ms).min()
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
    /// What the snapshot sees.
    pub(crate) at: At,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.borders.release(self.at.seq);
    }
}

#[cfg(test)]
#[path = "borders/tests.rs"]
mod tests;
