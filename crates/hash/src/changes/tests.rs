use folddb_host::Host;

use super::*;
use crate::checkpoint::CheckpointWriter;
use crate::index::{HashIndex, IndexOptions, Past};
use crate::slot::SizeClass;

fn slot(address: u64) -> Slot {
    Slot::new(address, SizeClass::of(100)).unwrap()
}

fn point(bits: u64) -> Point {
    Point::of_hash(bits.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// An index of 500 keys, and its checkpoint.
fn saved(dir: &Path) -> std::sync::Arc<Checkpoint> {
    let (files, path) = (&Host::real().files, dir.join("000007.index"));
    let index = HashIndex::new(IndexOptions::default());
    for n in 1..=500 {
        index.change(point(n), Change::Insert(slot(n)), n, Past::Forgotten).unwrap();
    }
    let mut writer = CheckpointWriter::new(files.create(&path).unwrap(), &path, FileNumber(7), 0x5a17);
    while index.save_step(&mut writer, 500).unwrap() {}
    writer.finish().unwrap();
    Checkpoint::open(&**files, &path, FileNumber(7)).unwrap()
}

fn changes() -> Vec<Made> {
    let made = |(n, seq): (u64, Seq)| {
        let change = match n % 3 {
            0 => Change::Remove(slot(n)),
            1 => Change::Replace { old: slot(n), new: slot(n + 1_000) },
            _ => Change::Insert(slot(n + 2_000)),
        };
        Made { point: point(n), change, seq }
    };
    (100..200).zip(501..).map(made).collect()
}

#[test]
fn changes_come_back_and_belong_to_one_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (files, path) = (&Host::real().files, dir.path().join("000008.index"));
    let checkpoint = saved(dir.path());
    let of = (checkpoint.number(), checkpoint.salt());
    let bytes = write_changes(files.create(&path).unwrap(), &path, FileNumber(8), of, &changes()).unwrap();
    assert_eq!(bytes, std::fs::metadata(&path).unwrap().len());
    assert!(bytes < changes_bytes(100) + 200, "{bytes} bytes");
    assert_eq!(load_changes(&**files, &path, FileNumber(8), &checkpoint).unwrap(), changes());
    assert!(load_changes(&**files, &path, FileNumber(9), &checkpoint).is_err(), "of another number");

    let other = dir.path().join("000009.index");
    let of = (FileNumber(6), checkpoint.salt());
    write_changes(files.create(&other).unwrap(), &other, FileNumber(9), of, &changes()).unwrap();
    let error = load_changes(&**files, &other, FileNumber(9), &checkpoint).unwrap_err();
    assert!(error.to_string().contains("what came after checkpoint 6"), "{error}");

    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut rotten = whole.clone();
        rotten[at] ^= 4;
        std::fs::write(&path, &rotten).unwrap();
        let error = load_changes(&**files, &path, FileNumber(8), &checkpoint).unwrap_err();
        assert!(error.to_string().contains("000008.index"), "{error}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(load_changes(&**files, &path, FileNumber(8), &checkpoint).is_err(), "cut at {at}");
    }
}

#[test]
fn an_index_that_takes_its_changes_is_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = saved(dir.path());
    let index = HashIndex::open(&checkpoint, IndexOptions::default());
    for made in changes() {
        assert!(index.apply(made.point, made.change, made.seq, Past::Forgotten).unwrap());
    }
    assert_eq!(
        (index.facts().loaded, index.facts().misfits),
        (0, 0),
        "they wait for shards that nobody asked for"
    );
    let of = |n: u64| {
        let mut slots = Vec::new();
        index.candidates(point(n), None, &mut slots).unwrap();
        slots.sort_unstable();
        slots
    };
    assert_eq!(of(99), [slot(99)]);
    assert_eq!(of(102), []);
    assert_eq!(of(103), [slot(1_103)]);
    assert_eq!(of(104), [slot(104), slot(2_104)]);
    assert_eq!(index.facts().misfits, 0);
}
