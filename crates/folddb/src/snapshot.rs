//! A pinned view of the whole store.

use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::{Error, ErrorKind, Lsn, Result};
use folddb_rules::time::moment;

use crate::scan::bytes::BytesScan;
use crate::table::bytes::BytesTable;
use crate::uncommitted::Inside;
use folddb_engine::read::locate::{Locate, Located};
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::read::{get, head, locate, pinned};
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock;
use folddb_engine::state::clock::AsOf;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::{At, Held, HeldFor};
use folddb_engine::values::head::Head;
use folddb_engine::write::read_set::Reads;
use folddb_engine::write::stream;
use folddb_engine::write::stream::ValueReader;

/// The whole store as it was when the snapshot was taken. Taking one is free. While it is young,
/// merges keep what it can see; later it pins files (`Tuning::snapshot_files_after`), and with
/// [`Options::snapshot_age_max`](crate::Options::snapshot_age_max) it ends by itself. So drop it
/// when done; clones are of the same moment, and keep it alive.
#[derive(Clone, Debug)]
pub struct Snapshot {
    engine: EngineRef,
    held: Arc<Held>,
    /// The moment of the request, if that is later than what it sees.
    asked: Option<At>,
    /// The read set, if a transaction reads at it, for the commit to check.
    reads: Option<Arc<Reads>>,
}

#[derive(Clone)]
struct EngineRef(Arc<Engine>);

impl std::fmt::Debug for EngineRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.dir.display())
    }
}

impl Snapshot {
    /// Takes a snapshot of what is published.
    pub(crate) fn take(engine: &Arc<Engine>, held_for: HeldFor) -> Snapshot {
        let _still = engine.still();
        Snapshot::take_still(engine, held_for)
    }

    fn take_still(engine: &Arc<Engine>, held_for: HeldFor) -> Snapshot {
        Snapshot::held_at(engine, At::new(engine.published(), clock::now_ms(engine)), held_for)
    }

    fn held_at(engine: &Arc<Engine>, at: At, held_for: HeldFor) -> Snapshot {
        let held = engine.boundaries.hold(at, held_for, engine.host.clock.monotonic());
        Snapshot { engine: EngineRef(Arc::clone(engine)), held: Arc::new(held), asked: None, reads: None }
    }

    /// Takes a snapshot for running work, and returns the end of the log that has everything it
    /// sees. If it `notes_time`, the next edit makes its time durable.
    pub(crate) fn take_with_lsn(engine: &Arc<Engine>, notes_time: bool) -> Result<(Snapshot, Lsn)> {
        engine.check_here()?;
        let committer = engine.commit.lock();
        let Some(journal) = &committer.journal else {
            return Err(engine.health.closed());
        };
        let lsn = journal.end_lsn();
        let time_ms = if notes_time { clock::note_now(engine, &committer) } else { clock::now_ms(engine) };
        Ok((Snapshot::held_at(engine, At::new(engine.published(), time_ms), HeldFor::Work), lsn))
    }

    /// A snapshot of a past moment.
    pub(crate) fn take_at(engine: &Arc<Engine>, as_of: AsOf) -> Result<Snapshot> {
        engine.check_here()?;
        clock::check_written(engine, as_of)?;
        let (held, asked) = clock::hold_at(engine, as_of);
        Ok(Snapshot {
            engine: EngineRef(Arc::clone(engine)),
            held: Arc::new(held),
            asked: Some(asked),
            reads: None,
        })
    }

    /// The same for a transaction, which notes reads at it.
    pub(crate) fn take_noting(engine: &Arc<Engine>) -> (Snapshot, Arc<Reads>) {
        let past = Snapshot::take(engine, HeldFor::Transaction);
        let reads = Arc::new(Reads::new(past.seen()));
        (Snapshot { reads: Some(Arc::clone(&reads)), ..past }, reads)
    }

    /// The result of reading a key, noted for a transaction, even if its fold fails.
    fn minded<T>(&self, table: &BytesTable, key: &[u8], found: Result<T>) -> Result<T> {
        let is_failed = found.as_ref().is_err_and(|error| error.kind() == ErrorKind::FoldFailed);
        if let Some(reads) = self.reads.as_ref().filter(|_| found.is_ok() || is_failed) {
            reads.note_key(&table.core, key);
        }
        found
    }

