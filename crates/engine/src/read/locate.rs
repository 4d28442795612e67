//! Where a value is, for callers that pass it on without copying: `sendfile`, a read into the
//! caller's memory, another process.
//!
//! A [`Located`] holds its files: despite later writes, merges and reclaims, they stay readable,
//! with the value that the key had at the time of the call. For an inline value it has the bytes
//! instead.
//!
//! Called by `table` and `snapshot`.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use folddb_base::{Piece, Pointer, Result, error};
use folddb_rules::State;

use crate::read::{get, hashed};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::snapshots::At;
use crate::values::hashed_record::is_long;
use crate::values::load;
use folddb_value_log::{SegmentMap, ValueFile};

/// What is done to a value that is located.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Locate {
    verify: bool,
    read_ahead: bool,
}

/// It is verified, and nothing is read ahead.
impl Default for Locate {
    fn default() -> Locate {
        Locate { verify: true, read_ahead: false }
    }
}

impl Locate {
    /// Whether the value is read first and its hash checked. Default true. Without it, nothing of
    /// the value is read, and a later reader may meet damage that is not reported.
    pub fn verify(mut self, verify: bool) -> Locate {
        self.verify = verify;
        self
    }

    /// Whether the system is asked to read the value into the page cache ahead, without waiting.
    /// Default false.
    pub fn read_ahead(mut self, read_ahead: bool) -> Locate {
        self.read_ahead = read_ahead;
        self
    }
}

/// Where a value is: its pieces, in order. Most values have one.
#[derive(Debug)]
pub struct Located {
    pieces: Vec<LocatedPiece>,
}

/// A piece of a value: in memory or in a file, and nowhere else.
#[derive(Debug)]
#[non_exhaustive]
pub enum LocatedPiece {
    /// It is inline: its bytes.
    Bytes(Vec<u8>),
    /// It is in a file.
    InFile(FilePiece),
}

/// A piece of a value in a file, which stays as long as this.
pub struct FilePiece {
    file: Arc<ValueFile>,
    /// Holding it keeps the name of the file, too.
    _of: Arc<SegmentMap>,
    offset: u64,
    len_bytes: u64,
}

impl Located {
    /// The pieces of the value, in order.
    pub fn pieces(&self) -> &[LocatedPiece] {
        &self.pieces
    }

    /// Bytes of the value.
    pub fn len_bytes(&self) -> u64 {
        self.pieces.iter().map(LocatedPiece::len_bytes).sum()
    }

    /// The file that has the whole value, if there is one.
    pub fn as_file(&self) -> Option<&FilePiece> {
        match self.pieces.as_slice() {
            [LocatedPiece::InFile(piece)] => Some(piece),
            _ => None,
        }
    }

    /// Copies the value to `to`, by the system where it can (Linux: from file to file, pipe or
    /// socket without passing through this process). Returns its length.
    ///
    /// # Errors
    /// A file that ends too early; a failed read or write.
    pub fn write_to(&self, to: &mut impl Write) -> io::Result<u64> {
        for piece in &self.pieces {
            match piece {
                LocatedPiece::Bytes(bytes) => to.write_all(bytes)?,
                LocatedPiece::InFile(piece) => piece.write_to(to)?,
            }
        }
        Ok(self.len_bytes())
    }
}

/// A value that is not in the store yet.
pub fn of_value(value: Vec<u8>) -> Located {
    Located { pieces: vec![LocatedPiece::Bytes(value)] }
}

impl LocatedPiece {
    /// Bytes of the piece.
    pub fn len_bytes(&self) -> u64 {
        match self {
            LocatedPiece::Bytes(bytes) => bytes.len() as u64,
            LocatedPiece::InFile(piece) => piece.len_bytes,
        }
    }
}

