//! The cost of a table among thousands of others: the same as among ten. This test is alone in its
//! process, so that the heap is its own.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use folddb::{BackgroundWork, FeedOptions, Options, Rules, Store, Table};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MANY: usize = 5_000;

fn make(store: &Store, number: usize) -> Table<u64, u64> {
    store.table(&format!("table{number:06}"), Rules::sorted()).unwrap()
}

/// Bytes of the manifests.
fn manifest_bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let manifests = files.filter(|file| file.file_name().to_string_lossy().starts_with("MANIFEST"));
    manifests.map(|file| file.metadata().unwrap().len()).sum()
}

/// An operation on a table among the others: bytes of the heap that it needed at its peak, and
/// those that it left in the manifest.
fn cost(path: &Path, act: &mut dyn FnMut()) -> (usize, u64) {
    let (heap, manifest) = (HEAP.current_usage(), manifest_bytes(path));
    HEAP.reset_peak_usage();
    act();
    (HEAP.peak_usage().saturating_sub(heap), manifest_bytes(path).saturating_sub(manifest))
}

/// The costs of operations on one table among `others`.
fn costs(store: &Store, path: &Path, others: usize) -> Vec<(&'static str, usize, u64)> {
    let mut table = None;
    let mut costs = Vec::new();
    let mut note = |name, act: &mut dyn FnMut()| {
        let (heap, manifest) = cost(path, act);
        costs.push((name, heap, manifest));
    };
    note("create", &mut || table = Some(make(store, others)));
    let table = table.unwrap();
    note("write", &mut || _ = table.put(&1, &1).unwrap());
    note("flush", &mut || store.flush().unwrap());
    note("rest", &mut || store.settle().unwrap());
    note("snapshot", &mut || {
        let _snapshot = store.snapshot();
        table.put(&2, &2).unwrap();
    });
    note("grow old", &mut || {
        let _snapshot = store.snapshot();
        table.put(&2, &3).unwrap();
        while store.background_step().unwrap().is_some() {} // it gets files of its own
    });
    note("delete a range", &mut || _ = table.delete_range(&0, &2).unwrap());
    note("flush again", &mut || store.flush().unwrap());
    note("merge", &mut || {
        store.bytes_table(&format!("table{others:06}")).unwrap().compact().unwrap();
    });
    note("rest again", &mut || while store.background_step().unwrap().is_some() {});
    note("drop", &mut || store.drop_table(&format!("table{others:06}")).unwrap());
    costs
}

#[test]
fn an_edit_costs_the_same_with_thousands_of_tables_as_with_ten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let options = || {
        let options = Options::default().background(BackgroundWork::Manual).disk_reserve_bytes(0);
        options.tuning(|t| t.snapshot_files_after(Duration::ZERO))
    };
    let store = Store::create(&path, options()).unwrap();
    let feed = store.feed("all", FeedOptions::default()).unwrap(); // the store keeps records for it
    (0..10).for_each(|number| drop(make(&store, number)));
    costs(&store, &path, 10); // one-time costs are paid
    let few = costs(&store, &path, 10);
    let before = HEAP.current_usage();
    (10..MANY).for_each(|number| drop(make(&store, number)));
    let each = (HEAP.current_usage() - before) / (MANY - 10);
    assert!(each <= 6 << 10, "{each} bytes of memory for an idle table");
    // Every tenth has something, so that there are runs as well.
    for number in (0..MANY).step_by(10) {
        make(&store, number).put(&1, &1).unwrap();
    }
    store.flush().unwrap();
    store.settle().unwrap();
    let many = costs(&store, &path, MANY);
    for ((what, heap, manifest), (_, heap_many, manifest_many)) in few.iter().zip(&many) {
        assert!(
            *heap_many <= heap + (64 << 10),
            "{what}: {heap_many} bytes of heap beside many, {heap} beside ten"
        );
        assert!(
            *manifest_many <= manifest + 256,
            "{what}: {manifest_many} bytes of manifest, {manifest} beside ten"
        );
    }
    drop(feed);
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.tables().len(), MANY);
    assert_eq!(make(&store, 4_990).get(&1).unwrap(), Some(1));
    let error = store.bytes_table("none").unwrap_err();
    assert!(error.message().len() < 1_000, "an error names some tables, and not all: {error}");
}
