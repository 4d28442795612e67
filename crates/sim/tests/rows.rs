//! What osmos and HugeDB do, and leveled and elliptics about time, row by row: one test each, named
//! after the row.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use folddb::codec::{KeyCodec, Value, ValueCodec};
use folddb::folds::{Bitmap, ByteSet, Edit, Patch, Stats};
use folddb::order::CustomOrder;
use folddb::table_rules::{Compression, READY_MADE, TableRules};
use folddb::time::moment;
use folddb::{
    AsOf, BackgroundWork, Durability, ErrorKind, Expire, Fold, FoldFailure, Keep, Lifetime, Options, Outcome,
    Rules, Store, Table, WriteOp,
};
use folddb_bench::BenchOptions;
use folddb_sim::chance::Seeded;
use folddb_sim::place::Place;
use folddb_sim::process::{Usage, report_of, task};

fn small() -> Options {
    Options::default().memory_bytes(4 << 20).tuning(|t| t.segment_bytes(1 << 20)).disk_reserve_bytes(0)
}

fn manual() -> Options {
    small().background(BackgroundWork::Manual)
}

fn compact(store: &Store, table: &str) {
    store.bytes_table(table).expect("a table").compact().expect("it merges");
}

/// Folds operands onto one key, each into a run of its own, and checks before and after merging,
/// and after reopening.
fn assert_folds<V: Value + Clone>(rules: Rules<String, V>, operands: &[V], check: impl Fn(V)) {
    let place = Place::new();
    let store = place.create(manual());
    let table = store.table("t", rules.clone()).expect("the table is created");
    for operand in operands {
        table.fold("key", operand).expect("it writes");
        store.flush().expect("it flushes");
    }
    check(table.get("key").expect("it reads").expect("there is a value"));
    compact(&store, "t");
    check(table.get("key").expect("it reads").expect("there is a value"));
    store.close().expect("it closes");
    let store = place.open(manual());
    let table = store.table("t", rules).expect("the table is there");
    check(table.get("key").expect("it reads").expect("there is a value"));
}

// ---- osmos --------------------------------------------------------------------------------------

