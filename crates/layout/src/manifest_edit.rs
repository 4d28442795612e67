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
//! | 32 | `SaveIndex` | table, file, file_bytes, keys, max_seq, slice of segments: segment, records, bytes, end |
//! | 33 | `SaveChanges` | as `SaveIndex`; keys are changes |
//! | 24 | `Times` | slice: of each entry seq, time, both less those of the entry before |
//! | 40 | `SetFeed` | name text, table text, prefix slice, bytes_max, phase, seq, lsn, note, values_from |
//! | 41 | `DropFeed` | name text |
//! | 42 | `ArchiveLog` | file, first_lsn, next_lsn |
//! | 43 | `NoteTable` | note, seq, table, name text, rules text, is_dropped bool |
//! | 48 | `BuildIndex` | table, since, building bool, through slice |
//!
//! What the changes do to the state is told by the crate `folddb-manifest`. A change with an unknown tag is refused:
//! what it changed is not known, so neither is what lives.

use folddb_base::bytes::{Malformed, Reader, put_slice, put_u32, put_varint};
use folddb_base::checksum::{hash64, place_seed};
use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Lsn, Seq, TableId};

pub use crate::feed_state::{FeedPhase, FeedState, LossCause, TableNote};

/// Bytes of a frame before its changes.
const FIXED_BYTES: usize = 14;
const MAGIC: u8 = 0xe3;

/// What a frame of a manifest is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EditKind {
    /// Changes what the frames before it say.
    Edit = 0,
    /// Says everything; the first frame of a manifest.
    Snapshot = 1,
}

/// A part of a run, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartState {
    /// Its file.
    pub file: FileNumber,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// Records in the file.
    pub records: u64,
    /// The first key that it shows. Past the first key of the file where it is trimmed.
    pub low: Vec<u8>,
    /// The last key in it.
    pub high: Vec<u8>,
    /// The oldest seq in it.
    pub min_seq: Seq,
    /// The newest seq in it.
    pub max_seq: Seq,
    /// Records in it that are deletes.
    pub deletes: u64,
    /// An estimate of the bytes in it that a complete merge would keep.
    pub live_bytes: u64,
    /// True when it shows only keys from `low` on, and the file holds others before.
    pub trimmed: bool,
}

/// The checkpoint of the index of a hashed table, as the manifest knows it; or the changes that came after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexState {
    /// Its file.
    pub file: FileNumber,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// Keys in it, or changes.
    pub keys: u64,
    /// No change after this seq is in it.
    pub max_seq: Seq,
    /// What it leads to in the value log; of changes, what the index does with them.
    pub segments: Vec<IndexSegment>,
}

/// What an index leads to of one value segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSegment {
    /// The low bits of its number, as many as stand in an address.
    pub segment: u64,
    /// Records in it.
    pub records: u64,
    /// About their bytes.
    pub bytes: u64,
    /// Where the last record ends that the table has ever had in it, in bytes; at least.
    pub end: u64,
}

/// How far an index has come with what was in its table before it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStand {
    /// Who reads at this seq or a later one finds all; of no meaning while it is being built.
    pub since: Seq,
    /// While it is being built: the last key of the table whose terms are in it, empty where none are yet.
    pub building: Option<Vec<u8>>,
}

