//! Opening: from files to the first picture.
//!
//! ```text
//!   create     directory, FORMAT, MANIFEST, then as open
//!   open       lock, FORMAT, manifest
//!   runs       every listed part is opened and checked
//!   replay     the log from where the manifest says, through the same call as a write
//!   rewrite    what was replayed is in parts, and one edit installs them; a fresh segment is begun
//!   leftovers  parts that no manifest lists go: of merges and flushes that a crash cut short
//! ```
//!
//! Nothing is appended to a segment that was there before: after a failed sync the page cache may show
//! bytes that the disk does not have, so recovery rewrites what it replayed and syncs that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq, TableId};
use folddb_host::LockMode;
use folddb_host::files::FileLock;
use folddb_journal::{Journal, JournalOptions, JournalStart, ReplayFrame, ReplayFrom};
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::Change;
use folddb_layout::version::{FORMAT_FILE_BYTES_MAX, Version};
use folddb_manifest::{Loaded, ManifestLog, State, TableState};
use folddb_rules::table_rules::TableRules;
use folddb_run::{Part, Shared};
use parking_lot::{Mutex, RwLock};

use crate::borders::Borders;
use crate::catalog::{Catalog, TableCore};
use crate::engine::{Active, Bell, Committer, Debt, Engine, Manifest, Numbers};
use crate::health::Health;
use crate::install::Installed;
use crate::options::Options;
use crate::stats::Counters;
use crate::upkeep::flush::Written;
use crate::view::{PartFile, PartFiles, TableView, runs_of};

/// Makes an empty store in a directory that does not exist yet, or is empty.
pub(crate) fn create(dir: &Path, options: &Options) -> Result<()> {
    let files = &options.host.files;
    match files.create_dir(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let names = files.list(dir).map_err(|error| Error::io("list", dir, error))?;
            if !names.is_empty() {
                let message = format!("{} exists already and is not empty", dir.display());
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
        }
        Err(error) => return Err(Error::io("create the directory", dir, error)),
    }
    let _lock = lock(dir, options)?;
    let chance = &options.host.chance;
    let store_id = (u128::from(chance.next_u64()) << 64) | u128::from(chance.next_u64());
    let sync_dir =
        |dir: &Path| files.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error));
    let numbers = Numbers::starting_at(1);
    ManifestLog::create(&options.host, dir, store_id, Arc::new(move || numbers.take()))?;
    // FORMAT comes last and makes the directory a store: a creation that was cut short is not one.
    let format = dir.join(FileName::Format.to_string());
    let mut file = files.create(&format).map_err(|error| Error::io("create", &format, error))?;
    file.append(&Version::current(store_id).encode()).map_err(|error| Error::io("write", &format, error))?;
    file.sync().map_err(|error| Error::io("sync", &format, error))?;
    sync_dir(dir)?;
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_dir(Path::new(".")),
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

/// Opens a store: afterwards everything that was acknowledged is there, and it can be written to.
pub(crate) fn open(dir: &Path, options: Options) -> Result<Arc<Engine>> {
    check_format(dir, &options)?;
    let lock = lock(dir, &options)?;
    let loaded = folddb_manifest::load(&options.host, dir)?;
    let numbers = Arc::new(Numbers::starting_at(loaded.next_number));
    let torn = torn_manifest(dir, &options, &loaded);
    let state = Arc::new(loaded.state.clone());
    let leftovers = leftovers(dir, &options, &state)?;
    let parts = Shared::new(options.cache_bytes() as u64, options.open_files_max);
    let mut catalog = Catalog::default();
    let mut committer = Committer::empty();
    for (&id, state) in &state.tables {
        let table = open_table(dir, &options, id, state, &parts)?;
        committer.install_active(Active::new(Arc::clone(&table), state.flushed_seq));
        catalog.insert(table);
    }
    let mut engine = Engine {
        dir: dir.to_owned(),
        host: options.host.clone(),
        catalog: RwLock::new(Arc::new(catalog)),
        commit: Mutex::new(committer),
        published: AtomicU64::new(0),
        journal: None,
        manifest: Mutex::new(Manifest::ReadOnly(Arc::clone(&state))),
        numbers,
        parts,
        borders: Arc::new(Borders::default()),
        health: Health::default(),
        debt: Debt::default(),
        bell: Bell::default(),
        merges: Mutex::default(),
        counters: Counters::default(),
        options,
        lock: Mutex::new(Some(lock)),
    };
    let replayed = engine.replay(&state).map_err(|error| match torn {
        Some(torn) if error.kind() == ErrorKind::Corruption => error.context(torn),
        _ => error,
    })?;
    // Only now, when all that was acknowledged has been found, does anything on the disk change.
    if !engine.options.read_only {
        let numbers = Arc::clone(&engine.numbers);
        let log = ManifestLog::resume(&engine.host, dir, loaded, Arc::new(move || numbers.take()))?;
        *engine.manifest.lock() = Manifest::Log(Box::new(log));
        engine.start_journal(replayed)?;
        for path in leftovers {
            let _ = engine.host.files.remove(&path); // what stays is tried again at the next opening
        }
    }
    Ok(Arc::new(engine))
}

