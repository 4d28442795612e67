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

/// Which file has the values of each segment, as one edit made it. Segments that begin before the
/// next such edit are added to it.
#[derive(Default)]
pub struct SegmentMap {
    segments: RwLock<BTreeMap<u32, Arc<ListedFile>>>,
}

/// A file that holds values. When it is retired and no holder of a segment map with it is left, it
/// is removed.
pub(crate) struct ListedFile {
    pub(crate) number: FileNumber,
    path: PathBuf,
    files: Arc<dyn Files>,
    /// Its number in the cache, if it holds relocated values.
    pub(crate) cached_as: Option<u64>,
    pub(crate) is_directory: bool,
    retired: AtomicBool,
    /// For a swept directory: the units that later segment maps do not have, and the directory as
    /// these have it. So the later one lives at least as long as this one, and no file is removed
    /// while an older segment map needs it.
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

    /// Notes that it is to be removed with the last segment map that has it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Whether it is to be removed with the last segment map that has it.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// For a directory: notes that these units are to be removed with the last segment map that has
    /// it. `after` is the directory as later segment maps have it.
    pub(crate) fn sweep(&self, units: Vec<u32>, after: Arc<ListedFile>) {
        *self.swept.lock() = Some((units, after));
    }

    /// How many bytes are freed when it is dropped.
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
        // If a removal fails, the next opening, or the next sweep of the directory, removes the
        // file.
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
    /// A segment map with these segments.
    pub(crate) fn of(segments: BTreeMap<u32, Arc<ListedFile>>) -> SegmentMap {
        SegmentMap { segments: RwLock::new(segments) }
    }

    /// The segments that it has now, each with its file.
    pub(crate) fn segments(&self) -> BTreeMap<u32, Arc<ListedFile>> {
        self.segments.read().clone()
    }

    /// The file of a segment.
    pub(crate) fn listed(&self, segment: u32) -> Option<Arc<ListedFile>> {
        self.segments.read().get(&segment).cloned()
    }

    /// Adds segments that begin.
    pub(crate) fn join(&self, segments: impl Iterator<Item = (u32, Arc<ListedFile>)>) {
        self.segments.write().extend(segments);
    }

    /// A segment map with only these segments.
    pub fn only(&self, segments: &BTreeSet<u32>) -> SegmentMap {
        let all = self.segments.read();
        let listed = |number: &u32| Some((*number, Arc::clone(all.get(number)?)));
        SegmentMap { segments: RwLock::new(segments.iter().filter_map(listed).collect()) }
    }

    /// How many bytes are freed with this segment map, of files that are not in `seen`. Adds the
    /// files to `seen`.
    pub fn retired_bytes(&self, seen: &mut BTreeSet<FileNumber>) -> u64 {
        let segments = self.segments.read();
        segments.values().filter(|file| seen.insert(file.number)).map(|file| file.retired_bytes()).sum()
    }

    /// The number of its segment with these low bits, if there is one.
    pub fn number_of(&self, low: u32) -> Option<u32> {
        number_in(&self.segments.read(), low)
    }

    /// The number of the file of its segment with these low bits, if there is one.
    pub(crate) fn file_number_of(&self, low: u32) -> Option<FileNumber> {
        let segments = self.segments.read();
        Some(segments.get(&number_in(&segments, low)?)?.number)
    }
}

fn number_in(segments: &BTreeMap<u32, Arc<ListedFile>>, low: u32) -> Option<u32> {
    let last = *segments.last_key_value()?.0;
    (low..=last).step_by(1 << SEGMENT_BITS).find(|number| segments.contains_key(number))
}
