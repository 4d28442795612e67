//! The frame of a part file: where the pieces of a part are, and the facts about the whole.
//!
//! ```text
//!   data blocks          in the order of the records, one after the other from offset 0
//!   filter partitions    one after the other; none when the part has no filter
//!   leaf index blocks    records: key = separator, payload = the place of a data block
//!   liveness             one piece, if the part points to separated values: see Liveness
//!   summaries            one piece, in tables with summaries: see Summaries
//!   top index            one piece: an entry for each leaf, see TopIndex
//!   meta                 one piece: see Meta
//!   footer               64 bytes
//! ```
//!
//! A separator is at or after the last key of its block and before the first key of the next,
//! unless the records of one key continue in the next block; then it is that key. Every byte of the
//! file is covered by a checksum.

use folddb_base::Seq;
use folddb_base::Stamp;
use folddb_base::bytes::{Malformed, Reader, put_slice, put_u32, put_u64, put_varint};
use folddb_base::checksum::{hash32, hash64, place_seed};
use folddb_base::stamp::NEVER;

use crate::block::{Compression, Encoding, Place, Sealed, seal};
use crate::liveness::{SegmentUse, put_use, read_use};
use crate::sketch::SKETCH_HASHES;
use crate::summaries::{Summary, put_summary, read_summary};

/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 64;

/// The version of part files without summaries.
pub const PART_VERSION: u32 = 1;

/// The version of part files with summaries.
pub const PART_VERSION_SUMMARIES: u32 = 2;

/// The version of part files whose blocks may be compressed by zstd, with or without summaries; and
/// the newest that this code reads.
pub const PART_VERSION_ZSTD: u32 = 3;

const MAGIC: [u8; 8] = *b"FoldPart";

/// The end of a part file.
///
/// ```text
///    0 magic "FoldPart"        8 version u32, see below                     12 reserved u32
///   16 file number u64        24 file length u64, the footer included
///   32 top index: offset u64, length u32            44 meta: offset u64, length u32
///   56 reserved u32           60 checksum u32 of the 60 bytes before, seeded with number and offset
/// ```
///
/// The version is 3 if blocks may be compressed by zstd, else 2 if there are summaries, else 1.
/// Each version keeps length, magic, version and checksum where they are, so that damage to a
/// version is told from a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The version of the file.
    pub version: u32,
    /// The number of the file.
    pub file_number: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// Where the top index is.
    pub top_index: Place,
    /// Where the facts are.
    pub meta: Place,
}

/// Why a footer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FooterFault {
    /// It is not a footer, or not of this file.
    Malformed(Malformed),
    /// It is of a version that only newer code can read.
    Newer(u32),
}

impl From<Malformed> for FooterFault {
    fn from(malformed: Malformed) -> FooterFault {
        FooterFault::Malformed(malformed)
    }
}

impl Footer {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        put_u32(out, self.version);
        put_u32(out, 0);
        put_u64(out, self.file_number);
        put_u64(out, self.file_bytes);
        self.top_index.put(out);
        self.meta.put(out);
        put_u32(out, 0);
        let checksum = hash32(Footer::seed(self.file_number, self.file_bytes), &out[start..]);
        put_u32(out, checksum);
    }

    fn seed(file_number: u64, file_bytes: u64) -> u64 {
        place_seed(file_number, file_bytes.saturating_sub(FOOTER_BYTES as u64))
    }

    /// Reads the footer of the file of this number and length.
    ///
    /// # Errors
    /// The bytes are not a footer, or are of a newer version.
    pub fn read(
        bytes: &[u8; FOOTER_BYTES],
        file_number: u64,
        file_bytes: u64,
    ) -> Result<Footer, FooterFault> {
        let mut reader = Reader::new(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Malformed::Tag.into());
        }
        let (version, reserved) = (reader.u32()?, reader.u32()?);
        let (number, len) = (reader.u64()?, reader.u64()?);
        let (top_index, meta) = (Place::read(&mut reader)?, Place::read(&mut reader)?);
        let (reserved_too, checksum) = (reader.u32()?, reader.u32()?);
        // Before the version: a damaged one is no newer one.
        if hash32(Footer::seed(file_number, file_bytes), &bytes[..FOOTER_BYTES - 4]) != checksum {
            return Err(Malformed::Checksum.into());
        }
        if version > PART_VERSION_ZSTD {
            return Err(FooterFault::Newer(version));
        }
        if version == 0 || reserved != 0 || reserved_too != 0 {
            return Err(Malformed::Tag.into());
        }
        let footer_at = file_bytes.checked_sub(FOOTER_BYTES as u64).ok_or(Malformed::Short)?;
        if number != file_number || len != file_bytes {
            return Err(Malformed::Order.into());
        }
        if top_index.end() != meta.offset || meta.end() != footer_at {
            return Err(Malformed::Bounds.into());
        }
        Ok(Footer { version, file_number, file_bytes, top_index, meta })
    }
}

