//! Reads a part from end to end and checks all that it claims.
//!
//! Every byte of the file is under a checksum, and every checksum is checked. Blocks follow one
//! another without gaps; records are in order and between their separators; filters admit every
//! key; the facts are those of the records.
//!
//! [`verify`] ends at the first fault. [`examine`] continues after each fault, names the keys that
//! it may cost, and passes on the records that it could read: the basis for verifying and repairing
//! a store.

use std::ops::Range;
use std::sync::Arc;

use folddb_base::checksum::key_hash;
use folddb_base::{Error, ErrorKind, Op, OpKind, Record, Result, Rope, Stamp, error};
use folddb_layout::block::{Block, BlockCursor, Place, stored_checksum};
use folddb_layout::filter::Filter;
use folddb_layout::liveness::Liveness;
use folddb_layout::part::{LeafEntry, PartFacts, StampFacts, SummariesAt, hash_of_pieces};
use folddb_layout::sketch::SketchBuilder;
use folddb_layout::summaries::{Summaries, Summary};
use folddb_layout::values::record_bytes;

use crate::leading::LeadingHashes;
use crate::part::{Frame, Part};
use crate::separators::Leaf;

/// How much of a part is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// Footer, facts, top index and leaves.
    Index,
    /// Everything.
    Records,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The offset in the file.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The keys that it may cost.
    pub keys: KeySpan,
    /// A range of the file: its blocks cannot be found because of the fault, but they may be whole.
    pub unreached: Option<Range<u64>>,
}

/// The keys after one key and up to another, in the order of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySpan {
    /// Only keys after this one; none: from the first key on.
    pub after: Option<Vec<u8>>,
    /// Only keys up to this one, included; none: to the last key.
    pub through: Option<Vec<u8>>,
    /// The last key that was read before them. It is a key of a record, while `after` and `through`
    /// may be separators.
    pub last_read: Option<Vec<u8>>,
    /// The first key after them that could be read. It is a key of a record.
    pub next_read: Option<Vec<u8>>,
}

/// The receiver of what is found in a part.
pub trait Inspect {
    /// Takes a record of the block at this offset. The checksum of the block is right, and the
    /// record is in order.
    fn record(&mut self, offset: u64, record: Record<'_>);

    /// Takes a fault.
    fn fault(&mut self, fault: Fault);

    /// Takes an error that says nothing of the file: this build of the library cannot read a block.
    fn unread(&mut self, error: Error);

    /// Takes note of bytes that have been read.
    fn progress(&mut self, _bytes: u64) {}
}

/// Checks the whole file of a part, bypassing the cache.
///
/// # Errors
/// The first thing that is wrong, naming file and offset, or a read error.
pub fn verify(part: &Arc<Part>) -> Result<()> {
    struct First<'a>(&'a Part, Option<Error>);
    impl Inspect for First<'_> {
        fn record(&mut self, _: u64, _: Record<'_>) {}
        fn fault(&mut self, fault: Fault) {
            self.1.get_or_insert_with(|| error::corrupt(self.0.path(), fault.offset, fault.what));
        }
        fn unread(&mut self, error: Error) {
            self.1.get_or_insert(error);
        }
    }
    let mut first = First(part, None);
    examine(part, Depth::Records, &mut first);
    first.1.map_or(Ok(()), Err)
}

/// Checks the file of a part, bypassing the cache, and continues after a fault if it can.
pub fn examine(part: &Arc<Part>, depth: Depth, inspect: &mut dyn Inspect) {
    let mut check = Check::new(part, depth, inspect);
    let again = part.file().and_then(|file| Frame::read(&*file, part.path(), part.number()));
    let frame = match again {
        Ok(frame) if frame == *part.frame() => frame,
        Ok(frame) => {
            let keys = KeySpan::default();
            return check.note(
                frame.footer.top_index.offset,
                "the index is not the one that was opened",
                keys,
            );
        }
        Err(error) => return check.note(0, error.message(), KeySpan::default()),
    };
    for leaf in 0..frame.top.leaves.len() {
        check.leaf(&frame, leaf);
    }
    check.liveness(&frame);
    check.summaries(&frame);
    check.pieces(&frame);
    check.facts(&frame);
}

