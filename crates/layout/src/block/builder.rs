//! Takes records in order and builds a block of them, in the encoding that fits.
//!
//! As long as all records have one shape, they are kept as columns and become a columnar block. At
//! the first record of another shape, the kept ones are written out as generic entries, and the
//! rest follows directly. Nothing is allocated per record: all buffers are kept from block to
//! block.

use folddb_base::bytes::{common_prefix_len, put_u32, put_u64, put_varint};
use folddb_base::{OpKind, Record, Seq};

use super::columnar::{self, SEGMENTS_MAX, Segment, TAIL_BYTES, tail_number};
use super::columns::{KIND_COLUMN, byte_width, put_column};
use super::generic::{self, NO_SEQS, RESTART_EVERY, WIDE_RESTARTS_FROM};
use super::{Compression, Encoding, seal};

/// The size of a columnar block is estimated again after this many records.
const ESTIMATE_EVERY: usize = 16;

/// Builds one block after the other.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    count: usize,
    seqs: Vec<Seq>,
    kinds: Vec<u8>,
    kinds_differ: bool,
    is_generic: bool,
    columns: Columns,
    entries: Entries,
    size_bytes: usize,
    compressed: Vec<u8>,
}

/// What the encoding of a finished block depends on in addition to its records.
#[derive(Clone, Copy, Debug)]
pub struct BlockOptions {
    /// Whether records keep their seqs.
    pub keep_seqs: bool,
    /// Whether the block may be compressed.
    pub compression: Compression,
    /// The seed of the checksum, made of file number and offset.
    pub seed: u64,
}

impl BlockBuilder {
    /// A builder without records.
    pub fn new() -> BlockBuilder {
        BlockBuilder::default()
    }

    /// How many records it holds.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// About how long the block would be if it were finished now, in bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Takes a record. The keys of a block must come in the order of the table.
    #[inline]
    pub fn push(&mut self, record: Record<'_>) {
        let kind = record.kind as u8;
        self.kinds_differ |= self.kinds.first().is_some_and(|first| *first != kind);
        if !self.is_generic && !self.columns.push(&record, self.count) {
            self.become_generic();
        }
        self.kinds.push(kind);
        self.seqs.push(record.seq);
        self.count += 1;
        if self.is_generic {
            self.entries.push(record.key, record.payload);
            self.size_bytes = self.entries.bytes.len() + self.count * 4;
        } else if self.count.is_multiple_of(ESTIMATE_EVERY) || self.count == 1 {
            self.size_bytes = self.columns.estimate_bytes(self.count);
        }
    }

    /// Makes `out` the key of the last record; empty when there is none.
    pub fn copy_last_key(&self, out: &mut Vec<u8>) {
        out.clear();
        if self.is_generic {
            out.extend_from_slice(&self.entries.last_key);
        } else if let Some(tail) = self.columns.tails.last() {
            self.columns.put_key(*tail, out);
        }
    }

    /// Appends the block with its trailer to `out` and starts again. There must be a record.
    pub fn finish(&mut self, out: &mut Vec<u8>, options: BlockOptions) {
        debug_assert!(self.count > 0, "a block holds at least one record");
        let start = out.len();
        let encoding = if self.is_generic {
            self.put_generic(out, options.keep_seqs);
            Encoding::Generic
        } else {
            self.put_columnar(out, options.keep_seqs);
            Encoding::Columnar
        };
        seal(out, start, encoding, options.compression, options.seed, &mut self.compressed);
        self.clear();
    }

    fn clear(&mut self) {
        self.count = 0;
        self.size_bytes = 0;
        self.seqs.clear();
        self.kinds.clear();
        self.kinds_differ = false;
        self.is_generic = false;
        self.columns.clear();
        self.entries.clear();
    }

