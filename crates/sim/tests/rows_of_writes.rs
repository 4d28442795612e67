//! What osmos, HugeDB and YDB promise of writes, row by row, by counting what whole programs do in
//! a simulated world: one test each, named after the row.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use folddb::{Durability, Options, Rules, Store, Table, WriteOp};
use folddb_sim::faulty_files::Call;
use folddb_sim::small_store;
use folddb_sim::world::{Made, SimDisk};

const MERGE_FACTOR: usize = 4;
const PART_BYTES: u64 = 128 << 10;

/// Rows between two flushes.
const FLUSHED: u64 = 1_000;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk)
        .tuning(|t| t.part_bytes(PART_BYTES).merge_factor(MERGE_FACTOR).value_segment_bytes(1 << 20))
}

fn settle(store: &Store) {
    store.flush().expect("it flushes");
    while store.background_step().expect("background work goes on").is_some() {}
}

/// The n-th key in no order; no two are the same.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn numbers(store: &Store) -> Table<u64, u64> {
    store.table("numbers", Rules::sorted::<u64, u64>().fold("sum:u64")).expect("the table")
}

/// What a program wrote, and how.
#[derive(Debug, Default)]
struct Written {
    /// How often bytes went to another file than those before: where a disk would have to seek.
    moves: u64,
    /// Bytes by what their file is: `part`, `log`, `values`, `MANIFEST`.
    bytes: BTreeMap<String, u64>,
}

impl Written {
    fn bytes_of(&self, kind: &str) -> u64 {
        self.bytes.get(kind).copied().unwrap_or(0)
    }
}

/// What a file is, by its name.
fn kind(name: &str) -> &str {
    name.rsplit_once('.').map_or(name.split('-').next().unwrap_or(name), |(_, ending)| ending)
}

/// Follows every write, and fails on one that does not begin where the last one of its file ended,
/// on a file that is begun twice, and on bytes that are written over: there is no exception.
fn follow(made: &[Made]) -> Written {
    let (mut written, mut ends, mut last) = (Written::default(), BTreeMap::<&str, u64>::new(), "");
    for made in made {
        let name: &str = &made.name;
        match made.call {
            Call::Create | Call::CreateAppend => {
                assert_eq!(ends.insert(name, 0), None, "{name} is begun a second time");
            }
            Call::Write | Call::Append => {
                let end = ends.get_mut(name).unwrap_or_else(|| panic!("{name} was not created"));
                assert_eq!(made.offset, *end, "{name} is written at another place than its end");
                *end += made.len_bytes;
                *written.bytes.entry(kind(name).to_owned()).or_default() += made.len_bytes;
                written.moves += u64::from(name != last);
                last = name;
            }
            Call::WriteOver => panic!("{name} is written over at {}", made.offset),
            _ => {}
        }
    }
    written
}

/// Random sums as HugeDB has them, from `rows.start` on: written, flushed, merged, read.
fn sums(disk: &SimDisk, rows: std::ops::Range<u64>) {
    let store = Store::open_or_create(SimDisk::store_dir(), options(disk)).expect("it opens");
    let table = numbers(&store);
    let first = rows.start;
    for n in rows {
        table.fold(&key(n), &n).expect("it writes");
        if n % FLUSHED == FLUSHED - 1 {
            settle(&store);
        }
    }
    assert_eq!(table.get(&key(first)).expect("it reads"), Some(first));
    store.close().expect("it closes");
}

#[test]
fn hugedb_no_random_writes() {
    let disk = SimDisk::new(1);
    sums(&disk, 0..20_000);
    sums(&disk, 20_000..40_000);
    let written = follow(&disk.made());
    assert!(written.bytes_of("log") > 40_000 * 16 && written.bytes_of("part") > 40_000 * 16);
}

/// Pieces of a part that are read from its end when it is opened: footer, facts, top index, and
/// filters with leaves.
const READS_OF_OPENING: u64 = 4;
const BLOCK_BYTES_MAX: u64 = 16 << 10;

