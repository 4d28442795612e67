//! Writes a file of relocated values from front to back.

use std::path::{Path, PathBuf};

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Result};
use folddb_host::{Files, WriteFile};
use folddb_layout::file_name::FileName;
use folddb_layout::relocated::{MAP_PAGE_BYTES, Move, Top, header, put_pages};

/// Bytes that are gathered before they are written to the file.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// After this many bytes the system is asked to begin writing them to the disk, so that the sync at
/// the end is short.
const WRITEBACK_BYTES: u64 = 4 << 20;

/// The path of the file of relocated values with this number.
pub fn relocated_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::Relocated(number).to_string())
}

/// See the top of this file. In memory it holds eight bytes for each value, and a buffer.
pub struct RelocatedWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    number: FileNumber,
    /// Where the next byte will be.
    at: u64,
    buffer: Vec<u8>,
    unsent_bytes: u64,
    done: Vec<Gathered>,
}

/// What has been written of one segment.
struct Gathered {
    segment: u32,
    bytes: u64,
    moves: Vec<Move>,
}

impl RelocatedWriter {
    /// Begins file `number` of the store in `dir`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(files: &dyn Files, dir: &Path, number: FileNumber) -> Result<RelocatedWriter> {
        let path = relocated_path(dir, number);
        let file = files.create(&path).map_err(|error| Error::io("create", &path, error))?;
        let (buffer, done) = (header(number), Vec::new());
        let at = buffer.len() as u64;
        Ok(RelocatedWriter { file, path, number, at, buffer, unsent_bytes: 0, done })
    }

    /// Its number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// The records that follow belong to this segment. Segments must ascend.
    pub fn begin_segment(&mut self, segment: u32) {
        self.done.push(Gathered { segment, bytes: 0, moves: Vec::new() });
    }

    /// The record that follows was at this unit of the segment. Units must ascend.
    ///
    /// # Errors
    /// The file would be longer than pointers can reach.
    pub fn begin_record(&mut self, old: u32) -> Result<()> {
        let new = u32::try_from(self.at / VALUE_ALIGN)
            .map_err(|_| Error::invalid(format!("{} is as long as it can be", self.path.display())))?;
        if let Some(gathered) = self.done.last_mut() {
            gathered.moves.push(Move { old, new });
        }
        Ok(())
    }

    /// Appends bytes of the record; all of them together are a multiple of 16.
    ///
    /// # Errors
    /// A failed write.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(gathered) = self.done.last_mut() {
            gathered.bytes += bytes.len() as u64;
        }
        self.append(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<()> {
        self.file.append(&self.buffer).map_err(|error| Error::io("write", &self.path, error))?;
        self.unsent_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        if self.unsent_bytes >= WRITEBACK_BYTES {
            self.unsent_bytes = 0;
            self.file.start_writeback();
        }
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Writes map, top and footer, and makes the bytes of the file durable, but not its name.
    /// Returns its length.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn finish(mut self) -> Result<u64> {
        let map_at = self.at.next_multiple_of(MAP_PAGE_BYTES as u64);
        self.append(&vec![0; (map_at - self.at) as usize])?;
        let mut carried = Vec::new();
        for gathered in std::mem::take(&mut self.done) {
            let mut pages = Vec::new();
            let Gathered { segment, bytes, moves } = gathered;
            carried.push(put_pages(&mut pages, (self.number, self.at), segment, bytes, &moves));
            self.append(&pages)?;
        }
        let mut end = Vec::new();
        Top::new(map_at, carried).put(&mut end, self.number);
        self.append(&end)?;
        self.hand_on()?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(self.at)
    }
}
