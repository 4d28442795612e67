//! Backups: a consistent copy of a store, made while writing goes on.
//!
//! ```text
//!   capture    under the manifest's lock: what lives, its part files pinned, the segments opened;
//!              under the commit lock besides, for a moment: where the log ends, and at which seq
//!   sync       the log up to there; it is copied, never linked, and only as far as it is durable
//!   parts      second names of the store's files, or of an earlier generation's, or copies; sealed value segments too
//!   value files    values in files of their own, as parts, saved indexes and the copied log lead to them: in the same ways
//!   manifest   what lives, with the log's start and end, in a file of its own
//!   check      copies are read back record by record, the log frame by frame
//!   adopt      the list, a sync of the directory, and only then its name
//! ```
//!
//! What lives according to the manifest, and the log from its start up to any later moment, are together what a crash at that
//! moment would leave: so a generation is opened by the same recovery. Parts that a merge replaces meanwhile stay as long as the
//! backup holds them, segments as long as they are open. Where another process writes, nobody holds values in files of their own:
//! one that is gone when its turn comes ends the backup, which then begins anew with the store as it is by then, a few times.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq};
use folddb_host::{Files, ReadFile};
use folddb_layout::backup::{BackupList, LIST_FILE, ListedFile, Origin};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::FRAME_OVERHEAD_BYTES_MAX;
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use folddb_manifest::{Loaded, ManifestLog, State};
use folddb_value_log::ValuesEnd;
use folddb_value_log::segment::values_path;

use crate::maintenance::copying::{self, sync_dir, tail_hash};
use crate::maintenance::generation::{check, first_restorable, read_version};
use crate::maintenance::needed::needed_units;
use crate::maintenance::place::Place;
use crate::store::Store;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::hash_files::{IndexFile, listed_indexes};
use folddb_engine::state::log_sync;
use folddb_engine::state::numbers::Numbers;
use folddb_engine::state::view::PartFiles;
use folddb_value_log::SegmentMap;

/// How a backup is made.
#[derive(Clone, Default)]
pub struct BackupOptions {
    copy: bool,
    keep: Option<usize>,
    check_all: bool,
    progress: Option<Arc<dyn Fn(u64, u64) + Send + Sync>>,
}

impl BackupOptions {
    /// Copies parts although they could be linked, so that the backup shares no byte of the disk with the store. Default
    /// false.
    pub fn copy(mut self, copy: bool) -> BackupOptions {
        self.copy = copy;
        self
    }

    /// Removes all but the newest so many generations afterwards, the new one included. Default: all stay.
    pub fn keep(mut self, generations: Option<usize>) -> BackupOptions {
        self.keep = generations;
        self
    }

    /// Reads and checks every record of the new generation, also of the files that were linked. Default false: those that were
    /// copied.
    pub fn check_all(mut self, check_all: bool) -> BackupOptions {
        self.check_all = check_all;
        self
    }

    /// Is told the bytes that are done, and of how many, as the backup goes on.
    pub fn progress(mut self, told: impl Fn(u64, u64) + Send + Sync + 'static) -> BackupOptions {
        self.progress = Some(Arc::new(told));
        self
    }
}

impl std::fmt::Debug for BackupOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BackupOptions { copy, keep, check_all, .. } = self;
        write!(f, "BackupOptions {{ copy: {copy}, keep: {keep:?}, check_all: {check_all} }}")
    }
}

/// Files that came into a backup in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Moved {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// What a backup has made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of the generation.
    pub generation: u64,
    /// Its directory.
    pub path: PathBuf,
    /// The first seq that can be restored from it: where a table is hashed, the last.
    pub first_seq: Seq,
    /// The seq at which it is consistent: all batches up to here are in it, whole, and none after.
    pub last_seq: Seq,
    /// Parts that are second names of the store's files.
    pub linked: Moved,
    /// Parts that are second names of copies in the generation before.
    pub reused: Moved,
    /// Parts whose bytes were copied.
    pub copied: Moved,
    /// Segments of the log, which are always copied.
    pub log: Moved,
    /// Generations that were removed.
    pub removed: Vec<u64>,
    /// How long writers were kept out.
    pub writers_held: Duration,
}