    /// The moment for a reader of `table`, if that is kept.
    pub(crate) fn at(&self, table: &BytesTable) -> Result<Option<At>> {
        self.check_own(table.engine())?;
        pinned::pinned_files_at(table.engine(), Some(self.held.at))?; // checks whether it is too old: hashed tables do not
        if let Some(asked) = self.asked {
            clock::check_kept(table.engine(), &table.core, self.held.at, asked)?;
        }
        Ok(Some(self.held.at))
    }

    /// The transaction's reads, if it belongs to one.
    pub(crate) fn reads(&self) -> Option<Arc<Reads>> {
        self.reads.clone()
    }

    /// Its hold, for a reader of `table`, if that is kept; and whether it is of a past moment.
    pub(crate) fn hold_for(&self, table: &BytesTable) -> Result<(Arc<Held>, bool)> {
        self.at(table)?;
        let at = self.held.at;
        let is_over = |asked: At| at.seq < asked.seq || at.time_ms < asked.time_ms;
        Ok((Arc::clone(&self.held), self.asked.is_some_and(is_over)))
    }

    /// Its hold.
    pub(crate) fn into_held(self) -> Arc<Held> {
        self.held
    }

    /// The seq of the last record that it sees.
    pub fn seq(&self) -> Seq {
        self.held.at.seq.into()
    }

    /// The moment that it reads at.
    pub(crate) fn seen(&self) -> At {
        self.held.at
    }

    /// The time that it reads at: values that had expired then are absent.
    pub fn time(&self) -> SystemTime {
        moment(self.held.at.time_ms)
    }

    /// Whether it has ended: because of its age
    /// ([`Options::snapshot_age_max`](crate::Options::snapshot_age_max)), or with its store.
    pub fn has_ended(&self) -> bool {
        self.engine.0.check_open().is_err()
            || pinned::pinned_files_at(&self.engine.0, Some(self.held.at)).is_err()
    }

    pub(crate) fn get_with<R>(
        &self,
        table: &BytesTable,
        key: &[u8],
        take: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        let at = self.at(table)?;
        self.minded(table, key, get::get(&self.engine.0, &table.core, key, at, |value| Ok(take(value))))
    }

    pub(crate) fn contains(&self, table: &BytesTable, key: &[u8]) -> Result<bool> {
        let at = self.at(table)?;
        self.minded(table, key, get::contains(&self.engine.0, &table.core, key, at))
    }

    pub(crate) fn read(&self, table: &BytesTable, key: &[u8]) -> Result<Option<ValueReader>> {
        let at = self.at(table)?;
        self.minded(table, key, stream::read_value(table.engine(), table.core(), key, at))
    }

    pub(crate) fn locate(&self, table: &BytesTable, key: &[u8], how: Locate) -> Result<Option<Located>> {
        let at = self.at(table)?;
        self.minded(table, key, locate::locate(table.engine(), table.core(), key, at, how))
    }

    pub(crate) fn head(&self, table: &BytesTable, key: &[u8]) -> Result<Option<Head>> {
        let at = self.at(table)?;
        self.minded(table, key, head::head(&self.engine.0, &table.core, key, at))
    }

    /// A scan of a table at the snapshot. The snapshot lives as long as the scan.
    pub(crate) fn scan_bytes(&self, table: &BytesTable) -> BytesScan {
        let mut scan = self.scan_as(table.engine(), &table.core);
        scan.inside = self.reads.clone().map(|reads| Inside { reads, own: None });
        match self.at(table) {
            Ok(_) => scan,
            Err(mistake) => scan.failing(mistake),
        }
    }

    /// A scan of a table of its own store.
    pub(crate) fn scan_own(&self, table: &Arc<TableCore>) -> BytesScan {
        self.scan_as(&self.engine.0, table)
    }

    fn scan_as(&self, engine: &Arc<Engine>, table: &Arc<TableCore>) -> BytesScan {
        let plan = ScanPlan::everything(Some(self.held.at));
        BytesScan::new(engine, table, plan).holding(Arc::clone(&self.held))
    }

    fn check_own(&self, engine: &Arc<Engine>) -> Result<()> {
        if Arc::ptr_eq(engine, &self.engine.0) {
            return Ok(());
        }
        Err(Error::invalid("a snapshot reads tables of its own store only"))
    }
}
