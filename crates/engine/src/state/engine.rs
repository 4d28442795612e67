//! The state that all of the engine shares, and which lock guards what.
//!
//! ```text
//!   lock          guards                                             held while
//!   points        keys of hashed tables that are being written      a batch is resolved, placed and published
//!   commit        the log's end, the next seq, active memtables      one batch is appended and applied
//!   manifest      the list of what lives                             one edit is appended and synced
//!   a table's     replacing the view that readers take               it is replaced; readers do not take it
//!   view
//! ```
//!
//! Taken in this order: points, manifest, commit, view. Nothing waits for the disk under `commit`,
//! except an append that needs the next segment before background work has created it. A full tail
//! is sorted and folded without it, by the thread that filled it; under it only if the next is full
//! by then, or the memtable is sealed. So folds must not use the store.

use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Lsn, Result, Seq};
use folddb_host::Host;
use folddb_host::files::FileLock;
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_host::sync::{Mutex, MutexGuard, RwLock};
use folddb_journal::JournalSync;

use crate::options::Options;
use crate::shared::Shared;
use crate::shared::bell::Bell;
use crate::shared::memory::Tenant;
use crate::state::catalog::Catalog;
use crate::state::committer::Committer;
use crate::state::counters::Counters;
use crate::state::debt::Debt;
use crate::state::disk_quota::{DiskQuota, SpaceUser};
use crate::state::event_queue::EventQueue;
use crate::state::feed_state::Feeds;
use crate::state::hash_index::PointLocks;
use crate::state::health::Health;
use crate::state::latency::Latencies;
use crate::state::manifest::Manifest;
use crate::state::numbers::Numbers;
use crate::state::snapshots::Boundaries;
use crate::state::sync_waiters::SyncWaiters;
use crate::state::tables_at_work::TablesAtWork;
use crate::state::value_state::Values;
use crate::state::write_times::StoreTimes;

/// The engine of one open store.
pub struct Engine {
    pub dir: PathBuf,
    pub store_id: u128,
    pub host: Host,
    pub options: Options,
    pub catalog: RwLock<Arc<Catalog>>,
    /// Incremented whenever a table gets or loses an index, under the commit lock; 0 if none has
    /// ever had one. It ensures that each batch has the entries of the indexes that exist when it
    /// is appended.
    pub index_epoch: AtomicU64,
    pub commit: Mutex<Committer>,
    pub published: AtomicU64,
    pub journal: Option<Arc<JournalSync>>,
    /// Where the log ended at the opening. A read-only store does not have what a writer has added
    /// since.
    pub read_to_lsn: Lsn,
    pub values: Values,
    pub feeds: Feeds,
    /// Held by writers of keys in hashed tables.
    pub points: PointLocks,
    pub manifest: Mutex<Manifest>,
    pub numbers: Arc<Numbers>,
    pub parts: Arc<folddb_run::Shared>,
    pub boundaries: Arc<Boundaries>,
    pub times: StoreTimes,
    pub health: Health,
    /// The quota of the disk, if there is a budget. `host` uses it.
    pub quota: Option<Arc<DiskQuota>>,
    pub debt: Debt,
    /// The resources that it shares with other stores, or has alone.
    pub shared: Shared,
    /// Its memtables' share of the memory.
    pub memory: Arc<Tenant>,
    pub bell: Bell,
    pub work: TablesAtWork,
    pub counters: Counters,
    pub latencies: Latencies,
    pub events: EventQueue,
    pub sync_waiters: SyncWaiters,
    /// Held until the store is closed.
    pub lock: Mutex<Option<Box<dyn FileLock>>>,
}

impl Engine {
    /// The last seq of the history that readers see.
    #[inline]
    pub fn published(&self) -> Seq {
        self.published.load(Ordering::Acquire)
    }