impl Store {
    /// Adds a backup of the store, as it is now, to the place for backups at `to`, which is made when nothing is there. Writing
    /// and reading go on. When this returns the backup is durable and checked; until then it is not among
    /// [`Store::backups`].
    ///
    /// Parts are linked where the file system permits, else they are linked from the backup before where it has them already,
    /// else copied.
    ///
    /// Of a store that was opened beside a writer ([`Store::open_secondary`]) it is what that saw when
    /// it was opened; where the writer has removed values since that lie in files of their own, or was opened again
    /// and has written its archived log anew, what is there now.
    ///
    /// # Errors
    /// [`ErrorKind::SnapshotTooOld`] when a writer beside has removed such values each time that this began anew;
    /// [`ErrorKind::AlreadyExists`] when `to` is something else; [`ErrorKind::InvalidInput`] when it lies inside a store or holds
    /// backups of another one; [`ErrorKind::Locked`] while another backup to it is under way; [`ErrorKind::NoSpace`];
    /// [`ErrorKind::Poisoned`]; any other failure of the operating system. What was made by then is removed.
    pub fn backup(&self, to: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupReport> {
        let mut made = backup(self.engine(), to.as_ref(), options);
        let is_secondary = self.engine().options.beside.is_some();
        for _ in 1..ATTEMPTS_BESIDE {
            match made {
                Err(error) if is_secondary && may_be_disturbed(error.kind()) => {
                    made = backup(self.refresh()?.engine(), to.as_ref(), options);
                }
                made => return made,
            }
        }
        made
    }
}

/// So often a backup that a writer beside has disturbed is tried.
const ATTEMPTS_BESIDE: u32 = 5;

/// Whether a writer beside may be the cause. One that is opened again cuts the tail of its archived log and writes it
/// anew: what is read of it here looks damaged then, and only another look tells it from damage.
fn may_be_disturbed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::SnapshotTooOld | ErrorKind::Corruption)
}

fn backup(engine: &Engine, to: &Path, options: &BackupOptions) -> Result<BackupReport> {
    if engine.options.read_only {
        engine.check_open()?;
    } else {
        engine.health.check_writable(true)?;
    }
    let store_id = engine.manifest.lock().state().store_id;
    let place = Place::open_or_make(&engine.host, to, store_id)?;
    let number = place.next_number()?;
    let draft = place.draft_of(number);
    let files = &*engine.host.files;
    files.create_dir(&draft).map_err(|error| Error::io("create the directory", &draft, error))?;
    let made = Making::begin(engine, &place, &draft, options)
        .and_then(|making| making.finish(number))
        .inspect_err(|_| copying::remove_all(files, &draft))?;
    let path = place.adopt(number)?;
    let removed = options.keep.map_or(Ok(Vec::new()), |keep| place.remove_all_but(keep))?;
    Ok(BackupReport { path, removed, ..made })
}

/// What a backup is of, taken in one moment.
struct Capture {
    /// What lives.
    state: Arc<State>,
    /// The files of its parts and its values, which stay while this holds them.
    _pinned: (Vec<PartFiles>, Arc<SegmentMap>, Vec<Arc<IndexFile>>),
    segments: Vec<Segment>,
    values: Vec<ValuesCopy>,
    /// Where the log ends, and the seq of the last record before.
    end_lsn: Lsn,
    last_seq: Seq,
    writers_held: Duration,
}

/// A segment of the log, held open.
struct Segment {
    number: FileNumber,
    file: Arc<dyn ReadFile>,
    /// No frame that is needed lies beyond this offset.
    end_bytes: u64,
    /// Left in order: what follows its last frame are zeros, which need not be copied.
    is_sealed: bool,
}

/// A value segment to take over.
#[derive(Clone, Copy)]
struct ValuesCopy {
    number: FileNumber,
    /// Bytes of it that count.
    bytes: u64,
    /// Nothing about its file will ever change.
    is_sealed: bool,
}

