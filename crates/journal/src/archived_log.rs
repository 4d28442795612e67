//! A part of the log, rewritten into one file for followers: the end of the log that a crash left,
//! or many small files of it.
//!
//! ```text
//!   before   | seg |  seg  durable|not known to be ...torn|  ahead  |          the next chain begins at n
//!   after    | seg |  seg  durable|
//!                                 | kept  frames  SEAL .............|  seg  ...
//!                                 x                                 n
//!
//!   before   | kept | seg | seg | seg |  seg ...
//!   after    | kept  frames  SEAL ....|  seg ...
//!            x                        n
//! ```
//!
//! When a process died, some frames were not known to be durable. They must not be read again from
//! their file: the page cache may show bytes that the disk does not have, and recovery gives their
//! values other places. So recovery copies the valid frames, from the first of these on, into a
//! file with the format of a segment. Its seal leads to the LSN at which the next chain of segments
//! begins. Recovery in the engine calls this, and the job that joins small files, before the edit
//! that lists the file.

use std::path::{Path, PathBuf};

use folddb_base::{Error, FileNumber, Lsn, Result, Seq};
use folddb_host::{Host, WriteFile};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{self, FrameHead, FrameKind};
use folddb_layout::segment::SegmentHeader;

/// How many bytes are written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// A file that a part of the log is written to.
pub struct ArchivedLogWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    header: SegmentHeader,
    lsn: Lsn,
    next_seq: Seq,
    prev_hash: u32,
    buffer: Vec<u8>,
}

/// The path of an archived part of the log.
pub fn archived_log_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::ArchivedLog(number).to_string())
}

impl ArchivedLogWriter {
    /// Begins the file with this number, for the history from `first_lsn` to `next_lsn`.
    ///
    /// # Errors
    /// A failed call; then nothing is left behind.
    pub fn begin(
        host: &Host,
        dir: &Path,
        number: FileNumber,
        store_id: u128,
        (first_lsn, next_lsn): (Lsn, Lsn),
    ) -> Result<ArchivedLogWriter> {
        let path = archived_log_path(dir, number);
        let salt = host.chance.next_u64();
        let capacity_bytes = next_lsn.saturating_sub(first_lsn);
        let header = SegmentHeader { number, store_id, salt, first_lsn, capacity_bytes, previous: None };
        let file = host.files.create(&path).map_err(|error| Error::io("create", &path, error))?;
        let buffer = header.encode();
        Ok(ArchivedLogWriter { file, path, header, lsn: first_lsn, next_seq: 0, prev_hash: 0, buffer })
    }

    /// Where it begins.
    pub fn first_lsn(&self) -> Lsn {
        self.header.first_lsn
    }

    /// Its number.
    pub fn number(&self) -> FileNumber {
        self.header.number
    }

    /// Adds a batch after the previous ones.
    ///
    /// # Errors
    /// A failed call.
    pub fn put(
        &mut self,
        (first_seq, count): (Seq, u32),
        time_ms: Option<u64>,
        payload: &[u8],
    ) -> Result<()> {
        self.next_seq = first_seq;
        self.put_frame(FrameKind::Batch, count, time_ms, payload)?;
        self.next_seq += u64::from(count);
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    /// Ends the file. Its content is durable on return, but not its name.
    ///
    /// # Errors
    /// A failed call.
    pub fn finish(mut self) -> Result<()> {
        self.put_frame(FrameKind::Seal, 0, None, &[])?;
        self.write()?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))
    }

    fn put_frame(&mut self, kind: FrameKind, count: u32, time_ms: Option<u64>, payload: &[u8]) -> Result<()> {
        // The whole file is durable before anybody reads it. This value keeps each frame as long as
        // it was.
        let (first_seq, durable_lsn, prev_hash) = (self.next_seq, self.lsn, self.prev_hash);
        let head = FrameHead { kind, first_seq, count, durable_lsn, prev_hash, time_ms };
        let len = frame::frame_len(self.lsn, &head, payload.len()) as u64;
        if self.lsn + len > self.header.next_lsn() {
            return Err(Error::invalid("what is rewritten of the log does not match its place"));
        }
        self.prev_hash = frame::put_frame(&mut self.buffer, self.header.salt, self.lsn, &head, payload);
        self.lsn += len;
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.file.append(&self.buffer).map_err(|error| Error::io("write", &self.path, error))?;
        self.buffer.clear();
        Ok(())
    }
}
