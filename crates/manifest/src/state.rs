//! The state of a store as the manifest has it, and how changes apply to it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::{FileNumber, Lsn, Seq, TableId};
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::{Change, IndexState};

use crate::feeds::{ArchivedLog, Feeds};
use crate::table::TableState;
use crate::tables::Tables;
use crate::times::Times;

/// The state of a store: its tables, its files, and what else the manifest has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The identity of the store.
    pub store_id: u128,
    /// The next file number: neither it nor a higher one has been used.
    pub next_number: u64,
    /// The newest seq that is known to have been written.
    pub last_seq: Seq,
    /// Replay begins here.
    pub log_start_lsn: Lsn,
    /// Everything in the log before this is known to be durable.
    pub durable_lsn: Lsn,
    /// True from the first segment of an opening until a clean close: then some segment must have
    /// the LSN at which replay begins.
    pub log_open: bool,
    /// Whether the log is a copy up to `durable_lsn`, in a backup or restored from one; none if an
    /// older version wrote this, which did not say it.
    pub log_copied: Option<bool>,
    /// The number of the next table.
    pub next_table_id: u32,
    /// The tables.
    pub tables: Tables,
    /// The segments of the value log, by number; for sealed ones, the number of valid bytes.
    pub values: BTreeMap<FileNumber, Option<u64>>,
    /// The segments that are directories, in which each record is a file; for sealed ones, the
    /// number of files.
    pub directories: BTreeMap<FileNumber, Option<u64>>,
    /// Features of the format that a reader of the store must know, as bits.
    pub features: u64,
    /// Segments with relocated values: each with the file that has these now.
    pub relocated: BTreeMap<FileNumber, FileNumber>,
    /// The files of relocated values, each with its length. Each has values of at least one live
    /// segment.
    pub relocated_files: BTreeMap<FileNumber, u64>,
    /// When records were written; see [`Times`].
    pub times: Arc<Times>,
    /// Change feeds, and what is kept for them.
    pub feeds: Arc<Feeds>,
}

impl State {
    /// Applies a change.
    ///
    /// # Errors
    /// The change does not fit the state: `Bounds` if it names what does not exist, `Order` if it
    /// adds what exists or lowers numbers. Then the state is unchanged.
    pub fn apply(&mut self, change: &Change) -> Result<(), Malformed> {
        match change {
            Change::SetStore { store_id, next_table_id } => self.set_store(*store_id, *next_table_id)?,
            Change::ReserveNumbers { next_number } => self.set_numbers(*next_number),
            Change::Horizon { last_seq, log_start_lsn, durable_lsn } => {
                self.last_seq = self.last_seq.max(*last_seq);
                self.log_start_lsn = self.log_start_lsn.max(*log_start_lsn);
                self.durable_lsn = self.durable_lsn.max(*durable_lsn);
            }
            Change::CreateTable { table, name, rules_text } => self.create_table(*table, name, rules_text)?,
            Change::AlterTable { table, rules_text, outdated_before, kept_since } => {
                self.table_mut(*table)?.alter(rules_text, *outdated_before, *kept_since)?;
                self.reserve(outdated_before.0.saturating_add(1));
            }
            Change::DropTable { table } => {
                self.tables.remove(table).ok_or(Malformed::Bounds)?;
            }
            Change::AddPart { table, run, tier, age, part } => {
                self.table_mut(*table)?.add_part(*run, *tier, *age, part)?;
                self.reserve(part.file.0.max(run.0).saturating_add(1));
            }
            Change::Flushed { table, seq } => self.table_mut(*table)?.flushed(*seq)?,
            Change::RemovePart { table, run, file } => self.table_mut(*table)?.remove_part(*run, *file)?,
            Change::TrimPart { table, run, file, low } => {
                let part = self.table_mut(*table)?.part_mut(*run, *file)?;
                (part.low, part.trimmed) = (low.clone(), true);
            }
            Change::MoveRun { table, run, tier, age } => {
                self.table_mut(*table)?.move_run(*run, *tier, *age)?
            }
            Change::AddRangeDelete { table, from, to, seq } => {
                self.table_mut(*table)?.add_range_delete(from, to, *seq)?;
            }
            Change::RetireRangeDelete { table, seq } => self.table_mut(*table)?.retire_range_delete(*seq)?,
            Change::LogOpen { open } => self.log_open = *open,
            Change::LogCopied { copied } => self.log_copied = Some(*copied),
            Change::AddValues { segment } => self.add_values(*segment)?,
            Change::AddDirectory { segment } => {
                self.add_values(*segment)?;
                self.directories.insert(*segment, None);
            }
            Change::SealValues { segment, end } => self.seal_values(*segment, *end)?,
            Change::SealDirectory { segment, bytes, value_files } => {
                self.seal_directory(*segment, *bytes, *value_files)?;
            }
            Change::RemoveValues { segment } => self.remove_values(*segment)?,
            Change::MoveValues { file, file_bytes, segments } => {
                self.move_values(*file, *file_bytes, segments)?;
            }
            Change::Require { features } => self.features |= features,
            Change::SaveIndex { table, index } => self.save_index(*table, index)?,
            Change::SaveChanges { table, changes } => self.save_changes(*table, changes)?,
            Change::BuildIndex { table, build } => self.table_mut(*table)?.build = build.clone(),
            Change::Times { entries } => {
                let times = Arc::make_mut(&mut self.times);
                entries.iter().for_each(|&(seq, ms)| times.push(seq, ms));
            }
            Change::SetFeed { feed } => self.feeds_mut().set(feed),
            Change::DropFeed { name } => self.feeds_mut().remove(name)?,
            Change::ArchiveLog { file, first_lsn, next_lsn } => {
                let archived = ArchivedLog { file: *file, first_lsn: *first_lsn, next_lsn: *next_lsn };
                self.feeds_mut().keep(archived)?;
                self.reserve(file.0.saturating_add(1));
            }
            Change::NoteTable { note } => self.feeds_mut().note(note)?,
        }
        Ok(())
    }

