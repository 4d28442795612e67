//! What all parts of the engine share, and which lock guards what.
//!
//! ```text
//!   lock          guards                                             held while
//!   points        keys of hashed tables that are being written      a batch is resolved, placed and published
//!   commit        the journal's end, the next seq, active memtables  one batch is appended and applied
//!   manifest      the list of what lives                             one edit is appended and synced
//!   a table's     the picture that readers take                      it is swapped
//!   view
//! ```
//!
//! Taken in this order: points, manifest, commit, view. Nothing waits for the disk under `commit`, but an append that rolls
//! before upkeep has made the next segment; a full tail is sorted and folded under it, so folds must not use the store.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq, TableId};
use folddb_host::Host;
use folddb_host::files::FileLock;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use folddb_host::sync::{Condvar, Mutex, RwLock};
use folddb_journal::{Journal, JournalSync};
use folddb_manifest::{Change, ManifestLog, NUMBERS_RESERVED, State};
use folddb_memtable::Memtable;

use crate::options::Options;
use crate::state::catalog::Catalog;
use crate::state::clock::StoreTimes;
use crate::state::counters::Counters;
use crate::state::disk_quota::{Account, Who};
use crate::state::feed_state::Feeds;
use crate::state::hash_index::PointLocks;
use crate::state::health::Health;
use crate::state::snapshots::Borders;
use crate::values::values::Values;
use folddb_merge::pace::OwedDelay;

/// The engine of one open store.
pub(crate) struct Engine {
    pub(crate) dir: PathBuf,
    pub(crate) store_id: u128,
    pub(crate) host: Host,
    pub(crate) options: Options,
    pub(crate) catalog: RwLock<Arc<Catalog>>,
    /// Grows whenever a table gets or loses an index, under the commit lock; 0 while none has ever had one. So that each batch has
    /// what the indexes need that there are when it is appended.
    pub(crate) index_epoch: AtomicU64,
    pub(crate) commit: Mutex<Committer>,
    pub(crate) published: AtomicU64,
    pub(crate) journal: Option<Arc<JournalSync>>,
    /// Where the log that was read at the opening ended. Who only reads has nothing of what a writer
    /// has added since.
    pub(crate) read_to_lsn: Lsn,
    pub(crate) values: Values,
    pub(crate) feeds: Feeds,
    /// Held by who writes keys of hashed tables.
    pub(crate) points: PointLocks,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) parts: Arc<folddb_run::Shared>,
    pub(crate) borders: Arc<Borders>,
    pub(crate) times: StoreTimes,
    pub(crate) health: Health,
    /// The account of the disk, where there is a budget. `host` goes by way of it.
    pub(crate) account: Option<Arc<Account>>,
    pub(crate) debt: Debt,
    pub(crate) bell: Bell,
    pub(crate) merges: Mutex<crate::background::merge::Merges>,
    pub(crate) work: TablesAtWork,
    pub(crate) counters: Counters,
    /// Held until the store is closed.
    pub(crate) lock: Mutex<Option<Box<dyn FileLock>>>,
}

/// The list of what lives; without a log in a store that is opened for reading.
pub(crate) enum Manifest {
    /// Each edit says how far this journal is durable, once it has begun.
    Log(Box<ManifestLog>, Option<Arc<JournalSync>>),
    ReadOnly(Arc<State>),
}

impl Manifest {
    /// What lives.
    pub(crate) fn state(&self) -> &Arc<State> {
        match self {
            Manifest::Log(log, _) => log.state(),
            Manifest::ReadOnly(state) => state,
        }
    }

    /// Lets go of the file.
    fn let_go(&mut self) {
        *self = Manifest::ReadOnly(Arc::clone(self.state()));
    }

    /// Makes changes in a new file, whose snapshot tells them.
    pub(crate) fn append_in_snapshot(&mut self, changes: &[Change]) -> Result<()> {
        match self {
            Manifest::Log(log, _) => log.append_in_snapshot(changes),
            Manifest::ReadOnly(_) => Err(read_only()),
        }
    }

    /// Lets every edit from now on say how far this journal is durable.
    pub(crate) fn vouch_for(&mut self, journal: Arc<JournalSync>) {
        if let Manifest::Log(_, vouched) = self {
            *vouched = Some(journal);
        }
    }

