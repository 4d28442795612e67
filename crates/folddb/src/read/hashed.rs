//! The read path of a hashed table: the index says where the key's record may lie, and one read gets it.
//!
//! ```text
//!   get        candidates of the point, none or one but for one time in 2^40 / keys: each read by its size class, at most a
//!              quarter too much, and its key compared
//!   head,      the same, and of the record only its head and its key are read: size and hash of the value stand there
//!   contains
//! ```
//!
//! Where the table keeps versions, candidates are looked at from the newest on: of one key what was written later lies later. Where values
//! have fronts (`hash_front.rs`), what was deleted or has expired is none for readers.
//!
//! A record that is longer than all size classes (some 3.7 MB) takes a second read. A reader of now reads at the published seq,
//! as one of a snapshot does at that of the snapshot: see `hashed.rs`. Used by `read`, `head`, `hashed_write` and `hashed_scan`.

use std::sync::Arc;

use folddb_base::checksum::hash64;
use folddb_base::limits::{STREAM_BYTES_MAX, VALUE_BYTES_MAX};
use folddb_base::pointer::value_hash;
use folddb_base::stamp::NEVER;
use folddb_base::{Error, Pointer, Result, ValuePlace};
use folddb_hash::Slot;
use folddb_layout::hash_front::{FRONT_BYTES, Front};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};
use folddb_rules::State;

use crate::read::head::Head;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::hash_index::{Hashed, RecordsOf};
use crate::state::pinned_files;
use crate::state::snapshots::At;
use crate::state::value_files::{Roster, ValueFile};

/// How much of a record is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Its head and its key.
    Head,
    /// All of it, and its value is checked.
    Whole,
    /// The same, but of a value that is longer than [`VALUE_BYTES_MAX`] its head and its key.
    Short,
    /// The same, and all of such a value was read and checked, too.
    Sound,
}

/// As whom an index is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    /// Who has locked the point: the last change counts, published or not.
    Writer,
    /// A reader of what is published when he looks.
    Reader,
    /// A reader of a snapshot.
    Snapshot(At),
}

impl As {
    /// The reader at a snapshot's seq, or of now.
    pub(crate) fn reader(at: Option<At>) -> As {
        at.map_or(As::Reader, As::Snapshot)
    }
}

/// A record that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) slot: Slot,
    head: RecordHead,
    /// Of a table whose values have one.
    pub(crate) front: Option<Front>,
}

impl Found {
    pub(crate) fn front_bytes(&self) -> usize {
        if self.front.is_some() { FRONT_BYTES } else { 0 }
    }

    /// Its value in the bytes of the record; empty where it is not among them.
    pub(crate) fn value<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        let start = RECORD_HEAD_BYTES + usize::from(self.head.key_len);
        let (from, len) = self.value_in_record();
        record.get(start + from as usize..start + (from + len) as usize).unwrap_or(&[])
    }

    /// Where the value stands in the record, behind the key, and how long it is: behind its front,
    /// or before it.
    pub(crate) fn value_in_record(&self) -> (u64, u64) {
        let front_bytes = self.front_bytes() as u64;
        (if self.head.front_is_behind { 0 } else { front_bytes }, self.head.len.saturating_sub(front_bytes))
    }

    /// Where its record lies, of whose bytes [`Found::front_bytes`] are none of the value.
    pub(crate) fn pointer(&self, of: &Roster) -> Pointer<'static> {
        let (low, unit) = (self.slot.segment(), self.slot.unit());
        let place = ValuePlace { segment: of.number_of(low).unwrap_or(low), unit };
        Pointer { place, time_ms: 0, hash: self.head.hash, len: self.head.len, head: &[] }
    }

    /// Whether its value is longer than what is written at once.
    pub(crate) fn is_long(&self) -> bool {
        self.head.len.saturating_sub(self.front_bytes() as u64) > VALUE_BYTES_MAX as u64
    }

    /// Whether it is what the key has at a time.
    pub(crate) fn is_alive(&self, time_ms: u64) -> bool {
        self.front.is_none_or(|front| front.is_alive(time_ms))
    }

    /// Its key in the bytes of the record.
    pub(crate) fn key<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        &record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + usize::from(self.head.key_len)]
    }

    /// Bytes that it takes in its segment.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.head.record_bytes()
    }

    /// See [`Head::version`].
    fn version(&self, of: &Roster) -> u64 {
        let place = self.pointer(of).place;
        let place = u64::from(place.segment) << 32 | u64::from(place.unit);
        let written_ms = self.front.map_or(0, |front| front.stamp.write_ms);
        hash64(u64::from(self.head.hash), &[place.to_le_bytes(), written_ms.to_le_bytes()].concat())
    }

    /// Until when its value lasts; none where it does for ever.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.front.map(|front| front.stamp.deadline_ms).filter(|&deadline| deadline < NEVER)
    }

    /// What is known of its value.
    pub(crate) fn head_of_value(&self, of: &Roster) -> Head {
        Head {
            size_bytes: self.head.len.saturating_sub(self.front_bytes() as u64),
            hash: self.head.hash,
            version: Some(self.version(of)),
            written_ms: self.front.map(|front| front.stamp.write_ms),
            deadline_ms: self.deadline_ms(),
            is_apart: true,
            pieces: 1,
            bytes: Vec::new(),
        }
    }
}

