//! Reads a segment from front to back through a window of memory, and searches it for frames.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, error};
use folddb_host::{Host, ReadFile};
use folddb_layout::frame::{self, FRAME_BYTES_MIN, FRAME_OVERHEAD_BYTES_MAX, Frame, FrameHead};
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

use crate::segment_file::segment_path;

/// Bytes read at a time. A frame that is longer is read whole.
const READ_BYTES: usize = 1 << 20;

/// Bytes that a search examines at a time.
const SEARCH_BYTES: usize = 64 << 10;

/// A search gives up when it has hashed more than this many times the length of the segment for
/// bytes that only look like frames. A torn batch of random bytes that fills a segment needs about
/// three times its length.
const WASTE_FACTOR: u64 = 8;

/// A search does not give up before it has hashed this many bytes.
const WASTE_BYTES_MIN: u64 = 16 << 20;

/// A segment's file, and a window of its bytes.
pub(crate) struct SegmentReader {
    pub(crate) path: PathBuf,
    file: Arc<dyn ReadFile>,
    len_bytes: u64,
    window: Vec<u8>,
    window_offset: u64,
    /// Bytes that searches have hashed and that were no frame.
    pub(crate) wasted_bytes: u64,
}

/// What is in a segment beyond the place where the walk over its frames ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Beyond {
    /// The highest LSN that a frame there vouches for.
    pub(crate) durable_lsn: Lsn,
    /// Bytes up to the last one that is not zero, of those that were examined.
    pub(crate) bytes: u64,
    /// True if the search gave up, because too many bytes look like frames and are none. A frame
    /// that it did not find may vouch for more.
    pub(crate) gave_up: bool,
}

impl SegmentReader {
    pub(crate) fn open(host: &Host, dir: &Path, number: FileNumber) -> Result<SegmentReader> {
        SegmentReader::open_at(host, segment_path(dir, number))
    }

    pub(crate) fn open_at(host: &Host, path: PathBuf) -> Result<SegmentReader> {
        let file = host.files.open(&path).map_err(|error| Error::io("open", &path, error))?;
        let len_bytes = file.len_bytes().map_err(|error| Error::io("read", &path, error))?;
        Ok(SegmentReader { path, file, len_bytes, window: Vec::new(), window_offset: 0, wasted_bytes: 0 })
    }

