//! The value log: values that are too long for the log are written here instead, once.
//!
//! ```text
//!   000012.values   | header | record | record | record ......zeros|      sealed: cut to what counts
//!   000031.values   | header | record | .......................zeros|      active
//!   000044.values   | header | ....................................|      next, made ahead by background work
//! ```
//!
//! A record is written before the frame that points to it. [`ValueLog::append`] writes it to the
//! kernel. [`ValueLog::sync`] makes everything durable that was appended. It is called before each
//! sync of the log, so that durable frames point to durable values. If frames were not durable when
//! a process died, the replay of the log checks each of their values.
//!
//! Values with files of their own go to [`crate::directories`]. The value log syncs and closes
//! these together with its segments.
//!
//! The owner of the value log makes its segments ([`ValueLog::make`]), lists them durably, and only
//! then hands them over ([`ValueLog::adopt`]): so pointers lead only to segments that the manifest
//! lists. Segments are written once, and a value log never appends to one that existed before it.
//!
//! ```text
//!   lock    guards                          held while
//!   tail    the ends of the segments        a record is copied
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, ErrorKind, FileNumber, NumberSource, Result, ValuePlace};
use folddb_host::files::AppendSync;
use folddb_host::sync::{Mutex, MutexGuard};
use folddb_host::{AppendFile, AppendMode, Host};
use folddb_layout::values::{self, VALUES_HEADER_BYTES};

use crate::directories::{OpenDirectory, ValueDirectories};
use crate::segment::{ValuesEnd, next_segment_bytes, values_path};

/// How the value log uses its files.
#[derive(Clone, Copy, Debug)]
pub struct ValueOptions {
    /// The longest file of a segment, in bytes; only a segment for a longer record is longer.
    /// Segments begin small: see [`next_segment_bytes`].
    pub segment_bytes_max: u64,
    /// How records are written to the file.
    pub append_mode: AppendMode,
}

/// See the top of this file. Shared by all threads.
pub struct ValueLog {
    host: Host,
    dir: PathBuf,
    options: ValueOptions,
    numbers: NumberSource,
    tail: Mutex<Tail>,
    poison: OnceLock<Error>,
    /// The values with files of their own.
    pub directories: ValueDirectories,
}

#[derive(Default)]
struct Tail {
    active: Option<OpenValues>,
    next: Option<OpenValues>,
    /// Full segments that [`ValueLog::take_sealed`] has not returned yet, oldest first.
    sealed: Vec<SealedValues>,
    unsynced_bytes: u64,
    is_closed: bool,
}

/// A segment that is appended to, or will be.
pub struct OpenValues {
    number: FileNumber,
    path: PathBuf,
    file: Box<dyn AppendFile>,
    syncer: Arc<dyn AppendSync>,
    len_bytes: u64,
    /// It is durable up to here.
    synced: u64,
}

/// A segment to which nothing is appended any more.
struct SealedValues {
    number: FileNumber,
    end: u64,
    /// Present as long as it has not been synced.
    unsynced: Option<Arc<dyn AppendSync>>,
    /// More than half of it is empty.
    is_left_early: bool,
}

/// An open segment is too long if a new one would be this many times shorter.
const SHED_TIMES: u64 = 4;

impl OpenValues {
    /// The number of its file.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Length of its file. All of it is allocated on the disk.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn fits(&self, bytes: u64) -> bool {
        self.file.end() + bytes <= self.len_bytes
    }

    /// True when nothing was ever put into it.
    fn is_unused(&self) -> bool {
        self.file.end() <= VALUES_HEADER_BYTES as u64
    }
}

impl ValueLog {
    /// A value log without segments.
    pub fn new(host: &Host, dir: &Path, options: ValueOptions, numbers: NumberSource) -> ValueLog {
        ValueLog {
            directories: ValueDirectories::new(host, dir, options.segment_bytes_max, Arc::clone(&numbers)),
            host: host.clone(),
            dir: dir.to_owned(),
            options,
            numbers,
            tail: Mutex::default(),
            poison: OnceLock::new(),
        }
    }