    /// Makes changes, all or none; durable when it returns.
    pub(crate) fn append(&mut self, changes: &[Change]) -> Result<()> {
        match self {
            Manifest::Log(log, None) => log.append(changes),
            Manifest::Log(log, Some(journal)) => {
                let durable_lsn = journal.durable_lsn();
                log.append(&vouching(log.state(), changes, durable_lsn))?;
                journal.note_vouched(durable_lsn);
                Ok(())
            }
            Manifest::ReadOnly(_) => Err(read_only()),
        }
    }
}

/// Changes, with what an edit says of the log besides: that it is durable up to here, so that what is missing of it is missed.
fn vouching<'a>(state: &State, changes: &'a [Change], durable_lsn: Lsn) -> Cow<'a, [Change]> {
    if durable_lsn <= state.durable_lsn {
        return Cow::Borrowed(changes);
    }
    let (last_seq, log_start_lsn) = (state.last_seq, state.log_start_lsn);
    let vouched = Change::Horizon { last_seq, log_start_lsn, durable_lsn };
    Cow::Owned([changes, &[vouched]].concat())
}

fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the store is opened for reading only")
}

/// What the commit lock guards.
pub(crate) struct Committer {
    /// Absent in a store that is opened for reading.
    pub(crate) journal: Option<Journal>,
    pub(crate) next_seq: Seq,
    /// The active memtable of each table, by number.
    pub(crate) active: Vec<Option<Active>>,
    /// The tables whose active memtables may have been written to.
    pub(crate) written: BTreeSet<TableId>,
    /// Stripe borders, ascending: live snapshots, pending range deletes, and last the published seq.
    pub(crate) stripes: Vec<Seq>,
    pub(crate) stripes_version: u64,
    /// Bytes of all active memtables.
    pub(crate) active_bytes: usize,
}

/// An active memtable, as the committer sees it.
pub(crate) struct Active {
    pub(crate) table: Arc<crate::state::catalog::TableCore>,
    pub(crate) memtable: Arc<Memtable>,
    /// What the memtable takes, after the last record.
    pub(crate) bytes: usize,
    /// As much of that as is counted in [`Committer::active_bytes`].
    pub(crate) bytes_counted: usize,
    /// The first LSN that holds a record of the memtable.
    pub(crate) first_lsn: Option<u64>,
    /// Seqs of range deletes that are in the log and not yet in the manifest.
    pub(crate) range_delete_seqs: Vec<Seq>,
    /// Records up to here are in runs already; only replay meets any.
    pub(crate) flushed_seq: Seq,
}

impl Committer {
    pub(crate) fn active_mut(&mut self, id: TableId) -> Option<&mut Active> {
        self.active.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn install_active(&mut self, active: Active) {
        let index = active.table.id.0 as usize;
        if self.active.len() <= index {
            self.active.resize_with(index + 1, || None);
        }
        self.active[index] = Some(active);
    }

    /// The active memtables that have been written to.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Active> {
        let active = self.written.iter().filter_map(|id| self.active.get(id.0 as usize)?.as_ref());
        active.filter(|active| active.first_lsn.is_some())
    }

    /// Counts what the active memtable of a table takes by now among all. Merged chunks take less than they did: it may fall, too.
    pub(crate) fn count_bytes(&mut self, id: TableId) {
        let Some(active) = self.active.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        let counted = std::mem::replace(&mut active.bytes_counted, active.bytes);
        self.active_bytes = self.active_bytes - counted + active.bytes;
    }
}

/// Hands out the numbers of files and runs; none is handed out twice, also after a crash: the manifest sets them aside before they
/// are used. It sets aside as many as this process has used so far, so that a process which uses few leaves few unused.
#[derive(Debug)]
pub(crate) struct Numbers {
    first: u64,
    next: AtomicU64,
    /// Numbers below this one were set aside, when that was last looked at.
    set_aside: AtomicU64,
}

/// The most numbers that are set aside at a time, so that few edits have to speak of them.
const SET_ASIDE_MAX: u64 = 1000;

impl Numbers {
    pub(crate) fn starting_at(next: u64) -> Numbers {
        Numbers { first: next, next: AtomicU64::new(next), set_aside: AtomicU64::new(0) }
    }

    /// How many numbers should be set aside beyond the next one.
    fn ahead(&self) -> u64 {
        (self.peek() - self.first).clamp(NUMBERS_RESERVED, SET_ASIDE_MAX)
    }

    /// Whether fewer are set aside than half of what should be, as far as was last looked at.
    pub(crate) fn run_short(&self) -> bool {
        self.set_aside.load(Ordering::Relaxed) < self.peek() + self.ahead() / 2
    }

