//! Values that lie apart, as the engine puts them there and gets them back.
//!
//! ```text
//!   put     before the commit lock: the record into the lane, its place into the batch
//!   room    no segment has any: one is made, listed in the manifest, and then used
//!   sync    before each sync of the log, before each edit that lists parts, and when much has gathered
//!   seal    a full segment that is durable: said in the manifest, then cut to what counts
//!   load    one read, by the pointer; the hash is checked each time
//! ```
//!
//! A batch that fails after its values were put leaves them behind: dead bytes, which nothing points to. Called by `commit`,
//! `read`, `scan`, `upkeep` and `recover`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Pointer, Result, TableId, ValuePlace};
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_host::sync::{Mutex, RwLock};
use folddb_host::{Files, Host};
use folddb_journal::values::{ValueLane, values_path};
use folddb_journal::{NumberSource, ReplayFrame, ValueOptions, ValuesEnd};
use folddb_layout::frame::{self, LogOp};
use folddb_manifest::Change;

use crate::catalog::TableCore;
use crate::encode::Encoded;
use crate::engine::{Engine, Manifest};
use crate::install::NUMBERS_RESERVED;
use crate::value_files::{Roster, ValueFile, ValueFiles};

/// The value lane of an open store, and its files for reading.
pub(crate) struct Values {
    pub(crate) lane: Arc<ValueLane>,
    /// Held by whoever makes a segment: nobody makes a second one for the same want.
    making: Mutex<()>,
    /// Segments made while the store is opened, which no manifest lists yet; none once it is open.
    unlisted: Mutex<Option<Vec<FileNumber>>>,
    pub(crate) files: ValueFiles,
    /// Held for reading from before values are put until what points to them is in a memtable: see `reclaim.rs`.
    pub(crate) placing: RwLock<()>,
    /// Of full segments that memtables may point to, where the log ended when everything that does was in it.
    pub(crate) fences: Mutex<BTreeMap<FileNumber, Lsn>>,
    /// Full segments that only parts point to.
    pub(crate) settled: Mutex<BTreeSet<FileNumber>>,
    /// How often the parts of some table have changed, and as of when that was looked at for segments that are dead.
    pub(crate) installs: AtomicU64,
    pub(crate) looked: AtomicU64,
    /// How long the files are of the segments that this opening has made.
    lens: Mutex<BTreeMap<FileNumber, u64>>,
    /// The segments that the manifest lists, and their bytes. Of their own, so that who asks waits for no edit that is being synced.
    listed: AtomicU64,
    listed_bytes: AtomicU64,
}

impl Values {
    /// The lane of a store that is being opened.
    pub(crate) fn new(
        host: &Host,
        dir: &Path,
        options: ValueOptions,
        numbers: NumberSource,
        files: ValueFiles,
    ) -> Values {
        Values {
            lane: Arc::new(ValueLane::new(host, dir, options, numbers)),
            making: Mutex::default(),
            unlisted: Mutex::new(Some(Vec::new())),
            files,
            placing: RwLock::default(),
            fences: Mutex::default(),
            settled: Mutex::default(),
            installs: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            lens: Mutex::default(),
            listed: AtomicU64::new(0),
            listed_bytes: AtomicU64::new(0),
        }
    }

    /// The segments that opening has made: an edit is to list them, and from now on each is listed when it is made.
    pub(crate) fn take_unlisted(&self) -> Vec<FileNumber> {
        self.unlisted.lock().take().unwrap_or_default()
    }

    /// Closes all files: the store is closed.
    pub(crate) fn let_go(&self) {
        self.files.let_go();
        self.lane.let_go();
    }

    /// Those same, as long as they are listed nowhere.
    pub(crate) fn unlisted(&self) -> Vec<FileNumber> {
        self.unlisted.lock().clone().unwrap_or_default()
    }
}

impl Engine {
    // ---- putting -----------------------------------------------------------------------------------------

