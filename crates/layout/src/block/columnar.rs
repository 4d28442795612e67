//! The encoding for records of one shape: keys of one length, payloads of one length.
//!
//! Taken as big-endian numbers, the last (up to 16) bytes of the keys of a block are close
//! together, so each is kept as its difference to the smallest one (frame of reference), in as few
//! bytes as the largest difference needs. Each record keeps only the byte positions of the payload
//! at which any two payloads differ; the rest are stored once in a template. Every record is found
//! by its index alone, so the block is searched in place. A `Delete` has no payload; its row of
//! packed bytes is zero and is not read.
//!
//! ```text
//!   keys         count × key width      difference to the key base
//!   seqs         count × seq width      difference to the seq base; nothing when the block has no seqs
//!   kinds        count × u8             nothing when all records are of one kind
//!   payloads     count × packed length  the bytes of the payload that vary
//!   template     payload length         the bytes of the payload that do not, zero where they vary
//!   segments     n × (start u8, length u8), ascending: which bytes of the payload vary
//!   key head     key length - 16        what all keys begin with; nothing for keys up to 16 bytes
//!   footer       key base u128 LE | seq base u64 LE | count u32 LE | payload length u8 | key length u8
//!                | key width u8 | seq width u8 (0xff: no seqs) | kind u8 (0xff: a column) | segments u8
//!                | reserved u16 (0; bits for write time and deadline)
//! ```

use std::ops::Range;

use folddb_base::OpKind;
use folddb_base::bytes::{Malformed, Reader};

use super::columns::{KIND_COLUMN, SeqColumn, Sides, load_word, width_mask};
use super::generic::NO_SEQS;

/// Bytes of the footer.
pub(super) const FOOTER_BYTES: usize = 36;

/// Longest payload of this encoding, in bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 128;

/// Longest key of this encoding, in bytes. All but the last 16 must be the same in the whole block.
pub(super) const KEY_BYTES_MAX: usize = 255;

/// Bytes of a key that may differ within a block.
pub(super) const TAIL_BYTES: usize = 16;

/// How many fences a block has: records at equal distances, whose keys a search compares first.
const FENCES: usize = 15;

/// Most varying ranges of a payload; if there are more, the closest ones are joined.
pub(super) const SEGMENTS_MAX: usize = 8;

/// A range of a payload that varies from record to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u8,
    pub(super) len: u8,
}

/// How payloads are built from the template and the packed bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// The template is the payload.
    Constant,
    /// The packed bytes are the payload.
    Whole,
    /// At most eight bytes, of which one range varies: a load, a shift and an or.
    Word {
        /// The template as a little-endian number.
        template: u64,
        /// The bits of the packed bytes.
        mask: u64,
        /// By how many bits they are shifted.
        shift: u32,
    },
    /// Ranges copied into the template one by one.
    Spread {
        /// The ranges; only the first `count` are valid.
        segments: [Segment; SEGMENTS_MAX],
        /// How many there are.
        count: usize,
    },
}

/// The contents of the footer; all places are checked to be inside the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columnar {
    pub(super) count: usize,
    pub(super) key_base: u128,
    pub(super) key_width: usize,
    pub(super) key_mask: u64,
    pub(super) key_len: usize,
    pub(super) key_head_at: usize,
    pub(super) sides: Sides,
    pub(super) payloads_at: usize,
    pub(super) payload_len: usize,
    pub(super) packed_len: usize,
    pub(super) template_at: usize,
    pub(super) shape: Shape,
    fences: Fences,
}

/// The key deltas of records at equal distances, side by side. The first steps of a search would
/// each wait for a line of the block; these are compared at once.
#[derive(Clone, Copy, Debug, Default)]
struct Fences([u64; FENCES]);

/// The last bytes of a block, checked one by one.
struct Footer {
    key_base: u128,
    seq_base: u64,
    count: usize,
    payload_len: usize,
    key_len: usize,
    key_width: u8,
    seq_width: u8,
    /// The kind of all records, or none if they have a column of kinds.
    kind: Option<OpKind>,
    segment_count: usize,
}

