//! The read path of a hashed table: the index says where the key's record may be, and one read gets
//! it.
//!
//! ```text
//!   get        candidates of the point, none or one but for one time in 2^40 / keys: each read by its size class, at most a
//!              quarter too much, and its key compared
//!   head,      the same, and of the record only its head and its key are read: they have size and hash of the value
//!   contains
//! ```
//!
//! If the table keeps versions, candidates are examined from the newest on: later versions of a key
//! are at later places. If values have fronts (`hash_front.rs`), readers ignore deleted and expired
//! ones.
//!
//! A record that is longer than all size classes (some 3.7 MB) takes a second read. A reader of the
//! present reads at the published seq, one of a snapshot at that of the snapshot: see
//! `hash_index.rs`. Used by `read`, `head`, `write/hashed` and `hashed_scan`.

use std::sync::Arc;

use folddb_base::{Error, Result, Seq};
use folddb_hash::Slot;
use folddb_rules::State;

use crate::read::buffer::with_slots;
use crate::read::pinned;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::hash_index::Hashed;
use crate::state::snapshots::At;
use crate::values::hashed_record;
use crate::values::hashed_record::{Found, Reading};
use crate::values::head::Head;
use crate::values::load;
use folddb_value_log::SegmentMap;

/// For whom an index is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// A writer that has locked the point: the last change counts, published or not.
    Writer,
    /// A reader of what is published at that time.
    Reader,
    /// A reader of a snapshot.
    Snapshot(At),
}

impl As {
    /// A reader at a snapshot's seq, or of the present.
    pub fn reader(at: Option<At>) -> As {
        at.map_or(As::Reader, As::Snapshot)
    }

    /// The last change that counts; for a writer all changes do.
    #[inline]
    fn seq(self, engine: &Engine) -> Option<Seq> {
        match self {
            As::Writer => None,
            As::Reader => Some(engine.published()),
            As::Snapshot(at) => Some(at.seq),
        }
    }
}

/// Reads the record of a key into `record`; none if it has none. A writer gets the newest even if
/// that is not a live value.
///
/// # Errors
/// Damage, naming table, key, file and offset; a failed read.
pub fn look_up(
    engine: &Engine,
    (table, hashed): (&TableCore, &Hashed),
    key: &[u8],
    who: As,
    reading: Reading,
    record: &mut Vec<u8>,
) -> Result<Option<Found>> {
    let found = look_up_in(engine, (table, hashed), key, who, reading, record)?;
    Ok(found.map(|(found, _)| found))
}

/// The same, with the files in which the record is.
fn look_up_in(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    who: As,
    reading: Reading,
    record: &mut Vec<u8>,
) -> Result<Option<(Found, Arc<SegmentMap>)>> {
    with_slots(|slots| look_up_by(engine, of, key, who, reading, (slots, record)))
}

/// The same, with buffers for what the index and the file give.
fn look_up_by(
    engine: &Engine,
    (table, hashed): (&TableCore, &Hashed),
    key: &[u8],
    who: As,
    reading: Reading,
    (slots, record): (&mut Vec<Slot>, &mut Vec<u8>),
) -> Result<Option<(Found, Arc<SegmentMap>)>> {
    let point = hashed.point(key);
    loop {
        let round = engine.values.files.round();
        let at = who.seq(engine);
        slots.clear();
        let of_table = |error: Error| error.context(format!("the index of table `{}`", table.name));
        hashed.index.candidates(point, at, slots).map_err(of_table)?;
        engine.check_readable(table)?;
        check_not_over(engine, who)?;
        if slots.is_empty() {
            return Ok(None);
        }
        let Some(of) = engine.values.files.segment_map_of(round) else { continue };
        if slots.len() > 1 && table.records_of().has_fronts {
            hashed_record::newest_first(&of, slots);
        }
        for &slot in &*slots {
            let found = read_slot(engine, &of, table, slot, Some(key), reading, record);
            if let Some(found) = found.map_err(|error| load::of_key(table, key, error))? {
                return Ok(is_seen(engine, &found, who).then_some((found, of)));
            }
        }
        return Ok(None);
    }
}

/// Fails if a snapshot has ended because of its age: then the index may have forgotten what it
/// sees. Must be called after reading the index.
#[inline]
fn check_not_over(engine: &Engine, who: As) -> Result<()> {
    match who {
        As::Snapshot(at) => pinned::pinned_files_at(engine, Some(at)).map(drop),
        As::Writer | As::Reader => Ok(()),
    }
}

/// Whether a reader sees what was found.
fn is_seen(engine: &Engine, found: &Found, who: As) -> bool {
    match (who, found.front) {
        (As::Writer, _) | (_, None) => true,
        (As::Reader, Some(_)) => found.is_alive(clock::now_ms(engine)),
        (As::Snapshot(at), Some(_)) => found.is_alive(at.time_ms),
    }
}

