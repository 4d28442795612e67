//! What leveled, YDB and the elliptics BLOB backend do, row by row: one test each, named after the
//! row.

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use folddb::time::moment;
use folddb::{
    BackgroundWork, Durability, Expire, HeadRule, Keep, Lifetime, Locate, Options, Rules, Store, Table,
    ValuePlacement,
};
use folddb_host::resident::Resident;
use folddb_sim::chance::Seeded;
use folddb_sim::place::Place;
use folddb_sim::world::SimDisk;

const MEMORY_BYTES: usize = 4 << 20;

fn small() -> Options {
    let options = Options::default()
        .memory_bytes(MEMORY_BYTES)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10));
    options.disk_reserve_bytes(0)
}

fn manual() -> Options {
    small().background(BackgroundWork::Manual)
}

type Blobs = Table<u64, Vec<u8>>;

fn rules() -> Rules<u64, Vec<u8>> {
    Rules::sorted::<u64, Vec<u8>>().separate(1024)
}

fn blobs(store: &Store) -> Blobs {
    store.table("blobs", rules()).expect("the table")
}

/// More than a hundred years.
const LONG_MS: u64 = 4_000_000_000_000;

/// A value of some kilobytes that begins with the round in which it was written.
fn blob(key: u64, round: u64) -> Vec<u8> {
    let len = 4096 + (key.wrapping_mul(0x9e37_79b9) % 8192) as usize;
    let mut value = vec![(key * 31 + round * 7) as u8; len];
    value[..8].copy_from_slice(&round.to_le_bytes());
    value
}

fn fill(table: &Blobs, keys: u64, round: u64) {
    (0..keys).for_each(|key| assert!(table.put(&key, &blob(key, round)).is_ok()));
}

fn settle(store: &Store) {
    store.flush().expect("it flushes");
    while store.background_step().expect("background work goes on").is_some() {}
}

fn compact(store: &Store, table: &str) {
    store.bytes_table(table).expect("a table").compact().expect("it merges");
}

// ---- leveled ------------------------------------------------------------------------------------

#[test]
fn leveled_head_beside_get() {
    let place = Place::new();
    let store = place.create(manual());
    let table = store.table("blobs", rules().head(HeadRule::First(8))).expect("the table");
    (0..100).for_each(|key| assert!(table.put(&key, &blob(key, 3)).is_ok()));
    settle(&store);
    for key in 0..100 {
        let head = table.head(&key).unwrap().expect("it is there");
        assert_eq!((head.size_bytes, head.bytes), (blob(key, 3).len() as u64, 3_u64.to_le_bytes().to_vec()));
        assert!(head.is_separated && head.written.is_some());
    }
    assert_eq!(table.scan().heads().filter(|row| row.is_ok()).count(), 100);
    assert_eq!(store.stats().reads.values, 0, "no head was taken out of the value log");
    assert_eq!(table.get(&7).unwrap(), Some(blob(7, 3)));
    assert_eq!(store.stats().reads.values, 1);
}

#[test]
fn leveled_keys_and_metadata_apart_from_values() {
    let place = Place::new();
    let store = place.create(manual());
    let table = blobs(&store);
    for round in 0..5 {
        fill(&table, 200, round);
        store.flush().unwrap();
    }
    let before = store.stats();
    compact(&store, "blobs");
    let after = store.stats();
    assert_eq!(after.writes.value_bytes, before.writes.value_bytes, "merging keys writes no value");
    assert_eq!(after.reads.values, before.reads.values, "and reads none");
    let index_bytes = store.bytes_table("blobs").unwrap().stats().unwrap().disk_bytes;
    assert!(
        index_bytes * 20 < after.disk.value_live_bytes,
        "{index_bytes} of keys, {} of values",
        after.disk.value_live_bytes
    );
}

