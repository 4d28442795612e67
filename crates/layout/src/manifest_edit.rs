//! Frames of a manifest: each is a list of changes to what lives, whole or not at all.
//!
//! ```text
//!    0  hash   u64   xxh3-64 of all after it, seeded with the manifest's number and the frame's offset
//!    8  len    u32   bytes of the whole frame
//!   12  magic  u8    0xe3
//!   13  kind   u8    0 edit, 1 snapshot: begins from nothing
//!   14  changes, up to the end:  tag u8 | len varint | fields
//!
//!   slices and text: len varint, bytes.   bool: u8 0 or 1.   other numbers: varint
//!   part:  file | file_bytes | records | low slice | high slice | min_seq | max_seq | deletes | live_bytes | trimmed bool
//! ```
//!
//! | tag | change | fields |
//! |---|---|---|
//! | 1 | `SetStore` | store_id (16 bytes), next_table_id |
//! | 2 | `ReserveNumbers` | next_number |
//! | 3 | `Horizon` | last_seq, log_start_lsn, durable_lsn |
//! | 4 | `CreateTable` | table, name text, rules text |
//! | 5 | `DropTable` | table |
//! | 6 | `Flushed` | table, seq |
//! | 7 | `AddPart` | table, run, tier, age, part |
//! | 8 | `RemovePart` | table, run, file |
//! | 9 | `TrimPart` | table, run, file, low slice |
//! | 10 | `MoveRun` | table, run, tier, age |
//! | 11 | `AddRangeDelete` | table, from slice, to slice, seq |
//! | 12 | `RetireRangeDelete` | table, seq |
//! | 13 | `LogOpen` | open bool |
//! | 14 | `AddValues` | segment |
//! | 15 | `SealValues` | segment, end |
//! | 16 | `RemoveValues` | segment |
//! | 17 | `MoveValues` | file, file bytes, segments: count, then each |
//! | 18 | `AddDirectory` | segment |
//! | 19 | `SealDirectory` | segment, bytes, value files |
//! | 20 | `Require` | features |
//! | 21 | `LogCopied` | copied bool |
//! | 22 | `AddKnownPart` | as `AddPart`, then fingerprint: an `AddPart` whose part says what only it has |
//! | 32 | `SaveIndex` | table, file, file_bytes, keys, max_seq, slice of segments: segment, records, bytes, end |
//! | 33 | `SaveChanges` | as `SaveIndex`; keys are changes |
//! | 36 | `AlterTable` | table, rules text, outdated_before, kept_since |
//! | 24 | `Times` | slice: of each entry seq, time, both less those of the entry before |
//! | 40 | `SetFeed` | name text, table text, prefix slice, bytes_max, phase, seq, lsn, note, values_from |
//! | 41 | `DropFeed` | name text |
//! | 42 | `ArchiveLog` | file, first_lsn, next_lsn |
//! | 43 | `NoteTable` | note, seq, table, name text, rules text, is_dropped bool |
//! | 48 | `BuildIndex` | table, since, building bool, through slice |
//!
//! The crate `folddb-manifest` defines what the changes do to the state. A change with an unknown
//! tag is refused: since its effect is unknown, so is what lives.

mod change;

use folddb_base::bytes::{Malformed, Reader, put_slice, put_u32, put_varint};
use folddb_base::checksum::{hash64, place_seed};
use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Seq, TableId};

pub use change::{
    Change, FEATURE_LASTING_PIECES, FEATURE_LONG_VALUES, FEATURE_ROPES, IndexBuild, IndexSegment, IndexState,
    PartState,
};

use change::FEATURES_KNOWN;

pub use crate::feed_state::{FeedPhase, FeedState, LossCause, TableNote};

/// Bytes of a frame before its changes.
const FIXED_BYTES: usize = 14;
const MAGIC: u8 = 0xe3;

/// What a frame of a manifest is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EditKind {
    /// Changes the state of the frames before it.
    Edit = 0,
    /// The whole state; the first frame of a manifest.
    Snapshot = 1,
}