impl Segment {
    /// The bytes of the file that are needed.
    fn needed_bytes(&self) -> std::io::Result<u64> {
        if !self.is_sealed {
            return Ok(self.end_bytes);
        }
        let mut end = self.end_bytes;
        let mut piece = vec![0; 64 << 10];
        while end > 0 {
            let len = end.min(piece.len() as u64);
            let piece = &mut piece[..len as usize];
            self.file.read_exact_at(end - len, piece)?;
            if let Some(last) = piece.iter().rposition(|&byte| byte != 0) {
                // The seal itself may end in zeros.
                return Ok(
                    (end - len + last as u64 + 1 + FRAME_OVERHEAD_BYTES_MAX as u64).min(self.end_bytes)
                );
            }
            end -= len;
        }
        Ok(self.end_bytes)
    }
}

/// Takes in one moment what lives, the files that hold it, and where the log ends.
fn capture(engine: &Engine) -> Result<Capture> {
    match &engine.journal {
        Some(journal) => capture_while_open(engine, &Arc::clone(journal)),
        None => capture_at_rest(engine),
    }
}

fn capture_while_open(engine: &Engine, journal: &folddb_journal::JournalSync) -> Result<Capture> {
    // No edit may come between, so that runs and log fit together and no segment goes that this state needs.
    let manifest = engine.manifest.lock();
    engine.check_open()?;
    let state = Arc::clone(manifest.state());
    let (committer, began) = (engine.commit.lock(), engine.host.clock.monotonic());
    let (facts, last_seq) = (journal.segments(), committer.next_seq - 1);
    let writers_held = engine.host.clock.monotonic().saturating_sub(began);
    drop(committer);
    let end_lsn = facts.last().map_or(state.log_start_lsn, |active| active.end_lsn);
    let mut segments = Vec::new();
    for fact in facts.iter().filter(|fact| fact.end_lsn > state.log_start_lsn) {
        let file = open_segment(engine, fact.number)?;
        let end_bytes = SEGMENT_HEADER_BYTES as u64 + (fact.end_lsn - fact.first_lsn);
        let is_sealed = fact.end_lsn < end_lsn;
        segments.push(Segment { number: fact.number, file, end_bytes, is_sealed });
    }
    let values = value_files(engine, &state, &engine.values.log.ends())?;
    let _pinned = pin(engine);
    Ok(Capture { _pinned, state, segments, values, end_lsn, last_seq, writers_held })
}

/// Of a store that is opened for reading nothing changes. One who writes beside it may have gone on
/// with the log, and have taken away what that led to, and segments that came after: so the log is
/// not read again, but copied as far as it was read when the store was opened.
fn capture_at_rest(engine: &Engine) -> Result<Capture> {
    let state = Arc::clone(engine.manifest.lock().state());
    let (end_lsn, last_seq) = (engine.read_to_lsn, engine.published());
    let mut segments = Vec::new();
    for number in log_files(engine)? {
        let file = open_segment(engine, number)?;
        let Some(header) = segment_header(engine, number, &*file)? else { continue };
        let needed = state.log_start_lsn.max(header.first_lsn)..end_lsn.min(header.next_lsn());
        if !needed.is_empty() {
            let whole = file.len_bytes().map_err(|error| segment_error(engine, "read", number, error))?;
            let end_bytes = header.offset_of(header.next_lsn().min(end_lsn)).min(whole);
            let is_sealed = header.next_lsn() <= end_lsn;
            segments.push(Segment { number, file, end_bytes, is_sealed });
        }
    }
    let values = value_files(engine, &state, &[])?;
    let (_pinned, writers_held) = (pin(engine), Duration::ZERO);
    Ok(Capture { _pinned, state, segments, values, end_lsn, last_seq, writers_held })
}

/// The value segments, each as far as it counts now. One that is not sealed, or not cut to its end yet, is not linked: it
/// will be, and what a backup holds never changes. Where nobody appends, an unsealed one counts with its whole length.
fn value_files(engine: &Engine, state: &State, open: &[ValuesEnd]) -> Result<Vec<ValuesCopy>> {
    let mut copies = Vec::new();
    for (&number, end) in state.values.iter().filter(|(number, _)| !state.is_directory(**number)) {
        let path = values_path(&engine.dir, number);
        let len = engine.host.files.len_bytes(&path).map_err(|error| Error::io("read", &path, error))?;
        let open_end = open.iter().find(|one| one.number == number).map(|one| one.end);
        let bytes = end.or(open_end).unwrap_or(len);
        copies.push(ValuesCopy { number, bytes, is_sealed: *end == Some(len) });
    }
    Ok(copies)
}