/// A change to what lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Names the store. Only in a snapshot.
    SetStore {
        /// The identity of the store.
        store_id: u128,
        /// The number of the next table to be created.
        next_table_id: u32,
    },
    /// File numbers below this one may have been used.
    ReserveNumbers {
        /// The first number that surely has not been used.
        next_number: u64,
    },
    /// Where the journal stands.
    Horizon {
        /// The newest seq that was known to be written.
        last_seq: Seq,
        /// Replay begins here: all records before it are in runs.
        log_start_lsn: Lsn,
        /// All of the log before this is durable, so damage there is damage.
        durable_lsn: Lsn,
    },
    /// Adds a table.
    CreateTable {
        /// Its id, never used before.
        table: TableId,
        /// Its name, used by no other.
        name: String,
        /// Its rules, as text.
        rules_text: String,
    },
    /// Removes a table with its runs and range deletes.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// All records of the table up to this seq are in runs.
    Flushed {
        /// The table.
        table: TableId,
        /// The newest seq that needs no replay.
        seq: Seq,
    },
    /// Adds a part at the end of a run, and the run with its first part.
    AddPart {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// The run's tier; tells only where the run is new.
        tier: u8,
        /// The run's age; tells only where the run is new.
        age: Seq,
        /// The part.
        part: PartState,
    },
    /// Removes a part, and the run with its last part.
    RemovePart {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// The part's file.
        file: FileNumber,
    },
    /// Makes a part show only keys from `low` on.
    TrimPart {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// The part's file.
        file: FileNumber,
        /// The first key that it still shows.
        low: Vec<u8>,
    },
    /// Gives a run another place among the runs.
    MoveRun {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// Its new tier.
        tier: u8,
        /// Its new age.
        age: Seq,
    },
    /// Deletes all keys of a range as of a seq.
    AddRangeDelete {
        /// The table.
        table: TableId,
        /// The first key deleted.
        from: Vec<u8>,
        /// The first key after it that is not.
        to: Vec<u8>,
        /// Its place in the history.
        seq: Seq,
    },
    /// Forgets a range delete that nothing is under any more.
    RetireRangeDelete {
        /// The table.
        table: TableId,
        /// The seq of the range delete.
        seq: Seq,
    },
    /// Whether a segment holds the log's start: from the first segment of an opening until a close in order.
    LogOpen {
        /// True while one does; without it the log, or the end of the manifest, is lost.
        open: bool,
    },
    /// Whether the log is a copy that was made up to where it is durable, of a backup or restored from one. Every
    /// snapshot says it; in those of older versions one with nothing after it was taken for that of a copy.
    LogCopied {
        /// True until the first opening for writing has come to its end.
        copied: bool,
    },
    /// A segment of the value log: pointers may lead to it from now on.
    AddValues {
        /// The segment.
        segment: FileNumber,
    },
    /// Nothing is added to a value segment any more.
    SealValues {
        /// The segment.
        segment: FileNumber,
        /// Bytes of it that count.
        end: u64,
    },
    /// A segment of the value log that is a directory, in which each record is a file.
    AddDirectory {
        /// The segment.
        segment: FileNumber,
    },
    /// Nothing is added to such a segment any more.
    SealDirectory {
        /// The segment.
        segment: FileNumber,
        /// Bytes of its files.
        bytes: u64,
        /// How many they are.
        value_files: u64,
    },
    /// When records were written: of each entry a seq, and a time in milliseconds since 1970 that records from it on have, up to
    /// the next entry. Both rise.
    Times {
        /// The entries.
        entries: Vec<(Seq, u64)>,
    },
    /// Removes a value segment that nothing points to.
    RemoveValues {
        /// The segment.
        segment: FileNumber,
    },
    /// From now on whoever does not know these features must leave the store alone. A reader refuses bits that it does not know.
    Require {
        /// One bit each.
        features: u64,
    },
    /// Gives a hashed table a checkpoint of its index, in place of the one that it had.
    SaveIndex {
        /// The table.
        table: TableId,
        /// The checkpoint.
        index: IndexState,
    },
    /// Gives a hashed table changes that its index is to take after its checkpoint, in place of those that it had. The next
    /// checkpoint has them.
    SaveChanges {
        /// The table.
        table: TableId,
        /// The changes.
        changes: IndexState,
    },
    /// How far an index has come.
    BuildIndex {
        /// The table that is the index.
        table: TableId,
        /// How far.
        stand: IndexStand,
    },
    /// The values of these segments that anything points to lie in another file now.
    MoveValues {
        /// The file that carries them, and no others.
        file: FileNumber,
        /// Its length.
        file_bytes: u64,
        /// The segments.
        segments: Vec<FileNumber>,
    },
    /// Adds a feed, or says where one of this name stands now.
    SetFeed {
        /// The feed.
        feed: FeedState,
    },
    /// Removes a feed.
    DropFeed {
        /// Its name.
        name: String,
    },
    /// A file has the history between two LSNs, for feeds, in place of segments of the log that had it: the end of a log that a
    /// crash left.
    ArchiveLog {
        /// The file.
        file: FileNumber,
        /// Where it begins.
        first_lsn: Lsn,
        /// Where the history goes on after it.
        next_lsn: Lsn,
    },
    /// A table was created or dropped while feeds were there that will tell of it.
    NoteTable {
        /// What happened.
        note: TableNote,
    },
}

/// The value log may hold values in several pieces, and operands.
pub const FEATURE_ROPES: u64 = 1;