#[test]
fn leveled_each_table_has_its_rules_for_metadata_and_retention() {
    let place = Place::new();
    let store = place.create(manual());
    let plain = blobs(&store);
    let first = store.table("first", rules().head(HeadRule::First(8))).unwrap();
    let json = Rules::sorted::<u64, Vec<u8>>().separate(1024).head(HeadRule::Json("/kind".to_owned()));
    let json = store.table("json", json).unwrap();
    let document = format!("{{\"kind\":\"letter\",\"text\":\"{}\"}}", "x".repeat(5000)).into_bytes();
    plain.put(&1, &blob(1, 9)).unwrap();
    first.put(&1, &blob(1, 9)).unwrap();
    json.put(&1, &document).unwrap();
    let head = |table: &Blobs| table.head(&1).unwrap().unwrap().bytes;
    assert!(head(&plain).is_empty());
    assert_eq!(head(&first), 9_u64.to_le_bytes());
    assert!(String::from_utf8(head(&json)).unwrap().contains("letter"));
    assert_eq!(store.stats().reads.values, 0);

    // How long values are kept is up to each table: in one batch, through the same merges.
    let kept: Vec<Blobs> = [("one", Keep::Latest), ("two", Keep::Versions(2)), ("all", Keep::Forever)]
        .into_iter()
        .map(|(name, keep)| store.table(name, rules().keep(keep)).expect("a table"))
        .collect();
    let expiring = store.table("expiring", rules().expire(Expire::ByWrite)).unwrap();
    for round in 0..4 {
        let mut batch = store.batch();
        for table in &kept {
            batch.put(table, &1, &blob(1, round));
        }
        batch.commit(Durability::Process).unwrap();
        expiring
            .with_lifetime(Lifetime::Until(moment(round * LONG_MS)))
            .put(&round, &blob(1, round))
            .unwrap();
        settle(&store);
    }
    compact(&store, "expiring");
    ["one", "two", "all"].into_iter().for_each(|name| compact(&store, name));
    let states: Vec<usize> = kept.iter().map(|table| table.history(&1, 10).unwrap().len()).collect();
    assert_eq!(states, [1, 2, 4]);
    assert_eq!(kept[2].history(&1, 10).unwrap()[3].value, Some(blob(1, 0)));
    assert_eq!(expiring.scan().count().unwrap(), 3, "the first had expired when it was written");
}

#[test]
fn leveled_scans_on_clones_without_locks() {
    let place = Place::new();
    let store = place.create(small());
    let table = blobs(&store);
    fill(&table, 400, 0);
    let clone = store.snapshot();
    let (mut by_clone, mut live) = (clone.scan(&table).into_iter(), table.scan().into_iter());
    let first = [by_clone.next(), live.next()];
    // Writers, merges and reclaim continue while scans pause.
    for round in 1..6 {
        fill(&table, 400, round);
    }
    table.delete_range(&100, &300).unwrap();
    store.flush().unwrap();
    compact(&store, "blobs");
    for rows in [&mut by_clone as &mut dyn Iterator<Item = _>, &mut live] {
        let rest: Vec<(u64, Vec<u8>)> = rows.map(|row| row.unwrap()).collect();
        assert_eq!(rest.len(), 399);
        assert!(
            rest.iter().all(|(key, value)| *value == blob(*key, 0)),
            "a scan sees what was there when it began"
        );
    }
    assert!(first.into_iter().all(|row| row.unwrap().unwrap().1 == blob(0, 0)));
    assert_eq!(table.scan().count().unwrap(), 200);
}

#[test]
fn leveled_sync_strategies() {
    let disk = SimDisk::new(1);
    let options = |disk: &SimDisk| manual().host(disk.host());
    let store = Store::create(SimDisk::store_dir(), options(&disk)).expect("the store is created");
    let table = blobs(&store);
    let commit = |key: u64, durability| {
        let mut batch = store.batch();
        batch.put(&table, &key, &blob(key, 0));
        batch.commit(durability).expect("it commits");
    };
    let keys_after = |disk: &SimDisk| {
        let store = Store::open(SimDisk::store_dir(), options(disk)).expect("it opens");
        let table = blobs(&store);
        let is_there =
            |key: &u64| table.get(key).unwrap().inspect(|value| assert_eq!(*value, blob(*key, 0))).is_some();
        (0..3).filter(is_there).collect::<Vec<u64>>()
    };
    commit(0, Durability::Sync);
    commit(1, Durability::Process);
    assert_eq!(keys_after(&disk.after_death())[..], [0, 1], "the process dies");
    commit(2, Durability::Buffered);
    let after_cuts: Vec<Vec<u64>> =
        (0..40).map(|seed| keys_after(&disk.after_power_cut(&mut Seeded::new(seed)))).collect();
    assert!(after_cuts.iter().all(|keys| keys.contains(&0)), "what was synced survives every power cut");
    assert!(after_cuts.iter().any(|keys| !keys.contains(&1)), "what was not, not every one: {after_cuts:?}");
    store.sync().expect("it syncs");
    assert_eq!(keys_after(&disk.after_power_cut(&mut Seeded::new(99))), [0, 1, 2]);
}