    /// The changes that make this state from [`State::default`].
    pub fn snapshot(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.features != 0 {
            changes.push(Change::Require { features: self.features });
        }
        for table in self.tables.values() {
            table.put_snapshot(&mut changes);
        }
        for (&segment, end) in &self.values {
            match self.directories.get(&segment) {
                None => {
                    changes.push(Change::AddValues { segment });
                    changes.extend(end.map(|end| Change::SealValues { segment, end }));
                }
                Some(value_files) => {
                    changes.push(Change::AddDirectory { segment });
                    let sealed = end.zip(*value_files);
                    changes.extend(sealed.map(|(bytes, value_files)| Change::SealDirectory {
                        segment,
                        bytes,
                        value_files,
                    }));
                }
            }
        }
        for (&file, &file_bytes) in &self.relocated_files {
            let segments: Vec<FileNumber> = self.moved_in(file).collect();
            changes.extend(segments.iter().map(|&segment| Change::AddValues { segment }));
            changes.push(Change::MoveValues { file, file_bytes, segments });
        }
        if !self.times.entries().is_empty() {
            changes.push(Change::Times { entries: self.times.entries().to_vec() });
        }
        self.feeds.put_snapshot(&mut changes);
        changes.push(Change::Horizon {
            last_seq: self.last_seq,
            log_start_lsn: self.log_start_lsn,
            durable_lsn: self.durable_lsn,
        });
        changes.push(Change::ReserveNumbers { next_number: self.next_number });
        changes.push(Change::LogOpen { open: self.log_open });
        changes.extend(self.log_copied.map(|copied| Change::LogCopied { copied }));
        // This comes last: a table cannot be created with a number below that of the next table.
        changes.push(Change::SetStore { store_id: self.store_id, next_table_id: self.next_table_id });
        changes
    }

    /// The table of this name.
    pub fn table_by_name(&self, name: &str) -> Option<&TableState> {
        self.tables.by_name(name)
    }

