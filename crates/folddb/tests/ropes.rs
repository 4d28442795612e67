//! Values in several pieces: long operands that are joined without being read, through any merges,
//! crashes and copies of the store.

mod common;

use std::collections::BTreeMap;

use common::small;
use folddb::maintenance::{BackupOptions, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::{HeadRule, Locate, LocatedPiece, Options, Rules, Store, Table};

fn options() -> Options {
    small().tuning(|t| t.part_bytes(64 << 10).merge_factor(2))
}

fn lists(store: &Store) -> Table<u64, Vec<u8>> {
    let rules = Rules::sorted::<u64, Vec<u8>>().fold("append:,").separate(100).head(HeadRule::First(8));
    store.table("lists", rules).expect("the table")
}

fn operand(key: u64, round: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| b'a' + ((at + key * 7 + round * 3) % 26) as u8).collect()
}

/// What the keys should have.
type Expected = BTreeMap<u64, Vec<u8>>;

fn append(table: &Table<u64, Vec<u8>>, expected: &mut Expected, rounds: std::ops::Range<u64>) {
    for round in rounds {
        for key in 0..40 {
            // Long ones, short ones, and now and then another op.
            let len = if (key + round) % 4 == 0 { 9 } else { 500 + (key * 31 + round * 17) as usize % 900 };
            let operand = operand(key, round, len);
            match (key * 5 + round) % 23 {
                0 => {
                    table.put(&key, &operand).expect("written");
                    expected.insert(key, operand);
                }
                1 => {
                    table.put_if_absent(&key, &operand).expect("written");
                    expected.entry(key).or_insert(operand);
                }
                2 => {
                    table.delete(&key).expect("written");
                    expected.remove(&key);
                }
                _ => {
                    table.fold(&key, &operand).expect("it is read");
                    let value = expected.entry(key).or_default();
                    if !value.is_empty() {
                        value.push(b',');
                    }
                    value.extend_from_slice(&operand);
                }
            }
        }
    }
}

fn check(store: &Store, expected: &Expected) {
    let table = lists(store);
    for key in 0..40 {
        let value = expected.get(&key);
        assert_eq!(table.get(&key).expect("it is read").as_ref(), value, "key {key}");
        let head = table.head(&key).expect("it is read");
        assert_eq!(head.as_ref().map(|head| head.size_bytes), value.map(|value| value.len() as u64));
        assert_eq!(head.map(|head| head.bytes), value.map(|value| value[..value.len().min(8)].to_vec()));
    }
    let rows = |reverse: bool| {
        let scan = if reverse { table.scan().reverse() } else { table.scan() };
        scan.into_iter().map(|row| row.expect("it is read")).collect::<Expected>()
    };
    assert!(rows(false) == *expected && rows(true) == *expected);
}

#[test]
fn long_operands_are_joined_and_never_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let (table, mut expected) = (lists(&store), Expected::new());
    for round in 0..24 {
        append(&table, &mut expected, round * 2..round * 2 + 2);
        if round % 3 == 0 {
            check(&store, &expected);
        }
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    check(&store, &expected);
    let stats = store.stats();
    assert!(
        stats.background.merges > 3 && stats.background.part_bytes < stats.writes.value_bytes / 4,
        "{stats:?}"
    );
    store.bytes_table("lists").unwrap().compact().unwrap();
    // Each key is one record now, and its head reads no value.
    let records = store.bytes_table("lists").unwrap().stats().unwrap().records;
    assert_eq!(records, expected.len() as u64);
    let reads = store.stats().reads.values;
    for (key, value) in &expected {
        let head = table.head(key).unwrap().unwrap();
        assert_eq!((head.size_bytes, &head.bytes[..]), (value.len() as u64, &value[..value.len().min(8)]));
        assert!(head.pieces > 1 || value.len() < 3000, "{head:?}");
    }
    assert_eq!(store.stats().reads.values, reads);
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    check(&Store::open(&path, options()).unwrap(), &expected);
}

