//! The handle of a store.

pub(crate) mod reclaim_step;
pub(crate) mod metrics;
pub(crate) mod stats;
pub(crate) mod metric_families;
pub(crate) mod prometheus;
pub(crate) mod sync_handle;
pub(crate) mod value_times;
pub(crate) mod frozen;
pub(crate) mod remove_unused;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::Mutex;
use folddb_rules::codec::{Key, Value};
use folddb_rules::table_rules::{BoundRules, StoredRules, TableRules};
use folddb_rules::time::moment;

use crate::batch::Batch;
use crate::options::Options;
use crate::rules::Rules;
use crate::rules::dynamic::DynamicRules;
use crate::snapshot::Snapshot;
use crate::store::reclaim_step::ReclaimStep;
use crate::table::bytes::BytesTable;
use crate::table::edits::{self, Content};
use crate::table::typed::{Table, fit};
use crate::transaction::{Transaction, transact};
use folddb_engine::background::reclaim_report::ReclaimReport;
use folddb_engine::background::scheduler::BackgroundJob;
use folddb_engine::background::state::Background;
use folddb_engine::background::workers::Workers;
use folddb_engine::background::{hash_checkpoint, merge, reclaim, reclaim_now, scheduler};
use folddb_engine::options::{Durability, OpenMode, Options as EngineOptions};
use folddb_engine::recovery::{log, open};
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock::AsOf;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::HeldFor;
use folddb_engine::state::{clock, log_sync, pressure};

/// An open store: a directory of tables. Cheap to clone; any number of threads may use it. It is
/// closed by [`Store::close`], or when the last clone is dropped.
///
/// In a child that was forked later, every handle of it gives [`ErrorKind::Closed`], waits for no
/// lock and changes no file; calls that cannot fail give nothing. Fork before stores are opened, or
/// open them in the child once the parent has closed them.
#[derive(Clone)]
pub struct Store {
    open: Arc<Open>,
}

struct Open {
    background: Arc<Background>,
    workers: Mutex<Workers>,
}