fn pin(engine: &Engine) -> (Vec<PartFiles>, Arc<SegmentMap>, Vec<Arc<IndexFile>>) {
    let parts = engine.catalog().all().map(|table| table.part_files()).collect();
    let catalog = engine.catalog();
    let hashed = catalog.all().filter_map(|table| table.hashed.as_ref());
    let indexes = hashed.filter_map(|hashed| hashed.file.lock().clone()).collect();
    (parts, engine.values.files.present(), indexes)
}

/// The segments of the log that are there, oldest first.
fn log_files(engine: &Engine) -> Result<BTreeSet<FileNumber>> {
    let names = engine.host.files.list(&engine.dir).map_err(|error| Error::io("list", &engine.dir, error))?;
    let number = |name: &String| match FileName::parse(name) {
        Some(FileName::Log(number)) => Some(number),
        _ => None,
    };
    Ok(names.iter().filter_map(number).collect())
}

fn open_segment(engine: &Engine, number: FileNumber) -> Result<Arc<dyn ReadFile>> {
    let path = engine.path(&FileName::Log(number).to_string());
    engine.host.files.open(&path).map_err(|error| segment_error(engine, "open", number, error))
}

/// The header of a segment; none where its making was cut short.
fn segment_header(engine: &Engine, number: FileNumber, file: &dyn ReadFile) -> Result<Option<SegmentHeader>> {
    let mut bytes = vec![0; SEGMENT_HEADER_BYTES];
    match file.read_exact_at(0, &mut bytes) {
        Ok(()) => Ok(SegmentHeader::decode(&bytes, number).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(segment_error(engine, "read", number, error)),
    }
}

fn segment_error(engine: &Engine, doing: &str, number: FileNumber, error: std::io::Error) -> Error {
    Error::io(doing, &engine.path(&FileName::Log(number).to_string()), error)
}

/// A generation under way.
struct Making<'a> {
    engine: &'a Engine,
    draft: &'a Path,
    options: &'a BackupOptions,
    capture: Capture,
    /// The generation before, with its copies by name.
    before: Option<(PathBuf, HashMap<FileName, ListedFile>)>,
    list: Vec<ListedFile>,
    linked: Moved,
    reused: Moved,
    copied: Moved,
    log: Moved,
    /// The bytes to copy of each segment.
    log_bytes: Vec<u64>,
    bytes_done: u64,
    bytes_total: u64,
}

