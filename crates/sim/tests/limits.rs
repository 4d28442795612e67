//! What a store may use of its machine: each promise of docs/LIMITS.md, measured in a process of
//! its own, from start to end, in which nothing else happens.
//!
//! Larger budgets of memory, which take longer:
//! `cargo test -p folddb-sim --release --test limits -- --ignored at_length`.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use folddb::maintenance::SyncOptions;
use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Shared, Store, Table};
use folddb_sim::chance::Seeded;
use folddb_sim::process::{self, Usage};
use folddb_sim::world::SimDisk;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

// ---- the promises -------------------------------------------------------------------------------

/// Memory that a store needs with any budget: pages of the program, stacks, memory that the
/// allocator keeps.
const BESIDE_BYTES: u64 = 12 * MIB;
/// A window through which the journal writes; where segments are shorter, a window is as long as
/// they are.
const WINDOW_BYTES: u64 = 4 * MIB;
/// The same for stores that share their memory.
const NARROW_WINDOW_BYTES: u64 = 256 * KIB;
/// Windows at once: the one before, the present one, the next, and the first of the next segment.
const WINDOWS: u64 = 4;
/// For each table: the memory of an empty one.
const TABLE_BYTES: u64 = 8 * KIB;
/// For each part: its bounds, its index of leaves, its sketch, and its line in the manifest.
const PART_BYTES: u64 = 12 * KIB;
/// Values up to this length are counted in the budget.
const VALUE_BYTES_IN_BUDGET: u64 = 256 * KIB;
/// Batches up to this length are counted in the budget.
const BATCH_BYTES_IN_BUDGET: u64 = MIB;
/// Copies of a large value in addition to those that the inputs of a merge hold: it is written,
/// read and folded meanwhile.
const VALUE_COPIES: u64 = 8;
/// Copies of a large batch: the one that its writer fills, a frame, and in two memtables.
const BATCH_COPIES: u64 = 4;
/// Descriptors in addition to the parts: lock, manifest, segments of the journal, parts that are
/// being written.
const BESIDE_DESCRIPTORS: u64 = 20;
/// Segments of the value log that are written to: the present one, the next, and full ones that are
/// not durable yet.
const VALUE_SEGMENTS: u64 = 6;
/// Threads of a store.
const STORE_THREADS: u64 = 3;
/// Of each thread that merges beyond the first: a window for each input, and a part.
const MERGE_THREAD_BYTES: u64 = 4 << 20;

/// The contents of a store, as far as its memory depends on them.
#[derive(Clone, Copy)]
struct Load {
    memory_bytes: u64,
    segment_bytes: u64,
    tables: u64,
    parts: u64,
    value_bytes: u64,
    batch_bytes: u64,
    merge_factor: u64,
    /// Whether values are separated.
    has_separated: bool,
}

impl Load {
    /// A store of this much memory in MiB, with little in it.
    fn of_mib(mib: u64) -> Load {
        let segment_bytes = 64 * MIB;
        Load {
            memory_bytes: mib * MIB,
            segment_bytes,
            tables: 1,
            parts: 0,
            value_bytes: 0,
            batch_bytes: 0,
            merge_factor: 8,
            has_separated: false,
        }
    }
}

/// The most memory that a process takes beyond an empty one.
fn memory_promised(load: &Load) -> u64 {
    let beyond = |bytes: u64, in_budget: u64| if bytes > in_budget { bytes } else { 0 };
    load.memory_bytes
        + BESIDE_BYTES
        + WINDOWS * load.segment_bytes.min(WINDOW_BYTES)
        + u64::from(load.has_separated) * WINDOWS * (4 * load.segment_bytes).min(WINDOW_BYTES)
        + load.tables * TABLE_BYTES
        + load.parts * PART_BYTES
        + (2 * load.merge_factor + VALUE_COPIES) * beyond(load.value_bytes, VALUE_BYTES_IN_BUDGET)
        + BATCH_COPIES * beyond(load.batch_bytes, BATCH_BYTES_IN_BUDGET)
}

// ---- scenarios, each a process ------------------------------------------------------------------

/// What a process reports: numbers by name.
struct Report {
    numbers: BTreeMap<String, u64>,
}

impl Report {
    fn get(&self, name: &str) -> u64 {
        *self.numbers.get(name).unwrap_or_else(|| panic!("no `{name}` among {:?}", self.numbers))
    }

    fn assert_keeps_to_memory(&self, load: &Load) {
        self.assert_keep_to_memory(1, load);
    }

    /// Several stores take no more than the sum of their bounds.
    fn assert_keep_to_memory(&self, stores: u64, load: &Load) {
        let (peak, promised) = (self.get("peak_bytes"), stores * memory_promised(load));
        assert!(
            peak <= promised,
            "{} KiB, and {} KiB are promised: {:?}",
            peak >> 10,
            promised >> 10,
            self.numbers
        );
        assert!(peak > MIB, "{peak} bytes are no measurement");
    }
}

