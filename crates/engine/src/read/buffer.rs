//! The buffer into which a thread reads a record of the value log, kept from one read to the next.

use std::cell::RefCell;

thread_local! {
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
