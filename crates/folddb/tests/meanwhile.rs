//! An operation in the middle of another: a table is dropped during a flush or a merge, the store
//! is closed during one, two threads create a table at once. Each test failed once.
#![allow(clippy::unwrap_used)]

mod watched;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use folddb::{BackgroundJob, BackgroundWork, ErrorKind, Options, Rules, Store};
use folddb_host::Host;

type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A world in which something happens, once, when a part is created.
fn world() -> (Host, Hook) {
    let hook = Hook::default();
    let meanwhile = Arc::clone(&hook);
    let host = watched::host(move || {
        let hook = meanwhile.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        Ok(())
    });
    (host, hook)
}

fn counters() -> Rules<u64, u64> {
    Rules::sorted::<u64, u64>().fold("sum:u64")
}

/// A store whose background work is done by hand, and the hook that runs when its next part is
/// created.
fn fresh() -> (tempfile::TempDir, Store, Hook) {
    let (dir, (host, hook)) = (tempfile::tempdir().unwrap(), world());
    let options = Options::default().background(BackgroundWork::Manual).tuning(|t| t.merge_factor(2));
    let options = options.host(host);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    (dir, store, hook)
}

fn set(hook: &Hook, what: impl FnOnce() + Send + 'static) {
    *hook.lock().unwrap() = Some(Box::new(what));
}

fn dropping(store: &Store, name: &'static str) -> impl FnOnce() + Send + 'static {
    let store = store.clone();
    move || store.drop_table(name).unwrap()
}

/// Writes this many runs of this many records.
fn write_runs(store: &Store, table: &str, runs: u64, records: u64) {
    let table = store.table(table, counters()).unwrap();
    for _ in 0..runs {
        for n in 0..records {
            table.fold(&n, &1).unwrap();
        }
        store.flush().unwrap();
    }
}

fn parts_of(store: &Path) -> usize {
    let names = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "part")).count()
}

/// What a running merge has moved into its first parts is not read in its inputs as well.
#[test]
fn sums_are_read_once_while_a_merge_is_half_done() {
    const KEYS: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(BackgroundWork::Manual);
    let options = options.tuning(|t| t.merge_factor(4).part_bytes(16 << 10));
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let table = store.table("t", counters()).unwrap();
    let operand = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3; // no block can pack these
    for _ in 0..4 {
        (0..KEYS).for_each(|key| assert!(table.fold(&key, &operand(key)).is_ok()));
        store.flush().unwrap();
    }
    let runs = || store.bytes_table("t").unwrap().stats().unwrap().runs.len();
    let mut half_done = 0;
    while store.background_step_of(BackgroundJob::Merge).unwrap().is_some() {
        half_done += usize::from(runs() > 4);
        let mut keys = 0..KEYS;
        for row in table.scan() {
            let (key, sum) = row.unwrap();
            assert_eq!((Some(key), sum), (keys.next(), 4 * operand(key)));
        }
        assert_eq!(keys.next(), None);
    }
    assert!(half_done > 0 && runs() == 1, "{half_done} times, {} runs", runs());
}

/// A flush of the store does not fail because of a table that was dropped meanwhile.
#[test]
fn a_table_that_is_dropped_under_a_flush_does_not_fail_it() {
    let (_dir, store, hook) = fresh();
    let (gone, stays) = (store.table("gone", counters()).unwrap(), store.table("stays", counters()).unwrap());
    gone.fold(&1, &1).unwrap();
    stays.fold(&1, &1).unwrap();
    set(&hook, dropping(&store, "gone"));
    store.flush().unwrap();
    assert_eq!(store.bytes_table("stays").unwrap().stats().unwrap().runs.len(), 1);
    assert_eq!(parts_of(store.path()), 1, "what was written of the other table is gone");
    assert_eq!(gone.get(&1).unwrap_err().kind(), ErrorKind::Closed);

    store.table("gone", counters()).unwrap().fold(&1, &1).unwrap();
    set(&hook, dropping(&store, "gone"));
    store.close().unwrap();
}

#[test]
fn a_table_that_is_dropped_under_a_merge_does_not_fail_background_work() {
    let (_dir, store, hook) = fresh();
    write_runs(&store, "gone", 2, 100);
    set(&hook, dropping(&store, "gone"));
    while store.background_step().unwrap().is_some() {}
    assert_eq!(parts_of(store.path()), 0);
    write_runs(&store, "stays", 4, 100);
    while store.background_step().unwrap().is_some() {}
    assert_eq!(store.bytes_table("stays").unwrap().stats().unwrap().runs.len(), 1);
}

