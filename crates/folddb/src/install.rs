//! How a change becomes what everyone sees: one edit of the manifest, then the next picture of the table.
//!
//! New parts are synced and their names durable before the edit; files that the edit no longer lists are
//! unlinked after it is durable and nobody reads them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::{Change, PartState};
use folddb_manifest::{State, TableState};
use folddb_run::{Part, PartFacts};

use crate::catalog::TableCore;
use crate::engine::Engine;
use crate::view::{PartFile, Sealed, TableView, runs_of};

/// Numbers that an edit sets aside, so that none is used twice after a crash.
pub(crate) const NUMBERS_RESERVED: u64 = 1000;

/// What an edit changes about one table, beyond what its changes say.
#[derive(Default)]
pub(crate) struct Installed {
    /// Parts that the edit adds.
    pub(crate) parts: Vec<Arc<PartFile>>,
    /// A memtable that is in those parts now.
    pub(crate) flushed: Option<Sealed>,
}

impl Engine {
    /// Writes an edit about `table` and swaps its picture in.
    pub(crate) fn install(
        &self,
        table: &TableCore,
        mut changes: Vec<Change>,
        installed: Installed,
    ) -> Result<()> {
        let mut manifest = self.manifest.lock();
        // Where the edit surely did not take place, the parts are of no use and go.
        let discard = || installed.parts.iter().for_each(|part| part.retire());
        self.check_readable(table).inspect_err(|_| discard())?;
        changes.extend(self.numbers_change(manifest.state()));
        changes.extend(self.times_change(manifest.state()));
        manifest.append(&changes).inspect_err(|error| {
            if error.kind() == ErrorKind::NoSpace {
                discard();
            }
            self.note_write_failure(error);
        })?;
        let Some(state) = manifest.state().tables.get(&table.id) else {
            return Err(Error::invalid(format!("table `{}` is not in the manifest", table.name)));
        };
        self.show(table, state, &installed);
        Ok(())
    }

    /// The change that sets more numbers aside, where they run short.
    fn numbers_change(&self, state: &State) -> Option<Change> {
        let next = self.numbers.peek();
        let runs_short = state.next_number < next + NUMBERS_RESERVED / 2;
        runs_short.then_some(Change::ReserveNumbers { next_number: next + NUMBERS_RESERVED })
    }

