//! Writes a part: takes records, writes a file, and returns its facts.
//!
//! 1. A record joins the current block; its key's hash joins the filter partition and the sketch.
//! 2. A full block is sealed and appended, and its separator noted: 32 blocks (or 32 K keys) make a
//!    leaf.
//! 3. At a leaf's end, once 8 K keys have gathered, a filter partition is built. It fits the
//!    first-level cache or nearly so, and reading it costs little more than reading the block that
//!    it may make unnecessary. If keys are tuples, it learns their leading elements, too
//!    (`leading.rs`).
//! 4. At the end filters, leaves, liveness, summaries, top index, facts and footer follow the data,
//!    and the file is synced.
//!
//! Filters and separators wait in memory until then: about an eighth of a part of small records, a
//! fifth where filters know leading elements that nearly each key has for itself.

use std::cmp::Ordering;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::checksum::{key_hash, place_seed};
use folddb_base::limits::{FOLDED_BYTES_MAX, KEY_BYTES_MAX};
use folddb_base::{Error, FileNumber, OpKind, Record, RecordSink, Result, Rope, Seq, Stamp};
use folddb_host::WriteFile;
use folddb_layout::block::{BlockBuilder, BlockOptions, Compression, Place, stored_checksum};
use folddb_layout::filter::Filter;
use folddb_layout::liveness::Liveness;
use folddb_layout::part::{
    FOOTER_BYTES, Footer, Meta, PART_VERSION, PART_VERSION_SUMMARIES, PART_VERSION_ZSTD, PartFacts,
    StampFacts, SummariesAt, TopIndex, hash_of_pieces,
};
use folddb_layout::sketch::SketchBuilder;
use folddb_layout::values::record_bytes;
use folddb_rules::order::PrefixOrder;
use folddb_rules::{FoldRules, KeyOrder};

use crate::leading::LeadingHashes;
use crate::summary::Gathering;

/// Blocks of a leaf of the index.
const LEAF_BLOCKS: usize = 32;

/// A leaf ends when its blocks hold this many keys.
const LEAF_KEYS_MAX: usize = 32 << 10;

/// A filter partition ends with the leaf in which it reaches this many keys.
const FILTER_KEYS_MIN: usize = 8 << 10;

/// Bytes that are gathered before they are written to the file.
const APPEND_BYTES: usize = 256 << 10;

/// After this many bytes the system is asked to begin writing them to the disk.
const WRITEBACK_BYTES: u64 = 1 << 20;

/// How a part is written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// The order of the keys.
    pub order: KeyOrder,
    /// The size of a block before compression, in bytes.
    pub block_bytes: usize,
    /// Whether blocks are compressed.
    pub compression: Compression,
    /// Filter bits for each key; 0 for no filters.
    pub filter_bits: u32,
    /// How many leading elements of keys filters know at most: see `leading.rs`. 0 if keys are not
    /// tuples.
    pub leading: usize,
    /// Whether records keep their seqs. If not, each reads as if it had the part's largest one.
    /// That is allowed only if there is no snapshot below that seq, and all range deletes below it
    /// have been applied. Blocks in which a key has several records keep their seqs anyway.
    pub keep_seqs: bool,
    /// The time up to which expired records were left out before they came here; none if records
    /// have no stamps.
    pub stamps: Option<u64>,
    /// The seq up to which records of the past were folded before they came here; 0 if no past is
    /// kept.
    pub kept_since: Seq,
    /// How values fold, if blocks have summaries; else none.
    pub summaries: Option<Arc<FoldRules>>,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            order: KeyOrder::Bytewise,
            block_bytes: 4 << 10,
            compression: Compression::None,
            filter_bits: 10,
            leading: 0,
            keep_seqs: true,
            stamps: None,
            kept_since: 0,
            summaries: None,
        }
    }
}

