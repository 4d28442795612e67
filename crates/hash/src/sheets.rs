//! Sheets: pieces of memory of one size, which shards consist of.
//!
//! Shards grow and are split all the time, from one length to another. If each shard were one piece
//! of memory, a freed piece would fit no other shard: an allocator then held up to a quarter more
//! memory than was used. Pieces of one size always fit.
//!
//! If the index is locked in memory, free sheets are kept, locked, for the next shard: the system
//! locks whole pages, and a sheet could not be unlocked without its neighbors. All are freed with
//! the index.

use folddb_host::resident::Resident;
use folddb_host::sync::Mutex;

use crate::line::{LINE_SLOTS, Line};

/// Lines of a sheet: four kilobytes of them.
pub(crate) const SHEET_LINES: usize = 64;

/// Slots of a sheet.
pub(crate) const SHEET_SLOTS: usize = SHEET_LINES * LINE_SLOTS;

/// See the top of this file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sheet([Line; SHEET_LINES]);

impl Sheet {
    const EMPTY: Sheet = Sheet([Line::EMPTY; SHEET_LINES]);

    #[inline]
    pub(crate) fn line(&self, number: usize) -> &Line {
        &self.0[number]
    }

    #[inline]
    pub(crate) fn line_mut(&mut self, number: usize) -> &mut Line {
        &mut self.0[number]
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.0
    }
}

/// Where the shards of an index get their sheets, and return them.
#[derive(Debug)]
pub(crate) struct Sheets {
    wants_lock: bool,
    /// Locked, and free at present.
    free: Mutex<Vec<Resident<Sheet>>>,
}

impl Sheets {
    /// A source of sheets, locked in memory or not.
    pub(crate) fn new(wants_lock: bool) -> Sheets {
        Sheets { wants_lock, free: Mutex::default() }
    }

    /// An empty sheet.
    pub(crate) fn take(&self) -> Resident<Sheet> {
        if self.wants_lock
            && let Some(mut sheet) = self.free.lock().pop()
        {
            *sheet = Sheet::EMPTY;
            return sheet;
        }
        Resident::new(Sheet::EMPTY, self.wants_lock)
    }

    /// Takes back a sheet that is no longer used.
    pub(crate) fn give_back(&self, sheet: Resident<Sheet>) {
        if sheet.is_locked() {
            self.free.lock().push(sheet);
        }
    }

    /// The memory of the sheets that are free, in bytes.
    pub(crate) fn free_bytes(&self) -> usize {
        self.free.lock().len() * size_of::<Sheet>()
    }
}