    /// Sets more numbers aside, where they run short, for files that no edit lists yet.
    pub(crate) fn reserve_numbers(&self) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let Some(change) = self.numbers_change(manifest.state()) else { return Ok(()) };
        manifest.append(&[change]).inspect_err(|error| self.note_write_failure(error))
    }

    /// Swaps in the picture of a table that the manifest, durably, describes. The caller holds the manifest's lock, or
    /// is alone.
    pub(crate) fn show(&self, table: &TableCore, state: &TableState, installed: &Installed) {
        self.values.installs.fetch_add(1, Ordering::AcqRel);
        let mut files = table.part_files();
        files.extend(installed.parts.iter().map(|part| (part.number, Arc::clone(part))));
        let runs = Arc::new(runs_of(state, &files));
        let listed: HashSet<FileNumber> =
            state.runs.iter().flat_map(|run| &run.parts).map(|part| part.file).collect();
        for file in files.values().filter(|file| !listed.contains(&file.number)) {
            file.retire();
        }
        let known: HashSet<_> = state.range_deletes.iter().map(|range| range.seq).collect();
        let flushed_seq = state.flushed_seq;
        table.change_view(|view| {
            let is_flushed = |sealed: &Sealed| {
                installed
                    .flushed
                    .as_ref()
                    .is_some_and(|flushed| Arc::ptr_eq(&flushed.memtable, &sealed.memtable))
            };
            let ranges = view.range_deletes.iter();
            let ranges = ranges.filter(|range| range.seq > flushed_seq || known.contains(&range.seq));
            TableView {
                active: Arc::clone(&view.active),
                sealed: view.sealed.iter().filter(|sealed| !is_flushed(sealed)).cloned().collect(),
                runs,
                range_deletes: Arc::new(ranges.cloned().collect()),
            }
        });
    }

    /// A new part file to write: its number and path.
    pub(crate) fn new_part(&self) -> (FileNumber, PathBuf) {
        let number = self.numbers.take();
        (number, self.path(&FileName::Part(number).to_string()))
    }

    /// Opens a part that has just been written and synced, once its name is durable too.
    pub(crate) fn adopt_part(
        &self,
        table: &TableCore,
        number: FileNumber,
        path: PathBuf,
    ) -> Result<Arc<PartFile>> {
        self.sync_dir()?;
        let part = Part::open(&self.host.files, &path, number, &table.rules.order, &self.parts)?;
        part.warm();
        Ok(PartFile::new(part, number, path, Arc::clone(&self.host.files)))
    }

    pub(crate) fn sync_dir(&self) -> Result<()> {
        self.host.files.sync_dir(&self.dir).map_err(|error| Error::io("sync the directory", &self.dir, error))
    }

    /// Where replay must begin if `flushed` needs none: the first LSN of all memtables besides it.
    pub(crate) fn log_start_without(&self, flushed: Option<&Sealed>) -> Option<Lsn> {
        self.log_start_beside(flushed, None)
    }

    /// As [`Engine::log_start_without`], where this table's index has been saved, too.
    pub(crate) fn log_start_beside(
        &self,
        flushed: Option<&Sealed>,
        saved: Option<&Arc<TableCore>>,
    ) -> Option<Lsn> {
        let committer = self.commit.lock();
        let end = committer.journal.as_ref()?.end_lsn();
        let active = committer.active.iter().flatten().filter_map(|active| active.first_lsn);
        let mut first = active.min().unwrap_or(end);
        for table in self.catalog().all() {
            let view = table.view();
            let waiting = view.sealed.iter().filter(|sealed| {
                flushed.is_none_or(|flushed| !Arc::ptr_eq(&flushed.memtable, &sealed.memtable))
            });
            first = waiting.map(|sealed| sealed.first_lsn).min().unwrap_or(first).min(first);
            let saving = table.hashed.iter().filter(|_| saved.is_none_or(|saved| !Arc::ptr_eq(saved, table)));
            first = saving
                .map(|hashed| hashed.saving_from.load(Ordering::Acquire))
                .min()
                .unwrap_or(first)
                .min(first);
        }
        Some(first)
    }

    /// The change that says where the journal stands.
    pub(crate) fn horizon(&self, log_start_lsn: Lsn) -> Change {
        let durable_lsn = self.journal.as_ref().map_or(log_start_lsn, |journal| journal.durable_lsn());
        Change::Horizon {
            last_seq: self.published(),
            log_start_lsn,
            durable_lsn: durable_lsn.max(log_start_lsn),
        }
    }

    /// Removes segments of the log that end at or before `log_start_lsn`, which a durable edit has recorded, but for those that
    /// feeds hold.
    pub(crate) fn retire_segments(&self, log_start_lsn: Lsn) {
        let Some(journal) = &self.journal else { return };
        self.feeds.log_starts_at(log_start_lsn);
        for number in journal.retire_before(self.feeds.held_from(log_start_lsn)) {
            // A segment that stays behind is removed at the next opening.
            let _ = self.host.files.remove(&self.path(&FileName::Log(number).to_string()));
        }
    }
}

/// A part as the manifest lists it.
pub(crate) fn part_state(number: FileNumber, facts: &PartFacts) -> PartState {
    PartState {
        file: number,
        file_bytes: facts.file_bytes,
        records: facts.records,
        low: facts.low.clone(),
        high: facts.high.clone(),
        min_seq: facts.min_seq,
        max_seq: facts.max_seq,
        deletes: facts.deletes,
        live_bytes: facts.file_bytes,
        trimmed: false,
    }
}