impl<'a> Making<'a> {
    fn begin(
        engine: &'a Engine,
        place: &Place,
        draft: &'a Path,
        options: &'a BackupOptions,
    ) -> Result<Making<'a>> {
        let before = place.newest()?.map(|(path, list)| {
            let files = list.files.into_iter();
            (path, files.map(|file| (file.name, file)).collect())
        });
        let capture = capture(engine)?;
        log_sync::sync_to(engine, capture.end_lsn)?;
        let parts = listed_parts(&capture.state).map(|(_, bytes)| bytes).sum::<u64>()
            + listed_indexes(&capture.state).map(|(_, bytes)| bytes).sum::<u64>()
            + capture.values.iter().map(|one| one.bytes).sum::<u64>()
            + capture.state.relocated_files.values().sum::<u64>();
        let segment_bytes = |segment: &Segment| {
            let needed = segment.needed_bytes();
            needed.map_err(|error| segment_error(engine, "read", segment.number, error))
        };
        let log_bytes: Vec<u64> = capture.segments.iter().map(segment_bytes).collect::<Result<_>>()?;
        let mut making = Making {
            engine,
            draft,
            options,
            capture,
            before,
            list: Vec::new(),
            linked: Moved::default(),
            reused: Moved::default(),
            copied: Moved::default(),
            log: Moved::default(),
            bytes_done: 0,
            bytes_total: 2 * parts + log_bytes.iter().sum::<u64>(),
            log_bytes,
        };
        making.fill()?;
        Ok(making)
    }

    fn files(&self) -> &'a dyn Files {
        &*self.engine.host.files
    }

    fn told(&mut self, bytes: u64) {
        self.bytes_done += bytes;
        if let Some(progress) = &self.options.progress {
            progress(self.bytes_done.min(self.bytes_total), self.bytes_total);
        }
    }

    fn fill(&mut self) -> Result<()> {
        let state = Arc::clone(&self.capture.state);
        for directory in state.directories.keys().map(|&number| FileName::ValueDirectory(number).to_string())
        {
            copying::make_directory(self.files(), &self.draft.join(directory))?;
        }
        let mut to_copy = self.link_parts(&state)?;
        self.check_space(&to_copy)?;
        self.copy_log()?;
        // Before what takes long: these nobody holds against a writer beside.
        to_copy.splice(..0, self.link_value_files(&state)?);
        self.check_space(&to_copy)?;
        for (name, bytes) in to_copy {
            self.copy_part(name, bytes)?;
        }
        for directory in state.directories.keys().map(|&number| FileName::ValueDirectory(number).to_string())
        {
            sync_dir(self.files(), &self.draft.join(directory))?;
        }
        self.write_manifest(&state)?;
        self.copy_format()?;
        copying::write(self.files(), &self.draft.join(FileName::Lock.to_string()), &[])
    }

    /// Gives the parts second names where that goes; the others are returned.
    fn link_parts(&mut self, state: &State) -> Result<Vec<(FileName, u64)>> {
        let mut to_copy = Vec::new();
        let parts = listed_parts(state).map(|(number, bytes)| (FileName::Part(number), bytes, true));
        let values = self.capture.values.clone();
        let values = values.iter().map(|one| (FileName::Values(one.number), one.bytes, one.is_sealed));
        let indexes = listed_indexes(state).map(|(number, bytes)| (FileName::Index(number), bytes, true));
        let moved =
            state.relocated_files.iter().map(|(&file, &bytes)| (FileName::Relocated(file), bytes, true));
        for (name, bytes, may_link) in parts.chain(indexes).chain(values).chain(moved) {
            let tail_hash = self.tail_hash(&self.engine.path(&name.to_string()), bytes)?;
            if !self.link(name, (bytes, tail_hash), may_link) {
                to_copy.push((name, bytes));
            }
        }
        Ok(to_copy)
    }

    /// The same of the values in files of their own that the parts, the saved indexes and the copied log lead to. Nothing about such
    /// a file ever changes. Others are dead.
    fn link_value_files(&mut self, state: &State) -> Result<Vec<(FileName, u64)>> {
        let (host, dirs) = (&self.engine.host, (&*self.engine.dir, self.draft));
        let state = self.state_of_log(state);
        let needed = needed_units(host, dirs, &state, &self.engine.options.custom)?;
        let names = needed.iter().flat_map(|(&directory, units)| {
            units.iter().map(move |&unit| FileName::ValueFile(directory, unit))
        });
        let mut to_copy = Vec::new();
        for name in names {
            let path = self.engine.path(&name.to_string());
            let file = self.open(name, &path)?;
            let failed = |error| Error::io("read", &path, error);
            let bytes = file.len_bytes().map_err(failed)?;
            let tail_hash = tail_hash(&*file, bytes).map_err(failed)?;
            self.bytes_total += 2 * bytes;
            if !self.link(name, (bytes, tail_hash), true) {
                to_copy.push((name, bytes));
            }
        }
        Ok(to_copy)
    }

    /// Gives a file of the store, or what the generation before has of it, a second name; false where neither goes.
    fn link(&mut self, name: FileName, (len_bytes, tail_hash): (u64, u64), may_link: bool) -> bool {
        let (from, to) = (self.engine.path(&name.to_string()), self.draft.join(name.to_string()));
        let may_link = may_link && !self.options.copy && self.is_durable(name, &from);
        let origin = if may_link && self.files().link(&from, &to).is_ok() {
            self.linked.add(len_bytes);
            Origin::Linked
        } else if self.reuse(name, len_bytes, tail_hash, &to) {
            self.reused.add(len_bytes);
            Origin::Copied
        } else {
            return false;
        };
        self.list.push(ListedFile { name, len_bytes, tail_hash, origin });
        self.told(len_bytes);
        true
    }

    /// Opens a file of the store.
    fn open(&self, name: FileName, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let is_gone = |error: &std::io::Error| {
            let kinds = [std::io::ErrorKind::NotFound, std::io::ErrorKind::StaleNetworkFileHandle];
            matches!(name, FileName::ValueFile(..)) && kinds.contains(&error.kind())
        };
        self.files().open(path).map_err(|error| match is_gone(&error) {
            true if self.engine.options.beside.is_some() => gone_secondary(path),
            true => Error::missing(path, "a value is in it"),
            false => Error::io("open", path, error),
        })
    }

    /// Whether a file is on the disk as it is now. A segment of values is cut when it is sealed, and nothing has needed that to last:
    /// after a power cut it may be longer again, and so would be its second name. A value in a file of its own is as durable as the
    /// log that leads to it, which who only reads has not synced.
    fn is_durable(&self, name: FileName, path: &Path) -> bool {
        let is_known = match name {
            FileName::Values(_) => false,
            FileName::ValueFile(..) => self.engine.journal.is_some(),
            _ => true,
        };
        is_known || self.files().sync_file(path).is_ok()
    }

    /// Gives the copy that the generation before has of a file a second name. False where it has none of these facts.
    fn reuse(&self, name: FileName, len_bytes: u64, tail_hash: u64, to: &Path) -> bool {
        let Some((dir, files)) = &self.before else { return false };
        let same = ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied };
        let from = dir.join(name.to_string());
        files.get(&name) == Some(&same)
            && self.files().len_bytes(&from).is_ok_and(|len| len == len_bytes)
            && self.files().link(&from, to).is_ok()
    }

    fn tail_hash(&self, path: &Path, len_bytes: u64) -> Result<u64> {
        let file = self.files().open(path).map_err(|error| Error::io("open", path, error))?;
        tail_hash(&*file, len_bytes).map_err(|error| Error::io("read", path, error))
    }

    /// Refuses before anything large is written that cannot fit.
    fn check_space(&self, to_copy: &[(FileName, u64)]) -> Result<()> {
        let parts = to_copy.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let need = parts + self.log_bytes.iter().sum::<u64>();
        let Ok(free) = self.files().space_free_bytes(self.draft) else { return Ok(()) };
        if need <= free {
            return Ok(());
        }
        let message =
            format!("the backup would copy {need} bytes to {}, and {free} are free", self.draft.display());
        Err(Error::new(ErrorKind::NoSpace, message))
    }

    fn copy_part(&mut self, name: FileName, bytes: u64) -> Result<()> {
        let from = self.engine.path(&name.to_string());
        let file = self.open(name, &from)?;
        self.copy_file(name, (&*file, &from), bytes)?;
        file.wont_need(0, bytes);
        self.copied.add(bytes);
        Ok(())
    }

    fn copy_log(&mut self) -> Result<()> {
        let segments = std::mem::take(&mut self.capture.segments);
        for (segment, bytes) in segments.iter().zip(std::mem::take(&mut self.log_bytes)) {
            let name = FileName::Log(segment.number);
            let from = self.engine.path(&name.to_string());
            self.copy_file(name, (&*segment.file, &from), bytes)?;
            self.log.add(bytes);
        }
        Ok(())
    }

    fn copy_file(&mut self, name: FileName, (file, path): (&dyn ReadFile, &Path), bytes: u64) -> Result<()> {
        let to = self.draft.join(name.to_string());
        let files = self.files();
        copying::copy(files, (&[], file, 0..bytes), (path, &to), &mut |moved| self.told(moved))?;
        let tail_hash = self.tail_hash(&to, bytes)?;
        self.list.push(ListedFile { name, len_bytes: bytes, tail_hash, origin: Origin::Copied });
        Ok(())
    }

    /// What lives, and the log from where it is needed up to where it was copied, all of it durable.
    fn write_manifest(&mut self, state: &State) -> Result<()> {
        let mut state = State {
            values: self.capture.values.iter().map(|one| (one.number, Some(one.bytes))).collect(),
            directories: BTreeMap::new(),
            ..self.state_of_log(state)
        };
        for &directory in self.capture.state.directories.keys() {
            let of_directory =
                |file: &&ListedFile| matches!(file.name, FileName::ValueFile(one, _) if one == directory);
            let here = self.list.iter().filter(of_directory);
            state.directories.insert(directory, Some(here.clone().count() as u64));
            state.values.insert(directory, Some(here.map(|file| file.len_bytes).sum()));
        }
        let number = write_manifest(&self.engine.host, self.draft, state)?;
        self.list_small(FileName::Manifest(number))
    }

    /// What lives, and the log as it was copied.
    fn state_of_log(&self, state: &State) -> State {
        let end_lsn = self.capture.end_lsn.max(state.log_start_lsn);
        State {
            last_seq: self.capture.last_seq,
            durable_lsn: end_lsn,
            log_open: end_lsn > state.log_start_lsn,
            log_copied: Some(true),
            feeds: Arc::default(), // what they hold is not copied: who reads them begins anew
            ..state.clone()
        }
    }

    fn copy_format(&mut self) -> Result<()> {
        let name = FileName::Format;
        let version = read_version(&self.engine.host, &self.engine.dir)?;
        copying::write(self.files(), &self.draft.join(name.to_string()), &version.encode())?;
        self.list_small(name)
    }

    fn list_small(&mut self, name: FileName) -> Result<()> {
        let path = self.draft.join(name.to_string());
        let len_bytes = self.files().len_bytes(&path).map_err(|error| Error::io("read", &path, error))?;
        let tail_hash = self.tail_hash(&path, len_bytes)?;
        self.list.push(ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied });
        Ok(())
    }

    /// Checks what was made and writes its list; then all of it is durable but for its name.
    fn finish(mut self, generation: u64) -> Result<BackupReport> {
        self.list.sort_by_key(|file| file.name);
        let first_seq = first_restorable(&self.capture.state, self.capture.last_seq);
        let list = BackupList {
            generation,
            store_id: self.capture.state.store_id,
            made_unix_s: self.engine.host.clock.unix_seconds(),
            first_seq,
            last_seq: self.capture.last_seq,
            files: std::mem::take(&mut self.list),
        };
        copying::write(self.files(), &self.draft.join(LIST_FILE), &list.encode())?;
        sync_dir(self.files(), self.draft)?;
        self.check(&list)?;
        Ok(BackupReport {
            generation,
            path: PathBuf::new(),
            first_seq,
            last_seq: list.last_seq,
            linked: self.linked,
            reused: self.reused,
            copied: self.copied,
            log: self.log,
            removed: Vec::new(),
            writers_held: self.capture.writers_held,
        })
    }

    fn check(&mut self, list: &BackupList) -> Result<()> {
        let (check_all, reused) = (self.options.check_all, self.before.take().unwrap_or_default().1);
        let is_new =
            |file: &ListedFile| file.origin == Origin::Copied && reused.get(&file.name) != Some(file);
        let reads_all = |file: &ListedFile| check_all || is_new(file);
        let (engine, draft) = (self.engine, self.draft);
        let custom = &engine.options.custom;
        check(&engine.host, (draft, list), custom, &reads_all, Seq::MAX, &mut |bytes| self.told(bytes))?;
        Ok(())
    }
}

fn gone_secondary(path: &Path) -> Error {
    let message = format!(
        "the backup needs {}, and the writer has removed it since the store was opened beside it",
        path.display()
    );
    let advice = "back it up again; or in the process that writes, or while none does; to the same file system, \
                  where values are linked and not copied";
    Error::new(ErrorKind::SnapshotTooOld, message).advise(advice)
}

/// Writes a manifest that holds this state and nothing else. Returns its number.
pub(crate) fn write_manifest(host: &folddb_host::Host, dir: &Path, state: State) -> Result<FileNumber> {
    let (next_number, numbers) = (state.next_number, Numbers::starting_at(state.next_number));
    let loaded = Loaded { state, next_number, cut_bytes: 0, number: FileNumber(0), edits: 0 };
    ManifestLog::resume(host, dir, loaded, Arc::new(move || numbers.take()))?;
    Ok(FileNumber(next_number))
}

/// The parts of a state, with their lengths.
fn listed_parts(state: &State) -> impl Iterator<Item = (FileNumber, u64)> + '_ {
    let runs = state.tables.values().flat_map(|table| &table.runs);
    runs.flat_map(|run| &run.parts).map(|part| (part.file, part.file_bytes))
}