impl Store {
    /// Creates a store in a directory that does not exist yet, or is empty, and opens it.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if the directory is not empty; any failure of the operating
    /// system.
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        open::create(path.as_ref(), &options.engine)?;
        Store::open(path, options)
    }

    /// Creates a store whose files are in memory, and opens it: for tests. It behaves and is
    /// limited as any other is, and is gone with its last handle. [`Options::in_memory`] is for
    /// tests that open a store again, or twice.
    ///
    /// ```
    /// use folddb::{Options, Rules, Store};
    ///
    /// let store = Store::in_memory(Options::default())?;
    /// let names = store.table("names", Rules::sorted::<String, String>())?;
    /// names.put("UA", "United")?;
    /// assert_eq!(names.get("UA")?.as_deref(), Some("United"));
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`], for what the options ask for; none by default.
    pub fn in_memory(options: Options) -> Result<Store> {
        Store::create("memory.folddb", options.in_memory())
    }

    /// Opens an existing store for reading and writing. Everything that was acknowledged before is
    /// there.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotFound`], [`ErrorKind::Locked`], [`ErrorKind::NewerFormat`],
    /// [`ErrorKind::Permission`]; [`ErrorKind::ReadOnly`] if it is frozen;
    /// [`ErrorKind::Corruption`], naming file and offset, if acknowledged data is damaged.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        Store::open_as(path.as_ref(), options.engine, OpenMode::Primary)
    }

    /// Opens the store in a directory, creating it if the directory does not exist yet or is empty.
    ///
    /// ```
    /// # use folddb::{Options, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("s.folddb");
    /// Store::open_or_create(&path, Options::default())?.close()?; // there was none
    /// let store = Store::open_or_create(&path, Options::default())?;
    /// assert!(store.tables().is_empty());
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`]; [`ErrorKind::StoreNotFound`] if the directory has something else; any
    /// failure of the operating system.
    pub fn open_or_create(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        let path = path.as_ref();
        let not_found = match Store::open(path, options.clone()) {
            Err(error) if error.kind() == ErrorKind::StoreNotFound => error,
            opened => return opened,
        };
        match open::create(path, &options.engine) {
            // Either another process was faster, or there is something that is not a store.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match Store::open(path, options) {
                Err(error) if error.kind() == ErrorKind::StoreNotFound => Err(not_found),
                opened => opened,
            },
            created => created.and_then(|()| Store::open(path, options)),
        }
    }

    /// Opens a store for reading: nothing on disk changes, and any number of processes may do so at
    /// once while none writes. The log beyond the runs must fit in memory; a longer log is refused,
    /// with the memory that it needs.
    ///
    /// ```
    /// # use folddb::{ErrorKind, Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("s.folddb");
    /// let store = Store::create(&path, Options::default())?;
    /// store.table("names", Rules::sorted::<String, String>())?.put("UA", "United")?;
    /// store.close()?;
    ///
    /// let store = Store::open_read_only(&path, Options::default())?;
    /// let names = store.open_table::<String, String>("names")?;
    /// assert_eq!(names.get("UA")?.as_deref(), Some("United"));
    /// assert_eq!(names.put("DL", "Delta").unwrap_err().kind(), ErrorKind::ReadOnly);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`]; [`ErrorKind::Locked`] while a process has it open for writing, see
    /// [`Store::open_secondary`].
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        Store::open_as(path.as_ref(), options.engine, OpenMode::ReadOnly)
    }

    /// Opens a store for reading while another process may write to it. It takes no lock: it shows
    /// the state at its opening, with everything that was acknowledged before in any mode but
    /// [`Durability::Buffered`], and does not change; [`Store::refresh`] opens it again. Every file
    /// of the store is held open, so it needs a descriptor for each. If nobody writes, prefer
    /// [`Store::open_read_only`].
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("s.folddb");
    /// let writer = Store::create(&path, Options::default())?; // in another process, usually
    /// let names = writer.table("names", Rules::sorted::<String, String>())?;
    /// names.put("UA", "United")?;
    ///
    /// let reader = Store::open_secondary(&path, Options::default())?;
    /// names.put("DL", "Delta")?;
    /// assert_eq!(reader.open_table::<String, String>("names")?.scan().count()?, 1);
    /// assert_eq!(reader.refresh()?.open_table::<String, String>("names")?.scan().count()?, 2);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`], except [`ErrorKind::Locked`].
    pub fn open_secondary(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        Store::open_as(path.as_ref(), options.engine, OpenMode::Secondary)
    }

    pub(crate) fn open_as(path: &Path, options: EngineOptions, mode: OpenMode) -> Result<Store> {
        let background = Arc::new(open::open(path, options.opened_as(mode))?);
        if mode == OpenMode::Primary {
            // Before the first write, which may come sooner than the first look of a thread.
            pressure::check_space(&background.engine);
        }
        let workers = Mutex::new(Workers::start(&background)?);
        Ok(Store { open: Arc::new(Open { background, workers }) })
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.open.background.engine
    }

    pub(crate) fn background(&self) -> &Background {
        &self.open.background
    }

    /// The directory of the store.
    pub fn path(&self) -> &Path {
        &self.engine().dir
    }

    /// Opens a table, creating it with these rules if the store has none of this name.
    /// [`Store::open_table`] never creates one, [`Store::create_table`] always does.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] if the table exists with other rules; the message names both.
    pub fn table<K: Key, V: Value>(&self, name: &str, rules: Rules<K, V>) -> Result<Table<K, V>> {
        let wanted = rules.checked(name)?;
        let create = || Ok(self.create_table(name, rules.clone())?.as_bytes().clone());
        Table::new(self.open_or_make(name, wanted, create)?)
    }

    /// Opens an existing table by the types of its keys and values, with any other rules. A
    /// mistyped name creates nothing.
    ///
    /// ```
    /// # use folddb::{ErrorKind, Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// store.create_table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    ///
    /// let visits = store.open_table::<String, u64>("visits")?;
    /// visits.fold("/index", &1)?;
    /// assert_eq!(store.open_table::<String, u64>("visit").unwrap_err().kind(), ErrorKind::TableNotFound);
    /// assert_eq!(store.open_table::<u64, u64>("visits").unwrap_err().kind(), ErrorKind::RulesMismatch);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TableNotFound`], with the existing names; [`ErrorKind::RulesMismatch`] if keys
    /// of the table are not of type `K`, or its values are of another type than `V`;
    /// [`ErrorKind::InvalidInput`] if the fold of the table takes no values of type `V`.
    pub fn open_table<K: Key, V: Value>(&self, name: &str) -> Result<Table<K, V>> {
        let table = self.bytes_table(name)?;
        if let Some(difference) = table.core().rules.types_differ(&K::codec(), &V::codec()) {
            let message = format!("table `{name}` has different types: {difference}");
            return Err(Error::new(ErrorKind::RulesMismatch, message));
        }
        Table::new(table)
    }

    /// Creates a table with these rules.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`]; [`ErrorKind::InvalidInput`] for a bad name, or impossible
    /// rules.
    pub fn create_table<K: Key, V: Value>(&self, name: &str, rules: Rules<K, V>) -> Result<Table<K, V>> {
        let wanted = rules.checked(name)?;
        // A table that fits no value of the type is not created. Rules with unavailable functions
        // are refused at creation.
        if let Ok(bound) = wanted.bind(&self.engine().options.custom) {
            fit::<V>(name, &bound)?;
        }
        Table::new(self.create_bytes_table(name, wanted.clone())?)
    }

    /// Creates a table with rules that are known only at run time.
    ///
    /// # Errors
    /// As [`Store::create_table`].
    pub fn create_bytes_table(&self, name: &str, rules: TableRules) -> Result<BytesTable> {
        self.make_table(name, rules, Content::default())
    }

    /// Opens a table whose rules are known only at run time, creating it with these if the store
    /// has none of this name. The indexes that the rules name must be those of the table, which may
    /// have more.
    ///
    /// ```
    /// # use folddb::{ErrorKind, Options, Store, table_rules::TableRules};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let rules: TableRules = "value=json\nindex=city:json:/city".parse()?;
    /// store.open_or_create_bytes_table("people", rules.clone())?; // creates it
    /// store.open_or_create_bytes_table("people", rules)?; // opens it
    ///
    /// let others: TableRules = "value=json\nindex=city:json:/town".parse()?;
    /// let refused = store.open_or_create_bytes_table("people", others).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] if the table exists with other rules, with the difference;
    /// otherwise as [`Store::create_table`].
    pub fn open_or_create_bytes_table(&self, name: &str, rules: TableRules) -> Result<BytesTable> {
        self.open_or_make(name, &rules, || self.create_bytes_table(name, rules.clone()))
    }

    fn open_or_make(
        &self,
        name: &str,
        wanted: &TableRules,
        make: impl Fn() -> Result<BytesTable>,
    ) -> Result<BytesTable> {
        loop {
            match self.bytes_table(name) {
                Ok(table) => return table.with_rules(wanted),
                Err(error)
                    if error.kind() == ErrorKind::TableNotFound && !self.engine().options.read_only => {}
                Err(error) => return Err(error),
            }
            match make() {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {} // another thread was faster
                made => return made,
            }
        }
    }

    /// Checks whether a store with these options may have a table of this name with these rules,
    /// and returns them with their functions. Nothing is written, and no store is needed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a bad name, or impossible rules.
    pub fn check_table(name: &str, rules: &TableRules, options: &Options) -> Result<DynamicRules> {
        let bound = edits::check_rules(name, rules, &options.engine.custom)?;
        Ok(DynamicRules::of(Arc::new(bound)))
    }

    /// The rules of a table that is to be created, with their functions.
    pub(crate) fn check_new_table(&self, name: &str, rules: &TableRules) -> Result<BoundRules> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        let bound = edits::check_rules(name, rules, &engine.options.custom)?;
        match rules.index_of {
            Some(_) => Err(Error::invalid("an index is made with its table, or added to it")), // see `BytesTable::add_index`
            None => Ok(bound),
        }
    }

    /// Creates a table with this content, by one edit. A table with indexes must have none.
    pub(crate) fn make_table(&self, name: &str, rules: TableRules, content: Content) -> Result<BytesTable> {
        let bound = self.check_new_table(name, &rules).inspect_err(|_| content.discard())?;
        Ok(self.handle(edits::make(self.engine(), name, bound, content)?))
    }

    /// Opens a table that exists without naming its types: keys and values are bytes as they are
    /// stored.
    ///
    /// # Errors
    /// [`ErrorKind::TableNotFound`], with the existing names; [`ErrorKind::Closed`].
    pub fn bytes_table(&self, name: &str) -> Result<BytesTable> {
        self.engine().check_open()?;
        let catalog = self.engine().catalog();
        match catalog.by_name(name) {
            Some(core) => Ok(self.handle(Arc::clone(core))),
            None => Err(catalog.unknown(name)),
        }
    }

    fn handle(&self, core: Arc<TableCore>) -> BytesTable {
        BytesTable::new(&self.open.background, core)
    }

    /// The names of the tables, in order. Indexes are not among them: see [`BytesTable::indexes`].
    pub fn tables(&self) -> Vec<String> {
        match self.engine().check_here() {
            Ok(()) => self.engine().catalog().own().map(|table| table.name.clone()).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Removes a table and everything in it. Its handles fail from now on; running readers end
    /// first.
    ///
    /// # Errors
    /// [`ErrorKind::TableNotFound`]; a failed write.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        let core = Arc::clone(self.bytes_table(name)?.core());
        if let Some(of) = &core.rules.rules.index_of {
            return Err(Error::invalid(format!("`{name}` is an index of table `{of}`: drop the index")));
        }
        edits::remove(self.background(), &core)
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(self.engine()))
    }

    /// A pinned view of the whole store as it is now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.engine(), HeldFor::Snapshot)
    }

    /// Begins a transaction: reads at one snapshot, and writes that are committed only if nobody
    /// has written to what was read.
    pub fn transaction(&self) -> Transaction {
        Transaction::begin(self.engine())
    }

    /// Runs `work` in a transaction and commits it; after a conflict, runs it again, up to a
    /// thousand times.
    ///
    /// # Errors
    /// The error of `work`; [`crate::ErrorKind::Conflict`] after this many times; otherwise as
    /// [`Batch::commit`].
    pub fn transact<R>(
        &self,
        durability: Durability,
        work: impl FnMut(&mut Transaction) -> Result<R>,
    ) -> Result<R> {
        transact(self.engine(), durability, work)
    }

    /// The whole store as it was at a past moment, as far as its tables keep it ([`crate::Keep`]):
    /// reading one that does not is an error that names the oldest kept moment. Values that had
    /// expired then are absent. While the snapshot lives, merges keep what it can see. A future
    /// time means the present.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for a seq that has not been written yet.
    pub fn snapshot_at(&self, as_of: AsOf) -> Result<Snapshot> {
        Snapshot::take_at(self.engine(), as_of)
    }

    /// The time for expiry: that of the wall clock, in whole milliseconds, but it never goes back.
    pub fn now(&self) -> SystemTime {
        moment(clock::now_ms(self.engine()))
    }

    /// The seq of the last record that readers see.
    pub fn last_seq(&self) -> Seq {
        self.engine().published().into()
    }

    /// Waits until everything that was written so far is on the disk.
    ///
    /// # Errors
    /// A failed sync, which poisons the store; [`ErrorKind::Closed`].
    pub fn sync(&self) -> Result<()> {
        let engine = self.engine();
        engine.check_open()?;
        // Not through the committer, which no longer has the journal while the store is being
        // closed.
        log_sync::sync_log(engine)
    }

    /// Writes everything that is in memory to runs.
    ///
    /// # Errors
    /// A failed write.
    pub fn flush(&self) -> Result<()> {
        scheduler::flush_all(self.background())
    }

    /// Reclaims the space of dead values (value-log GC), at once: files with few live values are
    /// copied into fewer files, as long as that is worth it. Background work does the same when
    /// [`Tuning::value_space_max`](crate::Tuning::value_space_max) is exceeded. Overwritten values
    /// count as live until a merge has met them: [`BytesTable::compact`] ensures that. Damaged
    /// files of values stay as they are; the report lists them.
    ///
    /// # Errors
    /// [`ErrorKind::NoSpace`]; a failed read or write.
    pub fn reclaim(&self) -> Result<ReclaimReport> {
        self.reclaim_with(|_| ControlFlow::Continue(()))
    }

    /// The same. `progress` is called with each plan as it begins, and may stop there: background
    /// work, or a later call, goes on with that plan.
    ///
    /// # Errors
    /// As [`Store::reclaim`].
    pub fn reclaim_with(
        &self,
        mut progress: impl FnMut(&ReclaimStep) -> ControlFlow<()>,
    ) -> Result<ReclaimReport> {
        self.engine().check_not_read_only()?;
        reclaim_now::reclaim_all(self.background(), &mut |plan| progress(&ReclaimStep::of(plan)))
    }

    /// What [`Store::reclaim`] would do, as far as known.
    pub fn reclaim_plans(&self) -> Vec<ReclaimStep> {
        match self.engine().check_here() {
            Ok(()) => reclaim_now::reclaim_plans(self.background()).iter().map(ReclaimStep::of).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Takes one step of background work: for stores opened with [`crate::BackgroundWork::Manual`].
    /// Describes what it did; none if there is nothing to do.
    ///
    /// # Errors
    /// A failed write, or a full disk.
    pub fn background_step(&self) -> Result<Option<String>> {
        self.engine().check_not_read_only()?;
        scheduler::background_step(self.background())
    }

    /// Takes one step of one kind of background work, while [`Store::background_step`] takes one of
    /// the most urgent: with this and a seed a test replays a whole history. Describes what it did;
    /// none if there is nothing to do.
    ///
    /// # Errors
    /// A failed write, or a full disk.
    pub fn background_step_of(&self, work: BackgroundJob) -> Result<Option<String>> {
        self.engine().check_not_read_only()?;
        scheduler::background_step_of(self.background(), work)
    }

    /// Flushes, and waits until background work has nothing left to do: for benchmarks and tests.
    ///
    /// # Errors
    /// A failed write.
    pub fn settle(&self) -> Result<()> {
        scheduler::settle(self.background())
    }

    /// Closes the store: memory is flushed to runs, so that the next opening has nothing to replay.
    /// Other clones and handles fail from now on. Where the disk is too full for the runs, the log
    /// keeps what memory has, as after [`Store::close_without_flush`], and that is no error: who
    /// took it for one would write again what is written.
    ///
    /// # Errors
    /// A failed write; everything acknowledged is still there at the next opening.
    pub fn close(self) -> Result<()> {
        self.open.shut_down(true, Arc::strong_count(&self.open) == 1)
    }

    /// Closes the store without writing what is in memory: there is no new run, and merges stop
    /// where they are. The log is written to its end and synced, so nothing that was committed is
    /// lost, and the next opening replays it. For a store whose directory goes next, or whose
    /// process must end at once. Other clones and handles fail from now on.
    ///
    /// Dropping the last clone does the same, but tells of no error.
    ///
    /// # Errors
    /// A failed write or sync of the log; everything acknowledged is still there at the next
    /// opening, as far as the durability of its commit goes.
    pub fn close_without_flush(self) -> Result<()> {
        self.open.shut_down(false, Arc::strong_count(&self.open) == 1)
    }
}

impl Open {
    /// `is_only` if there are no other clones of this.
    fn shut_down(&self, flush: bool, is_only: bool) -> Result<()> {
        let (background, engine) = (&*self.background, &self.background.engine);
        if engine.health.is_forked() {
            return Err(engine.health.closed());
        }
        // A second closer waits for the first, which holds the store's lock until everything is
        // written.
        let mut workers = self.workers.lock();
        if engine.health.is_closed() {
            return Ok(());
        }
        let flushed = match engine.options.read_only || !flush {
            true => Ok(()),
            false => or_left_to_the_log(scheduler::flush_all(background)),
        };
        engine.health.close();
        engine.bell.ring();
        workers.join();
        engine.events.hand_on(&engine.health);
        merge::abandon_merges(background);
        engine.catalog().all().for_each(|table| hash_checkpoint::abandon_saving(engine, table));
        reclaim::abandon_reclaim(background);
        // Other handles may still write a file, though never a listed one.
        let is_last = is_only && Arc::strong_count(&self.background) == 1 && Arc::strong_count(engine) == 1;
        let sealed = match engine.health.cause() {
            None => log::close_journal(engine, is_last),
            Some(_) => Ok(()),
        };
        {
            let _no_edit = engine.manifest.lock(); // a running one ends first; later ones find it closed
            engine.release_lock();
        }
        engine.sync_waiters.end();
        engine.let_go();
        flushed.and(sealed)
    }
}

/// A flush that found no space has lost nothing: the next opening replays the log. A poisoned store
/// fails with the cause.
fn or_left_to_the_log(flushed: Result<()>) -> Result<()> {
    flushed.or_else(|error| if error.kind() == ErrorKind::NoSpace { Ok(()) } else { Err(error) })
}

/// Dropping flushes nothing: the log has everything. A forked child keeps the engine of its parent
/// in memory, since other threads may have left it half done.
impl Drop for Open {
    fn drop(&mut self) {
        if self.background.engine.health.is_forked() {
            std::mem::forget(Arc::clone(&self.background));
            return;
        }
        let _ = self.shut_down(false, true);
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.path().display())
    }
}
