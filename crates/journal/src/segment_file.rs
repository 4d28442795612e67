//! Making the file of a segment, and the open file to which frames are appended.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{Error, FileNumber, Lsn, NumberSource, Result};
use folddb_host::{AppendFile, Host, files::AppendSync};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::FRAME_OVERHEAD_BYTES_MAX;
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

use crate::options::JournalOptions;

/// Where and how segments are made.
pub(crate) struct SegmentMaker {
    pub(crate) host: Host,
    pub(crate) dir: PathBuf,
    pub(crate) store_id: u128,
    pub(crate) options: JournalOptions,
    pub(crate) numbers: NumberSource,
}

/// A segment that is appended to, or will be.
pub(crate) struct OpenSegment {
    pub(crate) header: SegmentHeader,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn AppendFile>,
    pub(crate) syncer: Arc<dyn AppendSync>,
}

impl SegmentMaker {
    /// Makes a segment of `len_bytes`; it is longer if a frame of `frame_bytes` needs that. Its
    /// file, its header and its name are durable on return. Nothing is left behind on failure.
    pub(crate) fn make(
        &self,
        previous: Option<FileNumber>,
        first_lsn: Lsn,
        len_bytes: u64,
        frame_bytes: u64,
    ) -> Result<OpenSegment> {
        let number = (self.numbers)();
        let path = segment_path(&self.dir, number);
        let needed_bytes = SEGMENT_HEADER_BYTES as u64 + frame_bytes + FRAME_OVERHEAD_BYTES_MAX as u64;
        let segment_bytes = len_bytes.max(needed_bytes.next_power_of_two()).min(self.options.segment_bytes);
        let capacity_bytes = segment_bytes.saturating_sub(SEGMENT_HEADER_BYTES as u64);
        let salt = self.host.chance.next_u64();
        let header =
            SegmentHeader { number, store_id: self.store_id, salt, first_lsn, capacity_bytes, previous };
        let file = self
            .host
            .files
            .create_append(&path, segment_bytes, self.options.append_mode)
            .map_err(|error| Error::io("create", &path, error))?;
        self.begin(header, &path, file).inspect_err(|_| {
            let _ = self.host.files.remove(&path);
        })
    }

    fn begin(
        &self,
        header: SegmentHeader,
        path: &Path,
        mut file: Box<dyn AppendFile>,
    ) -> Result<OpenSegment> {
        let syncer = file.syncer();
        let _ = syncer.prepare(); // a hint: an append finds its own window if need be
        file.append(&header.encode()).map_err(|error| Error::io("write", path, error))?;
        syncer.sync().map_err(|error| Error::io("sync", path, error))?;
        self.host.files.sync_dir(&self.dir).map_err(|error| Error::io("sync", &self.dir, error))?;
        Ok(OpenSegment { header, path: path.to_owned(), file, syncer })
    }

    /// The largest payload that a segment of the configured length takes, in bytes.
    pub(crate) fn payload_bytes_max(&self) -> u64 {
        let capacity_bytes = self.options.segment_bytes.saturating_sub(SEGMENT_HEADER_BYTES as u64);
        capacity_bytes.saturating_sub(2 * FRAME_OVERHEAD_BYTES_MAX as u64)
    }

    /// Removes a segment without frames. If it stays, it does no harm: replay recognizes it.
    pub(crate) fn unmake(&self, segment: OpenSegment) {
        let path = segment.path.clone();
        drop(segment);
        let _ = self.host.files.remove(&path);
    }
}

/// Replaces a file that has been released: all calls fail.
pub(crate) struct Gone;

fn gone() -> io::Error {
    io::Error::other("the journal is closed")
}

impl AppendFile for Gone {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Err(gone())
    }

    fn end(&self) -> u64 {
        0
    }

    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::new(Gone)
    }
}

impl AppendSync for Gone {
    fn sync(&self) -> io::Result<()> {
        Err(gone())
    }

    fn prepare(&self) -> io::Result<()> {
        Err(gone())
    }
}

/// The path of the segment with this number.
pub(crate) fn segment_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::Log(number).to_string())
}