/// Appends a frame for `offset` of manifest `number`; false, with nothing appended, if it would not
/// fit a `u32`.
#[must_use]
pub fn put_edit(
    out: &mut Vec<u8>,
    number: FileNumber,
    offset: u64,
    kind: EditKind,
    changes: &[Change],
) -> bool {
    let start = out.len();
    out.extend_from_slice(&[0; FIXED_BYTES]);
    let mut fields = Vec::new();
    for change in changes {
        fields.clear();
        out.push(put_fields(&mut fields, change));
        put_slice(out, &fields);
    }
    let Ok(len) = u32::try_from(out.len() - start) else {
        out.truncate(start);
        return false;
    };
    let mut fixed = Vec::with_capacity(FIXED_BYTES);
    put_u32(&mut fixed, len);
    fixed.extend_from_slice(&[MAGIC, kind as u8]);
    out[start + 8..start + FIXED_BYTES].copy_from_slice(&fixed);
    let hash = hash64(place_seed(number.0, offset), &out[start + 8..]);
    out[start..start + 8].copy_from_slice(&hash.to_le_bytes());
    true
}

/// Appends the fields of a change and returns its tag.
fn put_fields(out: &mut Vec<u8>, change: &Change) -> u8 {
    match change {
        Change::SetStore { store_id, next_table_id } => put_store(out, *store_id, *next_table_id),
        Change::ReserveNumbers { next_number } => numbers(2, out, &[*next_number]),
        Change::Horizon { last_seq, log_start_lsn, durable_lsn } => {
            numbers(3, out, &[*last_seq, *log_start_lsn, *durable_lsn])
        }
        Change::CreateTable { table, name, rules_text } => {
            of_table(4, out, *table, &[name.as_bytes(), rules_text.as_bytes()], &[])
        }
        Change::AlterTable { table, rules_text, outdated_before, kept_since } => {
            of_table(36, out, *table, &[rules_text.as_bytes()], &[outdated_before.0, *kept_since])
        }
        Change::DropTable { table } => numbers(5, out, &[u64::from(table.0)]),
        Change::Flushed { table, seq } => numbers(6, out, &[u64::from(table.0), *seq]),
        Change::AddPart { table, run, tier, age, part } => {
            numbers(7, out, &[u64::from(table.0), run.0, u64::from(*tier), *age]);
            put_part(out, part)
        }
        Change::RemovePart { table, run, file } => numbers(8, out, &[u64::from(table.0), run.0, file.0]),
        Change::TrimPart { table, run, file, low } => {
            numbers(9, out, &[u64::from(table.0), run.0, file.0]);
            slice(9, out, low)
        }
        Change::MoveRun { table, run, tier, age } => {
            numbers(10, out, &[u64::from(table.0), run.0, u64::from(*tier), *age])
        }
        Change::AddRangeDelete { table, from, to, seq } => of_table(11, out, *table, &[from, to], &[*seq]),
        Change::RetireRangeDelete { table, seq } => numbers(12, out, &[u64::from(table.0), *seq]),
        Change::LogOpen { open } => flag(13, out, *open),
        Change::AddValues { segment } => numbers(14, out, &[segment.0]),
        Change::SealValues { segment, end } => numbers(15, out, &[segment.0, *end]),
        Change::RemoveValues { segment } => numbers(16, out, &[segment.0]),
        Change::MoveValues { file, file_bytes, segments } => put_moved(out, *file, *file_bytes, segments),
        Change::AddDirectory { segment } => numbers(18, out, &[segment.0]),
        Change::SealDirectory { segment, bytes, value_files } => {
            numbers(19, out, &[segment.0, *bytes, *value_files])
        }
        Change::Require { features } => numbers(20, out, &[*features]),
        Change::LogCopied { copied } => flag(21, out, *copied),
        Change::Times { entries } => put_times(out, entries),
        Change::SaveIndex { table, index } => put_index(32, out, *table, index),
        Change::SaveChanges { table, changes } => put_index(33, out, *table, changes),
        Change::SetFeed { feed } => {
            feed.put(out);
            40
        }
        Change::DropFeed { name } => slice(41, out, name.as_bytes()),
        Change::ArchiveLog { file, first_lsn, next_lsn } => {
            numbers(42, out, &[file.0, *first_lsn, *next_lsn])
        }
        Change::NoteTable { note } => {
            note.put(out);
            43
        }
        Change::BuildIndex { table, build } => put_build(out, *table, build),
    }
}

// Each returns the tag of the change that it writes, or writes a part of.

fn numbers(tag: u8, out: &mut Vec<u8>, numbers: &[u64]) -> u8 {
    put_varints(out, numbers);
    tag
}

fn slice(tag: u8, out: &mut Vec<u8>, bytes: &[u8]) -> u8 {
    put_slice(out, bytes);
    tag
}

fn flag(tag: u8, out: &mut Vec<u8>, is: bool) -> u8 {
    out.push(u8::from(is));
    tag
}

