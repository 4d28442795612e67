//! Frames of the log: each is one batch, whole or not at all.
//!
//! ```text
//!    0  hash         u64     xxh3-64 of all after it, seeded with the segment's salt and the frame's LSN
//!    8  len          u32     bytes of the whole frame
//!   12  prev_hash    u32     low half of the hash of the frame before it, 0 = it begins a chain
//!   16  magic        u8      0xf7
//!   17  flags        u8      bits 0-1 the kind: 0 batch, 1 mark, 2 seal; bit 2: of a seal, another segment
//!                            follows; bit 6: it has a time; the others reserved, 0: bit 4 durable position
//!                            of the value log, bit 5 compressed
//!   18  first_seq    varint  of the first record; of the next record to come where there is none
//!    .  count        varint  records
//!    .  behind       varint  LSN of the frame - durable LSN known when it was composed
//!    .  time         varint  with bit 6 only: when it was written, in milliseconds since 1970
//!    .  payload      records, up to the end of the frame
//!
//!   a record:  table varint | kind u8 (see base/op.rs) | key: len varint, bytes | payload: len varint, bytes
//!              kind 5 is a range delete: from `key`, included, to `payload`, excluded
//!              kind 16 puts a value of a hashed table: the slot that it replaces, u64, 0 for none, then a pointer (see
//!              base/pointer.rs); kind 17 removes one: its slot, u64, 0 where nothing is to be done
//! ```
//!
//! A small batch costs 22 to 30 bytes besides its records. The LSN of a frame is its place, and is
//! not stored: it seeds the hash, so a frame is valid only at its place, and a search for frames
//! beyond a damaged one cannot be misled by bytes that were a frame elsewhere. For the same search,
//! frames are chained by a field instead of the seed: a frame beyond a hole can still be verified.
//!
//! A **mark** holds no records; it records `durable LSN` if no batch arrives to do so. A **seal**
//! is the last frame of a segment that was finished in order: at the end of the log, or before the
//! next segment, whose header and name are durable before that kind of seal is written.

use folddb_base::bytes::{Malformed, Reader, put_slice, put_varint, varint_len};
use folddb_base::checksum::{hash64, place_seed};
use folddb_base::{Lsn, OpKind, Seq, TableId};

/// Bytes of a frame before its varints.
const FIXED_BYTES: usize = 18;

/// Fewest bytes of a frame.
pub const FRAME_BYTES_MIN: usize = FIXED_BYTES + 3;

/// Most bytes of a frame besides its payload: four varints at their longest.
pub const FRAME_OVERHEAD_BYTES_MAX: usize = FIXED_BYTES + 10 + 5 + 10 + 10;

/// The byte by which a search finds frames.
pub const MAGIC: u8 = 0xf7;

/// The offset of [`MAGIC`] in a frame.
pub const MAGIC_AT: usize = 16;

const KIND_BITS: u8 = 0b11;

/// The flag of a batch that has a time.
const TIME_BIT: u8 = 1 << 6;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Holds the records of one batch.
    Batch = 0,
    /// Holds nothing, and records what is durable.
    Mark = 1,
    /// Ends a segment without announcing another one: the end of a closed log.
    Seal = 2,
    /// Ends a segment that is followed by another one, which was durable before.
    SealForNext = 6,
}

impl FrameKind {
    /// Whether it ends a segment.
    pub fn is_seal(self) -> bool {
        matches!(self, FrameKind::Seal | FrameKind::SealForNext)
    }

    fn from_flags(flags: u8) -> Result<FrameKind, Malformed> {
        match flags {
            0 => Ok(FrameKind::Batch),
            1 => Ok(FrameKind::Mark),
            2 => Ok(FrameKind::Seal),
            6 => Ok(FrameKind::SealForNext),
            _ => Err(Malformed::Tag),
        }
    }
}

/// The fields of a frame, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// What it is for.
    pub kind: FrameKind,
    /// The seq of its first record, or of the next record to come if it has none.
    pub first_seq: Seq,
    /// How many records it holds.
    pub count: u32,
    /// Everything before this LSN was known to be durable when the frame was composed. At most the
    /// frame's own LSN.
    pub durable_lsn: Lsn,
    /// The low half of the hash of the frame before it.
    pub prev_hash: u32,
    /// When a batch was written, in milliseconds since 1970, if one of its tables needs that.
    pub time_ms: Option<u64>,
}

/// A frame, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its fields.
    pub head: FrameHead,
    /// Its records.
    pub payload: &'a [u8],
    /// Bytes of the whole frame.
    pub len_bytes: usize,
    /// The low half of its hash, which the next frame repeats.
    pub hash: u32,
}