struct Check<'a> {
    part: &'a Part,
    depth: Depth,
    inspect: &'a mut dyn Inspect,
    /// The filter of the leaf by its number; none if it cannot be read.
    filter: Option<(u32, Option<Filter>)>,
    /// The leading elements of keys since the filter began, as far as it says that it knows them.
    leading: LeadingHashes,
    /// Where the blocks so far end; none after blocks that could not be found.
    data_end: Option<u64>,
    /// The separator of the previous block.
    separator: Vec<u8>,
    key: Vec<u8>,
    seq: u64,
    /// No record of the block has been examined.
    begins_block: bool,
    some_seqs_dropped: bool,
    /// Something was skipped, so that the facts cannot be compared.
    is_partial: bool,
    found: PartFacts,
    sketch: SketchBuilder,
    liveness: Liveness,
    /// How many records the blocks of each leaf hold; complete only if all of them could be read.
    records_of_blocks: Vec<Vec<u64>>,
    /// The checksums of the blocks so far, in their order.
    checksums: Vec<u8>,
}

/// The facts before any record is examined. Facts that records do not show are taken from the part.
fn found_before(says: &PartFacts) -> PartFacts {
    let stamps = says.stamps.map(|says| StampFacts { swept_ms: says.swept_ms, ..StampFacts::default() });
    PartFacts { min_seq: u64::MAX, stamps, kept_since: says.kept_since, ..PartFacts::default() }
}