/// Takes records in the total order and writes them to one file.
pub struct PartWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    number: FileNumber,
    options: WriteOptions,
    block: BlockBuilder,
    /// Some key of the current block has more than one record.
    block_repeats: bool,
    /// Bytes that have not been appended to the file yet.
    out: Vec<u8>,
    appended_bytes: u64,
    writeback_bytes: u64,
    /// The checksums of the pieces so far: see [`hash_of_pieces`].
    checksums: Vec<u8>,
    index: PendingIndex,
    hashes: Vec<u64>,
    /// The hashes of leading elements, if the filter is to know them.
    leading: Option<Box<LeadingHashes>>,
    sketch: SketchBuilder,
    facts: PartFacts,
    /// What it points to in the value log.
    liveness: Liveness,
    /// The summaries of its blocks, if requested.
    gathering: Option<Box<Gathering>>,
    /// The prefix of the last key in the order of the table; it decides most comparisons of
    /// neighbors.
    last_prefix: u64,
    last_seq: u64,
    /// The last key. It is up to date only after it was copied from the block, or while the block
    /// is empty.
    last_key: Vec<u8>,
}

/// Separators, leaves and filters of the blocks so far.
#[derive(Default)]
struct PendingIndex {
    separators: Vec<u8>,
    blocks: Vec<PendingBlock>,
    /// For each leaf: the number of the first block after it, and its filter.
    leaves: Vec<(usize, Option<u32>)>,
    leaf_keys: usize,
    filters: Vec<Filter>,
    filter_bytes: u64,
    /// How many leading elements each filter knows; empty if none are asked for.
    leading: Vec<u8>,
}

struct PendingBlock {
    separator_end: usize,
    place: Place,
}

impl PartWriter {
    /// A writer to `file`, which must be empty; `path` is used only in messages.
    pub fn new(
        file: Box<dyn WriteFile>,
        path: impl Into<PathBuf>,
        number: FileNumber,
        options: WriteOptions,
    ) -> PartWriter {
        let stamps = options.stamps.map(|swept_ms| StampFacts { swept_ms, ..StampFacts::default() });
        let kept_since = options.kept_since;
        let gathering =
            options.summaries.clone().map(|rules| Box::new(Gathering::new(rules, options.block_bytes)));
        let knows_leading = options.leading > 0 && options.filter_bits > 0;
        let leading = knows_leading.then(|| Box::new(LeadingHashes::new(options.leading)));
        PartWriter {
            file,
            path: path.into(),
            number,
            options,
            block: BlockBuilder::new(),
            block_repeats: false,
            out: Vec::with_capacity(APPEND_BYTES + (64 << 10)),
            appended_bytes: 0,
            writeback_bytes: 0,
            checksums: Vec::new(),
            index: PendingIndex::default(),
            hashes: Vec::new(),
            leading,
            sketch: SketchBuilder::default(),
            facts: PartFacts { min_seq: u64::MAX, stamps, kept_since, ..PartFacts::default() },
            liveness: Liveness::default(),
            gathering,
            last_prefix: 0,
            last_seq: 0,
            last_key: Vec::new(),
        }
    }

    /// The approximate length of the file if it were finished now, in bytes.
    pub fn bytes_written(&self) -> u64 {
        let index_bytes = self.index.separators.len() + self.index.blocks.len() * 16;
        let hashes = self.hashes.len() + self.leading.as_ref().map_or(0, |leading| leading.len());
        let filter_bytes = hashes as u64 * u64::from(self.options.filter_bits) / 8;
        self.offset()
            + self.block.size_bytes() as u64
            + index_bytes as u64
            + self.index.filter_bytes
            + filter_bytes
    }

    /// How many records it has taken.
    pub fn records(&self) -> u64 {
        self.facts.records
    }

    /// The offset in the file at which the next block begins.
    #[inline]
    fn offset(&self) -> u64 {
        self.appended_bytes + self.out.len() as u64
    }

