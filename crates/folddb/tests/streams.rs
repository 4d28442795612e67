//! Values that are written and read piece by piece, and never held in memory.

mod common;

mod moved;

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use common::small;
use folddb::limits::VALUE_BYTES_MAX;
use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::time::moment;
use folddb::{ErrorKind, Expire, HeadRule, Keep, Lifetime, Options, Rules, Store, Table, WriteOp};
use folddb_host::Host;
use moved::Moved;

const PIECE: usize = 16 << 10;

fn options() -> Options {
    small().tuning(|t| t.part_bytes(64 << 10).stream_piece_bytes(PIECE))
}

fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(2048).head(HeadRule::First(16));
    store.table("blobs", rules).expect("the table")
}

/// This many bytes, which are never held in memory.
struct Bytes {
    at: u64,
    len: u64,
    salt: u64,
}

fn bytes(salt: u64, len: u64) -> Bytes {
    Bytes { at: 0, len, salt }
}

impl Read for Bytes {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let taken = buf.len().min((self.len - self.at) as usize).min(10_007);
        for (place, byte) in (self.at..).zip(&mut buf[..taken]) {
            *byte = ((place ^ (place >> 11)) + self.salt) as u8;
        }
        self.at += taken as u64;
        Ok(taken)
    }
}

fn whole(salt: u64, len: u64) -> Vec<u8> {
    let mut all = Vec::new();
    bytes(salt, len).read_to_end(&mut all).expect("these bytes are given");
    all
}

fn is_the_same(mut value: impl Read, mut expected: Bytes) -> bool {
    let (mut a, mut b) = (vec![0; 8192], vec![0; 8192]);
    loop {
        let got = value.read(&mut a).expect("it is read");
        if got == 0 {
            return expected.at == expected.len;
        }
        if expected.read_exact(&mut b[..got]).is_err() || a[..got] != b[..got] {
            return false;
        }
    }
}

const LENS: [u64; 9] =
    [0, 1, 2047, 2048, PIECE as u64, PIECE as u64 + 1, 3 * PIECE as u64, 3 * PIECE as u64 + 100, 999_999];

#[test]
fn values_of_any_length_come_back_whole_in_parts_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    for (key, len) in (0..).zip(LENS) {
        table.put_from(&key, &mut bytes(key, len)).unwrap();
    }
    let check = |table: &Table<u64, Vec<u8>>| {
        for (key, len) in (0..).zip(LENS) {
            assert!(is_the_same(table.read(&key).unwrap().unwrap(), bytes(key, len)), "{len} bytes");
            assert!(table.get(&key).unwrap().unwrap() == whole(key, len));
            let head = table.head(&key).unwrap().unwrap();
            assert_eq!((head.size_bytes, head.bytes), (len, whole(key, len.min(16))));
            assert_eq!(u64::from(head.pieces), len.div_ceil(PIECE as u64).max(1));
        }
        let rows: Vec<_> = table.scan().into_iter().map(|row| row.unwrap()).collect();
        assert!(rows.iter().zip(LENS).all(|((key, value), len)| *value == whole(*key, len)));
        assert!(table.read(&100).unwrap().is_none());
    };
    check(&table);
    store.flush().unwrap();
    check(&table);
    store.bytes_table("blobs").unwrap().compact().unwrap();
    check(&table);
    table.put_from(&8, &mut bytes(8, 999_999)).unwrap();
    drop((table, store)); // as if the process died
    let store = Store::open(&path, options()).unwrap();
    check(&blobs(&store));
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_reader_seeks_and_keeps_what_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = blobs(&store);
    let len = 500_000;
    table.put_from(&1, &mut bytes(1, len)).unwrap();
    let mut reader = table.read(&1).unwrap().unwrap();
    assert_eq!(reader.len_bytes(), len);
    let (all, mut buf) = (whole(1, len), [0; 100]);
    for at in [400_000, 0, PIECE as u64 - 50, len - 100, 123_456] {
        assert_eq!(reader.seek(SeekFrom::Start(at)).unwrap(), at);
        reader.read_exact(&mut buf).unwrap();
        assert_eq!(buf, all[at as usize..at as usize + 100]);
        assert_eq!(reader.seek(SeekFrom::Current(-100)).unwrap(), at);
        // The value is removed, and its segments; a reader keeps them.
        table.put(&1, &vec![at as u8; 3000]).unwrap();
        store.flush().unwrap();
        store.bytes_table("blobs").unwrap().compact().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    let reads = store.stats().reads.values;
    assert_eq!(reader.seek(SeekFrom::End(-3)).unwrap(), len - 3);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(
        (&rest[..], store.stats().reads.values - reads),
        (&all[all.len() - 3..], 1),
        "one piece is read"
    );
    assert_eq!(reader.seek(SeekFrom::Start(len + 9)).unwrap(), len + 9);
    assert_eq!(reader.read(&mut buf).unwrap(), 0);
    assert!(reader.seek(SeekFrom::End(-(len as i64) - 1)).is_err());
}