    /// The present tables.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// The tables that have sealed memtables.
    pub(crate) fn tables_sealed(&self) -> Vec<Arc<crate::state::catalog::TableCore>> {
        let catalog = self.catalog();
        let mut sealed = self.work.sealed.lock();
        sealed.retain(|&id| catalog.by_id(id).is_none_or(|table| !table.view().sealed.is_empty()));
        sealed.iter().filter_map(|&id| catalog.by_id(id).cloned()).collect()
    }

    /// The sorted tables whose parts point to separated values. The caller holds the manifest's
    /// lock.
    pub(crate) fn tables_leading(&self) -> Vec<Arc<crate::state::catalog::TableCore>> {
        let catalog = self.catalog();
        self.work.leading.lock().iter().filter_map(|&id| catalog.by_id(id).cloned()).collect()
    }

    /// Makes the next list of tables from the present one and swaps it in. The caller holds the
    /// manifest's lock.
    pub fn change_catalog(&self, change: impl FnOnce(&mut Catalog)) {
        let mut slot = self.catalog.write();
        let mut next = slot.as_ref().clone();
        change(&mut next);
        *slot = Arc::new(next);
    }

    /// Takes no more records of a table: it is dropped.
    pub fn retire_active(&self, committer: &mut Committer, table: &crate::state::catalog::TableCore) {
        table.mark_dropped();
        let slot = committer.active.get_mut(table.id.0 as usize);
        committer.written.remove(&table.id);
        if let Some(active) = slot.and_then(Option::take) {
            committer.active_bytes -= active.bytes_counted;
        }
    }

    /// The path of a file of the store.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Fails once the table is dropped or the store closed. Called after a view is taken: see
    /// [`TableCore::let_go`].
    ///
    /// [`TableCore::let_go`]: crate::state::catalog::TableCore::let_go
    #[inline]
    pub fn check_readable(&self, table: &crate::state::catalog::TableCore) -> Result<()> {
        self.check_open()?;
        table.check_alive()
    }

    /// Fails once the store is closed.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.health.is_closed() {
            return Err(self.health.closed());
        }
        Ok(())
    }

    /// Fails in a forked child. It takes no lock, and comes before all: nobody will ever release
    /// those that other threads had.
    #[inline]
    pub fn check_here(&self) -> Result<()> {
        if self.health.is_forked() {
            return Err(self.health.closed());
        }
        Ok(())
    }

    /// The commit lock, for readers of the present: no batch is half applied, and no memtable is
    /// being sealed as a whole. None in a forked child, whose reads fail.
    pub fn still(&self) -> Option<MutexGuard<'_, Committer>> {
        (!self.health.is_forked()).then(|| self.commit.lock())
    }

    /// The host for users that must leave others some of the budget.
    pub(crate) fn host_for(&self, who: SpaceUser) -> Host {
        match &self.quota {
            Some(quota) => quota.host(&self.options.host, who),
            None => self.host.clone(),
        }
    }

    /// Releases memory and files once the store is closed: handles of users may keep the engine
    /// alive, but should keep nothing else.
    pub fn let_go(&self) {
        self.manifest.lock().let_go();
        self.values.let_go();
        self.boundaries.let_go();
        let mut committer = self.commit.lock();
        committer.active = Vec::new();
        committer.written.clear();
        committer.full.clear();
        drop(committer);
        self.catalog().all().for_each(|table| table.let_go());
        if let Some(journal) = &self.journal {
            journal.let_go();
        }
        self.parts.leave();
        self.memory.leave();
    }

    /// Takes the lock of the store, which then outlives it.
    pub fn take_lock(&self) -> Option<Box<dyn FileLock>> {
        self.lock.lock().take()
    }

    /// Lets others open the store.
    pub fn release_lock(&self) {
        *self.lock.lock() = None;
    }

    /// Fails in a store that is opened for reading, and in a forked child. It takes no lock.
    pub fn check_not_read_only(&self) -> Result<()> {
        self.check_here()?;
        if self.options.read_only {
            let message = format!("the store {} is opened for reading only", self.dir.display());
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        Ok(())
    }
}