/// What is known about a part without reading its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartFacts {
    /// The length of the file.
    pub file_bytes: u64,
    /// How many records it holds; at least one.
    pub records: u64,
    /// How many distinct keys they have.
    pub keys: u64,
    /// The first key.
    pub low: Vec<u8>,
    /// The last key.
    pub high: Vec<u8>,
    /// The smallest seq of a record as it was written, whether or not the part keeps it.
    pub min_seq: Seq,
    /// The largest one; the seq of all records that do not keep their own.
    pub max_seq: Seq,
    /// How many of the records are deletes.
    pub deletes: u64,
    /// The lengths of the keys of all records, together.
    pub key_bytes: u64,
    /// The lengths of all payloads, together.
    pub payload_bytes: u64,
    /// The smallest hashes of keys, ascending: see [`crate::sketch`].
    pub sketch: Vec<u64>,
    /// How much it points to in each value segment, by segment.
    pub values: Vec<SegmentUse>,
    /// Facts about stamps, in tables with expiry.
    pub stamps: Option<StampFacts>,
    /// The seq up to which records of the past were folded, in tables that keep a window.
    pub kept_since: Seq,
    /// What only this part has: see [`Meta::fingerprint`].
    pub fingerprint: u64,
}

/// Facts about the stamps of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampFacts {
    /// The oldest write time.
    pub min_write_ms: u64,
    /// The newest one.
    pub max_write_ms: u64,
    /// How many records have a deadline.
    pub expiring: u64,
    /// The first of those deadlines.
    pub min_deadline_ms: u64,
    /// The last one.
    pub max_deadline_ms: u64,
    /// Removable records that had expired by then were left out when the part was written.
    pub swept_ms: u64,
}

impl Default for StampFacts {
    fn default() -> StampFacts {
        StampFacts {
            min_write_ms: u64::MAX,
            max_write_ms: 0,
            expiring: 0,
            min_deadline_ms: u64::MAX,
            max_deadline_ms: 0,
            swept_ms: 0,
        }
    }
}

