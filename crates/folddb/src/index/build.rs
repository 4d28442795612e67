//! Adding and dropping indexes: an index is created with its table, or added to an existing one
//! during writes, and dropped.
//!
//! ```text
//!   add     one edit creates the table of the entries and says that it is being built; under the commit lock it becomes an
//!           index of its table: from here on batches add its entries
//!   build   slice by slice, in the order of the keys: the present terms of a slice of the table become entries, in batches
//!           of their own; now and then the log is synced, and an edit says through which key they are in
//!   built   an empty record takes a seq, and an edit records it: a reader at that seq or later finds all
//! ```
//!
//! A key that is too long for the entries ends the build, and the index is dropped: no later call
//! could finish it, and until then it would refuse queries and other keys of that length.
//!
//! Slices need no common snapshot: records written after a slice was read have their own entries. A
//! process that dies leaves the index unfinished; a later request continues from the last edit.
//! Queries are refused until it is built.
//!
//! In the manifest an index is a table named `TABLE/INDEX`, whose rules name its owner. Called by
//! `store`, `recovery`, `maintenance`.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Weak};

use folddb_base::{Error, ErrorKind, Op, Result, Seq as RawSeq};
use folddb_engine::background::merge;
use folddb_engine::background::state::Background;
use folddb_engine::edit::indexes;
use folddb_engine::edit::indexes::NewIndexes;
use folddb_engine::read::scan::{Rows, ScanPlan, Wanted};
use folddb_engine::read::terms::{Taken, take_terms};
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::{IndexCore, TableCore};
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::Held;
use folddb_engine::state::{clock, log_sync};
use folddb_engine::write::commit;
use folddb_engine::write::encoded_batch::Encoded;
use folddb_engine::write::index_entries::not_at_hand;
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::{Change, IndexBuild};
use folddb_rules::terms::{ENTRY_OVERHEAD_BYTES_MAX, put_entry};
use folddb_rules::{Extractor, IndexRule, TermRule, Terms};

/// Most rows, or bytes of entries, of a slice.
const SLICE_ROWS: usize = 2048;

const SLICE_BYTES: usize = 1 << 20;

/// After this many rows an edit records the progress. Few in builds for tests, whose tables are
/// small.
const REPORT_ROWS: u64 = if cfg!(debug_assertions) { 64 } else { 1 << 17 };

/// How many rows are examined for counter-examples to the law.
const SAMPLES: usize = 48;

/// The state of an index of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexInfo {
    /// Its name and how it takes its terms.
    pub rule: IndexRule,
    /// The table of its entries: its name in [`crate::Store::bytes_table`], `compact` and figures.
    pub table: String,
    /// Whether all existing records of the table are in it.
    pub is_built: bool,
    /// Readers at this seq or a later one find everything, once it is built.
    pub since: Seq,
    /// A function that is not available, without which its table cannot be written to.
    pub missing: Option<String>,
    /// Entries that queries have read since it was last cleaned, and how many of them were stale.
    pub entries_read: u64,
    /// See `entries_read`.
    pub stale: u64,
}

/// The progress of building an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexProgress {
    /// Keys of the table that this build has added.
    pub keys_done: u64,
    /// About how many keys there are.
    pub keys_total: u64,
    /// Entries written.
    pub entries: u64,
}

/// A callback that gets the progress, and may stop it.
pub(crate) type Report<'a> = &'a mut dyn FnMut(IndexProgress) -> ControlFlow<()>;

/// The states of a table's indexes.
pub(crate) fn infos(core: &TableCore) -> Vec<IndexInfo> {
    core.indexes().iter().map(|index| info(index)).collect()
}