/// Fails after this many bytes.
struct Breaking(Bytes);

impl Read for Breaking {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(io::Error::other("the line broke")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_writer_that_is_dropped_or_whose_source_fails_leaves_only_dead_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    table.put(&1, &b"before".to_vec()).unwrap();
    let mut writer = table.writer(&1).unwrap();
    io::copy(&mut bytes(1, 2_000_000), &mut writer).unwrap();
    assert_eq!(writer.len_bytes(), 2_000_000);
    drop(writer);
    let error = table.put_from(&1, &mut Breaking(bytes(1, 2_000_000))).unwrap_err();
    assert!(error.to_string().contains("the line broke"), "{error}");
    assert_eq!(table.get(&1).unwrap(), Some(b"before".to_vec()));
    for len in [100, 2_000_000] {
        let mut writer = table.writer(&1).unwrap();
        writer.write_from(&mut Breaking(bytes(1, len))).unwrap_err();
        assert!(writer.write_from(&mut bytes(1, 10)).is_err(), "it goes on behind what is missing");
        assert!(writer.write(b"more").is_err());
        let error = writer.finish().unwrap_err();
        assert!(error.to_string().contains("the line broke"), "{error}");
        assert_eq!(table.get(&1).unwrap(), Some(b"before".to_vec()), "what came of {len} bytes is no value");
    }
    // Their remains are removed while the store is open.
    for round in 0..40 {
        table.put(&2, &whole(round, 100_000)).unwrap();
        store.flush().unwrap();
        store.bytes_table("blobs").unwrap().compact().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    let stats = store.stats();
    assert!(stats.writes.value_bytes > 9_000_000 && stats.disk.value_bytes <= 4 << 20, "{stats:?}");
}

#[test]
fn a_stream_under_way_keeps_its_segments_though_nothing_points_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options().tuning(|t| t.value_segment_bytes(64 << 10))).unwrap();
    let table = blobs(&store);
    let mut source = bytes(1, 1_500_000);
    let mut writer = table.writer(&1).unwrap();
    for round in 0..15 {
        io::copy(&mut source.by_ref().take(100_000), &mut writer).unwrap();
        table.put(&2, &whole(round, 50_000)).unwrap();
        store.flush().unwrap();
        store.bytes_table("blobs").unwrap().compact().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    assert!(table.get(&1).unwrap().is_none(), "nothing is there before it is finished");
    writer.finish().unwrap();
    for round in 15..20 {
        table.put(&2, &whole(round, 50_000)).unwrap();
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    assert!(is_the_same(table.read(&1).unwrap().unwrap(), bytes(1, 1_500_000)));
    table.delete(&1).unwrap();
    store.flush().unwrap();
    store.bytes_table("blobs").unwrap().compact().unwrap();
    while store.background_step().unwrap().is_some() {}
    let stats = store.stats();
    assert!(stats.disk.value_bytes < 600_000, "what the stream wrote can go now: {stats:?}");
}

#[test]
fn lists_take_operands_as_streams() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().fold("append").separate(2048);
    let table = store.table("logs", rules).unwrap();
    table.fold(&1, &b"first ".to_vec()).unwrap();
    for salt in 0..3 {
        let mut writer = table.as_bytes().writer(WriteOp::Fold, &1_u64.to_be_bytes()).unwrap();
        writer.write_from(&mut bytes(salt, 100_000)).unwrap();
        writer.write_all(b" and more ").unwrap();
        writer.finish().unwrap();
        store.flush().unwrap();
    }
    let mut expected = b"first ".to_vec();
    (0..3).for_each(|salt| expected.extend([whole(salt, 100_000), b" and more ".to_vec()].concat()));
    assert!(table.get(&1).unwrap().unwrap() == expected);
    assert_eq!(table.head(&1).unwrap().unwrap().size_bytes, expected.len() as u64);
}

#[test]
fn a_long_value_is_dumped_in_pieces_and_loaded_again() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::create(dir.path().join("store"), options().tuning(|t| t.stream_piece_bytes(1 << 20))).unwrap();
    let table = blobs(&store);
    let len = (16 << 20) + 12_345;
    table.put_from(&1, &mut bytes(1, len)).unwrap();
    table.put_from(&2, &mut bytes(2, 100_000)).unwrap();
    let (mut dump, mut again) = (Vec::new(), Vec::new());
    store.dump(&[], &mut dump).unwrap();
    let lines: Vec<&[u8]> = dump.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(lines.len(), 2 + 1 + 17 + 1 + 1);
    assert!(lines.iter().all(|line| line.len() <= (2 << 20) + 100));
    assert_eq!(Store::check_dump(&mut &dump[..], &Default::default(), &options()).unwrap().records, 2);
    let loaded = Store::create(dir.path().join("loaded"), options()).unwrap();
    loaded.load(&mut &dump[..], &Default::default()).unwrap();
    assert!(is_the_same(blobs(&loaded).read(&1).unwrap().unwrap(), bytes(1, len)));
    assert!(is_the_same(blobs(&loaded).read(&2).unwrap().unwrap(), bytes(2, 100_000)));
    loaded.dump(&[], &mut again).unwrap();
    assert!(again == dump, "in whatever pieces it lies");
    // A missing piece is reported, and so is an extra one.
    for lines in [[&lines[..10], &lines[11..]].concat(), [&lines[..10], &lines[9..]].concat()] {
        let third = Store::create(dir.path().join(format!("third{}", lines.len())), options()).unwrap();
        let error = third.load(&mut &lines.concat()[..], &Default::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("line"), "{error}");
        assert!(blobs(&third).get(&1).unwrap().is_none());
    }
}

