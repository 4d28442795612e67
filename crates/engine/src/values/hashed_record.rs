//! The record of a value of a hashed table, read from a value file: its head, its key, the front of
//! its value, the value. A record that does not match the index is damage.

use folddb_base::checksum::hash64;
use folddb_base::limits::{STREAM_BYTES_MAX, VALUE_BYTES_MAX};
use folddb_base::pointer::value_hash;
use folddb_base::stamp::NEVER;
use folddb_base::{Error, Pointer, Result, ValuePlace};
use folddb_hash::{SizeClass, Slot};
use folddb_layout::hash_front::{FRONT_BYTES, Front};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};
use folddb_rules::time::moment;

use crate::state::hash_index::RecordsOf;
use crate::values::head::Head;
use folddb_value_log::value_file::ShortPlace;
use folddb_value_log::{SegmentMap, ValueFile};

/// How many bytes of an unknown key are read together with the head of its record; a longer key
/// takes a second read.
pub(crate) const KEY_GUESS_BYTES: u64 = 104;

/// How much of a record is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its head and its key.
    Head,
    /// All of it, with its value checked.
    Whole,
    /// The same, but only its head and its key if the value is longer than [`VALUE_BYTES_MAX`].
    Short,
    /// The same, but such a value is also read and checked.
    Sound,
}

/// A record that was found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub slot: Slot,
    pub head: RecordHead,
    /// The front, in a table whose values have one.
    pub front: Option<Front>,
}

impl Found {
    pub fn front_bytes(&self) -> usize {
        if self.front.is_some() { FRONT_BYTES } else { 0 }
    }

    /// Its value in the bytes of the record; empty if they do not include it.
    pub fn value<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        let start = RECORD_HEAD_BYTES + usize::from(self.head.key_len);
        let (from, len) = self.value_in_record();
        record.get(start + from as usize..start + (from + len) as usize).unwrap_or(&[])
    }

    /// The place of the value after the key of the record, and its length: after its front, or
    /// before it.
    pub(crate) fn value_in_record(&self) -> (u64, u64) {
        let front_bytes = self.front_bytes() as u64;
        (if self.head.front_is_behind { 0 } else { front_bytes }, self.head.len.saturating_sub(front_bytes))
    }

    /// Where its record is; [`Found::front_bytes`] of its bytes do not belong to the value.
    pub fn pointer(&self, of: &SegmentMap) -> Pointer<'static> {
        let (low, unit) = (self.slot.segment(), self.slot.unit());
        let place = ValuePlace { segment: of.number_of(low).unwrap_or(low), unit };
        Pointer { place, time_ms: 0, hash: self.head.hash, len: self.head.len, head: &[] }
    }

    /// Whether its value is longer than a single write.
    pub fn is_long(&self) -> bool {
        self.head.len.saturating_sub(self.front_bytes() as u64) > VALUE_BYTES_MAX as u64
    }

    /// Whether it is the live value of the key at a time.
    pub fn is_alive(&self, time_ms: u64) -> bool {
        self.front.is_none_or(|front| front.is_alive(time_ms))
    }

    /// Its key in the bytes of the record.
    pub fn key<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        &record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + usize::from(self.head.key_len)]
    }

    /// Bytes that it takes in its segment.
    pub fn record_bytes(&self) -> u64 {
        self.head.record_bytes()
    }

    /// See [`Head::version`].
    fn version(&self, of: &SegmentMap) -> u64 {
        let place = self.pointer(of).place;
        let place = u64::from(place.segment) << 32 | u64::from(place.unit);
        let written_ms = self.front.map_or(0, |front| front.stamp.write_ms);
        let what = u128::from(place) | u128::from(written_ms) << 64;
        hash64(u64::from(self.head.hash), &what.to_le_bytes())
    }

    /// The deadline of its value; none if it lasts forever.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.front.map(|front| front.stamp.deadline_ms).filter(|&deadline| deadline < NEVER)
    }

    /// What is known of its value.
    pub(crate) fn head_of_value(&self, of: &SegmentMap) -> Head {
        Head {
            size_bytes: self.head.len.saturating_sub(self.front_bytes() as u64),
            hash: self.head.hash,
            version: Some(self.version(of)),
            written: self.front.map(|front| moment(front.stamp.write_ms)),
            deadline: self.deadline_ms().map(moment),
            is_separated: true,
            pieces: 1,
            bytes: Vec::new(),
        }
    }
}

/// Reads the record that a slot points to into `record`; none if it belongs to another key. Calls
/// `read` for each read.
///
/// # Errors
/// Damage, naming file and offset; a failed read.
pub fn read_record(
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
    record.clear();
    let mut reader = RecordReader { file, slot, own_bytes, record, read };
    reader.need(len)?;
    let head = RecordHead::decode(reader.record).map_err(|_| reader.damaged())?;
    let mut found = Found { slot, head, front: None };
    // The key first: a head that is damaged must not pass for that of another key.
    let is_whole = reader.need(key_end(&found))?;
    if !is_whole || found.head.table != of.table || !found.head.is_of(found.key(reader.record)) {
        return Err(reader.damaged());
    }
    if key.is_some_and(|key| key != found.key(reader.record)) {
        return Ok(None);
    }
    check_len(file, slot, &found.head)?;
    if reading != Reading::Head {
        reader.check_value(&found, reading)?;
    }
    if of.has_fronts {
        found.front = Some(reader.front(&found)?);
        if found.is_long() && !found.head.front_is_behind {
            return Err(reader.damaged()); // never written
        }
    }
    Ok(Some(found))
}

