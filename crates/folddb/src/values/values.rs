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

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Piece, Pointer, Result, Rope, ValuePlace};
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::sync::{Mutex, MutexGuard, RwLock};
use folddb_host::{Files, Host};
use folddb_journal::shelves::{ShelfEnd, remove_shelf};
use folddb_journal::values::{ValueLane, values_path};
use folddb_journal::{NumberSource, ValueOptions, ValuesEnd};
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_manifest::{Change, FEATURE_LASTING_PIECES, FEATURE_ROPES, State};
use folddb_rules::place::ValuesIn;

use crate::background::reclaim;
use crate::background::reclaim::Reclaiming;
use crate::background::reclaim::live;
use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::engine::{Engine, Manifest};
use crate::state::hash_index::low_bits;
use crate::state::value_files::{Roster, ValueFiles};
use crate::values::directories;
use crate::values::directories::Swept;
use crate::write::commit;
use crate::write::encoded_batch::Encoded;

/// So many numbers are passed over at most before a new segment is refused.
const SEGMENTS_PASSED_MAX: usize = 64;

/// The value lane of an open store, and its files for reading.
pub(crate) struct Values {
    pub(crate) lane: Arc<ValueLane>,
    /// Held by whoever makes a segment: nobody makes a second one for the same want.
    making: Mutex<()>,
    pub(crate) files: ValueFiles,
    /// Held for reading from before values are put until what points to them is in a memtable: see `reclaim.rs`.
    pub(crate) placing: RwLock<()>,
    /// Of full segments that memtables may point to, where the log ended when everything that does was in it.
    pub(crate) fences: Mutex<BTreeMap<FileNumber, Lsn>>,
    /// Full segments that only parts point to.
    pub(crate) settled: Mutex<BTreeSet<FileNumber>>,
    /// Segments that hold pieces of values whose writers are not done, and how many writers; see `stream.rs`.
    pins: Mutex<BTreeMap<u32, usize>>,
    /// Full segments that were pinned when they were sealed, and have no fence yet.
    unfenced: Mutex<Vec<FileNumber>>,
    /// How often the parts of some table have changed, and as of when that was looked at for segments that are dead.
    pub(crate) installs: AtomicU64,
    pub(crate) looked: AtomicU64,
    /// How long the files are of the segments that this opening has made.
    lens: Mutex<BTreeMap<FileNumber, u64>>,
    /// Whether the manifest says that there may be ropes, and long values of hashed tables.
    has_ropes: AtomicBool,
    pub(crate) has_long: AtomicBool,
    pub(crate) has_lasting_pieces: AtomicBool,
    /// What is known of shelves since somebody looked through them.
    pub(crate) swept: Mutex<BTreeMap<FileNumber, Swept>>,
    /// What is being moved, and what is left alone. Held while a step is taken, and before the manifest's lock.
    pub(crate) reclaiming: Mutex<Reclaiming>,
    /// The files of values that the manifest lists, and their bytes. Of their own, so that who asks waits for no edit that is being
    /// synced.
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
            files,
            placing: RwLock::default(),
            fences: Mutex::default(),
            settled: Mutex::default(),
            pins: Mutex::default(),
            unfenced: Mutex::default(),
            installs: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            lens: Mutex::default(),
            has_ropes: AtomicBool::new(false),
            has_long: AtomicBool::new(false),
            has_lasting_pieces: AtomicBool::new(false),
            swept: Mutex::default(),
            reclaiming: Mutex::default(),
            listed: AtomicU64::new(0),
            listed_bytes: AtomicU64::new(0),
        }
    }

    /// Closes all files: the store is closed.
    pub(crate) fn let_go(&self) {
        self.files.let_go();
        self.lane.let_go();
    }

    /// Held by whoever makes a segment.
    pub(crate) fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// Somebody has put a piece of a value into a segment, and nothing points to it yet.
    pub(crate) fn pin(&self, segment: u32) {
        *self.pins.lock().entry(segment).or_default() += 1;
    }

    /// That value is there, or never will be.
    pub(crate) fn unpin(&self, segment: u32) {
        let mut pins = self.pins.lock();
        if let Some(count) = pins.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&segment);
            }
        }
    }
}

