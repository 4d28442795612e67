//! The segment after the active one, made before it is needed.
//!
//! Background work makes it. An append that rolls takes it; if background work is making it at that
//! moment, the append waits; if there is none, the append makes it. Creating a file and syncing it
//! and its directory takes milliseconds, and no append should wait for that.

use std::time::Duration;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result};
use folddb_host::sync::{Condvar, Mutex};

use crate::growth::next_segment_bytes;
use crate::segment_file::{OpenSegment, SegmentMaker};

/// Holds at most one segment, in which the log will continue.
pub(crate) struct Ahead {
    slot: Mutex<Slot>,
    changed: Condvar,
}

struct Slot {
    /// The active segment, which the made segment follows.
    after: Place,
    state: State,
}

/// The facts about the active segment that the next depends on.
#[derive(Clone, Copy)]
struct Place {
    number: FileNumber,
    /// Length of its file.
    len_bytes: u64,
    /// The LSN at which the next segment begins.
    next_lsn: Lsn,
    /// When it became active, by the host's monotonic clock.
    since: Duration,
}

enum State {
    Empty,
    Making,
    Ready(OpenSegment),
    /// The journal is closed: no segment is made any more.
    Over,
}

impl Ahead {
    pub(crate) fn new(active: &OpenSegment, now: Duration) -> Ahead {
        Ahead {
            slot: Mutex::new(Slot { after: place_of(active, now), state: State::Empty }),
            changed: Condvar::new(),
        }
    }

    /// Makes the next segment, unless it exists or is being made. It has room for a frame of this
    /// many bytes.
    pub(crate) fn make(&self, maker: &SegmentMaker, frame_bytes: u64) -> Result<()> {
        let mut slot = self.slot.lock();
        if !matches!(slot.state, State::Empty) {
            return Ok(());
        }
        slot.state = State::Making;
        let after = slot.after;
        drop(slot);
        let took = maker.host.clock.monotonic().saturating_sub(after.since);
        let len_bytes = next_segment_bytes(after.len_bytes, took, &maker.options);
        let made = maker.make(Some(after.number), after.next_lsn, len_bytes, frame_bytes);
        let mut slot = self.slot.lock();
        let (state, outcome) = match made {
            Ok(segment) => (State::Ready(segment), Ok(())),
            Err(error) => (State::Empty, Err(error)),
        };
        slot.state = state;
        self.changed.notify_all();
        outcome
    }

    /// Ensures that [`Ahead::take`] finds a segment. If this makes the segment, it has room for a
    /// frame of this many bytes. Only the holder of the tail's lock calls it.
    pub(crate) fn ensure(&self, maker: &SegmentMaker, frame_bytes: u64) -> Result<()> {
        loop {
            let mut slot = self.slot.lock();
            match slot.state {
                State::Ready(_) => return Ok(()),
                State::Making => self.changed.wait(&mut slot),
                State::Over => return Err(Error::new(ErrorKind::Closed, "the journal is closed")),
                State::Empty => {
                    drop(slot);
                    self.make(maker, frame_bytes)?;
                }
            }
        }
    }

    /// Takes the segment that is ready, if there is one, to continue in it. Only the holder of the
    /// tail's lock calls it.
    pub(crate) fn take(&self, now: Duration) -> Option<OpenSegment> {
        let mut slot = self.slot.lock();
        match std::mem::replace(&mut slot.state, State::Empty) {
            State::Ready(segment) => {
                slot.after = place_of(&segment, now);
                Some(segment)
            }
            state => {
                slot.state = state;
                None
            }
        }
    }

    /// Makes no more segments, and returns the segment that is ready, if there is one: it is no
    /// longer needed.
    pub(crate) fn end(&self) -> Option<OpenSegment> {
        let mut slot = self.slot.lock();
        while matches!(slot.state, State::Making) {
            self.changed.wait(&mut slot);
        }
        match std::mem::replace(&mut slot.state, State::Over) {
            State::Ready(segment) => Some(segment),
            _ => None,
        }
    }
}

fn place_of(segment: &OpenSegment, since: Duration) -> Place {
    let header = &segment.header;
    let next_lsn = header.next_lsn();
    Place { number: header.number, len_bytes: header.offset_of(next_lsn), next_lsn, since }
}