impl StampFacts {
    /// Adds the stamp of one more record.
    pub fn note(&mut self, stamp: Stamp) {
        self.min_write_ms = self.min_write_ms.min(stamp.write_ms);
        self.max_write_ms = self.max_write_ms.max(stamp.write_ms);
        if stamp.deadline_ms < NEVER {
            self.expiring += 1;
            self.min_deadline_ms = self.min_deadline_ms.min(stamp.deadline_ms);
            self.max_deadline_ms = self.max_deadline_ms.max(stamp.deadline_ms);
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut writes = Vec::new();
        let has_writes = self.min_write_ms <= self.max_write_ms;
        if has_writes {
            put_varint(&mut writes, self.min_write_ms);
            put_varint(&mut writes, self.max_write_ms - self.min_write_ms);
        }
        put_varint(out, EXTENSION_WRITES);
        put_slice(out, &writes);
        let mut deadlines = Vec::new();
        put_varint(&mut deadlines, self.expiring);
        if self.expiring > 0 {
            put_varint(&mut deadlines, self.min_deadline_ms);
            put_varint(&mut deadlines, self.max_deadline_ms.wrapping_sub(self.min_deadline_ms));
        }
        put_varint(&mut deadlines, self.swept_ms);
        put_varint(out, EXTENSION_DEADLINES);
        put_slice(out, &deadlines);
    }

    fn read_writes(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(bytes);
        if !reader.is_empty() {
            (self.min_write_ms, self.max_write_ms) = read_span(&mut reader)?;
        }
        reader.finish()
    }

    fn read_deadlines(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(bytes);
        *self = StampFacts {
            min_write_ms: self.min_write_ms,
            max_write_ms: self.max_write_ms,
            ..StampFacts::default()
        };
        self.expiring = reader.varint()?;
        if self.expiring > 0 {
            (self.min_deadline_ms, self.max_deadline_ms) = read_span(&mut reader)?;
        }
        self.swept_ms = reader.varint()?;
        reader.finish()
    }
}

/// The least and the greatest of some numbers.
fn read_span(reader: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    let least = reader.varint()?;
    Ok((least, least.checked_add(reader.varint()?).ok_or(Malformed::Order)?))
}

/// The facts about a part and how it was written, as in the file.
///
/// ```text
///   records, keys, min seq, max seq - min seq, deletes, key bytes, payload bytes   varints
///   low key, high key, name of the key order                                       slices
///   data length varint         where the data blocks end
///   filter bits varint         bits for each key; 0: there are no filters
///   sketch count varint, then count × u64 LE, ascending
///   extensions                 until the end: tag varint, slice; unknown ones are skipped.
///                              1 write times, in tables with expiry: least, most - least, varints
///                              2 deadlines, in the same tables: how many records have one, and if any do, least,
///                                most - least; then the time up to which it was swept, all varints
///                              3 if the part points to separated values: the place of its liveness piece,
///                                count varint, then the use of each segment
///                              4 in tables with summaries: the place of that piece, then the summary of all blocks,
///                                in the form of a single one
///                              8 in tables that keep a window: the seq up to which records were folded, varint
///                              9 if filters know leading elements of keys: of each filter partition how many, u8
///                              10 the hash of what is before, u64: see [`hash_of_pieces`]
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The facts. The file length and the fingerprint are not among the bytes; reading takes the
    /// one from the footer and makes the other from the bytes.
    pub facts: PartFacts,
    /// The name of the order of the keys.
    pub order_name: String,
    /// Where the data blocks end, in bytes from the beginning of the file.
    pub data_bytes: u64,
    /// Filter bits for each key; 0 when there are no filters.
    pub filter_bits: u32,
    /// Where its liveness piece is, if it points to separated values.
    pub liveness: Option<Place>,
    /// Where its summaries are and their total, if the table has them.
    pub summaries: Option<SummariesAt>,
    /// How many leading elements of keys each filter partition knows; empty if none knows any.
    pub leading: Vec<u8>,
    /// The hash of the pieces before: see [`hash_of_pieces`]. Older versions did not write it.
    pub pieces_hash: Option<u64>,
}

/// The hash of all pieces of a part before its meta, from their checksums in the order of the file,
/// little-endian. Without it, two parts with other values in blocks of the same lengths may have
/// the same facts, index and footer.
pub fn hash_of_pieces(checksums: &[u8]) -> u64 {
    hash64(0, checksums)
}

/// Where the summaries of a part are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummariesAt {
    /// Their piece.
    pub place: Place,
    /// The summary of all blocks; none if one of them must be read.
    pub total: Option<Summary>,
}

/// The extensions for stamps.
const EXTENSION_WRITES: u64 = 1;
const EXTENSION_DEADLINES: u64 = 2;
/// The extension for separated values.
const EXTENSION_VALUES: u64 = 3;
/// The extension for summaries.
const EXTENSION_SUMMARIES: u64 = 4;
/// The extension that says up to where the past was folded.
const EXTENSION_KEPT: u64 = 8;
/// The extension that says how many leading elements of keys the filters know.
const EXTENSION_LEADING: u64 = 9;
/// The extension with the hash of the pieces before.
const EXTENSION_PIECES: u64 = 10;

impl Meta {
    /// Appends it as a piece of a file.
    pub fn put(&self, out: &mut Vec<u8>, seed: u64) {
        let start = out.len();
        let facts = &self.facts;
        let numbers = [
            facts.records,
            facts.keys,
            facts.min_seq,
            facts.max_seq.wrapping_sub(facts.min_seq),
            facts.deletes,
            facts.key_bytes,
            facts.payload_bytes,
        ];
        numbers.iter().for_each(|number| put_varint(out, *number));
        put_slice(out, &facts.low);
        put_slice(out, &facts.high);
        put_slice(out, self.order_name.as_bytes());
        put_varint(out, self.data_bytes);
        put_varint(out, u64::from(self.filter_bits));
        put_varint(out, facts.sketch.len() as u64);
        facts.sketch.iter().for_each(|hash| put_u64(out, *hash));
        if let Some(stamps) = &facts.stamps {
            stamps.put(out);
        }
        if facts.kept_since > 0 {
            let mut kept = Vec::new();
            put_varint(&mut kept, facts.kept_since);
            put_varint(out, EXTENSION_KEPT);
            put_slice(out, &kept);
        }
        if let Some(place) = self.liveness {
            put_varint(out, EXTENSION_VALUES);
            put_slice(out, &values_extension(place, &facts.values));
        }
        if let Some(summaries) = &self.summaries {
            put_varint(out, EXTENSION_SUMMARIES);
            put_slice(out, &summaries.to_bytes());
        }
        if !self.leading.is_empty() {
            put_varint(out, EXTENSION_LEADING);
            put_slice(out, &self.leading);
        }
        if let Some(hash) = self.pieces_hash {
            put_varint(out, EXTENSION_PIECES);
            put_slice(out, &hash.to_le_bytes());
        }
        seal(out, start, Encoding::Meta, Compression::None, seed, &mut Vec::new());
    }

