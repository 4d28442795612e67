//! Reads a segment front to back through a window of memory, and searches it for frames.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result};
use folddb_host::{Host, ReadFile};
use folddb_layout::frame::{self, FRAME_BYTES_MIN, Frame};
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

use crate::segment_file::segment_path;

/// Bytes read at a time. A frame that is longer is read whole.
const READ_BYTES: usize = 1 << 20;

/// Bytes that a search looks at in one go.
const SEARCH_BYTES: usize = 64 << 10;

/// A segment's file, and a window of its bytes.
pub(crate) struct SegmentReader {
    pub(crate) path: PathBuf,
    file: Arc<dyn ReadFile>,
    len_bytes: u64,
    window: Vec<u8>,
    window_offset: u64,
}

/// What lies in a segment beyond a place where the walk over its frames ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Beyond {
    /// The highest LSN that a frame there vouches for.
    pub(crate) durable_lsn: Lsn,
    /// Bytes up to the last that is not zero.
    pub(crate) bytes: u64,
}

impl SegmentReader {
    pub(crate) fn open(host: &Host, dir: &Path, number: FileNumber) -> Result<SegmentReader> {
        let path = segment_path(dir, number);
        let file = host.files.open(&path).map_err(|error| Error::io("open", &path, error))?;
        let len_bytes = file.len_bytes().map_err(|error| Error::io("read", &path, error))?;
        Ok(SegmentReader { path, file, len_bytes, window: Vec::new(), window_offset: 0 })
    }

    /// The header; an error of the inner kind where it is not whole.
    pub(crate) fn header(&mut self, number: FileNumber) -> Result<Result<SegmentHeader, Malformed>> {
        let bytes = self.bytes(0, SEGMENT_HEADER_BYTES)?;
        Ok(SegmentHeader::decode(bytes, number))
    }

    /// The whole frame at `lsn`; none when there is none.
    pub(crate) fn frame(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<Option<Frame<'_>>> {
        let offset = header.offset_of(lsn);
        let head = self.bytes(offset, FRAME_BYTES_MIN)?;
        let Some(len) = frame::claimed_len(head) else { return Ok(None) };
        if len as u64 > self.end_offset(header).saturating_sub(offset) {
            return Ok(None); // before any memory is taken for it
        }
        self.bytes(offset, len)?;
        let start = (offset - self.window_offset) as usize;
        frame::decode_frame(&self.window[start..], header.salt, lsn)
            .map_err(|cause| Error::corrupt(&self.path, offset, cause))
    }