#[test]
fn hugedb_merges_read_from_front_to_back() {
    let disk = SimDisk::new(1);
    let store = small_store::create(&disk, options(&disk));
    let table = numbers(&store);
    // Of each part how often it was read, and where the last read of its records ended.
    let (mut merged, mut parts) = (0, BTreeMap::<String, (u64, u64)>::new());
    for n in 0..40_000 {
        table.fold(&key(n), &n).unwrap();
        if n % FLUSHED == FLUSHED - 1 {
            disk.forget_diary();
            settle(&store);
            for made in disk.made().iter().filter(|made| kind(&made.name) == "part") {
                match made.call {
                    Call::Read => {
                        let (count, end) = parts.entry(made.name.to_string()).or_default();
                        *count += 1;
                        if *count > READS_OF_OPENING {
                            // A block that the last read has cut in two is read again.
                            let again = end.saturating_sub(made.offset);
                            assert!(made.offset <= *end && again <= BLOCK_BYTES_MAX, "{made:?} after {end}");
                            *end = made.offset + made.len_bytes;
                            merged += made.len_bytes;
                        }
                    }
                    Call::Remove => drop(parts.remove(&*made.name)),
                    _ => {}
                }
            }
        }
    }
    assert!(merged > 40_000 * 10, "merges read {merged} bytes");
}

#[test]
fn osmos_an_update_is_written_log_n_times_later_on_all_of_it_sequential() {
    // Each time that there are as many runs again as a merge takes, all is written once more.
    let mut times = Vec::new();
    for power in 1..4 {
        let (disk, rows) = (SimDisk::new(1), FLUSHED * (MERGE_FACTOR as u64).pow(power));
        sums(&disk, 0..rows);
        let written = follow(&disk.made());
        let store = small_store::open(&disk, options(&disk));
        store.bytes_table("numbers").unwrap().compact().unwrap();
        let once = store.bytes_table("numbers").unwrap().stats().unwrap().disk_bytes;
        times.push(written.bytes_of("part") as f64 / once as f64);
    }
    for (power, times) in (1..).zip(&times) {
        let tiers = f64::from(power);
        assert!((tiers * 0.7..tiers + 1.5).contains(times), "{times:.2} times over {power} tiers");
    }
}

#[test]
fn ydb_many_small_keys_are_written_on_few_seeks() {
    const ROWS: u64 = 64_000;
    let disk = SimDisk::new(1);
    sums(&disk, 0..ROWS);
    let written = follow(&disk.made());
    assert!(written.moves * 50 < ROWS, "{} moves for {ROWS} rows", written.moves);
}

/// Documents that are overwritten, removed and collected, in a sorted and in a hashed table.
fn documents(disk: &SimDisk, rounds: std::ops::Range<u64>) {
    let store = Store::open_or_create(SimDisk::store_dir(), options(disk)).expect("it opens");
    let sorted = store.table("sorted", Rules::sorted::<u64, Vec<u8>>().separate(1024)).expect("it works");
    let hashed = store.table("hashed", Rules::hashed::<u64, Vec<u8>>()).expect("it works");
    for round in rounds {
        for table in [&sorted, &hashed] {
            for number in 0..300 {
                let key = key(number);
                table.put(&key, &vec![round as u8; 2_000 + (key % 1_000) as usize]).expect("it writes");
            }
            table.delete(&key(round)).expect("it writes");
        }
        settle(&store);
    }
    let reclaimed = store.stats().background;
    assert!(reclaimed.reclaims + reclaimed.value_segments_reclaimed > 0, "{reclaimed:?}");
    store.close().expect("it closes");
}

#[test]
fn ydb_nothing_is_written_but_at_the_end_of_its_file() {
    let disk = SimDisk::new(1);
    documents(&disk, 0..10);
    documents(&disk, 10..20);
    let written = follow(&disk.made());
    assert!(written.bytes_of("values") > 2 * 20 * 300 * 2_000);
}