/// Reads the record of a key into `record`; none where it has none. Who writes gets the newest also where it is no value.
///
/// # Errors
/// Damage, naming table, key, file and offset; a failed read.
pub(crate) fn look_up(
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
    (table, hashed): (&TableCore, &Hashed),
    key: &[u8],
    who: As,
    reading: Reading,
    record: &mut Vec<u8>,
) -> Result<Option<(Found, Arc<Roster>)>> {
    let point = hashed.point(key);
    let mut slots = Vec::new();
    loop {
        let round = engine.values.files.round();
        let at = match who {
            As::Writer => None,
            As::Reader => Some(engine.published()),
            As::Snapshot(at) => Some(at.seq),
        };
        slots.clear();
        let of_table = |error: Error| error.context(format!("the index of table `{}`", table.name));
        hashed.index.candidates(point, at, &mut slots).map_err(of_table)?;
        engine.check_readable(table)?;
        check_not_over(engine, who)?;
        if slots.is_empty() {
            return Ok(None);
        }
        let Some(of) = engine.values.files.roster_of(round) else { continue };
        if slots.len() > 1 && table.records_of().has_fronts {
            newest_first(&of, &mut slots);
        }
        for &slot in &slots {
            let found = read_slot(engine, &of, table, slot, Some(key), reading, record);
            if let Some(found) = found.map_err(|error| of_key(table, key, error))? {
                return Ok(is_seen(engine, &found, who).then_some((found, of)));
            }
        }
        return Ok(None);
    }
}

/// Fails where a snapshot has ended for its age: then the index may have forgotten what it sees. To be asked after the index.
#[inline]
fn check_not_over(engine: &Engine, who: As) -> Result<()> {
    match who {
        As::Snapshot(at) => pinned_files::own_files_at(engine, Some(at)).map(drop),
        As::Writer | As::Reader => Ok(()),
    }
}

/// Whether what was found is what a reader gets.
fn is_seen(engine: &Engine, found: &Found, who: As) -> bool {
    match (who, found.front) {
        (As::Writer, _) | (_, None) => true,
        (As::Reader, Some(_)) => found.is_alive(clock::now_ms(engine)),
        (As::Snapshot(at), Some(_)) => found.is_alive(at.time_ms),
    }
}

/// All versions that are kept of a key, newest first: hands each with its record to `visit`.
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
        let at = match who {
            As::Writer => None,
            As::Reader => Some(engine.published()),
            As::Snapshot(at) => Some(at.seq),
        };
        slots.clear();
        hashed.index.candidates(hashed.point(key), at, &mut slots)?;
        engine.check_readable(table)?;
        check_not_over(engine, who)?;
        let Some(of) = engine.values.files.roster_of(round) else { continue };
        newest_first(&of, &mut slots);
        for &slot in &slots {
            let found = read_slot(engine, &of, table, slot, Some(key), reading, &mut record);
            if let Some(found) = found.map_err(|error| of_key(table, key, error))? {
                visit(found, &record);
            }
        }
        return Ok(());
    }
}

/// Reads the record that a slot leads to; none where it is of another key than the one that is looked for.
pub(crate) fn read_slot(
    engine: &Engine,
    of: &Roster,
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
    read_record(&file, table.records_of(), slot, key, reading, record, &|| counter.add(1))
}

/// Hands the value of `key` to `take`.
pub(crate) fn get_hashed<R>(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
    take: impl FnOnce(Option<&[u8]>) -> Result<R>,
) -> Result<R> {
    crate::read::get::with_record(|record| {
        let found = look_up(engine, of, key, As::reader(at), Reading::Whole, record)?;
        engine.counters.gets.add(1);
        take(found.map(|found| found.value(record)))
    })
}