    /// Looks at all that lies at or beyond `lsn`, trying every place where a frame could begin.
    pub(crate) fn search(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<Beyond> {
        let (from, end) = (header.offset_of(lsn), self.end_offset(header));
        let mut beyond = Beyond::default();
        let mut offset = from;
        while offset < end {
            let bytes = self.bytes(offset, SEARCH_BYTES)?;
            let bytes = &bytes[..bytes.len().min(SEARCH_BYTES)];
            if is_zero(bytes) {
                offset += (bytes.len() as u64).saturating_sub(FRAME_BYTES_MIN as u64 - 1).max(1);
                continue;
            }
            if let Some(last) = bytes.iter().rposition(|&byte| byte != 0) {
                beyond.bytes = beyond.bytes.max(offset + last as u64 + 1 - from);
            }
            let Some(ahead) = first_candidate(bytes) else {
                // The last bytes may be the beginning of a frame that this look did not take in.
                offset += (bytes.len() as u64).saturating_sub(FRAME_BYTES_MIN as u64 - 1).max(1);
                continue;
            };
            offset += ahead as u64;
            let place = header.first_lsn + (offset - SEGMENT_HEADER_BYTES as u64);
            match self.frame(header, place)? {
                Some(frame) => {
                    beyond.durable_lsn = beyond.durable_lsn.max(frame.head.durable_lsn);
                    offset += frame.len_bytes as u64;
                    beyond.bytes = beyond.bytes.max(offset - from);
                }
                None => offset += 1,
            }
        }
        // Mostly zeros, which nobody will look at again.
        self.file.wont_need(from, end.saturating_sub(from));
        Ok(beyond)
    }

    /// The LSN of the first whole frame at or beyond `lsn`; none when the segment holds none.
    pub(crate) fn find_frame(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<Option<Lsn>> {
        let end = self.end_offset(header);
        let mut offset = header.offset_of(lsn);
        while offset < end {
            let bytes = self.bytes(offset, SEARCH_BYTES)?;
            let bytes = &bytes[..bytes.len().min(SEARCH_BYTES)];
            let candidate = if is_zero(bytes) { None } else { first_candidate(bytes) };
            let Some(ahead) = candidate else {
                // The last bytes may be the beginning of a frame that this look did not take in.
                offset += (bytes.len() as u64).saturating_sub(FRAME_BYTES_MIN as u64 - 1).max(1);
                continue;
            };
            offset += ahead as u64;
            let place = header.first_lsn + (offset - SEGMENT_HEADER_BYTES as u64);
            match self.frame(header, place) {
                Ok(None) => offset += 1,
                Ok(Some(_)) => return Ok(Some(place)),
                Err(error) if error.kind() == ErrorKind::Corruption => offset += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The length of the file.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The bytes of the header, whatever they are.
    pub(crate) fn raw_header(&mut self) -> Result<&[u8]> {
        let bytes = self.bytes(0, SEGMENT_HEADER_BYTES)?;
        Ok(&bytes[..bytes.len().min(SEGMENT_HEADER_BYTES)])
    }

    /// True when there is nothing but zeros after the header: no frame was ever written.
    pub(crate) fn is_unused(&mut self) -> Result<bool> {
        let mut offset = SEGMENT_HEADER_BYTES as u64;
        while offset < self.len_bytes {
            let bytes = self.bytes(offset, READ_BYTES)?;
            if !is_zero(bytes) {
                return Ok(false);
            }
            offset += bytes.len() as u64;
        }
        Ok(true)
    }

    fn end_offset(&self, header: &SegmentHeader) -> u64 {
        self.len_bytes.min(header.offset_of(header.next_lsn()))
    }

    /// The bytes from `offset` on: `want` at least, but for the end of the file.
    fn bytes(&mut self, offset: u64, want: usize) -> Result<&[u8]> {
        let left = self.len_bytes.saturating_sub(offset);
        let want = left.min(want as u64);
        let window_end = self.window_offset + self.window.len() as u64;
        if offset < self.window_offset || offset + want > window_end {
            let take = left.min((READ_BYTES as u64).max(want)) as usize;
            self.window.resize(take, 0);
            self.window_offset = offset;
            if let Err(error) = self.file.read_exact_at(offset, &mut self.window) {
                self.window.clear();
                return Err(self.read_failed(offset, error));
            }
        }
        Ok(&self.window[(offset - self.window_offset).min(self.window.len() as u64) as usize..])
    }

    /// A read that fails is never the end of the log.
    fn read_failed(&self, offset: u64, error: io::Error) -> Error {
        Error::io("read", &self.path, error).context(format!("the log at offset {offset}"))
    }
}

/// True when all of `bytes` are zero. Compares blocks, since a search looks mostly at the unused rest of a segment.
fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|chunk| chunk == &ZEROS[..chunk.len()])
}

/// Where in `bytes` a frame could begin.
fn first_candidate(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at + FRAME_BYTES_MIN <= bytes.len() {
        at += bytes[at + frame::MAGIC_AT..].iter().position(|&byte| byte == frame::MAGIC)?;
        if at + FRAME_BYTES_MIN <= bytes.len() && frame::claimed_len(&bytes[at..]).is_some() {
            return Some(at);
        }
        at += 1;
    }
    None
}
