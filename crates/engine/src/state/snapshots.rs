//! Which snapshots are live, and therefore where folding must stop.
//!
//! A snapshot is a registered sequence number. It is registered under the commit lock, so every
//! record that comes later sees its boundary when it is folded, and every record of a tail that was
//! full by then, folded already or not, is wholly below it.
//!
//! ```text
//!   boundary   young: folding stops at it, in memory and in merges
//!   files    older than `snapshot_files_after`: it reads pinned files (`pinned_files.rs`), and folding passes over it
//!   gone     older than `snapshot_age_max`: its reads fail
//! ```
//!
//! | held for | gets files | ends |
//! |---|---|---|
//! | a snapshot, or one of the past | yes | yes |
//! | running work: a dump, an aggregate, the walk over a hashed table | yes | no |
//! | a transaction | no: its commit searches for records newer than what it read | yes |
//!
//! Hashed tables have no pinned files: for them, all moments except those that are gone count as
//! boundaries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::Seq;
use folddb_host::forks::ForkMark;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::state::pinned_files::PinnedFiles;

/// The moment that a reader reads at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// It sees records up to this one.
    pub seq: Seq,
    /// It sees values whose deadline is after this.
    pub time_ms: u64,
    /// What holds it ([`Hold`]); 0 if nothing does.
    hold: u64,
}

impl At {
    /// A moment that nothing holds.
    pub fn new(seq: Seq, time_ms: u64) -> At {
        At { seq, time_ms, hold: 0 }
    }
}

/// For whom a moment is held, which decides how it ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldFor {
    /// A user, for any time.
    Snapshot,
    /// A user who asked, at the given moment, for a past one: only tables that keep their past have
    /// it.
    Past(At),
    /// Work that ends by itself.
    Work,
    /// A transaction.
    Transaction,
}

/// The live snapshots of a store.
#[derive(Debug, Default)]
pub struct Boundaries {
    /// By their seqs and the numbers of what holds them.
    live: Mutex<BTreeMap<(Seq, u64), Hold>>,
    /// The number that was given last.
    holds: AtomicU64,
    /// Grows with every change, so that the committer knows when to look again.
    version: AtomicU64,
    /// How many have pinned files, and how many holders there are of those that are gone.
    aged: AtomicUsize,
    /// Of the process that has the store open.
    mark: Arc<ForkMark>,
}

/// What holds a moment.
#[derive(Debug)]
struct Hold {
    held_for: HeldFor,
    holders: usize,
    since: Duration,
    /// When the youngest of its holders came.
    youngest: Duration,
    /// The time that the snapshot reads at, in milliseconds since 1970.
    time_ms: u64,
    /// The start of the hold, by the same clock.
    taken_ms: u64,
    /// What it reads, once it is no longer a boundary.
    files: Option<Arc<PinnedFiles>>,
}

/// What is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Snapshots and all other holders.
    pub holders: usize,
    /// How many of them read pinned files.
    pub in_files: usize,
    /// The start of the oldest.
    pub since: Option<Duration>,
}

/// A snapshot is older than snapshots may be, so its reads fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld;

impl Boundaries {
    /// Those of a store that the process of this mark opens.
    pub(crate) fn of(mark: &Arc<ForkMark>) -> Boundaries {
        Boundaries { mark: Arc::clone(mark), ..Boundaries::default() }
    }

    /// Registers a snapshot of the present. The caller holds the commit lock.
    pub fn hold(self: &Arc<Boundaries>, at: At, held_for: HeldFor, now: Duration) -> Held {
        self.hold_from(at, at.time_ms, held_for, now)
    }

    /// The same, for a moment that may be past, from the time `taken_ms` on: values that lived
    /// before that may have been swept.
    pub fn hold_from(
        self: &Arc<Boundaries>,
        at: At,
        taken_ms: u64,
        held_for: HeldFor,
        now: Duration,
    ) -> Held {
        if self.mark.is_forked() {
            return Held { boundaries: Arc::clone(self), at };
        }
        let mut live = self.live.lock();
        // A hold with pinned files is not joined: a boundary is cheaper to read for its new holder.
        let is_alike = |hold: &Hold| hold.held_for == held_for && hold.is_boundary();
        let alike = live.range_mut((at.seq, 0)..=(at.seq, u64::MAX)).find(|(_, hold)| is_alike(hold));
        let (time_ms, since, youngest) = (at.time_ms, now, now);
        let number = match alike {
            Some((&(_, number), hold)) if !matches!(held_for, HeldFor::Past(_)) => {
                hold.holders += 1;
                hold.youngest = hold.youngest.max(now);
                hold.time_ms = hold.time_ms.min(time_ms);
                number
            }
            _ => {
                let number = self.holds.fetch_add(1, Ordering::Relaxed) + 1;
                let hold = Hold { held_for, holders: 1, since, youngest, time_ms, taken_ms, files: None };
                live.insert((at.seq, number), hold);
                number
            }
        };
        drop(live);
        self.held(At { hold: number, ..at })
    }