    /// Writes the rest and syncs the file. The caller syncs the directory.
    ///
    /// # Errors
    /// A write or sync error, or no record was ever taken.
    pub fn finish(mut self) -> Result<PartFacts> {
        if self.facts.records == 0 {
            return Err(Error::invalid(format!("{}: a part holds at least one record", self.path.display())));
        }
        self.block.copy_last_key(&mut self.last_key);
        let high = self.last_key.clone();
        self.finish_block(&high)?;
        self.finish_leaf();
        self.finish_filter();
        let data_bytes = self.offset();
        let leading = std::mem::take(&mut self.index.leading);
        let top = self.put_filters_and_leaves()?;
        let liveness = self.put_liveness()?;
        let summaries = self.put_summaries()?;
        self.facts.high = high;
        self.facts.sketch = std::mem::take(&mut self.sketch).finish();
        self.put_frame(&top, data_bytes, (liveness, summaries, leading))?;
        self.append_out()?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(self.facts)
    }

    /// Whether the record has the key of the previous one.
    ///
    /// # Errors
    /// The record does not come after the previous one in the total order.
    #[inline]
    fn continues_key(&mut self, record: &Record<'_>) -> Result<bool> {
        let prefix = self.options.order.prefix(record.key, 0);
        if prefix > self.last_prefix || self.facts.records == 0 {
            self.last_prefix = prefix;
            return Ok(false);
        }
        self.last_prefix = prefix;
        if self.block.count() > 0 {
            self.block.copy_last_key(&mut self.last_key);
        }
        match self.options.order.compare(&self.last_key, record.key) {
            Ordering::Less => Ok(false),
            Ordering::Equal if record.seq < self.last_seq => Ok(true),
            _ => Err(self.disorder(record)),
        }
    }

    #[cold]
    fn disorder(&self, record: &Record<'_>) -> Error {
        let message = format!(
            "records for {} come out of order: key {:02x?} at seq {} after key {:02x?} at seq {}",
            self.path.display(),
            record.key,
            record.seq,
            self.last_key,
            self.last_seq
        );
        Error::invalid(message)
    }