/// Hands what `key` has to `take`, as a pointer to its value: for whoever reads the value some
/// other way. Behind a long value that it leads to stands its front, where the table's values
/// have fronts; a shorter one of such a table is handed over itself.
pub(crate) fn state_hashed<R>(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
    take: impl FnOnce(Option<State<'_>>, Option<&Arc<Roster>>) -> Result<R>,
) -> Result<R> {
    // Where the front of a short value stands is known here only.
    let reading = if of.0.records_of().has_fronts { Reading::Short } else { Reading::Head };
    crate::read::get::with_record(|record| {
        engine.counters.gets.add(1);
        let found = look_up_in(engine, of, key, As::reader(at), reading, record)?;
        let Some((found, of)) = found else { return take(None, None) };
        if found.front.is_some() && !found.is_long() {
            return take(Some(State::Value(found.value(record))), None);
        }
        let mut pointer = Vec::new();
        found.pointer(&of).put(&mut pointer);
        take(Some(State::Apart(&pointer)), Some(&of))
    })
}

/// What stands before the value of `key`, and where to look for it: one small read.
pub(crate) fn front_of(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
) -> Result<Option<(Found, Arc<Roster>)>> {
    engine.counters.gets.add(1);
    look_up_in(engine, of, key, As::reader(at), Reading::Head, &mut Vec::new())
}

/// The head of `key`: one small read.
pub(crate) fn head_hashed(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: Option<At>,
) -> Result<Option<Head>> {
    crate::read::get::with_record(|record| {
        let found = look_up_in(engine, of, key, As::reader(at), Reading::Head, record)?;
        Ok(found.map(|(found, roster)| found.head_of_value(&roster)))
    })
}

/// Reads the record that a slot leads to into `record`; none where it is of another key than the one that is looked for. `read` is
/// told of each read.
///
/// # Errors
/// Damage, naming file and offset; a failed read.
pub(crate) fn read_record(
    file: &ValueFile,
    of: RecordsOf,
    slot: Slot,
    key: Option<&[u8]>,
    reading: Reading,
    record: &mut Vec<u8>,
    read: &dyn Fn(),
) -> Result<Option<Found>> {
    let own_bytes = if of.has_fronts { FRONT_BYTES as u64 } else { 0 };
    let front_bytes =
        RECORD_HEAD_BYTES as u64 + key.map_or(KEY_GUESS_BYTES, |key| key.len() as u64) + own_bytes;
    let len = match reading {
        Reading::Head => front_bytes,
        Reading::Whole | Reading::Short | Reading::Sound => slot.class().read_bytes().unwrap_or(front_bytes),
    };
    let need = |len: u64, record: &mut Vec<u8>| {
        if (record.len() as u64) < len {
            read();
            file.front_of(slot, len, record)?;
        }
        Ok::<_, Error>(record.len() as u64 >= len)
    };
    record.clear();
    need(len, record)?;
    let Some(mut found) = RecordHead::decode(record).ok().map(|head| Found { slot, head, front: None })
    else {
        return Err(damaged(file, slot));
    };
    // The key first: a head that is damaged must not pass for that of another key.
    let key_end = RECORD_HEAD_BYTES as u64 + u64::from(found.head.key_len);
    let is_whole = need(key_end, record)?;
    if !is_whole || found.head.table != of.table || !found.head.is_of(found.key(record)) {
        return Err(damaged(file, slot));
    }
    if key.is_some_and(|key| key != found.key(record)) {
        return Ok(None);
    }
    let is_long = found.head.len > VALUE_BYTES_MAX as u64 + own_bytes;
    if is_long && matches!(reading, Reading::Short | Reading::Sound) {
        let hash = match reading {
            Reading::Sound => file.hash_of(slot, (key_end, found.head.len), found.key(record))?,
            _ => found.head.hash,
        };
        if hash != found.head.hash {
            return Err(damaged(file, slot));
        }
        record.truncate(key_end as usize);
    } else if reading != Reading::Head {
        let fits = found.head.len <= STREAM_BYTES_MAX + own_bytes;
        if !fits || !need(key_end.saturating_add(found.head.len), record)? {
            return Err(damaged(file, slot));
        }
        if value_hash(found.key(record), found.value(record)) != found.head.hash {
            return Err(damaged(file, slot));
        }
    }
    if of.has_fronts {
        let behind = found.head.len.checked_sub(own_bytes).ok_or_else(|| damaged(file, slot))?;
        let from = key_end + if found.head.front_is_behind { behind } else { 0 };
        let mut front = [0; FRONT_BYTES];
        match record.get(from as usize..(from + own_bytes) as usize) {
            Some(bytes) => front.copy_from_slice(bytes),
            None => {
                read();
                file.bytes_of(slot, from, &mut front)?;
            }
        }
        found.front = Some(Front::split(&front).map_err(|_| damaged(file, slot))?.0);
        if found.is_long() && !found.head.front_is_behind {
            return Err(damaged(file, slot)); // nobody writes such a one
        }
    }
    Ok(Some(found))
}

/// Whether a record of the value lane whose value has so many bytes is longer than what is written at once.
pub(crate) fn is_long(value_bytes: u64) -> bool {
    value_bytes > (VALUE_BYTES_MAX + FRONT_BYTES) as u64
}

/// So many bytes of key are read with the head of a record whose key is not known; a longer one takes a second read.
const KEY_GUESS_BYTES: u64 = 104;

/// Orders the slots of one point by when their records were written, the newest first.
pub(crate) fn newest_first(of: &Roster, slots: &mut [Slot]) {
    let place = |slot: &Slot| (of.number_of(slot.segment()).unwrap_or(slot.segment()), slot.unit());
    slots.sort_unstable_by_key(|slot| std::cmp::Reverse(place(slot)));
}

#[cold]
fn damaged(file: &ValueFile, slot: Slot) -> Error {
    file.damaged(slot, "the record is not the one that the index leads to")
}

fn of_key(table: &TableCore, key: &[u8], error: Error) -> Error {
    let key = table.rules.rules.key_codec().show_line(key);
    error.context(format!("the value of key {key} of table `{}`", table.name))
}