#[test]
fn leveled_values_over_4_kb_are_written_about_once() {
    let written = |rules: Rules<u64, Vec<u8>>| {
        let place = Place::new();
        let store = place.create(manual());
        let table = store.table("t", rules).unwrap();
        for round in 0..20 {
            (0..100).for_each(|key| assert!(table.put(&(key * 37 % 100), &blob(key, round)).is_ok()));
            settle(&store);
        }
        let stats = store.stats();
        let bytes = stats.writes.log_bytes + stats.background.part_bytes + stats.writes.value_bytes;
        bytes as f64 / stats.writes.user_bytes as f64
    };
    let (separated, inline) = (written(rules()), written(Rules::sorted::<u64, Vec<u8>>()));
    // Only reclaim may copy a value once more.
    assert!(separated < 2.0, "{separated:.2} bytes are written for each");
    assert!(inline > separated * 1.2, "{inline:.2} inline, {separated:.2} apart");
}

// ---- YDB ----------------------------------------------------------------------------------------

fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(dir).expect("the store").map(|entry| entry.expect("an entry").path());
    files
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), std::fs::read(&path).expect("a file")))
        .collect()
}

#[test]
fn ydb_append_only() {
    let place = Place::new();
    let store = place.create(manual());
    let table = blobs(&store);
    for round in 0..4 {
        let before = contents(&place.path());
        fill(&table, 100, round);
        table.delete(&round).unwrap();
        settle(&store);
        let after = contents(&place.path());
        for (path, bytes) in &before {
            let Some(now) = after.get(path) else { continue };
            // Preallocated space is filled; written bytes do not change.
            let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            assert!(now.get(..len) == Some(&bytes[..len]), "{} was changed in place", path.display());
        }
    }
}

#[test]
fn ydb_index_in_memory_and_one_seek_for_each_read() {
    let place = Place::new();
    let store = place.create(manual());
    let table: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    fill(&table, 500, 0);
    settle(&store);
    drop(table);
    store.close().unwrap();
    let store = place.open(manual());
    let table: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    (0..500).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 0))));
    let before = store.stats();
    (0..500).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 0))));
    let after = store.stats();
    assert_eq!(after.reads.values - before.reads.values, 500);
    assert_eq!(after.reads.pieces, before.reads.pieces, "nothing of the index is read");
    (1000..1500).for_each(|key| assert_eq!(table.get(&key).unwrap(), None));
    assert_eq!(store.stats().reads.values, after.reads.values, "a key that is not there costs no read");
}