    /// Writes the columns out as entries.
    #[cold]
    fn become_generic(&mut self) {
        self.is_generic = true;
        let mut key = Vec::new();
        let mut payloads = self.columns.payloads.chunks_exact(self.columns.payload_len.unwrap_or(0).max(1));
        for (tail, kind) in self.columns.tails.iter().zip(&self.kinds) {
            key.clear();
            self.columns.put_key(*tail, &mut key);
            let is_delete = *kind == OpKind::Delete as u8;
            let payload = if is_delete { &[] } else { payloads.next().unwrap_or(&[]) };
            self.entries.push(&key, payload);
        }
    }

    /// Appends the seqs and kinds columns; returns seq base, seq width and kind for the footer.
    fn put_sides(&self, out: &mut Vec<u8>, keep_seqs: bool) -> (Seq, u8, u8) {
        let (mut base, mut width) = (0, NO_SEQS);
        if keep_seqs {
            let (low, high) =
                self.seqs.iter().fold((u64::MAX, 0), |(low, high), seq| (low.min(*seq), high.max(*seq)));
            (base, width) = (low, byte_width(high - low));
            put_column(out, self.seqs.iter().map(|seq| seq - low), width);
        }
        if self.kinds_differ {
            out.extend_from_slice(&self.kinds);
            return (base, width, KIND_COLUMN);
        }
        (base, width, self.kinds.first().copied().unwrap_or(KIND_COLUMN))
    }

    fn put_generic(&self, out: &mut Vec<u8>, keep_seqs: bool) {
        out.extend_from_slice(&self.entries.bytes);
        let (seq_base, seq_width, kind) = self.put_sides(out, keep_seqs);
        let wide = self.entries.bytes.len() >= WIDE_RESTARTS_FROM;
        for restart in &self.entries.restarts {
            out.extend_from_slice(&restart.to_le_bytes()[..if wide { 4 } else { 2 }]);
        }
        put_u64(out, seq_base);
        put_u32(out, self.count as u32);
        put_u32(out, self.entries.bytes.len() as u32);
        out.extend_from_slice(&[seq_width, kind, 0, 0]);
    }

    fn put_columnar(&mut self, out: &mut Vec<u8>, keep_seqs: bool) {
        let (key_base, key_width) = self.columns.put_keys(out);
        let (seq_base, seq_width, kind) = self.put_sides(out, keep_seqs);
        self.columns.note_varying();
        let (segments, segment_count) = segments_of(&self.columns.varying);
        let segments = &segments[..segment_count];
        self.columns.put_payloads(out, &self.kinds, segments);
        self.columns.put_template(out, segments);
        for segment in segments {
            out.extend_from_slice(&[segment.start, segment.len]);
        }
        out.extend_from_slice(&self.columns.key_head);
        out.extend_from_slice(&key_base.to_le_bytes());
        put_u64(out, seq_base);
        put_u32(out, self.count as u32);
        let payload_len = self.columns.payload_len.unwrap_or(0) as u8;
        let key_len = self.columns.key_len as u8;
        out.extend_from_slice(&[payload_len, key_len, key_width, seq_width, kind, segment_count as u8, 0, 0]);
        debug_assert!(out.len() >= columnar::FOOTER_BYTES);
    }
}

/// Records of one shape, as columns.
#[derive(Debug, Default)]
struct Columns {
    key_len: usize,
    key_head: Vec<u8>,
    /// The low halves of the tails: they differ by less than 64 bits, so these and the lowest tail
    /// are all of them.
    tails: Vec<u64>,
    tail_min: u128,
    tail_max: u128,
    /// The length of all payloads; unknown while all records are deletes, which have none.
    payload_len: Option<usize>,
    payloads: Vec<u8>,
    /// One byte for each of a payload; not zero where payloads differ, considering `noted` bytes of
    /// them.
    varying: Vec<u8>,
    noted: usize,
}

impl Columns {
    fn clear(&mut self) {
        self.tails.clear();
        self.key_head.clear();
        self.payload_len = None;
        self.payloads.clear();
        self.varying.clear();
        self.noted = 0;
    }

