//! An arena: a buffer that many read while one appends to it, without a lock or a copy.
//!
//! ```text
//!   cells   | bytes that readers see | bytes that only the writer has | room |
//!           0                      shown                             len
//! ```
//!
//! The bytes below `shown` never change, and only those are handed to readers. The writer changes
//! only what is above, and then stores a higher `shown` with a release. There is one writer: it is
//! made together with its arena and cannot be cloned; and an arena that is begun anew is held by
//! nobody else.
//!
//! One of the modules with `unsafe`: a compiler cannot see that the two parts of the buffer are
//! apart. Under Miri: `.ci/races miri`.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// What readers have of an arena. See the module.
#[derive(Default)]
pub struct Arena {
    cells: Arc<[UnsafeCell<u8>]>,
    /// Not above the length of the cells.
    shown: AtomicUsize,
}

/// The only writer of an arena.
pub struct ArenaWriter {
    cells: Arc<[UnsafeCell<u8>]>,
    /// Not below `shown`, not above the length of the cells.
    len: usize,
}

// SAFETY: threads share the cells as described in the module: what one of them may read, no other
// writes. Tested by `readers_see_whole_records_while_one_appends`.
#[allow(unsafe_code)]
unsafe impl Send for Arena {}
// SAFETY: as above; a shared arena hands out only what is shown. Tested by
// `readers_see_whole_records_while_one_appends`.
#[allow(unsafe_code)]
unsafe impl Sync for Arena {}
// SAFETY: as above; a writer is used by one thread at a time, since what writes needs `&mut`.
// Tested by `readers_see_whole_records_while_one_appends`.
#[allow(unsafe_code)]
unsafe impl Send for ArenaWriter {}

impl Arena {
    /// An empty arena with room for this many bytes, and its writer.
    pub fn with_room(bytes: usize) -> (Arena, ArenaWriter) {
        let cells: Arc<[UnsafeCell<u8>]> = (0..bytes).map(|_| UnsafeCell::new(0)).collect();
        let writer = ArenaWriter { cells: Arc::clone(&cells), len: 0 };
        (Arena { cells, shown: AtomicUsize::new(0) }, writer)
    }

    /// What is shown. A reader that has seen an effect of its writer sees what was shown before.
    #[inline]
    #[allow(unsafe_code)]
    pub fn bytes(&self) -> &[u8] {
        let shown = self.shown.load(Ordering::Acquire);
        // SAFETY: these bytes are within the cells, were written before `shown` was stored, and are
        // not written again while `self` is borrowed: the writer writes above `len`, which is not
        // below `shown`, and to begin anew needs `&mut Arena`. Tested by
        // `readers_see_whole_records_while_one_appends`.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(self.cells.as_ptr()), shown) }
    }

    /// Bytes that it has room for, used or not.
    #[inline]
    pub fn room(&self) -> usize {
        self.cells.len()
    }

    /// Forgets all bytes, and returns a new writer; none if the previous writer is still there.
    pub fn begin_anew(&mut self) -> Option<ArenaWriter> {
        Arc::get_mut(&mut self.cells)?; // neither a writer, nor a reader of what is borrowed from `self`
        self.shown.store(0, Ordering::Relaxed);
        Some(ArenaWriter { cells: Arc::clone(&self.cells), len: 0 })
    }
}

impl ArenaWriter {
    /// Bytes that are written, shown or not.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing is written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The room after what is written: bytes to be filled, before [`ArenaWriter::advance`] makes
    /// them part of it.
    #[inline]
    #[allow(unsafe_code)]
    pub fn rest(&mut self) -> &mut [u8] {
        let rest = &self.cells[self.len..];
        // SAFETY: nobody else has these bytes: readers have those below `shown`, which is not above
        // `len`, and there is one writer, which is borrowed. Tested by
        // `readers_see_whole_records_while_one_appends`.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(rest.as_ptr()), rest.len()) }
    }

    /// Makes the first `bytes` of the rest part of what is written.
    ///
    /// # Panics
    /// If the rest has less.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.cells.len() - self.len, "{bytes} bytes are more than the arena has room for");
        self.len += bytes;
    }

    /// Lets the readers of `arena` see all that is written.
    ///
    /// # Panics
    /// If `arena` is not the one that this writes.
    #[inline]
    pub fn show(&self, arena: &Arena) {
        assert!(std::ptr::eq(&*self.cells, &*arena.cells), "a writer shows what is in its own arena");
        arena.shown.store(self.len, Ordering::Release);
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena of {} bytes, {} shown", self.room(), self.bytes().len())
    }
}

impl fmt::Debug for ArenaWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArenaWriter after {} of {} bytes", self.len, self.cells.len())
    }
}

#[cfg(test)]
#[path = "arena/tests.rs"]
mod tests;