#[test]
fn ydb_a_collector_that_runs_while_serving() {
    let place = Place::new();
    let store = place.create(small());
    let table = blobs(&store);
    fill(&table, 300, 0);
    let (round, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let gets = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut gets = 0;
            while !stop.load(Ordering::Relaxed) {
                let (key, least) = (gets % 300, round.load(Ordering::Acquire));
                let value = table.get(&key).unwrap().expect("it is there");
                let found = u64::from_le_bytes(value[..8].try_into().unwrap());
                assert!(
                    found >= least && value == blob(key, found),
                    "key {key} of round {found}, {least} was written"
                );
                gets += 1;
            }
            gets
        });
        let due = Instant::now() + Duration::from_secs(120);
        for next in 1.. {
            fill(&table, 300, next);
            round.store(next, Ordering::Release);
            let reclaimed = store.stats().background.value_segments_reclaimed;
            assert!(Instant::now() < due, "round {next}, {reclaimed} segments given back");
            if next >= 10 && reclaimed >= 3 {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(gets > 0);
}

#[test]
fn ydb_data_larger_than_memory() {
    let place = Place::new();
    let store = place.create(small());
    let table = blobs(&store);
    fill(&table, 3000, 0);
    assert!(store.stats().writes.user_bytes > 5 * MEMORY_BYTES as u64);
    for key in (0..3000).rev() {
        assert_eq!(table.get(&key).unwrap(), Some(blob(key, 0)), "key {key}");
    }
    let stats = store.stats();
    assert!(stats.memory.memtable_bytes + stats.memory.cache_bytes <= MEMORY_BYTES as u64);
}

#[test]
fn ydb_quick_start() {
    let place = Place::new();
    let store = place.create(small());
    fill(&blobs(&store), 3000, 0);
    store.close().unwrap();
    let store = place.open(small());
    let table = blobs(&store);
    let stats = store.stats();
    assert_eq!((stats.reads.values, stats.writes.records), (0, 0), "opening reads no value");
    assert!(stats.disk.value_bytes > 20 << 20);
    assert!(stats.reads.bytes < 1 << 20, "{} bytes are read", stats.reads.bytes);
    assert_eq!(table.get(&2999).unwrap(), Some(blob(2999, 0)));
}

// ---- elliptics ----------------------------------------------------------------------------------

#[test]
fn elliptics_blobs_of_any_size_by_id() {
    let place = Place::new();
    let store = place.create(small());
    let table: Table<Vec<u8>, Vec<u8>> = store.table("blobs", Rules::sorted().separate(1024)).unwrap();
    let id = |number: u64| -> Vec<u8> {
        let mut id = vec![0; 64];
        id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        id[56..].copy_from_slice(&number.to_be_bytes());
        id
    };
    let sizes = [0, 1, 100, 1023, 1024, 5000, 1 << 20, (16 << 20) - 1];
    for (number, size) in sizes.into_iter().enumerate() {
        table.put(&id(number as u64), &vec![number as u8; size]).unwrap();
    }
    // Longer than a value that is held in memory, and than the memory of the store.
    let long = 40 << 20;
    table.put_from(&id(99), &mut std::io::repeat(7).take(long)).unwrap();
    store.flush().unwrap();
    for (number, size) in sizes.into_iter().enumerate() {
        assert_eq!(table.get(&id(number as u64)).unwrap(), Some(vec![number as u8; size]), "{size} bytes");
    }
    let mut reader = table.read(&id(99)).unwrap().expect("it is there");
    assert_eq!(reader.len_bytes(), long);
    reader.seek(std::io::SeekFrom::Start(long - 3)).unwrap();
    let mut end = Vec::new();
    reader.read_to_end(&mut end).unwrap();
    assert_eq!(end, [7; 3]);
    assert_eq!(table.scan().count().unwrap(), sizes.len() as u64 + 1);
}

#[test]
fn elliptics_the_index_is_locked_in_memory() {
    let locked_kb = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("it is told");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let place = Place::new();
    let store = place.create(manual().tuning(|t| t.lock_in_memory(true)));
    let table: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    (0..2000).for_each(|key| assert!(table.put(&key, &vec![1; 100]).is_ok()));
    // Other tests of this process lock nothing. Where the system does not let this process lock as
    // much again, it is only a wish, whatever the limit says: the limit does not bind root.
    let locked_kb = locked_kb();
    if Resident::new([0u8; 256 << 10], true).is_locked() {
        assert!(locked_kb >= 256, "{locked_kb} KB are locked");
    } else {
        assert!(locked_kb < 512, "what is locked already, {locked_kb} KB, leaves nothing to lock");
        // Not by a macro, whose output is hidden when a test passes.
        let why = "NOT CHECKED: this process may not lock memory (`ulimit -l`), so that the index is locked is not seen";
        writeln!(std::io::stderr(), "{why}").unwrap();
    }
    assert_eq!(table.get(&1999).unwrap(), Some(vec![1; 100]));
    store.close().unwrap();
}

#[test]
fn elliptics_a_store_of_many_blobs_opens_without_reading_them() {
    let place = Place::new();
    let store = place.create(manual());
    let table: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    (0..50_000).for_each(|key| assert!(table.put(&key, &vec![key as u8; 40]).is_ok()));
    drop(table);
    store.close().unwrap();
    let store = place.open(manual());
    let table: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    let stats = store.stats();
    assert_eq!(stats.reads.values, 0);
    assert!(stats.reads.bytes < 64 << 10, "{} bytes are read", stats.reads.bytes);
    assert_eq!(table.get(&49_999).unwrap(), Some(vec![49_999_u64 as u8; 40]));
}

#[test]
fn elliptics_the_index_is_a_file_of_its_own() {
    let place = Place::new();
    let store = place.create(manual());
    fill(&blobs(&store), 500, 0);
    settle(&store);
    let bytes = |suffix: &str| -> usize {
        let all = contents(&place.path());
        all.iter()
            .filter(|(path, _)| path.to_string_lossy().ends_with(suffix))
            .map(|(_, bytes)| bytes.len())
            .sum()
    };
    assert!(
        bytes(".part") * 50 < bytes(".values"),
        "{} of index, {} of blobs",
        bytes(".part"),
        bytes(".values")
    );
    let hashed = store.table("hashed", Rules::hashed()).unwrap();
    fill(&hashed, 500, 0);
    settle(&store);
    assert!(
        bytes(".index") > 0 && bytes(".index") * 50 < bytes(".values") / 2,
        "{} of index",
        bytes(".index")
    );
    let read = store.stats().reads.values;
    assert_eq!(blobs(&store).scan().count().unwrap(), 500);
    assert_eq!(hashed.scan().count().unwrap(), 500);
    assert_eq!(store.stats().reads.values, read, "ids are listed without the blobs");
}

#[test]
fn elliptics_sendfile() {
    sends_files("blobs", rules());
    sends_files("hashed", Rules::hashed());
    sends_files("with versions", Rules::hashed().keep(Keep::Versions(2)));
}

fn sends_files(name: &str, rules: Rules<u64, Vec<u8>>) {
    let place = Place::new();
    let store = place.create(manual());
    let table = store.table(name, rules).expect("it works");
    fill(&table, 50, 0);
    settle(&store);
    let located = table.locate(&17, Locate::default()).expect("it works").expect("it is there");
    let piece = located.as_file().expect("a blob is one piece of a file");
    assert_eq!(piece.len_bytes(), blob(17, 0).len() as u64);
    // Its target remains, whatever happens to the key and its segment.
    for round in 1..4 {
        fill(&table, 50, round);
        settle(&store);
    }
    settle(&store);
    let mut out = tempfile::tempfile().expect("it works");
    let sent = std::io::copy(&mut piece.open().expect("it works").take(piece.len_bytes()), &mut out)
        .expect("it works");
    assert_eq!(sent, piece.len_bytes());
    out.rewind().expect("it works");
    let mut copied = Vec::new();
    out.read_to_end(&mut copied).expect("it works");
    assert_eq!(copied, blob(17, 0));
}

/// A counter of this thread's calls and of its bytes of the disk, as Linux keeps it.
fn io_of_thread(name: &str) -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").expect("Linux counts them");
    let value = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.expect("it is told").parse().expect("a number")
}

