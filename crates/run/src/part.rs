//! A part: one file of sorted records, the data of it that are in memory, and reading its pieces.
//! `part_get.rs` says how a key is found in it.
//!
//! A part keeps no file open: the descriptor comes from [`Shared`] and may be closed at any time.

use std::cmp::Ordering;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::checksum::place_seed;
use folddb_base::{Error, ErrorKind, FileNumber, Result, counted, error};
use folddb_host::{Files, ReadFile};
use folddb_layout::block::{Block, BlockCursor, Compression, Place, TRAILER_BYTES, stored_checksum};
use folddb_layout::filter::Filter;
use folddb_layout::liveness::Liveness;
use folddb_layout::manifest_edit::PartState;
use folddb_layout::part::{
    FOOTER_BYTES, Footer, FooterFault, Meta, PART_VERSION_ZSTD, PartFacts, SummariesAt, TopIndex,
};
use folddb_layout::summaries::{Summaries, Summary};
use folddb_rules::KeyOrder;

use crate::cache::{Piece, PieceKey};
use crate::kept::Kept;
use crate::separators::{Leaf, Separators};
use crate::shared::{Shared, count};

/// What to do where this build of the library lacks a feature.
const OTHER_BUILD: &str = "use a build of FoldDB with that feature";

/// One file of sorted records, open for reading.
pub struct Part {
    files: Arc<dyn Files>,
    path: PathBuf,
    number: FileNumber,
    /// Its number within `shared`.
    id: u64,
    shared: Arc<Shared>,
    order: KeyOrder,
    frame: Frame,
    /// The separators of the leaves.
    pub(crate) separators: Separators,
    pub(crate) kept: Kept,
}

/// What a get knows about the age of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Older parts may hold the key, so this one mostly does not.
    Young,
    /// No older part holds the key, so most keys that are searched here exist. Reading a filter
    /// that is not in the cache then costs more than it saves: it is as long as a block, and mostly
    /// shows that the block must be read, too.
    Oldest,
}

/// The data of a part that are in memory: everything except its records, leaves and filters.
#[derive(Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) footer: Footer,
    pub(crate) meta: Meta,
    pub(crate) top: TopIndex,
}

impl Part {
    /// Opens the file of this number at `path`: reads and checks footer, facts and top index.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, is another one, or was written in another order of
    /// keys.
    pub fn open(
        files: &Arc<dyn Files>,
        path: &Path,
        number: FileNumber,
        order: &KeyOrder,
        shared: &Arc<Shared>,
    ) -> Result<Arc<Part>> {
        let file = files.open(path).map_err(|error| Error::io("open", path, error))?;
        let frame = Frame::read(&*file, path, number)?;
        if frame.meta.order_name != order.name() {
            let message = format!(
                "{} holds keys in the order `{}`, and is opened in the order `{}`",
                path.display(),
                frame.meta.order_name,
                order.name()
            );
            return Err(Error::new(ErrorKind::RulesMismatch, message));
        }
        let separators = Separators::of_top(&frame.top, order);
        let kept = Kept::new(&frame.top);
        let id = shared.number_part();
        shared.keep_file(id, file);
        Ok(Arc::new(Part {
            files: Arc::clone(files),
            path: path.to_owned(),
            number,
            id,
            shared: Arc::clone(shared),
            order: order.clone(),
            frame,
            separators,
            kept,
        }))
    }

    /// What is known about its records.
    pub fn facts(&self) -> &PartFacts {
        &self.frame.meta.facts
    }

    /// How it differs from the part that a manifest lists under its number, in words; none if it is
    /// that one. Bytes that are whole may be in the wrong place: scripts that write the same tables
    /// give different stores files of the same numbers and lengths.
    pub fn difference(&self, listed: &PartState) -> Option<String> {
        let facts = self.facts();
        if facts.file_bytes != listed.file_bytes {
            return Some(format!("{} bytes, and not {}", facts.file_bytes, listed.file_bytes));
        }
        let numbers = |records, deletes, min_seq, max_seq| {
            let (records, deletes) = (counted(records, "record"), counted(deletes, "delete"));
            format!("{records}, {deletes}, seqs {min_seq} to {max_seq}")
        };
        let found = numbers(facts.records, facts.deletes, facts.min_seq, facts.max_seq);
        let wanted = numbers(listed.records, listed.deletes, listed.min_seq, listed.max_seq);
        if found != wanted {
            return Some(format!("{found}, and not {wanted}"));
        }
        let low = self.order.compare(&facts.low, &listed.low);
        let is_low_right = if listed.trimmed { low.is_le() } else { low.is_eq() };
        if !is_low_right || facts.high != listed.high {
            return Some("other keys".to_owned());
        }
        let is_other = listed.fingerprint.is_some_and(|one| one != facts.fingerprint);
        is_other.then(|| {
            "other values; it may be from another store, or from another copy of this one".to_owned()
        })
    }