    /// From now on, reads only what is before `lsn`. What follows may be incomplete, so no byte of
    /// it is kept in the window.
    pub(crate) fn end_at(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<()> {
        let whole = self.file.len_bytes().map_err(|error| Error::io("read", &self.path, error))?;
        self.len_bytes = whole.min(header.offset_of(lsn.min(header.next_lsn())));
        let whole = self.len_bytes.saturating_sub(self.window_offset).min(self.window.len() as u64);
        self.window.truncate(whole as usize);
        Ok(())
    }

    /// The header; the inner error if it is not whole.
    pub(crate) fn header(&mut self, number: FileNumber) -> Result<Result<SegmentHeader, Malformed>> {
        let bytes = self.bytes(0, SEGMENT_HEADER_BYTES)?;
        Ok(SegmentHeader::decode(bytes, number))
    }

    /// The whole frame at `lsn`, if there is one.
    pub(crate) fn frame(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<Option<Frame<'_>>> {
        let offset = header.offset_of(lsn);
        let head = self.bytes(offset, FRAME_BYTES_MIN)?;
        let Some(len) = frame::claimed_len(head) else { return Ok(None) };
        if len as u64 > self.end_offset(header).saturating_sub(offset) {
            return Ok(None); // checked before any memory is allocated for it
        }
        self.bytes(offset, len)?;
        let start = (offset - self.window_offset) as usize;
        frame::decode_frame(&self.window[start..], header.salt, lsn)
            .map_err(|cause| error::corrupt(&self.path, offset, cause))
    }

    /// As [`SegmentReader::frame`], for a segment that another process appends to. A whole frame in
    /// the window is valid; if there is none, the window may be out of date, so the file is read
    /// again.
    pub(crate) fn frame_now(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<Option<Frame<'_>>> {
        if self.frame(header, lsn)?.is_none() && !self.look_again(header, lsn)? {
            return Ok(None);
        }
        self.frame(header, lsn)
    }

    /// Forgets what it has read, and reads the length of the file again.
    pub(crate) fn forget(&mut self) -> Result<()> {
        self.window.clear();
        self.len_bytes = self.file.len_bytes().map_err(|error| Error::io("read", &self.path, error))?;
        Ok(())
    }

    /// Does the same. True if a frame may now begin at `lsn`.
    fn look_again(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<bool> {
        self.forget()?;
        let offset = header.offset_of(lsn);
        if self.len_bytes.saturating_sub(offset) < FRAME_BYTES_MIN as u64 {
            return Ok(false);
        }
        // Reads a few bytes instead of a window, since this is called again and again while nothing
        // is written.
        let mut head = [0; FRAME_BYTES_MIN];
        let read = self.file.read_exact_at(offset, &mut head);
        read.map_err(|error| self.read_failed(offset, error))?;
        Ok(frame::claimed_len(&head).is_some())
    }

    /// Searches everything from `lsn` on for frames that vouch for more than `known_lsn`. Other
    /// frames are skipped unread, since they change no decision.
    pub(crate) fn search(&mut self, header: &SegmentHeader, lsn: Lsn, known_lsn: Lsn) -> Result<Beyond> {
        let (from, end) = (header.offset_of(lsn), self.end_offset(header));
        let mut written = Written { seen_to: from, end: from };
        let mut beyond = Beyond::default();
        let mut offset = from;
        let vouches = |head: &FrameHead| head.durable_lsn > known_lsn;
        while let Some(place) = self.candidate(header, offset, &mut written, &vouches)? {
            beyond.gave_up = self.wasted_bytes > self.waste_bytes_max();
            if beyond.gave_up {
                break;
            }
            offset = match self.whole_frame(header, place)? {
                Some((durable_lsn, len_bytes)) => {
                    beyond.durable_lsn = beyond.durable_lsn.max(durable_lsn);
                    written.end = written.end.max(place + len_bytes);
                    place + len_bytes
                }
                None => place + 1,
            };
        }
        beyond.bytes = written.end - from;
        // These bytes, mostly zeros, will not be read again.
        self.file.wont_need(from, end.saturating_sub(from));
        Ok(beyond)
    }

    /// The LSN of the first whole frame from `lsn` on; none if there is none, or if the search gave
    /// up before it found one.
    pub(crate) fn find_frame(&mut self, header: &SegmentHeader, lsn: Lsn) -> Result<Option<Lsn>> {
        let mut offset = header.offset_of(lsn);
        let mut written = Written { seen_to: u64::MAX, end: 0 };
        while let Some(place) = self.candidate(header, offset, &mut written, &|_| true)? {
            if self.wasted_bytes > self.waste_bytes_max() {
                return Ok(None);
            }
            if self.whole_frame(header, place)?.is_some() {
                return Ok(Some(lsn_at(header, place)));
            }
            offset = place + 1;
        }
        Ok(None)
    }

    /// The offset of the first place from `offset` on where the head of a frame seems to be, if
    /// that head `is_wanted`.
    fn candidate(
        &mut self,
        header: &SegmentHeader,
        mut offset: u64,
        written: &mut Written,
        is_wanted: &dyn Fn(&FrameHead) -> bool,
    ) -> Result<Option<u64>> {
        let end = self.end_offset(header);
        while offset < end {
            let left = end - offset;
            let look = self.bytes(offset, SEARCH_BYTES)?;
            let look = &look[..look.len().min(SEARCH_BYTES).min(usize::try_from(left).unwrap_or(usize::MAX))];
            if look.is_empty() {
                break;
            }
            written.note(offset, look);
            // A head that may be incomplete at the end of these bytes is left to the next step.
            let is_last = look.len() as u64 == left;
            let places = if is_last { look.len() } else { look.len() - (FRAME_OVERHEAD_BYTES_MAX - 1) };
            let claimed = |at: usize| {
                let place = offset + at as u64;
                frame::claimed_head(&look[at..], lsn_at(header, place))
                    .is_some_and(|(head, len)| len as u64 <= end - place && is_wanted(&head))
            };
            let filled = &look[..filled_len(look)]; // a zero is not the magic
            if let Some(at) = magics(filled).take_while(|&at| at < places).find(|&at| claimed(at)) {
                return Ok(Some(offset + at as u64));
            }
            offset += places as u64;
        }
        Ok(None)
    }

    /// Reads the frame at a place where one could be. Returns the LSN that it vouches for, and its
    /// length. None if it is no whole frame: then its bytes are added to `wasted_bytes`.
    fn whole_frame(&mut self, header: &SegmentHeader, place: u64) -> Result<Option<(Lsn, u64)>> {
        match self.frame(header, lsn_at(header, place)) {
            Ok(Some(frame)) => return Ok(Some((frame.head.durable_lsn, frame.len_bytes as u64))),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::Corruption => {}
            Err(error) => return Err(error),
        }
        let len = frame::claimed_len(self.bytes(place, FRAME_BYTES_MIN)?).unwrap_or(0);
        self.wasted_bytes += len as u64;
        Ok(None)
    }

    /// How many bytes may be hashed for what is no frame. Random values contain a few heads of long
    /// frames, which cost at most a few times the length of the segment. Values that are made to be
    /// full of them must not delay opening the store.
    fn waste_bytes_max(&self) -> u64 {
        WASTE_BYTES_MIN.max(self.len_bytes.saturating_mul(WASTE_FACTOR))
    }

    /// The length of the file.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The bytes of the header, unchecked.
    pub(crate) fn raw_header(&mut self) -> Result<&[u8]> {
        let bytes = self.bytes(0, SEGMENT_HEADER_BYTES)?;
        Ok(&bytes[..bytes.len().min(SEGMENT_HEADER_BYTES)])
    }

    /// True if all bytes after the header are zeros: no frame was ever written.
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

    /// The bytes from `offset` on: at least `want`, except at the end of the file.
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

    /// The error of a failed read, which is never the end of the log.
    fn read_failed(&self, offset: u64, error: io::Error) -> Error {
        Error::io("read", &self.path, error).context(format!("the log at offset {offset}"))
    }
}

/// Bytes that are compared with zeros at once.
const BLOCK_BYTES: usize = 4096;

/// True if all of `bytes` are zero. It compares blocks, since a search mostly reads the unused rest
/// of a segment.
fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    bytes.chunks(ZEROS.len()).all(|chunk| chunk == &ZEROS[..chunk.len()])
}

/// The number of bytes up to the last one that is not zero. It skips zeros in blocks.
fn filled_len(bytes: &[u8]) -> usize {
    let zeros: usize = bytes.rchunks(BLOCK_BYTES).take_while(|block| is_zero(block)).map(<[u8]>::len).sum();
    let left = &bytes[..bytes.len() - zeros];
    left.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

/// The places in `bytes` where the magic of a frame is at its offset.
fn magics(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let from_first = bytes.get(frame::MAGIC_AT..).unwrap_or_default();
    from_first.iter().enumerate().filter(|&(_, &byte)| byte == frame::MAGIC).map(|(at, _)| at)
}

/// The LSN at an offset.
fn lsn_at(header: &SegmentHeader, offset: u64) -> Lsn {
    header.first_lsn + (offset - SEGMENT_HEADER_BYTES as u64)
}

/// The end of the last byte that is not zero, of those that a search has seen.
struct Written {
    seen_to: u64,
    end: u64,
}

impl Written {
    /// Takes the bytes at `offset`; each byte is examined once.
    fn note(&mut self, offset: u64, look: &[u8]) {
        let known = self.seen_to.saturating_sub(offset).min(look.len() as u64) as usize;
        let filled = filled_len(&look[known..]);
        if filled > 0 {
            self.end = offset + (known + filled) as u64;
        }
        self.seen_to = self.seen_to.max(offset + look.len() as u64);
    }
}