/// How often this thread has written by a call of the system; a call that sends counts.
fn write_calls() -> u64 {
    io_of_thread("syscw")
}

/// How often this thread has read so.
fn read_calls() -> u64 {
    io_of_thread("syscr")
}

/// Bytes that gets read from the disk, when they are first asked for and when they are asked for
/// again. None where there is no disk below that tells.
fn read_from_disk(direct: bool) -> Option<[u64; 2]> {
    let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let options = manual().tuning(|t| t.values_direct(direct));
    let store = Store::create(temp.path().join("store"), options).expect("it is created");
    let table: Blobs = store.table("hashed", Rules::hashed()).expect("the table");
    fill(&table, 300, 0);
    settle(&store);
    store.sync().expect("it syncs");
    let mut rounds = [0; 2];
    for round in &mut rounds {
        let before = io_of_thread("read_bytes");
        (0..300).for_each(|key| assert_eq!(table.get(&key).expect("it reads"), Some(blob(key, 0))));
        *round = io_of_thread("read_bytes") - before;
    }
    (!direct || rounds != [0; 2]).then_some(rounds)
}

#[test]
fn elliptics_direct_reads_leave_the_page_cache_to_others() {
    let values_bytes: u64 = (0..300).map(|key| blob(key, 0).len() as u64).sum();
    let Some(rounds) = read_from_disk(true) else {
        let why = "NOT CHECKED: the file system of the build has no reads that bypass the page cache";
        writeln!(std::io::stderr(), "{why}").unwrap();
        return;
    };
    // What bypasses the page cache is not in it the next time; what does not, is.
    assert!(rounds.iter().all(|bytes| *bytes >= values_bytes), "{rounds:?} of {values_bytes}");
    let through = read_from_disk(false).expect("it is told");
    assert!(through[1] * 10 < values_bytes, "{through:?} of {values_bytes}");
}

