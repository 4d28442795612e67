//! What osmos, leveled and elliptics promise of reads, row by row, by counting the calls of a
//! simulated world: one test each, named after the row.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use folddb::{HeadRule, Keep, Options, Rules, Store, Table};
use folddb_sim::faulty_files::Call;
use folddb_sim::small_store;
use folddb_sim::world::{Made, SimDisk};

const MERGE_FACTOR: usize = 4;

/// Rows between two flushes.
const FLUSHED: u64 = 1_000;

type Blobs = Table<u64, Vec<u8>>;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.merge_factor(MERGE_FACTOR).value_segment_bytes(1 << 20))
}

fn settle(store: &Store) {
    store.flush().expect("it flushes");
    while store.background_step().expect("background work goes on").is_some() {}
}

/// The n-th key in no order; no two are the same.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Closes a store and opens it again, with nothing of its files in memory and an empty diary.
fn reopened(disk: &SimDisk, store: Store) -> Store {
    store.close().expect("it closes");
    let store = small_store::open(disk, options(disk));
    disk.forget_diary();
    store
}

/// The reads of files with this ending since the diary was forgotten, which it is again.
fn reads(disk: &SimDisk, ending: &str) -> Vec<Made> {
    let mut made = disk.made();
    disk.forget_diary();
    made.retain(|made| made.call == Call::Read && made.name.ends_with(ending));
    made
}

fn bytes(reads: &[Made]) -> u64 {
    reads.iter().map(|read| read.len_bytes).sum()
}

