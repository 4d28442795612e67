use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb_base::TableId;
use folddb_base::pointer::{Pointer, value_hash};

use super::*;
use crate::segment::read_value;
use crate::world::{Fail, World};

const TABLE: TableId = TableId(3);

fn value_log(world: &World, segment_bytes: u64) -> ValueLog {
    let next = AtomicU64::new(10);
    let numbers: NumberSource = Arc::new(move || FileNumber(next.fetch_add(1, Ordering::Relaxed)));
    let options = ValueOptions { segment_bytes_max: segment_bytes, append_mode: AppendMode::Written };
    ValueLog::new(&world.host(), Path::new("dir"), options, numbers)
}

fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    values::put_record(&mut out, TABLE, key, value);
    out
}

/// Appends, and makes room as the owner of the value log does.
fn put(tail: &ValueLog, key: &[u8], value: &[u8]) -> ValuePlace {
    let record = record(key, value);
    loop {
        match tail.append(&record).unwrap() {
            Some(place) => return place,
            None => tail.adopt(tail.make(record.len() as u64, 0).unwrap(), record.len() as u64),
        }
    }
}

fn read(world: &World, place: ValuePlace, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
    let path = values_path(Path::new("dir"), FileNumber(u64::from(place.segment)));
    let file = world.host().files.open(&path).unwrap();
    let pointer =
        Pointer { place, time_ms: 0, hash: value_hash(key, value), len: value.len() as u64, head: &[] };
    let mut record = Vec::new();
    let len = file.len_bytes().unwrap();
    read_value((&*file, len), &path, (TABLE, key), &pointer, &mut record).map(<[u8]>::to_vec)
}

#[test]
fn values_are_read_back_from_where_they_were_put_over_several_segments() {
    let world = World::default();
    let tail = value_log(&world, 16 << 10);
    let values: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; 3000 + usize::from(n)]).collect();
    let places: Vec<ValuePlace> = values.iter().map(|value| put(&tail, b"key", value)).collect();
    for (place, value) in places.iter().zip(&values) {
        assert_eq!(read(&world, *place, b"key", value).unwrap(), *value);
        assert!(read(&world, *place, b"kez", value).is_err(), "another key's");
    }
    assert!(places.first().unwrap().segment < places.last().unwrap().segment);
    tail.sync().unwrap();
    let sealed = tail.take_sealed();
    assert!(sealed.len() >= 4 && tail.take_sealed().is_empty(), "each is named once");
    let (ends, unused) = tail.close().unwrap();
    assert_eq!((ends.len(), unused.len()), (1, 0));
    assert_eq!(tail.append(&record(b"k", b"v")).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_record_longer_than_a_segment_gets_one_of_its_own() {
    let world = World::default();
    let tail = value_log(&world, 16 << 10);
    let first = put(&tail, b"key", &[1; 100]);
    let long = vec![7; 100_000];
    let place = put(&tail, b"key", &long);
    assert_ne!(first.segment, place.segment);
    assert_eq!(read(&world, place, b"key", &long).unwrap(), long);
}

#[test]
fn what_was_synced_survives_a_power_cut_and_a_cut_segment_is_distinguished_from_a_whole_one() {
    let world = World::default();
    let tail = value_log(&world, 16 << 10);
    let (a, b) = (vec![1; 3000], vec![2; 3000]);
    let first = put(&tail, b"a", &a);
    assert!(tail.unsynced_bytes() > 0);
    tail.sync().unwrap();
    assert_eq!(tail.unsynced_bytes(), 0);
    let second = put(&tail, b"b", &b);
    let after = world.after_power_cut(&mut || false);
    assert_eq!(read(&after, first, b"a", &a).unwrap(), a);
    let lost = read(&after, second, b"b", &b).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Corruption, "{lost}");
    assert!(lost.message().contains("offset"), "{lost}");
}

#[test]
fn a_failed_sync_poisons_for_good_and_a_full_disk_does_not() {
    let world = World::default();
    let tail = value_log(&world, 16 << 10);
    put(&tail, b"a", b"value");
    world.fail(Some(Fail::Sync));
    assert_eq!(tail.sync().unwrap_err().kind(), ErrorKind::Poisoned);
    world.fail(None);
    assert_eq!(tail.append(&record(b"k", b"v")).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(tail.sync().unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn the_next_segment_is_wanted_when_one_is_half_full_and_held_until_needed() {
    let world = World::default();
    let tail = value_log(&world, 16 << 10);
    put(&tail, b"a", &[1; 1000]);
    assert!(!tail.wants_next());
    put(&tail, b"b", &[1; 6000]);
    assert!(tail.wants_next());
    tail.adopt(tail.make(0, 0).unwrap(), 0);
    assert!(!tail.wants_next());
    let here = put(&tail, b"c", &[1; 1000]);
    let there = put(&tail, b"d", &[1; 6000]);
    assert_eq!(there.segment, here.segment + 1);
}

#[test]
fn segments_begin_small_and_grow_with_what_the_value_log_holds() {
    const MIB: u64 = 1 << 20;
    assert_eq!(
        [0, 1, MIB / 2, MIB, 2 * MIB, 3 * MIB].map(|held| next_segment_bytes(held, 256 * MIB) >> 10),
        [256, 256, 512, 1024, 2048, 2048]
    );
    assert_eq!(
        [64, 65, 600, 4000, 5000].map(|held| next_segment_bytes(held * MIB, 256 * MIB) / MIB),
        [4, 4, 32, 128, 256]
    );
    assert_eq!((next_segment_bytes(0, 8192), next_segment_bytes(u64::MAX, 4 * MIB)), (8192, 4 * MIB));
    let (mut held, mut segments, mut overhead_max) = (0, 0, 0);
    while held < 8 << 30 {
        let next = next_segment_bytes(held, 256 * MIB);
        overhead_max = overhead_max.max(if held < 64 * MIB { 0 } else { next * 100 / held });
        (held, segments) = (held + next, segments + 1);
    }
    assert!(segments < 200 && overhead_max <= 6, "{segments} segments, {overhead_max} % ahead");
}

#[test]
fn open_segments_that_are_much_too_long_are_given_up() {
    const MIB: u64 = 1 << 20;
    let world = World::default();
    let tail = value_log(&world, 64 * MIB);
    assert!(tail.shed(0).is_none(), "there is none");
    tail.adopt(tail.make(0, 400 * MIB).unwrap(), 0);
    tail.adopt(tail.make(0, 400 * MIB).unwrap(), 0);
    assert!(tail.shed(400 * MIB).is_none() && tail.shed(160 * MIB).is_none());
    let place = put(&tail, b"key", b"a value");
    let ready = tail.shed(10 * MIB).expect("16 MiB are too much for a value log of 10");
    assert_ne!(ready.number(), FileNumber(u64::from(place.segment)));
    tail.unmake(ready);
    assert!(tail.shed(10 * MIB).is_none());
    tail.sync().unwrap();
    let sealed = tail.take_sealed();
    assert_eq!(sealed.iter().map(|end| end.number.0 as u32).collect::<Vec<_>>(), [place.segment]);
    assert_eq!(read(&world, place, b"key", b"a value").unwrap(), b"a value");
    let next = put(&tail, b"key", b"another");
    assert_ne!(next.segment, place.segment);
}
