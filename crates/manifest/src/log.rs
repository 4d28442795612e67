//! The manifest on disk: reading it, and adding edits durably.
//!
//! A new file is begun when the store is opened, when the file has grown long, and after an edit
//! that found the disk full: the snapshot is written and synced, the directory is synced, and then
//! the old file is removed. Nothing is appended to a file that existed at opening: the page cache
//! may show what is not on the disk.
//!
//! ```text
//!   an edit fails       the state            and then
//!   disk full, write    is as before         the file may end in half an edit, so the next edit begins a new file
//!   any other write     unknown              poisoned: nothing is written, and nothing may be deleted
//!   any sync            unknown              the same
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, NumberSource, Result, error};
use folddb_host::{Host, WriteFile};
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::{Change, EditKind, decode_edit, put_edit};

use crate::state::State;

/// When a manifest is longer than this, a new file is begun, in bytes. The limit is at least twice
/// the length of the snapshot.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// File numbers that a new manifest reserves beyond its own: enough for an opening that writes
/// little.
pub const NUMBERS_RESERVED: u64 = 32;

/// A state that was read from a directory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The state.
    pub state: State,
    /// The next file number. No file has this number or a higher one, and none has had.
    pub next_number: u64,
    /// Bytes of an edit at the end that was cut short.
    pub cut_bytes: u64,
    /// The number of the manifest.
    pub number: FileNumber,
    /// Whole edits in it, the snapshot included.
    pub edits: u64,
}

/// Reads the state of a store. Changes nothing.
///
/// # Errors
/// `Corruption` if there is no manifest, none is whole, or one is damaged before its end,
/// `NewerFormat` for changes that this version does not know, `Io`.
pub fn load(host: &Host, dir: &Path) -> Result<Loaded> {
    let (manifests, largest) = list(host, dir)?;
    if manifests.is_empty() {
        let what = "it lists what the store holds, and no manifest is left";
        return Err(error::missing(&dir.join("MANIFEST"), what));
    }
    let mut first_error = None;
    for &number in manifests.iter().rev() {
        match read(host, &manifest_path(dir, number), number) {
            Ok(Some((state, edits, cut_bytes))) => {
                let next_number = state.next_number.max(largest.saturating_add(1));
                return Ok(Loaded { state, next_number, cut_bytes, number, edits });
            }
            Ok(None) => {} // creating it was interrupted
            Err(error) => {
                first_error = Some(error);
                break;
            }
        }
    }
    Err(first_error.unwrap_or_else(|| {
        let newest = manifest_path(dir, manifests[manifests.len() - 1]);
        error::corrupt(&newest, 0, "no manifest of the store begins with a whole snapshot")
    }))
}

/// The manifests of a directory, oldest first, and the highest number of any file of a store in it.
pub(crate) fn list(host: &Host, dir: &Path) -> Result<(Vec<FileNumber>, u64)> {
    let names = host.files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let ours = names.iter().filter_map(|name| FileName::parse(name));
    let (mut manifests, mut largest) = (Vec::new(), 0);
    for name in ours {
        largest = largest.max(name.number().map_or(0, |number| number.0));
        if let FileName::Manifest(number) = name {
            manifests.push(number);
        }
    }
    manifests.sort_unstable();
    Ok((manifests, largest))
}

/// The state of a manifest, the number of its whole edits, and the bytes of an edit at its end that
/// was cut short; none if it does not begin with a whole snapshot.
fn read(host: &Host, path: &Path, number: FileNumber) -> Result<Option<(State, u64, u64)>> {
    let bytes = read_all(host, path)?;
    let mut state = State::default();
    let (mut at, mut edits) = (0, 0);
    while let Some(frame) = decode_edit(&bytes[at..], number, at as u64).map_err(|_| newer(path, at))? {
        let expected = if at == 0 { EditKind::Snapshot } else { EditKind::Edit };
        if frame.kind != expected {
            return Err(error::corrupt(path, at as u64, "a snapshot not at the beginning, or an edit there"));
        }
        let changes = frame.changes().map_err(|_| newer(path, at))?;
        for change in &changes {
            let applied = state.apply(change);
            applied.map_err(|cause| error::corrupt(path, at as u64, format!("{change:?}: {cause}")))?;
        }
        at += frame.len_bytes;
        edits += 1;
    }
    if at == 0 {
        return match later_edit(&bytes, number, 0) {
            None => Ok(None),
            Some(later) => Err(damaged(path, 0, later)),
        };
    }
    match later_edit(&bytes, number, at) {
        None => Ok(Some((state, edits, (bytes.len() - at) as u64))),
        Some(later) => Err(damaged(path, at, later)),
    }
}