/// Asks the system for a record, and does not wait for it. Of one that is longer than all size
/// classes only the beginning is asked for.
pub(crate) fn ask_for(file: &ValueFile, slot: Slot) {
    file.ask_for(short_place(slot), slot.class().read_bytes().unwrap_or(KEY_GUESS_BYTES));
}

/// Where the key ends: the value, or its front, begins there.
fn key_end(found: &Found) -> u64 {
    RECORD_HEAD_BYTES as u64 + u64::from(found.head.key_len)
}

/// A record that is being read.
struct RecordReader<'r> {
    file: &'r ValueFile,
    slot: Slot,
    /// Bytes of the front, if the values of the table have one.
    own_bytes: u64,
    /// The bytes so far.
    record: &'r mut Vec<u8>,
    read: &'r dyn Fn(),
}

impl RecordReader<'_> {
    /// Reads so many bytes from the front of the record; false if the file has not so many.
    #[inline]
    fn need(&mut self, len: u64) -> Result<bool> {
        if (self.record.len() as u64) < len {
            (self.read)();
            self.file.front_of(short_place(self.slot), len, self.record)?;
        }
        Ok(self.record.len() as u64 >= len)
    }

    /// Reads the value and checks it; of one that is longer than [`VALUE_BYTES_MAX`], what
    /// `reading` says.
    #[inline]
    fn check_value(&mut self, found: &Found, reading: Reading) -> Result<()> {
        let (key_end, len) = (key_end(found), found.head.len);
        let is_long = len > VALUE_BYTES_MAX as u64 + self.own_bytes;
        let hash = match reading {
            Reading::Short if is_long => found.head.hash,
            Reading::Sound if is_long => {
                self.file.hash_of(short_place(self.slot), (key_end, len), found.key(self.record))?
            }
            _ => {
                let fits = len <= STREAM_BYTES_MAX + self.own_bytes;
                if !fits || !self.need(key_end.saturating_add(len))? {
                    return Err(self.damaged());
                }
                value_hash(found.key(self.record), found.value(self.record))
            }
        };
        if hash != found.head.hash {
            return Err(self.damaged());
        }
        if is_long && reading != Reading::Whole {
            self.record.truncate(key_end as usize);
        }
        Ok(())
    }

    /// The front of the value, which is read if it is behind what was.
    #[inline]
    fn front(&self, found: &Found) -> Result<Front> {
        let behind = found.head.len.checked_sub(self.own_bytes).ok_or_else(|| self.damaged())?;
        let from = key_end(found) + if found.head.front_is_behind { behind } else { 0 };
        let mut front = [0; FRONT_BYTES];
        match self.record.get(from as usize..(from + self.own_bytes) as usize) {
            Some(bytes) => front.copy_from_slice(bytes),
            None => {
                (self.read)();
                self.file.bytes_behind(short_place(self.slot), from, &mut front)?;
            }
        }
        Ok(Front::split(&front).map_err(|_| self.damaged())?.0)
    }

    #[cold]
    fn damaged(&self) -> Error {
        damaged(self.file, self.slot)
    }
}

/// Checks the length of a record before it is used: it must match its slot, and if the slot only
/// says that it is longer than all size classes, it must not exceed its file.
fn check_len(file: &ValueFile, slot: Slot, head: &RecordHead) -> Result<()> {
    let bytes = (RECORD_HEAD_BYTES as u64 + u64::from(head.key_len)).saturating_add(head.len);
    let is_open = slot.class().read_bytes().is_none();
    if SizeClass::of(head.record_bytes()) == slot.class()
        && (!is_open || file.holds(short_place(slot), bytes)?)
    {
        return Ok(());
    }
    let what = format!("the record gives its value a wrong length of {} bytes", head.len);
    Err(file.damaged(short_place(slot), what))
}

/// The place that a slot points to.
fn short_place(slot: Slot) -> ShortPlace {
    ShortPlace { segment_low: slot.segment(), unit: slot.unit() }
}

/// Whether the record of a value of this many bytes is longer than a single write.
pub fn is_long(value_bytes: u64) -> bool {
    value_bytes > (VALUE_BYTES_MAX + FRONT_BYTES) as u64
}

/// Sorts the slots of one point by the age of their records, the newest first.
pub(crate) fn newest_first(of: &SegmentMap, slots: &mut [Slot]) {
    let place = |slot: &Slot| (of.number_of(slot.segment()).unwrap_or(slot.segment()), slot.unit());
    slots.sort_unstable_by_key(|slot| std::cmp::Reverse(place(slot)));
}

#[cold]
pub fn damaged(file: &ValueFile, slot: Slot) -> Error {
    file.damaged(short_place(slot), "the record is not the one that the index leads to")
}
