//! Records packed into an arena.
//!
//! ```text
//!   kind u8 | key length varint | payload length varint | key | payload
//! ```
//!
//! Seqs are in the entries, not in the arena. Only this process writes and reads arenas, so their
//! bytes are trusted.

use folddb_base::bytes::{Reader, put_varint};
use folddb_base::{OpKind, Record, Seq};

/// The length of the longest header, in bytes: a kind and two varints.
pub(crate) const HEADER_BYTES_MAX: usize = 21;

/// Bytes that a record takes at most.
#[inline]
pub(crate) fn packed_len_max(key: &[u8], payload: &[u8]) -> usize {
    HEADER_BYTES_MAX + key.len() + payload.len()
}

/// Appends a record.
#[inline]
pub(crate) fn put(arena: &mut Vec<u8>, kind: OpKind, key: &[u8], payload: &[u8]) {
    if key.len() < 0x80 && payload.len() < 0x80 {
        arena.extend_from_slice(&[kind as u8, key.len() as u8, payload.len() as u8]);
    } else {
        arena.push(kind as u8);
        put_varint(arena, key.len() as u64);
        put_varint(arena, payload.len() as u64);
    }
    arena.extend_from_slice(key);
    arena.extend_from_slice(payload);
}

/// Writes a record to the front of `room`, which has at least [`packed_len_max`] bytes. Returns how
/// many it takes.
#[inline]
pub(crate) fn put_at(room: &mut [u8], kind: OpKind, key: &[u8], payload: &[u8]) -> usize {
    let header_len = put_header_at(room, kind, key.len(), payload.len());
    let (of_key, rest) = room[header_len..].split_at_mut(key.len());
    of_key.copy_from_slice(key);
    rest[..payload.len()].copy_from_slice(payload);
    header_len + key.len() + payload.len()
}

#[inline]
fn put_header_at(room: &mut [u8], kind: OpKind, key_len: usize, payload_len: usize) -> usize {
    let ([first, second, third, ..], 0..0x80, 0..0x80) = (&mut *room, key_len, payload_len) else {
        return put_long_header_at(room, kind, key_len, payload_len);
    };
    (*first, *second, *third) = (kind as u8, key_len as u8, payload_len as u8);
    3
}

#[inline(never)]
fn put_long_header_at(room: &mut [u8], kind: OpKind, key_len: usize, payload_len: usize) -> usize {
    room[0] = kind as u8;
    let mut len = 1;
    for mut rest in [key_len, payload_len] {
        while rest >= 0x80 {
            room[len] = rest as u8 | 0x80;
            rest >>= 7;
            len += 1;
        }
        room[len] = rest as u8;
        len += 1;
    }
    len
}

/// Where the fields of a record are in its arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    kind: OpKind,
    key_at: u32,
    key_len: u32,
    payload_len: u32,
}

impl Place {
    /// A place for a source without a current record.
    pub(crate) const NOWHERE: Place = Place { kind: OpKind::Delete, key_at: 0, key_len: 0, payload_len: 0 };

    /// The record that was put at `offset`.
    #[inline]
    pub(crate) fn at(arena: &[u8], offset: u32) -> Place {
        let bytes = &arena[offset as usize..];
        match *bytes {
            [kind, key_len @ 0..0x80, payload_len @ 0..0x80, ..] => Place {
                kind: kind_of(kind),
                key_at: offset + 3,
                key_len: u32::from(key_len),
                payload_len: u32::from(payload_len),
            },
            _ => Place::at_long(bytes, offset),
        }
    }

    #[cold]
    fn at_long(bytes: &[u8], offset: u32) -> Place {
        let mut reader = Reader::new(bytes);
        let mut header = || Some((reader.u8().ok()?, reader.varint().ok()?, reader.varint().ok()?));
        let (kind, key_len, payload_len) = header().expect("the arena holds what `put` wrote");
        let header_len = (bytes.len() - reader.rest().len()) as u32;
        Place {
            kind: kind_of(kind),
            key_at: offset + header_len,
            key_len: key_len as u32,
            payload_len: payload_len as u32,
        }
    }

    /// What the record does.
    #[inline]
    pub(crate) fn kind(&self) -> OpKind {
        self.kind
    }

    /// The key of the record.
    #[inline]
    pub(crate) fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.key_at as usize..][..self.key_len as usize]
    }

    /// The payload of the record.
    #[inline]
    pub(crate) fn payload<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[(self.key_at + self.key_len) as usize..][..self.payload_len as usize]
    }

    /// Where its record ends.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        (self.key_at + self.key_len + self.payload_len) as usize
    }

    /// All bytes of the record, as `put` wrote them from `offset` on.
    #[inline]
    pub(crate) fn packed<'a>(&self, arena: &'a [u8], offset: u32) -> &'a [u8] {
        &arena[offset as usize..self.end()]
    }

    /// The record.
    #[inline]
    pub(crate) fn record<'a>(&self, arena: &'a [u8], seq: Seq) -> Record<'a> {
        Record { key: self.key(arena), seq, kind: self.kind, payload: self.payload(arena) }
    }
}

#[inline]
fn kind_of(number: u8) -> OpKind {
    OpKind::from_u8(number).expect("the arena holds what `put` wrote")
}