    /// Appends a record and returns its place. None if there is no room: then call
    /// [`ValueLog::make`] and [`ValueLog::adopt`].
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed. `Poisoned`, `Closed`: see the kinds.
    pub fn append(&self, record: &[u8]) -> Result<Option<ValuePlace>> {
        let mut tail = self.open_tail()?;
        if !tail.active.as_ref().is_some_and(|active| active.fits(record.len() as u64)) {
            match tail.next.take() {
                Some(next) if next.fits(record.len() as u64) => tail.continue_in(next),
                next => {
                    tail.next = next;
                    return Ok(None);
                }
            }
        }
        let Some(active) = &mut tail.active else { return Ok(None) };
        let offset = active.file.end();
        let Ok(unit) = u32::try_from(offset / VALUE_ALIGN) else { return Ok(None) };
        let place = ValuePlace { segment: active.number.0 as u32, unit };
        active.file.append(record).map_err(|error| {
            let error = Error::io("append to", &active.path, error);
            if error.kind() == ErrorKind::NoSpace { error } else { self.poison(error.message()) }
        })?;
        tail.unsynced_bytes += record.len() as u64;
        Ok(Some(place))
    }

    /// Makes a segment with room for a record of `record_bytes`, for a value log that holds
    /// `held_bytes`. Its file, its header and its name are durable on return. Nothing is left
    /// behind on failure.
    ///
    /// # Errors
    /// `NoSpace`; any other failure of the operating system.
    pub fn make(&self, record_bytes: u64, held_bytes: u64) -> Result<OpenValues> {
        let number = (self.numbers)();
        if u32::try_from(number.0).is_err() {
            return Err(Error::invalid(format!(
                "the store has used up the numbers of its value segments at {number}"
            )));
        }
        let path = values_path(&self.dir, number);
        let len_bytes = next_segment_bytes(held_bytes, self.options.segment_bytes_max)
            .max(VALUES_HEADER_BYTES as u64 + record_bytes);
        let files = &self.host.files;
        let created = files.create_append(&path, len_bytes, self.options.append_mode);
        let mut file = created.map_err(|error| Error::io("create", &path, error))?;
        let made = self.begin(number, &path, &mut *file);
        match made {
            Ok(syncer) => {
                Ok(OpenValues { number, path, file, syncer, len_bytes, synced: VALUES_HEADER_BYTES as u64 })
            }
            Err(error) => {
                drop(file);
                let _ = files.remove(&path);
                Err(error)
            }
        }
    }

    fn begin(
        &self,
        number: FileNumber,
        path: &Path,
        file: &mut dyn AppendFile,
    ) -> Result<Arc<dyn AppendSync>> {
        let syncer = file.syncer();
        let _ = syncer.prepare(); // only a hint: an append can map its window itself
        file.append(&values::header(number)).map_err(|error| Error::io("write", path, error))?;
        syncer.sync().map_err(|error| Error::io("sync", path, error))?;
        self.host.files.sync_dir(&self.dir).map_err(|error| Error::io("sync", &self.dir, error))?;
        Ok(syncer)
    }

    /// Takes over a segment that is durably listed: from now on there is room for a record of
    /// `record_bytes`. The next segment remains the next one, unless it has a lower number: later
    /// values must be in a segment with a higher number, or at a higher offset.
    pub fn adopt(&self, segment: OpenValues, record_bytes: u64) {
        let mut tail = self.tail.lock();
        let has_room = tail.active.as_ref().is_some_and(|active| active.fits(record_bytes));
        if has_room && tail.next.is_none() {
            tail.next = Some(segment);
        } else {
            if let Some(passed_over) = tail.next.take_if(|next| next.number < segment.number) {
                tail.continue_in(passed_over); // it has no values, and is removed with dead segments
            }
            tail.continue_in(segment);
        }
    }

    /// Takes over a full directory that is durably listed. Open segments and directories become
    /// full: everything that is written later is in segments with higher numbers.
    pub fn continue_after(&self, full: OpenDirectory) {
        self.directories.continue_after(full);
        let mut tail = self.tail.lock();
        let passed = [tail.active.take(), tail.next.take()];
        passed.into_iter().flatten().for_each(|passed| tail.fill(passed));
    }

    /// Removes a segment that is not listed and was never handed over. If it stays, it does no
    /// harm, and the next opening removes it.
    pub fn unmake(&self, segment: OpenValues) {
        let path = segment.path.clone();
        drop(segment);
        let _ = self.host.files.remove(&path);
    }