#[test]
fn osmos_open_write_read_close() {
    let place = Place::new();
    assert_eq!(Store::open(place.path(), small()).map(|_| ()).unwrap_err().kind(), ErrorKind::StoreNotFound);
    let store = place.create(small());
    let table = store.table("t", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    table.fold("a", &1).unwrap();
    table.fold("a", &2).unwrap();
    assert_eq!(table.get("a").unwrap(), Some(3));
    assert_eq!(table.get("b").unwrap(), None);
    store.close().unwrap();
    assert_eq!(table.get("a").unwrap_err().kind(), ErrorKind::Closed);
    let store = place.open(small());
    let table = store.table("t", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    assert_eq!(table.get("a").unwrap(), Some(3));
}

#[test]
fn osmos_acid_writes() {
    let place = Place::new();
    let store = place.create(small());
    let rules = || Rules::sorted::<u64, u64>().fold("sum:u64");
    let (left, right) = (store.table("left", rules()).unwrap(), store.table("right", rules()).unwrap());

    // Atomic and consistent: with a mistake anywhere in a batch, nothing of it is written.
    let mut batch = store.batch();
    batch.fold(&left, &1, &1).write(right.as_bytes(), WriteOp::Put, &vec![0; 70_000], b"12345678");
    assert_eq!(batch.commit(Durability::Process).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(left.get(&1).unwrap(), None);

    // Isolated: no snapshot ever sees half of a batch.
    let stop = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !stop.load(Ordering::Relaxed) || looks == 0 {
                let past = store.snapshot();
                let sum = |table: &Table<u64, u64>| {
                    past.scan(table).into_iter().map(|row| row.unwrap().1).sum::<u64>()
                };
                assert_eq!(sum(&left), sum(&right));
                looks += 1;
            }
            looks
        });
        for i in 0..5000u64 {
            let mut batch = store.batch();
            batch.fold(&left, &(i % 10), &i).fold(&right, &(i % 7), &i);
            batch.commit(Durability::Process).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(looks > 0);

    // Durable: without a close.
    let mut batch = store.batch();
    batch.fold(&left, &100, &1).fold(&right, &100, &1);
    batch.commit(Durability::Sync).unwrap();
    drop((batch, left, right, store));
    let store = place.open(small());
    assert_eq!(store.table("left", rules()).unwrap().get(&100).unwrap(), Some(1));
    assert_eq!(store.table("right", rules()).unwrap().get(&100).unwrap(), Some(1));
}

/// The longest word so far, and how many words there were.
struct Longest;

impl Fold for Longest {
    fn spec(&self) -> String {
        "longest".to_owned()
    }
    fn fold(
        &self,
        _key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        let empty = || FoldFailure::new("a count and a word");
        let ((a, x), (b, y)) =
            (earlier.split_first().ok_or_else(empty)?, later.split_first().ok_or_else(empty)?);
        out.push(a.saturating_add(*b));
        out.extend_from_slice(if y.len() > x.len() { y } else { x });
        Ok(Outcome::Value)
    }
}

#[test]
fn osmos_user_defined_associative_merge() {
    let place = Place::new();
    let options = || manual().custom_fold(Arc::new(Longest));
    let rules = || Rules::sorted::<String, Vec<u8>>().custom_fold(&Longest);
    let store = place.create(options());
    let table = store.table("t", rules()).unwrap();
    for word in ["\u{1}two", "\u{1}seven", "\u{1}eight", "\u{1}six"] {
        table.fold("numbers", word).unwrap();
        store.flush().unwrap();
    }
    assert_eq!(table.get("numbers").unwrap().unwrap(), b"\x04seven");
    compact(&store, "t");
    assert_eq!(table.get("numbers").unwrap().unwrap(), b"\x04seven");
    store.close().unwrap();

    // Without the function the store opens, the operands are there, and nothing is written.
    let store = place.open(manual());
    let bytes = store.bytes_table("t").unwrap();
    assert!(bytes.rules().missing().unwrap().contains("longest"));
    assert_eq!(bytes.operands(b"numbers").unwrap()[0].values().next().unwrap(), b"\x04seven");
    assert_eq!(
        bytes.write(WriteOp::Fold, b"numbers", b"\x01x").unwrap_err().kind(),
        ErrorKind::RulesMismatch
    );
    store.close().unwrap();
    let store = place.open(options());
    assert_eq!(store.table("t", rules()).unwrap().get("numbers").unwrap().unwrap(), b"\x04seven");
}

#[test]
fn osmos_merge_by_sum() {
    assert_folds(Rules::sorted().fold("sum:i64"), &[5i64, -7, 40], |sum| assert_eq!(sum, 38));
    assert_folds(Rules::sorted().fold("sum:u64"), &[u64::MAX, 1], |sum| assert_eq!(sum, u64::MAX));
}

#[test]
fn osmos_merge_by_min_max_sum_count() {
    let numbers = [3.5, -1.0, 8.0, 0.1, 0.2].map(Stats::of);
    assert_folds(Rules::sorted().fold("stats:f64"), &numbers, |stats: Stats| {
        assert_eq!((stats.count(), stats.min(), stats.max()), (5, Some(-1.0), Some(8.0)));
        assert_eq!(stats.sum(), 10.8);
    });
}

#[test]
fn osmos_merge_by_first() {
    let values = ["a", "b", "c"].map(str::to_owned);
    assert_folds(Rules::sorted().fold("first"), &values, |first: String| assert_eq!(first, "a"));
}

#[test]
fn osmos_merge_by_union() {
    let sets = ["b", "a", "b", "c"].map(ByteSet::of);
    assert_folds(Rules::sorted().fold("set"), &sets, |set: ByteSet| {
        assert_eq!(set.iter().collect::<Vec<_>>(), [b"a", b"b", b"c"]);
    });
}

#[test]
fn osmos_merge_by_intersection() {
    let set = |members: &[&str]| members.iter().map(|member| member.as_bytes().to_vec()).collect::<ByteSet>();
    let sets = [set(&["a", "b", "c"]), set(&["b", "c", "d"]), set(&["c", "b"])];
    assert_folds(Rules::sorted().fold("intersect"), &sets, |set: ByteSet| {
        assert_eq!(set.iter().collect::<Vec<_>>(), [b"b", b"c"]);
    });
}

#[test]
fn osmos_merge_by_matrix_product() {
    let matrix = |cells: [i64; 4]| cells.iter().flat_map(|cell| cell.to_le_bytes()).collect::<Vec<u8>>();
    // Does not commute, so that a merge which swaps operands shows.
    let factors = [matrix([1, 1, 0, 1]), matrix([1, 0, 1, 1]), matrix([0, 1, 1, 0])];
    assert_folds(Rules::sorted().fold("matmul:2:i64"), &factors, |product: Vec<u8>| {
        assert_eq!(product, matrix([1, 2, 1, 1]));
    });
}

#[test]
fn osmos_merge_by_a_list_of_operations() {
    let patches = [
        Patch::object(b"hello"),
        Patch::edits([Edit::Append(b", world"), Edit::Write { at: 0, bytes: b"H" }]),
        Patch::edits([Edit::Splice { at: 5, removed: 1, bytes: b"" }, Edit::Append(b"!")]),
    ];
    assert_folds(Rules::sorted().fold("patch"), &patches, |patch: Patch| {
        assert_eq!(patch.to_object().unwrap(), b"Hello world!");
    });
}

#[test]
fn osmos_short_circuit() {
    let place = Place::new();
    // Full is full: nothing earlier than a full bucket matters.
    let store =
        place.create(manual().custom_predicate("is-full", |_key, value| value == 100u64.to_le_bytes()));
    let table =
        store.table("t", Rules::sorted::<u64, u64>().fold("max:u64").short_circuit_by("is-full")).unwrap();
    for _ in 0..50 {
        table.fold(&1, &7).unwrap();
        store.flush().unwrap();
    }
    let before = store.stats().reads.pieces;
    table.fold(&1, &100).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(100));
    assert_eq!(store.stats().reads.pieces, before, "no run is looked at");
    table.fold(&1, &3).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(100));
    compact(&store, "t");
    assert_eq!(table.get(&1).unwrap(), Some(100));
}