/// Opens a table or creates it: it does not matter which.
#[test]
fn many_may_create_one_table_at_once() {
    let (_dir, store, _hook) = fresh();
    for round in 0..30 {
        let (name, start) = (format!("t{round}"), Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    store.table(&name, counters()).unwrap().fold(&1, &1).unwrap();
                });
            }
        });
        assert_eq!(store.table(&name, counters()).unwrap().get(&1).unwrap(), Some(4));
    }
}

/// A merge that a caller drives ends with the store, and leaves no file behind; neither does one
/// that is no longer driven.
#[test]
fn a_merge_ends_with_the_store() {
    let (dir, store, _hook) = fresh();
    write_runs(&store, "left", 2, 40_000);
    let step = store.background_step().unwrap().unwrap();
    assert!(step.starts_with("a step of: merge"), "{step}");
    write_runs(&store, "driven", 2, 40_000);
    let (mut steps, other) = (0, store.clone());
    let ended = store.bytes_table("driven").and_then(|table| {
        table.compact_with(|_| {
            steps += 1;
            if steps == 1 {
                other.clone().close().unwrap();
            }
            ControlFlow::Continue(())
        })
    });
    assert_eq!((ended.unwrap_err().kind(), steps), (ErrorKind::Closed, 1));
    assert_eq!(parts_of(store.path()), 4, "the inputs, and nothing else");
    let store = Store::open(dir.path().join("s.folddb"), Options::default()).unwrap();
    assert_eq!(store.table("driven", counters()).unwrap().get(&77).unwrap(), Some(2));
}

/// Next to a writer, background work always has some run of the table: a compaction would wait
/// forever, and could not be stopped.
#[test]
fn a_waiting_compaction_reports_progress_and_no_merge_begins_before_it() {
    let (_dir, store, hook) = fresh();
    write_runs(&store, "t", 2, 40_000);
    let (other, told) = (store.clone(), Arc::new(Mutex::new(Vec::new())));
    let (asked, tell) = (other.clone(), Arc::clone(&told));
    set(&hook, move || {
        // A merge has begun its first part, and its inputs are taken.
        let broken_off = other.bytes_table("t").and_then(|table| {
            table.compact_with(|progress| {
                write_runs(&asked, "t", 2, 100);
                let begun = asked.background_step_of(BackgroundJob::Merge).unwrap();
                tell.lock().unwrap().push((progress.bytes_done, begun));
                ControlFlow::Break(())
            })
        });
        broken_off.unwrap();
    });
    store.background_step().unwrap();
    assert_eq!(*told.lock().unwrap(), [(0, None)], "two runs are due and stay free");
    while store.background_step().unwrap().is_some() {}
    let table = store.table("t", counters()).unwrap();
    assert_eq!((table.get(&99).unwrap(), table.get(&100).unwrap()), (Some(4), Some(2)));
    assert_eq!(
        store.bytes_table("t").unwrap().stats().unwrap().runs.len(),
        1,
        "merges go on once nobody waits"
    );
}

#[test]
fn compacting_waits_for_no_merge_to_end_and_one_does_it_at_a_time() {
    let (_dir, store, _hook) = fresh();
    write_runs(&store, "t", 2, 40_000);
    let step = store.background_step().unwrap().unwrap();
    assert!(step.starts_with("a step of: merge"), "{step}");
    let (mut steps, mut merges_before, mut told) = (0, None, 0);
    let mut second = |_| {
        told += 1;
        ControlFlow::Break(())
    };
    let mut first = |_| {
        merges_before.get_or_insert(store.stats().background.merges);
        steps += 1;
        if steps == 1 {
            store.bytes_table("t").unwrap().compact_with(&mut second).unwrap();
            write_runs(&store, "t", 2, 100);
            while !store.background_step_of(BackgroundJob::Merge).unwrap().unwrap().starts_with("done: ") {}
        }
        ControlFlow::Continue(())
    };
    store.bytes_table("t").unwrap().compact_with(&mut first).unwrap();
    assert_eq!((merges_before, told), (Some(0), 1), "what was begun is given up, who comes second is told");
    assert_eq!(store.stats().background.merges, 2, "newer runs are merged beside it");
    assert_eq!(store.table("t", counters()).unwrap().get(&99).unwrap(), Some(4));
}