pub(crate) fn read_all(host: &Host, path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::io("read", path, error);
    let file = host.files.open(path).map_err(failed)?;
    let len = usize::try_from(file.len_bytes().map_err(failed)?)
        .map_err(|_| error::corrupt(path, 0, "longer than memory"))?;
    let mut bytes = vec![0; len];
    file.read_exact_at(0, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The place of a whole edit after `from`. Edits are synced in their order, so such an edit shows
/// that an edit at `from` was whole once.
pub(crate) fn later_edit(bytes: &[u8], number: FileNumber, from: usize) -> Option<usize> {
    (from + 1..bytes.len()).find(|&at| !matches!(decode_edit(&bytes[at..], number, at as u64), Ok(None)))
}

fn damaged(path: &Path, at: usize, later: usize) -> Error {
    error::corrupt(path, at as u64, format!("no whole edit, but there is one at offset {later}"))
}

fn newer(path: &Path, at: usize) -> Error {
    let message = format!("{} has something at offset {at} that this version does not know", path.display());
    Error::new(ErrorKind::NewerFormat, message)
}

pub(crate) fn manifest_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::Manifest(number).to_string())
}

/// The manifest that is being written: it makes changes durable.
pub struct ManifestLog {
    host: Host,
    dir: PathBuf,
    numbers: NumberSource,
    state: Arc<State>,
    /// The file that edits go to; none if the next edit begins a new one.
    current: Option<Current>,
    /// Older manifests that a new one replaces.
    outdated: Vec<FileNumber>,
    poison: Option<Error>,
    scratch: Vec<u8>,
}

struct Current {
    number: FileNumber,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    len_bytes: u64,
    /// A new file is begun when this one has reached this length.
    len_bytes_max: u64,
}