#[test]
fn elliptics_sendfile_to_a_socket() {
    const LEN: usize = 4 << 20;
    let value: Vec<u8> = (0..LEN).map(|n| (n >> 8 ^ n) as u8).collect();
    for rules in [rules(), Rules::hashed()] {
        let place = Place::new();
        let store = place.create(manual().memory_bytes(16 << 20));
        let table: Blobs = store.table("blobs", rules).unwrap();
        table.put(&1, &value).unwrap();
        settle(&store);
        let located = table.locate(&1, Locate::default()).unwrap().expect("it is there");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other_end, _) = listener.accept().unwrap();
        let receiver = std::thread::spawn(move || {
            let mut received = Vec::new();
            other_end.read_to_end(&mut received).map(|_| received)
        });
        let before = write_calls();
        assert_eq!(located.write_to(&mut socket).unwrap(), LEN as u64);
        let calls = write_calls() - before;
        drop(socket);
        assert!(receiver.join().unwrap().unwrap() == value, "what is sent is received");
        // Through the memory of this process it would be a read and a write for each buffer.
        assert!(calls <= 8, "{calls} calls for {LEN} bytes");
    }
}

#[test]
fn ydb_writes_are_not_the_most_expensive_call() {
    const ROWS: u64 = 20_000;
    let place = Place::new();
    let store = place.create(manual().memory_bytes(32 << 20));
    let table: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    let before = write_calls();
    (0..ROWS).for_each(|key| assert!(table.put(&key, &vec![key as u8; 142]).is_ok()));
    let writes = write_calls() - before;
    settle(&store);
    let before = read_calls();
    (0..ROWS).for_each(|key| assert!(table.get(&key).unwrap().is_some()));
    let gets = read_calls() - before;
    assert!(gets >= ROWS && writes * 100 < gets, "{writes} writes, {gets} reads");
}

/// Readers and writers of many objects by Pareto's rule, five gets for a put.
#[test]
fn leveled_64_workers_get_and_put() {
    const KEYS: u64 = 2_000;
    let place = Place::new();
    let store = place.create(small());
    let table = blobs(&store);
    fill(&table, KEYS, 0);
    let newest: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let locks: Vec<parking_lot::Mutex<()>> = (0..KEYS).map(|_| parking_lot::Mutex::new(())).collect();
    let work = |worker: u64| {
        let mut chance = Seeded::new(worker);
        for _ in 0..300 {
            // Four of five ops are on a fifth of the keys.
            let share = if chance.below(5) < 4 { KEYS / 5 } else { KEYS };
            let key = chance.below(share);
            let least = newest[key as usize].load(Ordering::Acquire);
            let value = table.get(&key).unwrap().expect("it is there");
            let round = u64::from_le_bytes(value[..8].try_into().unwrap());
            assert!(round >= least && value == blob(key, round), "key {key} of round {round}, {least}");
            if chance.one_in(5) {
                let _one_writer_of_a_key = locks[key as usize].lock();
                let round = newest[key as usize].load(Ordering::Acquire) + 1;
                table.put(&key, &blob(key, round)).unwrap();
                newest[key as usize].store(round, Ordering::Release);
            }
        }
    };
    std::thread::scope(|scope| (0..64).for_each(|worker| drop(scope.spawn(move || work(worker)))));
    store.settle().unwrap();
    for key in 0..KEYS {
        let round = newest[key as usize].load(Ordering::Acquire);
        assert_eq!(table.get(&key).unwrap(), Some(blob(key, round)), "key {key}");
    }
}