    /// Puts the values of a batch that lie apart into the lane, and their places into the batch.
    #[cold]
    pub(crate) fn put_values(&self, batch: &mut Encoded) -> Result<()> {
        let time_ms = self.host.clock.unix_millis();
        let Encoded { apart, values, payload, .. } = batch;
        for (index, one) in apart.iter().enumerate() {
            let end = apart.get(index + 1).map_or(values.len(), |next| next.record_at);
            let place = self.put_value(&values[one.record_at..end])?;
            Pointer::patch(&mut payload[one.pointer_at..], place, time_ms);
        }
        self.counters.value_bytes_written.add(values.len() as u64);
        Ok(())
    }

    /// Puts one record of a value into the lane.
    fn put_value(&self, record: &[u8]) -> Result<ValuePlace> {
        loop {
            let put = self.values.lane.append(record).inspect_err(|error| self.note_write_failure(error))?;
            if let Some(place) = put {
                return Ok(place);
            }
            self.make_room(record.len() as u64)?;
        }
    }

    /// Makes a segment for a record of so many bytes, unless somebody else just has. It is listed before anything points to it.
    fn make_room(&self, record_bytes: u64) -> Result<()> {
        let values = &self.values;
        let _only = values.making.lock();
        if values.lane.has_room(record_bytes) {
            return Ok(());
        }
        self.make_segment(record_bytes)
    }

