use folddb_host::sync::atomic::Ordering;

use crate::BackgroundWork;
use crate::Options;
use crate::Rules;
use crate::Store;
use folddb_engine::background::merge;
use folddb_engine::state::pressure;

/// A store with runs of one table, all of tier 0 and none merged.
fn store_with_runs(dir: &std::path::Path, runs: u64) -> Store {
    let options = Options::default().background(BackgroundWork::Manual).tuning(|t| t.merge_factor(2));
    let store = Store::create(dir.join("s.folddb"), options).unwrap();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    for _ in 0..runs {
        for key in 0..4000u64 {
            table.put(&key, &vec![7; 100]).unwrap();
        }
        store.flush().unwrap();
    }
    store
}

/// Rates of merges are bytes taken in a second: debt in bytes of files would be too small by what
/// blocks save.
#[test]
fn debt_is_counted_in_what_merges_take_in() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_with_runs(dir.path(), 4);
    let overdue_bytes = store.engine().debt.overdue_bytes.load(Ordering::Relaxed);
    let stats = store.bytes_table("t").unwrap().stats().unwrap();
    let file_bytes: u64 = stats.runs.iter().map(|run| run.bytes()).sum();
    let taken_in = std::cell::Cell::new(0);
    store
        .bytes_table("t")
        .unwrap()
        .compact_with(|progress| {
            taken_in.set(progress.bytes_done);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(overdue_bytes, taken_in.get() / 2, "two of four runs, whose files are {file_bytes} bytes");
    assert_ne!(file_bytes, taken_in.get());
}

#[test]
fn runs_beyond_the_merge_factor_and_tiers_count_and_what_is_compacted_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_with_runs(dir.path(), 7);
    let debt = || pressure::debt_now(store.engine());
    assert_eq!((debt().crowding, debt().merge_amplification), (3.5, 0.0));
    let mut seen = None;
    let mut step = |_| {
        merge::note_overdue(store.background());
        seen.get_or_insert(debt().crowding);
        std::ops::ControlFlow::Continue(())
    };
    store.bytes_table("t").unwrap().compact_with(&mut step).unwrap();
    assert_eq!(seen, Some(0.0));
    assert_eq!((debt().crowding, debt().merge_amplification), (0.5, 1.0));
}
