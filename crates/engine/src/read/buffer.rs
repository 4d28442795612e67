//! The buffers of a thread, kept from one read to the next: for a record of the value log, and for
//! the slots that an index of a hashed table finds.

use std::cell::{Cell, RefCell};

use folddb_hash::Slot;

thread_local! {
    /// Slots of the last search of an index.
    static SLOTS: Cell<Vec<Slot>> = const { Cell::new(Vec::new()) };

    /// The last record that was read from the value log.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer over this length is not kept for the next value.
const RECORD_KEPT_BYTES_MAX: usize = 1 << 20;

/// Lends the buffer for a record of the value log; a nested call gets another one.
pub(crate) fn with_record<R>(read: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    RECORD.with(|record| {
        let mut spare = Vec::new();
        let mut borrowed = record.try_borrow_mut();
        let record = borrowed.as_deref_mut().unwrap_or(&mut spare);
        let taken = read(record);
        if record.capacity() > RECORD_KEPT_BYTES_MAX {
            *record = Vec::new();
        }
        taken
    })
}

/// Lends an empty buffer for slots; a nested call gets another one.
#[inline]
pub(crate) fn with_slots<R>(search: impl FnOnce(&mut Vec<Slot>) -> R) -> R {
    let mut slots = SLOTS.take();
    slots.clear();
    let found = search(&mut slots);
    SLOTS.set(slots);
    found
}