/// Says that the manifest ends in half an edit, for errors that may be owed to that. A crash while an edit is
/// written leaves one too, which by itself is no damage: it was never acknowledged.
fn torn_manifest(dir: &Path, options: &Options, loaded: &Loaded) -> Option<String> {
    let path = dir.join(FileName::Manifest(loaded.number).to_string());
    let end = options.host.files.len_bytes(&path).ok()?.saturating_sub(loaded.cut_bytes);
    let named = format!(
        "{} ends its last whole edit at offset {end}, and may have lost what came after",
        path.display()
    );
    (loaded.cut_bytes > 0 || loaded.state.log_open).then_some(named)
}

/// What replaying the log gave.
struct Replay {
    end_lsn: Lsn,
    old_segments: Vec<FileNumber>,
    /// Memtables that filled up on the way, as parts that the manifest does not list yet.
    rewritten: Vec<Rewritten>,
}

/// A memtable of what was replayed, on the disk.
struct Rewritten {
    table: Arc<TableCore>,
    last_seq: Seq,
    written: Written,
}

impl Engine {
    /// Applies what the log holds beyond the runs, frame by frame, through the same call as a write.
    fn replay(&self, state: &State) -> Result<Replay> {
        let engine = self;
        let mut committer = engine.commit.lock();
        committer.next_seq = state.last_seq + 1;
        let from = ReplayFrom {
            store_id: state.store_id,
            log_start_lsn: state.log_start_lsn,
            durable_lsn: state.durable_lsn,
            is_open: state.log_open,
        };
        let mut rewritten = Vec::new();
        let visit = &mut |frame: ReplayFrame<'_>| {
            check_tables(&frame, state)?;
            engine.apply_replayed(&mut committer, &mut rewritten, &frame)
        };
        let replayed = folddb_journal::replay(&engine.host, &engine.dir, &from, visit)?;
        // A recovery that was cut short may have flushed what the log has lost since: those seqs are taken.
        let flushed_seq = state.tables.values().map(|table| table.flushed_seq).max().unwrap_or(0);
        committer.next_seq = committer.next_seq.max(state.last_seq.max(flushed_seq) + 1);
        engine.published.store(committer.next_seq - 1, Ordering::Release);
        Ok(Replay { end_lsn: replayed.end_lsn, old_segments: replayed.segments, rewritten })
    }

    fn apply_replayed(
        &self,
        committer: &mut Committer,
        rewritten: &mut Vec<Rewritten>,
        frame: &ReplayFrame<'_>,
    ) -> Result<()> {
        committer.next_seq = frame.first_seq;
        committer.stripes_version = u64::MAX;
        self.refresh_stripes(committer);
        self.apply(committer, frame.first_seq, frame.lsn, frame.payload, &mut |table, range| {
            table.change_view(|view| view.with_range_delete(range));
        })?;
        let last_seq = frame.first_seq + u64::from(frame.count) - 1;
        committer.next_seq = last_seq + 1;
        self.publish(committer, last_seq);
        if self.options.read_only {
            return Ok(());
        }
        // A log may hold more than fits the memory.
        for table in committer.full_tables(self.options.memtable_bytes()) {
            self.rewrite(committer, &table, rewritten)?;
        }
        Ok(())
    }

    /// Writes the memtable of a table to parts that no manifest lists yet, and empties it. Nobody reads meanwhile.
    fn rewrite(
        &self,
        committer: &mut Committer,
        table: &Arc<TableCore>,
        rewritten: &mut Vec<Rewritten>,
    ) -> Result<()> {
        self.seal(committer, table);
        let view = table.view();
        let Some(sealed) = view.sealed.last() else { return Ok(()) };
        let mut before = rewritten.iter().filter(|earlier| Arc::ptr_eq(&earlier.table, table));
        let is_bottom = view.runs.is_empty() && before.clone().next().is_none();
        let flushed_seq =
            before.next_back().map_or_else(|| self.flushed_seq(table), |earlier| earlier.last_seq);
        let written = self.write_sealed(table, sealed, is_bottom, flushed_seq)?;
        rewritten.push(Rewritten { table: Arc::clone(table), last_seq: sealed.last_seq, written });
        self.debt.sealed_bytes.fetch_sub(sealed.bytes, Ordering::AcqRel);
        table.change_view(|view| TableView {
            active: Arc::clone(&view.active),
            sealed: Vec::new(),
            runs: Arc::clone(&view.runs),
            range_deletes: Arc::clone(&view.range_deletes),
        });
        Ok(())
    }

    /// Writes what was replayed to runs and says so, and that the old segments are not needed, in one edit: a batch
    /// may be in several tables. Then begins a fresh segment, and removes the old ones.
    fn start_journal(&mut self, replayed: Replay) -> Result<()> {
        let Replay { end_lsn, old_segments, mut rewritten } = replayed;
        {
            let mut committer = self.commit.lock();
            for table in self.catalog().all() {
                self.rewrite(&mut committer, table, &mut rewritten)?;
            }
        }
        let next_seq = self.commit.lock().next_seq;
        let changes = rewritten.iter_mut().flat_map(|one| std::mem::take(&mut one.written.changes)).collect();
        let store_id = self.record_log_start(end_lsn, changes)?;
        for table in self.catalog().all() {
            let own = rewritten.iter().filter(|one| Arc::ptr_eq(&one.table, table));
            let parts = own.flat_map(|one| one.written.parts.iter().cloned()).collect();
            if let Some(state) = self.manifest.lock().state().tables.get(&table.id) {
                self.show(table, state, &Installed { parts, flushed: None });
            }
        }
        let numbers = Arc::clone(&self.numbers);
        let journal = Journal::start(
            &self.host,
            &self.dir,
            JournalStart { store_id, first_lsn: end_lsn, next_seq },
            JournalOptions {
                segment_bytes: self.options.segment_bytes,
                append_mode: self.options.append_mode,
                ..JournalOptions::default()
            },
            Arc::new(move || numbers.take()),
        )?;
        self.journal = Some(journal.syncer());
        self.commit.lock().journal = Some(journal);
        self.manifest.lock().append_in_snapshot(&[Change::LogOpen { open: true }])?;
        self.remove_segments(&old_segments);
        self.note_overdue();
        Ok(())
    }

    /// Says durably, with these changes, that nothing of the log before `lsn` is needed and that the log is closed.
    /// Returns the identity of the store.
    fn record_log_start(&self, lsn: Lsn, mut changes: Vec<Change>) -> Result<u128> {
        let mut manifest = self.manifest.lock();
        let next_number = self.numbers.peek() + crate::install::NUMBERS_RESERVED;
        changes.push(Change::Horizon { last_seq: self.published(), log_start_lsn: lsn, durable_lsn: lsn });
        changes.push(Change::ReserveNumbers { next_number });
        changes.push(Change::LogOpen { open: false });
        manifest.append(&changes)?;
        Ok(manifest.state().store_id)
    }

    fn remove_segments(&self, numbers: &[FileNumber]) {
        for &number in numbers {
            // One that stays behind is not needed, and removed at the next opening.
            let _ = self.host.files.remove(&self.path(&FileName::Log(number).to_string()));
        }
    }

    /// Ends the log in order. Where all of it is in runs, it goes.
    pub(crate) fn close_journal(&self) -> Result<()> {
        let Some(journal) = self.commit.lock().journal.take() else { return Ok(()) };
        let sync = journal.syncer();
        let end = journal.close()?;
        if self.log_is_in_runs() {
            self.record_log_start(end, Vec::new())?;
            let numbers: Vec<FileNumber> = sync.segments().iter().map(|segment| segment.number).collect();
            self.remove_segments(&numbers);
        }
        Ok(())
    }

    fn log_is_in_runs(&self) -> bool {
        let committer = self.commit.lock();
        let written = committer.active.iter().flatten().any(|active| active.first_lsn.is_some());
        !written && self.catalog().all().all(|table| table.view().sealed.is_empty())
    }
}