    /// The files of all live parts.
    pub fn part_files(&self) -> impl Iterator<Item = FileNumber> + '_ {
        let runs = self.tables.values().flat_map(|table| &table.runs);
        runs.flat_map(|run| &run.parts).map(|part| part.file)
    }

    /// The files of all live checkpoints of indexes, and of the changes after them.
    pub fn index_files(&self) -> impl Iterator<Item = FileNumber> + '_ {
        self.tables.values().flat_map(TableState::saved_index).map(|saved| saved.file)
    }

    /// The name of a value segment that is in its own file, or is a directory.
    pub fn values_name(&self, segment: FileNumber) -> FileName {
        if self.is_directory(segment) { FileName::ValueDirectory(segment) } else { FileName::Values(segment) }
    }

    /// Whether this value segment is a directory.
    pub fn is_directory(&self, segment: FileNumber) -> bool {
        self.directories.contains_key(&segment)
    }

    /// Whether this value segment is live, whether or not its values were relocated.
    pub fn has_values(&self, segment: FileNumber) -> bool {
        self.values.contains_key(&segment) || self.relocated.contains_key(&segment)
    }

    /// The live segments with values in this file of relocated values, ascending.
    pub fn moved_in(&self, file: FileNumber) -> impl Iterator<Item = FileNumber> + '_ {
        self.relocated.iter().filter(move |&(_, &lies_in)| lies_in == file).map(|(&segment, _)| segment)
    }

    fn add_values(&mut self, segment: FileNumber) -> Result<(), Malformed> {
        if self.has_values(segment) || self.relocated_files.contains_key(&segment) {
            return Err(Malformed::Order);
        }
        self.values.insert(segment, None);
        self.reserve(segment.0.saturating_add(1));
        Ok(())
    }

    fn seal_values(&mut self, segment: FileNumber, end: u64) -> Result<(), Malformed> {
        let own = self.values.get_mut(&segment).filter(|_| !self.directories.contains_key(&segment));
        *own.ok_or(Malformed::Bounds)? = Some(end);
        Ok(())
    }

    fn seal_directory(&mut self, segment: FileNumber, bytes: u64, files: u64) -> Result<(), Malformed> {
        *self.directories.get_mut(&segment).ok_or(Malformed::Bounds)? = Some(files);
        self.values.insert(segment, Some(bytes));
        Ok(())
    }

    fn remove_values(&mut self, segment: FileNumber) -> Result<(), Malformed> {
        self.directories.remove(&segment);
        if self.values.remove(&segment).is_none() {
            self.relocated.remove(&segment).ok_or(Malformed::Bounds)?;
            self.drop_empty_files();
        }
        Ok(())
    }

    fn save_index(&mut self, table: TableId, index: &IndexState) -> Result<(), Malformed> {
        let table = self.table_mut(table)?;
        (table.index, table.changes) = (Some(index.clone()), None);
        self.reserve(index.file.0.saturating_add(1));
        Ok(())
    }

    fn save_changes(&mut self, table: TableId, changes: &IndexState) -> Result<(), Malformed> {
        let table = self.table_mut(table)?;
        if table.index.is_none() {
            return Err(Malformed::Order);
        }
        table.changes = Some(changes.clone());
        self.reserve(changes.file.0.saturating_add(1));
        Ok(())
    }

    fn move_values(
        &mut self,
        file: FileNumber,
        file_bytes: u64,
        segments: &[FileNumber],
    ) -> Result<(), Malformed> {
        let rises = segments.windows(2).all(|pair| pair[0] < pair[1]);
        if !rises || self.relocated_files.contains_key(&file) || self.has_values(file) {
            return Err(Malformed::Order);
        }
        let moves = |segment: FileNumber| self.has_values(segment) && !self.is_directory(segment);
        if segments.is_empty() || !segments.iter().all(|&segment| moves(segment)) {
            return Err(Malformed::Bounds);
        }
        for segment in segments {
            self.values.remove(segment);
            self.relocated.insert(*segment, file);
        }
        self.relocated_files.insert(file, file_bytes);
        self.drop_empty_files();
        self.reserve(file.0.saturating_add(1));
        Ok(())
    }

    /// Forgets files of relocated values that no longer have a live segment.
    fn drop_empty_files(&mut self) {
        let used: BTreeSet<FileNumber> = self.relocated.values().copied().collect();
        self.relocated_files.retain(|file, _| used.contains(file));
    }

    fn set_store(&mut self, store_id: u128, next_table_id: u32) -> Result<(), Malformed> {
        if self.store_id != 0 && self.store_id != store_id || next_table_id < self.next_table_id {
            return Err(Malformed::Order);
        }
        self.store_id = store_id;
        self.next_table_id = next_table_id;
        Ok(())
    }

    fn reserve(&mut self, next_number: u64) {
        self.next_number = self.next_number.max(next_number);
    }

    /// Sets the next file number. A lower one returns reserved numbers that were not used, but
    /// never the number of a live file.
    fn set_numbers(&mut self, next_number: u64) {
        self.next_number = match next_number < self.next_number {
            true => next_number.max(self.largest_listed().map_or(0, |largest| largest.saturating_add(1))),
            false => next_number,
        };
    }

    /// The largest number of a live file or run.
    fn largest_listed(&self) -> Option<u64> {
        let runs = self.tables.values().flat_map(|table| &table.runs).map(|run| run.id.0);
        let files = self.part_files().chain(self.index_files()).chain(self.values.keys().copied());
        let files = files.chain(self.relocated.keys().copied()).chain(self.relocated_files.keys().copied());
        let outdated = self.tables.values().map(|table| table.outdated_before);
        let files = files.chain(outdated.filter(|before| *before > FileNumber(0)));
        let files = files.chain(self.feeds.archived().iter().map(|kept| kept.file));
        runs.chain(files.map(|file| file.0)).max()
    }

    fn create_table(&mut self, table: TableId, name: &str, rules_text: &str) -> Result<(), Malformed> {
        if table.0 < self.next_table_id || self.table_by_name(name).is_some() {
            return Err(Malformed::Order);
        }
        self.next_table_id = table.0.checked_add(1).ok_or(Malformed::Bounds)?;
        self.tables.insert(TableState::new(table, name, rules_text));
        Ok(())
    }

    fn feeds_mut(&mut self) -> &mut Feeds {
        Arc::make_mut(&mut self.feeds)
    }

    fn table_mut(&mut self, table: TableId) -> Result<&mut TableState, Malformed> {
        self.tables.get_mut(&table).ok_or(Malformed::Bounds)
    }
}

#[cfg(test)]
#[path = "state/tests.rs"]
pub(crate) mod tests;