/// Every call that may fail does, and says why.
#[test]
fn a_closed_store_answers_no_call() {
    let (_dir, store, _hook) = fresh();
    let table = store.table("t", counters()).unwrap();
    table.fold(&1, &1).unwrap();
    let (snapshot, mut batch, rows) = (store.snapshot(), store.batch(), table.scan());
    batch.fold(&table, &1, &1);
    store.clone().close().unwrap();
    let bytes = table.as_bytes();
    let answers = [
        ("fold", table.fold(&1, &1).map(drop)),
        ("delete range", table.delete_range(&1, &2).map(drop)),
        ("batch", batch.commit(folddb::Durability::Buffered).map(drop)),
        ("get", table.get(&1).map(drop)),
        ("contains", table.contains(&1).map(drop)),
        ("operands", bytes.operands(&[0; 8]).map(drop)),
        ("explain", bytes.explain(&[0; 8]).map(drop)),
        ("scan", rows.into_iter().next().unwrap().map(drop)),
        ("count", table.scan().count().map(drop)),
        ("get at a snapshot", snapshot.get(&table, &1).map(drop)),
        ("scan at a snapshot", snapshot.scan(&table).count().map(drop)),
        ("table", store.table("t", counters()).map(drop)),
        ("bytes table", store.bytes_table("t").map(drop)),
        ("new table", store.table("new", counters()).map(drop)),
        ("drop table", store.drop_table("t")),
        ("table stats", store.bytes_table("t").and_then(|table| table.stats()).map(drop)),
        ("sync", store.sync()),
        ("flush", store.flush()),
        ("settle", store.settle()),
        ("compact", store.bytes_table("t").and_then(|table| table.compact())),
        ("background work step", store.background_step().map(drop)),
    ];
    for (call, answer) in answers {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Closed, "{call}");
    }
    // Calls that cannot fail answer from memory.
    assert_eq!(
        (store.tables(), store.snapshot().seq(), store.stats().last_seq),
        (vec!["t".to_owned()], 1.into(), 1.into())
    );
    store.close().unwrap();
}

/// A key of a user that notes, in another table, how often it was encoded.
struct Noted<'t>(u64, &'t folddb::Table<u64, u64>);

impl folddb::codec::AsKey<u64> for Noted<'_> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.1.fold(&0, &1).unwrap();
        folddb::codec::AsKey::<u64>::encode_key(&self.0, out);
    }
}

#[test]
fn a_key_may_write_while_it_is_encoded() {
    let (_dir, store, _hook) = fresh();
    let (table, notes) = (store.table("t", counters()).unwrap(), store.table("notes", counters()).unwrap());
    table.fold(&Noted(7, &notes), &1).unwrap();
    table.fold(&Noted(7, &notes), &1).unwrap();
    assert_eq!((table.get(&7).unwrap(), notes.get(&0).unwrap()), (Some(2), Some(2)));
}

/// The load of one table may use up the memory for memtables; writers to another table do not wait
/// for that.
#[test]
fn a_load_that_waits_for_memory_does_not_stall_a_quiet_table() {
    let (dir, (host, hook)) = (tempfile::tempdir().unwrap(), world());
    let options = Options::default().memory_bytes(4 << 20).host(host);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let (loaded, quiet) =
        (store.table("loaded", counters()).unwrap(), store.table("quiet", counters()).unwrap());
    let (go_on, held) = std::sync::mpsc::channel::<()>();
    set(&hook, move || held.recv().unwrap()); // the first flush waits here
    let stop = Arc::new(AtomicBool::new(false));
    let stop_seen = Arc::clone(&stop);
    let loader = std::thread::spawn(move || {
        (0u64..).take_while(|n| loaded.put(n, n).is_ok() && !stop_seen.load(Ordering::Relaxed)).count()
    });
    while store.stats().writes.stalls == 0 {
        std::thread::yield_now();
    }
    let writer = std::thread::spawn(move || (0..100).map(|n| quiet.put(&n, &n).unwrap()).max());
    while !writer.is_finished() && store.stats().writes.stalls == 1 {
        std::thread::yield_now();
    }
    let (stalls, flushes) = (store.stats().writes.stalls, store.stats().background.flushes);
    stop.store(true, Ordering::Relaxed);
    go_on.send(()).unwrap();
    writer.join().unwrap();
    assert!(loader.join().unwrap() > 0);
    assert_eq!((stalls, flushes), (1, 0), "only who loads waits, and the flush stood still meanwhile");
    store.close().unwrap();
}