    /// Registers one more holder of `seq`, if it has been held since `by_ms` or earlier, or reads
    /// at exactly that time, and returns for whom it is held. The new holder reads at the time of
    /// the first. A hold that sees all tables is preferred to one that sees only those that keep
    /// their past, and a boundary to one that reads pinned files.
    pub fn hold_if_live(self: &Arc<Boundaries>, seq: Seq, by_ms: u64) -> Option<(Held, HeldFor)> {
        let mut live = self.live.lock();
        let is_past = |hold: &Hold| matches!(hold.held_for, HeldFor::Past(_));
        let holds = live.range_mut((seq, 0)..=(seq, u64::MAX));
        let holds = holds.filter(|(_, hold)| hold.taken_ms <= by_ms || hold.time_ms == by_ms);
        let (&(_, number), hold) = holds.min_by_key(|(_, hold)| (is_past(hold), !hold.is_boundary()))?;
        hold.holders += 1;
        let at = At { seq, time_ms: hold.time_ms, hold: number };
        let held_for = match hold.held_for {
            // It was past by time alone when it was requested.
            HeldFor::Snapshot if hold.taken_ms > by_ms => HeldFor::Past(At::new(seq, hold.taken_ms)),
            held_for => held_for,
        };
        drop(live);
        Some((self.held(at), held_for))
    }

    fn held(self: &Arc<Boundaries>, at: At) -> Held {
        self.version.fetch_add(1, Ordering::Release);
        Held { boundaries: Arc::clone(self), at }
    }

    /// The boundaries, ascending.
    pub fn all(&self) -> Vec<Seq> {
        let live = self.live.lock();
        let mut all: Vec<Seq> =
            live.iter().filter(|(_, hold)| hold.is_boundary()).map(|(&(seq, _), _)| seq).collect();
        all.dedup();
        all
    }

    /// The oldest boundary at which tables that do not keep their past are read.
    pub(crate) fn oldest_of_all_tables(&self) -> Option<Seq> {
        let live = self.live.lock();
        let sees_all = |hold: &Hold| hold.is_boundary() && !matches!(hold.held_for, HeldFor::Past(_));
        live.iter().find(|(_, hold)| sees_all(hold)).map(|(&(seq, _), _)| seq)
    }

    /// The oldest seq that a transaction reads at.
    pub(crate) fn oldest_of_transactions(&self) -> Option<Seq> {
        let live = self.live.lock();
        live.iter().find(|(_, hold)| hold.held_for == HeldFor::Transaction).map(|(&(seq, _), _)| seq)
    }

    /// The oldest seq that is read at, boundary or not.
    pub(crate) fn oldest_held(&self) -> Option<Seq> {
        self.live.lock().keys().next().map(|&(seq, _)| seq)
    }

    /// True if no snapshot is live.
    pub fn is_empty(&self) -> bool {
        self.live.lock().is_empty()
    }

