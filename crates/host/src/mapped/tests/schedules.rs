//! Appends over windows, and their preparation by another thread, under many schedules.

use super::*;
use crate::sync::{schedules, thread};

#[test]
fn schedules_of_appends_and_who_prepares_their_windows() {
    schedules(15, || {
        let len_bytes = 3 * WINDOW_BYTES;
        let Some((dir, file)) = preallocated(len_bytes) else { return };
        let mut append = MappedAppend::new(file, len_bytes, WINDOW_BYTES);
        let syncer = append.syncer();
        let preparer = thread::spawn(move || {
            for _ in 0..3 {
                syncer.prepare().unwrap();
            }
            syncer.sync().unwrap();
        });
        let pieces = [(WINDOW_BYTES - 1, 1), (2, 2), (WINDOW_BYTES, 3), (WINDOW_BYTES - 1, 4)];
        for (len, byte) in pieces {
            append.append(&vec![byte; len as usize]).unwrap();
        }
        preparer.join().unwrap();
        let content = content(&dir);
        let mut at = 0;
        for (len, byte) in pieces {
            let piece = &content[at..at + len as usize];
            assert!(piece.iter().all(|&found| found == byte), "{len} bytes from {at} on");
            at += len as usize;
        }
    });
}
