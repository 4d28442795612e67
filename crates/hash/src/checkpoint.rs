//! A checkpoint: a saved index. Its directory is read when it is opened; its pieces are read one by
//! one, when they are needed.
//!
//! A torn or damaged piece is refused with file and offset, each time that it is read; the others
//! are not affected. Used by `index.rs`, which loads shards from it, and to verify a store.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Result, Seq, error};
use folddb_host::files::Files;
use folddb_host::{ReadFile, WriteFile};
use folddb_layout::hash_checkpoint::{
    CHECKPOINT_FOOTER_BYTES, CheckpointFooter, Directory, Entry, POINT_BITS, PieceEntry, PointRange,
    put_piece, read_piece,
};
use folddb_layout::part::FooterFault;

use crate::slot::Slot;

/// See the top of this file.
pub struct Checkpoint {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    number: FileNumber,
    salt: u64,
    directory: Directory,
}

impl Checkpoint {
    /// Opens the checkpoint with this number: its footer and its directory are read and checked,
    /// but no piece.
    ///
    /// # Errors
    /// `Corruption` with file and offset, `NewerFormat`, or an error of the system.
    pub fn open(files: &dyn Files, path: &Path, number: FileNumber) -> Result<Arc<Checkpoint>> {
        let file = files.open(path).map_err(|error| Error::io("open", path, error))?;
        let footer = read_footer(&*file, path, number)?;
        let place = footer.directory();
        let stored = read_at(&*file, path, place.start, place.end - place.start)?;
        let directory = Directory::read(&stored, number.0, place.start)
            .map_err(|fault| error::corrupt(path, place.start, fault))?;
        Ok(Arc::new(Checkpoint { file, path: path.to_owned(), number, salt: footer.salt, directory }))
    }

    /// How many keys it holds.
    pub fn keys(&self) -> u64 {
        self.directory.keys()
    }

    /// It holds every change up to this seq, and some of the later ones. The log is needed from the
    /// next one on.
    pub fn seq(&self) -> Seq {
        self.directory.seq()
    }

    /// What the hashes of its keys are seeded with.
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// The number of its file.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    pub(crate) fn pieces(&self) -> &[PieceEntry] {
        &self.directory.pieces
    }

    /// The piece that holds exactly these points.
    pub(crate) fn piece(&self, range: PointRange) -> Option<&PieceEntry> {
        let at = self.pieces().binary_search_by_key(&range.start, |piece| piece.range.start).ok()?;
        self.pieces().get(at).filter(|piece| piece.range == range)
    }

    /// Reads a piece.
    pub(crate) fn read(&self, piece: &PieceEntry) -> Result<Vec<Entry>> {
        let stored = read_at(&*self.file, &self.path, piece.offset, piece.len_bytes)?;
        let entries = read_piece(&stored, piece, self.number.0);
        entries.map_err(|fault| error::corrupt(&self.path, piece.offset, fault))
    }

    /// The bytes of a piece, unchecked: zeros if they are missing.
    fn stored(&self, piece: &PieceEntry) -> Vec<u8> {
        let stored = read_at(&*self.file, &self.path, piece.offset, piece.len_bytes);
        stored.unwrap_or_else(|_| vec![0; piece.len_bytes as usize])
    }

    /// Reads every piece, and returns the faults of those that are not whole.
    pub fn faults(&self) -> Vec<Error> {
        self.pieces().iter().filter_map(|piece| self.read(piece).err()).collect()
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkpoint({}, {} keys)", self.path.display(), self.keys())
    }
}

fn read_footer(file: &dyn ReadFile, path: &Path, number: FileNumber) -> Result<CheckpointFooter> {
    let file_bytes = file.len_bytes().map_err(|error| Error::io("read the length of", path, error))?;
    let footer_at = file_bytes.checked_sub(CHECKPOINT_FOOTER_BYTES as u64).ok_or_else(|| {
        error::corrupt(path, 0, format_args!("{file_bytes} bytes are too short for a checkpoint"))
    })?;
    let mut bytes = [0; CHECKPOINT_FOOTER_BYTES];
    file.read_exact_at(footer_at, &mut bytes).map_err(|error| read_error(path, footer_at, error))?;
    CheckpointFooter::read(&bytes, number.0, file_bytes).map_err(|fault| match fault {
        FooterFault::Malformed(fault) => error::corrupt(path, footer_at, format_args!("the footer: {fault}")),
        FooterFault::Newer(version) => Error::new(
            ErrorKind::NewerFormat,
            format!("{} is a checkpoint of format version {version}", path.display()),
        ),
    })
}

/// Reads a place that was checked, against the footer or the directory, to be inside of the file.
pub(crate) fn read_at(file: &dyn ReadFile, path: &Path, offset: u64, len_bytes: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len_bytes).map_err(|_| error::corrupt(path, offset, "too long for memory"))?;
    let mut stored = vec![0; len];
    file.read_exact_at(offset, &mut stored).map_err(|error| read_error(path, offset, error))?;
    Ok(stored)
}

/// A file that ends too soon has lost bytes; all other errors come from the system.
pub(crate) fn read_error(path: &Path, offset: u64, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => error::corrupt(path, offset, "the file ends here"),
        _ => Error::io("read", path, error),
    }
}