impl Committer {
    fn empty() -> Committer {
        Committer {
            journal: None,
            next_seq: 1,
            active: Vec::new(),
            stripes: Vec::new(),
            stripes_version: u64::MAX,
            active_bytes: 0,
        }
    }

    /// The tables to write out while replaying: those whose memtables have reached `bytes_max`, and all of them
    /// when together they take twice that.
    fn full_tables(&self, bytes_max: usize) -> Vec<Arc<TableCore>> {
        let active = || self.active.iter().flatten();
        let together: usize = active().map(|active| active.bytes).sum();
        let is_full =
            |active: &&Active| active.bytes >= bytes_max || (together >= 2 * bytes_max && active.bytes > 0);
        active().filter(is_full).map(|active| Arc::clone(&active.table)).collect()
    }
}

/// A log may only speak of tables that the manifest has known: of others, its end is lost.
fn check_tables(frame: &ReplayFrame<'_>, state: &State) -> Result<()> {
    for record in folddb_layout::frame::records(frame.payload) {
        let unknown = record.is_ok_and(|record| record.table.0 >= state.next_table_id);
        if unknown {
            let message = format!(
                "the log at LSN {} speaks of a table that the manifest never had: its end is lost",
                frame.lsn
            );
            return Err(Error::new(ErrorKind::Corruption, message));
        }
    }
    Ok(())
}

