//! Writes a value that is too long to be held in memory into the value log: as one record, from
//! front to back.
//!
//! ```text
//!   begin    000052.values        zeros where the head of the record will be | key |        a draft: no manifest lists it
//!   push     000052.values        ... | a stretch of the value | the next | ...
//!   durable  000052.values        what has been written so far is made durable, so that little is left for the end
//!   finish   000052.values        ... | front, where it has one; the head is written over the zeros; the file is durable
//!   shelve   000061.shelf/000001.value      the same file, as the one value file of a directory of its own (`directories.rs`)
//! ```
//!
//! So it is durable, with its name, before anything leads to it. It is one record with one pointer
//! or one slot, like any value. The draft does not have the number of a segment: a value that is
//! finished later must be in a segment with a higher number. A draft that is dropped is removed; a
//! crash may leave one as a file that no manifest lists.

use std::path::{Path, PathBuf};

use folddb_base::checksum::{GrowingHash, key_hash};
use folddb_base::{Error, FileNumber, Result, TableId};
use folddb_host::{Host, WriteFile};
use folddb_layout::file_name::FileName;
use folddb_layout::values::{RECORD_HEAD_BYTES, put_head, record_bytes};

/// After this many bytes the system is asked to begin writing them to the disk.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// See the top of this file.
pub struct LongValue {
    host: Host,
    path: PathBuf,
    file: Option<Box<dyn WriteFile>>,
    table: TableId,
    key: Vec<u8>,
    hash: GrowingHash,
    len: u64,
    since_writeback: u64,
    is_shelved: bool,
}

impl LongValue {
    /// Begins a draft with this number in the store in `dir`, for a value of this key.
    ///
    /// # Errors
    /// A failed call. Then nothing is left behind.
    pub fn begin(
        host: &Host,
        dir: &Path,
        number: FileNumber,
        table: TableId,
        key: &[u8],
    ) -> Result<LongValue> {
        let mut value = LongValue {
            host: host.clone(),
            file: None,
            table,
            key: key.to_vec(),
            hash: GrowingHash::new(key_hash(key)),
            len: 0,
            since_writeback: 0,
            is_shelved: false,
            path: dir.join(FileName::Values(number).to_string()),
        };
        let created = value.host.files.create(&value.path);
        value.file = Some(created.map_err(|error| Error::io("create", &value.path, error))?);
        let front = [&[0; RECORD_HEAD_BYTES][..], key].concat();
        value.append(&front)?;
        Ok(value)
    }

    /// Bytes of the value so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if it has no bytes yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The hash of the value so far, as in a pointer.
    pub fn hash(&self) -> u32 {
        self.hash.hash32()
    }

    /// The length of its record so far, in bytes.
    pub fn record_bytes(&self) -> u64 {
        record_bytes(self.key.len(), self.len)
    }

    /// Appends these bytes.
    ///
    /// # Errors
    /// A failed write. Then the draft must not be used any more.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.append(bytes)?;
        self.hash.push(bytes);
        self.len += bytes.len() as u64;
        self.since_writeback += bytes.len() as u64;
        if self.since_writeback >= WRITEBACK_BYTES {
            self.since_writeback = 0;
            self.file.iter_mut().for_each(|file| file.start_writeback());
        }
        Ok(())
    }

    /// Makes durable what was written so far.
    ///
    /// # Errors
    /// A failed sync. Then the draft must not be used any more.
    pub fn make_durable(&mut self) -> Result<()> {
        let synced = self.host.files.sync_file(&self.path);
        synced.map_err(|error| Error::io("sync", &self.path, error))
    }

    /// Appends this front, if it is not empty, ends the value, and makes its bytes durable.
    ///
    /// # Errors
    /// A failed write or sync. Then the draft must not be used any more.
    pub fn finish(&mut self, front: &[u8]) -> Result<()> {
        self.push(front)?;
        let end = RECORD_HEAD_BYTES as u64 + self.key.len() as u64 + self.len;
        self.append(&vec![0; (self.record_bytes() - end) as usize])?;
        self.file = None;
        let mut head = Vec::new();
        put_head(&mut head, (self.table, &self.key), self.len, self.hash(), !front.is_empty());
        let files = &self.host.files;
        let ended = files.write_over(&self.path, 0, &head).and_then(|()| files.sync_file(&self.path));
        ended.map_err(|error| Error::io("end", &self.path, error))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else { return Err(Error::invalid("the value has ended")) };
        file.append(bytes).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Gives the file this name.
    pub(crate) fn rename_to(&mut self, to: &Path) -> Result<()> {
        self.host.files.rename(&self.path, to).map_err(|error| Error::io("rename", &self.path, error))?;
        self.is_shelved = true;
        Ok(())
    }
}

impl Drop for LongValue {
    fn drop(&mut self) {
        self.file = None;
        if !self.is_shelved {
            let _ = self.host.files.remove(&self.path); // the next opening removes what stays
        }
    }
}

impl std::fmt::Debug for LongValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LongValue({} bytes in {})", self.len, self.path.display())
    }
}