#[test]
fn tables_without_streams_take_streams_up_to_the_length_of_a_value_and_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options().tuning(|t| t.segment_bytes(64 << 20))).unwrap();
    let inline = store.table("inline", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let text = store.table("text", Rules::sorted::<u64, String>().separate(2048)).unwrap();
    let key = 1_u64.to_be_bytes();
    let mut no_text = text.as_bytes().writer(WriteOp::Put, &key).unwrap();
    no_text.write_all(&[0xff; 10]).unwrap();
    assert!(no_text.finish().unwrap_err().to_string().contains("not a value of table `text`"));
    let lasting = Rules::sorted::<u64, Vec<u8>>().expire(Expire::ByWrite);
    let tables = [
        (inline, "threshold"),
        (store.table("lasting", lasting).unwrap(), "threshold"),
        (store.table("joined", Rules::hashed().fold("append")).unwrap(), "folds operands"),
    ];
    for (table, why) in &tables {
        assert!(!table.as_bytes().takes_streams());
        for len in [0, 1, 64 << 10, VALUE_BYTES_MAX as u64] {
            table.put_from(&1, &mut bytes(len, len)).unwrap();
            assert!(is_the_same(table.read(&1).unwrap().unwrap(), bytes(len, len)), "{why}, {len}");
        }
        let before = table.get(&1).unwrap();
        let error = table.put_from(&1, &mut bytes(3, VALUE_BYTES_MAX as u64 + 1)).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(why), "{error}");
        assert!(table.get(&1).unwrap() == before, "{why}");
    }
    let table = &tables[1].0;
    let mut writer = table.with_lifetime(Lifetime::For(Duration::from_secs(3600))).writer(&7).unwrap();
    writer.write_all(b"page").unwrap();
    writer.finish().unwrap();
    assert_eq!(table.get(&7).unwrap().as_deref(), Some(&b"page"[..]));
    assert!(table.as_bytes().head(&7_u64.to_be_bytes()).unwrap().unwrap().deadline.is_some());
    let for_ever = blobs(&store).with_lifetime(Lifetime::Forever).writer(&1).err().unwrap();
    assert!(for_ever.to_string().contains("never expire"), "{for_ever}");
    assert!(!text.as_bytes().takes_streams() && blobs(&store).as_bytes().takes_streams());
    let table = blobs(&store);
    assert!(table.as_bytes().writer(WriteOp::Fold, &key).is_err(), "a fold that does not join");
    assert!(table.as_bytes().writer(WriteOp::Delete, &key).is_err());
    assert!(table.as_bytes().writer(WriteOp::Put, b"short").is_err(), "no key of the table");
    let mut writer = table.writer(&1).unwrap();
    writer.write_all(&[1; 100_000]).unwrap();
    store.close().unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Closed);
    let store = Store::open_read_only(&path, options()).unwrap();
    let table = store.bytes_table("blobs").unwrap();
    assert_eq!(table.writer(WriteOp::Put, &key).unwrap_err().kind(), ErrorKind::ReadOnly);
}

