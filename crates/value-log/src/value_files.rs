//! The files of the value log as readers use them, and when a file may be removed.
//!
//! A *segment map* says in which file the values of each segment are, from one edit that changed
//! this to the next. Its holder finds every value to which the views of that time lead: a file is
//! removed only when the manifest, durably, no longer lists it, and nobody holds a segment map that
//! has it.
//!
//! ```text
//!   round r       segment map r: 12 31 44, each in a file of its own, and 57 as soon as it begins
//!   a get         notes r, searches; finds a pointer, and takes the present segment map; when that is not r, searches again
//!   a scan        the same, before its first row, and holds the segment map to its end
//!   round r+1     segment map r+1: 44 57, and 12 and 31 in file 60, which holds what was alive of them
//! ```
//!
//! So a search that finds no pointer loads only one number more. No reader searches file 60 for a
//! value that was left out of it: a reader with a view from before round r+1 has an older segment
//! map, too, with all files of that time.
//!
//! `SegmentMap` is in `segment_map.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{FileNumber, Result, error};
use folddb_host::Files;
use folddb_host::sync::Mutex;
use folddb_host::sync::RwLock;
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_layout::file_name::FileName;

use crate::relocated::RelocatedFile;
use crate::segment::values_path;
use crate::segment_map::{ListedFile, SegmentMap};
use crate::value_file::{MapPages, ValueDirectory, ValueFile};

/// The files of an open store.
pub struct ValueFiles {
    dir: PathBuf,
    files: Arc<dyn Files>,
    /// The cache for pages of maps.
    cache: Arc<dyn MapPages>,
    present: RwLock<Arc<SegmentMap>>,
    /// How many times a segment map has replaced another.
    rounds: AtomicU64,
    /// The files that are open for reading, by number.
    open: RwLock<BTreeMap<FileNumber, Arc<ValueFile>>>,
    open_max: usize,
    /// Whether reads bypass the page cache.
    is_direct: bool,
}

impl ValueFiles {
    /// The files of the store in `dir`: `listed` are the names of its segments, `moved` its files
    /// of relocated values, each with the segments in it.
    pub fn new(
        dir: &Path,
        files: Arc<dyn Files>,
        cache: Arc<dyn MapPages>,
        listed: impl Iterator<Item = FileName>,
        moved: impl Iterator<Item = (FileNumber, Vec<FileNumber>)>,
        (open_max, is_direct): (usize, bool),
    ) -> ValueFiles {
        let made = ValueFiles {
            dir: dir.to_owned(),
            files,
            cache,
            present: RwLock::default(),
            rounds: AtomicU64::new(0),
            open: RwLock::default(),
            open_max,
            is_direct,
        };
        listed.for_each(|name| made.join(name));
        for (file, segments) in moved {
            let listed = made.listed_relocated(file);
            let in_it = segments.iter().map(|segment| (segment.0 as u32, Arc::clone(&listed)));
            made.present.read().join(in_it);
        }
        made
    }

    fn listed(&self, name: FileName, number: FileNumber, cached_as: Option<u64>) -> Arc<ListedFile> {
        ListedFile::new(&self.files, &self.dir, name, number, cached_as)
    }

    fn listed_relocated(&self, file: FileNumber) -> Arc<ListedFile> {
        self.listed(FileName::Relocated(file), file, Some(self.cache.number_file()))
    }

    /// Adds a segment that begins to the present segment map. Call it before anything points to the
    /// segment.
    pub fn join(&self, name: FileName) {
        if let Some(number) = name.number() {
            let file = self.listed(name, number, None);
            self.present.read().join(std::iter::once((number.0 as u32, file)));
        }
    }

    /// Nothing leads to these value files any more: begins a segment map without them. They are
    /// removed with the last segment map that has them.
    pub fn swept(&self, dead: Vec<(FileNumber, Vec<u32>)>) {
        let dead = Mutex::new(dead);
        self.begin_round(&|segments| {
            for (number, units) in dead.lock().drain(..) {
                if let Some(present) = segments.get_mut(&(number.0 as u32)) {
                    let after = self.listed(FileName::ValueDirectory(number), number, None);
                    let before = std::mem::replace(present, Arc::clone(&after));
                    before.sweep(units, after);
                }
            }
            Vec::new()
        });
    }

    /// The number of the present segment map. Note it before a search, to follow the pointers that
    /// it finds.
    #[inline]
    pub fn round(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }

    /// The segment map for a search that began in this round. None if another has replaced it: then
    /// the search must be repeated.
    pub fn segment_map_of(&self, round: u64) -> Option<Arc<SegmentMap>> {
        let present = self.present.read();
        (self.round() == round).then(|| Arc::clone(&present))
    }

    /// The present segment map, for callers that hold the lock of the manifest, or if there are no
    /// other threads.
    pub fn present(&self) -> Arc<SegmentMap> {
        Arc::clone(&self.present.read())
    }

    /// The manifest, durably, no longer lists these segments: begins a segment map without them.
    /// Files without other segments are removed with the last segment map that has them.
    pub fn retire(&self, gone: &[FileNumber]) {
        self.begin_round(&|segments| {
            gone.iter().filter_map(|number| segments.remove(&(number.0 as u32))).collect()
        });
    }

    /// The manifest, durably, says that the values of these segments are in this file: begins a
    /// segment map that says this. Their old files are removed with the last segment map that has
    /// them, unless other segments are in them.
    pub fn relocated(&self, moved: &[FileNumber], file: FileNumber) {
        let listed = self.listed_relocated(file);
        self.begin_round(&|segments| {
            let to = |number: &FileNumber| segments.insert(number.0 as u32, Arc::clone(&listed));
            moved.iter().filter_map(to).collect()
        });
    }

    /// Replaces the present segment map. `change` changes its segments, and returns the files that
    /// are no longer the file of some segment.
    #[allow(clippy::type_complexity)]
    fn begin_round(&self, change: &dyn Fn(&mut BTreeMap<u32, Arc<ListedFile>>) -> Vec<Arc<ListedFile>>) {
        let mut present = self.present.write();
        let mut segments = present.segments();
        let left = change(&mut segments);
        for file in &left {
            if !segments.values().any(|other| Arc::ptr_eq(other, file)) {
                file.retire();
                self.open.write().remove(&file.number);
            }
        }
        let before = std::mem::replace(&mut *present, Arc::new(SegmentMap::of(segments)));
        self.rounds.fetch_add(1, Ordering::AcqRel);
        drop(present);
        drop((before, left)); // files are removed without the lock
    }

    /// The file with the segment that has these low bits in its number, open for reading.
    pub fn open_low(&self, of: &SegmentMap, low: u32) -> Result<Arc<ValueFile>> {
        let is_open = of.file_number_of(low).and_then(|number| self.open.read().get(&number).cloned());
        if let Some(opened) = is_open {
            return Ok(opened);
        }
        self.open(of, of.number_of(low).unwrap_or(low))
    }

    /// Closes all files. Called when the store is closed.
    pub fn let_go(&self) {
        self.open.write().clear();
    }

    /// The file that has the values of this segment, open for reading.
    pub fn open(&self, of: &SegmentMap, segment: u32) -> Result<Arc<ValueFile>> {
        let Some(listed) = of.listed(segment) else {
            return Err(error::corrupt(
                &values_path(&self.dir, FileNumber(u64::from(segment))),
                0,
                "a value is said to be in it, and the manifest does not list it",
            ));
        };
        if let Some(opened) = self.open.read().get(&listed.number) {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(match listed.cached_as {
            None if listed.is_directory => return Ok(Arc::new(self.directory(listed.number))),
            None => ValueFile::open_so(&*self.files, &self.dir, segment, self.is_direct)?,
            Some(cached_as) => ValueFile::Relocated(
                Box::new(RelocatedFile::open_so(&*self.files, &self.dir, listed.number, self.is_direct)?),
                Some((Arc::clone(&self.cache), cached_as)),
            ),
        });
        if let Some(file) = opened.file() {
            file.expect_scattered(); // values are not read in the order of writing
        }
        let _present = self.present.read(); // a thread that retires it holds this lock for writing
        if listed.is_retired() {
            return Ok(opened); // an open file would keep its disk space
        }
        let mut open = self.open.write();
        if open.len() >= self.open_max {
            open.pop_first(); // the lowest number: reads of new values do not need it
        }
        open.insert(listed.number, Arc::clone(&opened));
        Ok(opened)
    }

    fn directory(&self, number: FileNumber) -> ValueFile {
        ValueFile::ValueDirectory(ValueDirectory::new(&self.files, &self.dir, number, self.is_direct))
    }
}