    /// Notes the stamp of a record, and the pieces of a separated value.
    #[cold]
    fn note_payload(&mut self, record: &Record<'_>) -> Result<()> {
        if let Some(stamps) = &mut self.facts.stamps {
            let stamp = Stamp::of(record.kind, record.payload)
                .map_err(|_| Error::invalid(format!("a record for {} has no stamp", self.path.display())))?;
            stamp.into_iter().for_each(|stamp| stamps.note(stamp));
        }
        if !record.kind.is_separated() {
            return Ok(());
        }
        let rope = Rope::decode(record.payload)
            .map_err(|_| Error::invalid(format!("a record for {} has no pointer", self.path.display())))?;
        for pointer in rope.pointers() {
            self.liveness.note(pointer.place, record_bytes(record.key.len(), pointer.len));
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self, record: &Record<'_>) -> Error {
        let message = format!(
            "a record for {} is too long: {} bytes of key, {} of payload",
            self.path.display(),
            record.key.len(),
            record.payload.len()
        );
        Error::invalid(message)
    }

    /// Ends the current block; the next one begins with `next_key`.
    fn cut(&mut self, next_key: &[u8]) -> Result<()> {
        self.block.copy_last_key(&mut self.last_key);
        let separator = self.options.order.separator(&self.last_key, next_key);
        self.finish_block(&separator)?;
        let leaf_blocks = self.index.blocks.len() - self.index.leaves.last().map_or(0, |leaf| leaf.0);
        if leaf_blocks < LEAF_BLOCKS && self.index.leaf_keys < LEAF_KEYS_MAX {
            return Ok(());
        }
        self.finish_leaf();
        if self.hashes.len() >= FILTER_KEYS_MIN {
            self.finish_filter();
        }
        Ok(())
    }

    fn finish_block(&mut self, separator: &[u8]) -> Result<()> {
        let offset = self.offset();
        let start = self.out.len();
        let options = BlockOptions {
            keep_seqs: self.options.keep_seqs || self.block_repeats,
            compression: self.options.compression,
            seed: place_seed(self.number.0, offset),
        };
        self.block.finish(&mut self.out, options);
        self.block_repeats = false;
        if let Some(gathering) = &mut self.gathering {
            gathering.end_block();
        }
        let place = self.end_piece(offset, start)?;
        self.index.separators.extend_from_slice(separator);
        self.index.blocks.push(PendingBlock { separator_end: self.index.separators.len(), place });
        if self.out.len() >= APPEND_BYTES {
            self.append_out()?;
        }
        Ok(())
    }

    /// The place of the piece that was put at `out[start..]`, whose checksum it notes.
    fn end_piece(&mut self, offset: u64, start: usize) -> Result<Place> {
        self.checksums.extend_from_slice(stored_checksum(&self.out));
        match u32::try_from(self.out.len() - start) {
            Ok(len_bytes) => Ok(Place { offset, len_bytes }),
            Err(_) => Err(Error::invalid(format!("{}: a piece of over 4 GiB", self.path.display()))),
        }
    }

    fn finish_leaf(&mut self) {
        let blocks = self.index.blocks.len();
        if self.index.leaves.last().map_or(0, |leaf| leaf.0) == blocks {
            return;
        }
        let filter = (self.options.filter_bits > 0).then_some(self.index.filters.len() as u32);
        self.index.leaves.push((blocks, filter));
        if let Some(gathering) = &mut self.gathering {
            gathering.end_leaf();
        }
        self.index.leaf_keys = 0;
    }

    fn finish_filter(&mut self) {
        let covered = self.index.leaves.last().and_then(|leaf| leaf.1);
        if covered == Some(self.index.filters.len() as u32) {
            if let Some(leading) = &mut self.leading {
                self.index.leading.push(leading.finish(&mut self.hashes));
            }
            let filter = Filter::build(&self.hashes, self.options.filter_bits);
            self.index.filter_bytes += filter.memory_bytes() as u64;
            self.index.filters.push(filter);
        }
        self.hashes.clear();
    }

    fn put_filters_and_leaves(&mut self) -> Result<TopIndex> {
        let mut top = TopIndex::default();
        let index = std::mem::take(&mut self.index);
        for filter in &index.filters {
            let (offset, start) = (self.offset(), self.out.len());
            filter.put(&mut self.out, place_seed(self.number.0, offset));
            top.filters.push(self.end_piece(offset, start)?);
            if self.out.len() >= APPEND_BYTES {
                self.append_out()?;
            }
        }
        let (mut first, mut separator_start) = (0, 0);
        let mut payload = Vec::new();
        let mut leaf = BlockBuilder::new();
        for (end, filter) in &index.leaves {
            let mut separator = &[][..];
            for block in &index.blocks[first..*end] {
                separator = &index.separators[separator_start..block.separator_end];
                separator_start = block.separator_end;
                payload.clear();
                block.place.put(&mut payload);
                leaf.push(Record { key: separator, seq: 0, kind: OpKind::Set, payload: &payload });
            }
            first = *end;
            let (offset, start) = (self.offset(), self.out.len());
            let seed = place_seed(self.number.0, offset);
            leaf.finish(
                &mut self.out,
                BlockOptions { keep_seqs: false, compression: Compression::None, seed },
            );
            top.push_leaf(separator, self.end_piece(offset, start)?, *filter);
        }
        Ok(top)
    }

    /// Puts the list of values in the value log that the part points to, if there are any.
    fn put_liveness(&mut self) -> Result<Option<Place>> {
        if self.liveness.is_empty() {
            return Ok(None);
        }
        self.facts.values = self.liveness.uses();
        let (offset, start) = (self.offset(), self.out.len());
        std::mem::take(&mut self.liveness).put(&mut self.out, place_seed(self.number.0, offset));
        self.end_piece(offset, start).map(Some)
    }

    /// Puts the summaries of the blocks, if requested.
    fn put_summaries(&mut self) -> Result<Option<SummariesAt>> {
        let Some(gathering) = self.gathering.take() else { return Ok(None) };
        let (summaries, total) = gathering.finish();
        let (offset, start) = (self.offset(), self.out.len());
        summaries.put(&mut self.out, place_seed(self.number.0, offset));
        Ok(Some(SummariesAt { place: self.end_piece(offset, start)?, total }))
    }

    fn put_frame(
        &mut self,
        top: &TopIndex,
        data_bytes: u64,
        (liveness, summaries, leading): (Option<Place>, Option<SummariesAt>, Vec<u8>),
    ) -> Result<()> {
        let version = match (self.options.compression, &summaries) {
            (Compression::Zstd, _) => PART_VERSION_ZSTD,
            (_, Some(_)) => PART_VERSION_SUMMARIES,
            (_, None) => PART_VERSION,
        };
        let (offset, start) = (self.offset(), self.out.len());
        top.put(&mut self.out, place_seed(self.number.0, offset));
        let top_index = self.end_piece(offset, start)?;
        let mut meta = Meta {
            facts: std::mem::take(&mut self.facts),
            order_name: self.options.order.name().to_owned(),
            data_bytes,
            filter_bits: self.options.filter_bits,
            liveness,
            summaries,
            leading,
            pieces_hash: Some(hash_of_pieces(&self.checksums)),
        };
        let (offset, start) = (self.offset(), self.out.len());
        meta.put(&mut self.out, place_seed(self.number.0, offset));
        meta.facts.fingerprint = Meta::fingerprint(&self.out[start..]);
        let meta_place = self.end_piece(offset, start)?;
        meta.facts.file_bytes = self.offset() + FOOTER_BYTES as u64;
        let file_bytes = meta.facts.file_bytes;
        self.facts = meta.facts;
        let footer = Footer { version, file_number: self.number.0, file_bytes, top_index, meta: meta_place };
        footer.put(&mut self.out);
        Ok(())
    }

    fn append_out(&mut self) -> Result<()> {
        self.file.append(&self.out).map_err(|error| Error::io("write", &self.path, error))?;
        self.appended_bytes += self.out.len() as u64;
        self.out.clear();
        if self.appended_bytes - self.writeback_bytes >= WRITEBACK_BYTES {
            self.file.start_writeback();
            self.writeback_bytes = self.appended_bytes;
        }
        Ok(())
    }
}

impl RecordSink for PartWriter {
    #[inline]
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        if record.key.len() > KEY_BYTES_MAX || record.payload.len() > FOLDED_BYTES_MAX {
            return Err(self.too_long(&record));
        }
        let continues = self.continues_key(&record)?;
        let size_bytes = self.block.size_bytes();
        // A long record does not join a block of short ones: each of these would be read together
        // with it.
        let is_long = record.payload.len() > self.options.block_bytes;
        if size_bytes >= self.options.block_bytes || (is_long && size_bytes > 0) {
            self.cut(record.key)?;
        }
        if continues {
            self.block_repeats = true;
        } else {
            let hash = key_hash(record.key);
            self.sketch.push(hash);
            if self.options.filter_bits > 0 {
                self.hashes.push(hash);
            }
            if let Some(leading) = &mut self.leading {
                leading.push(record.key, self.hashes.len());
            }
            self.index.leaf_keys += 1;
            self.facts.keys += 1;
        }
        if record.kind.is_separated() || self.facts.stamps.is_some() {
            self.note_payload(&record)?;
        }
        if let Some(gathering) = &mut self.gathering {
            gathering.push(&record, continues);
        }
        if self.facts.records == 0 {
            self.facts.low.extend_from_slice(record.key);
        }
        self.facts.records += 1;
        self.facts.deletes += u64::from(record.kind == OpKind::Delete);
        self.facts.key_bytes += record.key.len() as u64;
        self.facts.payload_bytes += record.payload.len() as u64;
        self.facts.min_seq = self.facts.min_seq.min(record.seq);
        self.facts.max_seq = self.facts.max_seq.max(record.seq);
        self.last_seq = record.seq;
        self.block.push(record);
        Ok(())
    }
}

impl fmt::Debug for PartWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartWriter({}, {} records)", self.path.display(), self.facts.records)
    }
}