    /// Whether there is room for a record of this many bytes.
    pub fn has_room(&self, record_bytes: u64) -> bool {
        let tail = self.tail.lock();
        let segments = tail.active.iter().chain(&tail.next);
        segments.into_iter().any(|segment| segment.fits(record_bytes))
    }

    /// Whether the next segment should be made: the active one is half full.
    pub fn wants_next(&self) -> bool {
        let tail = self.tail.lock();
        let is_half_full =
            tail.active.as_ref().is_some_and(|active| active.file.end() > active.len_bytes / 2);
        is_half_full && tail.next.is_none() && !tail.is_closed && self.poison.get().is_none()
    }

    /// Gives up open segments that are much too long for a value log of this many bytes, which was
    /// larger before: the active one becomes full, and the next one is returned, to be removed from
    /// the manifest. The caller is the one that makes segments, so none is made at the same time.
    pub fn shed(&self, held_bytes: u64) -> Option<OpenValues> {
        let wanted = next_segment_bytes(held_bytes, self.options.segment_bytes_max);
        let is_too_long = |segment: &mut OpenValues| segment.len_bytes >= SHED_TIMES.saturating_mul(wanted);
        let mut tail = self.tail.lock();
        if tail.is_closed || self.poison.get().is_some() {
            return None;
        }
        if let Some(active) = tail.active.take_if(|active| !active.is_unused() && is_too_long(active)) {
            tail.fill(active);
        }
        tail.next.take_if(is_too_long)
    }

    /// Prepares what the next appends need. It is cheap if that is ready.
    pub fn prepare(&self) {
        let syncer = self.tail.lock().active.as_ref().map(|active| Arc::clone(&active.syncer));
        if let Some(syncer) = syncer {
            let _ = syncer.prepare(); // a hint
        }
    }

    /// Bytes that were written since the last sync.
    pub fn unsynced_bytes(&self) -> u64 {
        self.tail.lock().unsynced_bytes + self.directories.unsynced_bytes()
    }

    /// Whether a segment that is mostly empty became full and must still be synced: it takes its
    /// full length on the disk until it is synced and cut.
    pub fn has_left_early(&self) -> bool {
        let is_waiting = |segment: &SealedValues| segment.is_left_early && segment.unsynced.is_some();
        self.tail.lock().sealed.iter().any(is_waiting)
    }

    /// Waits until everything that was appended before the call is durable. It costs almost nothing
    /// if it is.
    ///
    /// # Errors
    /// `Poisoned` if a write or sync failed, now or before.
    pub fn sync(&self) -> Result<()> {
        self.check_sound()?;
        self.directories.sync().map_err(|error| self.poison(error.message()))?;
        let (sealed, active, unsynced) = self.to_sync();
        for (number, syncer) in sealed {
            self.sync_one(number, &*syncer)?;
            let mut tail = self.tail.lock();
            if let Some(segment) = tail.sealed.iter_mut().find(|segment| segment.number == number) {
                segment.unsynced = None;
            }
        }
        let synced =
            active.map(|(number, syncer, end)| self.sync_one(number, &*syncer).map(|()| (number, end)));
        let synced = synced.transpose()?;
        let mut tail = self.tail.lock();
        tail.unsynced_bytes = tail.unsynced_bytes.saturating_sub(unsynced);
        if let (Some((number, end)), Some(active)) = (synced, &mut tail.active)
            && active.number == number
        {
            active.synced = active.synced.max(end);
        }
        Ok(())
    }

    fn sync_one(&self, number: FileNumber, syncer: &dyn AppendSync) -> Result<()> {
        syncer
            .sync()
            .map_err(|error| self.poison(format_args!("cannot sync value segment {number}: {error}")))
    }

    /// What must be synced: full segments, and the active one up to its present end; and how many
    /// bytes are not synced yet.
    #[allow(clippy::type_complexity)]
    fn to_sync(
        &self,
    ) -> (Vec<(FileNumber, Arc<dyn AppendSync>)>, Option<(FileNumber, Arc<dyn AppendSync>, u64)>, u64) {
        let tail = self.tail.lock();
        let unsynced =
            |segment: &SealedValues| Some((segment.number, Arc::clone(segment.unsynced.as_ref()?)));
        let sealed = tail.sealed.iter().filter_map(unsynced).collect();
        let active = tail.active.as_ref().filter(|active| active.file.end() > active.synced);
        let active = active.map(|active| (active.number, Arc::clone(&active.syncer), active.file.end()));
        (sealed, active, tail.unsynced_bytes)
    }