/// Hashed tables may hold values that are longer than what is written at once.
pub const FEATURE_LONG_VALUES: u64 = 2;

/// Values in pieces may have deadlines, and values of more than 16 MiB of hashed tables fronts,
/// which stand behind them.
pub const FEATURE_LASTING_PIECES: u64 = 4;

/// All features that this version knows.
const FEATURES_KNOWN: u64 = FEATURE_ROPES | FEATURE_LONG_VALUES | FEATURE_LASTING_PIECES;

/// Appends a frame for `offset` of manifest `number`; false, with nothing appended, where it would not fit a `u32`.
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
        Change::SetStore { store_id, next_table_id } => {
            out.extend_from_slice(&store_id.to_le_bytes());
            put_varint(out, u64::from(*next_table_id));
            1
        }
        Change::ReserveNumbers { next_number } => {
            put_varint(out, *next_number);
            2
        }
        Change::Horizon { last_seq, log_start_lsn, durable_lsn } => {
            put_varints(out, &[*last_seq, *log_start_lsn, *durable_lsn]);
            3
        }
        Change::CreateTable { table, name, rules_text } => {
            put_varint(out, u64::from(table.0));
            put_slice(out, name.as_bytes());
            put_slice(out, rules_text.as_bytes());
            4
        }
        Change::DropTable { table } => {
            put_varint(out, u64::from(table.0));
            5
        }
        Change::Flushed { table, seq } => {
            put_varints(out, &[u64::from(table.0), *seq]);
            6
        }
        Change::AddPart { table, run, tier, age, part } => {
            put_varints(out, &[u64::from(table.0), run.0, u64::from(*tier), *age]);
            put_part(out, part);
            7
        }
        Change::RemovePart { table, run, file } => {
            put_varints(out, &[u64::from(table.0), run.0, file.0]);
            8
        }
        Change::TrimPart { table, run, file, low } => {
            put_varints(out, &[u64::from(table.0), run.0, file.0]);
            put_slice(out, low);
            9
        }
        Change::MoveRun { table, run, tier, age } => {
            put_varints(out, &[u64::from(table.0), run.0, u64::from(*tier), *age]);
            10
        }
        Change::AddRangeDelete { table, from, to, seq } => {
            put_varint(out, u64::from(table.0));
            put_slice(out, from);
            put_slice(out, to);
            put_varint(out, *seq);
            11
        }
        Change::RetireRangeDelete { table, seq } => {
            put_varints(out, &[u64::from(table.0), *seq]);
            12
        }
        Change::LogOpen { open } => {
            out.push(u8::from(*open));
            13
        }
        Change::LogCopied { copied } => {
            out.push(u8::from(*copied));
            21
        }
        Change::AddValues { segment } => {
            put_varint(out, segment.0);
            14
        }
        Change::SealValues { segment, end } => {
            put_varints(out, &[segment.0, *end]);
            15
        }
        Change::RemoveValues { segment } => {
            put_varint(out, segment.0);
            16
        }
        Change::MoveValues { file, file_bytes, segments } => {
            put_varints(out, &[file.0, *file_bytes, segments.len() as u64]);
            segments.iter().for_each(|segment| put_varint(out, segment.0));
            17
        }
        Change::AddDirectory { segment } => {
            put_varint(out, segment.0);
            18
        }
        Change::SealDirectory { segment, bytes, value_files } => {
            put_varints(out, &[segment.0, *bytes, *value_files]);
            19
        }
        Change::Require { features } => {
            put_varint(out, *features);
            20
        }
        Change::SaveIndex { table, index } => {
            put_index(out, *table, index);
            32
        }
        Change::SaveChanges { table, changes } => {
            put_index(out, *table, changes);
            33
        }
        Change::BuildIndex { table, stand } => {
            put_varints(out, &[u64::from(table.0), stand.since]);
            out.push(u8::from(stand.building.is_some()));
            put_slice(out, stand.building.as_deref().unwrap_or_default());
            48
        }
        Change::Times { entries } => {
            let (mut pairs, mut before) = (Vec::new(), (0, 0));
            for &(seq, time_ms) in entries {
                put_varints(&mut pairs, &[seq.wrapping_sub(before.0), time_ms.wrapping_sub(before.1)]);
                before = (seq, time_ms);
            }
            put_slice(out, &pairs);
            24
        }
        Change::SetFeed { feed } => {
            feed.put(out);
            40
        }
        Change::DropFeed { name } => {
            put_slice(out, name.as_bytes());
            41
        }
        Change::ArchiveLog { file, first_lsn, next_lsn } => {
            put_varints(out, &[file.0, *first_lsn, *next_lsn]);
            42
        }
        Change::NoteTable { note } => {
            note.put(out);
            43
        }
    }
}

