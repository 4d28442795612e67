//! The source of a copy: a segment, or a file of relocated values, read from front to back.
//!
//! Each record is checked when it is copied: its head, its key, and the hash of its value. What is
//! between the requested records is skipped and counted, so that `copied + dropped` is what the
//! file held. Long records, too, are copied through one window.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::checksum::{GrowingHash, key_hash};
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, Result, TableId, error};
use folddb_host::{Files, ReadFile};
use folddb_layout::relocated::RELOCATED_HEADER_BYTES;
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};

use super::writer::RelocatedWriter;
use crate::segment::{ValuesEnd, read_at, values_path};

/// Bytes that are read at a time.
const WINDOW_BYTES: u64 = 256 << 10;

/// Why a record was not copied.
#[derive(Debug)]
pub enum CopyFault {
    /// The source cannot be read, or is damaged.
    Source(Error),
    /// The target cannot be written.
    Target(Error),
}

/// See the top of this file.
pub struct Source {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    /// Where the records end.
    end: u64,
    /// The end of the last record that was copied.
    at: u64,
    window: Vec<u8>,
    window_at: u64,
    copied: u64,
    dropped: u64,
}

impl Source {
    pub(super) fn new(file: Arc<dyn ReadFile>, path: &Path, end: u64) -> Source {
        // The headers of segments and of files of relocated values have the same length.
        let at = RELOCATED_HEADER_BYTES as u64;
        let (path, end) = (path.to_owned(), end.max(at));
        Source { file, path, end, at, window: Vec::new(), window_at: 0, copied: 0, dropped: 0 }
    }

    /// A segment of the store in `dir`, which ends where `sealed` says.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn segment(files: &dyn Files, dir: &Path, sealed: ValuesEnd) -> Result<Source> {
        let path = values_path(dir, sealed.number);
        let file = files.open(&path).map_err(|error| Error::io("open", &path, error))?;
        Ok(Source::new(file, &path, sealed.end))
    }

    /// Copies the record at this unit of the file, for pointers that lead to the unit `old`. Units
    /// must ascend from call to call. Returns the length of the record, and the table that it
    /// belongs to.
    ///
    /// # Errors
    /// Which of the two files is at fault.
    pub fn copy(
        &mut self,
        unit: u32,
        old: u32,
        to: &mut RelocatedWriter,
    ) -> Result<(u64, TableId), CopyFault> {
        let offset = u64::from(unit) * VALUE_ALIGN;
        if offset < self.at {
            return Err(self.damaged(offset, "a record begins inside of the one before"));
        }
        let (bytes, value) = self.head(offset)?;
        to.begin_record(old).map_err(CopyFault::Target)?;
        let mut hash = GrowingHash::new(value.key_hash);
        let mut done = 0;
        while done < bytes {
            let len = (bytes - done).min(WINDOW_BYTES);
            let piece = self.read(offset + done, len)?;
            let from = value.from.clamp(done, done + len) - done;
            let upto = value.upto.clamp(done, done + len) - done;
            hash.push(&piece[from as usize..upto as usize]);
            to.push(piece).map_err(CopyFault::Target)?;
            done += len;
        }
        if hash.hash32() != value.hash {
            return Err(self.damaged(offset, "the value is not the one that was written there"));
        }
        self.dropped += offset - self.at;
        self.copied += bytes;
        self.at = offset + bytes;
        Ok((bytes, value.table))
    }

    /// The length of the record at this offset, and what its head says about its value.
    fn head(&mut self, offset: u64) -> Result<(u64, ValueIn), CopyFault> {
        let no_head = "no record begins where a pointer leads";
        let head = self.read(offset, RECORD_HEAD_BYTES as u64)?;
        let head = RecordHead::decode(head).map_err(|_| self.damaged(offset, no_head))?;
        let key = self.read(offset + RECORD_HEAD_BYTES as u64, u64::from(head.key_len))?;
        let (is_of, key_hash) = (head.is_of(key), key_hash(key));
        let bytes = head.record_bytes();
        if !is_of {
            return Err(self.damaged(offset, no_head));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > self.end) {
            return Err(self.damaged(offset, "the file ends before the record"));
        }
        let from = RECORD_HEAD_BYTES as u64 + u64::from(head.key_len);
        let upto = from + head.len;
        Ok((bytes, ValueIn { table: head.table, from, upto, key_hash, hash: head.hash }))
    }

    /// Bytes of the file, through the window. The system is told that the previous window will not
    /// be needed: the file will be removed.
    fn read(&mut self, offset: u64, len: u64) -> Result<&[u8], CopyFault> {
        let window_end = self.window_at + self.window.len() as u64;
        if offset < self.window_at || offset + len > window_end {
            if offset.checked_add(len).is_none_or(|end| end > self.end) {
                return Err(self.damaged(offset, "the file ends before the record"));
            }
            self.file.wont_need(self.window_at, self.window.len() as u64);
            let take = len.max(WINDOW_BYTES).min(self.end - offset);
            self.window.resize(take as usize, 0);
            self.window_at = offset;
            if let Err(error) = read_at(&*self.file, &self.path, offset, &mut self.window) {
                self.window.clear();
                return Err(CopyFault::Source(error));
            }
        }
        let from = (offset - self.window_at) as usize;
        Ok(&self.window[from..from + len as usize])
    }

    fn damaged(&self, offset: u64, what: &str) -> CopyFault {
        CopyFault::Source(error::corrupt(&self.path, offset, what))
    }

    /// Frees the memory of the window until the next record is copied.
    pub fn rest(&mut self) {
        self.file.wont_need(self.window_at, self.window.len() as u64);
        self.window = Vec::new();
    }

    /// Bytes of records that were copied, and bytes that were not copied: together everything that
    /// the file held.
    pub fn finish(mut self) -> (u64, u64) {
        self.file.wont_need(self.window_at, self.window.len() as u64);
        self.dropped += self.end - self.at;
        let held = self.end - RELOCATED_HEADER_BYTES as u64;
        assert_eq!(self.copied + self.dropped, held, "each byte was copied or left behind");
        (self.copied, self.dropped)
    }
}

/// Where the value of a record is, within the record, its hash, and whose it is.
struct ValueIn {
    table: TableId,
    from: u64,
    upto: u64,
    key_hash: u64,
    hash: u32,
}