fn info(index: &IndexCore) -> IndexInfo {
    let build = index.build.read();
    let unnamed = || IndexRule::new(&index.name, TermRule::Value);
    IndexInfo {
        rule: index.rule().cloned().unwrap_or_else(unnamed),
        table: index.table.name.clone(),
        is_built: build.building.is_none(),
        since: build.since.into(),
        missing: index.extractor.as_ref().err().cloned(),
        entries_read: index.read.load(Ordering::Relaxed),
        stale: index.stale.load(Ordering::Relaxed),
    }
}

const ADD_INDEX: &str = "name an existing one, or add it";

/// The table of this name, and its index.
pub(crate) fn index_of(core: &Arc<TableCore>, name: &str) -> Result<Arc<IndexCore>> {
    core.index(name).ok_or_else(|| {
        let names: Vec<String> = core.indexes().iter().map(|index| index.name.clone()).collect();
        let has =
            if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        Error::invalid(format!("table `{}` has no index `{name}`; {has}", core.name)).advise(ADD_INDEX)
    })
}

/// Adds an index to a table and builds it; if it exists and is unfinished, continues to build it.
pub(crate) fn add_index(
    background: &Background,
    table: &Arc<TableCore>,
    rule: &IndexRule,
    progress: Report<'_>,
) -> Result<()> {
    let engine = &background.engine;
    engine.check_not_read_only()?;
    table.rules.check_writable()?;
    let index = match table.index(&rule.name) {
        None => begin_index(engine, table, rule)?,
        Some(index) if index.rule() != Some(rule) => {
            let has = index.rule().map(IndexRule::to_string).unwrap_or_default();
            return Err(Error::invalid(format!(
                "table `{}` has an index `{has}`: drop that first",
                table.name
            )));
        }
        Some(index) => index,
    };
    build_index(background, table, &index, progress)
}

/// Creates an index, which is then to be built.
fn begin_index(engine: &Arc<Engine>, table: &Arc<TableCore>, rule: &IndexRule) -> Result<Arc<IndexCore>> {
    let samples = sample(engine, table)?;
    indexes::check_rule((&table.name, &table.rules, &samples), rule, &engine.options.custom)?;
    let mut manifest = engine.manifest.lock();
    table.check_alive()?;
    if table.index(&rule.name).is_some() {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("table `{}` has an index `{}` already", table.name, rule.name),
        ));
    }
    engine.health.check_writable(false)?;
    let build = IndexBuild { since: 0, building: Some(Vec::new()) };
    let first_id = manifest.state().next_table_id;
    let catalog = engine.catalog();
    let with = (&*catalog, &engine.options.custom);
    let new = NewIndexes::prepare(&table.name, std::slice::from_ref(rule), build, first_id, with)?;
    manifest.append(&new.changes).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    let made = new.link(engine, table).pop();
    made.ok_or_else(|| Error::invalid("an index was to be made"))
}

/// Some records of a table.
pub(crate) fn sample(engine: &Arc<Engine>, table: &Arc<TableCore>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let plan = ScanPlan { wanted: Wanted::Short, ..ScanPlan::everything(None) };
    let mut rows = Rows::start(engine, table, plan)?;
    let mut samples = Vec::new();
    while samples.len() < SAMPLES {
        match rows.next_row() {
            Ok(Some((key, value))) => samples.push((key.to_vec(), value.to_vec())),
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::FoldFailed => {}
            Err(error) => return Err(error),
        }
    }
    Ok(samples)
}

/// Removes an index of a table and its entries.
pub(crate) fn drop_index(background: &Background, core: &Arc<TableCore>, name: &str) -> Result<()> {
    let engine = &background.engine;
    engine.check_not_read_only()?;
    let mut manifest = engine.manifest.lock();
    core.check_alive()?;
    let index = index_of(core, name)?;
    engine.health.check_writable(true)?;
    let edit = [Change::DropTable { table: index.table.id }];
    manifest.append(&edit).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    {
        let mut committer = engine.commit.lock();
        let left = core.indexes().iter().filter(|other| !Arc::ptr_eq(other, &index)).cloned().collect();
        core.set_indexes(left);
        engine.index_epoch.fetch_add(1, Ordering::AcqRel);
        engine.retire_active(&mut committer, &index.table);
    }
    engine.change_catalog(|catalog| catalog.remove(&index.table));
    drop(manifest);
    merge::forget_table(background, &index.table);
    merge::note_overdue_of(background, &index.table);
    Ok(())
}

