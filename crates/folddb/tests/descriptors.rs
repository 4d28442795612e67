//! A store keeps to its bound on open files, however many files it has. Alone in its process, since it counts
//! the descriptors of all of it.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use folddb::{Options, Rules, Store, Upkeep};

const OPEN_FILES_MAX: usize = 8;

/// Descriptors of this process, where the system tells; none elsewhere.
fn descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

#[test]
fn many_parts_need_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let options = || {
        let small = Options::default().upkeep(Upkeep::Manual).part_bytes(64 << 10).memory_bytes(4 << 20);
        small.open_files_max(OPEN_FILES_MAX)
    };
    let store = Store::create(dir.path().join("s.folddb"), options()).unwrap();
    let before = descriptors();
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    let mut batch = store.batch();
    for n in 0..400_000u64 {
        batch.set(&table, &n.wrapping_mul(0x9e37_79b9_7f4a_7c15), &n);
        if batch.len() == 1000 {
            batch.commit(folddb::Durability::Process).unwrap();
        }
    }
    store.flush().unwrap();
    store.optimize("t", |_| ControlFlow::Continue(())).unwrap();
    let parts: usize = store.table_stats("t").unwrap().runs.iter().map(|run| run.parts.len()).sum();
    assert!(parts > 4 * OPEN_FILES_MAX, "{parts} parts are many more than may be open");
    assert_eq!(table.scan().count().unwrap(), 400_000);
    for n in (0..400_000u64).step_by(997) {
        assert_eq!(table.get(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap(), Some(n));
    }
    if let (Some(before), Some(after)) = (before, descriptors()) {
        // The journal's segments and the manifest were open before, and may have been followed by one each.
        assert!(after <= before + OPEN_FILES_MAX + 4, "{before} descriptors became {after}");
    }
}