impl Footer {
    #[inline]
    fn read(bytes: &[u8]) -> Result<Footer, Malformed> {
        let mut reader = Reader::new(bytes);
        let key_base = u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64;
        let seq_base = reader.u64()?;
        let count = reader.u32()? as usize;
        let (payload_len, key_len) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
        let (key_width, seq_width, kind, segment_count) =
            (reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?);
        let segment_count = usize::from(segment_count);
        let widths_known = key_width <= 8 && (seq_width <= 8 || seq_width == NO_SEQS);
        if !widths_known || reader.rest() != [0, 0] {
            return Err(Malformed::Tag);
        }
        if count == 0 || payload_len > PAYLOAD_BYTES_MAX || segment_count > SEGMENTS_MAX {
            return Err(Malformed::Bounds);
        }
        let kind = if kind == KIND_COLUMN { None } else { Some(OpKind::from_u8(kind)?) };
        Ok(Footer {
            key_base,
            seq_base,
            count,
            payload_len,
            key_len,
            key_width,
            seq_width,
            kind,
            segment_count,
        })
    }

    /// The columns of seqs and kinds, and where the payloads begin: they end at the template.
    #[inline]
    fn sides(&self, packed_len: usize, template_at: usize) -> Result<(Sides, usize), Malformed> {
        // From the front; at most 4 G × 145 bytes, which fits a u64 on every machine.
        let row = |width: usize| (self.count as u64) * (width as u64);
        let seq_width = self.seq_width;
        let seqs_at = row(usize::from(self.key_width));
        let kinds_at = seqs_at + if seq_width == NO_SEQS { 0 } else { row(usize::from(seq_width)) };
        let payloads_at = kinds_at + if self.kind.is_none() { row(1) } else { 0 };
        if payloads_at + row(packed_len) != template_at as u64 {
            return Err(Malformed::Bounds);
        }
        // Two records differ in key or seq, so each takes at least a byte: no walk is longer than
        // the block.
        if self.count > 1 && template_at < self.count {
            return Err(Malformed::Bounds);
        }
        // All of them are below `template_at` now, so they fit a usize.
        let (seqs_at, kinds_at, payloads_at) = (seqs_at as usize, kinds_at as usize, payloads_at as usize);
        let (mask, base) = (width_mask(seq_width), self.seq_base);
        let seqs = (seq_width != NO_SEQS).then_some(SeqColumn { at: seqs_at, width: seq_width, mask, base });
        Ok((Sides { seqs, kind: self.kind, kinds_at }, payloads_at))
    }
}

impl Columnar {
    pub(super) fn parse(body: &[u8]) -> Result<Columnar, Malformed> {
        let footer_at = body.len().checked_sub(FOOTER_BYTES).ok_or(Malformed::Short)?;
        let footer = Footer::read(&body[footer_at..])?;
        let (count, payload_len) = (footer.count, footer.payload_len);

        // From the back: these lengths do not depend on the count.
        let head_len = footer.key_len.saturating_sub(TAIL_BYTES);
        let key_head_at = footer_at.checked_sub(head_len).ok_or(Malformed::Bounds)?;
        let segments_at = key_head_at.checked_sub(2 * footer.segment_count).ok_or(Malformed::Bounds)?;
        let template_at = segments_at.checked_sub(payload_len).ok_or(Malformed::Bounds)?;
        let (segments, packed_len) = parse_segments(&body[segments_at..key_head_at], payload_len)?;
        let (sides, payloads_at) = footer.sides(packed_len, template_at)?;

        let mut columnar = Columnar {
            count,
            key_base: footer.key_base,
            key_width: usize::from(footer.key_width),
            key_mask: width_mask(footer.key_width),
            key_len: footer.key_len,
            key_head_at,
            sides,
            payloads_at,
            payload_len,
            packed_len,
            template_at,
            shape: shape_of(&body[template_at..segments_at], &segments[..footer.segment_count]),
            fences: Fences::default(),
        };
        // A number too large for a key of this length would be shown truncated, but searched for in
        // full. If differences are no wider than keys, the first and the last key fit, and all are
        // in order, then all fit.
        let widths_fit = columnar.key_width <= columnar.key_len;
        if !(widths_fit && columnar.key_fits(body, 0) && columnar.key_fits(body, count - 1)) {
            return Err(Malformed::Bounds);
        }
        columnar.fences = Fences::of(&columnar, body);
        Ok(columnar)
    }