#[test]
fn osmos_a_search_looks_into_log_n_runs_at_most() {
    for power in 1..4 {
        let disk = SimDisk::new(1);
        let store = small_store::create(&disk, options(&disk));
        let table = store.table("numbers", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
        let flushes = (MERGE_FACTOR as u64).pow(power) - 1; // the most runs: every tier is nearly full
        for n in 0..flushes * FLUSHED {
            table.fold(&key(n), &1).unwrap();
            if n % FLUSHED == FLUSHED - 1 {
                table.fold(&7, &1).unwrap(); // this key is in every run
                settle(&store);
            }
        }
        let runs = table.stats().unwrap().runs.len() as u64;
        drop(table);
        let store = reopened(&disk, store);
        let table = store.table("numbers", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
        assert_eq!(table.get(&7).unwrap(), Some(flushes));
        let met = store.stats().reads.operands_visited_max;
        disk.forget_diary();
        (0..100).for_each(|n| assert_eq!(table.get(&key(n * 9)).unwrap(), Some(1)));
        let read = reads(&disk, ".part").len() as u64;
        assert!(runs <= u64::from(power) * (MERGE_FACTOR as u64 - 1), "{runs} runs of {flushes} flushes");
        assert!(met <= runs, "{met} operands in {runs} runs");
        // Of each run a leaf of the index, a part of the filter, and a block.
        assert!(read <= 100 * 3 * runs, "{read} reads of 100 gets in {runs} runs");
    }
}

#[test]
fn osmos_the_block_size_steers_fan_out_and_the_cost_of_reads() {
    const ROWS: u64 = 40_000;
    let mut pieces_before = None;
    for block_bytes in [1 << 10, 4 << 10, 16 << 10, 64 << 10] {
        let disk = SimDisk::new(1);
        let store = small_store::create(&disk, options(&disk));
        // Without filters: all that is read are blocks, and what leads to them.
        let rules = || Rules::sorted::<u64, u64>().block_bytes(block_bytes).filter_bits(0);
        let table = store.table("numbers", rules()).unwrap();
        (0..ROWS).for_each(|n| assert!(table.put(&key(n), &key(n + 1)).is_ok()));
        table.compact().unwrap();
        drop(table);
        let store = reopened(&disk, store);
        let table = store.table("numbers", rules()).unwrap();
        let mut pieces = BTreeMap::new();
        for n in 0..ROWS {
            assert_eq!(table.get(&key(n)).unwrap(), Some(key(n + 1)));
            if n % 1_000 == 999 {
                pieces.extend(reads(&disk, ".part").iter().map(|read| (read.offset, read.len_bytes)));
            }
        }
        // A read is of a block, and there are as many less as they are larger.
        let (count, largest) = (pieces.len(), pieces.values().copied().max().unwrap_or(0));
        let size = u64::from(block_bytes);
        assert!((size / 2..size * 2).contains(&largest), "{largest} bytes of a block of {block_bytes}");
        if let Some(before) = pieces_before {
            assert!(count * 3 < before, "{count} pieces of {block_bytes}, {before} of a fourth");
        }
        pieces_before = Some(count);
    }
}

/// A store with blobs, opened again.
fn with_blobs(disk: &SimDisk, rules: &Rules<u64, Vec<u8>>, blobs: u64, len: usize) -> Store {
    let store = small_store::create(disk, options(disk));
    let table = store.table("blobs", rules.clone()).expect("the table");
    for n in 0..blobs {
        table.put(&key(n), &vec![n as u8; len]).expect("it writes");
    }
    settle(&store);
    drop(table);
    reopened(disk, store)
}

#[test]
fn elliptics_a_request_is_one_read_with_versions_and_without() {
    for rules in [Rules::sorted::<u64, Vec<u8>>().separate(1024), Rules::hashed()] {
        for keep in [Keep::Latest, Keep::Versions(3)] {
            let disk = SimDisk::new(1);
            let store = small_store::create(&disk, options(&disk));
            let rules = rules.clone().keep(keep);
            let table: Blobs = store.table("blobs", rules.clone()).unwrap();
            for round in 0..4 {
                (0..200).for_each(|n| assert!(table.put(&key(n), &vec![round; 3_000]).is_ok()));
                settle(&store);
            }
            drop(table);
            let store = reopened(&disk, store);
            let table: Blobs = store.table("blobs", rules).unwrap();
            (0..200).for_each(|n| assert!(table.contains(&key(n)).unwrap())); // the index is in memory
            disk.forget_diary();
            (0..200).for_each(|n| assert_eq!(table.get(&key(n)).unwrap(), Some(vec![3; 3_000])));
            let opened = disk.made().iter().filter(|made| made.call != Call::Read).count();
            assert!(opened <= 20, "{keep:?}: {opened} calls to open the files of values");
            let read = reads(&disk, "").len();
            assert!((200..=200 + opened).contains(&read), "{keep:?}: {read} reads of 200 gets");
            let past = table.history(&key(7), 2).unwrap();
            // One for each version, and one that opens the file of an older one.
            let read = reads(&disk, "").len();
            assert!(read <= past.len() + 1, "{keep:?}: {read} reads of {} versions", past.len());
        }
    }
}

#[test]
fn elliptics_what_an_opening_reads_is_not_that_of_its_values() {
    for rules in [Rules::sorted::<u64, Vec<u8>>().separate(64), Rules::hashed()] {
        let opened = [100, 10_000].map(|len| {
            let disk = SimDisk::new(1);
            with_blobs(&disk, &rules, 2_000, len).close().unwrap();
            disk.forget_diary();
            let store = small_store::open(&disk, options(&disk));
            let table: Blobs = store.table("blobs", rules.clone()).unwrap();
            let read = bytes(&reads(&disk, ""));
            assert!(store.stats().disk.value_bytes > 2_000 * len as u64);
            assert!(table.contains(&key(7)).unwrap());
            read
        });
        let [short, long] = opened;
        // A little of each segment of 1 MiB is read, and nothing of each value.
        assert!(long < short + (128 << 10), "{short} bytes are read of blobs of 100, {long} of 10,000");
    }
}

#[test]
fn leveled_scans_of_keys_and_heads_read_no_page_of_a_value() {
    let disk = SimDisk::new(1);
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(1024).head(HeadRule::First(8));
    let store = with_blobs(&disk, &rules, 2_000, 5_000);
    let table: Blobs = store.table("blobs", rules).unwrap();
    assert_eq!(table.scan().count().unwrap(), 2_000);
    assert_eq!(table.scan().heads().filter(|row| row.is_ok()).count(), 2_000);
    (0..2_000)
        .for_each(|n| assert!(table.head(&key(n)).unwrap().is_some() && table.contains(&key(n)).unwrap()));
    let made = disk.made();
    assert!(!reads(&disk, ".part").is_empty());
    // What is not read does not come into the page cache: a store maps no file to read it.
    let of_values: Vec<&Made> = made.iter().filter(|made| made.name.ends_with(".values")).collect();
    assert!(of_values.iter().all(|made| made.call != Call::Read), "{of_values:?}");
    assert_eq!(table.scan().into_iter().filter(|row| row.is_ok()).count(), 2_000);
    assert!(bytes(&reads(&disk, ".values")) >= 2_000 * 5_000, "and the counter does count");
}

#[test]
fn leveled_hash_trees_are_rebuilt_by_one_pass_over_keys() {
    let disk = SimDisk::new(1);
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(1024);
    let store = with_blobs(&disk, &rules, 3_000, 5_000);
    let table: Blobs = store.table("blobs", rules).unwrap();
    let part_bytes = table.stats().unwrap().disk_bytes;
    disk.forget_diary();
    let digest = table.as_bytes().scan().digest(3, 1).unwrap();
    let made = disk.made();
    assert!(made.iter().all(|made| !made.name.ends_with(".values")), "no value is read");
    let read = reads(&disk, ".part");
    assert!(bytes(&read) * 10 <= part_bytes * 11, "{} bytes of {part_bytes} of keys", bytes(&read));
    let again = table.as_bytes().scan().digest(3, 1).unwrap();
    assert_eq!(digest.root(), again.root());
}
