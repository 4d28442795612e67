//! The log that this rival brings: what is committed survives a store that is closed before it is
//! flushed, each fold once, and what is torn is not there.

use std::path::Path;

use super::*;
use crate::rival::Durability;

fn opened(dir: &Path, durability: Durability) -> Box<dyn Rival> {
    let setup = Setup { dir: dir.to_path_buf(), memory_bytes: 1 << 20, durability, meaning: Meaning::Append };
    open(&setup, None).expect("it opens")
}

fn append(store: &dyn Rival, operands: &[&[u8]]) {
    let mut writer = store.writer().expect("a writer");
    for operand in operands {
        writer.collect(Op::Fold { key: b"key", operand }).expect("collected");
    }
    writer.commit().expect("committed");
}

fn value(store: &dyn Rival) -> Vec<u8> {
    let (mut value, mut reader) = (Vec::new(), store.reader(Sight::Fresh).expect("a reader"));
    reader.get(b"key", &mut |found| value.extend_from_slice(found.unwrap_or_default())).expect("read");
    value
}

#[test]
fn what_is_committed_is_there_after_a_close_without_a_flush() {
    for durability in [Durability::Process, Durability::Sync] {
        let dir = tempfile::tempdir().expect("a directory");
        for (round, expected) in ["ab", "abab", "ababab"].iter().enumerate() {
            let store = opened(dir.path(), durability);
            append(&*store, &[b"a", b"b"]);
            assert_eq!(value(&*store), expected.as_bytes(), "round {round} of {durability:?}");
            if round == 1 {
                store.settle().expect("settled");
            }
            store.close().expect("closed");
        }
    }
}

#[test]
fn a_torn_record_is_not_there_and_the_ones_before_it_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = opened(dir.path(), Durability::Process);
    append(&*store, &[b"whole"]);
    append(&*store, &[b"torn", b"torn"]);
    store.close().expect("closed");
    let log = dir.path().join("log/00000000.log");
    let bytes = std::fs::read(&log).expect("the log");
    std::fs::write(&log, &bytes[..bytes.len() - 1]).expect("torn");
    let store = opened(dir.path(), Durability::Process);
    assert_eq!(value(&*store), b"whole");
    store.close().expect("closed");
}

#[test]
fn writers_that_are_synced_together_are_all_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = opened(dir.path(), Durability::Sync);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| append(&*store, &[b"x"])));
        }
    });
    store.close().expect("closed");
    let store = opened(dir.path(), Durability::Sync);
    assert_eq!(value(&*store).len(), 200);
    store.close().expect("closed");
}