    fn make_segment(&self, record_bytes: u64) -> Result<()> {
        let values = &self.values;
        let made = values.lane.make(record_bytes, self.value_bytes() + self.unlisted_bytes());
        let segment = made.inspect_err(|error| self.note_write_failure(error))?;
        let number = segment.number();
        values.lens.lock().insert(number, segment.len_bytes());
        if let Some(unlisted) = &mut *values.unlisted.lock() {
            unlisted.push(number);
            values.files.join(number);
            values.lane.adopt(segment, record_bytes);
            return Ok(());
        }
        let mut manifest = self.manifest.lock();
        let mut changes = vec![Change::AddValues { segment: number }];
        if manifest.state().next_number < self.numbers.peek() + NUMBERS_RESERVED / 2 {
            changes.push(Change::ReserveNumbers { next_number: self.numbers.peek() + NUMBERS_RESERVED });
        }
        let listed = self.check_open().and_then(|()| manifest.append(&changes));
        self.note_listed_values(&manifest);
        drop(manifest);
        match listed {
            Ok(()) => {
                values.files.join(number);
                values.lane.adopt(segment, record_bytes);
                Ok(())
            }
            Err(error) => {
                // After any other failure the edit may be on the disk, and what it lists must stay.
                if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
                    values.lane.unmake(segment);
                }
                self.note_write_failure(&error);
                Err(error)
            }
        }
    }

    // ---- upkeep ------------------------------------------------------------------------------------------

    /// What no write should wait for: the next window, the next segment.
    pub(crate) fn keep_values_ready(&self) -> Result<()> {
        let lane = &self.values.lane;
        lane.prepare();
        // Where space is short, the half of the segment that is left is used up first.
        if lane.wants_next() && self.health.cause().is_none() && !self.health.is_short() {
            let _only = self.values.making.lock();
            if lane.wants_next() {
                self.make_segment(0)?;
            }
        }
        Ok(())
    }

    /// Syncs what has gathered, so that an opening after a crash has little to look at, and seals what is full.
    pub(crate) fn settle_values(&self) -> Result<()> {
        let lane = &self.values.lane;
        if lane.unsynced_bytes() > self.options.values_segment_bytes() / 4
            && let Some(journal) = &self.journal
        {
            self.sync_to(journal.end_lsn())?; // both lanes: the log then vouches for these values
        }
        let sealed = lane.take_sealed();
        if sealed.is_empty() {
            return Ok(());
        }
        let changes: Vec<Change> = sealed.iter().map(seal_change).collect();
        // What is not sealed by an edit is sealed at the next opening; until then it is longer than it need be.
        self.edit_values(&changes).inspect_err(|error| self.note_write_failure(error))?;
        sealed.iter().for_each(|&end| lane.cut(end));
        self.fence(&sealed);
        Ok(())
    }

    /// Notes where the log ends now that all that will ever point to these segments is in it.
    fn fence(&self, sealed: &[ValuesEnd]) {
        let Some(journal) = &self.journal else { return };
        drop(self.values.placing.write()); // who has put values into them has them in a memtable now
        let end = journal.end_lsn();
        self.values.fences.lock().extend(sealed.iter().map(|segment| (segment.number, end)));
        self.values.installs.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes all values durable that were put so far.
    pub(crate) fn sync_values(&self) -> Result<()> {
        self.values.lane.sync().inspect_err(|error| self.note_write_failure(error))
    }

    /// Ends the lane in order: what it holds is sealed, what it never used goes.
    pub(crate) fn close_values(&self) -> Result<()> {
        let lane = &self.values.lane;
        let (ends, unused) = lane.close()?;
        let mut changes: Vec<Change> = ends.iter().map(seal_change).collect();
        changes.extend(unused.iter().map(|&segment| Change::RemoveValues { segment }));
        if changes.is_empty() {
            return Ok(());
        }
        self.edit_values(&changes)?;
        ends.iter().for_each(|&end| lane.cut(end));
        self.remove_values(&unused);
        Ok(())
    }

    /// Removes segments that a durable edit no longer lists.
    pub(crate) fn remove_values(&self, numbers: &[FileNumber]) {
        for &number in numbers {
            // One that stays behind is a leftover that the next opening removes.
            let _ = self.host.files.remove(&values_path(&self.dir, number));
        }
    }

    pub(crate) fn edit_values(&self, changes: &[Change]) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let appended = manifest.append(changes);
        self.note_listed_values(&manifest);
        appended
    }

    /// Takes note of which segments the manifest lists now.
    pub(crate) fn note_listed_values(&self, manifest: &Manifest) {
        let listed = manifest.state().values.iter();
        let listed_bytes = listed.map(|(&number, &end)| self.segment_bytes(number, end)).sum();
        self.values.listed_bytes.store(listed_bytes, Ordering::Relaxed);
        self.values.listed.store(manifest.state().values.len() as u64, Ordering::Relaxed);
        self.values.lens.lock().retain(|number, _| {
            manifest.state().values.get(number).is_none_or(Option::is_none) // what is sealed has its end in the manifest
        });
    }

    /// Bytes of a segment: what counts of one that is sealed, else its length.
    pub(crate) fn segment_bytes(&self, number: FileNumber, sealed_end: Option<u64>) -> u64 {
        let made = || self.values.lens.lock().get(&number).copied();
        let there = || self.host.files.len_bytes(&values_path(&self.dir, number)).ok();
        sealed_end.or_else(made).or_else(there).unwrap_or(0)
    }

    /// What the segments hold that opening has made and no manifest lists yet.
    fn unlisted_bytes(&self) -> u64 {
        match &*self.values.unlisted.lock() {
            Some(_) => self.values.lane.ends().iter().map(|segment| segment.end).sum(),
            None => 0,
        }
    }

    /// How many value segments there are.
    pub(crate) fn value_segments_listed(&self) -> u64 {
        self.values.listed.load(Ordering::Relaxed)
    }

    /// Bytes of the value segments: of those that are sealed, what counts, of the others their length.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.values.listed_bytes.load(Ordering::Relaxed)
    }

    /// As much of them as parts point to.
    pub(crate) fn value_live_bytes(&self) -> u64 {
        let of_part = |part: &Arc<crate::view::PartFile>| {
            part.part.facts().values.iter().map(|used| used.bytes).sum::<u64>()
        };
        self.catalog().all().map(|table| table.part_files().values().map(of_part).sum::<u64>()).sum()
    }

    // ---- loading -----------------------------------------------------------------------------------------

    /// Reads the value that a pointer of `key` leads to, into `record`.
    ///
    /// # Errors
    /// Damage, naming table, key, file and offset; a failed read.
    pub(crate) fn load_value<'r>(
        &self,
        of: Option<&Roster>,
        table: &TableCore,
        key: &[u8],
        pointer: &[u8],
        record: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        self.counters.value_reads.add(1);
        let present; // a search that met no pointer, in a table that says it has none
        let of = match of {
            Some(of) => of,
            None => {
                present = self.values.files.present();
                &present
            }
        };
        let (opened, pointer) = self.value_file(of, table, key, pointer)?;
        opened.value((table.id, key), &pointer, record).map_err(|error| self.of_key(table, key, error))
    }

    /// The file that a pointer of `key` leads into, and the pointer.
    pub(crate) fn value_file<'p>(
        &self,
        of: &Roster,
        table: &TableCore,
        key: &[u8],
        pointer: &'p [u8],
    ) -> Result<(Arc<ValueFile>, Pointer<'p>)> {
        let pointer = Pointer::decode(pointer).map_err(|cause| {
            self.of_key(table, key, Error::new(ErrorKind::Corruption, format!("its pointer: {cause}")))
        })?;
        let opened = self.values.files.open(of, pointer.place.segment);
        Ok((opened.map_err(|error| self.of_key(table, key, error))?, pointer))
    }

    /// Says of an error whose value it is of.
    #[cold]
    pub(crate) fn of_key(&self, table: &TableCore, key: &[u8], error: Error) -> Error {
        let key = table.rules.rules.key_codec().show_line(key);
        error.context(format!("the value of key {key} of table `{}`", table.name))
    }

    /// Whether the values that a frame of the log points to are there, as they were written.
    pub(crate) fn has_values(&self, frame: &ReplayFrame<'_>) -> Result<bool> {
        has_values(&*self.host.files, &self.dir, frame)
    }

    /// Puts the values that a replayed frame points to into the lane of this opening: what the page cache shows of them may not
    /// be on the disk. Returns the payload with their new places; none where it points to nothing.
    pub(crate) fn put_again(&self, frame: &ReplayFrame<'_>) -> Result<Option<Vec<u8>>> {
        let mut moved: Option<Vec<u8>> = None;
        let mut record = Vec::new();
        let start = frame.payload.as_ptr() as usize;
        for one in frame::records(frame.payload).flatten() {
            let Some(pointer) = pointer_of(&one) else { continue };
            let opened = ValueFile::open(&*self.host.files, &self.dir, pointer.place.segment)?;
            let value = opened.value((one.table, one.key), &pointer, &mut record)?;
            let mut again = Vec::new();
            folddb_layout::values::put_record(&mut again, one.table, one.key, value);
            let place = self.put_value(&again)?;
            let at = one.payload.as_ptr() as usize - start; // the payload lies inside of the frame's
            Pointer::move_to(&mut moved.get_or_insert_with(|| frame.payload.to_vec())[at..], place);
        }
        Ok(moved)
    }
}

