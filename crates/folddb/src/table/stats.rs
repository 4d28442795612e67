//! Figures of a table: its runs and their parts, its keys, its bytes.

use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Result};
use folddb_rules::codec::{Key, Value};

use crate::table::bytes::BytesTable;
use crate::table::typed::Table;
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::hash_index::Hashed;

/// Figures of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TableStats {
    /// Its name.
    pub name: String,
    /// Records in runs and memtables; a key may have several.
    pub records: u64,
    /// An estimate of its keys, from the sketches of its parts. For a hashed table that keeps
    /// versions: all versions.
    pub keys_estimate: u64,
    /// Bytes of its part files.
    pub disk_bytes: u64,
    /// Parts that were written before a rule about parts was altered, and not merged since: see
    /// [`BytesTable::alter`].
    pub outdated_parts: u64,
    /// Bytes of their files.
    pub outdated_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Its runs, newest first.
    pub runs: Vec<RunInfo>,
    /// Range deletes in force.
    pub range_deletes: usize,
    /// Memory of its index, in bytes, if it is hashed; none for a sorted table.
    pub index_bytes: Option<u64>,
    /// Records written to it since the store was opened, those of the log that was replayed then
    /// included.
    pub records_written: u64,
    /// Bytes of their keys and values; of separated ones, of the places of these.
    pub bytes_written: u64,
}

/// A run of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunInfo {
    /// Its number.
    pub id: RunId,
    /// Its tier.
    pub tier: u8,
    /// Its parts, in key order.
    pub parts: Vec<PartInfo>,
}

impl RunInfo {
    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Records in its files.
    pub fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.records).sum()
    }
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PartInfo {
    /// Its file.
    pub file: FileNumber,
    /// Bytes of the file.
    pub bytes: u64,
    /// Records in the file.
    pub records: u64,
    /// Deletes among them.
    pub deletes: u64,
    /// The first key that it shows.
    pub low: Vec<u8>,
    /// The last key in it.
    pub high: Vec<u8>,
    /// The oldest seq in it.
    pub min_seq: Seq,
    /// The newest seq in it.
    pub max_seq: Seq,
    /// True if a running merge has taken over the keys below `low`.
    pub trimmed: bool,
}

impl BytesTable {
    /// The figures of the table, with the shape of its runs.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`] if it was dropped.
    pub fn stats(&self) -> Result<TableStats> {
        let stats = table_stats(self.core());
        self.engine().check_readable(self.core())?;
        Ok(stats)
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// The figures of the table, with the shape of its runs.
    ///
    /// # Errors
    /// As [`BytesTable::stats`].
    pub fn stats(&self) -> Result<TableStats> {
        self.bytes.stats()
    }
}

pub(crate) fn table_stats(core: &Arc<TableCore>) -> TableStats {
    if let Some(hashed) = &core.hashed {
        return hashed_stats(core, hashed);
    }
    let view = core.view();
    let memtables = || std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
    let parts = || view.runs.iter().flat_map(|run| &run.parts).map(|part| part.file.part.facts());
    let files = view.runs.iter().flat_map(|run| &run.parts).map(|part| &part.file);
    let outdated: Vec<u64> =
        files.filter(|file| core.is_outdated(file.number)).map(|file| file.part.facts().file_bytes).collect();
    let in_memory: u64 = memtables().map(|memtable| memtable.records()).sum();
    let in_runs = folddb_layout::sketch::estimate_keys(parts().map(|facts| facts.sketch.as_slice()));
    let records = view.records();
    let keys_estimate = in_runs.max(if view.runs.is_empty() { in_memory } else { 0 });
    let run = |run: &folddb_engine::state::view::RunView| RunInfo {
        id: run.id,
        tier: run.tier,
        parts: run.parts.iter().map(part_info).collect(),
    };
    TableStats {
        name: core.name.clone(),
        records,
        keys_estimate: keys_estimate.min(records), // each key has one at least
        disk_bytes: parts().map(|facts| facts.file_bytes).sum(),
        outdated_parts: outdated.len() as u64,
        outdated_bytes: outdated.iter().sum(),
        memtable_bytes: memtables().map(|memtable| memtable.bytes() as u64).sum(),
        runs: view.runs.iter().map(run).collect(),
        range_deletes: view.range_deletes.len(),
        index_bytes: None,
        records_written: core.records_written.get(),
        bytes_written: core.bytes_written.get(),
    }
}

/// A hashed table has a record for each key, or for each version of it, and knows their number.
pub(crate) fn hashed_stats(core: &TableCore, hashed: &Hashed) -> TableStats {
    let keys = hashed.segments().values().map(|used| used.tally.records).sum();
    TableStats {
        name: core.name.clone(),
        records: keys,
        keys_estimate: keys,
        disk_bytes: hashed.file.lock().as_ref().map_or(0, |file| file.bytes()),
        outdated_parts: 0,
        outdated_bytes: 0,
        memtable_bytes: 0,
        runs: Vec::new(),
        range_deletes: 0,
        index_bytes: Some(hashed.index.facts().memory_bytes),
        records_written: core.records_written.get(),
        bytes_written: core.bytes_written.get(),
    }
}

pub(crate) fn part_info(part: &folddb_engine::state::view::PartView) -> PartInfo {
    let facts = part.file.part.facts();
    PartInfo {
        file: part.file.number,
        bytes: facts.file_bytes,
        records: facts.records,
        deletes: facts.deletes,
        low: part.low.clone(),
        high: part.high.clone(),
        min_seq: facts.min_seq.into(),
        max_seq: facts.max_seq.into(),
        trimmed: part.trimmed,
    }
}