fn of_table(tag: u8, out: &mut Vec<u8>, table: TableId, slices: &[&[u8]], last: &[u64]) -> u8 {
    put_varint(out, u64::from(table.0));
    slices.iter().for_each(|bytes| put_slice(out, bytes));
    numbers(tag, out, last)
}

fn put_store(out: &mut Vec<u8>, store_id: u128, next_table_id: u32) -> u8 {
    out.extend_from_slice(&store_id.to_le_bytes());
    numbers(1, out, &[u64::from(next_table_id)])
}

fn put_moved(out: &mut Vec<u8>, file: FileNumber, file_bytes: u64, segments: &[FileNumber]) -> u8 {
    put_varints(out, &[file.0, file_bytes, segments.len() as u64]);
    segments.iter().for_each(|segment| put_varint(out, segment.0));
    17
}

fn put_times(out: &mut Vec<u8>, entries: &[(Seq, u64)]) -> u8 {
    let (mut pairs, mut before) = (Vec::new(), (0, 0));
    for &(seq, time_ms) in entries {
        put_varints(&mut pairs, &[seq.wrapping_sub(before.0), time_ms.wrapping_sub(before.1)]);
        before = (seq, time_ms);
    }
    slice(24, out, &pairs)
}

fn put_build(out: &mut Vec<u8>, table: TableId, build: &IndexBuild) -> u8 {
    put_varints(out, &[u64::from(table.0), build.since]);
    flag(48, out, build.building.is_some());
    slice(48, out, build.building.as_deref().unwrap_or_default())
}

fn put_index(tag: u8, out: &mut Vec<u8>, table: TableId, index: &IndexState) -> u8 {
    put_varints(out, &[u64::from(table.0), index.file.0, index.file_bytes, index.keys, index.max_seq]);
    let mut segments = Vec::new();
    for one in &index.segments {
        put_varints(&mut segments, &[one.segment, one.records, one.bytes, one.end]);
    }
    slice(tag, out, &segments)
}

fn put_varints(out: &mut Vec<u8>, numbers: &[u64]) {
    for &number in numbers {
        put_varint(out, number);
    }
}

/// The tag says whether its fingerprint is known. That has all of its eight bytes: a hash has no
/// small values, and a manifest whose length depends on one differs from run to run.
fn put_part(out: &mut Vec<u8>, part: &PartState) -> u8 {
    put_varints(out, &[part.file.0, part.file_bytes, part.records]);
    put_slice(out, &part.low);
    put_slice(out, &part.high);
    put_varints(out, &[part.min_seq, part.max_seq, part.deletes, part.live_bytes]);
    flag(7, out, part.trimmed);
    let Some(fingerprint) = part.fingerprint else { return 7 };
    out.extend_from_slice(&fingerprint.to_le_bytes());
    22
}

/// A frame, checked except for its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditFrame<'a> {
    /// What it is for.
    pub kind: EditKind,
    /// Bytes of the whole frame.
    pub len_bytes: usize,
    changes: &'a [u8],
}

impl EditFrame<'_> {
    /// Its changes.
    ///
    /// # Errors
    /// A change is unknown to this version (`Tag`), or makes no sense.
    pub fn changes(&self) -> Result<Vec<Change>, Malformed> {
        let mut reader = Reader::new(self.changes);
        let mut changes = Vec::new();
        while !reader.is_empty() {
            changes.push(next_change(&mut reader)?);
        }
        Ok(changes)
    }
}

fn next_change(reader: &mut Reader<'_>) -> Result<Change, Malformed> {
    let tag = reader.u8()?;
    let mut fields = Fields(Reader::new(reader.slice()?));
    let change = read_change(tag, &mut fields)?;
    fields.0.finish()?;
    Ok(change)
}

/// The changes at the front of `bytes`, where a frame was cut or damaged, as far as they can be
/// read: they are not covered by a checksum, so they serve only as a hint.
pub fn claimed_changes(bytes: &[u8]) -> Vec<Change> {
    let Some((_, changes)) = bytes.split_at_checked(FIXED_BYTES).filter(|(head, _)| head[12] == MAGIC) else {
        return Vec::new();
    };
    let mut reader = Reader::new(changes);
    std::iter::from_fn(|| next_change(&mut reader).ok()).collect()
}