impl FilePiece {
    /// The file, which keeps this name as long as the store is open and this is held.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The offset of the piece in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the piece.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The handle of the file that the store reads through, shared by all readers: for calls that
    /// take an offset, as `sendfile` and `pread` do. None if the store bypasses the page cache, or
    /// in a simulated world: see [`FilePiece::open`].
    #[cfg(unix)]
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.file.handle()
    }

    /// The handle of the file that the store reads through, shared by all readers: for calls that
    /// take an offset, as `TransmitFile` does. None in a simulated world: see [`FilePiece::open`].
    #[cfg(windows)]
    pub fn handle(&self) -> Option<std::os::windows::io::BorrowedHandle<'_>> {
        self.file.handle()
    }

    /// The file, reopened and positioned at the piece.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> io::Result<File> {
        let mut file = File::open(self.path())?;
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(file)
    }

    /// Fills `buf` from the piece, beginning `at` bytes into it.
    ///
    /// # Errors
    /// `UnexpectedEof` beyond its end; a failed read.
    pub fn read_exact_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        if at.checked_add(buf.len() as u64).is_none_or(|end| end > self.len_bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(self.offset + at, buf)
    }

    fn write_to(&self, to: &mut impl Write) -> io::Result<()> {
        let copied = match self.file.handle() {
            Some(_) => io::copy(&mut io::Read::take(self.open()?, self.len_bytes), to)?,
            None => self.copy_to(to)?,
        };
        if copied < self.len_bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Copies it through memory, if there is no file of the operating system.
    fn copy_to(&self, to: &mut impl Write) -> io::Result<u64> {
        let mut buf = vec![0; self.len_bytes.min(256 << 10) as usize];
        let mut at = 0;
        while at < self.len_bytes {
            let now = (self.len_bytes - at).min(buf.len() as u64) as usize; // the rest may be beyond `usize`
            self.read_exact_at(at, &mut buf[..now])?;
            to.write_all(&buf[..now])?;
            at += now as u64;
        }
        Ok(at)
    }
}

impl std::fmt::Debug for FilePiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {} of {}", self.len_bytes, self.offset, self.path().display())
    }
}

/// Where the value of `key` is, as a reader at `at` (or now) sees it.
pub fn locate(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
    how: Locate,
) -> Result<Option<Located>> {
    if let Some(hashed) = table.hashed.as_ref().filter(|_| table.records_of().has_fronts) {
        let Some((found, of)) = hashed::front_of(engine, (table, hashed), key, at)? else {
            return Ok(None);
        };
        // The hash covers both the front and the value.
        let record = locate_piece(engine, (&of, table), key, &found.pointer(&of), how)?;
        let (from, len_bytes) = found.value_in_record();
        let value = FilePiece { offset: record.offset + from, len_bytes, ..record };
        return Ok(Some(Located { pieces: vec![LocatedPiece::InFile(value)] }));
    }
    get::with_state(engine, table, key, at, |state, of| match state {
        None => Ok(None),
        Some(State::Value(value)) => Ok(Some(of_value(value.to_vec()))),
        Some(State::Separated(pointer)) => {
            let of = of.map_or_else(|| engine.values.files.present(), Arc::clone);
            let rope = load::rope(table, key, pointer)?;
            let pieces = rope.iter().map(|piece| match (piece, piece.pointer()) {
                (_, Some(pointer)) => {
                    locate_piece(engine, (&of, table), key, &pointer, how).map(LocatedPiece::InFile)
                }
                (Piece::Inline(bytes), _) => Ok(LocatedPiece::Bytes(bytes.to_vec())),
                (Piece::Separated { .. }, None) => Ok(LocatedPiece::Bytes(Vec::new())), // cannot be
            });
            Ok(Some(Located { pieces: pieces.collect::<Result<_>>()? }))
        }
    })
}

pub(crate) fn locate_piece(
    engine: &Engine,
    (of, table): (&Arc<SegmentMap>, &TableCore),
    key: &[u8],
    pointer: &Pointer<'_>,
    how: Locate,
) -> Result<FilePiece> {
    let opened = engine.values.files.open(of, pointer.place.segment);
    let found = opened.and_then(|file| file.at(pointer.place)).and_then(|file| {
        let extent = file.extent(key, pointer)?;
        Ok((file, extent))
    });
    let (file, (offset, len_bytes)) = found.map_err(|error| load::of_key(table, key, error))?;
    if how.verify && is_long(len_bytes) {
        engine.counters.value_reads.add(1);
        let hash =
            file.hash_range((offset, len_bytes), key).map_err(|error| load::of_key(table, key, error))?;
        if hash != pointer.hash {
            let error =
                error::corrupt(file.path(), offset, "the value is not the one that was written there");
            return Err(load::of_key(table, key, error));
        }
    } else if how.verify {
        load::load_piece(engine, of, table, key, pointer, &mut Vec::new())?;
    } else if how.read_ahead {
        file.will_need(offset, len_bytes);
    }
    Ok(FilePiece { file, _of: Arc::clone(of), offset, len_bytes })
}