// ---- putting -----------------------------------------------------------------------------------------

/// Puts the values of a batch that lie apart into the lane, and their places into the batch.
#[cold]
pub(crate) fn put_values(engine: &Engine, batch: &mut Encoded) -> Result<()> {
    if batch.has_ropes {
        begin_ropes(engine, batch.has_lasting_ropes)?;
    }
    let time_ms = engine.host.clock.unix_millis();
    let Encoded { apart, values, payload, .. } = batch;
    let mut put_bytes = 0;
    for one in apart {
        let place = put_value(engine, one.values_in, &values[one.record.clone()])?;
        put_bytes += one.record.len() as u64;
        match one.is_timed {
            true => Pointer::patch(&mut payload[one.pointer_at..], place, time_ms),
            false => Pointer::move_to(&mut payload[one.pointer_at..], place),
        }
    }
    engine.counters.value_bytes_written.add(put_bytes);
    Ok(())
}

/// Says durably, before the first rope, that versions which do not know them must leave the store alone.
#[cold]
pub(crate) fn begin_ropes(engine: &Engine, have_deadlines: bool) -> Result<()> {
    if have_deadlines {
        require(engine, FEATURE_LASTING_PIECES, &engine.values.has_lasting_pieces)?;
    }
    require(engine, FEATURE_ROPES, &engine.values.has_ropes)
}

/// Says durably that whoever reads the store must know a feature; `is_said` where that is noted.
pub(crate) fn require(engine: &Engine, feature: u64, is_said: &AtomicBool) -> Result<()> {
    if is_said.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut manifest = engine.manifest.lock();
    if manifest.state().features & feature == 0 {
        engine.check_open()?;
        let said = manifest.append(&[Change::Require { features: feature }]);
        said.inspect_err(|error| commit::note_write_failure(engine, error))?;
    }
    is_said.store(true, Ordering::Release);
    Ok(())
}

/// Puts one record of a value into the lane.
pub(crate) fn put_value(engine: &Engine, values_in: ValuesIn, record: &[u8]) -> Result<ValuePlace> {
    if values_in == ValuesIn::Files {
        return directories::put_object(engine, record);
    }
    loop {
        let put = engine
            .values
            .lane
            .append(record)
            .inspect_err(|error| commit::note_write_failure(engine, error))?;
        if let Some(place) = put {
            return Ok(place);
        }
        make_room(engine, record.len() as u64)?;
    }
}

/// Makes a segment for a record of so many bytes, unless somebody else just has. It is listed before anything points to it.
fn make_room(engine: &Engine, record_bytes: u64) -> Result<()> {
    let values = &engine.values;
    let _only = values.making.lock();
    if values.lane.has_room(record_bytes) {
        return Ok(());
    }
    make_segment(engine, record_bytes)
}