/// The frame at the front of `bytes`, which are at `offset` of manifest `number`; none if no whole
/// frame is there.
///
/// # Errors
/// The frame is whole, but of a kind that this version does not know: `Tag`.
pub fn decode_edit(
    bytes: &[u8],
    number: FileNumber,
    offset: u64,
) -> Result<Option<EditFrame<'_>>, Malformed> {
    let Some(head) = bytes.first_chunk::<FIXED_BYTES>() else { return Ok(None) };
    let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    if head[12] != MAGIC || len < FIXED_BYTES {
        return Ok(None);
    }
    let Some(whole) = bytes.get(..len) else { return Ok(None) };
    if head[..8] != hash64(place_seed(number.0, offset), &whole[8..]).to_le_bytes() {
        return Ok(None);
    }
    let kind = match head[13] {
        0 => EditKind::Edit,
        1 => EditKind::Snapshot,
        _ => return Err(Malformed::Tag),
    };
    Ok(Some(EditFrame { kind, len_bytes: len, changes: &whole[FIXED_BYTES..] }))
}

struct Fields<'a>(Reader<'a>);

impl Fields<'_> {
    fn number(&mut self) -> Result<u64, Malformed> {
        self.0.varint()
    }

    fn table(&mut self) -> Result<TableId, Malformed> {
        u32::try_from(self.0.varint()?).map(TableId).map_err(|_| Malformed::Bounds)
    }

    fn run(&mut self) -> Result<RunId, Malformed> {
        self.0.varint().map(RunId)
    }

    fn file(&mut self) -> Result<FileNumber, Malformed> {
        self.0.varint().map(FileNumber)
    }

    fn files(&mut self) -> Result<Vec<FileNumber>, Malformed> {
        let count = self.0.length()?;
        (0..count).map(|_| self.file()).collect()
    }

    fn tier(&mut self) -> Result<u8, Malformed> {
        u8::try_from(self.0.varint()?).map_err(|_| Malformed::Bounds)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        self.0.slice().map(<[u8]>::to_vec)
    }

    fn text(&mut self) -> Result<String, Malformed> {
        self.0.text().map(str::to_owned)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.0.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Tag),
        }
    }

    fn part(&mut self) -> Result<PartState, Malformed> {
        Ok(PartState {
            file: self.file()?,
            file_bytes: self.number()?,
            records: self.number()?,
            low: self.bytes()?,
            high: self.bytes()?,
            min_seq: self.number()?,
            max_seq: self.number()?,
            deletes: self.number()?,
            live_bytes: self.number()?,
            trimmed: self.flag()?,
            fingerprint: None,
        })
    }

    fn known_part(&mut self) -> Result<PartState, Malformed> {
        let part = self.part()?;
        Ok(PartState { fingerprint: Some(self.0.u64()?), ..part })
    }

    fn build(&mut self) -> Result<IndexBuild, Malformed> {
        let (since, is_building, through) = (self.number()?, self.flag()?, self.bytes()?);
        if !is_building && !through.is_empty() {
            return Err(Malformed::Bounds);
        }
        Ok(IndexBuild { since, building: is_building.then_some(through) })
    }

    fn index(&mut self) -> Result<IndexState, Malformed> {
        let (file, file_bytes) = (self.file()?, self.number()?);
        let (keys, max_seq) = (self.number()?, self.number()?);
        let (mut segments, mut listed) = (Vec::new(), Reader::new(self.0.slice()?));
        while !listed.is_empty() {
            segments.push(IndexSegment {
                segment: listed.varint()?,
                records: listed.varint()?,
                bytes: listed.varint()?,
                end: listed.varint()?,
            });
        }
        Ok(IndexState { file, file_bytes, keys, max_seq, segments })
    }

    /// Pairs of ascending numbers.
    fn times(&mut self) -> Result<Vec<(Seq, u64)>, Malformed> {
        let (mut pairs, mut before) = (Fields(Reader::new(self.0.slice()?)), (0u64, 0u64));
        let mut entries = Vec::new();
        while !pairs.0.is_empty() {
            let (seq, time_ms) = (pairs.number()?, pairs.number()?);
            let sums = before.0.checked_add(seq).zip(before.1.checked_add(time_ms));
            before = sums.ok_or(Malformed::Bounds)?;
            entries.push(before);
        }
        Ok(entries)
    }

    fn store_id(&mut self) -> Result<u128, Malformed> {
        Ok(u128::from(self.0.u64()?) | u128::from(self.0.u64()?) << 64)
    }
}