#[test]
fn ydb_the_collector_takes_less_than_half_of_what_is_written() {
    let disk = SimDisk::new(1);
    let store = small_store::create(&disk, options(&disk));
    let kinds = [("sorted", Rules::sorted::<u64, Vec<u8>>().separate(1024)), ("hashed", Rules::hashed())];
    for (name, rules) in kinds {
        let table = store.table(name, rules).unwrap();
        let before = store.stats();
        let (mut reads, mut gets) = (0, 0);
        for n in 0..12_000u64 {
            // Half of the keys are written nine times as often: segments die unevenly.
            let number = if n % 10 == 0 { 500 + key(n) % 500 } else { key(n) % 500 };
            table.put(&number, &vec![n as u8; 3_000]).unwrap();
            if n % 500 != 499 {
                continue;
            }
            store.flush().unwrap();
            while store.background_step().unwrap().is_some() {
                let values = store.stats().reads.values;
                assert!(table.get(&number).unwrap().is_some());
                (reads, gets) = (reads + store.stats().reads.values - values, gets + 1);
            }
        }
        let after = store.stats();
        let copied = after.background.value_bytes_copied - before.background.value_bytes_copied;
        let put = after.writes.value_bytes - before.writes.value_bytes;
        assert!(copied > 0 && copied < put, "{name}: {copied} bytes are copied while {put} are put");
        assert!(reads <= gets, "a get costs one read, whatever the collector does: {reads} of {gets}");
    }
}

#[test]
fn osmos_the_files_of_a_table_are_not_too_many() {
    let disk = SimDisk::new(1);
    let store = small_store::create(&disk, options(&disk));
    let table = numbers(&store);
    let mut most = 0;
    for n in 0..64 * FLUSHED {
        table.fold(&key(n), &n).unwrap();
        if n % FLUSHED != FLUSHED - 1 {
            continue;
        }
        settle(&store);
        let stats = table.stats().unwrap();
        let flushes = n / FLUSHED + 1;
        // Each tier has less runs than a merge takes, and each tier is larger by as much.
        let tiers = u64::from(flushes.ilog(MERGE_FACTOR as u64)) + 1;
        let (runs, found) = (tiers * (MERGE_FACTOR as u64 - 1), stats.runs.len() as u64);
        assert!(found <= runs, "{found} runs after {flushes} flushes");
        // Only the last part of a run is much smaller than a part may be.
        let parts: u64 = stats.runs.iter().map(|run| run.parts.len() as u64).sum();
        let bound = stats.disk_bytes / (PART_BYTES / 2) + found;
        assert!(parts <= bound, "{parts} parts of {found} runs, {} bytes", stats.disk_bytes);
        let files = disk.names(&SimDisk::store_dir()).len() as u64;
        assert!(files <= parts + 8, "{files} files of {parts} parts");
        most = most.max(files);
    }
    assert!(most > 8, "{most}");
}

/// What a store wrote for rows whose keys come again and again.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    log_bytes: u64,
    part_bytes: u64,
    moves: u64,
    records_merged: u64,
}

fn cost_of(write: impl Fn(&Table<u64, u64>, u64, u64)) -> Cost {
    let disk = SimDisk::new(1);
    let store = small_store::create(&disk, options(&disk));
    let table = numbers(&store);
    for n in 0..32 * FLUSHED {
        write(&table, key(n % (5 * FLUSHED / 2)), n);
        if n % FLUSHED == FLUSHED - 1 {
            settle(&store);
        }
    }
    let written = follow(&disk.made());
    Cost {
        log_bytes: written.bytes_of("log"),
        part_bytes: written.bytes_of("part"),
        moves: written.moves,
        records_merged: store.stats().background.records_merged,
    }
}

fn put(table: &Table<u64, u64>, key: u64, value: u64) {
    assert!(table.put(&key, &value).is_ok());
}