impl ManifestLog {
    /// Begins the manifest of a new store.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(host: &Host, dir: &Path, store_id: u128, numbers: NumberSource) -> Result<ManifestLog> {
        let state = State { store_id, log_copied: Some(false), ..State::default() };
        ManifestLog::begin(host, dir, state, Vec::new(), numbers)
    }

    /// Continues with a loaded state (see [`load`]), in a new file. `numbers` must begin at
    /// [`Loaded::next_number`] or higher.
    ///
    /// # Errors
    /// The new file cannot be created; then the old one is unchanged.
    pub fn resume(host: &Host, dir: &Path, loaded: Loaded, numbers: NumberSource) -> Result<ManifestLog> {
        let (outdated, _) = list(host, dir)?;
        ManifestLog::begin(host, dir, loaded.state, outdated, numbers)
    }

    fn begin(
        host: &Host,
        dir: &Path,
        state: State,
        outdated: Vec<FileNumber>,
        numbers: NumberSource,
    ) -> Result<ManifestLog> {
        let mut log = ManifestLog {
            host: host.clone(),
            dir: dir.to_owned(),
            numbers,
            state: Arc::new(state),
            current: None,
            outdated,
            poison: None,
            scratch: Vec::new(),
        };
        let number = (log.numbers)();
        log.roll_to(number).inspect_err(|_| {
            // The new file has the same state as the old one, so it may be removed: repeated
            // attempts to open leave no files behind.
            let _ = log.host.files.remove(&manifest_path(&log.dir, number));
        })?;
        Ok(log)
    }

    /// The state after all edits that succeeded.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The file that edits go to.
    pub fn number(&self) -> Option<FileNumber> {
        self.current.as_ref().map(|current| current.number)
    }

    /// Makes changes, all or none, and returns when they are durable.
    ///
    /// # Errors
    /// `InvalidInput` if a change does not fit the state, `NoSpace`: nothing has changed, and a
    /// later call may succeed. `Poisoned`: a write or sync failed, now or before. The edit may or
    /// may not be on the disk, so no file that either state needs may be deleted.
    pub fn append(&mut self, changes: &[Change]) -> Result<()> {
        self.check_sound()?;
        let is_full = self.current.as_ref().is_none_or(|current| current.len_bytes >= current.len_bytes_max);
        if is_full {
            match self.roll() {
                // The current file grows longer instead.
                Err(error) if error.kind() == ErrorKind::NoSpace && self.current.is_some() => {}
                outcome => outcome?,
            }
        }
        let mut state = State::clone(&self.state);
        for change in changes {
            let applied = state.apply(change);
            applied.map_err(|cause| Error::invalid(format!("a change does not fit: {change:?}: {cause}")))?;
        }
        self.write_edit(changes)?;
        self.state = Arc::new(state);
        Ok(())
    }

    /// Makes changes in the snapshot of a new file. If such a file is cut, its changes cannot be
    /// lost unnoticed.
    ///
    /// # Errors
    /// As for [`ManifestLog::append`].
    pub fn append_in_snapshot(&mut self, changes: &[Change]) -> Result<()> {
        self.check_sound()?;
        let before = Arc::clone(&self.state);
        let mut state = State::clone(&before);
        for change in changes {
            let applied = state.apply(change);
            applied.map_err(|cause| Error::invalid(format!("a change does not fit: {change:?}: {cause}")))?;
        }
        self.state = Arc::new(state);
        self.roll().inspect_err(|_| self.state = before)
    }

    /// Why writing has stopped, if it has.
    ///
    /// # Errors
    /// The first failure.
    pub fn check_sound(&self) -> Result<()> {
        self.poison.clone().map_or(Ok(()), Err)
    }

    fn write_edit(&mut self, changes: &[Change]) -> Result<()> {
        let Some(current) = &mut self.current else {
            return Err(Error::invalid("the manifest has no file"));
        };
        self.scratch.clear();
        if !put_edit(&mut self.scratch, current.number, current.len_bytes, EditKind::Edit, changes) {
            return Err(Error::invalid("an edit of over four gigabytes"));
        }
        let path = current.path.clone();
        if let Err(error) = current.file.append(&self.scratch) {
            let error = Error::io("write", &path, error);
            if error.kind() != ErrorKind::NoSpace {
                return Err(self.poison(&error));
            }
            self.set_aside();
            return Err(error);
        }
        if let Err(error) = current.file.sync() {
            return Err(self.poison(&Error::io("sync", &path, error)));
        }
        current.len_bytes += self.scratch.len() as u64;
        Ok(())
    }

    /// Stops appending to the current file, which may end in half an edit. It remains the manifest
    /// until there is a new one.
    fn set_aside(&mut self) {
        if let Some(current) = self.current.take() {
            self.outdated.push(current.number);
        }
    }

    /// Begins a new file with a snapshot of the state, and removes the older files.
    fn roll(&mut self) -> Result<()> {
        let number = (self.numbers)();
        self.roll_to(number)
    }

    fn roll_to(&mut self, number: FileNumber) -> Result<()> {
        let path = manifest_path(&self.dir, number);
        let mut state = State::clone(&self.state);
        state.next_number = state.next_number.max(number.0.saturating_add(NUMBERS_RESERVED));
        let mut bytes = Vec::new();
        if !put_edit(&mut bytes, number, 0, EditKind::Snapshot, &state.snapshot()) {
            return Err(Error::invalid("a snapshot of over four gigabytes"));
        }
        let file = self.write_snapshot(&path, &bytes)?;
        self.state = Arc::new(state);
        self.set_aside();
        let len_bytes = bytes.len() as u64;
        let len_bytes_max = FILE_BYTES_MAX.max(len_bytes.saturating_mul(2));
        self.current = Some(Current { number, path, file, len_bytes, len_bytes_max });
        for number in self.outdated.drain(..) {
            // If a file stays, the next opening removes it.
            let _ = self.host.files.remove(&manifest_path(&self.dir, number));
        }
        Ok(())
    }

    /// Writes a file that holds a snapshot. If the disk is full, nothing has changed: half a
    /// snapshot is not a manifest. After any other failure the file may be a manifest or not, so
    /// the log is poisoned.
    fn write_snapshot(&mut self, path: &Path, bytes: &[u8]) -> Result<Box<dyn WriteFile>> {
        let created = self.host.files.create(path);
        let mut file = created.map_err(|error| Error::io("create", path, error))?;
        if let Err(error) = file.append(bytes) {
            drop(file);
            let _ = self.host.files.remove(path);
            let error = Error::io("write", path, error);
            return Err(if error.kind() == ErrorKind::NoSpace { error } else { self.poison(&error) });
        }
        if let Err(error) = file.sync() {
            return Err(self.poison(&Error::io("sync", path, error)));
        }
        if let Err(error) = self.host.files.sync_dir(&self.dir) {
            return Err(self.poison(&Error::io("sync", &self.dir, error)));
        }
        Ok(file)
    }

    fn poison(&mut self, cause: &Error) -> Error {
        let message = format!("the manifest takes no more edits: {}", cause.message());
        self.poison.get_or_insert_with(|| Error::new(ErrorKind::Poisoned, message)).clone()
    }
}

#[cfg(test)]
#[path = "log/tests.rs"]
pub(crate) mod tests;
