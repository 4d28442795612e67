//! A large merge in slices: where its keys are cut, and whose turn it is. Pure.
//!
//! A slice is a range of the keys of a merge, of about as many bytes as make one part. Several
//! threads merge slices at the same time, each on its own; their outputs are installed in the order
//! of their keys, so what is installed is always the front of the merge:
//!
//! ```text
//!   keys      a ........ f ........ m ........ s ........ z      borders f, m, s
//!   slices    |    0     |    1     |    2     |    3     |
//!             installed   running    written    not begun
//!                         (thread 1) (waits for slice 1)
//! ```
//!
//! [`cut`] finds the borders. A border is a key, and belongs to the slice that begins with it: all
//! records of a key, whatever their seqs, are in one slice. [`Turns`] counts who does what. A slice
//! that fails stops those behind it, since none of them may be installed before it.

use std::collections::BTreeMap;
use std::fmt;

use folddb_base::{counted, size_text};
use folddb_rules::KeyOrder;

/// A place at which a merge may be cut: a key, and about how many bytes of the inputs are between
/// it and the place before it in the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The key. No record needs to have it.
    pub key: &'a [u8],
    /// About how many bytes.
    pub bytes: u64,
}

/// The borders of slices of about `slice_bytes` each: ascending, without repetition. None if there
/// is less than two slices' worth.
pub fn cut(order: &KeyOrder, mut marks: Vec<Mark<'_>>, slice_bytes: u64) -> Borders {
    marks.sort_by(|a, b| order.compare(a.key, b.key));
    let mut left: u64 = marks.iter().map(|mark| mark.bytes).sum();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let (all, mut gathered) = (left, 0);
    for mark in &marks {
        gathered += mark.bytes;
        left -= mark.bytes;
        // What is left must be worth a slice of its own.
        if gathered < slice_bytes || left < slice_bytes / 2 || left == 0 {
            continue;
        }
        if keys.last().is_none_or(|last| order.compare(last, mark.key).is_lt()) {
            keys.push(mark.key.to_vec());
            gathered = 0;
        }
    }
    Borders { bytes: all, keys }
}

/// Where a merge is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Borders {
    /// About how many bytes all slices have together.
    pub bytes: u64,
    /// The first keys of all slices but the first.
    pub keys: Vec<Vec<u8>>,
}

impl Borders {
    /// The number of slices.
    pub fn slices(&self) -> usize {
        self.keys.len() + 1
    }

    /// The first key of a slice; none for the first slice, which has no lower bound.
    pub fn low(&self, slice: usize) -> Option<&[u8]> {
        self.keys.get(slice.checked_sub(1)?).map(Vec::as_slice)
    }

    /// The first key after a slice; none for the last slice, which has no upper bound.
    pub fn high(&self, slice: usize) -> Option<&[u8]> {
        self.keys.get(slice).map(Vec::as_slice)
    }
}

/// `4 slices of about 28.0 MiB`
impl fmt::Display for Borders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slices = self.slices() as u64;
        write!(f, "{} of about {}", counted(slices, "slice"), size_text(self.bytes / slices))
    }
}

/// Which slices of a merge are running, which are written and wait to be installed.
#[derive(Debug)]
pub struct Turns<T> {
    slices: usize,
    begun: usize,
    running: usize,
    written: BTreeMap<usize, T>,
    installed: usize,
    is_stopped: bool,
}

impl<T> Turns<T> {
    /// Of a merge of this many slices, none of which has begun.
    pub fn of(slices: usize) -> Turns<T> {
        Turns { slices, begun: 0, running: 0, written: BTreeMap::new(), installed: 0, is_stopped: false }
    }

    /// Whether another slice may begin: at most this many run at once, since each takes memory, and
    /// at most one more is begun and not installed, since each takes space.
    pub fn may_begin(&self, threads: usize) -> bool {
        let threads = threads.max(1);
        !self.is_stopped
            && self.begun < self.slices
            && self.running < threads
            && self.begun - self.installed <= threads
    }

    /// Begins the next slice, if one may.
    pub fn begin(&mut self, threads: usize) -> Option<usize> {
        let slice = self.may_begin(threads).then_some(self.begun)?;
        self.begun += 1;
        self.running += 1;
        Some(slice)
    }

    /// A running slice is written. It still runs, until [`Turns::leave`]. Returns the output if it
    /// will not be installed.
    pub fn write(&mut self, slice: usize, output: T) -> Option<T> {
        if self.is_stopped {
            return Some(output);
        }
        self.written.insert(slice, output)
    }

    /// The next slice to install, if it is written. To be installed before anything else is asked
    /// for.
    pub fn take_next(&mut self) -> Option<(usize, T)> {
        if self.is_stopped {
            return None;
        }
        let output = self.written.remove(&self.installed)?;
        Some((self.installed, output))
    }

    /// The slice that was taken last is installed.
    pub fn note_installed(&mut self) {
        self.installed += 1;
    }

    /// A slice no longer runs.
    pub fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// No slice begins or is installed from now on. Returns what was written and not installed.
    pub fn stop(&mut self) -> Vec<T> {
        self.is_stopped = true;
        std::mem::take(&mut self.written).into_values().collect()
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether all slices are installed.
    pub fn is_complete(&self) -> bool {
        self.installed == self.slices
    }

    /// Whether nothing runs and nothing will.
    pub fn is_over(&self) -> bool {
        self.running == 0 && (self.is_stopped || self.is_complete())
    }
}

#[cfg(test)]
mod tests;
