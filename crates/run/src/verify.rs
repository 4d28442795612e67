//! Reads a part from end to end and checks all that it claims.
//!
//! Every byte of the file is under a checksum and every checksum is checked; blocks lie without gaps; records
//! are in order and between their separators; filters know every key; the facts are those of the records.

use std::sync::Arc;

use folddb_base::checksum::key_hash;
use folddb_base::{OpKind, Record, Result};
use folddb_layout::block::{Block, BlockCursor, Place};
use folddb_layout::filter::Filter;
use folddb_layout::part::PartFacts;
use folddb_layout::sketch::SketchBuilder;

use crate::part::{Frame, Part};

/// Checks the whole file of a part, past the cache.
///
/// # Errors
/// The first thing that is not as it must be, naming file and offset, or a read error.
pub fn verify(part: &Arc<Part>) -> Result<()> {
    let frame = Frame::read(&*part.file()?, part.path(), part.number())?;
    if frame != *part.frame() {
        return Err(part.damage(frame.footer.top_index, "the index is not the one that was opened"));
    }
    let mut check = Check::new(part);
    for leaf in 0..frame.top.leaves.len() {
        check.leaf(&frame, leaf)?;
    }
    check.facts(&frame)
}

struct Check<'a> {
    part: &'a Part,
    filter: Option<(u32, Filter)>,
    data_end: u64,
    separator: Vec<u8>,
    key: Vec<u8>,
    seq: u64,
    some_seqs_dropped: bool,
    found: PartFacts,
    sketch: SketchBuilder,
}

impl Check<'_> {
    fn new(part: &Part) -> Check<'_> {
        Check {
            part,
            filter: None,
            data_end: 0,
            separator: Vec::new(),
            key: Vec::new(),
            seq: 0,
            some_seqs_dropped: false,
            found: PartFacts { min_seq: u64::MAX, ..PartFacts::default() },
            sketch: SketchBuilder::default(),
        }
    }

    fn leaf(&mut self, frame: &Frame, number: usize) -> Result<()> {
        let Some(entry) = frame.top.leaves.get(number) else { return Ok(()) };
        if let Some(filter) = entry.filter
            && self.filter.as_ref().is_none_or(|(held, _)| *held != filter)
            && let Some(place) = frame.top.filters.get(filter as usize)
        {
            self.filter = Some((filter, self.part.read_filter(*place)?));
        }
        let leaf = self.part.read_leaf(entry.place)?;
        for (block, place) in leaf.places.iter().enumerate() {
            if place.offset != self.data_end {
                return Err(self.part.damage(entry.place, "blocks do not follow each other"));
            }
            self.data_end = place.end();
            self.block(*place, leaf.separators.get(block))?;
        }
        if self.separator != frame.top.separator(number) {
            return Err(self.part.damage(entry.place, "a leaf does not end with its separator"));
        }
        Ok(())
    }

    fn block(&mut self, place: Place, separator: &[u8]) -> Result<()> {
        let block = self.part.read_block(place)?;
        let max_seq = self.part.facts().max_seq;
        self.some_seqs_dropped |= !block.has_seqs();
        let mut cursor = BlockCursor::new(max_seq);
        cursor.enter(&block);
        self.walk(&block, &mut cursor, place)?;
        let order = self.part.order();
        if order.compare(&self.key, separator).is_gt() {
            return Err(self.part.damage(place, "a key is beyond its separator"));
        }
        self.separator.clear();
        self.separator.extend_from_slice(separator);
        Ok(())
    }

    fn walk(&mut self, block: &Block, cursor: &mut BlockCursor, place: Place) -> Result<()> {
        let fault = |fault| self.part.damage(place, fault);
        cursor.seek_index(block, 0).map_err(fault)?;
        while let Some(record) = cursor.record(block) {
            self.record(record).map_err(|what| self.part.damage(place, what))?;
            cursor.next(block).map_err(|fault| self.part.damage(place, fault))?;
        }
        Ok(())
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), &'static str> {
        let order = self.part.order();
        let is_first = self.found.records == 0;
        let same_key = !is_first && self.key == record.key;
        if !is_first && !same_key && !order.compare(&self.key, record.key).is_lt() {
            return Err("keys are out of order");
        }
        if same_key && record.seq >= self.seq {
            return Err("the records of a key are out of order");
        }
        if !is_first
            && !same_key
            && !self.separator.is_empty()
            && order.compare(&self.separator, record.key).is_ge()
        {
            return Err("a key is before the separator of the block before");
        }
        record.op().map_err(|_| "a payload is not that of its op")?;
        if !same_key {
            self.new_key(record.key, is_first)?;
        }
        self.seq = record.seq;
        self.found.records += 1;
        self.found.deletes += u64::from(record.kind == OpKind::Delete);
        self.found.key_bytes += record.key.len() as u64;
        self.found.payload_bytes += record.payload.len() as u64;
        self.found.min_seq = self.found.min_seq.min(record.seq);
        self.found.max_seq = self.found.max_seq.max(record.seq);
        Ok(())
    }

    fn new_key(&mut self, key: &[u8], is_first: bool) -> Result<(), &'static str> {
        let hash = key_hash(key);
        if self.filter.as_ref().is_some_and(|(_, filter)| !filter.may_contain(hash)) {
            return Err("the filter does not know a key");
        }
        if is_first {
            self.found.low = key.to_vec();
        }
        self.sketch.push(hash);
        self.found.keys += 1;
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(())
    }

    fn facts(mut self, frame: &Frame) -> Result<()> {
        let claimed = &frame.meta.facts;
        self.found.file_bytes = claimed.file_bytes;
        self.found.high = std::mem::take(&mut self.key);
        self.found.sketch = self.sketch.finish();
        // Where seqs were dropped the smallest one is gone; what is left lies within the claim.
        if self.some_seqs_dropped && self.found.min_seq >= claimed.min_seq {
            self.found.min_seq = claimed.min_seq;
        }
        if self.data_end != frame.meta.data_bytes {
            return Err(self.part.damage(frame.footer.meta, "the blocks do not fill the data"));
        }
        if self.found != *claimed {
            let what = format!("the facts are not those of the records: {claimed:?} where {:?}", self.found);
            return Err(self.part.damage(frame.footer.meta, what));
        }
        Ok(())
    }
}