const MINUTE_MS: u64 = 60_000;

#[test]
fn values_in_pieces_last_until_their_deadlines_and_hashed_tables_keep_versions_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let clock = Arc::new(Moved::new());
    let options = || options().host(Host { clock: clock.clone(), ..Host::real() });
    let sorted = || Rules::sorted::<u64, Vec<u8>>().separate(2048).head(HeadRule::First(16));
    let tables = |store: &Store| {
        [
            store
                .table("sorted", sorted().expire(Expire::After(Duration::from_millis(10 * MINUTE_MS))))
                .unwrap(),
            store
                .table("hashed", Rules::hashed().expire(Expire::After(Duration::from_millis(10 * MINUTE_MS))))
                .unwrap(),
        ]
    };
    let kept = || Rules::hashed::<u64, Vec<u8>>().keep(Keep::Versions(3));
    let versions = |store: &Store| store.table("versions", kept()).unwrap();
    let stream = |table: &Table<u64, Vec<u8>>, key: u64, len: u64, lifetime: Lifetime| {
        let mut writer = table.with_lifetime(lifetime).writer(&key).unwrap();
        writer.write_from(&mut bytes(key, len)).unwrap();
        writer.finish().unwrap();
    };
    let settled = |store: &Store| {
        store.flush().unwrap();
        for table in ["sorted", "hashed"] {
            store.bytes_table(table).unwrap().compact().unwrap();
        }
        while store.background_step().unwrap().is_some() {}
    };
    let len = 40 * PIECE as u64 + 77;
    let store = Store::create(&path, options()).unwrap();
    for table in tables(&store) {
        assert!(table.as_bytes().takes_streams());
        stream(&table, 1, len, Lifetime::Default);
        stream(&table, 2, len, Lifetime::For(Duration::from_secs(60)));
        stream(&table, 3, PIECE as u64, Lifetime::Forever);
        stream(&table, 4, len, Lifetime::Until(moment(1_800_000_000_000 + 30 * MINUTE_MS)));
        table.put(&5, &whole(5, 3000)).unwrap();
    }
    for round in 0..5 {
        versions(&store).put_from(&1, &mut bytes(round, len + round)).unwrap();
        clock.pass(1);
    }
    let there = |store: &Store, keys: &[u64]| {
        for table in tables(store) {
            for key in 1..=5 {
                let len = [len, len, PIECE as u64, len, 3000][key as usize - 1];
                let read = table.read(&key).unwrap();
                assert_eq!(read.is_some(), keys.contains(&key), "{table:?} {key}");
                assert_eq!(table.contains(&key).unwrap(), keys.contains(&key));
                let Some(read) = read else { continue };
                assert_eq!(read.len_bytes(), len);
                assert!(
                    is_the_same(read, bytes(key, len))
                        && table.get(&key).unwrap().unwrap() == whole(key, len)
                );
                let head = table.head(&key).unwrap().unwrap();
                assert_eq!((head.size_bytes, head.deadline.is_none()), (len, key == 3));
                let mut out = Vec::new();
                let located = table.locate(&key, folddb::Locate::default().verify(true)).unwrap().unwrap();
                located.write_to(&mut out).unwrap();
                assert!(out == whole(key, len), "{key}");
            }
            let rows: Vec<_> = table.scan().into_iter().map(|row| row.unwrap().0).collect();
            assert_eq!(rows.len(), keys.len());
        }
        let kept = versions(store).history(&1, 9).unwrap();
        let lens: Vec<_> =
            kept.iter().map(|one| one.value.as_ref().map(|value| value.len() as u64)).collect();
        assert_eq!(lens, [Some(len + 4), Some(len + 3), Some(len + 2)]);
        assert!(kept.iter().zip([4, 3, 2]).all(|(one, salt)| one.value == Some(whole(salt, len + salt))));
    };
    there(&store, &[1, 2, 3, 4, 5]);
    settled(&store);
    there(&store, &[1, 2, 3, 4, 5]);
    drop(store); // as if the process died
    let mended = dir.path().join("mended");
    let report = Store::repair(&path, &mended, &RepairOptions::default(), &options()).unwrap();
    assert_eq!(report.lost().count(), 0, "{:?}", report.findings);
    for path in [path, mended] {
        let store = Store::open(&path, options()).unwrap();
        there(&store, &[1, 2, 3, 4, 5]);
        store.close().unwrap();
        let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
    let store = Store::open(dir.path().join("store"), options()).unwrap();
    clock.pass(MINUTE_MS);
    there(&store, &[1, 3, 4, 5]);
    let held = store.stats().disk.value_bytes;
    clock.pass(10 * MINUTE_MS);
    there(&store, &[3, 4]);
    settled(&store);
    there(&store, &[3, 4]);
    store.reclaim().unwrap();
    let left = store.stats().disk.value_bytes;
    // In the sorted one it is less than the dead space that `value_space_max` permits.
    assert!(left + 2 * len <= held, "what has expired is given back: {left} of {held}");
    // An absent value is inserted; one that is there remains.
    for table in tables(&store) {
        for key in [1_u64, 3] {
            let mut writer = table.as_bytes().writer(WriteOp::PutIfAbsent, &key.to_be_bytes()).unwrap();
            writer.write_from(&mut bytes(key, [len, PIECE as u64][key as usize / 2])).unwrap();
            writer.finish().unwrap();
        }
    }
    there(&store, &[1, 3, 4]);
}

/// Writes more than 4 GiB, so only by hand: `cargo test --release -p folddb --test streams --
/// --ignored`.
#[test]
#[ignore = "writes 4 GiB"]
fn a_value_of_4_gib_is_taken_and_a_longer_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().memory_bytes(16 << 20);
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let table = blobs(&store);
    table.put_from(&1, &mut io::repeat(7).take(4 << 30)).unwrap();
    assert_eq!(table.head(&1).unwrap().unwrap().size_bytes, 4 << 30);
    let error = table.put_from(&1, &mut io::repeat(7).take((4 << 30) + 1)).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("4294967296"), "{error}");
    assert_eq!(io::copy(&mut table.read(&1).unwrap().unwrap(), &mut io::sink()).unwrap(), 4 << 30);
}
