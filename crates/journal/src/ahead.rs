//! The segment after the active one, made before it is needed.
//!
//! Background work makes it; an append that rolls takes it, waits for background work where that is
//! just making it, or makes it itself. Creating a file, syncing it and its directory takes
//! milliseconds, which no append should wait for.

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result};
use folddb_host::sync::{Condvar, Mutex};

use crate::segment_file::{OpenSegment, SegmentMaker};

/// Holds at most one segment for the log to go on in.
pub(crate) struct Ahead {
    slot: Mutex<Slot>,
    changed: Condvar,
}

struct Slot {
    /// The segment to follow, and where the next begins.
    after: (FileNumber, Lsn),
    state: State,
}

enum State {
    Empty,
    Making,
    Ready(OpenSegment),
    /// The journal is closed: nothing follows.
    Over,
}

impl Ahead {
    pub(crate) fn new(active: &OpenSegment) -> Ahead {
        Ahead {
            slot: Mutex::new(Slot { after: place_after(active), state: State::Empty }),
            changed: Condvar::new(),
        }
    }

    /// Makes the next segment unless it is there, or somebody is about it.
    pub(crate) fn make(&self, maker: &SegmentMaker) -> Result<()> {
        let mut slot = self.slot.lock();
        if !matches!(slot.state, State::Empty) {
            return Ok(());
        }
        slot.state = State::Making;
        let (previous, first_lsn) = slot.after;
        drop(slot);
        let made = maker.make(Some(previous), first_lsn);
        let mut slot = self.slot.lock();
        let (state, outcome) = match made {
            Ok(segment) => (State::Ready(segment), Ok(())),
            Err(error) => (State::Empty, Err(error)),
        };
        slot.state = state;
        self.changed.notify_all();
        outcome
    }

    /// Sees to it that `take` will find a segment. Only the holder of the tail's lock calls it.
    pub(crate) fn ensure(&self, maker: &SegmentMaker) -> Result<()> {
        loop {
            let mut slot = self.slot.lock();
            match slot.state {
                State::Ready(_) => return Ok(()),
                State::Making => self.changed.wait(&mut slot),
                State::Over => return Err(Error::new(ErrorKind::Closed, "the journal is closed")),
                State::Empty => {
                    drop(slot);
                    self.make(maker)?;
                }
            }
        }
    }

    /// Takes the segment that is ready, if one is. Only the holder of the tail's lock calls it, to
    /// go on in it.
    pub(crate) fn take(&self) -> Option<OpenSegment> {
        let mut slot = self.slot.lock();
        match std::mem::replace(&mut slot.state, State::Empty) {
            State::Ready(segment) => {
                slot.after = place_after(&segment);
                Some(segment)
            }
            state => {
                slot.state = state;
                None
            }
        }
    }

    /// Ends it all, and returns a segment that is not needed any more.
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

fn place_after(segment: &OpenSegment) -> (FileNumber, Lsn) {
    (segment.header.number, segment.header.next_lsn())
}
