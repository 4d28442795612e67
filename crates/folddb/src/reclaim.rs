//! Giving back the space of dead values: segments that nothing points to go, while readers and writers go on.
//!
//! What is alive in a segment is what parts point to, once nothing else can: no batch under way has put a value into it, and
//! no memtable holds a pointer to one. So a segment waits until it is
//!
//! ```text
//!   sealed    nothing is added any more, said in the manifest
//!   fenced    every batch that put a value into it has it in a memtable; the log ended here then (see `values.rs`, `fence`)
//!   flushed   what the manifest says is needed of the log begins there or later: no memtable holds such a pointer, and no replay
//!             after a crash will meet one
//! ```
//!
//! From then on the parts that point to it only become fewer: merges write what their inputs hold, and those are listed until they
//! are done. One edit takes the segment from the list, a new roster begins without it (`value_files.rs`), and its file
//! goes with the last reader of an older one. A crash before the edit changes nothing, one after it leaves a file that the
//! next opening removes.
//!
//! Called by `upkeep`, with the flushes.

use std::collections::BTreeSet;

use folddb_base::{FileNumber, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_manifest::{Change, State};

use crate::engine::{Engine, Manifest};

impl Engine {
    /// Takes away the segments that nothing points to; says how many, if any. Cheap while nothing has changed.
    pub(crate) fn reclaim(&self) -> Result<Option<String>> {
        let installs = self.values.installs.load(Ordering::Acquire);
        if self.values.looked.swap(installs, Ordering::AcqRel) == installs || self.health.cause().is_some() {
            return Ok(None);
        }
        let mut manifest = self.manifest.lock(); // no part is installed meanwhile
        let dead = self.dead_segments(manifest.state());
        if dead.is_empty() {
            return Ok(None);
        }
        // An index leads nowhere as of now: a power cut must not bring back one that leads there.
        if let (true, Some(journal)) = (self.has_hashed(), &self.journal) {
            self.sync_to(journal.end_lsn())?;
        }
        let changes: Vec<Change> = dead.iter().map(|&segment| Change::RemoveValues { segment }).collect();
        self.check_open()?;
        manifest.append(&changes).inspect_err(|error| self.note_write_failure(error))?;
        self.note_listed_values(&manifest);
        self.begin_without(&manifest, &dead);
        drop(manifest);
        self.counters.value_segments_reclaimed.add(dead.len() as u64);
        Ok(Some(format!("gave back {} segments of dead values", dead.len())))
    }

    /// Segments that nothing points to, and nothing will.
    fn dead_segments(&self, state: &State) -> Vec<FileNumber> {
        let mut settled = self.values.settled.lock();
        self.values.fences.lock().retain(|&number, &mut fence| {
            let is_flushed = fence <= state.log_start_lsn;
            if is_flushed {
                settled.insert(number);
            }
            !is_flushed
        });
        let mut dead: BTreeSet<FileNumber> = settled.clone();
        drop(settled);
        if dead.is_empty() {
            return Vec::new();
        }
        for table in self.catalog().all() {
            for part in table.part_files().values() {
                for used in &part.part.facts().values {
                    dead.remove(&FileNumber(used.segment.into()));
                }
            }
        }
        self.spare_hashed(&mut dead);
        dead.into_iter().collect()
    }

    /// A roster begins without these. `_manifest` is held, so that whoever captures a state with it finds its files.
    fn begin_without(&self, _manifest: &Manifest, gone: &[FileNumber]) {
        self.values.files.retire(gone);
        for hashed in self.catalog().all().filter_map(|table| table.hashed.as_ref()) {
            gone.iter().for_each(|&number| hashed.forget_segment(number));
        }
        let mut settled = self.values.settled.lock();
        gone.iter().for_each(|number| {
            settled.remove(number);
        });
    }

    /// Bytes of the full segments that memory leads to, as of the last look: none of their dead values can go.
    pub(crate) fn pinned_value_bytes(&self) -> u64 {
        let pinned: Vec<FileNumber> = self.values.fences.lock().keys().copied().collect();
        if pinned.is_empty() {
            return 0;
        }
        let state = std::sync::Arc::clone(self.manifest.lock().state());
        pinned.iter().filter_map(|number| state.values.get(number)).flatten().sum()
    }
}