    fn key_fits(&self, body: &[u8], index: usize) -> bool {
        let number = self.key_base.checked_add(u128::from(self.key_delta(body, index)));
        number.is_some_and(|number| self.key_len >= TAIL_BYTES || number >> (8 * self.key_len) == 0)
    }

    /// The key of a record minus the key base.
    #[inline]
    pub(super) fn key_delta(&self, body: &[u8], index: usize) -> u64 {
        load_word(body, index * self.key_width, self.key_mask)
    }

    /// The last 16 bytes of the key of a record, padded with zeros in front.
    #[inline]
    pub(super) fn key_tail(&self, body: &[u8], index: usize) -> [u8; TAIL_BYTES] {
        self.key_base.wrapping_add(u128::from(self.key_delta(body, index))).to_be_bytes()
    }

    /// What all keys begin with.
    pub(super) fn key_head<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        let len = self.key_len.saturating_sub(TAIL_BYTES);
        body.get(self.key_head_at..self.key_head_at + len).unwrap_or(&[])
    }

    /// The payload bytes that do not vary.
    pub(super) fn template<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        body.get(self.template_at..self.template_at + self.payload_len).unwrap_or(&[])
    }

    /// How many records come before `key` in the order of bytes, or its reverse; with `past_equal`,
    /// how many come before or are equal. None if the lengths of the keys differ and the caller
    /// must compare.
    pub(super) fn bound(&self, body: &[u8], key: &[u8], descending: bool, past_equal: bool) -> Option<usize> {
        if key.len() != self.key_len {
            return None;
        }
        let (head, tail) = key.split_at(self.key_len.saturating_sub(TAIL_BYTES));
        let precedes = match self.key_head(body).cmp(head) {
            std::cmp::Ordering::Equal => {
                return Some(self.tail_bound(body, tail_number(tail), descending, past_equal));
            }
            unequal => unequal.is_lt() != descending,
        };
        Some(if precedes { self.count } else { 0 })
    }

    /// The keys, seqs and payloads of the records between which the fences have a key of the length
    /// that all have, and the template. Reads no byte of the body.
    pub(super) fn where_searched<'b>(&self, body: &'b [u8], key: &[u8], descending: bool) -> [&'b [u8]; 4] {
        let tail = key.get(self.key_len.saturating_sub(TAIL_BYTES)..).unwrap_or(&[]);
        if key.len() != self.key_len {
            return [&[]; 4];
        }
        let target = tail_number(tail).saturating_sub(self.key_base).try_into().unwrap_or(u64::MAX);
        let among =
            self.fences.between(self.count, |delta| if descending { delta > target } else { delta < target });
        // With the fence after them, which may be the key.
        let rows = among.start..among.end + 1;
        let column = |at: usize, width: usize| {
            let end = (at + rows.end * width).min(body.len());
            body.get(at + rows.start * width..end).unwrap_or(&[])
        };
        let seqs = self.sides.seqs.map_or(&[][..], |seqs| column(seqs.at, usize::from(seqs.width)));
        [column(0, self.key_width), seqs, column(self.payloads_at, self.packed_len), self.template(body)]
    }

    fn tail_bound(&self, body: &[u8], tail: u128, descending: bool, past_equal: bool) -> usize {
        // Ascending: how many deltas are < target (or <=). Descending: how many are > target (or
        // >=).
        let Some(distance) = tail.checked_sub(self.key_base) else {
            return if descending { self.count } else { 0 };
        };
        let Ok(target) = u64::try_from(distance) else {
            return if descending { 0 } else { self.count };
        };
        match (descending, past_equal) {
            (false, false) => self.partition(body, |delta| delta < target),
            (false, true) => self.partition(body, |delta| delta <= target),
            (true, false) => self.partition(body, |delta| delta > target),
            (true, true) => self.partition(body, |delta| delta >= target),
        }
    }

    /// How many leading records satisfy `before`: a binary search without unpredictable branches
    /// between two fences.
    #[inline]
    fn partition(&self, body: &[u8], before: impl Fn(u64) -> bool) -> usize {
        let Range { start: mut low, end } = self.fences.between(self.count, &before);
        let mut len = end - low;
        while len > 0 {
            let half = len / 2;
            let middle = low + half;
            if before(self.key_delta(body, middle)) {
                low = middle + 1;
                len -= half + 1;
            } else {
                len = half;
            }
        }
        low
    }
}

