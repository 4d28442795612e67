//! What is retained for change feeds: history that the log would have released, and its values.
//!
//! ```text
//!   log      | seg | seg | kept | seg | seg ...
//!              ^ position of a feed          ^ replay would begin here
//!              |---- held for the feed ------|          and value segments that were not fenced when the log was here
//! ```
//!
//! - **Retained** are the files with history from the position of the slowest feed on, and the
//!   value segments that batches from there on may point to: those stay unsettled (`reclaim.rs`),
//!   so that they are neither removed nor moved.
//! - **Bounded**: what a feed alone retains is counted, and if that exceeds its budget, or the
//!   store is short of space, the feed is *lost*: it says so when it is read, and starts again.
//!   Writers never wait for a feed, except for one without a bound (`bytes_max` of `u64::MAX`),
//!   which is never lost for space.
//! - **Only durable changes** are given, so no consumer sees what a power cut undoes. After a
//!   crash, recovery rewrites the end of the log, which no consumer has got
//!   (`folddb_journal::archived_log`).
//!
//! The positions of feeds are in the manifest, and change under its lock; here is the state that
//! follows from them. Called by `feed`, `recovery`, `background`, `store`, `install` and `reclaim`.
//! Without feeds all of it costs one load of a number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Lsn, Result, Seq as RawSeq};
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use folddb_journal::follow::HistoryFile;
use folddb_manifest::State;

use crate::seq::Seq;
use crate::shared::bell::Bell;

/// The in-memory state of feeds.
#[derive(Default)]
pub struct Feeds {
    /// History is retained from here on; [`NOTHING`] if no feed retains any.
    pub from_lsn: AtomicU64,
    /// Below this, the log is retained only for feeds, as far as this opening knows.
    pub log_start_lsn: AtomicU64,
    /// Counts changes of feeds in the manifest.
    pub edits: AtomicU64,
    /// Files of history from before this opening, oldest first, no LSN in two of them.
    pub before: Mutex<Vec<HistoryFile>>,
    /// The feeds that are open.
    pub taken: Mutex<BTreeSet<String>>,
    /// How often each feed has begun in this process, which distinguishes the positions of
    /// different beginnings. It need not outlive the process, since no position does.
    pub begun: Mutex<BTreeMap<String, u64>>,
    /// Rings when there may be something to read.
    pub bell: Bell,
    /// How many sleep on it.
    pub sleepers: AtomicUsize,
    pub announced_seq: AtomicU64,
}

/// Means that no feed retains anything.
pub const NOTHING: Lsn = Lsn::MAX;

/// The state of a feed, and what it retains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedStats {
    /// Its name.
    pub name: String,
    /// The table whose changes it gives; all if none.
    pub table: Option<String>,
    /// It gives changes of keys with this prefix.
    pub prefix: Vec<u8>,
    /// Everything up to this seq is acknowledged.
    pub seq: Seq,
    /// How many seqs have been published since.
    pub lag: u64,
    /// Bytes in log and values that are kept for it, but not for the store itself. What several
    /// feeds retain counts for each.
    pub held_bytes: u64,
    /// Files of the log from before this opening, and segments of values, that are retained for it.
    pub held_files: usize,
    /// How many bytes it may retain.
    pub bytes_max: u64,
    /// Whether all its rows have been acknowledged, so that it gives changes.
    pub has_begun: bool,
    /// Why it is lost, if it is.
    pub lost: Option<String>,
}

impl Feeds {
    /// Those in the manifest.
    pub fn of(state: &State) -> Feeds {
        let feeds = Feeds::default();
        feeds.note(state);
        feeds
    }

    pub fn note(&self, state: &State) {
        self.from_lsn.store(state.feeds.from_lsn().unwrap_or(NOTHING), Ordering::Release);
        self.edits.fetch_add(1, Ordering::AcqRel);
    }

    /// Where the retained log begins if the store itself needs it from `lsn` on.
    #[inline]
    pub(crate) fn held_from(&self, lsn: Lsn) -> Lsn {
        self.from_lsn.load(Ordering::Acquire).min(lsn)
    }

    /// Notes that only feeds need the log before here.
    pub(crate) fn log_starts_at(&self, lsn: Lsn) {
        self.log_start_lsn.fetch_max(lsn, Ordering::AcqRel);
    }

    pub fn log_start(&self) -> Lsn {
        self.log_start_lsn.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn hold_nothing(&self) -> bool {
        self.from_lsn.load(Ordering::Acquire) == NOTHING
    }

    /// Wakes readers that wait for changes, if there are any.
    pub fn wake_readers(&self, published: RawSeq) {
        if self.sleepers.load(Ordering::Acquire) > 0
            && self.announced_seq.swap(published, Ordering::AcqRel) != published
        {
            self.bell.ring();
        }
    }

    /// Sleeps until there may be changes, at most this long.
    pub fn sleep(&self, seen: u64, timeout: Duration) {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        self.bell.wait(seen, timeout);
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
    }

    /// Claims a feed for its only reader.
    pub fn take(&self, name: &str) -> Result<()> {
        if self.taken.lock().insert(name.to_owned()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Locked, format!("feed `{name}` is already being read")))
    }

    pub fn give_back(&self, name: &str) {
        self.taken.lock().remove(name);
    }

    /// How often a feed has begun.
    pub fn begun(&self, name: &str) -> u64 {
        self.begun.lock().get(name).copied().unwrap_or(0)
    }

    /// Counts another beginning; returns how many there have been.
    pub fn begin(&self, name: &str) -> u64 {
        let mut begun = self.begun.lock();
        let times = begun.entry(name.to_owned()).or_insert(0);
        *times += 1;
        *times
    }
}
