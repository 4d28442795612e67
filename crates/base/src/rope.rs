//! Ropes: separated values in several pieces.
//!
//! The payload of `SetSeparated`, `InsertSeparated` and `FoldSeparated` is a pointer, or a rope:
//!
//! ```text
//!    0  mark     u32     0xffffffff, which is no segment
//!    4  pieces   u32     how many, 2 or more
//!    8  time     u64     when the newest of them was written, in milliseconds since 1970
//!   16  head     slice   what the table's rules take out of the whole value; mostly nothing
//!    .  the pieces, in order:
//!       inline   varint  2 × bytes + 1, and the bytes; never empty, never two in a row
//!       separated varint  2 × bytes, then segment u32, place u32, hash u32: as in a pointer
//! ```
//!
//! In a table with expiry the mark is 0xfffffffe, and the deadline (u64, see `stamp.rs`) is between
//! time and head.
//!
//! The value is the bytes of the pieces, one after the other. So two lists are joined by writing
//! the pieces of both: no body is read, and joining is associative, byte for byte. A piece is in
//! the value log like any value, under the key of the record.
//!
//! The hash of a value in several pieces is that of their lengths and hashes, under its key: the
//! same bytes in other pieces have another hash.

use crate::bytes::{Malformed, Reader, put_slice, put_u32, put_u64, put_varint};
use crate::checksum::{GrowingHash, hash64, key_hash};
use crate::pointer::{Pointer, ValuePlace, value_hash};

/// The mark of a rope, where a pointer has the number of its segment.
pub const ROPE_MARK: u32 = u32::MAX;

/// The mark of a rope with a deadline.
pub const LASTING_ROPE_MARK: u32 = u32::MAX - 1;

/// Composing makes no rope longer than this, in bytes: longer ones stay in several records, which
/// readers join.
pub const ROPE_BYTES_MAX: usize = 64 << 10;

const FRONT_BYTES: usize = 16;

/// Where a rope with [`LASTING_ROPE_MARK`] has its deadline.
const DEADLINE_AT: usize = FRONT_BYTES;

/// What is known of a separated value, in one piece or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rope<'a> {
    /// When its newest separated piece was written, in milliseconds since 1970.
    pub time_ms: u64,
    /// The deadline of the value, in milliseconds since 1970; none if it has none.
    pub deadline_ms: Option<u64>,
    /// What the table's rules take out of the whole value.
    pub head: &'a [u8],
    /// Bytes of the value.
    pub len: u64,
    /// How many pieces.
    pub pieces: u32,
    body: Body<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body<'a> {
    One(Pointer<'a>),
    /// The encoded pieces, and where they begin in the payload.
    Many(&'a [u8], usize),
}

/// A piece of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Inline(&'a [u8]),
    /// A value of its own in the value log.
    Separated {
        /// Its place.
        place: ValuePlace,
        /// Its hash, as in a pointer.
        hash: u32,
        /// Its bytes.
        len: u64,
        /// The offset of its place in the payload.
        at: usize,
    },
}

impl Piece<'_> {
    /// Bytes of the piece.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Inline(bytes) => bytes.len() as u64,
            Piece::Separated { len, .. } => *len,
        }
    }

    /// True for a piece without bytes, which no rope holds.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A pointer to the piece, if it is separated.
    pub fn pointer(&self) -> Option<Pointer<'static>> {
        match *self {
            Piece::Inline(_) => None,
            Piece::Separated { place, hash, len, .. } => {
                Some(Pointer { place, time_ms: 0, hash, len, head: &[] })
            }
        }
    }
}

impl<'a> Rope<'a> {
    /// Reads a pointer or a rope, and the deadline after it, if there is one. Nothing else may
    /// follow.
    ///
    /// # Errors
    /// The bytes are neither.
    pub fn decode(bytes: &'a [u8]) -> Result<Rope<'a>, Malformed> {
        let mut reader = Reader::new(bytes);
        let mark = reader.u32()?;
        if !matches!(mark, ROPE_MARK | LASTING_ROPE_MARK) {
            let (one, deadline) = Pointer::decode_front(bytes)?;
            let deadline_ms = deadline.try_into().ok().map(u64::from_le_bytes);
            let Pointer { time_ms, head, len, .. } = one;
            return Ok(Rope { time_ms, deadline_ms, head, len, pieces: 1, body: Body::One(one) });
        }
        let (pieces, time_ms) = (reader.u32()?, reader.u64()?);
        let deadline_ms = (mark == LASTING_ROPE_MARK).then(|| reader.u64()).transpose()?;
        let head = reader.slice()?;
        let many = reader.rest();
        let (mut len, mut found, mut was_inline) = (0_u64, 0_u32, false);
        while !reader.is_empty() {
            let piece = read_piece(&mut reader, bytes.len())?;
            let is_inline = matches!(piece, Piece::Inline(_));
            if piece.is_empty() || (is_inline && was_inline) {
                return Err(Malformed::Order);
            }
            len = len.checked_add(piece.len()).ok_or(Malformed::Bounds)?;
            (found, was_inline) = (found + 1, is_inline);
        }
        if found != pieces || pieces < 2 {
            return Err(Malformed::Bounds);
        }
        let body = Body::Many(many, bytes.len() - many.len());
        Ok(Rope { time_ms, deadline_ms, head, len, pieces, body })
    }

    /// The pieces, in order.
    pub fn iter(&self) -> impl Iterator<Item = Piece<'a>> + use<'a> {
        let (one, many) = match self.body {
            Body::One(pointer) => (Some(pointer), (&[][..], 0)),
            Body::Many(bytes, from) => (None, (bytes, from)),
        };
        let one = one.map(|Pointer { place, hash, len, .. }| Piece::Separated { place, hash, len, at: 0 });
        let end = many.1 + many.0.len();
        let mut reader = Reader::new(many.0);
        one.into_iter().chain(std::iter::from_fn(move || {
            if reader.is_empty() { None } else { read_piece(&mut reader, end).ok() }
        }))
    }

    /// The separated pieces, in order, as pointers.
    pub fn pointers(&self) -> impl Iterator<Item = Pointer<'static>> + use<'a> {
        self.iter().filter_map(|piece| piece.pointer())
    }

    /// The pointer of a value in one piece.
    pub fn as_pointer(&self) -> Option<Pointer<'a>> {
        match self.body {
            Body::One(pointer) => Some(pointer),
            Body::Many(..) => None,
        }
    }

