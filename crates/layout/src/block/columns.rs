//! Columns of numbers of one byte width, and the two that every block may have in addition to its
//! keys: seqs and kinds.
//!
//! A number of width w is w bytes, little-endian, read by one load of eight bytes and a mask.
//! Columns are therefore never at the very end of a block: at least eight bytes of footer follow.

use folddb_base::bytes::Malformed;
use folddb_base::{OpKind, Seq};

/// The kind byte of a block with records of several kinds.
pub(super) const KIND_COLUMN: u8 = 0xff;

/// Bytes that hold every number up to `max`.
#[inline]
pub(super) fn byte_width(max: u64) -> u8 {
    (64 - max.leading_zeros()).div_ceil(8) as u8
}

/// The bits of a number of this many bytes.
#[inline]
pub(super) fn width_mask(width: u8) -> u64 {
    match width {
        0 => 0,
        1..=7 => (1u64 << (8 * width)) - 1,
        _ => u64::MAX,
    }
}

/// Eight bytes at `at` under `mask`; zero past the end, which no checked column reaches.
#[inline]
pub(super) fn load_word(bytes: &[u8], at: usize, mask: u64) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        Some(word) => u64::from_le_bytes(*word) & mask,
        None => 0,
    }
}

/// Appends a column: each number in `width` bytes.
pub(super) fn put_column(out: &mut Vec<u8>, numbers: impl ExactSizeIterator<Item = u64>, width: u8) {
    let width = usize::from(width);
    if width == 0 {
        return;
    }
    let start = out.len();
    let len = numbers.len() * width;
    out.resize(start + len + 8, 0);
    for (slot, number) in (start..).step_by(width).zip(numbers) {
        out[slot..slot + 8].copy_from_slice(&number.to_le_bytes());
    }
    out.truncate(start + len);
}

/// Where a block keeps seqs and kinds; checked to be inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub(super) seqs: Option<SeqColumn>,
    /// The kind of all records, or none if there is a column of kinds.
    pub(super) kind: Option<OpKind>,
    pub(super) kinds_at: usize,
}

/// Seqs as differences to the smallest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeqColumn {
    pub(super) at: usize,
    pub(super) width: u8,
    pub(super) mask: u64,
    pub(super) base: Seq,
}

impl Sides {
    /// The seq of a record, unless the block has none.
    #[inline]
    pub(super) fn seq(&self, bytes: &[u8], index: usize) -> Option<Seq> {
        let column = self.seqs.as_ref()?;
        let delta = load_word(bytes, column.at + index * usize::from(column.width), column.mask);
        Some(column.base.wrapping_add(delta))
    }

    /// The kind of a record.
    #[inline]
    pub(super) fn kind(&self, bytes: &[u8], index: usize) -> Result<OpKind, Malformed> {
        match self.kind {
            Some(kind) => Ok(kind),
            None => OpKind::from_u8(*bytes.get(self.kinds_at + index).ok_or(Malformed::Short)?),
        }
    }
}