/// Reads the fields of a change, in the order in which they are named here.
fn read_change(tag: u8, fields: &mut Fields<'_>) -> Result<Change, Malformed> {
    match tag {
        4..=12 | 22 | 32 | 33 | 36 | 48 => read_table_change(tag, fields),
        14..=19 => read_values_change(tag, fields),
        40..=43 => read_feed_change(tag, fields),
        _ => read_store_change(tag, fields),
    }
}

/// A change to a table, its runs or its index.
fn read_table_change(tag: u8, fields: &mut Fields<'_>) -> Result<Change, Malformed> {
    Ok(match tag {
        4 => Change::CreateTable { table: fields.table()?, name: fields.text()?, rules_text: fields.text()? },
        5 => Change::DropTable { table: fields.table()? },
        6 => Change::Flushed { table: fields.table()?, seq: fields.number()? },
        7 | 22 => Change::AddPart {
            table: fields.table()?,
            run: fields.run()?,
            tier: fields.tier()?,
            age: fields.number()?,
            part: if tag == 7 { fields.part()? } else { fields.known_part()? },
        },
        8 => Change::RemovePart { table: fields.table()?, run: fields.run()?, file: fields.file()? },
        9 => Change::TrimPart {
            table: fields.table()?,
            run: fields.run()?,
            file: fields.file()?,
            low: fields.bytes()?,
        },
        10 => Change::MoveRun {
            table: fields.table()?,
            run: fields.run()?,
            tier: fields.tier()?,
            age: fields.number()?,
        },
        11 => Change::AddRangeDelete {
            table: fields.table()?,
            from: fields.bytes()?,
            to: fields.bytes()?,
            seq: fields.number()?,
        },
        12 => Change::RetireRangeDelete { table: fields.table()?, seq: fields.number()? },
        32 => Change::SaveIndex { table: fields.table()?, index: fields.index()? },
        33 => Change::SaveChanges { table: fields.table()?, changes: fields.index()? },
        36 => Change::AlterTable {
            table: fields.table()?,
            rules_text: fields.text()?,
            outdated_before: fields.file()?,
            kept_since: fields.number()?,
        },
        48 => Change::BuildIndex { table: fields.table()?, build: fields.build()? },
        _ => return Err(Malformed::Tag),
    })
}

/// A change to the files of the value log.
fn read_values_change(tag: u8, fields: &mut Fields<'_>) -> Result<Change, Malformed> {
    Ok(match tag {
        14 => Change::AddValues { segment: fields.file()? },
        15 => Change::SealValues { segment: fields.file()?, end: fields.number()? },
        16 => Change::RemoveValues { segment: fields.file()? },
        17 => Change::MoveValues {
            file: fields.file()?,
            file_bytes: fields.number()?,
            segments: fields.files()?,
        },
        18 => Change::AddDirectory { segment: fields.file()? },
        19 => Change::SealDirectory {
            segment: fields.file()?,
            bytes: fields.number()?,
            value_files: fields.number()?,
        },
        _ => return Err(Malformed::Tag),
    })
}

/// A change to feeds, or to what is held for them.
fn read_feed_change(tag: u8, fields: &mut Fields<'_>) -> Result<Change, Malformed> {
    Ok(match tag {
        40 => Change::SetFeed { feed: FeedState::read(&mut fields.0)? },
        41 => Change::DropFeed { name: fields.text()? },
        42 => Change::ArchiveLog {
            file: fields.file()?,
            first_lsn: fields.number()?,
            next_lsn: fields.number()?,
        },
        43 => Change::NoteTable { note: TableNote::read(&mut fields.0)? },
        _ => return Err(Malformed::Tag),
    })
}

/// A change to the store as a whole.
fn read_store_change(tag: u8, fields: &mut Fields<'_>) -> Result<Change, Malformed> {
    Ok(match tag {
        1 => {
            let store_id = fields.store_id()?;
            Change::SetStore { store_id, next_table_id: fields.table()?.0 }
        }
        2 => Change::ReserveNumbers { next_number: fields.number()? },
        3 => Change::Horizon {
            last_seq: fields.number()?,
            log_start_lsn: fields.number()?,
            durable_lsn: fields.number()?,
        },
        13 => Change::LogOpen { open: fields.flag()? },
        20 => {
            let features = fields.number()?;
            if features & !FEATURES_KNOWN != 0 {
                return Err(Malformed::Tag);
            }
            Change::Require { features }
        }
        21 => Change::LogCopied { copied: fields.flag()? },
        24 => Change::Times { entries: fields.times()? },
        _ => return Err(Malformed::Tag),
    })
}

#[cfg(test)]
#[path = "manifest_edit/tests.rs"]
mod tests;