fn make_segment(engine: &Engine, record_bytes: u64) -> Result<()> {
    let values = &engine.values;
    let segment = make_numbered(
        engine,
        &|| values.lane.make(record_bytes, value_bytes(engine)),
        &|segment| segment.number(),
        &|segment| values.lane.unmake(segment),
    )?;
    values.lens.lock().insert(segment.number(), segment.len_bytes());
    match list_values(engine, FileName::Values(segment.number())) {
        Ok(()) => values.lane.adopt(segment, record_bytes),
        Err(error) => {
            // After any other failure the edit may be on the disk, and what it lists must stay.
            if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
                values.lane.unmake(segment);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Makes a segment whose number has low bits that no other has: the slots of hashed tables hold no more of it.
pub(crate) fn make_numbered<S>(
    engine: &Engine,
    make: &dyn Fn() -> Result<S>,
    number_of: &dyn Fn(&S) -> FileNumber,
    unmake: &dyn Fn(S),
) -> Result<S> {
    for _ in 0..=SEGMENTS_PASSED_MAX {
        let segment = make().inspect_err(|error| commit::note_write_failure(engine, error))?;
        if engine.values.files.present().number_of(low_bits(number_of(&segment).0)).is_none() {
            return Ok(segment);
        }
        unmake(segment);
    }
    Err(Error::invalid("the store has too many value segments: no number is free for another"))
}

/// Says durably that pointers may lead to a segment that was made.
pub(crate) fn list_values(engine: &Engine, name: FileName) -> Result<()> {
    let values = &engine.values;
    let mut manifest = engine.manifest.lock();
    let mut changes: Vec<Change> = add_change(name).into_iter().collect();
    changes.extend(install::numbers_change(engine, manifest.state()));
    let listed = engine.check_open().and_then(|()| manifest.append(&changes));
    note_listed_values(engine, &manifest);
    drop(manifest);
    listed.inspect_err(|error| commit::note_write_failure(engine, error))?;
    values.files.join(name);
    Ok(())
}

// ---- upkeep ------------------------------------------------------------------------------------------

/// What no write should wait for: the next window, the next segment.
pub(crate) fn keep_values_ready(engine: &Engine) -> Result<()> {
    let lane = &engine.values.lane;
    lane.prepare();
    // Where space is short, the half of the segment that is left is used up first.
    if lane.wants_next() && engine.health.cause().is_none() && !engine.health.is_short() {
        let _only = engine.values.making.lock();
        if lane.wants_next() {
            make_segment(engine, 0)?;
        }
    }
    directories::keep_shelves_ready(engine)
}

/// Syncs what has gathered, so that an opening after a crash has little to look at, and seals what is full.
pub(crate) fn settle_values(engine: &Engine) -> Result<()> {
    let lane = &engine.values.lane;
    if lane.unsynced_bytes() > engine.options.values_segment_bytes() / 4
        && let Some(journal) = &engine.journal
    {
        commit::sync_to(engine, journal.end_lsn())?; // both lanes: the log then vouches for these values
        if lane.unsynced_bytes() > engine.options.values_segment_bytes() / 4 {
            sync_values(engine)?; // pieces of streams, of which the log does not know yet
        }
    }
    if lane.has_left_early() {
        sync_values(engine)?;
    }
    shed_values(engine)?;
    let (sealed, shelves) = (lane.take_sealed(), lane.shelves.take_sealed());
    if sealed.is_empty() && shelves.is_empty() {
        fence_unpinned(engine);
        return Ok(());
    }
    let changes: Vec<Change> =
        sealed.iter().map(seal_change).chain(shelves.iter().map(seal_shelf_change)).collect();
    // What is not sealed by an edit is sealed at the next opening; until then it is longer than it need be.
    edit_values(engine, &changes).inspect_err(|error| commit::note_write_failure(engine, error))?;
    sealed.iter().for_each(|&end| lane.cut(end));
    let numbers = sealed.iter().map(|segment| segment.number);
    fence(engine, numbers.chain(shelves.iter().map(|shelf| shelf.number)).collect());
    Ok(())
}

/// Gives up open segments that are much too long for what the lane holds by now.
fn shed_values(engine: &Engine) -> Result<()> {
    if engine.health.cause().is_some() {
        return Ok(());
    }
    let _only = engine.values.making.lock();
    let Some(gone) = engine.values.lane.shed(value_bytes(engine)) else { return Ok(()) };
    let number = gone.number();
    drop(gone);
    let mut manifest = engine.manifest.lock();
    engine.check_open()?;
    // Where the edit fails it stays as a segment without values, which the next opening takes off the list.
    let unlisted = manifest.append(&[Change::RemoveValues { segment: number }]);
    unlisted.inspect_err(|error| commit::note_write_failure(engine, error))?;
    note_listed_values(engine, &manifest);
    reclaim::begin_without(engine, &manifest, &[number]);
    Ok(())
}

/// Notes where the log ends now that all that will ever point to these segments is in it.
fn fence(engine: &Engine, sealed: Vec<FileNumber>) {
    drop(engine.values.placing.write()); // who has put values into them has them in a memtable now, or pins them
    engine.values.unfenced.lock().extend(sealed);
    fence_unpinned(engine);
}

/// Notes the same of segments that no writer of a stream holds any more.
fn fence_unpinned(engine: &Engine) {
    let mut unfenced = engine.values.unfenced.lock();
    if unfenced.is_empty() {
        return;
    }
    let Some(journal) = &engine.journal else { return };
    let pins = engine.values.pins.lock();
    let (rest, free) = unfenced.drain(..).partition(|number| pins.contains_key(&(number.0 as u32)));
    *unfenced = rest;
    drop(pins);
    let free: Vec<FileNumber> = free;
    if free.is_empty() {
        return;
    }
    let end = journal.end_lsn();
    engine.values.fences.lock().extend(free.into_iter().map(|number| (number, end)));
    engine.values.installs.fetch_add(1, Ordering::AcqRel);
}

/// Makes all values durable that were put so far.
pub(crate) fn sync_values(engine: &Engine) -> Result<()> {
    engine.values.lane.sync().inspect_err(|error| commit::note_write_failure(engine, error))
}

/// Ends the lane in order: what it holds is sealed, what it never used goes.
pub(crate) fn close_values(engine: &Engine) -> Result<()> {
    let lane = &engine.values.lane;
    let ((ends, unused), (shelves, empty)) = (lane.close()?, lane.shelves.close()?);
    let unused: Vec<FileName> =
        unused.into_iter().map(FileName::Values).chain(empty.into_iter().map(FileName::Shelf)).collect();
    let mut changes: Vec<Change> =
        ends.iter().map(seal_change).chain(shelves.iter().map(seal_shelf_change)).collect();
    let numbers = unused.iter().filter_map(|name| name.number());
    changes.extend(numbers.map(|segment| Change::RemoveValues { segment }));
    if changes.is_empty() {
        return Ok(());
    }
    edit_values(engine, &changes)?;
    ends.iter().for_each(|&end| lane.cut(end));
    remove_values(engine, &unused);
    Ok(())
}

/// Removes segments that a durable edit no longer lists.
pub(crate) fn remove_values(engine: &Engine, names: &[FileName]) {
    names.iter().for_each(|&name| remove_leftover(&*engine.host.files, &engine.dir, name));
}

pub(crate) fn edit_values(engine: &Engine, changes: &[Change]) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    let appended = manifest.append(changes);
    note_listed_values(engine, &manifest);
    appended
}

/// Takes note of which segments the manifest lists now.
pub(crate) fn note_listed_values(engine: &Engine, manifest: &Manifest) {
    let state = manifest.state();
    let segments: u64 = state.values.keys().map(|&number| segment_bytes(engine, state, number)).sum();
    let listed_bytes = segments + state.moved_files.values().sum::<u64>();
    engine.values.listed_bytes.store(listed_bytes, Ordering::Relaxed);
    engine.values.listed.store((state.values.len() + state.moved_files.len()) as u64, Ordering::Relaxed);
    engine.values.lens.lock().retain(|number, _| {
        let is_open = state.values.get(number).is_none_or(Option::is_none); // what is sealed has its end in the manifest
        is_open && !state.moved.contains_key(number)
    });
}

/// Bytes of a segment: what counts of one that is sealed, else its length.
pub(crate) fn segment_bytes(engine: &Engine, state: &State, number: FileNumber) -> u64 {
    let sealed_end = state.values.get(&number).copied().flatten();
    if state.is_shelf(number) {
        return directories::shelf_bytes(engine, number, sealed_end);
    }
    let made = || engine.values.lens.lock().get(&number).copied();
    let there = || engine.host.files.len_bytes(&values_path(&engine.dir, number)).ok();
    sealed_end.or_else(made).or_else(there).unwrap_or(0)
}

/// How many files of values there are.
pub(crate) fn value_segments_listed(engine: &Engine) -> u64 {
    engine.values.listed.load(Ordering::Relaxed)
}

/// Bytes of the value segments: of those that are sealed, what counts, of the others their length; of open directories, what is
/// in them.
pub(crate) fn value_bytes(engine: &Engine) -> u64 {
    engine.values.listed_bytes.load(Ordering::Relaxed) + engine.values.lane.shelves.open_bytes()
}

/// As much of them as parts, and the indexes of hashed tables, point to.
pub(crate) fn value_live_bytes(engine: &Engine) -> u64 {
    live::alive(engine).values().map(|alive| alive.bytes).sum()
}

// ---- loading -----------------------------------------------------------------------------------------

/// Reads the value that a pointer of `key`, or a rope, leads to, into `record`.
///
/// # Errors
/// Damage, naming table, key, file and offset; a failed read.
pub(crate) fn load_value<'r>(
    engine: &Engine,
    of: Option<&Roster>,
    table: &TableCore,
    key: &[u8],
    pointer: &[u8],
    record: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    let present; // a search that met no pointer, in a table that says it has none
    let of = match of {
        Some(of) => of,
        None => {
            present = engine.values.files.present();
            &present
        }
    };
    let rope = rope(table, key, pointer)?;
    match rope.as_pointer() {
        Some(pointer) => load_piece(engine, of, table, key, &pointer, record),
        None => load_pieces(engine, of, table, key, &rope, record),
    }
}

/// Reads a value in one piece, or one piece of a value, into `record`.
pub(crate) fn load_piece<'r>(
    engine: &Engine,
    of: &Roster,
    table: &TableCore,
    key: &[u8],
    pointer: &Pointer<'_>,
    record: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    engine.counters.value_reads.add(1);
    let opened = engine.values.files.open(of, pointer.place.segment);
    let read = opened.and_then(|opened| opened.value((table.id, key), pointer, record).map(<[u8]>::len));
    let len = read.map_err(|error| of_key(table, key, error))?;
    Ok(&record[record.len() - len..])
}

