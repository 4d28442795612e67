//! A generation that is being made.

use crate::maintenance::progress::Counter;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_host::Files;
use folddb_layout::backup::ListedFile;
use folddb_layout::file_name::FileName;
use folddb_manifest::State;

use crate::maintenance::backup::capture::Capture;
use crate::maintenance::backup::report::{BackupOptions, FileTotals};
use folddb_engine::state::engine::Engine;

/// A generation that is being made.
pub(crate) struct Making<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) draft: &'a Path,
    pub(crate) options: &'a BackupOptions,
    pub(crate) capture: Capture,
    /// The previous generation, with its copies by name.
    pub(crate) before: Option<(PathBuf, HashMap<FileName, ListedFile>)>,
    pub(crate) list: Vec<ListedFile>,
    pub(crate) linked: FileTotals,
    pub(crate) reused: FileTotals,
    pub(crate) copied: FileTotals,
    pub(crate) log: FileTotals,
    /// What to copy of each segment.
    pub(crate) log_needed: Vec<Range<u64>>,
    pub(crate) counter: Counter<'a>,
}

impl<'a> Making<'a> {
    pub(crate) fn files(&self) -> &'a dyn Files {
        &*self.engine.host.files
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.counter.add(bytes);
    }

    /// How many bytes of the log are to be copied.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_needed.iter().map(|needed| needed.end - needed.start).sum()
    }

    /// What lives, with the log as it was copied.
    pub(crate) fn state_of_log(&self, state: &State) -> State {
        let end_lsn = self.capture.end_lsn.max(state.log_start_lsn);
        State {
            last_seq: self.capture.last_seq,
            durable_lsn: end_lsn,
            log_open: end_lsn > state.log_start_lsn,
            log_copied: Some(true),
            feeds: Arc::default(), // what they retain is not copied: their readers begin again
            ..state.clone()
        }
    }
}