#[test]
fn osmos_delete_predicate() {
    let place = Place::new();
    let store = place.create(manual());
    let table = store.table("t", Rules::sorted::<u64, i64>().fold("sum:i64").delete_when(&0)).unwrap();
    table.fold(&1, &5).unwrap();
    table.fold(&2, &5).unwrap();
    store.flush().unwrap();
    table.fold(&1, &-5).unwrap();
    assert_eq!(table.get(&1).unwrap(), None);
    assert_eq!(table.scan().count().unwrap(), 1);
    compact(&store, "t");
    let stats = store.bytes_table("t").unwrap().stats().unwrap();
    assert_eq!(stats.records, 1, "a deleted key takes no space: {stats:?}");
    table.fold(&1, &-5).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(-5));
}

#[test]
fn osmos_select_over_a_range_in_chunks_with_a_consistent_snapshot_highest_key_included() {
    let place = Place::new();
    let store = place.create(small());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    for key in 0..1000 {
        table.put(&key, &key).unwrap();
    }
    let past = store.snapshot();
    let (mut seen, mut after) = (Vec::new(), 99);
    loop {
        let chunk: Vec<u64> = past
            .scan(&table)
            .after(&after)
            .through(&900)
            .limit(64)
            .into_iter()
            .map(|row| row.unwrap().0)
            .collect();
        let Some(last) = chunk.last() else { break };
        after = *last;
        seen.extend(chunk);
        // The table continues to change, and to merge, between the chunks.
        for key in 0..1000 {
            table.delete(&key).unwrap();
        }
        table.put(&5000, &1).unwrap();
        store.flush().unwrap();
        compact(&store, "t");
    }
    assert_eq!(seen, (100..=900).collect::<Vec<u64>>());
    assert_eq!(past.scan(&table).through(&u64::MAX).count().unwrap(), 1000);
    assert_eq!(table.scan().through(&5000).count().unwrap(), 1, "the highest key is in");
    table.put(&u64::MAX, &1).unwrap();
    assert_eq!(table.scan().from(&6000).through(&u64::MAX).count().unwrap(), 1, "the highest of all too");
}

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len())
    }
}