fn check_format(dir: &Path, options: &Options) -> Result<()> {
    let path = dir.join(FileName::Format.to_string());
    let file = options.host.files.open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            Error::new(ErrorKind::NoStore, format!("there is no FoldDB store at {}", dir.display()))
        }
        _ => Error::io("open", &path, error),
    })?;
    let failed = |error| Error::io("read", &path, error);
    let len = file.len_bytes().map_err(failed)?.min(FORMAT_FILE_BYTES_MAX as u64);
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(0, &mut bytes).map_err(failed)?;
    let version = Version::decode(&bytes).map_err(|cause| Error::corrupt(&path, 0, cause))?;
    if !version.is_readable() {
        let message = format!(
            "{} was written in format {}, which this version cannot read",
            dir.display(),
            version.major
        );
        return Err(Error::new(ErrorKind::NewerFormat, message));
    }
    Ok(())
}

fn lock(dir: &Path, options: &Options) -> Result<Box<dyn FileLock>> {
    let path = dir.join(FileName::Lock.to_string());
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    // A process that is being started holds a copy of every lock for a moment, until it has become another program.
    let mut locked = options.host.files.lock(&path, mode);
    for _ in 0..20 {
        if !locked.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        locked = options.host.files.lock(&path, mode);
    }
    locked.map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, format!("the store {} is open elsewhere", dir.display()))
        }
        _ => Error::io("lock", &path, error),
    })
}

/// Parts that the manifest does not list: of merges and flushes that a crash cut short.
fn leftovers(dir: &Path, options: &Options, state: &State) -> Result<Vec<PathBuf>> {
    let names = options.host.files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let listed: BTreeSet<FileNumber> = state.part_files().collect();
    let is_leftover = |name: &FileName| matches!(name, FileName::Part(number) if !listed.contains(number));
    let names = names.iter().filter_map(|name| FileName::parse(name));
    Ok(names.filter(is_leftover).map(|name| dir.join(name.to_string())).collect())
}

fn open_table(
    dir: &Path,
    options: &Options,
    id: TableId,
    state: &TableState,
    shared: &Arc<Shared>,
) -> Result<Arc<TableCore>> {
    let in_table = |error: Error| error.context(format!("table `{}`", state.name));
    let rules = TableRules::from_text(&state.rules_text).map_err(in_table)?;
    let rules = rules.bind(&options.custom).map_err(in_table)?;
    let mut files = PartFiles::new();
    for part in state.runs.iter().flat_map(|run| &run.parts) {
        let path: PathBuf = dir.join(FileName::Part(part.file).to_string());
        let opened =
            Part::open(&options.host.files, &path, part.file, &rules.order, shared).map_err(in_table)?;
        if opened.facts().file_bytes != part.file_bytes {
            let what = format!("it has {} bytes and not {}", opened.facts().file_bytes, part.file_bytes);
            return Err(Error::corrupt(&path, 0, what));
        }
        files.insert(part.file, PartFile::new(opened, part.file, path, Arc::clone(&options.host.files)));
    }
    let view = |active| TableView {
        active,
        sealed: Vec::new(),
        runs: Arc::new(runs_of(state, &files)),
        range_deletes: Arc::new(state.range_deletes.clone()),
    };
    Ok(Arc::new(TableCore::new(id, &state.name, rules, view)))
}