/// Bytes that [`put_frame`] appends.
#[inline]
pub fn frame_len(lsn: Lsn, head: &FrameHead, payload_bytes: usize) -> usize {
    let varints = varint_len(head.first_seq)
        + varint_len(u64::from(head.count))
        + varint_len(lsn.saturating_sub(head.durable_lsn));
    FIXED_BYTES + varints + head.time_ms.map_or(0, varint_len) + payload_bytes
}

/// Appends the frame for `lsn` of a segment with this `salt`, and returns the low half of its hash,
/// for the next one. The length of the frame must fit a `u32`, which the size of a segment ensures.
#[inline]
pub fn put_frame(out: &mut Vec<u8>, salt: u64, lsn: Lsn, head: &FrameHead, payload: &[u8]) -> u32 {
    let start = out.len();
    let len = frame_len(lsn, head, payload.len());
    out.reserve(len);
    let mut fixed = [0u8; FIXED_BYTES];
    fixed[8..12].copy_from_slice(&(len as u32).to_le_bytes());
    fixed[12..16].copy_from_slice(&head.prev_hash.to_le_bytes());
    fixed[MAGIC_AT] = MAGIC;
    fixed[17] = head.kind as u8 | if head.time_ms.is_some() { TIME_BIT } else { 0 };
    out.extend_from_slice(&fixed);
    put_varint(out, head.first_seq);
    put_varint(out, u64::from(head.count));
    put_varint(out, lsn.saturating_sub(head.durable_lsn));
    if let Some(time_ms) = head.time_ms {
        put_varint(out, time_ms);
    }
    out.extend_from_slice(payload);
    let hash = hash64(place_seed(salt, lsn), &out[start + 8..]);
    out[start..start + 8].copy_from_slice(&hash.to_le_bytes());
    hash as u32
}

/// The length that the frame at the front of `bytes` claims; none if no frame can begin with them.
/// Costs next to nothing, and does not check the rest of the frame.
#[inline]
pub fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<FIXED_BYTES>()?;
    if head[MAGIC_AT] != MAGIC || head[17] & KIND_BITS == KIND_BITS {
        return None;
    }
    let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    (len >= FRAME_BYTES_MIN).then_some(len)
}

/// The frame at `lsn`, which is at the front of `bytes`; none if no whole frame is there.
///
/// # Errors
/// The frame is whole, but makes no sense to this version: `Tag` for unknown flags, `Bounds` for
/// impossible numbers, and for a mark or a seal with records.
pub fn decode_frame(bytes: &[u8], salt: u64, lsn: Lsn) -> Result<Option<Frame<'_>>, Malformed> {
    let whole = claimed_len(bytes).and_then(|len| bytes.get(..len));
    let Some(whole) = whole else { return Ok(None) };
    let mut reader = Reader::new(whole);
    let hash = reader.u64()?;
    if hash != hash64(place_seed(salt, lsn), reader.rest()) {
        return Ok(None);
    }
    let head = read_head(&mut reader, lsn)?;
    if head.kind != FrameKind::Batch && !reader.is_empty() {
        return Err(Malformed::Bounds);
    }
    Ok(Some(Frame { head, payload: reader.rest(), len_bytes: whole.len(), hash: hash as u32 }))
}

/// The claimed fields and length of the frame at the front of `bytes`, if it is one at `lsn`; none
/// if no frame that [`decode_frame`] takes can begin with them. Examines at most
/// [`FRAME_OVERHEAD_BYTES_MAX`] bytes, and hashes none of them: it serves to decide whether the
/// rest is worth reading.
#[inline]
pub fn claimed_head(bytes: &[u8], lsn: Lsn) -> Option<(FrameHead, usize)> {
    let len = claimed_len(bytes)?;
    let front = bytes.get(..bytes.len().min(len).min(FRAME_OVERHEAD_BYTES_MAX))?;
    let mut reader = Reader::new(front);
    let _hash = reader.u64().ok()?;
    let head = read_head(&mut reader, lsn).ok()?;
    let head_bytes = front.len() - reader.rest().len();
    (head.kind == FrameKind::Batch || head_bytes == len).then_some((head, len))
}

/// Reads the fields of a frame, from its length up to its payload.
fn read_head(reader: &mut Reader<'_>, lsn: Lsn) -> Result<FrameHead, Malformed> {
    let _len = reader.u32()?;
    let prev_hash = reader.u32()?;
    let _magic = reader.u8()?;
    let flags = reader.u8()?;
    let kind = FrameKind::from_flags(flags & !TIME_BIT)?;
    let first_seq = reader.varint()?;
    let count = u32::try_from(reader.varint()?).map_err(|_| Malformed::Bounds)?;
    let durable_lsn = lsn.checked_sub(reader.varint()?).ok_or(Malformed::Bounds)?;
    let time_ms = if flags & TIME_BIT == 0 { None } else { Some(reader.varint()?) };
    if time_ms.is_some() && kind != FrameKind::Batch {
        return Err(Malformed::Tag);
    }
    if first_seq.checked_add(u64::from(count)).is_none() {
        return Err(Malformed::Bounds);
    }
    Ok(FrameHead { kind, first_seq, count, durable_lsn, prev_hash, time_ms })
}

