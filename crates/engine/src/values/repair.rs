//! Makes values durable at an opening that the log points to but does not guarantee.
//!
//! After a failed sync the page cache may show bytes that the disk does not have, and the next sync
//! does not report it. So each such value is rewritten *in place*, which makes its pages dirty
//! again, and then synced. Pointers, the slots of hashed tables and the batches that feeds still
//! have to give stay valid, and it takes no space. A crash in between leaves every sector old or
//! new, which are the same bytes.
//!
//! Called by `recovery`, frame by frame.

use std::collections::BTreeSet;
use std::path::Path;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Result};
use folddb_host::Files;
use folddb_journal::ReplayFrame;
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_manifest::State;

use crate::values::at_rest::ValuesAtRest;
use crate::values::hashed_record::is_long;
use crate::values::load::rope_of;

/// Adjacent values are written together, up to about this many bytes.
const RUN_BYTES: usize = 1 << 20;

/// The values that are rewritten in one opening.
pub struct ValueRepair<'a> {
    files: &'a dyn Files,
    dir: &'a Path,
    state: &'a State,
    run: Option<Run>,
    renewed: BTreeSet<FileName>,
}

/// Adjacent records in one file that are still to be written.
struct Run {
    file: FileName,
    offset: u64,
    bytes: Vec<u8>,
}

impl<'a> ValueRepair<'a> {
    /// The repair of the store in `dir`.
    pub fn new(files: &'a dyn Files, dir: &'a Path, state: &'a State) -> ValueRepair<'a> {
        ValueRepair { files, dir, state, run: None, renewed: BTreeSet::new() }
    }

    /// Writes what a frame points to. [`ValueRepair::finish`] makes it durable.
    ///
    /// # Errors
    /// Damage, a failed read or write.
    pub fn take(&mut self, values: &ValuesAtRest<'_>, batch: &ReplayFrame<'_>) -> Result<()> {
        for one in frame::records(batch.payload).flatten() {
            for pointer in rope_of(&one).iter().flat_map(|rope| rope.pointers()) {
                let segment = FileNumber(u64::from(pointer.place.segment));
                if self.state.relocated.contains_key(&segment) || is_long(pointer.len) {
                    continue; // relocated values are durable, and so are long ones before the log points to them
                }
                let record = values.record((one.table, one.key), &pointer)?;
                self.put(values.name_of(pointer.place), pointer.place.unit, record)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, file: FileName, unit: u32, record: Vec<u8>) -> Result<()> {
        let offset = if matches!(file, FileName::ValueFile(..)) { 0 } else { u64::from(unit) * VALUE_ALIGN };
        match &mut self.run {
            Some(run) if run.continues(&file, offset) => run.bytes.extend_from_slice(&record),
            _ => {
                self.write_run()?;
                self.run = Some(Run { file, offset, bytes: record });
            }
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let path = self.dir.join(run.file.to_string());
        let written = self.files.write_over(&path, run.offset, &run.bytes);
        written.map_err(|error| Error::io("write again", &path, error))?;
        self.renewed.insert(run.file);
        Ok(())
    }

    /// Waits until all of it is durable.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(mut self) -> Result<()> {
        self.write_run()?;
        for file in &self.renewed {
            let path = self.dir.join(file.to_string());
            self.files.sync_file(&path).map_err(|error| Error::io("sync", &path, error))?;
        }
        let directory_of = |file: &FileName| match file {
            FileName::ValueFile(directory, _) => Some(*directory),
            _ => None,
        };
        for directory in self.renewed.iter().filter_map(directory_of).collect::<BTreeSet<_>>() {
            let path = self.dir.join(FileName::ValueDirectory(directory).to_string());
            self.files.sync_dir(&path).map_err(|error| Error::io("sync the directory", &path, error))?;
        }
        Ok(())
    }
}

impl Run {
    fn continues(&self, file: &FileName, offset: u64) -> bool {
        let end = self.offset + self.bytes.len() as u64;
        *file == self.file && offset == end && self.bytes.len() < RUN_BYTES
    }
}