fn put_index(out: &mut Vec<u8>, table: TableId, index: &IndexState) {
    put_varints(out, &[u64::from(table.0), index.file.0, index.file_bytes, index.keys, index.max_seq]);
    let mut segments = Vec::new();
    for one in &index.segments {
        put_varints(&mut segments, &[one.segment, one.records, one.bytes, one.end]);
    }
    put_slice(out, &segments);
}

fn put_varints(out: &mut Vec<u8>, numbers: &[u64]) {
    for &number in numbers {
        put_varint(out, number);
    }
}

fn put_part(out: &mut Vec<u8>, part: &PartState) {
    put_varints(out, &[part.file.0, part.file_bytes, part.records]);
    put_slice(out, &part.low);
    put_slice(out, &part.high);
    put_varints(out, &[part.min_seq, part.max_seq, part.deletes, part.live_bytes]);
    out.push(u8::from(part.trimmed));
}

/// A frame, checked but for its changes.
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
            let tag = reader.u8()?;
            let mut fields = Fields(Reader::new(reader.slice()?));
            changes.push(read_change(tag, &mut fields)?);
            fields.0.finish()?;
        }
        Ok(changes)
    }
}

/// The frame at the front of `bytes`, which stand at `offset` of manifest `number`; none when no whole frame does.
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
        })
    }

    fn stand(&mut self) -> Result<IndexStand, Malformed> {
        let (since, is_building, through) = (self.number()?, self.flag()?, self.bytes()?);
        if !is_building && !through.is_empty() {
            return Err(Malformed::Bounds);
        }
        Ok(IndexStand { since, building: is_building.then_some(through) })
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

    /// Pairs of rising numbers.
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

/// Reads the fields of a change; they stand in the order in which they are named here.
fn read_change(tag: u8, fields: &mut Fields<'_>) -> Result<Change, Malformed> {
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
        4 => Change::CreateTable { table: fields.table()?, name: fields.text()?, rules_text: fields.text()? },
        5 => Change::DropTable { table: fields.table()? },
        6 => Change::Flushed { table: fields.table()?, seq: fields.number()? },
        7 => Change::AddPart {
            table: fields.table()?,
            run: fields.run()?,
            tier: fields.tier()?,
            age: fields.number()?,
            part: fields.part()?,
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
        13 => Change::LogOpen { open: fields.flag()? },
        14 => Change::AddValues { segment: fields.file()? },
        15 => Change::SealValues { segment: fields.file()?, end: fields.number()? },
        16 => Change::RemoveValues { segment: fields.file()? },
        18 => Change::AddDirectory { segment: fields.file()? },
        19 => Change::SealDirectory {
            segment: fields.file()?,
            bytes: fields.number()?,
            value_files: fields.number()?,
        },
        20 => {
            let features = fields.number()?;
            if features & !FEATURES_KNOWN != 0 {
                return Err(Malformed::Tag);
            }
            Change::Require { features }
        }
        21 => Change::LogCopied { copied: fields.flag()? },
        32 => Change::SaveIndex { table: fields.table()?, index: fields.index()? },
        33 => Change::SaveChanges { table: fields.table()?, changes: fields.index()? },
        17 => Change::MoveValues {
            file: fields.file()?,
            file_bytes: fields.number()?,
            segments: fields.files()?,
        },
        24 => Change::Times { entries: fields.times()? },
        40 => Change::SetFeed { feed: FeedState::read(&mut fields.0)? },
        41 => Change::DropFeed { name: fields.text()? },
        42 => Change::ArchiveLog {
            file: fields.file()?,
            first_lsn: fields.number()?,
            next_lsn: fields.number()?,
        },
        43 => Change::NoteTable { note: TableNote::read(&mut fields.0)? },
        48 => Change::BuildIndex { table: fields.table()?, stand: fields.stand()? },
        _ => return Err(Malformed::Tag),
    })
}

#[cfg(test)]
#[path = "manifest_edit/tests.rs"]
mod tests;
