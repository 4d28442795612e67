//! A writer, a reader and a saver, under many schedules, on an index with shards that are not
//! loaded yet.

use folddb_host::sync::schedules;
use folddb_layout::hash_checkpoint::{CheckpointFooter, Directory, PointRange, put_piece};

use super::*;
use crate::slot::entry;

const CHANGES: u64 = 5;

/// A checkpoint of one key at seq 1, made without the locks of an index, because those work only
/// under the scheduler.
fn made(path: &Path, point: Point) {
    let (mut bytes, mut pieces) = (Vec::new(), Vec::new());
    for number in 0..1u64 << SECTOR_BITS {
        let range = PointRange { start: number << (POINT_BITS - SECTOR_BITS), depth: SECTOR_BITS };
        let key = [entry(point, slot(1))];
        let entries = if range.contains(point.bits()) { &key[..] } else { &[] };
        let offset = bytes.len() as u64;
        put_piece(&mut bytes, range, entries, NUMBER.0, offset);
        let (keys, len_bytes) = (entries.len() as u64, bytes.len() as u64 - offset);
        pieces.push(PieceEntry { range, keys, seq: 1, offset, len_bytes });
    }
    let directory_offset = bytes.len() as u64;
    Directory { pieces }.put(&mut bytes, NUMBER.0, directory_offset);
    let file_bytes = bytes.len() as u64 + 64;
    CheckpointFooter { number: NUMBER.0, file_bytes, directory_offset, salt: 0 }.put(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// The value of a key changes, while another thread loads, saves and adopts; what was acknowledged
/// is never lost.
#[test]
fn schedules_of_a_writer_a_reader_and_a_saver() {
    let (_keep, path) = place();
    let point = Point::from_bits(77);
    made(&path, point);
    schedules(1000, move || {
        let checkpoint = opened(&path).unwrap();
        let index = Arc::new(HashIndex::open(&checkpoint, IndexOptions::default()));
        // One that was replayed waits for its shard.
        index.replay(point, Change::Replace { old: slot(1), new: slot(2) }, 2).unwrap();
        let reader = Arc::clone(&index);
        let reader = thread::spawn(move || {
            let mut newest = 2;
            for _ in 0..3 {
                let slots = candidates(&reader, point, None);
                assert_eq!(slots.len(), 1);
                assert!(slots[0].address() >= newest, "{slots:?} after {newest}");
                newest = slots[0].address();
            }
        });
        let saver = Arc::clone(&index);
        let saver = thread::spawn(move || {
            let image = saver.image(point.bits(), 2, None, None).unwrap();
            assert_eq!(image.entries.len(), 1);
            assert_eq!(
                image.entries[0].slot,
                slot(image.seq).bits(),
                "it holds every change up to its seq, and none after"
            );
            saver.adopt(&checkpoint);
            saver.let_go(&checkpoint, 0);
        });
        for seq in 3..3 + CHANGES {
            let change = Change::Replace { old: slot(seq - 1), new: slot(seq) };
            assert!(index.change(point, change, seq, Past::Forgotten).unwrap());
        }
        reader.join().unwrap();
        saver.join().unwrap();
        assert_eq!(candidates(&index, point, None), [slot(2 + CHANGES)]);
        assert_eq!(index.facts().misfits, 0);
    });
}