    /// The oldest time at which a boundary is read.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.live.lock().values().filter(|hold| hold.is_boundary()).map(|hold| hold.time_ms).min()
    }

    /// The oldest time of any reader, including those of pinned files.
    pub(crate) fn oldest_held_ms(&self) -> Option<u64> {
        self.live.lock().values().map(|hold| hold.time_ms).min()
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What is live.
    pub fn summary(&self) -> Summary {
        let live = self.live.lock();
        Summary {
            holders: live.values().map(|hold| hold.holders).sum(),
            in_files: live.values().filter(|hold| hold.files.is_some()).map(|hold| hold.holders).sum(),
            since: live.values().map(|hold| hold.since).min(),
        }
    }

    fn release(&self, at: At) {
        let mut live = self.live.lock();
        let mut gone = None; // files may be removed with it, which nobody should wait for
        match live.get_mut(&(at.seq, at.hold)) {
            Some(hold) if hold.holders > 1 => hold.holders -= 1,
            Some(_) => gone = live.remove(&(at.seq, at.hold)),
            None => drop(self.aged.fetch_sub(1, Ordering::AcqRel)),
        }
        if gone.as_ref().is_some_and(|hold| !hold.is_boundary()) {
            self.aged.fetch_sub(1, Ordering::AcqRel);
        }
        drop(live);
        drop(gone);
        self.version.fetch_add(1, Ordering::Release);
    }

    // ---- growing old ----------------------------------------------------------------------------

    /// The boundaries that are to get pinned files, ascending; none until one has reached `age`.
    /// Then all that have reached half of it do, too, so that this happens twice in that time
    /// instead of once for each.
    pub(crate) fn of_age(&self, now: Duration, age: Duration) -> Vec<At> {
        let live = self.live.lock();
        let comes_to = |hold: &Hold, age: Duration| {
            hold.is_boundary() && hold.held_for != HeldFor::Transaction && hold.age(now) >= age
        };
        if !live.values().any(|hold| comes_to(hold, age)) {
            return Vec::new();
        }
        let aging = live.iter().filter(|(_, hold)| comes_to(hold, age / 2));
        aging.map(|(&(seq, number), hold)| At { seq, time_ms: hold.time_ms, hold: number }).collect()
    }

    /// From now on these read pinned files, if they are still held.
    pub(crate) fn give_files(&self, to: &[At], files: &Arc<PinnedFiles>) {
        let mut live = self.live.lock();
        for at in to {
            if let Some(hold) = live.get_mut(&(at.seq, at.hold)).filter(|hold| hold.is_boundary()) {
                hold.files = Some(Arc::clone(files));
                self.aged.fetch_add(1, Ordering::AcqRel);
            }
        }
        drop(live);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// From now on, reads of those that have reached `age` fail.
    pub(crate) fn end_of_age(&self, now: Duration, age: Duration) {
        self.end(&|hold| hold.held_for != HeldFor::Work && hold.age(now) >= age);
    }

    /// Releases all files: the store is closed.
    pub fn let_go(&self) {
        self.end(&|_| true);
    }

    fn end(&self, is_over: &dyn Fn(&Hold) -> bool) {
        let mut live = self.live.lock();
        let over: Vec<_> = live.iter().filter(|(_, hold)| is_over(hold)).map(|(&key, _)| key).collect();
        if over.is_empty() {
            return;
        }
        let gone: Vec<Hold> = over.iter().filter_map(|key| live.remove(key)).collect();
        let had_files = gone.iter().filter(|hold| !hold.is_boundary()).count();
        // In this order: no reader finds the state from before the aging.
        self.aged.fetch_add(gone.iter().map(|hold| hold.holders).sum(), Ordering::AcqRel);
        self.aged.fetch_sub(had_files, Ordering::AcqRel);
        drop(live);
        drop(gone); // files may be removed with it, which nobody should wait for
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Whether `at` may no longer be a boundary: then its readers must check what they read.
    #[inline]
    pub(crate) fn may_have_aged(&self, at: At) -> bool {
        at.hold != 0 && self.aged.load(Ordering::Acquire) > 0
    }

    /// The pinned files of `at`, or none if the present ones are read; an error if it is too old.
    pub(crate) fn files_of(&self, at: At) -> Result<Option<Arc<PinnedFiles>>, TooOld> {
        self.live.lock().get(&(at.seq, at.hold)).map(|hold| hold.files.clone()).ok_or(TooOld)
    }

    /// All sets of pinned files; shared ones once.
    pub(crate) fn all_files(&self) -> Vec<Arc<PinnedFiles>> {
        self.files_since(0)
    }

    /// The same for those that see records of `seq`.
    pub(crate) fn files_since(&self, seq: Seq) -> Vec<Arc<PinnedFiles>> {
        let live = self.live.lock();
        let since = live.range((seq, 0)..);
        let mut files: Vec<_> = since.filter_map(|(_, hold)| hold.files.clone()).collect();
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        files
    }
}

impl Hold {
    fn is_boundary(&self) -> bool {
        self.files.is_none()
    }

    /// The age of its youngest holder.
    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.youngest)
    }
}

/// Keeps a boundary until it is dropped.
#[derive(Debug)]
pub struct Held {
    boundaries: Arc<Boundaries>,
    /// What the snapshot sees.
    pub at: At,
}

impl Held {
    /// The same, for a reader at a time at which everything that was live still is.
    pub fn reading_at(mut self, time_ms: u64) -> Held {
        self.at.time_ms = time_ms;
        self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.boundaries.mark.is_forked() {
            return;
        }
        self.boundaries.release(self.at);
    }
}

#[cfg(test)]
mod tests;
