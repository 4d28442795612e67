//! What is held back for change feeds: history that the log would have given up, and the values
//! that it leads to.
//!
//! ```text
//!   log      | seg | seg | kept | seg | seg ...
//!              ^ a feed stands here          ^ replay would begin here
//!              |---- held for the feed ------|          and value segments that were not fenced when the log was here
//! ```
//!
//! - **Held** are the files with history from where the slowest feed stands, and the value segments
//!   that batches from there on may point to: those stay unsettled (`reclaim.rs`), so that they
//!   neither go nor move.
//! - **Bounded**: what a feed alone keeps from going is counted, and where that is more than its
//!   budget, or the store is short of space, the feed is *lost*: it says so when it is read, and
//!   starts again. No writer ever waits for a feed, but for one without a bound (`bytes_max` of
//!   `u64::MAX`), which is never lost for space.
//! - **Only what is durable** is handed out, so no consumer learns of what a power cut takes back.
//!   After a crash recovery writes the end of the log again, which nobody has been handed
//!   (`folddb_journal::archived_tail`).
//!
//! Where feeds stand is in the manifest, and changes under its lock; here is what follows from it.
//! Called by `feed`, `recover`, `background`, `store`, `install` and `reclaim`. Without feeds all
//! of it is one load of a number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Lsn, Result, Seq as RawSeq};
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use folddb_journal::follow::HistoryFile;
use folddb_manifest::State;

use crate::seq::Seq;
use crate::shared::bell::Bell;

/// What of the feeds is in memory.
#[derive(Default)]
pub struct Feeds {
    /// History is held from here on; [`NOTHING`] where no feed holds any.
    pub from_lsn: AtomicU64,
    /// What is below is held for feeds, and for nobody else, as far as this opening knows.
    pub log_start_lsn: AtomicU64,
    /// Counts changes of what the manifest knows of feeds.
    pub edits: AtomicU64,
    /// Files of history that were there before this opening, oldest first, no LSN in two of them.
    pub before: Mutex<Vec<HistoryFile>>,
    /// The feeds that are open.
    pub taken: Mutex<BTreeSet<String>>,
    /// How often each feed has begun in this process, which tells the places of one beginning from
    /// those of another. It need not outlive the process, since no place does.
    pub begun: Mutex<BTreeMap<String, u64>>,
    /// Rings when there may be something to read.
    pub bell: Bell,
    /// How many sleep on it.
    pub sleepers: AtomicUsize,
    pub told_seq: AtomicU64,
}

/// Says that no feed holds anything.
pub const NOTHING: Lsn = Lsn::MAX;

/// What a feed holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedStats {
    /// Its name.
    pub name: String,
    /// The table that it tells of; all where there is none.
    pub table: Option<String>,
    /// It tells of keys that begin so.
    pub prefix: Vec<u8>,
    /// All up to this seq is acknowledged.
    pub seq: Seq,
    /// So many seqs have been published since.
    pub lag: u64,
    /// Bytes that are kept only for it, in log and values. What several feeds hold counts for each.
    pub held_bytes: u64,
    /// It may hold so many.
    pub bytes_max: u64,
    /// Whether all its rows have been acknowledged, so that it gives changes.
    pub has_begun: bool,
    /// Why it is lost, if it is.
    pub lost: Option<String>,
}

impl Feeds {
    /// Those that the manifest knows.
    pub fn of(state: &State) -> Feeds {
        let feeds = Feeds::default();
        feeds.note(state);
        feeds
    }

    pub fn note(&self, state: &State) {
        self.from_lsn.store(state.feeds.from_lsn().unwrap_or(NOTHING), Ordering::Release);
        self.edits.fetch_add(1, Ordering::AcqRel);
    }

    /// Of a log that is needed from `lsn` on, where what is held begins.
    #[inline]
    pub(crate) fn held_from(&self, lsn: Lsn) -> Lsn {
        self.from_lsn.load(Ordering::Acquire).min(lsn)
    }

    /// Takes note that the log is needed from here on only, but by feeds.
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

    /// Wakes who waits for news, if there are any.
    pub fn tell(&self, published: RawSeq) {
        if self.sleepers.load(Ordering::Acquire) > 0
            && self.told_seq.swap(published, Ordering::AcqRel) != published
        {
            self.bell.ring();
        }
    }

    /// Sleeps until there may be news, at most so long.
    pub fn sleep(&self, seen: u64, timeout: Duration) {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        self.bell.wait(seen, timeout);
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes a feed for its only reader.
    pub fn take(&self, name: &str) -> Result<()> {
        if self.taken.lock().insert(name.to_owned()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Locked, format!("feed `{name}` is being read already")))
    }

    pub fn give_back(&self, name: &str) {
        self.taken.lock().remove(name);
    }

    /// How often a feed has begun.
    pub fn begun(&self, name: &str) -> u64 {
        self.begun.lock().get(name).copied().unwrap_or(0)
    }

    /// It begins once more; says how often it has by now.
    pub fn begin(&self, name: &str) -> u64 {
        let mut begun = self.begun.lock();
        let times = begun.entry(name.to_owned()).or_insert(0);
        *times += 1;
        *times
    }
}