/// The change that says that nothing is added to a segment any more.
pub(crate) fn seal_change(end: &ValuesEnd) -> Change {
    Change::SealValues { segment: end.number, end: end.end }
}

/// The pointer of a record of the log, if it holds one.
pub(crate) fn pointer_of<'a>(record: &frame::FrameRecord<'a>) -> Option<Pointer<'a>> {
    match record.op {
        LogOp::Op(kind) if kind.is_apart() => Pointer::decode(record.payload).ok(),
        _ => None,
    }
}

/// Reads a value of a store that is not open, in `dir`.
pub(crate) fn value_at_rest(
    files: &dyn Files,
    dir: &Path,
    of: (TableId, &[u8]),
    pointer: &Pointer<'_>,
) -> Result<Vec<u8>> {
    let mut record = Vec::new();
    let value = ValueFile::open(files, dir, pointer.place.segment)?.value(of, pointer, &mut record)?.len();
    record.drain(..record.len() - value);
    Ok(record)
}

/// Whether the values that a frame of the log in `dir` points to are there, as they were written.
///
/// # Errors
/// A failed read, which is no sign that they are not.
pub(crate) fn has_values(files: &dyn Files, dir: &Path, frame: &ReplayFrame<'_>) -> Result<bool> {
    for one in frame::records(frame.payload).flatten() {
        let Some(pointer) = pointer_of(&one) else { continue };
        match value_at_rest(files, dir, (one.table, one.key), &pointer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Corruption => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