    /// The change that sets more aside, where they run short of `set_aside`, which is durable.
    pub(crate) fn change(&self, set_aside: u64) -> Option<Change> {
        self.set_aside.fetch_max(set_aside, Ordering::Relaxed);
        let next_number = self.peek() + self.ahead();
        self.run_short().then_some(Change::ReserveNumbers { next_number })
    }

    pub(crate) fn take(&self) -> FileNumber {
        FileNumber(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn peek(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// The tables that upkeep has to look at, so that it need not look at all. Each lock is held for a moment, and no other is taken
/// under it but that of a table's view.
#[derive(Debug, Default)]
pub(crate) struct TablesAtWork {
    /// Those that have sealed memtables; some may have none any more.
    pub(crate) sealed: Mutex<BTreeSet<TableId>>,
    /// Those whose runs have changed since merges were planned for them.
    pub(crate) changed: Mutex<BTreeSet<TableId>>,
    /// Indexes of which readers have met too many stale entries.
    pub(crate) stale: Mutex<BTreeSet<TableId>>,
    /// Those of which a reader has met many chunks.
    pub(crate) chunked: Mutex<BTreeSet<TableId>>,
    /// Those whose parts lead to values that lie apart. Changed where parts come and go, under the
    /// manifest's lock.
    pub(crate) leading: Mutex<BTreeSet<TableId>>,
    /// Bytes of the parts of all tables.
    pub(crate) part_bytes: AtomicU64,
}

/// Work that is owed: raised by writers, paid by upkeep, watched by both.
#[derive(Debug, Default)]
pub(crate) struct Debt {
    /// Bytes of sealed memtables that are not flushed.
    pub(crate) sealed_bytes: AtomicUsize,
    /// As much of that as the running flush has written.
    pub(crate) flushed_bytes: AtomicUsize,
    /// How much of a memtable has been written since the last was sealed, as far as the last commit can tell.
    pub(crate) filling_bytes: AtomicUsize,
    /// Bytes that merges should have taken in already of the runs of tier 0.
    pub(crate) overdue_bytes: AtomicU64,
    /// Runs of the fullest tier of any table.
    pub(crate) tier_runs_max: AtomicUsize,
    /// The highest tier of any table: so often are bytes merged until they are there.
    pub(crate) tier_max: AtomicUsize,
    /// What the value lane takes, in thousandths of its bound, while that is being worked at; else 0.
    pub(crate) lane_thousandths: AtomicU64,
    /// How fast reclaiming has lately given back, in bytes a second.
    pub(crate) reclaim_bytes_per_s: Rate,
    /// How fast flushes have lately been, in bytes of memtable a second.
    pub(crate) flush_bytes_per_s: Rate,
    /// How fast merges have lately been, in bytes taken in a second.
    pub(crate) merge_bytes_per_s: Rate,
    /// Flushes that have begun, failed ones too.
    pub(crate) flushes_begun: AtomicU64,
    /// How many had begun when the last one began that failed for lack of space.
    pub(crate) flush_refused: AtomicU64,
    /// How often flushing, merging, and moving values have failed since they last succeeded.
    pub(crate) failures_in_a_row: [AtomicUsize; 3],
    /// Whether the last step of a flush saved an index, and a memtable has its turn now.
    pub(crate) saved_last: AtomicBool,
    /// Held by whoever flushes: no memtable is flushed twice.
    pub(crate) flushing: Mutex<()>,
    /// Delay that writers owe and have not slept yet.
    pub(crate) owed: Mutex<OwedDelay>,
    /// Held by the writer who sleeps: delays follow one another, or several writers would pay as one.
    pub(crate) sleeping: Mutex<()>,
}

impl Debt {
    /// Whether a flush has failed for lack of space that began after `begun` others had. One that was under way before says
    /// nothing about the space there is now.
    pub(crate) fn is_refused_since(&self, begun: u64) -> bool {
        self.flush_refused.load(Ordering::Acquire) > begun
    }

    /// Forgets a sealed memtable: it is flushed, or gone.
    pub(crate) fn settle_sealed(&self, bytes: usize) {
        self.sealed_bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.flushed_bytes.store(0, Ordering::Relaxed);
    }
}

/// A speed as lately measured, in bytes a second: half of it is the newest measurement.
#[derive(Debug, Default)]
pub(crate) struct Rate(AtomicU64);

impl Rate {
    pub(crate) fn note(&self, bytes: u64, took: std::time::Duration) {
        let newest = bytes as f64 / took.as_secs_f64().max(1e-6);
        let before = self.get();
        let next = if before == 0.0 { newest } else { (before + newest) / 2.0 };
        self.0.store(next as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64
    }
}

/// Wakes upkeep when there is work, and writers when there is room.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    condvar: Condvar,
}

impl Bell {
    /// Wakes everyone who waits.
    pub(crate) fn ring(&self) {
        *self.rung.lock() += 1;
        self.condvar.notify_all();
    }

    /// How often it rang, to hand to `wait`.
    pub(crate) fn count(&self) -> u64 {
        *self.rung.lock()
    }

    /// Waits until it has rung since `seen`, at most `timeout`.
    pub(crate) fn wait(&self, seen: u64, timeout: std::time::Duration) {
        let mut rung = self.rung.lock();
        if *rung == seen {
            self.condvar.wait_for(&mut rung, timeout);
        }
    }
}

impl Engine {
    /// The last seq of the history that readers see.
    #[inline]
    pub(crate) fn published(&self) -> Seq {
        self.published.load(Ordering::Acquire)
    }

    /// The present tables.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// The tables that have sealed memtables.
    pub(crate) fn tables_sealed(&self) -> Vec<Arc<crate::state::catalog::TableCore>> {
        let catalog = self.catalog();
        let mut sealed = self.work.sealed.lock();
        sealed.retain(|&id| catalog.by_id(id).is_none_or(|table| !table.view().sealed.is_empty()));
        sealed.iter().filter_map(|&id| catalog.by_id(id).cloned()).collect()
    }

    /// The sorted tables whose parts lead to values that lie apart. The caller holds the manifest's lock.
    pub(crate) fn tables_leading(&self) -> Vec<Arc<crate::state::catalog::TableCore>> {
        let catalog = self.catalog();
        self.work.leading.lock().iter().filter_map(|&id| catalog.by_id(id).cloned()).collect()
    }

    /// Makes the next list of tables from the present one and swaps it in. The caller holds the manifest's lock.
    pub(crate) fn change_catalog(&self, change: impl FnOnce(&mut Catalog)) {
        let mut slot = self.catalog.write();
        let mut next = slot.as_ref().clone();
        change(&mut next);
        *slot = Arc::new(next);
    }

    /// Takes no more records of a table: it is dropped.
    pub(crate) fn retire_active(&self, committer: &mut Committer, table: &crate::state::catalog::TableCore) {
        table.mark_dropped();
        let slot = committer.active.get_mut(table.id.0 as usize);
        committer.written.remove(&table.id);
        if let Some(active) = slot.and_then(Option::take) {
            committer.active_bytes -= active.bytes_counted;
        }
    }

    /// The path of a file of the store.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Fails once the table is dropped or the store closed. Asked after a picture is taken: see [`TableCore::let_go`].
    ///
    /// [`TableCore::let_go`]: crate::state::catalog::TableCore::let_go
    #[inline]
    pub(crate) fn check_readable(&self, table: &crate::state::catalog::TableCore) -> Result<()> {
        self.check_open()?;
        table.check_alive()
    }

    /// Fails once the store is closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.health.is_closed() {
            return Err(Error::new(ErrorKind::Closed, "the store is closed"));
        }
        Ok(())
    }

    /// The world as those see it who must leave others some of the budget.
    pub(crate) fn host_for(&self, who: Who) -> Host {
        match &self.account {
            Some(account) => account.host(&self.options.host, who),
            None => self.host.clone(),
        }
    }

    /// Lets go of memory and files once the store is closed: handles of users keep the engine alive for as long as they
    /// like, and should keep nothing else.
    pub(crate) fn let_go(&self) {
        self.manifest.lock().let_go();
        self.values.let_go();
        self.borders.let_go();
        let mut committer = self.commit.lock();
        committer.active = Vec::new();
        committer.written.clear();
        drop(committer);
        self.catalog().all().for_each(|table| table.let_go());
        if let Some(journal) = &self.journal {
            journal.let_go();
        }
        self.parts.clear();
    }

    /// Takes the lock of the store, which outlives it then.
    pub(crate) fn take_lock(&self) -> Option<Box<dyn FileLock>> {
        self.lock.lock().take()
    }

    /// Lets others open the store.
    pub(crate) fn release_lock(&self) {
        *self.lock.lock() = None;
    }

    /// Fails in a store that is opened for reading.
    pub(crate) fn check_not_read_only(&self) -> Result<()> {
        if self.options.read_only {
            let message = format!("the store {} is opened for reading only", self.dir.display());
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        Ok(())
    }
}

#[cfg(all(test, folddb_schedules))]
mod schedules;