    /// Takes a record if it is of the same shape as the ones before.
    #[inline]
    fn push(&mut self, record: &Record<'_>, count: usize) -> bool {
        if count == 0 {
            return self.push_first(record);
        }
        if record.key.len() != self.key_len {
            return false;
        }
        let (head, tail) = record.key.split_at(self.key_len.saturating_sub(TAIL_BYTES));
        if !head.is_empty() && head != &self.key_head[..] {
            return false;
        }
        let tail = tail_number(tail);
        let (min, max) = (self.tail_min.min(tail), self.tail_max.max(tail));
        if u64::try_from(max - min).is_err() || !self.push_payload(record) {
            return false;
        }
        (self.tail_min, self.tail_max) = (min, max);
        self.tails.push(tail as u64);
        true
    }

    fn push_first(&mut self, record: &Record<'_>) -> bool {
        if record.key.len() > columnar::KEY_BYTES_MAX || !self.push_payload(record) {
            return false;
        }
        self.key_len = record.key.len();
        let (head, tail) = record.key.split_at(self.key_len.saturating_sub(TAIL_BYTES));
        self.key_head.extend_from_slice(head);
        let tail = tail_number(tail);
        (self.tail_min, self.tail_max) = (tail, tail);
        self.tails.push(tail as u64);
        true
    }

    #[inline]
    fn push_payload(&mut self, record: &Record<'_>) -> bool {
        if record.kind == OpKind::Delete {
            return record.payload.is_empty();
        }
        match self.payload_len {
            Some(len) if len == record.payload.len() => {}
            Some(_) => return false,
            None if record.payload.len() > columnar::PAYLOAD_BYTES_MAX => return false,
            None => self.payload_len = Some(record.payload.len()),
        }
        match <&[u8; 8]>::try_from(record.payload) {
            Ok(word) => self.payloads.extend_from_slice(word),
            Err(_) => self.payloads.extend_from_slice(record.payload),
        }
        true
    }

    /// Appends a key from the low half of its number.
    fn put_key(&self, tail: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key_head);
        let distance = tail.wrapping_sub(self.tail_min as u64);
        let tail = (self.tail_min + u128::from(distance)).to_be_bytes();
        out.extend_from_slice(&tail[TAIL_BYTES - self.key_len.min(TAIL_BYTES)..]);
    }

    /// Marks the byte positions at which the payloads taken since the last call differ from the
    /// first one.
    fn note_varying(&mut self) {
        let Some(len) = self.payload_len else { return };
        self.varying.resize(len, 0);
        if len == 0 || self.noted == self.payloads.len() {
            return;
        }
        let (first, fresh) = (&self.payloads[..len], &self.payloads[self.noted..]);
        match (<[u8; 8]>::try_from(first), <[u8; 8]>::try_from(&self.varying[..])) {
            (Ok(first), Ok(varying)) => {
                let first = u64::from_le_bytes(first);
                let words = fresh.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
                let differ = words.fold(u64::from_le_bytes(varying), |differ, word| differ | (word ^ first));
                self.varying.copy_from_slice(&differ.to_le_bytes());
            }
            _ => {
                for payload in fresh.chunks_exact(len) {
                    for (differs, (a, b)) in self.varying.iter_mut().zip(payload.iter().zip(first)) {
                        *differs |= a ^ b;
                    }
                }
            }
        }
        self.noted = self.payloads.len();
    }

    fn estimate_bytes(&mut self, count: usize) -> usize {
        self.note_varying();
        let packed = self.varying.iter().filter(|differs| **differs != 0).count();
        let row = usize::from(byte_width((self.tail_max - self.tail_min) as u64)) + packed;
        count * row + self.varying.len() + self.key_head.len() + columnar::FOOTER_BYTES
    }

    /// Appends the column of keys; returns its base and width.
    fn put_keys(&self, out: &mut Vec<u8>) -> (u128, u8) {
        let width = byte_width((self.tail_max - self.tail_min) as u64);
        let base = self.tail_min as u64;
        put_column(out, self.tails.iter().map(|tail| tail.wrapping_sub(base)), width);
        (self.tail_min, width)
    }

    fn put_payloads(&self, out: &mut Vec<u8>, kinds: &[u8], segments: &[Segment]) {
        let Some(len) = self.payload_len.filter(|len| *len > 0) else { return };
        let packed_len: usize = segments.iter().map(|segment| usize::from(segment.len)).sum();
        if packed_len == 0 {
            return;
        }
        let has_deletes = self.payloads.len() != kinds.len() * len;
        if !has_deletes && packed_len == len {
            return out.extend_from_slice(&self.payloads);
        }
        if let ([segment], 8, false) = (segments, len, has_deletes) {
            let shift = 8 * u32::from(segment.start);
            let words =
                self.payloads.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word) >> shift);
            return put_column(out, words, segment.len);
        }
        let mut payloads = self.payloads.chunks_exact(len);
        for kind in kinds {
            let row = if *kind == OpKind::Delete as u8 { None } else { payloads.next() };
            let Some(payload) = row else {
                out.resize(out.len() + packed_len, 0);
                continue;
            };
            for segment in segments {
                let start = usize::from(segment.start);
                out.extend_from_slice(&payload[start..start + usize::from(segment.len)]);
            }
        }
    }

    /// Appends the first payload with zeros where payloads vary.
    fn put_template(&self, out: &mut Vec<u8>, segments: &[Segment]) {
        let start = out.len();
        out.extend_from_slice(&self.payloads[..self.payload_len.unwrap_or(0)]);
        for segment in segments {
            let from = start + usize::from(segment.start);
            out[from..from + usize::from(segment.len)].fill(0);
        }
    }
}