    /// Checks that it is the part that a manifest lists.
    ///
    /// # Errors
    /// Damage: it is another one.
    pub fn check_listed(&self, listed: &PartState) -> Result<()> {
        let Some(difference) = self.difference(listed) else { return Ok(()) };
        Err(self.damage(self.frame.footer.meta, other_part(&difference)))
    }

    /// The number of its file.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Where its file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Keys of the table's order that cut its records into pieces of about 128 KiB (32 blocks)
    /// each, ascending. They need not be keys of records.
    pub fn boundaries(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.frame.top.leaves.len()).map(|leaf| self.frame.top.separator(leaf))
    }

    /// The memory that it takes in addition to the cache, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let top = &self.frame.top;
        size_of::<Part>()
            + top.separators.capacity()
            + size_of_val(&top.leaves[..])
            + size_of_val(&top.filters[..])
            + self.separators.memory_bytes()
            + self.kept.slots_bytes()
            + size_of_val(&self.frame.meta.facts.sketch[..])
    }

    /// Keeps a filter in memory, or at least in the cache.
    pub(crate) fn keep_filter(&self, rank: Rank, number: usize, place: Place, filter: Filter) {
        if let Err(filter) = self.kept.keep_filter(&self.shared, rank == Rank::Oldest, number, filter) {
            self.shared.keep_piece(self.key_of(place), Piece::Filter(Arc::new(filter)));
        }
    }

    /// Keeps a leaf in memory, or at least in the cache.
    fn keep_leaf(&self, rank: Rank, number: usize, place: Place, leaf: &Arc<Leaf>) {
        if !self.kept.keep_leaf(&self.shared, rank == Rank::Oldest, number, leaf) {
            self.shared.keep_piece(self.key_of(place), Piece::Leaf(Arc::clone(leaf)));
        }
    }

    /// The first leaf with a separator at or after `key`; with `past_equal`, after it.
    #[inline]
    pub(crate) fn find_leaf(&self, key: &[u8], past_equal: bool) -> Option<usize> {
        let leaf = self.separators.bound(&self.order, key, past_equal);
        (leaf < self.separators.len()).then_some(leaf)
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Drops its open file and its blocks from the cache, when the part is no longer listed
    /// anywhere.
    pub fn forget(&self) {
        self.shared.close_file(self.id);
        for place in &self.frame.top.filters {
            self.shared.forget_piece(self.key_of(*place));
        }
        for (number, entry) in self.frame.top.leaves.iter().enumerate() {
            // If a leaf is no longer in memory, its blocks are evicted when the cache needs their
            // room.
            if let Some(leaf) = self.leaf_in_memory(number, entry.place) {
                leaf.places.iter().for_each(|place| self.shared.forget_piece(self.key_of(*place)));
            }
            self.shared.forget_piece(self.key_of(entry.place));
        }
    }

    /// A leaf if it is in memory, for a reader that reads it once.
    pub(crate) fn leaf_in_memory(&self, number: usize, place: Place) -> Option<Arc<Leaf>> {
        if let Some(leaf) = self.kept.leaf(number) {
            return Some(Arc::clone(leaf));
        }
        match self.shared.peek(self.key_of(place)) {
            Some(Piece::Leaf(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// Loads filters and leaves into memory if they are small compared with the cache; also blocks,
    /// if these are small and gets have had to read blocks since this was last done. It is for a
    /// part that was just written: its bytes are still in the page cache, and every reader will
    /// read it. A failure is reported when a reader needs the piece.
    pub fn warm(&self) {
        self.warm_index();
        let top = &self.frame.top;
        let data_bytes = top.leaves.first().map_or(0, |leaf| leaf.place.offset);
        if self.shared.warms_blocks(data_bytes) {
            let _ = (0..top.leaves.len()).try_for_each(|number| self.warm_blocks(number));
        }
    }

    fn warm_blocks(&self, leaf: usize) -> Result<()> {
        let leaf = self.leaf(Rank::Young, leaf)?;
        leaf.places.iter().try_for_each(|&place| {
            let block = Arc::new(self.read_block(place)?);
            self.shared.keep_piece(self.key_of(place), Piece::Block(block));
            Ok(())
        })
    }

    fn warm_index(&self) {
        let top = &self.frame.top;
        let places = top.filters.iter().chain(top.leaves.iter().map(|leaf| &leaf.place));
        let (Some(from), to) = (places.map(|place| place.offset).min(), self.frame.footer.top_index.offset)
        else {
            return;
        };
        if to.saturating_sub(from) > self.shared.warm_bytes_max() {
            return;
        }
        let mut stored = vec![0; (to - from) as usize];
        if self.read_at(from, &mut stored).is_err() {
            return;
        }
        let bytes_of =
            |place: Place| stored.get((place.offset - from) as usize..(place.end() - from) as usize);
        for (number, place) in top.filters.iter().copied().enumerate() {
            if let Some(Ok(filter)) = bytes_of(place).map(|bytes| Filter::open(bytes, self.seed(place))) {
                self.keep_filter(Rank::Young, number, place, filter);
            }
        }
        for (number, place) in top.leaves.iter().map(|leaf| leaf.place).enumerate() {
            if let Some(Ok(leaf)) = bytes_of(place).map(|bytes| self.open_leaf(bytes.to_vec(), place)) {
                self.keep_leaf(Rank::Young, number, place, &Arc::new(leaf));
            }
        }
    }

    fn open_leaf(&self, stored: Vec<u8>, place: Place) -> Result<Leaf> {
        let block = Block::open(stored, self.seed(place)).map_err(|fault| self.damage(place, fault))?;
        Leaf::decode(&block, &self.order).map_err(|fault| self.damage(place, fault))
    }

    #[inline]
    pub(crate) fn key_of(&self, place: Place) -> PieceKey {
        PieceKey { part: self.id, offset: place.offset }
    }

    /// A block, if the cache has it.
    #[inline]
    pub(crate) fn block_in_cache(&self, place: Place) -> Option<Arc<Block>> {
        match self.shared().piece(self.key_of(place)) {
            Some(Piece::Block(block)) => Some(block),
            _ => None,
        }
    }

    /// A block, through the cache.
    pub(crate) fn block(&self, place: Place) -> Result<Arc<Block>> {
        let key = self.key_of(place);
        if let Some(Piece::Block(block)) = self.shared.piece(key) {
            count(&self.shared.counters().cache_hits, 1);
            return Ok(block);
        }
        count(&self.shared.counters().cache_misses, 1);
        let block = Arc::new(self.read_block(place)?);
        self.shared.keep_piece(key, Piece::Block(Arc::clone(&block)));
        Ok(block)
    }

    /// A leaf, kept from now on if there is room.
    pub(crate) fn leaf(&self, rank: Rank, number: usize) -> Result<Arc<Leaf>> {
        let place = self.leaf_place(number)?;
        if let Some(leaf) = self.kept.leaf(number) {
            return Ok(Arc::clone(leaf));
        }
        if let Some(Piece::Leaf(leaf)) = self.shared.piece(self.key_of(place)) {
            count(&self.shared.counters().cache_hits, 1);
            return Ok(leaf);
        }
        count(&self.shared.counters().cache_misses, 1);
        let leaf = Arc::new(self.read_leaf(place)?);
        self.keep_leaf(rank, number, place, &leaf);
        Ok(leaf)
    }

    /// A leaf for a reader that reads it once: from memory or from the file. It is not kept.
    pub(crate) fn leaf_in_passing(&self, number: usize) -> Result<Arc<Leaf>> {
        let place = self.leaf_place(number)?;
        match self.leaf_in_memory(number, place) {
            Some(leaf) => Ok(leaf),
            None => Ok(Arc::new(self.read_leaf(place)?)),
        }
    }

    fn leaf_place(&self, number: usize) -> Result<Place> {
        let entry = self.frame.top.leaves.get(number);
        entry
            .map(|entry| entry.place)
            .ok_or_else(|| self.damage(self.frame.footer.top_index, Malformed::Bounds))
    }

    /// A leaf from the file.
    pub(crate) fn read_leaf(&self, place: Place) -> Result<Leaf> {
        self.open_leaf(self.read_stored(place)?, place)
    }

    /// A block from the file.
    pub(crate) fn read_block(&self, place: Place) -> Result<Block> {
        let stored = self.read_stored(place)?;
        Block::open(stored, self.seed(place)).map_err(|fault| self.unread(place, fault))
    }

    /// A block from the file, and its checksum.
    pub(crate) fn read_block_summed(&self, place: Place) -> Result<(Block, Vec<u8>)> {
        let stored = self.read_stored(place)?;
        let checksum = stored_checksum(&stored).to_vec();
        let block = Block::open(stored, self.seed(place)).map_err(|fault| self.unread(place, fault))?;
        Ok((block, checksum))
    }

    /// The trailer of a piece, from the file.
    pub(crate) fn read_trailer(&self, place: Place) -> Result<[u8; TRAILER_BYTES]> {
        let mut trailer = [0; TRAILER_BYTES];
        self.read_at(place.end().saturating_sub(TRAILER_BYTES as u64), &mut trailer)?;
        Ok(trailer)
    }

    /// A filter partition from the file.
    pub(crate) fn read_filter(&self, place: Place) -> Result<Filter> {
        let stored = self.read_stored(place)?;
        Filter::open(&stored, self.seed(place)).map_err(|fault| self.damage(place, fault))
    }

    /// What the part points to in the value log, from the file.
    ///
    /// # Errors
    /// A read error, or damage.
    pub fn liveness(&self) -> Result<Liveness> {
        let Some(place) = self.frame.meta.liveness else { return Ok(Liveness::default()) };
        let stored = self.read_stored(place)?;
        Liveness::open(&stored, self.seed(place)).map_err(|fault| self.damage(place, fault))
    }

    /// The summary of all its blocks, if they have one.
    pub fn total(&self) -> Option<&Summary> {
        self.frame.meta.summaries.as_ref()?.total.as_ref()
    }

    /// Whether its blocks have summaries.
    pub fn has_summaries(&self) -> bool {
        self.frame.meta.summaries.is_some()
    }

    /// The summaries of its blocks, from the file; none if it was written without them.
    ///
    /// # Errors
    /// A read error, or damage.
    pub fn summaries(&self) -> Result<Option<Summaries>> {
        let Some(SummariesAt { place, .. }) = self.frame.meta.summaries else { return Ok(None) };
        let stored = self.read_stored(place)?;
        Summaries::open(&stored, self.seed(place)).map(Some).map_err(|fault| self.damage(place, fault))
    }

    /// The separators of the blocks of a leaf: each is at or after the last key of its block and
    /// before the first of the next. None after the last leaf.
    ///
    /// # Errors
    /// A read error, or damage.
    pub fn separators_of(&self, leaf: usize) -> Result<Option<Vec<Vec<u8>>>> {
        if leaf >= self.frame.top.leaves.len() {
            return Ok(None);
        }
        let leaf = self.leaf_in_passing(leaf)?;
        Ok(Some((0..leaf.separators.len()).map(|number| leaf.separators.get(number).to_vec()).collect()))
    }

    #[inline]
    pub(crate) fn seed(&self, place: Place) -> u64 {
        place_seed(self.number.0, place.offset)
    }

    fn read_stored(&self, place: Place) -> Result<Vec<u8>> {
        let mut stored = Vec::new();
        self.read_stored_into(place, &mut stored)?;
        Ok(stored)
    }

    pub(crate) fn read_stored_into(&self, place: Place, stored: &mut Vec<u8>) -> Result<()> {
        if place.end() > self.facts().file_bytes {
            return Err(self.damage(place, Malformed::Bounds));
        }
        stored.resize(place.len_bytes as usize, 0);
        self.read_at(place.offset, stored)?;
        count(&self.shared.counters().pieces_read, 1);
        Ok(())
    }

    /// Fills `buf` from `offset` of the file.
    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let file = self.file()?;
        count(&self.shared.counters().bytes_read, buf.len() as u64);
        file.read_exact_at(offset, buf).map_err(|error| read_error(&self.path, offset, error))
    }

    /// The open file. It is opened again if it was closed in the meantime.
    pub(crate) fn file(&self) -> Result<Arc<dyn ReadFile>> {
        if let Some(file) = self.shared.file(self.id) {
            return Ok(file);
        }
        let file = self.files.open(&self.path).map_err(|error| Error::io("open", &self.path, error))?;
        self.shared.keep_file(self.id, Arc::clone(&file));
        Ok(file)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Why the block at `place` is not read: it is damaged, unless this build of the library lacks
    /// what it needs.
    #[cold]
    pub(crate) fn unread(&self, place: Place, fault: Malformed) -> Error {
        if fault != Malformed::Feature {
            return self.damage(place, fault);
        }
        let message = format!("a block of {} at offset {}: {fault}", self.path.display(), place.offset);
        Error::new(ErrorKind::NewerFormat, message).advise(OTHER_BUILD)
    }

    /// Damage to the piece at `place`.
    #[cold]
    pub(crate) fn damage(&self, place: Place, fault: impl fmt::Display) -> Error {
        error::corrupt(&self.path, place.offset, fault)
    }
}

/// What is said of a part that is not the one that a manifest lists.
pub fn other_part(difference: &str) -> String {
    format!("it is not the part that the manifest lists: {difference}")
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.files.is_forked() {
            return;
        }
        self.shared.close_file(self.id);
        self.shared.give_room_back(self.kept.bytes() as u64);
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({}, {} records)", self.path.display(), self.facts().records)
    }
}

impl Frame {
    /// Reads and checks footer, facts and top index of the file.
    pub(crate) fn read(file: &dyn ReadFile, path: &Path, number: FileNumber) -> Result<Frame> {
        let file_bytes = file.len_bytes().map_err(|error| Error::io("read the length of", path, error))?;
        let footer_at = file_bytes.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| {
            error::corrupt(path, 0, format_args!("{file_bytes} bytes are too short for a part"))
        })?;
        let mut bytes = [0; FOOTER_BYTES];
        file.read_exact_at(footer_at, &mut bytes).map_err(|error| read_error(path, footer_at, error))?;
        let footer = Footer::read(&bytes, number.0, file_bytes).map_err(|fault| match fault {
            FooterFault::Malformed(fault) => {
                error::corrupt(path, footer_at, format_args!("the footer: {fault}"))
            }
            FooterFault::Newer(version) => Error::new(
                ErrorKind::NewerFormat,
                format!("{} is a part of format version {version}", path.display()),
            ),
        })?;
        if footer.version == PART_VERSION_ZSTD && !Compression::Zstd.is_available() {
            let message = format!(
                "{} has blocks that are compressed by zstd: that needs the feature `zstd` of folddb, \
                 which is off",
                path.display()
            );
            return Err(Error::new(ErrorKind::NewerFormat, message).advise(OTHER_BUILD));
        }
        let meta = read_piece(file, path, footer.meta)?;
        let meta = Meta::open(&meta, place_seed(number.0, footer.meta.offset), file_bytes)
            .map_err(|fault| error::corrupt(path, footer.meta.offset, fault))?;
        let top = read_piece(file, path, footer.top_index)?;
        let top = TopIndex::open(&top, place_seed(number.0, footer.top_index.offset))
            .map_err(|fault| error::corrupt(path, footer.top_index.offset, fault))?;
        check_places(&meta, &top, footer.top_index)
            .map_err(|fault| error::corrupt(path, footer.top_index.offset, fault))?;
        Ok(Frame { footer, meta, top })
    }
}

/// Filters, leaves, liveness and summaries follow the data without a gap, up to the top index; and
/// either no filter says how many leading elements it knows, or each does.
fn check_places(meta: &Meta, top: &TopIndex, top_place: Place) -> Result<(), Malformed> {
    let mut end = meta.data_bytes;
    let summaries = meta.summaries.as_ref().map(|summaries| &summaries.place);
    for place in top
        .filters
        .iter()
        .chain(top.leaves.iter().map(|leaf| &leaf.place))
        .chain(&meta.liveness)
        .chain(summaries)
    {
        if place.offset != end {
            return Err(Malformed::Order);
        }
        end = place.end();
    }
    if !meta.leading.is_empty() && meta.leading.len() != top.filters.len() {
        return Err(Malformed::Order);
    }
    if end == top_place.offset { Ok(()) } else { Err(Malformed::Order) }
}

/// Reads a piece. The caller has checked, by the footer, that its place is inside of the file.
fn read_piece(file: &dyn ReadFile, path: &Path, place: Place) -> Result<Vec<u8>> {
    let mut stored = vec![0; place.len_bytes as usize];
    file.read_exact_at(place.offset, &mut stored).map_err(|error| read_error(path, place.offset, error))?;
    Ok(stored)
}

/// The error of a failed read. A file that ends too soon is damaged; other errors come from the
/// system.
fn read_error(path: &Path, offset: u64, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => error::corrupt(path, offset, "the file ends here"),
        _ => Error::io("read", path, error),
    }
}

/// Moves `cursor` to the first record at or after `key`; with `past_equal`, after it.
pub(crate) fn seek_block(
    cursor: &mut BlockCursor,
    block: &Block,
    order: &KeyOrder,
    key: &[u8],
    past_equal: bool,
) -> Result<(), Malformed> {
    let bound = match order {
        KeyOrder::Bytewise => block.bound_in_bytes(key, false, past_equal),
        KeyOrder::Reversed => block.bound_in_bytes(key, true, past_equal),
        _ => None,
    };
    match bound {
        Some(index) => cursor.seek_index(block, index),
        None => cursor.seek_by(block, |other| match order.compare(other, key) {
            Ordering::Less => true,
            Ordering::Equal => past_equal,
            Ordering::Greater => false,
        }),
    }
}