    /// A hash of the meta as it is stored, which includes the hash of the checksums of all pieces
    /// before it. Parts that differ in a byte have the same fingerprint only where two hashes
    /// happen to be the same: no proof against someone who looks for that. The manifest keeps it.
    pub fn fingerprint(stored: &[u8]) -> u64 {
        hash64(0, stored)
    }

    /// Reads what [`Meta::put`] wrote.
    ///
    /// # Errors
    /// The checksum does not match, or the bytes are malformed.
    pub fn open(stored: &[u8], seed: u64, file_bytes: u64) -> Result<Meta, Malformed> {
        let mut reader = Reader::new(Sealed::open(stored, seed)?.plain(Encoding::Meta)?);
        let (records, keys) = (reader.varint()?, reader.varint()?);
        let min_seq = reader.varint()?;
        let max_seq = min_seq.checked_add(reader.varint()?).ok_or(Malformed::Order)?;
        let (deletes, key_bytes, payload_bytes) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let (low, high) = (reader.slice()?.to_vec(), reader.slice()?.to_vec());
        let order_name = reader.text()?.to_owned();
        let data_bytes = reader.varint()?;
        let filter_bits = u32::try_from(reader.varint()?).map_err(|_| Malformed::Bounds)?;
        let sketch = read_sketch(&mut reader)?;
        let (mut liveness, mut values, mut summaries) = (None, Vec::new(), None);
        let (mut stamps, mut kept_since, mut leading, mut pieces_hash) = (None, 0, Vec::new(), None);
        while !reader.is_empty() {
            let (tag, extension) = (reader.varint()?, reader.slice()?);
            match tag {
                EXTENSION_WRITES => stamps.get_or_insert_with(StampFacts::default).read_writes(extension)?,
                EXTENSION_DEADLINES => {
                    stamps.get_or_insert_with(StampFacts::default).read_deadlines(extension)?;
                }
                EXTENSION_VALUES => {
                    let place;
                    (place, values) = read_values_extension(extension)?;
                    liveness = Some(place);
                }
                EXTENSION_SUMMARIES => summaries = Some(SummariesAt::from_bytes(extension)?),
                EXTENSION_KEPT => kept_since = Reader::new(extension).varint()?,
                EXTENSION_LEADING => leading = extension.to_vec(),
                EXTENSION_PIECES => pieces_hash = Some(Reader::new(extension).u64()?),
                _ => {}
            }
        }
        if records == 0 || keys == 0 || keys > records || deletes > records || data_bytes > file_bytes {
            return Err(Malformed::Order);
        }
        let facts = PartFacts {
            file_bytes,
            records,
            keys,
            low,
            high,
            min_seq,
            max_seq,
            deletes,
            key_bytes,
            payload_bytes,
            sketch,
            values,
            stamps,
            kept_since,
            fingerprint: Meta::fingerprint(stored),
        };
        Ok(Meta { facts, order_name, data_bytes, filter_bits, liveness, summaries, leading, pieces_hash })
    }
}

impl SummariesAt {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.place.put(&mut out);
        put_summary(&mut out, self.total.as_ref());
        out
    }

    fn from_bytes(bytes: &[u8]) -> Result<SummariesAt, Malformed> {
        let mut reader = Reader::new(bytes);
        let read = SummariesAt { place: Place::read(&mut reader)?, total: read_summary(&mut reader)? };
        reader.finish()?;
        Ok(read)
    }
}

