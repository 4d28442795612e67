//! What is shown is read whole and never changes; a writer belongs to one arena.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn append(writer: &mut ArenaWriter, bytes: &[u8]) {
    writer.rest()[..bytes.len()].copy_from_slice(bytes);
    writer.advance(bytes.len());
}

#[test]
fn readers_see_whole_records_while_one_appends() {
    const RECORDS: usize = if cfg!(miri) { 200 } else { 20_000 };
    let (mut arena, mut writer) = Arena::with_room(RECORDS * 8);
    for round in 1..3u8 {
        let shared = Arc::new(std::mem::take(&mut arena));
        let told = Arc::new(AtomicUsize::new(0));
        let read = |shared: Arc<Arena>, told: Arc<AtomicUsize>| {
            move || {
                let mut last = 0;
                while last < RECORDS {
                    let count = told.load(Ordering::Acquire);
                    let bytes = shared.bytes();
                    assert!(bytes.len() >= count * 8, "what was shown before the effect that was seen");
                    assert!(bytes.chunks(8).all(|record| record == [round; 8]));
                    last = bytes.len() / 8;
                }
            }
        };
        let readers: Vec<_> =
            (0..2).map(|_| std::thread::spawn(read(Arc::clone(&shared), Arc::clone(&told)))).collect();
        for record in 0..RECORDS {
            append(&mut writer, &[round; 8]);
            if record % 3 == 0 || record == RECORDS - 1 {
                writer.show(&shared);
                told.store(record, Ordering::Release);
            }
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        arena = Arc::into_inner(shared).unwrap();
        assert!(arena.begin_anew().is_none(), "its writer is still there");
        drop(writer);
        writer = arena.begin_anew().unwrap();
        assert_eq!((arena.bytes(), writer.len(), arena.room()), (&[][..], 0, RECORDS * 8));
    }
}

#[test]
fn what_is_not_shown_is_not_seen() {
    let (arena, mut writer) = Arena::with_room(8);
    assert!(writer.is_empty());
    append(&mut writer, b"abc");
    assert_eq!((arena.bytes(), writer.len(), writer.rest().len()), (&b""[..], 3, 5));
    writer.show(&arena);
    let seen = arena.bytes();
    append(&mut writer, b"defgh");
    assert_eq!(seen, b"abc");
    writer.show(&arena);
    assert_eq!((seen, arena.bytes()), (&b"abc"[..], &b"abcdefgh"[..]));
    assert!(writer.rest().is_empty());
    assert_eq!(format!("{arena:?}, {writer:?}"), "Arena of 8 bytes, 8 shown, ArenaWriter after 8 of 8 bytes");
}

#[test]
#[should_panic(expected = "its own arena")]
fn a_writer_cannot_show_another_arena() {
    let ((_, writer), (other, _)) = (Arena::with_room(8), Arena::with_room(8));
    writer.show(&other);
}

#[test]
#[should_panic(expected = "more than the arena has room for")]
fn a_writer_cannot_pass_the_end() {
    let (_arena, mut writer) = Arena::with_room(8);
    writer.advance(9);
}