fn scenario(task: &str) -> Report {
    let report = process::report_of("child", task);
    if std::env::var_os("SHOW").is_some() {
        println!("{task}: {report}");
    }
    let pair = |word: &str| {
        word.split_once('=').map(|(name, number)| (name.to_owned(), number.parse().unwrap_or(0)))
    };
    Report { numbers: report.split_whitespace().filter_map(pair).collect() }
}

/// A scenario under way: its settings, its directory, and what it reports.
struct World {
    task: String,
    temp: tempfile::TempDir,
    report: String,
}

impl World {
    fn setting(&self, name: &str, default: u64) -> u64 {
        let setting =
            self.task.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        setting.and_then(|number| number.parse().ok()).unwrap_or(default)
    }

    fn options(&self) -> Options {
        let options = Options::default().memory_bytes((self.setting("mib", 4) * MIB) as usize);
        options.merge_threads(self.setting("merge_threads", 1) as usize).tuning(|t| {
            t.part_bytes(self.setting("part_kib", 32 * KIB) * KIB)
                .segment_bytes(self.setting("segment_mib", 64) * MIB)
                .open_files_max(self.setting("files", 256) as usize)
        })
    }

    fn path(&self) -> std::path::PathBuf {
        self.temp.path().join("store")
    }

    fn create(&self) -> Store {
        Store::create(self.path(), self.options()).unwrap()
    }

    fn note(&mut self, name: &str, number: u64) {
        self.report += &format!(" {name}={number}");
    }
}

#[test]
#[ignore = "run by the others as a process of its own"]
fn child() {
    let Some(task) = process::task() else { return };
    let before = Usage::now();
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).unwrap();
    let mut world = World { task: task.clone(), temp, report: String::new() };
    match task.split_whitespace().next().unwrap_or_default() {
        "all-at-once" => all_at_once(&mut world),
        "in-phases" => in_phases(&mut world),
        "large-values" => large_values(&mut world),
        "many-tables" => many_tables(&mut world),
        "many-parts" => many_parts(&mut world),
        "recovery" => recovery(&mut world),
        "large-batches" => large_batches(&mut world),
        "huge-key" => huge_key(&mut world),
        "streams" => streams(&mut world),
        "compared" => compared(&mut world),
        "threads" => threads(&mut world),
        "shared" => shared(&mut world),
        "reopened" => reopened(&mut world),
        other => panic!("there is no scenario {other:?}"),
    }
    let after = Usage::now();
    world.note("peak_bytes", after.peak_bytes - before.peak_bytes);
    world.note("descriptors_before", before.descriptors);
    world.note("descriptors_after", after.descriptors);
    world.note("threads_before", before.threads);
    world.note("threads_after", after.threads);
    process::report(&world.report);
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut chance = Seeded::new(seed);
    let mut value = vec![0; len];
    value
        .chunks_mut(8)
        .for_each(|piece| piece.copy_from_slice(&chance.next_u64().to_le_bytes()[..piece.len()]));
    value
}

fn parts(store: &Store) -> u64 {
    let parts = |table: &String| {
        store.bytes_table(table).and_then(|table| table.stats()).map_or(0, |stats| count_parts(&stats))
    };
    store.tables().iter().map(parts).sum()
}

fn count_parts(stats: &folddb::TableStats) -> u64 {
    stats.runs.iter().map(|run| run.parts.len() as u64).sum()
}

fn compact(store: &Store, table: &str) {
    store.bytes_table(table).unwrap().compact().unwrap();
}