/// What a record of the log does: an op on a key, or a delete of a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOp {
    /// An op on the key.
    Op(OpKind),
    /// Makes absent all keys from the key up to, but not including, the payload, in the order of
    /// the table.
    RangeDelete,
    /// Gives a key of a hashed table the value that the pointer after the slot leads to.
    PutHashed,
    /// Makes a key of a hashed table absent.
    RemoveHashed,
}

const RANGE_DELETE: u8 = 5;
const PUT_HASHED: u8 = 16;
const REMOVE_HASHED: u8 = 17;

/// Bytes of the slot at the front of the payload of [`LogOp::PutHashed`] and
/// [`LogOp::RemoveHashed`].
pub const SLOT_BYTES: usize = 8;

impl LogOp {
    /// Its number on disk.
    #[inline]
    pub fn code(self) -> u8 {
        match self {
            LogOp::Op(kind) => kind as u8,
            LogOp::RangeDelete => RANGE_DELETE,
            LogOp::PutHashed => PUT_HASHED,
            LogOp::RemoveHashed => REMOVE_HASHED,
        }
    }

    #[inline]
    fn from_code(code: u8) -> Result<LogOp, Malformed> {
        match code {
            RANGE_DELETE => Ok(LogOp::RangeDelete),
            PUT_HASHED => Ok(LogOp::PutHashed),
            REMOVE_HASHED => Ok(LogOp::RemoveHashed),
            code => OpKind::from_u8(code).map(LogOp::Op),
        }
    }
}

impl From<OpKind> for LogOp {
    fn from(kind: OpKind) -> LogOp {
        LogOp::Op(kind)
    }
}

/// A record as a frame holds it; its seq follows from its place in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord<'a> {
    /// The table that it belongs to.
    pub table: TableId,
    /// What it does.
    pub op: LogOp,
    /// Its key.
    pub key: &'a [u8],
    /// The values of its op.
    pub payload: &'a [u8],
}

impl<'a> FrameRecord<'a> {
    /// The bytes of its pointer to the value log, if it has one.
    pub fn pointer(&self) -> Option<&'a [u8]> {
        match self.op {
            LogOp::Op(kind) if kind.is_separated() => Some(self.payload),
            LogOp::PutHashed => self.payload.get(SLOT_BYTES..),
            _ => None,
        }
    }

    /// The slot that it replaces or removes in the index of a hashed table, as a number, 0 for
    /// none; nothing if the record is of another kind, or has no slot.
    pub fn old_slot(&self) -> Option<u64> {
        match self.op {
            LogOp::PutHashed | LogOp::RemoveHashed => {
                self.payload.first_chunk::<SLOT_BYTES>().map(|bytes| u64::from_le_bytes(*bytes))
            }
            _ => None,
        }
    }
}

/// Appends a record to the payload of a frame.
#[inline]
pub fn put_record(out: &mut Vec<u8>, table: TableId, op: impl Into<LogOp>, key: &[u8], payload: &[u8]) {
    put_varint(out, u64::from(table.0));
    out.push(op.into().code());
    put_slice(out, key);
    put_slice(out, payload);
}

/// Bytes that [`put_record`] appends.
#[inline]
pub fn record_len(table: TableId, key_bytes: usize, payload_bytes: usize) -> usize {
    let numbers = [u64::from(table.0), key_bytes as u64, payload_bytes as u64];
    numbers.iter().map(|&number| varint_len(number)).sum::<usize>() + 1 + key_bytes + payload_bytes
}

/// The records of a frame's payload, in order. After an error it ends.
#[inline]
pub fn records(payload: &[u8]) -> Records<'_> {
    Records { reader: Reader::new(payload) }
}

/// See [`records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
}

impl<'a> Records<'a> {
    #[inline]
    fn read(&mut self) -> Result<FrameRecord<'a>, Malformed> {
        let table = u32::try_from(self.reader.varint()?).map_err(|_| Malformed::Bounds)?;
        let op = LogOp::from_code(self.reader.u8()?)?;
        Ok(FrameRecord {
            table: TableId(table),
            op,
            key: self.reader.slice()?,
            payload: self.reader.slice()?,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<FrameRecord<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(record)
    }
}

#[cfg(test)]
#[path = "frame/tests.rs"]
mod tests;