fn values_extension(place: Place, uses: &[SegmentUse]) -> Vec<u8> {
    let mut out = Vec::new();
    place.put(&mut out);
    put_varint(&mut out, uses.len() as u64);
    uses.iter().for_each(|used| put_use(&mut out, used));
    out
}

fn read_values_extension(bytes: &[u8]) -> Result<(Place, Vec<SegmentUse>), Malformed> {
    let mut reader = Reader::new(bytes);
    let place = Place::read(&mut reader)?;
    let mut uses = Vec::new();
    for _ in 0..reader.length()? {
        uses.push(read_use(&mut reader)?);
    }
    reader.finish()?;
    Ok((place, uses))
}

fn read_sketch(reader: &mut Reader<'_>) -> Result<Vec<u64>, Malformed> {
    let count = reader.length()?;
    if count > SKETCH_HASHES {
        return Err(Malformed::Bounds);
    }
    let mut sketch = Vec::with_capacity(count);
    for _ in 0..count {
        sketch.push(reader.u64()?);
    }
    if sketch.is_sorted() { Ok(sketch) } else { Err(Malformed::Order) }
}

/// The top level of a part's index: where the leaves and the filter partitions are.
///
/// ```text
///   filter count varint, then of each: place
///   leaf count varint, then of each: separator slice, place, filter number + 1 varint (0: none)
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopIndex {
    /// The filter partitions, in the order of the keys.
    pub filters: Vec<Place>,
    /// The leaves, in the order of the keys.
    pub leaves: Vec<LeafEntry>,
    /// The separators of all leaves, one after the other.
    pub separators: Vec<u8>,
}

/// A leaf in the top index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry {
    /// Where its separator ends in [`TopIndex::separators`]; it begins where the one before ends.
    pub separator_end: usize,
    /// Where the leaf index block is.
    pub place: Place,
    /// The filter partition that holds its keys.
    pub filter: Option<u32>,
}

impl TopIndex {
    /// Adds a leaf.
    pub fn push_leaf(&mut self, separator: &[u8], place: Place, filter: Option<u32>) {
        self.separators.extend_from_slice(separator);
        self.leaves.push(LeafEntry { separator_end: self.separators.len(), place, filter });
    }

    /// The separator of a leaf; empty if there is no such leaf.
    #[inline]
    pub fn separator(&self, leaf: usize) -> &[u8] {
        let start = match leaf.checked_sub(1) {
            Some(before) => self.leaves.get(before).map_or(0, |entry| entry.separator_end),
            None => 0,
        };
        self.leaves.get(leaf).and_then(|entry| self.separators.get(start..entry.separator_end)).unwrap_or(&[])
    }

    /// Appends it as a piece of a file.
    pub fn put(&self, out: &mut Vec<u8>, seed: u64) {
        let start = out.len();
        put_varint(out, self.filters.len() as u64);
        self.filters.iter().for_each(|place| place.put(out));
        put_varint(out, self.leaves.len() as u64);
        for (number, leaf) in self.leaves.iter().enumerate() {
            put_slice(out, self.separator(number));
            leaf.place.put(out);
            put_varint(out, leaf.filter.map_or(0, |filter| u64::from(filter) + 1));
        }
        seal(out, start, Encoding::TopIndex, Compression::None, seed, &mut Vec::new());
    }

    /// Reads what [`TopIndex::put`] wrote.
    ///
    /// # Errors
    /// The checksum does not match, or the bytes are malformed.
    pub fn open(stored: &[u8], seed: u64) -> Result<TopIndex, Malformed> {
        let mut reader = Reader::new(Sealed::open(stored, seed)?.plain(Encoding::TopIndex)?);
        let mut top = TopIndex::default();
        for _ in 0..reader.length()? {
            top.filters.push(Place::read(&mut reader)?);
        }
        for _ in 0..reader.length()? {
            let separator = reader.slice()?;
            let place = Place::read(&mut reader)?;
            let filter = match reader.varint()?.checked_sub(1) {
                Some(filter) if filter >= top.filters.len() as u64 => return Err(Malformed::Bounds),
                Some(filter) => Some(filter as u32),
                None => None,
            };
            top.push_leaf(separator, place, filter);
        }
        reader.finish()?;
        if top.leaves.is_empty() { Err(Malformed::Short) } else { Ok(top) }
    }
}

#[cfg(test)]
#[path = "part/tests.rs"]
mod tests;