    /// Full segments that are durable, with their ends. Each is returned once. The caller lists it
    /// as sealed and then calls [`ValueLog::cut`].
    pub fn take_sealed(&self) -> Vec<ValuesEnd> {
        let mut tail = self.tail.lock();
        let (durable, rest) = tail.sealed.drain(..).partition(|segment| segment.unsynced.is_none());
        tail.sealed = rest;
        let durable: Vec<SealedValues> = durable;
        durable.iter().map(|segment| ValuesEnd { number: segment.number, end: segment.end }).collect()
    }

    /// Cuts the file of a sealed segment at its end. If that fails, the unused bytes do no harm.
    pub fn cut(&self, sealed: ValuesEnd) {
        let _ = self.host.files.cut(&values_path(&self.dir, sealed.number), sealed.end);
    }

    /// The ends of the segments that are not sealed yet.
    pub fn ends(&self) -> Vec<ValuesEnd> {
        let tail = self.tail.lock();
        let sealed = tail.sealed.iter().map(|segment| ValuesEnd { number: segment.number, end: segment.end });
        let open = tail.active.iter().chain(&tail.next);
        sealed.chain(open.map(|open| ValuesEnd { number: open.number, end: open.file.end() })).collect()
    }

    /// Closes it: later appends fail. Returns the segments that hold something, all durable, with
    /// their ends; and those that were never used.
    ///
    /// # Errors
    /// A sync failed, now or before.
    pub fn close(&self) -> Result<(Vec<ValuesEnd>, Vec<FileNumber>)> {
        self.tail.lock().is_closed = true;
        self.sync()?;
        let mut tail = self.tail.lock();
        let open = [tail.active.take(), tail.next.take()];
        let (unused, used): (Vec<_>, Vec<_>) = open.into_iter().flatten().partition(OpenValues::is_unused);
        let mut ends: Vec<ValuesEnd> = tail
            .sealed
            .drain(..)
            .map(|segment| ValuesEnd { number: segment.number, end: segment.end })
            .collect();
        ends.extend(used.iter().map(|open| ValuesEnd { number: open.number, end: open.file.end() }));
        Ok((ends, unused.iter().map(|open| open.number).collect()))
    }

    /// Closes the files of a value log that is closed or has failed. Later appends fail.
    pub fn let_go(&self) {
        self.directories.let_go();
        let mut tail = self.tail.lock();
        let gone = std::mem::take(&mut *tail);
        tail.is_closed = true;
        drop(tail);
        drop(gone); // without the lock: unmapping takes time
    }

    /// Why writing has stopped, if it has.
    ///
    /// # Errors
    /// The first failure.
    pub fn check_sound(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    fn open_tail(&self) -> Result<MutexGuard<'_, Tail>> {
        self.check_sound()?;
        let tail = self.tail.lock();
        if tail.is_closed {
            return Err(Error::new(ErrorKind::Closed, "the value log is closed"));
        }
        Ok(tail)
    }

    /// Forbids all writes from now on. Returns the error with the first cause.
    #[cold]
    fn poison(&self, cause: impl std::fmt::Display) -> Error {
        let error = Error::new(ErrorKind::Poisoned, format!("the value log takes no more writes: {cause}"));
        self.poison.get_or_init(|| error).clone()
    }
}

impl Tail {
    fn continue_in(&mut self, next: OpenValues) {
        if let Some(full) = self.active.replace(next) {
            self.fill(full);
        }
    }

    /// Makes a segment full: nothing is appended to it any more.
    fn fill(&mut self, full: OpenValues) {
        let is_synced = full.file.end() <= full.synced;
        let unsynced = (!is_synced).then(|| Arc::clone(&full.syncer));
        let is_left_early = full.file.end() < full.len_bytes / 2;
        self.sealed.push(SealedValues { number: full.number, end: full.file.end(), unsynced, is_left_early });
    }
}

#[cfg(test)]
#[path = "value_log/tests.rs"]
mod tests;