/// A range of an index as it was at one moment.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) range: PointRange,
    /// Ascending.
    pub(crate) entries: Vec<Entry>,
    /// Every change up to it is included, and none after.
    pub(crate) seq: Seq,
}

/// Writes a checkpoint, a piece at a time.
pub struct CheckpointWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    number: FileNumber,
    salt: u64,
    directory: Directory,
    segments: BTreeMap<u32, SegmentTally>,
    end: u64,
    buffer: Vec<u8>,
    /// Keys of damaged pieces, and the first damage.
    unreadable_keys: u64,
    damage: Option<Error>,
}

/// What the index leads to in one value segment, which is named by the part of its number that is
/// in an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentTally {
    /// Slots that lead to it.
    pub records: u64,
    /// The approximate bytes of their records: by size classes, up to a quarter too high.
    pub bytes: u64,
}

impl SegmentTally {
    /// Counts a slot.
    pub fn add(&mut self, slot: Slot) {
        self.records += 1;
        self.bytes += slot.class().about_bytes();
    }

    /// Removes a slot from the count. False if none is left.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let had_one = self.records > 0;
        self.records = self.records.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(slot.class().about_bytes());
        had_one
    }
}

/// What has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFacts {
    /// The length of the file.
    pub file_bytes: u64,
    /// How many keys it holds.
    pub keys: u64,
    /// See [`Checkpoint::seq`].
    pub seq: Seq,
    /// No change after this seq is in it.
    pub max_seq: Seq,
    /// How many of those are in damaged pieces, which were copied unchanged.
    pub unreadable_keys: u64,
    /// What the saved keys lead to, by segments, except those.
    pub segments: BTreeMap<u32, SegmentTally>,
}

impl CheckpointWriter {
    /// Begins a checkpoint in a new file, for an index with keys that are hashed with this salt. No
    /// number may be used twice: a shard knows by the number where it is saved.
    pub fn new(file: Box<dyn WriteFile>, path: &Path, number: FileNumber, salt: u64) -> CheckpointWriter {
        let path = path.to_owned();
        CheckpointWriter {
            file,
            path,
            number,
            salt,
            directory: Directory::default(),
            segments: BTreeMap::new(),
            end: 0,
            buffer: Vec::new(),
            unreadable_keys: 0,
            damage: None,
        }
    }

    pub(crate) fn number(&self) -> FileNumber {
        self.number
    }

    /// The first point that is not in it yet; none when it has all.
    pub(crate) fn next_point(&self) -> Option<u64> {
        let next = self.directory.pieces.last().map_or(0, |piece| piece.range.end());
        (next < 1 << POINT_BITS).then_some(next)
    }

    /// Appends a range, which begins where the previous one ends.
    pub(crate) fn push(&mut self, image: &Image) -> Result<()> {
        self.buffer.clear();
        put_piece(&mut self.buffer, image.range, &image.entries, self.number.0, self.end);
        for slot in image.entries.iter().map(|entry| Slot::from_bits(entry.slot)) {
            self.segments.entry(slot.segment()).or_default().add(slot);
        }
        self.directory.pieces.push(PieceEntry {
            range: image.range,
            keys: image.entries.len() as u64,
            seq: image.seq,
            offset: self.end,
            len_bytes: self.buffer.len() as u64,
        });
        self.append()?;
        self.file.start_writeback();
        Ok(())
    }

    /// Appends a damaged piece of an older checkpoint unchanged: its checksum fits only its own
    /// number, so it is still refused. It lacks no change up to `applied`, since none can be made
    /// to it.
    pub(crate) fn carry(
        &mut self,
        of: &Checkpoint,
        piece: &PieceEntry,
        applied: Seq,
        damage: Error,
    ) -> Result<()> {
        self.buffer = of.stored(piece);
        self.unreadable_keys += piece.keys;
        self.damage.get_or_insert(damage);
        self.directory.pieces.push(PieceEntry { seq: piece.seq.max(applied), offset: self.end, ..*piece });
        self.append()
    }

    /// The first damage that it met while saving.
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    fn append(&mut self) -> Result<()> {
        self.file.append(&self.buffer).map_err(|error| Error::io("write", &self.path, error))?;
        self.end += self.buffer.len() as u64;
        Ok(())
    }

    /// Ends it. What was written is durable on return; the caller syncs the name of the file.
    ///
    /// # Errors
    /// Something is missing from it, or an error of the system. Then the file is useless.
    pub fn finish(mut self) -> Result<CheckpointFacts> {
        if self.next_point().is_some() {
            return Err(Error::invalid(format!("{} has not all of the index yet", self.path.display())));
        }
        let directory_offset = self.end;
        self.buffer.clear();
        self.directory.put(&mut self.buffer, self.number.0, directory_offset);
        let file_bytes = directory_offset + (self.buffer.len() + CHECKPOINT_FOOTER_BYTES) as u64;
        let footer =
            CheckpointFooter { number: self.number.0, file_bytes, directory_offset, salt: self.salt };
        footer.put(&mut self.buffer);
        self.append()?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        let (keys, seq) = (self.directory.keys(), self.directory.seq());
        let max_seq = self.directory.pieces.iter().map(|piece| piece.seq).max().unwrap_or(0);
        let (segments, unreadable_keys) = (self.segments, self.unreadable_keys);
        Ok(CheckpointFacts { file_bytes, keys, seq, max_seq, unreadable_keys, segments })
    }
}