#[test]
fn osmos_table_formats_with_block_size_key_and_value_codecs_and_key_order() {
    let place = Place::new();
    let options = || manual().custom_order(Arc::new(ByLength));
    let store = place.create(options());
    let mut formats = Vec::new();
    for (order, expected) in [
        ("bytewise", ["a", "aaa", "b", "cc"]),
        ("reversed", ["cc", "b", "aaa", "a"]),
        ("by-length", ["a", "b", "cc", "aaa"]),
    ] {
        for (block_bytes, compression) in [(512, Compression::None), (65_536, Compression::Lz4)] {
            let rules = TableRules::new(KeyCodec::Utf8).value(ValueCodec::I64).order(order);
            formats.push((rules.block_bytes(block_bytes).compression(compression), expected));
        }
    }
    for (index, (rules, _)) in formats.iter().enumerate() {
        let table = store.create_bytes_table(&index.to_string(), rules.clone()).unwrap();
        for (value, key) in ["b", "a", "cc", "aaa"].iter().enumerate() {
            table.write(WriteOp::Put, key.as_bytes(), &(value as i64).to_le_bytes()).unwrap();
        }
        assert_eq!(table.write(WriteOp::Put, b"\xff", &[0; 8]).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(table.write(WriteOp::Put, b"a", b"short").unwrap_err().kind(), ErrorKind::InvalidInput);
        store.flush().unwrap();
    }
    store.close().unwrap();
    let store = place.open(options());
    for (index, (rules, expected)) in formats.iter().enumerate() {
        let table = store.bytes_table(&index.to_string()).unwrap();
        assert_eq!(table.rules().as_table_rules(), rules);
        let keys: Vec<Vec<u8>> = table.scan().into_iter().map(|row| row.unwrap().0).collect();
        assert_eq!(keys, expected.map(|key| key.as_bytes().to_vec()), "{rules:?}");
    }
}

#[test]
fn osmos_ready_made_formats() {
    let place = Place::new();
    let store = place.create(manual());
    for (name, what) in READY_MADE {
        let rules = TableRules::ready_made(name).unwrap();
        let table = store.create_bytes_table(name, rules.clone()).unwrap();
        let bound = table.rules().clone();
        let key = bound.as_table_rules().key_codec().parse_text(&["7"]).unwrap();
        let mut value = Vec::new();
        bound.read_value(&folddb::Datum::Text("7".to_owned()), &mut value).unwrap();
        table.write(WriteOp::Fold, &key, &value).unwrap();
        table.write(WriteOp::Fold, &key, &value).unwrap();
        store.flush().unwrap();
        assert!(table.get(&key).unwrap().is_some(), "{name}: {what}");
    }
    store.close().unwrap();
    let store = place.open(manual());
    for (name, _) in READY_MADE {
        assert_eq!(
            store.bytes_table(name).unwrap().rules().as_table_rules(),
            &TableRules::ready_made(name).unwrap()
        );
        assert_eq!(store.bytes_table(name).unwrap().scan().count().unwrap(), 1);
    }
}

#[test]
fn osmos_memory_is_bounded_whatever_the_size_of_the_table() {
    let report = report_of("child_that_writes_ten_times_its_budget", "");
    let peak: u64 = report.trim().parse().unwrap_or_else(|_| panic!("no number in {report:?}"));
    // The other memory of a process: its threads, this test program, and memory that the allocator
    // keeps.
    assert!(peak < CHILD_BUDGET_BYTES + (16 << 20), "{peak} bytes for a budget of {CHILD_BUDGET_BYTES}");
    assert!(peak > 1 << 20, "{peak} bytes are no measurement");
}

const CHILD_BUDGET_BYTES: u64 = 12 << 20;
#[test]
#[ignore = "run by `osmos_memory_is_bounded_whatever_the_size_of_the_table` as a process of its own"]
fn child_that_writes_ten_times_its_budget() {
    if task().is_none() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let options =
        Options::default().memory_bytes(CHILD_BUDGET_BYTES as usize).tuning(|t| t.segment_bytes(4 << 20));
    let store = Store::create(temp.path().join("store"), options).unwrap();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let (mut peak, mut chance) = (0, Seeded::new(1));
    let mut written = 0;
    while written < 10 * CHILD_BUDGET_BYTES {
        let mut batch = store.batch();
        for _ in 0..200 {
            batch.put(&table, &chance.next_u64(), &[7; 200]);
        }
        written += batch.len_bytes() as u64;
        batch.commit(Durability::Process).unwrap();
        peak = peak.max(Usage::now().anonymous_bytes);
    }
    store.settle().unwrap();
    let rows = table.scan().count().unwrap();
    assert!(rows > 500_000, "{rows}");
    folddb_sim::process::report(peak.max(Usage::now().anonymous_bytes));
}

#[test]
fn osmos_an_inverted_index_without_a_memory_blow_up() {
    let report = report_of("child_that_builds_an_inverted_index", "");
    let numbers: Vec<u64> = report.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [early, peak, written, indexed] = numbers[..] else { panic!("no four numbers in {report:?}") };
    assert!(early > 1 << 20, "{early} bytes are no measurement");
    assert!(written > 10 * INDEX_BUDGET_BYTES && indexed > INDEX_BUDGET_BYTES, "{written}, {indexed}");
    assert!(peak < INDEX_BUDGET_BYTES + (16 << 20), "{peak} bytes for a budget of {INDEX_BUDGET_BYTES}");
    assert!(peak < early + (8 << 20), "{early} bytes after a fifth of the text, {peak} after all of it");
}

const INDEX_BUDGET_BYTES: u64 = 4 << 20;
const INDEXED_FILES: u32 = 15_000;
const WORDS_OF_FILE: usize = 200;

/// A word: the lower its rank, the more often.
fn word(chance: &mut Seeded) -> String {
    let rank = chance.next_u64() % (1 << (8 + chance.below(10)));
    format!("word{rank}")
}

#[test]
#[ignore = "run by `osmos_an_inverted_index_without_a_memory_blow_up` as a process of its own"]
fn child_that_builds_an_inverted_index() {
    if task().is_none() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let options =
        Options::default().memory_bytes(INDEX_BUDGET_BYTES as usize).tuning(|t| t.segment_bytes(1 << 20));
    let store = Store::create(temp.path().join("store"), options).unwrap();
    let words = store.table("words", Rules::sorted::<String, Bitmap>().fold("bitmap")).unwrap();
    let (mut early, mut peak, mut chance, mut files) = (0, 0, Seeded::new(1), Vec::new());
    for file in 0..INDEXED_FILES {
        let mut batch = store.batch();
        for _ in 0..WORDS_OF_FILE {
            let word = word(&mut chance);
            batch.fold(&words, &word, &Bitmap::of(file));
            if word == "word7" && files.last() != Some(&file) {
                files.push(file);
            }
        }
        batch.commit(Durability::Process).unwrap();
        if file % 50 == 0 {
            peak = peak.max(Usage::now().anonymous_bytes);
        }
        if file == INDEXED_FILES / 5 {
            early = peak;
        }
    }
    store.settle().unwrap();
    peak = peak.max(Usage::now().anonymous_bytes);
    let found = words.get("word7").unwrap().expect("it is there");
    assert!(found.iter().eq(files), "all files of a word, and no other");
    let (written, indexed) = (store.stats().writes.user_bytes, words.stats().unwrap().disk_bytes);
    folddb_sim::process::report(format_args!("{early} {peak} {written} {indexed}"));
}

fn bench(name: &str, options: BenchOptions) -> folddb_bench::Report {
    let report = folddb_bench::run(name, &options, &mut |_| {}).expect("the bench runs");
    assert!(report.verified(), "{report}");
    report
}

#[test]
fn osmos_the_benchmark_program() {
    let report = bench("osmos", BenchOptions { scale: 0.0005, ..BenchOptions::default() });
    assert_eq!(report.figure(&["commits", "count"]).and_then(|count| count.as_u64()), Some(25_000));
}

// ---- HugeDB -------------------------------------------------------------------------------------

/// Each op goes into a run of its own, so that composition happens across runs.
fn hugedb_value(ops: &[(WriteOp, u64)]) -> Option<u64> {
    let place = Place::new();
    let store = place.create(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).expect("the table is created");
    for (op, value) in ops {
        table.as_bytes().write(*op, &1u64.to_be_bytes(), &value.to_le_bytes()).expect("it writes");
        store.flush().expect("it flushes");
    }
    let before = table.get(&1).expect("it reads");
    compact(&store, "t");
    assert_eq!(table.get(&1).expect("it reads"), before, "{ops:?}");
    before
}

const INSERT: WriteOp = WriteOp::PutIfAbsent;
const UPDATE: WriteOp = WriteOp::Put;
const DELETE: WriteOp = WriteOp::Delete;
const DELTA: WriteOp = WriteOp::Fold;

#[test]
fn hugedb_insert_update_delete_delta() {
    assert_eq!(hugedb_value(&[(INSERT, 1)]), Some(1));
    assert_eq!(hugedb_value(&[(INSERT, 1), (INSERT, 2)]), Some(1), "the first wins");
    assert_eq!(hugedb_value(&[(INSERT, 1), (UPDATE, 2)]), Some(2));
    assert_eq!(hugedb_value(&[(UPDATE, 1), (DELETE, 0)]), None);
    assert_eq!(hugedb_value(&[(UPDATE, 1), (DELTA, 2), (DELTA, 3)]), Some(6));
}

#[test]
fn hugedb_the_mended_composition() {
    assert_eq!(hugedb_value(&[(INSERT, 1), (DELTA, 10)]), Some(11));
    assert_eq!(
        hugedb_value(&[(UPDATE, 5), (INSERT, 1), (DELTA, 10)]),
        Some(15),
        "an insert on a value is none"
    );
    assert_eq!(
        hugedb_value(&[(UPDATE, 5), (DELETE, 0), (INSERT, 1)]),
        Some(1),
        "the old value does not come back"
    );
    assert_eq!(hugedb_value(&[(UPDATE, 5), (DELETE, 0), (DELTA, 10)]), Some(10), "the delta, and not 1");
    assert_eq!(hugedb_value(&[(DELTA, 10), (INSERT, 1)]), Some(10));
}

#[test]
fn hugedb_no_write_reads_the_disk() {
    let place = Place::new();
    let store = place.create(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    for key in 0..10_000 {
        table.put(&key, &key).unwrap();
    }
    store.close().unwrap();
    let store = place.open(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let opened = store.stats();
    for key in 0..10_000u64 {
        for op in [INSERT, UPDATE, DELETE, DELTA] {
            table.as_bytes().write(op, &key.to_be_bytes(), &1u64.to_le_bytes()).unwrap();
        }
    }
    table.delete_range(&0, &100).unwrap();
    let written = store.stats();
    assert_eq!((written.reads.pieces, written.reads.bytes), (opened.reads.pieces, opened.reads.bytes));
    assert_eq!(table.scan().count().unwrap(), 9900);
    assert!(store.stats().reads.pieces > written.reads.pieces, "the counters do count");
}

#[test]
fn hugedb_merge_factor() {
    for factor in [2, 4, 8] {
        let place = Place::new();
        let store = place.create(manual().tuning(|t| t.merge_factor(factor)));
        let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
        let mut most = 0;
        for round in 0..20 {
            for key in 0..100 {
                table.fold(&(key * 31 + round), &1).unwrap();
            }
            store.flush().unwrap();
            while store.background_step().unwrap().is_some() {}
            let runs = store.bytes_table("t").unwrap().stats().unwrap().runs;
            let fullest =
                (0..8).map(|tier| runs.iter().filter(|run| run.tier == tier).count()).max().unwrap_or(0);
            assert!(fullest <= factor, "{fullest} runs in a tier with a merge factor of {factor}");
            most = most.max(runs.len());
        }
        assert!(most >= factor - 1, "at most {most} runs with a merge factor of {factor}");
        assert!(store.stats().background.merges > 0);
    }
}

#[test]
fn hugedb_optimize() {
    let place = Place::new();
    let store = place.create(manual().tuning(|t| t.merge_factor(64)));
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    for round in 0..10 {
        for key in 0..1000 {
            table.fold(&key, &round).unwrap();
        }
        store.flush().unwrap();
    }
    for key in 0..500 {
        table.delete(&key).unwrap();
    }
    assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().runs.len(), 10);
    let mut looks = Vec::new();
    store
        .bytes_table("t")
        .unwrap()
        .compact_with(|progress| {
            looks.push(progress.bytes_done);
            ControlFlow::Continue(())
        })
        .unwrap();
    let stats = store.bytes_table("t").unwrap().stats().unwrap();
    assert_eq!((stats.runs.len(), stats.records), (1, 500), "one run, and nothing in it but what counts");
    assert!(!looks.is_empty() && looks.is_sorted());
    assert!(table.scan().into_iter().all(|row| row.unwrap().1 == 45));
}

#[test]
fn hugedb_the_memory_cache_is_saved_when_full() {
    let place = Place::new();
    let store = place.create(small());
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    for key in 0..20_000 {
        table.put(&key, &[1; 500]).unwrap();
    }
    store.settle().unwrap();
    let stats = store.stats();
    assert!(stats.background.flushes > 2, "{stats:?}");
    drop((table, store));
    let store = place.open(small());
    assert_eq!(store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap().scan().count().unwrap(), 20_000);
}

#[test]
fn hugedb_inserts_within_a_budget_of_memory() {
    let report = report_of("child_that_runs_hugedb", "");
    let peak: u64 = report.trim().parse().unwrap_or_else(|_| panic!("no number in {report:?}"));
    // At full size 160 MB for the store make a process of less than 200 MB; here it is a tenth of
    // the budget.
    assert!(peak < 16_000_000 + 24_000_000, "{peak} bytes");
    assert!(peak > 4_000_000, "{peak} bytes are no measurement");
}

#[test]
#[ignore = "run by `hugedb_inserts_within_a_budget_of_memory` as a process of its own"]
fn child_that_runs_hugedb() {
    if task().is_none() {
        return;
    }
    let report = bench(
        "hugedb",
        BenchOptions { scale: 0.02, memory_bytes: Some(16_000_000), ..BenchOptions::default() },
    );
    let peak = report.figure(&["peak_anonymous_bytes"]).and_then(|bytes| bytes.as_u64()).unwrap_or(0);
    folddb_sim::process::report(peak);
}

/// A store is its directory, and nothing else.
#[test]
fn a_store_may_be_copied_while_it_is_closed() {
    let place = Place::new();
    let store = place.create(small());
    store.table("t", Rules::sorted::<u64, u64>()).unwrap().put(&1, &2).unwrap();
    store.close().unwrap();
    let copy = place.dir().join("copy");
    copy_dir(&place.path(), &copy);
    let store = Store::open(&copy, small()).unwrap();
    assert_eq!(store.table("t", Rules::sorted::<u64, u64>()).unwrap().get(&1).unwrap(), Some(2));
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it lists").flatten() {
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it copies");
    }
}

// ---- leveled and elliptics: time ----------------------------------------------------------------

#[test]
fn leveled_auto_expiry() {
    let place = Place::new();
    let store = place.create(manual());
    let rules = || Rules::sorted::<String, String>().expire(Expire::After(Duration::from_secs(3600)));
    let table = store.table("sessions", rules()).unwrap();
    table.put("lasts an hour", "1").unwrap();
    table.with_lifetime(Lifetime::Until(moment(1))).put("is over", "2").unwrap();
    table.with_lifetime(Lifetime::Forever).put("lasts", "3").unwrap();
    assert_eq!(table.get("is over").unwrap(), None, "hidden at once, wherever it lies");
    let keys: Vec<_> = table.scan().into_iter().map(|row| row.unwrap().0).collect();
    assert_eq!(keys, ["lasts", "lasts an hour"]);
    compact(&store, "sessions");
    assert_eq!(
        store.bytes_table("sessions").unwrap().stats().unwrap().records,
        2,
        "and given back by merges"
    );
    assert!(table.head("lasts an hour").unwrap().unwrap().deadline.is_some());
}

#[test]
fn leveled_tags_with_retention_rules() {
    let place = Place::new();
    let store = place.create(manual());
    let keeps = [Keep::Latest, Keep::Versions(2), Keep::Window(Duration::from_secs(86_400)), Keep::Forever];
    for (keep, kept) in keeps.into_iter().zip([1, 2, 5, 5]) {
        let name = keep.to_string();
        let table = store.table(&name, Rules::sorted::<String, u64>().fold("sum:u64").keep(keep)).unwrap();
        for _ in 0..5 {
            table.fold("k", &1).unwrap();
        }
        compact(&store, &name);
        let history: Vec<_> = table.history("k", 9).unwrap().into_iter().map(|one| one.value).collect();
        assert_eq!(history, (0..kept).map(|back| Some(5 - back)).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn elliptics_version_history_on_and_off() {
    let place = Place::new();
    let store = place.create(manual());
    let blob = |n: u8| vec![n; 4000];
    for (name, keep, kept) in [("on", Keep::Versions(3), 3), ("off", Keep::Latest, 1)] {
        let rules = || Rules::sorted::<Vec<u8>, Vec<u8>>().separate(2048).keep(keep);
        let table = store.table(name, rules()).unwrap();
        for n in 1..=6 {
            table.put(&b"id"[..], &blob(n)).unwrap();
        }
        let check = |table: &Table<Vec<u8>, Vec<u8>>| {
            let history = table.history(&b"id"[..], 9).unwrap();
            assert_eq!(history.len(), kept);
            for (back, version) in history.iter().enumerate() {
                assert_eq!(version.value, Some(blob(6 - back as u8)), "{name}");
                if keep.keeps_past() {
                    assert_eq!(
                        table.get_at(&b"id"[..], AsOf::Seq(version.seq.unwrap())).unwrap(),
                        version.value
                    );
                }
            }
        };
        check(&table);
        store.flush().unwrap();
        table.put(&b"id"[..], &blob(6)).unwrap();
        table.delete(&b"id"[..]).unwrap();
        table.put(&b"id"[..], &blob(6)).unwrap();
        compact(&store, name);
        assert_eq!(table.get(&b"id"[..]).unwrap(), Some(blob(6)));
    }
}