/// Ten times its memory is written, by batches of sets, folds, deletes and range deletes, while
/// others get, scan, hold snapshots and compact, without a pause.
fn all_at_once(world: &mut World) {
    let total_bytes = world.setting("times", 10) * world.setting("mib", 4) * MIB;
    let keys = total_bytes / 100;
    let store = world.create();
    let rules = Rules::sorted::<u64, Vec<u8>>();
    let rules = if world.setting("separated", 0) > 0 { rules.separate(100) } else { rules };
    let table = store.table("values", rules).unwrap();
    let sums = store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let (stop, descriptors, parts_max) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let goes_on = || !stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut chance = Seeded::new(2);
            while goes_on() {
                table.get(&chance.below(keys)).unwrap();
                descriptors.fetch_max(Usage::now().descriptors, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            let (mut chance, mut held) = (Seeded::new(3), VecDeque::new());
            while goes_on() {
                held.push_back(store.snapshot());
                if held.len() > 8 {
                    held.pop_front();
                }
                let past = &held[chance.below(held.len() as u64) as usize];
                past.scan(&table).from(&chance.below(keys)).limit(2000).count().unwrap();
                sums.scan().limit(2000).reverse().count().unwrap();
            }
        });
        scope.spawn(|| {
            while goes_on() {
                compact(&store, "values");
                parts_max.fetch_max(parts(&store), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let (mut written_bytes, mut chance) = (0, Seeded::new(1));
        while written_bytes < total_bytes {
            let mut batch = store.batch();
            for _ in 0..200 {
                batch.put(&table, &chance.below(keys), &noise(chance.next_u64(), 200));
                batch.fold(&sums, &chance.below(keys), &1);
            }
            batch.delete(&table, &chance.below(keys));
            if chance.one_in(100) {
                let from = chance.below(keys);
                batch.delete_range(table.as_bytes(), &from.to_be_bytes(), &(from + 100).to_be_bytes());
            }
            written_bytes += batch.len_bytes() as u64;
            batch.commit(Durability::Process).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    world.note("value_segments", store.stats().disk.value_segments);
    world.note("parts", parts_max.into_inner().max(parts(&store)));
    world.note("descriptors_max", descriptors.into_inner());
}

/// What leaves holes in the heaps of threads: a load of small rows by one thread, reads of all of
/// them by another, a reopening, then a third that writes as fast as it can while the second reads.
fn in_phases(world: &mut World) {
    let rows = world.setting("rows", world.setting("mib", 4) * MIB / 16);
    let rules = || Rules::sorted::<Vec<u8>, u64>();
    let key = |row: u64| format!("key:{:016x}", row.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes();
    let write = |store: &Store, from: u64, to: u64| {
        let table = store.table("t", rules()).unwrap();
        for row in (from..to).step_by(1000) {
            let mut batch = store.batch();
            for row in row..(row + 1000).min(to) {
                batch.put(&table, &key(row), &row);
            }
            batch.commit(Durability::Process).unwrap();
        }
    };
    let read = |store: &Store, gets: u64| {
        let (table, mut chance) = (store.table("t", rules()).unwrap(), Seeded::new(1));
        assert!((0..gets).all(|_| table.get(&key(chance.below(rows))).unwrap().is_some()));
        assert!(table.scan().count().unwrap() >= rows);
    };
    let alone = |work: &(dyn Fn() + Sync)| std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    let store = world.create();
    alone(&|| write(&store, 0, rows));
    store.settle().unwrap();
    alone(&|| read(&store, rows / 50));
    drop(store);
    let store = Store::open(world.path(), world.options()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&store, rows, 2 * rows));
        while !writer.is_finished() {
            read(&store, rows / 100);
        }
    });
    compact(&store, "t");
    alone(&|| read(&store, rows / 50));
    world.note("parts", parts(&store));
}

fn large_values(world: &mut World) {
    let (store, len) = (world.create(), world.setting("value_kib", 1024) * KIB);
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    for i in 0..world.setting("count", 60) {
        table.put(&(i % 40), &noise(i, len as usize)).unwrap();
        if i % 7 == 0 {
            assert!(table.get(&(i / 2 % 40)).unwrap().is_some());
        }
    }
    store.settle().unwrap();
    compact(&store, "t");
    assert_eq!(table.scan().count().unwrap(), 40);
    world.note("parts", parts(&store));
}

/// Every table is written to again and again, so that all of them have active memtables, and all
/// have runs to merge.
fn many_tables(world: &mut World) {
    let (store, count) = (world.create(), world.setting("tables", 200));
    let open = |i| store.table(&format!("t{i}"), Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let tables: Vec<Table<u64, Vec<u8>>> = (0..count).map(open).collect();
    let total_bytes = 10 * world.setting("mib", 4) * MIB;
    let (mut written_bytes, mut chance) = (0, Seeded::new(1));
    while written_bytes < total_bytes {
        let mut batch = store.batch();
        for _ in 0..200 {
            let table = &tables[chance.below(count) as usize];
            batch.put(table, &chance.next_u64(), &noise(chance.next_u64(), 100));
        }
        written_bytes += batch.len_bytes() as u64;
        batch.commit(Durability::Process).unwrap();
    }
    store.settle().unwrap();
    world.note("parts", parts(&store));
}

fn many_parts(world: &mut World) {
    let store = world.create();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let (mut written_bytes, mut chance) = (0, Seeded::new(1));
    while written_bytes < world.setting("total_mib", 20) * MIB {
        let mut batch = store.batch();
        for _ in 0..200 {
            batch.put(&table, &chance.next_u64(), &noise(chance.next_u64(), 500));
        }
        written_bytes += batch.len_bytes() as u64;
        batch.commit(Durability::Process).unwrap();
    }
    store.settle().unwrap();
    world.note("parts", parts(&store));
    let keys: Vec<u64> = table.scan().into_iter().map(|row| row.unwrap().0).collect();
    let mut descriptors = 0;
    for key in keys.iter().step_by(37) {
        assert!(table.get(key).unwrap().is_some());
        descriptors = descriptors.max(Usage::now().descriptors);
    }
    world.note("descriptors_max", descriptors);
}

/// A writer with much memory leaves a log, in a process of its own; one with little opens it.
fn recovery(world: &mut World) {
    let log = std::env::temp_dir().join(format!("folddb-limits-{}", world.setting("store", 0)));
    if world.setting("write_mib", 0) > 0 {
        let large = world.options().background(BackgroundWork::Manual).memory_bytes(1 << 30);
        let store = Store::create(&log, large).unwrap();
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
        let mut written_bytes = 0;
        for i in 0u64.. {
            let mut batch = store.batch();
            for key in i * 200..(i + 1) * 200 {
                batch.put(&table, &key, &[7; 200]);
            }
            written_bytes += batch.len_bytes() as u64;
            batch.commit(Durability::Process).unwrap();
            if written_bytes >= world.setting("write_mib", 0) * MIB {
                world.note("rows", (i + 1) * 200);
                return; // dropped without a close: the log has all of it
            }
        }
    }
    let read_only = world.setting("read_only", 0) == 1;
    match if read_only {
        Store::open_read_only(&log, world.options())
    } else {
        Store::open(&log, world.options())
    } {
        Ok(store) => {
            let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
            world.note("rows", table.scan().count().unwrap());
            world.note("parts", parts(&store));
            if !read_only {
                store.close().unwrap();
            }
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            let needed =
                error.message().split(" bytes of memory").next().and_then(|said| said.rsplit(' ').next());
            world.note(
                "needed_bytes",
                needed.and_then(|number| number.parse().ok()).expect("it says what it needs"),
            );
        }
    }
}

fn large_batches(world: &mut World) {
    let store = world.create();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let (mut chance, mut batch) = (Seeded::new(1), store.batch());
    for _ in 0..world.setting("count", 4) {
        while (batch.len_bytes() as u64) < world.setting("batch_mib", 24) * MIB {
            batch.put(&table, &chance.next_u64(), &[7; 2000]);
        }
        batch.commit(Durability::Process).unwrap();
    }
    store.settle().unwrap();
    world.note("parts", parts(&store));
}

/// A value many times as long as the memory is written, read, and read again after another opening.
fn streams(world: &mut World) {
    let store = world.create();
    let is_hashed = world.setting("hashed", 0) == 1;
    let rules = if is_hashed { Rules::hashed() } else { Rules::sorted().separate(2048) };
    let table: Table<u64, Vec<u8>> = store.table("t", rules).unwrap();
    let len = world.setting("stream_mib", 96) * MIB;
    let all = |table: &Table<u64, Vec<u8>>| {
        let mut value = table.read(&1).unwrap().unwrap();
        assert_eq!(std::io::copy(&mut value, &mut std::io::sink()).unwrap(), len);
    };
    for _ in 0..2 {
        table.put_from(&1, &mut std::io::Read::take(std::io::repeat(7), len)).unwrap();
        all(&table);
        store.settle().unwrap();
    }
    if !is_hashed {
        compact(&store, "t");
    }
    all(&table);
    world.note("parts", parts(&store));
}

/// Values many times as long as the memory that differ in their last byte are compared, and one is
/// made equal to the other.
fn compared(world: &mut World) {
    let other = tempfile::tempdir_in(folddb_sim::memory_dir()).unwrap();
    let second = Store::create(other.path().join("store"), world.options()).unwrap();
    let stores = [world.create(), second];
    let len = world.setting("stream_mib", 96) * MIB;
    let tables = [0, 1].map(|last: u8| {
        let rules = Rules::sorted().separate(2048);
        let table: Table<u64, Vec<u8>> = stores[usize::from(last)].table("t", rules).unwrap();
        let all = std::io::Read::take(std::io::repeat(7), len);
        table.put_from(&1, &mut std::io::Read::chain(all, &[last][..])).unwrap();
        table
    });
    let scan = |number: usize| tables[number].as_bytes().scan();
    let report = scan(0).compare(scan(1), |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((report.same, report.differing), (0, 1));
    assert_eq!(stores[1].synchronize(scan(1), scan(0), &SyncOptions::default()).unwrap().put, 1);
    assert!(scan(0).compare(scan(1), |_| ControlFlow::Continue(())).unwrap().is_same());
}

fn huge_key(world: &mut World) {
    let store = world.create();
    let table = store.table("t", Rules::sorted::<String, Vec<u8>>().fold("append")).unwrap();
    let snapshot = store.snapshot();
    for i in 0..50_000u64 {
        table.fold("k", &[b'a' + (i % 26) as u8; 100]).unwrap();
        if i % 10_000 == 0 {
            assert!(table.get("k").unwrap().is_some());
        }
    }
    drop(snapshot);
    store.settle().unwrap();
    compact(&store, "t");
    world.note("value_bytes", table.get("k").unwrap().unwrap().len() as u64);
    world.note("parts", parts(&store));
}

fn threads(world: &mut World) {
    let stores = world.setting("stores", 3);
    let path = |i| world.temp.path().join(format!("store{i}"));
    let open: Vec<Store> = (0..stores).map(|i| Store::create(path(i), world.options()).unwrap()).collect();
    for store in &open {
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
        for key in 0..20_000 {
            table.put(&key, &[1; 200]).unwrap();
        }
    }
    let mut most = 0;
    for _ in 0..50 {
        most = Usage::now().threads.max(most);
        std::thread::sleep(Duration::from_millis(1));
    }
    world.note("threads_max", most);
    for (i, store) in open.into_iter().enumerate() {
        if i % 2 == 0 { store.close().unwrap() } else { drop(store) }
    }
}

/// Stores that share one budget: all are written to and read at once, by four threads. Then half of
/// them are closed, and the others continue.
fn shared(world: &mut World) {
    let (stores, total_bytes) = (world.setting("stores", 12), world.setting("write_mib", 96) * MIB);
    let shared = Shared::new((world.setting("shared_mib", 64) * MIB) as usize);
    let path = |i| world.temp.path().join(format!("store{i}"));
    let create = |i| Store::create(path(i), world.options().shared(&shared)).unwrap();
    let mut open: Vec<Store> = (0..stores).map(create).collect();
    let (most_threads, most_used) = (AtomicU64::new(0), AtomicU64::new(0));
    let write = |open: &[Store], bytes: u64| {
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (shared, most_threads, most_used) = (&shared, &most_threads, &most_used);
                scope.spawn(move || {
                    let (mut chance, mut written_bytes) = (Seeded::new(writer), 0);
                    while written_bytes < bytes / 4 {
                        let store = &open[chance.below(open.len() as u64) as usize];
                        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
                        let mut batch = store.batch();
                        for _ in 0..100 {
                            batch.put(&table, &chance.below(100_000), &noise(chance.next_u64(), 200));
                        }
                        written_bytes += batch.len_bytes() as u64;
                        batch.commit(Durability::Process).unwrap();
                        table.get(&chance.below(100_000)).unwrap();
                        table.scan().from(&chance.below(100_000)).limit(100).count().unwrap();
                        most_threads.fetch_max(Usage::now().threads, Ordering::Relaxed);
                        most_used.fetch_max(shared.used_bytes(), Ordering::Relaxed);
                    }
                });
            }
        });
    };
    write(&open, total_bytes);
    world.report += &format!(" parts={}", open.iter().map(parts).sum::<u64>());
    let kept = open.split_off(stores as usize / 2);
    open.into_iter().for_each(|store| store.close().unwrap());
    let left = shared.stores() as u64;
    write(&kept, total_bytes / 4);
    kept.into_iter().for_each(drop);
    let after = shared.used_bytes();
    world.note("stores_left", left);
    world.note("used_after", after);
    world.note("used_max", most_used.into_inner());
    world.note("threads_max", most_threads.into_inner() - 4);
}

/// Opened again and again in one process, which keeps handles of closed stores, or drops stores
/// with full memtables.
fn reopened(world: &mut World) {
    let (mut store, mut held, mut descriptors) = (world.create(), Vec::new(), 0);
    for round in 0..world.setting("rounds", 6) {
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
        let (mut written_bytes, mut chance) = (0, Seeded::new(round));
        while written_bytes < 3 * world.setting("mib", 4) * MIB {
            let mut batch = store.batch();
            for _ in 0..200 {
                batch.put(&table, &chance.below(50_000), &noise(chance.next_u64(), 200));
            }
            written_bytes += batch.len_bytes() as u64;
            batch.commit(Durability::Process).unwrap();
        }
        (0..50_000).step_by(11).for_each(|key| drop(table.get(&key).unwrap()));
        held.push((store.snapshot(), store.batch(), table));
        if round % 2 == 0 {
            store.close().unwrap()
        } else {
            drop(store)
        }
        descriptors = descriptors.max(Usage::now().descriptors);
        for (snapshot, _, table) in &held {
            let answers = [
                table.get(&11).map(drop),
                snapshot.get(table, &11).map(drop),
                table.scan().count().map(drop),
            ];
            answers.into_iter().for_each(|answer| assert_eq!(answer.unwrap_err().kind(), ErrorKind::Closed));
        }
        store = Store::open(world.path(), world.options()).unwrap();
    }
    world.note("parts", parts(&store));
    world.note("descriptors_closed", descriptors);
}

// ---- tests --------------------------------------------------------------------------------------

fn keeps_to_its_memory_whatever_goes_on(mib: u64) {
    let report = scenario(&format!("all-at-once mib={mib}"));
    let load = Load { tables: 2, parts: report.get("parts"), ..Load::of_mib(mib) };
    report.assert_keeps_to_memory(&load);
}

fn keeps_to_its_memory_in_phases(mib: u64) {
    let report = scenario(&format!("in-phases mib={mib}"));
    report.assert_keeps_to_memory(&Load { parts: report.get("parts"), ..Load::of_mib(mib) });
}

#[test]
fn memory_is_kept_to_in_phases() {
    keeps_to_its_memory_in_phases(10);
}

#[test]
fn the_smallest_memory_is_kept_to_whatever_goes_on() {
    keeps_to_its_memory_whatever_goes_on(4);
}

#[test]
fn memory_is_kept_to_whatever_goes_on() {
    keeps_to_its_memory_whatever_goes_on(10);
}

#[test]
#[ignore = "half a minute: larger budgets, and 1,000 tables"]
fn memory_is_kept_to_at_length() {
    keeps_to_its_memory_whatever_goes_on(16);
    keeps_to_its_memory_whatever_goes_on(64);
    many_tables_stay_within(1000);
    keeps_to_its_memory_in_phases(152); // 160 MB
    large_values_count_as_promised(16, 16 * KIB);
}

fn many_tables_stay_within(tables: u64) {
    let report = scenario(&format!("many-tables tables={tables}"));
    let load = Load { tables, parts: report.get("parts"), ..Load::of_mib(4) };
    report.assert_keeps_to_memory(&load);
}

#[test]
fn two_hundred_tables_share_one_budget() {
    many_tables_stay_within(200);
}

fn large_values_count_as_promised(mib: u64, value_kib: u64) {
    let report = scenario(&format!("large-values mib={mib} value_kib={value_kib}"));
    report.assert_keeps_to_memory(&Load { value_bytes: value_kib * KIB, ..Load::of_mib(mib) });
}

#[test]
fn large_values_count_in_addition_to_the_memory() {
    large_values_count_as_promised(4, 1024);
}

#[test]
fn large_batches_count_in_addition_to_the_memory() {
    let report = scenario("large-batches batch_mib=24");
    report.assert_keeps_to_memory(&Load { batch_bytes: 25 * MIB, ..Load::of_mib(4) });
}

#[test]
fn streams_of_any_length_keep_to_the_memory() {
    for task in ["streams stream_mib=96", "streams stream_mib=96 hashed=1"] {
        let report = scenario(task);
        report.assert_keeps_to_memory(&Load { has_separated: true, ..Load::of_mib(4) });
    }
}

#[test]
fn values_of_any_length_are_compared_and_copied_in_the_memory_of_two_stores() {
    let report = scenario("compared stream_mib=96");
    report.assert_keep_to_memory(2, &Load { has_separated: true, ..Load::of_mib(4) });
}

#[test]
fn a_key_of_fifty_thousand_appends_counts_as_one_large_value() {
    let report = scenario("huge-key");
    let value_bytes = report.get("value_bytes");
    assert_eq!(value_bytes, 5_000_000);
    report.assert_keeps_to_memory(&Load { value_bytes, ..Load::of_mib(4) });
}

#[test]
fn many_parts_need_little_memory_and_few_descriptors() {
    let report = scenario("many-parts part_kib=64 files=8 segment_mib=1");
    let parts = report.get("parts");
    assert!(parts > 200, "{parts} parts are few");
    report.assert_keeps_to_memory(&Load { parts, segment_bytes: MIB, ..Load::of_mib(4) });
    assert_descriptors(&report, 8, 4, 1);
}

/// Files of parts, the other files that a store needs, segments for the data in memory, and one
/// file for each thread that is in the middle of a read.
fn assert_descriptors(report: &Report, open_files_max: u64, segments: u64, readers: u64) {
    let (before, most) = (report.get("descriptors_before"), report.get("descriptors_max"));
    let promised = before + open_files_max + BESIDE_DESCRIPTORS + segments + readers;
    assert!(most <= promised, "{most} descriptors, and {promised} are promised");
    assert!(most > before, "{most} descriptors are no measurement");
    assert_eq!(report.get("descriptors_after"), before, "a closed store holds none");
}

#[test]
fn descriptors_are_bounded_whatever_goes_on() {
    let report = scenario("all-at-once times=5 part_kib=64 files=8 segment_mib=1");
    assert_descriptors(&report, 8, 4, 4);
    let load = Load { tables: 2, parts: report.get("parts"), segment_bytes: MIB, ..Load::of_mib(4) };
    report.assert_keeps_to_memory(&load);
}

#[test]
fn separated_values_keep_to_the_memory_and_the_descriptors() {
    let report = scenario("all-at-once times=12 part_kib=64 files=32 segment_mib=1 separated=1");
    assert!(report.get("value_segments") > 8, "{} segments are few", report.get("value_segments"));
    assert_descriptors(&report, 32 + 32 / 4 + VALUE_SEGMENTS, 4, 4);
    let load = Load { tables: 2, parts: report.get("parts"), segment_bytes: MIB, ..Load::of_mib(4) };
    report.assert_keeps_to_memory(&Load { has_separated: true, ..load });
}

#[test]
fn a_log_longer_than_the_memory_is_recovered_within_it() {
    let log = std::env::temp_dir().join(format!("folddb-limits-{}", std::process::id()));
    let _gone = Gone(&log);
    let store = format!("store={}", std::process::id());
    let rows = scenario(&format!("recovery {store} write_mib=48")).get("rows");

    // For reading it does not fit: it is refused within the memory, and the error says how much it
    // would take.
    let refused = scenario(&format!("recovery {store} mib=4 read_only=1"));
    refused.assert_keeps_to_memory(&Load::of_mib(4));
    let needed_mib = refused.get("needed_bytes").div_ceil(MIB);
    assert!((48..192).contains(&needed_mib), "{needed_mib} MiB");
    let read = scenario(&format!("recovery {store} mib={needed_mib} read_only=1"));
    read.assert_keeps_to_memory(&Load::of_mib(needed_mib));
    assert_eq!(read.get("rows"), rows);

    let opened = scenario(&format!("recovery {store} mib=4"));
    opened.assert_keeps_to_memory(&Load { parts: opened.get("parts"), ..Load::of_mib(4) });
    assert_eq!(opened.get("rows"), rows);
    assert_eq!(scenario(&format!("recovery {store} mib=4 read_only=1")).get("rows"), rows);
}

/// Removes a directory, also when the test fails.
struct Gone<'a>(&'a std::path::Path);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

#[test]
fn a_store_has_three_threads_and_none_when_it_is_closed() {
    let report = scenario("threads stores=3");
    let before = report.get("threads_before");
    assert_eq!(report.get("threads_max"), before + 3 * STORE_THREADS);
    assert_eq!(report.get("threads_after"), before);
    assert_eq!(report.get("descriptors_after"), report.get("descriptors_before"));
}

#[test]
fn a_store_has_as_many_threads_as_it_asks_for() {
    let report = scenario("threads stores=2 merge_threads=3");
    let before = report.get("threads_before");
    assert_eq!(report.get("threads_max"), before + 2 * (STORE_THREADS + 2));
    assert_eq!(report.get("threads_after"), before);
}

#[test]
fn threads_that_merge_take_little_memory_each() {
    let report = scenario("all-at-once mib=4 merge_threads=3 part_kib=256");
    let promised =
        memory_promised(&Load { parts: report.get("parts"), ..Load::of_mib(4) }) + 2 * MERGE_THREAD_BYTES;
    let peak = report.get("peak_bytes");
    assert!(peak <= promised, "{} KiB, and {} KiB are promised", peak >> 10, promised >> 10);
}

#[test]
fn twelve_stores_share_one_budget_and_three_threads() {
    let report = scenario("shared stores=12 mib=16 shared_mib=64");
    let load = Load { tables: 12, parts: report.get("parts"), ..Load::of_mib(64) };
    let windows = 12 * WINDOWS * NARROW_WINDOW_BYTES;
    let promised = memory_promised(&load) - WINDOWS * WINDOW_BYTES + windows;
    let peak = report.get("peak_bytes");
    assert!(peak <= promised, "{} KiB, and {} KiB are promised", peak >> 10, promised >> 10);
    assert!(report.get("used_max") > 8 * MIB, "{} bytes are no measurement", report.get("used_max"));
    assert_eq!(report.get("threads_max"), report.get("threads_before") + STORE_THREADS);
    assert_eq!((report.get("stores_left"), report.get("used_after")), (6, 0));
    assert_eq!(report.get("threads_after"), report.get("threads_before"));
    assert_eq!(report.get("descriptors_after"), report.get("descriptors_before"));
}

#[test]
fn a_closed_store_keeps_no_memory_and_no_files_whatever_handles_live_on() {
    let report = scenario("reopened");
    report.assert_keeps_to_memory(&Load { parts: report.get("parts"), ..Load::of_mib(4) });
    assert_eq!(report.get("descriptors_closed"), report.get("descriptors_before"));
}

/// The space of the files of a directory on the disk, preallocated space included.
fn taken_bytes(dir: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    files.map(|facts| facts.blocks() * 512).sum()
}

#[test]
fn a_store_that_holds_one_key_takes_a_mebibyte_of_the_disk_while_it_is_written_to() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let visits = store.table("visits", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    (0..5000).for_each(|_| assert!(visits.fold(&1, &1).is_ok()));
    let taken = taken_bytes(&path);
    assert!(taken <= MIB, "{} KiB", taken >> 10);
    drop(store);
    for _ in 0..5 {
        let store = Store::open(&path, Options::default()).unwrap();
        let visits = store.open_table::<u64, u64>("visits").unwrap();
        (0..1000).for_each(|_| assert!(visits.fold(&1, &1).is_ok()));
        let taken = taken_bytes(&path);
        assert!(taken <= MIB, "{} KiB after it was opened again", taken >> 10);
    }
}

/// Folds one key this many times a second, for this many seconds of a simulated clock, with
/// background work every ten milliseconds. The most bytes that the store takes, and the log bytes
/// of a second.
fn one_key_at(folds_per_s: u64, seconds: u64) -> (u64, u64) {
    let disk = SimDisk::new(folds_per_s);
    let options = Options::default().host(disk.host()).disk_reserve_bytes(0);
    let store = Store::create(SimDisk::store_dir(), options.background(BackgroundWork::Manual)).unwrap();
    let visits = store.table("visits", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let (mut most, mut folded) = (0, 0);
    for tick in 1..=100 * seconds {
        let due = folds_per_s * tick / 100;
        (folded..due).for_each(|_| assert!(visits.fold(&1, &1).is_ok()));
        folded = due;
        disk.advance(Duration::from_millis(10));
        while store.background_step().unwrap().is_some() {}
        most = most.max(store.stats().disk.bytes);
    }
    assert_eq!(visits.get(&1).unwrap(), Some(folded));
    (most, store.stats().writes.log_bytes / seconds)
}

#[test]
fn a_store_that_holds_one_key_takes_a_mebibyte_of_the_disk_at_a_thousand_folds_a_second() {
    let (most, log_bytes) = one_key_at(1000, 100);
    assert!((40 * KIB..60 * KIB).contains(&log_bytes), "{log_bytes} bytes of log a second");
    assert!(most <= MIB, "{} KiB at {log_bytes} bytes of log a second", most >> 10);
    // Beyond 60 KiB a second segments are four times as long, and so on.
    let (most, log_bytes) = one_key_at(4000, 60);
    assert!((120 * KIB..240 * KIB).contains(&log_bytes), "{log_bytes} bytes of log a second");
    assert!(most <= 4 * MIB, "{} KiB at {log_bytes} bytes of log a second", most >> 10);
}

/// Writes 25 MiB a second, of a simulated clock, into a store of 16 MiB, whose segments grow to 4
/// MiB and could have 8, until 100 MiB were written. The most segments that its log had, and how
/// many memtables were flushed.
fn log_of_little_memory(keys: u64) -> (u64, u64) {
    let disk = SimDisk::new(keys);
    let options = Options::default().memory_bytes(16 << 20).host(disk.host()).disk_reserve_bytes(0);
    let options = options.tuning(|t| t.segment_bytes(8 << 20)).background(BackgroundWork::Manual);
    let store = Store::create(SimDisk::store_dir(), options).unwrap();
    let table = store.table("states", Rules::sorted::<u64, Vec<u8>>().fold("replace")).unwrap();
    let (mut most, value) = (0, noise(1, 900));
    for tick in 0..400 {
        for row in 0..280 {
            table.put(&((280 * tick + row) % keys), &value).unwrap();
        }
        disk.advance(Duration::from_millis(10));
        while store.background_step().unwrap().is_some() {}
        most = most.max(store.stats().disk.log_segments);
    }
    (most, store.stats().background.flushes)
}

#[test]
fn the_log_of_little_memory_is_short_unless_that_would_cost_flushes() {
    let (most, flushes) = log_of_little_memory(u64::MAX);
    assert!(most <= 6, "{most} segments of log beside memtables that fill");
    assert!(flushes > 10, "they fill: {flushes}");
    let (most, flushes) = log_of_little_memory(1);
    assert!((8..12).contains(&most), "{most} segments of log for one key");
    assert!((2..5).contains(&flushes), "for the length of the log, four times 8 MiB: {flushes}");
}

#[test]
fn a_store_that_holds_one_separated_value_takes_a_mebibyte_of_the_disk() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(1 << 10).fold("replace");
    store.table("values", rules).unwrap().put(&1, &noise(1, 20_000)).unwrap();
    let taken = taken_bytes(&path);
    assert!(taken <= MIB, "{} KiB", taken >> 10);
}