#[test]
fn elliptics_versions_on_and_off() {
    let place = Place::new();
    let store = place.create(manual());
    let on: Blobs = store.table("on", rules().keep(Keep::Versions(3))).unwrap();
    let off: Blobs = store.table("off", rules()).unwrap();
    let hashed: Blobs = store.table("hashed", Rules::hashed()).unwrap();
    let hashed_on: Blobs = store.table("hashed-on", Rules::hashed().keep(Keep::Versions(3))).unwrap();
    for round in 0..5 {
        [&on, &off, &hashed, &hashed_on].into_iter().for_each(|table| fill(table, 20, round));
        settle(&store);
    }
    for table in [&on, &hashed_on] {
        let past: Vec<_> = table.history(&7, 9).unwrap().into_iter().map(|version| version.value).collect();
        assert_eq!(past, [Some(blob(7, 4)), Some(blob(7, 3)), Some(blob(7, 2))]);
        let newest = table.history(&7, 1).unwrap();
        assert!(newest.len() == 1 && newest[0].value == Some(blob(7, 4)));
    }
    assert_eq!(hashed.history(&7, 3).unwrap().len(), 1);
    for table in [&on, &off, &hashed, &hashed_on] {
        assert_eq!(table.get(&7).unwrap(), Some(blob(7, 4)), "the newest is what a get gives");
    }
    compact(&store, "off");
    assert_eq!(
        store.bytes_table("off").unwrap().stats().unwrap().records,
        20,
        "without versions one record of a key stays"
    );
}

#[test]
fn elliptics_backend_by_option() {
    let place = Place::new();
    let store = place.create(manual());
    let kinds: [(&str, Rules<u64, Vec<u8>>); 4] = [
        ("blobs", Rules::hashed()),
        ("files", Rules::hashed().value_placement(ValuePlacement::Files)),
        ("sorted", rules()),
        ("sorted-files", rules().value_placement(ValuePlacement::Files)),
    ];
    let tables: Vec<Blobs> =
        kinds.into_iter().map(|(name, rules)| store.table(name, rules).expect("a table")).collect();
    for round in 0..2 {
        tables.iter().for_each(|table| fill(table, 50, round));
        settle(&store);
    }
    for table in &tables {
        assert!((0..50).all(|key| table.get(&key).unwrap() == Some(blob(key, 1))), "one program, any place");
    }
    let directories = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let objects: usize =
        directories.filter(|path| path.is_dir()).map(|directory| contents(&directory).len()).sum();
    assert!(objects >= 100, "{objects} files for the 100 values of two tables");
}

#[test]
fn elliptics_removal_and_compaction_started_from_outside() {
    let (sorted, hashed) = (rules, Rules::hashed::<u64, Vec<u8>>);
    let in_files = [sorted(), hashed()].map(|rules| rules.value_placement(ValuePlacement::Files));
    for rules in [sorted(), hashed()].into_iter().chain(in_files) {
        let place = Place::new();
        let store = place.create(manual().tuning(|t| t.value_segment_bytes(256 << 10)));
        let table: Blobs = store.table("blobs", rules).unwrap();
        fill(&table, 300, 0);
        (0..300).filter(|key| key % 10 != 0).for_each(|key| assert!(table.delete(&key).is_ok()));
        store.flush().unwrap();
        compact(&store, "blobs");
        let report = store.reclaim().unwrap();
        let live: u64 = (0..300).step_by(10).map(|key| blob(key, 0).len() as u64 + 48).sum();
        let open_bytes = 256 << 10; // the segment that values are put into counts with its length
        assert!(report.bytes_after <= live * 3 / 2 + open_bytes, "{report:?}, {live} alive");
        assert!((0..300).step_by(10).all(|key| table.get(&key).unwrap() == Some(blob(key, 0))));
        assert_eq!(table.scan().count().unwrap(), 30);
    }
}