/// The ranges of bytes that are not zero; the closest ones are joined until there are few enough.
/// Up to eight bytes become one range, which needs only one shift.
fn segments_of(varying: &[u8]) -> ([Segment; SEGMENTS_MAX], usize) {
    let (mut segments, mut count) = ([Segment::default(); SEGMENTS_MAX], 0);
    let join_all = varying.len() <= 8;
    for (at, _) in varying.iter().enumerate().filter(|(_, differs)| **differs != 0) {
        if let Some(last) = segments[..count].last_mut()
            && (join_all || usize::from(last.start) + usize::from(last.len) == at)
        {
            last.len = (at + 1 - usize::from(last.start)) as u8;
            continue;
        }
        if count == SEGMENTS_MAX {
            join_closest(&mut segments);
            count -= 1;
        }
        segments[count] = Segment { start: at as u8, len: 1 };
        count += 1;
    }
    (segments, count)
}

/// Joins the two neighbors with the smallest gap; the last slot is then free.
fn join_closest(segments: &mut [Segment; SEGMENTS_MAX]) {
    let gap = |pair: &[Segment]| u16::from(pair[1].start) - u16::from(pair[0].start) - u16::from(pair[0].len);
    let closest = segments.windows(2).enumerate().min_by_key(|(_, pair)| gap(pair)).map_or(0, |(at, _)| at);
    let after = segments[closest + 1];
    segments[closest].len = after.start + after.len - segments[closest].start;
    segments.copy_within(closest + 2.., closest + 1);
    segments[SEGMENTS_MAX - 1] = Segment::default();
}

/// Records of any shape, written out as they come.
#[derive(Debug, Default)]
struct Entries {
    count: usize,
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    last_key: Vec<u8>,
}

impl Entries {
    fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
        self.restarts.clear();
        self.last_key.clear();
    }

    #[inline]
    fn push(&mut self, key: &[u8], payload: &[u8]) {
        let shared = if self.count.is_multiple_of(RESTART_EVERY) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            common_prefix_len(&self.last_key, key)
        };
        let unshared = &key[shared..];
        let lengths = [shared, unshared.len(), payload.len()];
        if (shared | unshared.len() | payload.len()) < 0x80 {
            self.bytes.extend_from_slice(&lengths.map(|len| len as u8));
        } else {
            lengths.iter().for_each(|len| put_varint(&mut self.bytes, *len as u64));
        }
        self.bytes.extend_from_slice(unshared);
        self.bytes.extend_from_slice(payload);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(unshared);
        self.count += 1;
    }
}

const _: () = assert!(generic::FOOTER_BYTES >= 8 && columnar::FOOTER_BYTES >= 8, "a column is read in words");