/// Passes all versions of a key with their records to `visit`, newest first.
pub(crate) fn each_version(
    engine: &Engine,
    (table, hashed): (&TableCore, &Hashed),
    key: &[u8],
    who: As,
    reading: Reading,
    visit: &mut dyn FnMut(Found, &[u8]),
) -> Result<()> {
    let (mut slots, mut record) = (Vec::new(), Vec::new());
    loop {
        let round = engine.values.files.round();
        let at = who.seq(engine);
        slots.clear();
        hashed.index.candidates(hashed.point(key), at, &mut slots)?;
        engine.check_readable(table)?;
        check_not_over(engine, who)?;
        let Some(of) = engine.values.files.segment_map_of(round) else { continue };
        hashed_record::newest_first(&of, &mut slots);
        for &slot in &slots {
            let found = read_slot(engine, &of, table, slot, Some(key), reading, &mut record);
            if let Some(found) = found.map_err(|error| load::of_key(table, key, error))? {
                visit(found, &record);
            }
        }
        return Ok(());
    }
}

/// Reads the record that a slot points to; none if it belongs to another key.
pub(crate) fn read_slot(
    engine: &Engine,
    of: &SegmentMap,
    table: &TableCore,
    slot: Slot,
    key: Option<&[u8]>,
    reading: Reading,
    record: &mut Vec<u8>,
) -> Result<Option<Found>> {
    let file = engine.values.files.open_low(of, slot.segment())?;
    let counter = match reading {
        Reading::Head => &engine.counters.value_head_reads,
        Reading::Whole | Reading::Short | Reading::Sound => &engine.counters.value_reads,
    };
    hashed_record::read_record(&file, table.records_of(), slot, key, reading, record, &|| counter.add(1))
}

/// Asks the system for the records of `key`, and does not wait for them. A failure is left to the
/// read.
#[cold]
pub(crate) fn ask_for(engine: &Engine, hashed: &Hashed, key: &[u8], at: Option<At>) {
    let round = engine.values.files.round();
    let mut slots = Vec::new();
    let found = hashed.index.candidates(hashed.point(key), As::reader(at).seq(engine), &mut slots);
    let Some(of) = engine.values.files.segment_map_of(round).filter(|_| found.is_ok()) else { return };
    for slot in slots {
        if let Ok(file) = engine.values.files.open_low(&of, slot.segment()) {
            hashed_record::ask_for(&file, slot);
        }
    }
}

/// Passes the value of `key` to `take`.
pub(crate) fn get_hashed<R>(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
    take: impl FnOnce(Option<&[u8]>) -> Result<R>,
) -> Result<R> {
    crate::read::buffer::with_record(|record| {
        let found = look_up(engine, of, key, As::reader(at), Reading::Whole, record)?;
        engine.counters.gets.add(1);
        take(found.map(|found| found.value(record)))
    })
}

/// Passes the state of `key` to `take`, as a pointer to its value, for callers that read the value
/// in another way. A long value is followed by its front, if the table's values have fronts; a
/// shorter value of such a table is passed itself.
pub(crate) fn state_hashed<R>(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
    take: impl FnOnce(Option<State<'_>>, Option<&Arc<SegmentMap>>) -> Result<R>,
) -> Result<R> {
    // The place of the front of a short value is known only here.
    let reading = if of.0.records_of().has_fronts { Reading::Short } else { Reading::Head };
    crate::read::buffer::with_record(|record| {
        engine.counters.gets.add(1);
        let found = look_up_in(engine, of, key, As::reader(at), reading, record)?;
        let Some((found, of)) = found else { return take(None, None) };
        if found.front.is_some() && !found.is_long() {
            return take(Some(State::Value(found.value(record))), None);
        }
        let mut pointer = Vec::new();
        found.pointer(&of).put(&mut pointer);
        take(Some(State::Separated(&pointer)), Some(&of))
    })
}

/// The front and the place of the value of `key`: one small read.
pub(crate) fn front_of(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
) -> Result<Option<(Found, Arc<SegmentMap>)>> {
    engine.counters.gets.add(1);
    crate::read::buffer::with_record(|record| {
        look_up_in(engine, of, key, As::reader(at), Reading::Head, record)
    })
}

/// The head of `key`: one small read.
pub(crate) fn head_hashed(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
) -> Result<Option<Head>> {
    crate::read::buffer::with_record(|record| {
        let found = look_up_in(engine, of, key, As::reader(at), Reading::Head, record)?;
        Ok(found.map(|(found, segment_map)| found.head_of_value(&segment_map)))
    })
}