#[test]
fn ropes_survive_a_process_that_dies_backups_and_a_repair() {
    let dir = tempfile::tempdir().unwrap();
    let (path, place, restored) =
        (dir.path().join("store"), dir.path().join("backups"), dir.path().join("restored"));
    let store = Store::create(&path, options()).unwrap();
    let mut expected = Expected::new();
    append(&lists(&store), &mut expected, 0..5);
    store.flush().unwrap();
    append(&lists(&store), &mut expected, 5..9);
    drop(store); // as if the process died: only the log has the rest
    let store = Store::open(&path, options()).unwrap();
    check(&store, &expected);
    append(&lists(&store), &mut expected, 9..12);
    store.backup(&place, &BackupOptions::default()).unwrap();
    let at_backup = expected.clone();
    append(&lists(&store), &mut expected, 12..14);
    drop(store);
    Store::restore(&place, &restored, &RestoreOptions::default(), &options()).unwrap();
    check(&Store::open(&restored, options()).unwrap(), &at_backup);
    let mended = dir.path().join("mended");
    let report = Store::repair(&path, &mended, &RepairOptions::default(), &options()).unwrap();
    assert!(report.is_complete(), "{:?}", report.findings);
    check(&Store::open(&mended, options()).unwrap(), &expected);
    let dump = dir.path().join("dump");
    let store = Store::open(&path, options()).unwrap();
    let mut file = std::fs::File::create(&dump).unwrap();
    store.dump(&[], &mut file).unwrap();
    let loaded = Store::create(dir.path().join("loaded"), options()).unwrap();
    let mut file = std::io::BufReader::new(std::fs::File::open(&dump).unwrap());
    loaded.load(&mut file, &Default::default()).unwrap();
    check(&loaded, &expected);
}

#[test]
fn a_snapshot_keeps_the_pieces_that_it_sees() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = lists(&store);
    let long = |byte: u8| vec![byte; 200];
    table.fold(&1, &long(b'a')).unwrap();
    table.fold(&1, &long(b'b')).unwrap();
    let then = store.snapshot();
    table.fold(&1, &long(b'c')).unwrap();
    table.fold(&1, &b"end".to_vec()).unwrap();
    for _ in 0..2 {
        let before = [long(b'a'), long(b'b')].join(&b',');
        assert_eq!(then.get(&table, &1).unwrap().as_ref(), Some(&before));
        let now = [before, long(b'c'), b"end".to_vec()].join(&b',');
        assert_eq!(table.get(&1).unwrap(), Some(now));
        store.flush().unwrap();
        store.bytes_table("lists").unwrap().compact().unwrap();
    }
    let located = table.locate(&1, Locate::default()).unwrap().unwrap();
    let lens: Vec<u64> = located.pieces().iter().map(LocatedPiece::len_bytes).collect();
    assert_eq!((lens, located.len_bytes()), (vec![200, 1, 200, 1, 200, 4], 606));
    assert!(located.as_file().is_none());
    let mut copied = Vec::new();
    located.write_to(&mut copied).unwrap();
    assert_eq!(Some(copied), table.get(&1).unwrap());
}

#[test]
fn damage_to_a_piece_is_reported_and_costs_only_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = lists(&store);
    for key in [1, 2] {
        table.fold(&key, &operand(key, 0, 300)).unwrap();
        table.fold(&key, &operand(key, 1, 300)).unwrap();
    }
    store.flush().unwrap();
    let located = table.locate(&1, Locate::default().verify(false)).unwrap().unwrap();
    let Some(LocatedPiece::InFile(last)) = located.pieces().last() else { panic!("it lies in a file") };
    let (segment, at) = (last.path().to_owned(), last.offset() as usize + 7);
    drop(located);
    store.close().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let store = Store::open(&path, options()).unwrap();
    let table = lists(&store);
    let error = table.get(&1).unwrap_err().to_string();
    assert!(error.contains("`lists`") && error.contains(".values"), "{error}");
    assert!(table.locate(&1, Locate::default()).is_err() && table.get(&2).unwrap().is_some());
    assert_eq!(table.head(&1).unwrap().unwrap().size_bytes, 601);
    drop((table, store));
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
}

/// A merge of lists frees nothing, so runs remain separate, and gets join the pieces of a key: once
/// the gets have paid for a merge, there is one.
#[test]
fn runs_of_lists_are_merged_once_gets_have_read_as_much_for_want_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), small()).unwrap();
    let table: Table<u64, String> =
        store.table("lists", Rules::sorted::<u64, String>().fold("append:,")).unwrap();
    let mut rounds = 0..;
    let mut add_run = || {
        let round: u32 = rounds.next().unwrap();
        (0..2000u64).for_each(|key| _ = table.fold(&key, &format!("{round:060}")).unwrap());
        store.flush().unwrap();
        round
    };
    add_run();
    for _ in 0..3 {
        add_run();
        table.compact().unwrap(); // this shows what merges free
    }
    let newest = (0..4).map(|_| add_run()).last().unwrap();
    while store.background_step().unwrap().is_some() {}
    let runs = || table.as_bytes().stats().unwrap().runs.len();
    let before = runs();
    assert!(before >= 4, "{before} runs");
    for key in 0..1000 {
        // Each pays 8 KiB for each run beyond the first; all runs are a megabyte.
        let value = table.get(&(key % 2000)).unwrap().unwrap();
        assert_eq!(value.split(',').count() as u32, newest + 1, "of each round one");
    }
    while store.background_step().unwrap().is_some() {}
    assert_eq!(runs(), 1);
    assert_eq!(table.get(&7).unwrap().unwrap().split(',').count() as u32, newest + 1);
}
