//! In which file the values of each segment are, and when a file may be removed: see
//! `value_files.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::FileNumber;
use folddb_host::Files;
use folddb_host::sync::atomic::{AtomicBool, Ordering};
use folddb_host::sync::{Mutex, RwLock};
use folddb_layout::file_name::{FileName, value_file_name};
use folddb_layout::hash_checkpoint::SEGMENT_BITS;

use crate::directories::{remove_directory, value_files_in};

/// Which file has the values of each segment, as of one edit that changed this. Segments that begin
/// before the next such edit join it.
#[derive(Default)]
pub struct SegmentMap {
    segments: RwLock<BTreeMap<u32, Arc<ListedFile>>>,
}

/// A file that holds values. It is removed when it is retired and no segment map that has it is
/// held any more.
pub(crate) struct ListedFile {
    pub(crate) number: FileNumber,
    path: PathBuf,
    files: Arc<dyn Files>,
    /// If it holds relocated values: its number in the cache.
    pub(crate) cached_as: Option<u64>,
    pub(crate) is_directory: bool,
    retired: AtomicBool,
    /// For a swept directory: the units that later segment maps do not have, and the directory as
    /// they see it, which therefore lives as long as this one. What is dead for both is removed
    /// with the older one.
    swept: Mutex<Option<(Vec<u32>, Arc<ListedFile>)>>,
}

impl ListedFile {
    /// The file of this name in the store in `dir`.
    pub(crate) fn new(
        files: &Arc<dyn Files>,
        dir: &Path,
        name: FileName,
        number: FileNumber,
        cached_as: Option<u64>,
    ) -> Arc<ListedFile> {
        Arc::new(ListedFile {
            number,
            path: dir.join(name.to_string()),
            files: Arc::clone(files),
            cached_as,
            is_directory: matches!(name, FileName::ValueDirectory(_)),
            retired: AtomicBool::new(false),
            swept: Mutex::default(),
        })
    }

    /// It is removed with the last segment map that has it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Whether it goes then.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// For a directory: these units are then removed, and `after` is the directory as later segment
    /// maps have it.
    pub(crate) fn sweep(&self, units: Vec<u32>, after: Arc<ListedFile>) {
        *self.swept.lock() = Some((units, after));
    }

    /// Bytes that are removed with it.
    fn retired_bytes(&self) -> u64 {
        let len = |path: &Path| self.files.len_bytes(path).unwrap_or(0);
        let value_files =
            |units: &[u32]| units.iter().map(|&unit| len(&self.path.join(value_file_name(unit)))).sum();
        match (self.is_retired(), self.is_directory) {
            (true, true) => value_files(&self.dir_units()),
            (true, false) => len(&self.path),
            (false, _) => self.swept.lock().as_ref().map_or(0, |(units, _)| value_files(units)),
        }
    }

    /// The value files of a directory.
    fn dir_units(&self) -> Vec<u32> {
        let dir = self.path.parent().unwrap_or(&self.path);
        value_files_in(&*self.files, dir, self.number).unwrap_or_default()
    }
}

impl Drop for ListedFile {
    fn drop(&mut self) {
        // What stays behind is a leftover that the next opening, or the next sweep of a directory,
        // removes.
        match (self.is_retired(), self.is_directory) {
            (true, true) => remove_directory(&*self.files, &self.path),
            (true, false) => drop(self.files.remove(&self.path)),
            (false, _) => {
                let dead = self.swept.lock().take();
                for name in dead.iter().flat_map(|(units, _)| units).map(|&unit| value_file_name(unit)) {
                    let _ = self.files.remove(&self.path.join(name));
                }
            }
        }
    }
}

impl SegmentMap {
    /// One that has these.
    pub(crate) fn of(segments: BTreeMap<u32, Arc<ListedFile>>) -> SegmentMap {
        SegmentMap { segments: RwLock::new(segments) }
    }

    /// What it has now.
    pub(crate) fn segments(&self) -> BTreeMap<u32, Arc<ListedFile>> {
        self.segments.read().clone()
    }

    /// The file of a segment.
    pub(crate) fn listed(&self, segment: u32) -> Option<Arc<ListedFile>> {
        self.segments.read().get(&segment).cloned()
    }

    /// These segments begin.
    pub(crate) fn join(&self, segments: impl Iterator<Item = (u32, Arc<ListedFile>)>) {
        self.segments.write().extend(segments);
    }

    /// The files of these segments alone.
    pub fn only(&self, segments: &BTreeSet<u32>) -> SegmentMap {
        let all = self.segments.read();
        let listed = |number: &u32| Some((*number, Arc::clone(all.get(number)?)));
        SegmentMap { segments: RwLock::new(segments.iter().filter_map(listed).collect()) }
    }

    /// Bytes that later segment maps do not have, of files that are not among `seen` yet.
    pub fn retired_bytes(&self, seen: &mut BTreeSet<FileNumber>) -> u64 {
        let segments = self.segments.read();
        segments.values().filter(|file| seen.insert(file.number)).map(|file| file.retired_bytes()).sum()
    }

    /// The number of the segment with these low bits, if it has one.
    pub fn number_of(&self, low: u32) -> Option<u32> {
        let segments = self.segments.read();
        let last = *segments.last_key_value()?.0;
        (low..=last).step_by(1 << SEGMENT_BITS).find(|number| segments.contains_key(number))
    }
}