// ---- building -----------------------------------------------------------------------------------

/// The right to build an index, which one caller has at a time.
struct Claim(Weak<IndexCore>);

impl Claim {
    fn take(index: &Arc<IndexCore>) -> Result<Claim> {
        if index.is_in_work.swap(true, Ordering::AcqRel) {
            return Err(Error::invalid(format!("index `{}` is being built already", index.table.name)));
        }
        Ok(Claim(Arc::downgrade(index)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.upgrade().iter().for_each(|index| index.is_in_work.store(false, Ordering::Release));
    }
}

/// An index that is being built.
struct Building<'a> {
    engine: &'a Arc<Engine>,
    table: &'a Arc<TableCore>,
    index: &'a Arc<IndexCore>,
    extractor: &'a Extractor,
    /// The last key that was added, if any.
    through: Option<Vec<u8>>,
    progress: IndexProgress,
    batch: Encoded,
    terms: Terms,
    /// Whether a key was met that no index can hold.
    is_impossible: bool,
}

/// Adds the records of a table to an index, from its progress on. Does nothing if it is built.
/// Drops the index if the table has a key that no index can hold.
pub(crate) fn build_index(
    background: &Background,
    table: &Arc<TableCore>,
    index: &Arc<IndexCore>,
    progress: Report<'_>,
) -> Result<()> {
    let engine = &background.engine;
    let _claim = Claim::take(index)?;
    let Some(through) = index.build.read().building.clone() else { return Ok(()) };
    let extractor = index.extractor.as_ref().map_err(|why| not_at_hand(table, index, why))?;
    let keys_total = crate::table::stats::table_stats(table).keys_estimate;
    let mut building = Building {
        engine,
        table,
        index,
        extractor,
        through: Some(through).filter(|key| !key.is_empty()), // an empty key is added twice, which is harmless
        progress: IndexProgress { keys_done: 0, keys_total, entries: 0 },
        batch: Encoded::default(),
        terms: Terms::default(),
        is_impossible: false,
    };
    let mut reported_at = 0;
    loop {
        let sliced = building.slice();
        if building.is_impossible {
            drop_index(background, table, &index.name)?;
        }
        let is_done = sliced?;
        let IndexProgress { keys_done, .. } = building.progress;
        building.progress.keys_total = keys_total.max(keys_done);
        if is_done || keys_done - reported_at >= REPORT_ROWS {
            reported_at = keys_done;
            building.note_progress(is_done)?;
        }
        if progress(building.progress).is_break() || is_done {
            return Ok(());
        }
    }
}

/// Records the progress of an index in the manifest. Its entries so far are then durable.
fn note_build(engine: &Engine, index: &IndexCore, build: IndexBuild) -> Result<()> {
    log_sync::sync_log(engine)?;
    let mut manifest = engine.manifest.lock();
    index.table.check_alive()?;
    let mut edit = vec![Change::BuildIndex { table: index.table.id, build: build.clone() }];
    edit.extend(clock::times_change(engine, manifest.state())); // values that had expired by then are not in it, and must not reappear
    manifest.append(&edit).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    *index.build.write() = build;
    Ok(())
}

impl Building<'_> {
    /// Adds the next rows. True when there are no more.
    fn slice(&mut self) -> Result<bool> {
        let wanted = match (self.extractor.is_of_key(), self.extractor.is_of_head()) {
            (true, _) => Wanted::Nothing,
            (_, true) => Wanted::Head,
            _ => Wanted::Short,
        };
        let low = self.through.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let held = self.present();
        let plan = ScanPlan { low, wanted, ..ScanPlan::everything(Some(held.at)) };
        let mut rows = Rows::start(self.engine, self.table, plan)?;
        self.batch.clear();
        let mut taken = 0;
        let is_done = loop {
            if taken >= SLICE_ROWS || self.batch.len_bytes() >= SLICE_BYTES {
                break false;
            }
            match rows.next_row() {
                Ok(None) => break true,
                Ok(Some(_)) => self.row(&mut rows)?,
                // Its operands may fold once it is set again, or with another version of the fold.
                Err(error) if error.kind() == ErrorKind::FoldFailed => self.operands(&rows)?,
                Err(error) => return Err(error),
            }
            taken += 1;
            self.through = Some(rows.key().to_vec());
        };
        drop(rows);
        self.progress.keys_done += taken as u64;
        self.progress.entries += u64::from(self.batch.count);
        commit::commit(self.engine, &mut self.batch, folddb_engine::options::Durability::Process)?;
        Ok(is_done)
    }