/// Reads all pieces of a value into `value`.
#[cold]
fn load_pieces<'r>(
    engine: &Engine,
    of: &Roster,
    table: &TableCore,
    key: &[u8],
    rope: &Rope<'_>,
    value: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    value.clear();
    let mut record = Vec::new();
    for piece in rope.iter() {
        match (piece, piece.pointer()) {
            (_, Some(pointer)) => {
                value.extend_from_slice(load_piece(engine, of, table, key, &pointer, &mut record)?);
            }
            (Piece::Inline(bytes), None) => value.extend_from_slice(bytes),
            (Piece::Apart { .. }, None) => {} // cannot be
        }
    }
    Ok(value)
}

/// What the payload of an op whose value lies apart says.
pub(crate) fn rope<'p>(table: &TableCore, key: &[u8], payload: &'p [u8]) -> Result<Rope<'p>> {
    Rope::decode(payload).map_err(|cause| {
        of_key(table, key, Error::new(ErrorKind::Corruption, format!("its pointer: {cause}")))
    })
}

/// Says of an error whose value it is of.
#[cold]
pub(crate) fn of_key(table: &TableCore, key: &[u8], error: Error) -> Error {
    let key = table.rules.rules.key_codec().show_line(key);
    error.context(format!("the value of key {key} of table `{}`", table.name))
}

/// The change that says that nothing is added to a segment any more.
pub(crate) fn seal_change(end: &ValuesEnd) -> Change {
    Change::SealValues { segment: end.number, end: end.end }
}

/// The same of a directory.
pub(crate) fn seal_shelf_change(end: &ShelfEnd) -> Change {
    Change::SealShelf { segment: end.number, bytes: end.bytes, objects: end.objects }
}

/// The change that lists a segment of this name.
pub(crate) fn add_change(name: FileName) -> Option<Change> {
    match name {
        FileName::Values(segment) => Some(Change::AddValues { segment }),
        FileName::Shelf(segment) => Some(Change::AddShelf { segment }),
        _ => None,
    }
}

/// Removes what nothing lists. What stays behind is a leftover that the next opening removes.
pub(crate) fn remove_leftover(files: &dyn Files, dir: &Path, name: FileName) {
    let path = dir.join(name.to_string());
    match name {
        FileName::Shelf(_) => remove_shelf(files, &path),
        _ => drop(files.remove(&path)),
    }
}

/// What a record of the log points to, if it does.
pub(crate) fn rope_of<'a>(record: &frame::FrameRecord<'a>) -> Option<Rope<'a>> {
    Rope::decode(record.pointer()?).ok()
}