    /// Distinguishes the value from any other that its key has ever had: made of the places of its
    /// separated pieces, the bytes of the others, and the write time. Neither a merge nor a
    /// relocation of its pieces changes it.
    pub fn version(&self) -> u64 {
        let mut told = self.time_ms.to_le_bytes().to_vec();
        for piece in self.iter() {
            match piece {
                Piece::Inline(bytes) => put_slice(&mut told, bytes),
                Piece::Separated { place, .. } => {
                    put_u32(&mut told, place.segment);
                    put_u32(&mut told, place.unit);
                }
            }
        }
        hash64(0, &told)
    }

    /// The hash of the value under this key: see the head of this file.
    pub fn hash(&self, key: &[u8]) -> u32 {
        if let Body::One(pointer) = self.body {
            return pointer.hash;
        }
        let mut hash = GrowingHash::new(key_hash(key));
        for piece in self.iter() {
            let own = match piece {
                Piece::Inline(bytes) => value_hash(key, bytes),
                Piece::Separated { hash, .. } => hash,
            };
            hash.push(&piece.len().to_le_bytes());
            hash.push(&own.to_le_bytes());
        }
        hash.hash32()
    }
}

/// Reads a piece from the remaining bytes of a payload of `end` bytes.
fn read_piece<'a>(reader: &mut Reader<'a>, end: usize) -> Result<Piece<'a>, Malformed> {
    let tag = reader.varint()?;
    let len = tag >> 1;
    if tag & 1 == 1 {
        return Ok(Piece::Inline(reader.take(usize::try_from(len).map_err(|_| Malformed::Short)?)?));
    }
    let at = end - reader.rest().len();
    let place = ValuePlace { segment: reader.u32()?, unit: reader.u32()? };
    Ok(Piece::Separated { place, hash: reader.u32()?, len, at })
}

/// Puts a rope together, piece by piece.
#[derive(Debug, Default)]
pub struct RopeBuilder {
    pieces: Vec<u8>,
    /// The inline bytes at the end that are not among the pieces yet.
    inline: Vec<u8>,
    count: u32,
    len: u64,
    one: Option<Pointer<'static>>,
}

impl RopeBuilder {
    /// Adds inline bytes.
    pub fn push_inline(&mut self, bytes: &[u8]) {
        self.inline.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
    }

    /// Adds a piece that is separated.
    pub fn push_separated(&mut self, place: ValuePlace, hash: u32, len: u64) {
        self.end_inline();
        put_varint(&mut self.pieces, len << 1);
        put_u32(&mut self.pieces, place.segment);
        put_u32(&mut self.pieces, place.unit);
        put_u32(&mut self.pieces, hash);
        self.count += 1;
        self.len += len;
        self.one = Some(Pointer { place, time_ms: 0, hash, len, head: &[] });
    }

    /// Adds a piece of another rope.
    pub fn push(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Inline(bytes) => self.push_inline(bytes),
            Piece::Separated { place, hash, len, .. } => self.push_separated(place, hash, len),
        }
    }

    /// Bytes of the value so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True as long as it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the pieces take so far.
    pub fn encoded_bytes(&self) -> usize {
        FRONT_BYTES + self.pieces.len() + self.inline.len()
    }

    fn end_inline(&mut self) {
        if !self.inline.is_empty() {
            put_varint(&mut self.pieces, (self.inline.len() as u64) << 1 | 1);
            self.pieces.append(&mut self.inline);
            self.count += 1;
        }
    }

    /// Appends the result: a rope, or a pointer if it is a single separated piece.
    pub fn put(self, time_ms: u64, head: &[u8], out: &mut Vec<u8>) {
        self.put_until(time_ms, None, head, out);
    }

    /// The same, for a value that lasts until a deadline if one is given. Returns the offset of the
    /// deadline in `out`, if there is one.
    pub fn put_until(
        mut self,
        time_ms: u64,
        deadline_ms: Option<u64>,
        head: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        self.end_inline();
        let start = out.len();
        if let (1, Some(one)) = (self.count, self.one) {
            Pointer { time_ms, head, ..one }.put(out);
            let end = out.len();
            return deadline_ms.map(|deadline_ms| {
                put_u64(out, deadline_ms);
                end
            });
        }
        put_u32(out, if deadline_ms.is_some() { LASTING_ROPE_MARK } else { ROPE_MARK });
        put_u32(out, self.count);
        put_u64(out, time_ms);
        let deadline_at = deadline_ms.map(|deadline_ms| {
            put_u64(out, deadline_ms);
            start + DEADLINE_AT
        });
        put_slice(out, head);
        out.extend_from_slice(&self.pieces);
        deadline_at
    }
}

#[cfg(test)]
#[path = "rope/tests.rs"]
mod tests;
