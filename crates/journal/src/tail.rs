//! The end of the log: the active segment, and the frames that are on their way into it.
//!
//! One lock guards it (see `journal.rs`); nothing here waits for a disk. A failed append changes
//! nothing.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use folddb_base::{FileNumber, Lsn, Seq};
use folddb_host::files::AppendSync;
use folddb_layout::frame::{self, FRAME_OVERHEAD_BYTES_MAX, FrameHead, FrameKind};
use folddb_layout::segment::SEGMENT_HEADER_BYTES;

use crate::segment_file::{Gone, OpenSegment};

/// If one large batch has made the buffer longer than this, it is freed, in bytes.
const BUFFER_KEPT_BYTES_MAX: usize = 4 << 20;

/// See the top of this file.
pub(crate) struct Tail {
    pub(crate) active: OpenSegment,
    /// Live segments before the active one, oldest first.
    pub(crate) sealed: VecDeque<SealedSegment>,
    /// Where the next frame goes.
    pub(crate) end_lsn: Lsn,
    pub(crate) next_seq: Seq,
    /// The durable LSN in the last frame.
    pub(crate) vouched_lsn: Lsn,
    /// Counts frames, so that background work detects idleness without a clock on the path of an
    /// append.
    pub(crate) frames: u64,
    pub(crate) is_closed: bool,
    /// Where the seal of a closed log ends.
    pub(crate) sealed_lsn: Option<Lsn>,
    prev_hash: u32,
    /// Frames that have not been written to the active segment yet. They end at `end_lsn`.
    buffer: Vec<u8>,
}

/// A segment that is complete.
pub(crate) struct SealedSegment {
    pub(crate) number: FileNumber,
    pub(crate) first_lsn: Lsn,
    /// The LSN at which the next segment begins.
    pub(crate) next_lsn: Lsn,
    /// Present as long as it has not been synced.
    pub(crate) unsynced: Option<Arc<dyn AppendSync>>,
}

impl Tail {
    pub(crate) fn new(active: OpenSegment, next_seq: Seq) -> Tail {
        let first_lsn = active.header.first_lsn;
        Tail {
            active,
            sealed: VecDeque::new(),
            end_lsn: first_lsn,
            next_seq,
            vouched_lsn: first_lsn,
            frames: 0,
            is_closed: false,
            sealed_lsn: None,
            prev_hash: 0,
            buffer: Vec::new(),
        }
    }

    /// True if the active segment has room for a frame with a payload of this length, and for a
    /// seal after it.
    #[inline]
    pub(crate) fn fits(&self, payload_bytes: usize) -> bool {
        let need = payload_bytes as u64 + 2 * FRAME_OVERHEAD_BYTES_MAX as u64;
        self.end_lsn + need <= self.active.header.next_lsn()
    }

    /// Adds a frame that `fits`, to the buffer. Writes the buffer if it is longer than
    /// `buffer_bytes_max`.
    #[inline]
    pub(crate) fn put(
        &mut self,
        kind: FrameKind,
        count: u32,
        payload: &[u8],
        durable_lsn: Lsn,
        time_ms: Option<u64>,
        buffer_bytes_max: usize,
    ) -> io::Result<()> {
        let lsn = self.end_lsn;
        let durable_lsn = durable_lsn.min(lsn);
        let head = FrameHead {
            kind,
            first_seq: self.next_seq,
            count,
            durable_lsn,
            prev_hash: self.prev_hash,
            time_ms,
        };
        let start = self.buffer.len();
        let hash = frame::put_frame(&mut self.buffer, self.active.header.salt, lsn, &head, payload);
        let len = self.buffer.len() - start;
        if self.buffer.len() > buffer_bytes_max
            && let Err(error) = self.write_buffer()
        {
            self.buffer.truncate(start);
            return Err(error);
        }
        self.prev_hash = hash;
        self.end_lsn = lsn + len as u64;
        self.next_seq += u64::from(count);
        self.vouched_lsn = durable_lsn;
        self.frames += 1;
        Ok(())
    }

    /// Writes the buffered frames to the kernel.
    #[inline]
    pub(crate) fn write_buffer(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.active.file.append(&self.buffer)?;
        self.buffer.clear();
        if self.buffer.capacity() > BUFFER_KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// The LSN at which the frames end that the kernel has.
    pub(crate) fn handed_on_lsn(&self) -> Lsn {
        let header_bytes = SEGMENT_HEADER_BYTES as u64;
        self.active.header.first_lsn + self.active.file.end().saturating_sub(header_bytes)
    }

    /// Closes the tail, and returns everything that holds files or memory. Later appends and syncs
    /// fail.
    pub(crate) fn let_go(&mut self) -> impl Sized + use<> {
        self.is_closed = true;
        let file = std::mem::replace(&mut self.active.file, Box::new(Gone));
        let syncer = std::mem::replace(&mut self.active.syncer, Arc::new(Gone));
        (file, syncer, std::mem::take(&mut self.sealed), std::mem::take(&mut self.buffer))
    }

    /// Continues in `next`, after the active segment was sealed.
    pub(crate) fn continue_in(&mut self, next: OpenSegment) {
        let old = std::mem::replace(&mut self.active, next);
        self.end_lsn = self.active.header.first_lsn;
        self.sealed.push_back(SealedSegment {
            number: old.header.number,
            first_lsn: old.header.first_lsn,
            next_lsn: old.header.next_lsn(),
            unsynced: Some(old.syncer),
        });
    }
}