impl Fences {
    fn of(columnar: &Columnar, body: &[u8]) -> Fences {
        Fences(std::array::from_fn(|number| columnar.key_delta(body, Fences::at(number, columnar.count))))
    }

    /// Which record of `count` is the fence of this number.
    #[inline]
    fn at(number: usize, count: usize) -> usize {
        // Both are at most the bytes of a block, so this cannot overflow a u64.
        ((number as u64 + 1) * count as u64 / (FENCES as u64 + 1)) as usize
    }

    /// Where the number of leading records that satisfy `before` is: after the last fence that
    /// does, up to the first that does not.
    #[inline]
    fn between(&self, count: usize, before: impl Fn(u64) -> bool) -> Range<usize> {
        let passed: usize = self.0.iter().map(|fence| usize::from(before(*fence))).sum();
        let start = if passed == 0 { 0 } else { Fences::at(passed - 1, count) + 1 };
        let end = if passed == FENCES { count } else { Fences::at(passed, count) };
        start..end.max(start)
    }
}

/// The bytes of a key as a big-endian number; at most 16 of them.
#[inline]
pub(super) fn tail_number(tail: &[u8]) -> u128 {
    if let Some(word) = tail.first_chunk::<8>()
        && tail.len() == 8
    {
        return u128::from(u64::from_be_bytes(*word));
    }
    let mut bytes = [0u8; TAIL_BYTES];
    let start = TAIL_BYTES.saturating_sub(tail.len());
    bytes[start..].copy_from_slice(&tail[..TAIL_BYTES - start]);
    u128::from_be_bytes(bytes)
}

/// Reads the segments: ascending, without overlap, inside the payload.
fn parse_segments(bytes: &[u8], payload_len: usize) -> Result<([Segment; SEGMENTS_MAX], usize), Malformed> {
    let mut segments = [Segment::default(); SEGMENTS_MAX];
    let (mut packed_len, mut end_before) = (0, 0);
    for (slot, pair) in segments.iter_mut().zip(bytes.chunks_exact(2)) {
        let (start, len) = (usize::from(pair[0]), usize::from(pair[1]));
        if start < end_before || len == 0 || start + len > payload_len {
            return Err(Malformed::Order);
        }
        *slot = Segment { start: pair[0], len: pair[1] };
        end_before = start + len;
        packed_len += len;
    }
    Ok((segments, packed_len))
}

fn shape_of(template: &[u8], segments: &[Segment]) -> Shape {
    match *segments {
        [] => Shape::Constant,
        [Segment { start: 0, len }] if usize::from(len) == template.len() => Shape::Whole,
        [Segment { start, len }] if template.len() <= 8 => {
            let mut word = [0u8; 8];
            word[..template.len()].copy_from_slice(template);
            Shape::Word {
                template: u64::from_le_bytes(word),
                mask: width_mask(len),
                shift: 8 * u32::from(start),
            }
        }
        _ => {
            let mut all = [Segment::default(); SEGMENTS_MAX];
            all[..segments.len()].copy_from_slice(segments);
            Shape::Spread { segments: all, count: segments.len() }
        }
    }
}