#[test]
fn osmos_folding_writes_and_merges_no_more_than_replacing() {
    let replaced = cost_of(put);
    let folded = cost_of(|table, key, value| assert!(table.fold(&key, &value).is_ok()));
    // Sums are larger numbers than their last operands, so blocks may take a little more.
    assert!(folded.part_bytes * 10 <= replaced.part_bytes * 11, "{folded:?}, {replaced:?}");
    assert_eq!(Cost { part_bytes: replaced.part_bytes, ..folded }, replaced);
}

#[test]
fn osmos_reads_leave_writes_as_they_are() {
    let alone = cost_of(put);
    let beside_reads = cost_of(|table, key, value| {
        put(table, key, value);
        assert!(table.get(&key).expect("it reads").is_some());
        if value % 500 == 0 {
            assert!(table.scan().from(&key).limit(100).into_iter().all(|row| row.is_ok()));
        }
    });
    assert_eq!(beside_reads, alone);
}

#[test]
fn hugedb_a_record_adds_less_than_five_bytes_in_the_log_and_than_one_in_a_part() {
    const ROWS: u64 = 20_000;
    for op in [WriteOp::Put, WriteOp::PutIfAbsent, WriteOp::Fold, WriteOp::Delete] {
        let disk = SimDisk::new(1);
        let store = small_store::create(&disk, options(&disk));
        let rules = Rules::sorted::<u64, u64>().fold("sum:u64").filter_bits(0);
        let table = store.table("numbers", rules).unwrap();
        let value_bytes = if op == WriteOp::Delete { 0 } else { 8 };
        for first in (0..ROWS).step_by(1_000) {
            let mut batch = store.batch();
            for n in first..first + 1_000 {
                let value = &key(n ^ 1 << 40).to_le_bytes()[..value_bytes];
                batch.write(table.as_bytes(), op, &key(n).to_be_bytes(), value);
            }
            batch.commit(Durability::Process).unwrap();
        }
        store.flush().unwrap();
        let stats = store.stats();
        let more = |bytes: u64| bytes as f64 / ROWS as f64 - (8 + value_bytes) as f64;
        // A byte for the operation, one for the table, one for each length; and the frame.
        let log = more(stats.writes.log_bytes);
        assert!((4.0..5.0).contains(&log), "{op:?}: {log} bytes more for each record of the log");
        let part = more(stats.background.part_bytes);
        assert!(part < 1.0, "{op:?}: {part} bytes more for each record of a part");
    }
}

#[test]
fn ydb_system_calls_by_kind() {
    let disk = SimDisk::new(1);
    let store = small_store::create(&disk, options(&disk));
    let table = store.table("documents", Rules::hashed::<u64, Vec<u8>>()).unwrap();
    let calls = |what: &str| {
        let mut by_kind = BTreeMap::<String, u64>::new();
        disk.made().iter().for_each(|made| *by_kind.entry(format!("{:?}", made.call)).or_default() += 1);
        disk.forget_diary();
        println!("{what}: {by_kind:?}"); // `--nocapture` shows the table
        by_kind
    };
    calls("creating");
    (0..1_000).for_each(|n| assert!(table.put(&key(n), &vec![n as u8; 142]).is_ok()));
    let puts = calls("1,000 puts");
    store.sync().unwrap();
    let sync = calls("a sync");
    settle(&store);
    calls("settling");
    (0..1_000).for_each(|n| assert!(table.get(&key(n)).unwrap().is_some()));
    let gets = calls("1,000 gets");
    // An append is a call of the host; into a map of the file it is none of the system. One is into
    // the log, one into the values.
    assert!(puts["Append"] <= 2_010 && !puts.contains_key("Read"), "{puts:?}");
    assert!(puts.values().sum::<u64>() < 2_050, "{puts:?}");
    assert!(sync.values().sum::<u64>() < 20, "{sync:?}");
    assert_eq!(gets["Read"], 1_000, "{gets:?}");
    assert!(gets.values().sum::<u64>() <= 1_010, "{gets:?}"); // the others open a file
}