impl<'a> Check<'a> {
    fn new(part: &'a Part, depth: Depth, inspect: &'a mut dyn Inspect) -> Check<'a> {
        Check {
            part,
            depth,
            inspect,
            filter: None,
            leading: LeadingHashes::default(),
            data_end: Some(0),
            separator: Vec::new(),
            key: Vec::new(),
            seq: 0,
            begins_block: false,
            some_seqs_dropped: false,
            is_partial: false,
            found: found_before(part.facts()),
            sketch: SketchBuilder::default(),
            liveness: Liveness::default(),
            records_of_blocks: Vec::new(),
            checksums: Vec::new(),
        }
    }

    fn note(&mut self, offset: u64, what: impl ToString, keys: KeySpan) {
        self.is_partial = true;
        self.inspect.fault(Fault { offset, what: what.to_string(), keys, unreached: None });
    }

    /// The keys after the blocks so far, up to `through`.
    fn span(&self, through: &[u8]) -> KeySpan {
        let after = Some(self.separator.clone()).filter(|separator| !separator.is_empty());
        let last_read = Some(self.key.clone()).filter(|_| self.found.records > 0);
        KeySpan { after, through: Some(through.to_vec()), last_read, next_read: None }
    }

    /// The first key of a block.
    fn first_key(&self, place: Place) -> Option<Vec<u8>> {
        let block = self.part.read_block(place).ok()?;
        let mut cursor = BlockCursor::new(self.part.facts().max_seq);
        cursor.enter(&block);
        cursor.seek_index(&block, 0).ok()?;
        cursor.record(&block).map(|record| record.key.to_vec())
    }

    fn leaf(&mut self, frame: &Frame, number: usize) {
        let Some(entry) = frame.top.leaves.get(number) else { return };
        let end = frame.top.separator(number).to_vec();
        self.load_filter(frame, entry);
        let leaf = match self.part.read_leaf(entry.place) {
            Ok(leaf) => leaf,
            Err(error) => {
                let unreached = self.unreached(frame, number);
                self.is_partial = true;
                let (what, keys) = (plain(&error), self.span(&end));
                self.inspect.fault(Fault { offset: entry.place.offset, what, keys, unreached });
                self.data_end = None;
                self.pass_over(&end);
                return;
            }
        };
        self.inspect.progress(u64::from(entry.place.len_bytes));
        self.blocks(entry.place, &leaf);
        if self.separator != end {
            self.note(entry.place.offset, "a leaf does not end with its separator", self.span(&end));
            self.pass_over(&end);
        }
    }

    fn blocks(&mut self, leaf_place: Place, leaf: &Leaf) {
        self.records_of_blocks.push(Vec::with_capacity(leaf.places.len()));
        for (block, place) in leaf.places.iter().enumerate() {
            let before = self.found.records;
            let separator = leaf.separators.get(block);
            if self.data_end.is_some_and(|end| end != place.offset) {
                self.note(leaf_place.offset, "blocks do not follow each other", self.span(separator));
            }
            self.data_end = Some(place.end());
            if self.depth == Depth::Records {
                self.block(*place, separator, leaf.places.get(block + 1).copied());
                self.inspect.progress(u64::from(place.len_bytes));
            }
            let records = self.found.records - before;
            self.records_of_blocks.last_mut().into_iter().for_each(|blocks| blocks.push(records));
            self.separator.clear();
            self.separator.extend_from_slice(separator);
        }
    }

    /// Notes that what follows comes after this separator.
    fn pass_over(&mut self, separator: &[u8]) {
        self.separator.clear();
        self.separator.extend_from_slice(separator);
    }

    /// Where the blocks of an unreadable leaf are: between those of its neighbors.
    fn unreached(&self, frame: &Frame, number: usize) -> Option<Range<u64>> {
        let later = frame.top.leaves.get(number + 1..).unwrap_or(&[]);
        let next = later.iter().find_map(|entry| {
            let leaf = self.part.read_leaf(entry.place).ok()?;
            leaf.places.first().map(|place| place.offset)
        });
        Some(self.data_end?..next.unwrap_or(frame.meta.data_bytes))
    }

    fn load_filter(&mut self, frame: &Frame, entry: &LeafEntry) {
        let Some(number) = entry.filter else { return self.filter = None };
        if self.depth == Depth::Index || self.filter.as_ref().is_some_and(|(held, _)| *held == number) {
            return;
        }
        let Some(place) = frame.top.filters.get(number as usize) else { return };
        match self.part.read_filter(*place) {
            Ok(filter) => {
                let known = frame.meta.leading.get(number as usize).copied().unwrap_or(0);
                self.leading = LeadingHashes::new(usize::from(known));
                self.filter = Some((number, Some(filter)));
            }
            Err(error) => {
                // All leaves with this filter: without it, gets cannot read their keys, although
                // these exist.
                let same = |leaf: &usize| {
                    frame.top.leaves.get(*leaf).is_some_and(|leaf| leaf.filter == Some(number))
                };
                let last = (0..frame.top.leaves.len()).rfind(same).unwrap_or(0);
                let keys = self.span(frame.top.separator(last));
                let what =
                    format!("{}; a filter: no record is lost, but gets of its keys fail", plain(&error));
                self.inspect.fault(Fault { offset: place.offset, what, keys, unreached: None });
                self.filter = Some((number, None));
            }
        }
    }

    fn block(&mut self, place: Place, separator: &[u8], next: Option<Place>) {
        let block = match self.part.read_block_summed(place) {
            Ok((block, checksum)) => {
                self.checksums.extend_from_slice(&checksum);
                block
            }
            Err(error) if error.kind() == ErrorKind::NewerFormat => {
                self.is_partial = true;
                return self.inspect.unread(error);
            }
            Err(error) => {
                let next_read = next.and_then(|place| self.first_key(place));
                let keys = KeySpan { next_read, ..self.span(separator) };
                return self.note(place.offset, plain(&error), keys);
            }
        };
        self.some_seqs_dropped |= !block.has_seqs();
        let mut cursor = BlockCursor::new(self.part.facts().max_seq);
        cursor.enter(&block);
        if let Err(what) = self.walk(&block, &mut cursor, place) {
            return self.note(place.offset, what, self.span(separator));
        }
        if self.part.order().compare(&self.key, separator).is_gt() {
            self.note(place.offset, "a key is beyond its separator", self.span(separator));
        }
    }

    fn walk(&mut self, block: &Block, cursor: &mut BlockCursor, place: Place) -> Result<(), String> {
        self.begins_block = true;
        cursor.seek_index(block, 0).map_err(|fault| fault.to_string())?;
        while let Some(record) = cursor.record(block) {
            self.record(record)?;
            self.inspect.record(place.offset, record);
            cursor.next(block).map_err(|fault| fault.to_string())?;
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
        // Records of a key may continue in the next block only if the separator equals the key.
        if std::mem::take(&mut self.begins_block) && same_key && self.separator != record.key {
            return Err("a key continues after a separator that is not its own");
        }
        if !is_first
            && !same_key
            && !self.separator.is_empty()
            && order.compare(&self.separator, record.key).is_ge()
        {
            return Err("a key is before the separator of the block before");
        }
        let op = record.op().map_err(|_| "a payload is not that of its op")?;
        if let Op::SetSeparated(rope) | Op::InsertSeparated(rope) | Op::FoldSeparated(rope) = op
            && let Ok(rope) = Rope::decode(rope)
        {
            for pointer in rope.pointers() {
                self.liveness.note(pointer.place, record_bytes(record.key.len(), pointer.len));
            }
        }
        if let Some(stamps) = &mut self.found.stamps {
            let stamp = Stamp::of(record.kind, record.payload).map_err(|_| "a record has no stamp")?;
            stamp.into_iter().for_each(|stamp| stamps.note(stamp));
        }
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
        let filter = self.filter.as_ref().and_then(|(_, filter)| filter.as_ref());
        if filter.is_some_and(|filter| !filter.may_contain(hash)) {
            return Err("the filter does not know a key");
        }
        self.leading.push(key, 0);
        let mut leading = self.leading.drain();
        if filter.is_some_and(|filter| leading.any(|hash| !filter.may_contain(hash))) {
            return Err("the filter does not know the leading elements of a key");
        }
        drop(leading);
        if is_first {
            self.found.low = key.to_vec();
        }
        self.sketch.push(hash);
        self.found.keys += 1;
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(())
    }

    /// Checks the list of values that the part points to. Values that it leaves out would be
    /// considered dead.
    fn liveness(&mut self, frame: &Frame) {
        let Some(place) = frame.meta.liveness else { return };
        self.inspect.progress(u64::from(place.len_bytes));
        let read = self.part.liveness();
        let is_right = read.as_ref().is_ok_and(|said| said.uses() == frame.meta.facts.values);
        let what = match read {
            Err(error) => plain(&error),
            Ok(_) if !is_right => "what it points to is not what its totals say".to_owned(),
            Ok(said)
                if self.depth == Depth::Records && !self.is_partial && !said.is_same(&mut self.liveness) =>
            {
                "what it points to is not what its records do".to_owned()
            }
            Ok(_) => return,
        };
        self.inspect.fault(Fault {
            offset: place.offset,
            what: format!("{what}; no record is lost with it"),
            keys: KeySpan::default(),
            unreached: None,
        });
    }

    /// Checks that the blocks have as many rows as their summaries say. Callers that know the fold
    /// check the folded values.
    fn summaries(&mut self, frame: &Frame) {
        let Some(SummariesAt { place, total }) = &frame.meta.summaries else { return };
        self.inspect.progress(u64::from(place.len_bytes));
        let what = match self.part.summaries() {
            Err(error) => plain(&error),
            Ok(said) => match fault_of_summaries(&said.unwrap_or_default(), total.as_ref(), self.records()) {
                None => return,
                Some(fault) => fault.to_owned(),
            },
        };
        self.inspect.fault(Fault {
            offset: place.offset,
            what: format!("{what}; no record is lost with it"),
            keys: KeySpan::default(),
            unreached: None,
        });
    }

    /// How many records each block holds, where that is known.
    fn records(&self) -> Option<&[Vec<u64>]> {
        (self.depth == Depth::Records && !self.is_partial).then_some(&self.records_of_blocks)
    }

    /// Checks that all pieces were written together: a block may be whole and from another file of
    /// the same number.
    fn pieces(&mut self, frame: &Frame) {
        let Some(said) = frame.meta.pieces_hash.filter(|_| self.depth == Depth::Records && !self.is_partial)
        else {
            return;
        };
        let mut checksums = std::mem::take(&mut self.checksums);
        let top = &frame.top;
        let places = top.filters.iter().chain(top.leaves.iter().map(|leaf| &leaf.place));
        let places = places.chain(&frame.meta.liveness);
        let places = places.chain(frame.meta.summaries.as_ref().map(|summaries| &summaries.place));
        for &place in places.chain([&frame.footer.top_index]) {
            match self.part.read_trailer(place) {
                Ok(trailer) => checksums.extend_from_slice(stored_checksum(&trailer)),
                Err(error) => return self.note(place.offset, plain(&error), KeySpan::default()),
            }
        }
        if hash_of_pieces(&checksums) != said {
            let what =
                "its blocks are not those that were written with its facts: some are from another file";
            self.note(frame.footer.meta.offset, what, KeySpan::default());
        }
    }

    fn facts(mut self, frame: &Frame) {
        let meta = frame.footer.meta.offset;
        if !self.is_partial && self.data_end != Some(frame.meta.data_bytes) {
            self.note(meta, "the blocks do not fill the data", KeySpan::default());
        }
        if self.depth == Depth::Index || self.is_partial {
            return;
        }
        let claimed = &frame.meta.facts;
        (self.found.file_bytes, self.found.fingerprint) = (claimed.file_bytes, claimed.fingerprint);
        self.found.values = self.liveness.uses();
        self.found.high = std::mem::take(&mut self.key);
        self.found.sketch = std::mem::take(&mut self.sketch).finish();
        // If seqs were dropped, the smallest one is not known; the others are in the claimed range.
        if self.some_seqs_dropped && self.found.min_seq >= claimed.min_seq {
            self.found.min_seq = claimed.min_seq;
        }
        if self.found != *claimed {
            let found = &self.found;
            let what = format!("the totals are not those of the records: {claimed:?} where {found:?}");
            self.note(meta, what, KeySpan::default());
        }
    }
}

/// What is wrong with the summaries of blocks. `records` is how many records the blocks hold, if
/// that is known.
fn fault_of_summaries(
    said: &Summaries,
    total: Option<&Summary>,
    records: Option<&[Vec<u64>]>,
) -> Option<&'static str> {
    let rows = |block: &Option<Summary>| block.as_ref().map(|block| block.rows);
    if let Some(leaves) = records {
        let is_same = |(said, are): (&Vec<Option<Summary>>, &Vec<u64>)| {
            said.len() == are.len()
                && said.iter().zip(are).all(|(said, are)| rows(said).is_none_or(|rows| rows == *are))
        };
        if said.leaves.len() != leaves.len() || !said.leaves.iter().zip(leaves).all(is_same) {
            return Some("a block does not show the number of rows that its summary says");
        }
    }
    let sum = said.leaves.iter().flatten().map(rows).sum::<Option<u64>>();
    (total.map(|total| total.rows) != sum).then_some("its summaries do not add up to its totals")
}

/// What a read error says about the bytes, without the file and the offset, which the fault names.
fn plain(error: &Error) -> String {
    error.damage().map_or_else(|| error.message().to_owned(), |damage| damage.what.clone())
}