    /// The present, at a time that the next edit makes durable.
    fn present(&self) -> Held {
        clock::hold_present(self.engine, self.table, &self.engine.commit.lock())
    }

    fn row(&mut self, rows: &mut Rows) -> Result<()> {
        let head = rows.take_head();
        self.terms.clear();
        let (key, value) = rows.row();
        let taken = head.as_ref().map_or(Taken::Value(value), |head| Taken::Head(&head.bytes));
        take_terms(self.extractor, self.table, key, taken, &mut self.terms);
        self.put(rows.key())
    }

    /// Adds the terms of all operands of a key whose fold fails.
    fn operands(&mut self, rows: &Rows) -> Result<()> {
        let key = rows.key().to_vec();
        for operand in rows.loaded_operands()? {
            self.terms.clear();
            let values = match operand
                .op()
                .map_err(|cause| folddb_engine::read::get::damaged_record(self.table, cause))?
            {
                Op::Set(value) | Op::Insert(value) | Op::Fold(value) => [Some(value), None],
                Op::InsertFold { absent, present } => [Some(absent), Some(present)],
                _ => [None, None],
            };
            for value in values.into_iter().flatten() {
                take_terms(self.extractor, self.table, &key, Taken::Value(value), &mut self.terms);
            }
            self.put(&key)?;
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8]) -> Result<()> {
        let most = folddb_base::limits::KEY_BYTES_MAX - ENTRY_OVERHEAD_BYTES_MAX;
        if key.len() > most {
            let len = key.len();
            let name = &self.table.name;
            self.is_impossible = true;
            return Err(Error::invalid(format!(
                "table `{name}` has a key of {len} bytes, which is too long for an index: at most {most}; \
                 the index is not added"
            ))
            .advise("delete that key, or keep such keys in a table without indexes"));
        }
        let mut entry = Vec::new();
        for term in self.terms.iter() {
            entry.clear();
            put_entry(&mut entry, term, key);
            self.batch.push_entry(&self.index.table, &entry);
        }
        Ok(())
    }

    /// Reports the progress.
    fn note_progress(&mut self, is_done: bool) -> Result<()> {
        let build = match is_done {
            true => IndexBuild { since: self.end()?, building: None },
            false => IndexBuild { since: 0, building: Some(self.through.clone().unwrap_or_default()) },
        };
        note_build(self.engine, self.index, build)
    }

    /// The seq from which on readers find everything: the end of the build takes one for this.
    /// Without it, if all records had expired and so no entry was written, an earlier snapshot, for
    /// which they are alive, would have the same seq as this moment.
    fn end(&mut self) -> Result<RawSeq> {
        drop(self.present()); // this notes the time
        self.batch.clear();
        self.batch.push_no_entry(&self.index.table);
        commit::commit(self.engine, &mut self.batch, folddb_engine::options::Durability::Process)
    }
}
