//! The encoding for records of any shape: keys without the prefix that they share with the key
//! before.
//!
//! ```text
//!   entries      of each record: shared varint, unshared varint, payload length varint,
//!                the unshared end of the key, the payload
//!   seqs         count × seq width      differences to the smallest; nothing when the block has no seqs
//!   kinds        count × u8             nothing when all records are of one kind
//!   restarts     where every 16th entry begins; its key is stored in full.
//!                u16 LE when the entries are shorter than 64 KiB, else u32 LE
//!   footer       seq base u64 LE | count u32 LE | entries length u32 LE | seq width u8 (0xff: no seqs)
//!                | kind u8 (0xff: a column) | reserved u16 (0; bits for write time and deadline)
//! ```
//!
//! Prefix compression with restarts is LevelDB's block format; kinds and seqs are in separate
//! columns.

use folddb_base::OpKind;
use folddb_base::bytes::{Malformed, Reader};

use super::columns::{KIND_COLUMN, SeqColumn, Sides, width_mask};

/// A key is stored whole after this many records.
pub(super) const RESTART_EVERY: usize = 16;

/// Bytes of the footer.
pub(super) const FOOTER_BYTES: usize = 20;

/// The seq width of a block without seqs.
pub(super) const NO_SEQS: u8 = 0xff;

/// Entries at least this long have restarts of four bytes.
pub(super) const WIDE_RESTARTS_FROM: usize = 1 << 16;

/// The contents of the footer; all places are checked to be inside the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generic {
    pub(super) count: usize,
    pub(super) entries_len: usize,
    pub(super) sides: Sides,
    restarts_at: usize,
    restart_width: usize,
}

/// One entry, as places in the block. The checked constructor is [`Generic::entry`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) shared: usize,
    pub(super) suffix_at: usize,
    pub(super) payload_at: usize,
    pub(super) end: usize,
}

impl Generic {
    pub(super) fn parse(body: &[u8]) -> Result<Generic, Malformed> {
        let footer_at = body.len().checked_sub(FOOTER_BYTES).ok_or(Malformed::Short)?;
        let mut reader = Reader::new(&body[footer_at..]);
        let seq_base = reader.u64()?;
        let count = reader.u32()? as usize;
        let entries_len = reader.u32()? as usize;
        let (seq_width, kind) = (reader.u8()?, reader.u8()?);
        if reader.rest() != [0, 0] || (seq_width > 8 && seq_width != NO_SEQS) {
            return Err(Malformed::Tag);
        }
        let kind = if kind == KIND_COLUMN { None } else { Some(OpKind::from_u8(kind)?) };
        let restart_width = if entries_len < WIDE_RESTARTS_FROM { 2 } else { 4 };
        // Each record takes at least three bytes, which also keeps the sums below far from
        // overflow.
        if count == 0 || count > entries_len / 3 || entries_len > body.len() {
            return Err(Malformed::Bounds);
        }
        let seqs_len = if seq_width == NO_SEQS { 0 } else { count * usize::from(seq_width) };
        let kinds_at = entries_len + seqs_len;
        let restarts_at = kinds_at + if kind.is_none() { count } else { 0 };
        if restarts_at + count.div_ceil(RESTART_EVERY) * restart_width != footer_at {
            return Err(Malformed::Bounds);
        }
        let seqs = (seq_width != NO_SEQS).then(|| SeqColumn {
            at: entries_len,
            width: seq_width,
            mask: width_mask(seq_width),
            base: seq_base,
        });
        Ok(Generic { count, entries_len, sides: Sides { seqs, kind, kinds_at }, restarts_at, restart_width })
    }

    pub(super) fn restart_count(&self) -> usize {
        self.count.div_ceil(RESTART_EVERY)
    }

    /// Where the entry of restart number `restart` begins.
    #[inline]
    pub(super) fn restart(&self, body: &[u8], restart: usize) -> Result<usize, Malformed> {
        let at = self.restarts_at + restart * self.restart_width;
        let bytes = body.get(at..at + self.restart_width).ok_or(Malformed::Bounds)?;
        Ok(match *bytes {
            [a, b] => usize::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => return Err(Malformed::Bounds),
        })
    }

    /// The entry at `at`.
    #[inline]
    pub(super) fn entry(&self, body: &[u8], at: usize) -> Result<Entry, Malformed> {
        let entries = body.get(at..self.entries_len).ok_or(Malformed::Bounds)?;
        let (shared, unshared, payload_len, header_len) = match *entries {
            [a, b, c, ..] if (a | b | c) < 0x80 => (usize::from(a), usize::from(b), usize::from(c), 3),
            _ => {
                let mut reader = Reader::new(entries);
                let (shared, unshared, payload_len) = (reader.length()?, reader.length()?, reader.length()?);
                (shared, unshared, payload_len, entries.len() - reader.rest().len())
            }
        };
        let suffix_at = at + header_len;
        let room = self.entries_len - suffix_at;
        if unshared > room || payload_len > room - unshared {
            return Err(Malformed::Bounds);
        }
        let payload_at = suffix_at + unshared;
        Ok(Entry { shared, suffix_at, payload_at, end: payload_at + payload_len })
    }

    /// The whole key at restart number `restart`.
    #[inline]
    pub(super) fn restart_key<'a>(&self, body: &'a [u8], restart: usize) -> Result<&'a [u8], Malformed> {
        let entry = self.entry(body, self.restart(body, restart)?)?;
        if entry.shared != 0 {
            return Err(Malformed::Order);
        }
        body.get(entry.suffix_at..entry.payload_at).ok_or(Malformed::Bounds)
    }
}
