//! Dumps: a dump that is loaded and dumped again is the same text, and the same bytes, for every
//! fold and every codec; a dump that was cut or changed is refused.

use std::io::{self, BufRead, BufReader, Read};

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::maintenance::{LoadOptions, LoadReport};
use folddb::table_rules::{Compression, TableRules};
use folddb::{BackgroundWork, Durability, ErrorKind, Expire, Options, Store, WriteOp};
use folddb_sim::chance::Seeded;
use folddb_sim::everything::{FOLDS, fill};
use folddb_sim::tables::{Kind, Order, Shape, with_customs};

fn options() -> Options {
    with_customs(Options::default())
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10).merge_factor(3))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory"))
    }

    fn create(&self, name: &str) -> Store {
        Store::create(self.0.path().join(name), options()).expect("a store")
    }
}

/// Reads all of a dump that is whole.
fn check(dump: &mut dyn BufRead) -> folddb::Result<LoadReport> {
    Store::check_dump(dump, &LoadOptions::default(), &options())
}

fn dump(store: &Store) -> String {
    let mut text = Vec::new();
    let report = store.dump(&[], &mut text).expect("it is dumped");
    let checked = check(&mut text.as_slice()).expect("it is whole");
    assert_eq!((checked.tables, checked.records), (report.tables, report.records));
    String::from_utf8(text).expect("a dump is text")
}

/// All rows of all tables as bytes.
fn rows(store: &Store) -> Vec<(String, Vec<u8>, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    for name in store.tables() {
        let table = store.bytes_table(&name).expect("it is there");
        for row in table.scan() {
            match row {
                Ok((key, value)) => all.push((name.clone(), key, Some(value))),
                Err(error) if error.kind() == ErrorKind::FoldFailed => {
                    all.push((name.clone(), Vec::new(), None))
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    all
}

fn assert_comes_back(place: &Place, store: &Store, what: &str) -> String {
    let text = dump(store);
    let loaded = place.create(&format!("loaded {what}"));
    let report = loaded.load(&mut text.as_bytes(), &LoadOptions::default()).expect(what);
    assert!(report.whole && report.created.len() as u64 == report.tables, "{what}: {report:?}");
    assert_eq!(rows(&loaded), rows(store), "{what}");
    assert_eq!(dump(&loaded), text, "{what}");
    text
}

#[test]
fn every_fold_and_every_codec_comes_back_bit_for_bit() {
    for seed in 1..=8 {
        let place = Place::new();
        let mut store = place.create("store");
        let mut chance = Seeded::new(seed);
        fill(&mut store, &mut chance, 3, &mut |store| {
            store.flush()?;
            while store.background_step()?.is_some() {}
            Ok(())
        })
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let text = assert_comes_back(&place, &store, &format!("seed {seed}"));
        // Values are shown for people; only those that cannot be read back from that are
        // hexadecimal.
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert!(count("\"value\":") > 10 * count("\"value_hex\":"), "seed {seed}");
        assert!(text.contains(r#"{"key":["UA",7],"#) || text.contains(r#"{"key":["",-300],"#), "seed {seed}");
        store.bytes_table("columnar").expect("a table").compact().expect("it merges");
        assert_eq!(dump(&store), text, "merging changes nothing, seed {seed}");
    }
}

#[test]
fn every_fold_that_comes_with_the_store_is_tried() {
    for spec in folddb::folds::SPECS {
        assert!(FOLDS.iter().any(|(tried, _)| *tried == spec), "{spec}");
    }
}

/// Tables of all kinds, with keys whose fold fails.
#[test]
fn random_stores_come_back() {
    let kinds = [
        Kind::Replace,
        Kind::First,
        Kind::SumU64,
        Kind::Balance,
        Kind::MaxU64,
        Kind::MinBytes,
        Kind::Append,
        Kind::Brittle,
    ];
    let orders = [Order::Bytewise, Order::Reversed, Order::ByLength];
    let mut failing = 0;
    for seed in 1..=60 {
        let mut chance = Seeded::new(seed);
        let place = Place::new();
        let store = place.create("store");
        for at in 0..3 {
            let shape = Shape {
                compression: *chance.pick(&[Compression::None, Compression::Lz4, Compression::Zstd]),
                separate: chance.one_in(2).then_some(32),
                ..Shape::small(*chance.pick(&kinds), *chance.pick(&orders))
            };
            let table = store.create_bytes_table(&format!("t{at}"), shape.rules()).expect("a table");
            for _ in 0..chance.below(60) {
                let (key, value) = (
                    shape.key(chance.below(28) as u8),
                    shape.value(chance.below(256) as u8, chance.below(50) as u16),
                );
                let op = *chance.pick(&[
                    WriteOp::Put,
                    WriteOp::PutIfAbsent,
                    WriteOp::Fold,
                    WriteOp::Fold,
                    WriteOp::Delete,
                ]);
                table.write(op, &key, &value).expect("it is written");
                if chance.one_in(20) {
                    store.flush().expect("it is flushed");
                }
            }
        }
        let text = assert_comes_back(&place, &store, &format!("seed {seed}"));
        failing += text.matches("\"ops\":").count();
    }
    assert!(failing > 5, "keys whose fold fails are among them: {failing}");
}

#[test]
fn a_dump_is_of_one_moment_and_of_the_tables_that_are_named() {
    let place = Place::new();
    let store = place.create("store");
    let rules = folddb::table_rules::TableRules::default();
    for name in ["a", "b"] {
        store
            .create_bytes_table(name, rules.clone())
            .expect("a table")
            .write(WriteOp::Put, b"k", b"1")
            .expect("written");
    }
    /// Writes into the store while it receives the text, so that only a snapshot keeps the two
    /// tables consistent.
    struct Meddler<'a>(&'a Store, Vec<u8>);
    impl std::io::Write for Meddler<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut batch = self.0.batch();
            for name in ["a", "b"] {
                batch.write(&self.0.bytes_table(name).expect("a table"), WriteOp::Put, b"k", b"2");
            }
            batch.commit(Durability::Process).expect("written");
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut out = Meddler(&store, Vec::new());
    let report = store.dump(&[], &mut out).expect("it is dumped");
    let text = String::from_utf8(out.1).expect("text");
    assert_eq!(
        (report.seq, report.records, text.matches(r#"{"key":"k","value":"1"}"#).count()),
        (2.into(), 2, 2),
        "{text}"
    );
    let mut out = Vec::new();
    let report = store.dump(&["b".to_owned()], &mut out).expect("it is dumped");
    assert_eq!((report.tables, report.records), (1, 1));
    let unknown = store.dump(&["c".to_owned()], &mut out).expect_err("there is none");
    assert_eq!(unknown.kind(), ErrorKind::TableNotFound);
}

#[test]
fn a_dump_that_was_cut_or_changed_is_refused() {
    let place = Place::new();
    let store = place.create("store");
    let table = store.create_bytes_table("t", folddb::table_rules::TableRules::default()).expect("a table");
    for key in 0..20u8 {
        table.write(WriteOp::Put, &[b'a' + key], b"value").expect("written");
    }
    let text = dump(&store);
    let lines: Vec<&str> = text.lines().collect();
    for len in 0..text.len() {
        let refused = check(&mut &text.as_bytes()[..len]).expect_err("it was cut");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{len}: {refused}");
    }
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(check(&mut bytes.as_slice()).is_err(), "byte {at}");
    }
    let without = |line: usize| {
        let left =
            lines.iter().enumerate().filter(|(at, _)| *at != line).map(|(_, line)| format!("{line}\n"));
        left.collect::<String>()
    };
    for line in 0..lines.len() {
        let refused = check(&mut without(line).as_bytes()).expect_err("a line is missing");
        assert!(matches!(refused.kind(), ErrorKind::InvalidInput), "{refused}");
    }
    let doubled = format!("{text}{text}");
    let refused = check(&mut doubled.as_bytes()).expect_err("it goes on");
    assert!(refused.message().contains("after the end"), "{refused}");
    let newer = text.replacen("\"version\":1", "\"version\":3", 1);
    assert_eq!(check(&mut newer.as_bytes()).expect_err("newer").kind(), ErrorKind::NewerFormat);

    // A cut one is accepted when that is asked for: all whole lines of it.
    let cut = &text[..text.find("\"key\":\"k\"").expect("a row") + 4];
    let loaded = place.create("cut");
    let refused = loaded.load(&mut cut.as_bytes(), &LoadOptions::default()).expect_err("it was cut");
    assert!(refused.message().contains("cut"), "{refused}");
    let loaded = place.create("partial");
    let report =
        loaded.load(&mut cut.as_bytes(), &LoadOptions::default().partial(true)).expect("what is there");
    assert_eq!((report.whole, report.records, rows(&loaded).len()), (false, 10, 10));
    assert_eq!((report.loaded, report.expired, report.skipped), (10, 0, 0));
    // But a changed one is not.
    let changed = text.replacen("value\":\"value", "value\":\"other", 1);
    let loaded = place.create("changed");
    let refused =
        loaded.load(&mut changed.as_bytes(), &LoadOptions::default().partial(true)).expect_err("changed");
    assert!(refused.message().contains("was changed"), "{refused}");
}

#[test]
fn what_is_there_is_not_loaded_over_unless_asked() {
    let place = Place::new();
    let store = place.create("store");
    let rules = folddb::table_rules::TableRules::default();
    store
        .create_bytes_table("t", rules.clone())
        .expect("a table")
        .write(WriteOp::Put, b"k", b"new")
        .expect("written");
    let text = dump(&store);
    let other = place.create("other");
    let table = other.create_bytes_table("t", rules.clone()).expect("a table");
    table.write(WriteOp::Put, b"k", b"old").expect("written");
    table.write(WriteOp::Put, b"more", b"old").expect("written");
    let refused = other.load(&mut text.as_bytes(), &LoadOptions::default()).expect_err("it is not empty");
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
    assert_eq!(table.get(b"k").expect("reads").as_deref(), Some(&b"old"[..]));
    let report =
        other.load(&mut text.as_bytes(), &LoadOptions::default().over(true)).expect("it is asked for");
    assert_eq!((report.records, report.created.len()), (1, 0));
    assert_eq!(table.get(b"k").expect("reads").as_deref(), Some(&b"new"[..]));
    assert_eq!(table.get(b"more").expect("reads").as_deref(), Some(&b"old"[..]));
    let differs = place.create("differs");
    differs.create_bytes_table("t", rules.fold("first")).expect("a table");
    let refused = differs.load(&mut text.as_bytes(), &LoadOptions::default()).expect_err("other rules");
    assert!(refused.kind() == ErrorKind::RulesMismatch && refused.message().contains("line 2"), "{refused}");
}

/// Each record of a dump was loaded, had expired, or was skipped: there is no other outcome.
#[test]
fn the_outcome_of_each_record_is_reported() {
    let place = Place::new();
    let rules = TableRules::new(KeyCodec::Utf8).value(ValueCodec::Utf8).expire(Expire::ByWrite);
    let store = place.create("store");
    store.create_bytes_table("t", rules).expect("a table");
    let start: String = dump(&store).lines().take(2).map(|line| format!("{line}\n")).collect();
    let rows = "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\",\"until\":1}\n";
    let long = "{\"key\":\"c\",\"long\":4}\n{\"piece\":\"0x3334\"}\n";
    let rest = "{\"piece\":\"0x3536\"}\n";
    let over_long = long.replace(":4}", ":2,\"until\":1}");
    for (what, text, told, keys) in [
        ("whole", format!("{start}{rows}{long}{rest}"), (3, 2, 1, 0), vec!["a", "c"]),
        ("cut within a value", format!("{start}{rows}{long}"), (3, 1, 1, 1), vec!["a"]),
        ("cut within a line", format!("{start}{rows}{long}{{\"pie"), (3, 1, 1, 1), vec!["a"]),
        ("a long one that had expired", format!("{start}{over_long}"), (1, 0, 1, 0), vec![]),
    ] {
        let loaded = place.create(what);
        let partial = LoadOptions::default().partial(true);
        let report = loaded.load(&mut text.as_bytes(), &partial).expect("what is there");
        assert_eq!((report.records, report.loaded, report.expired, report.skipped), told, "{what}");
        let table = loaded.bytes_table("t").expect("a table");
        let found: Vec<_> = table.scan().into_iter().map(|row| row.expect("a row").0).collect();
        assert_eq!(found, keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>(), "{what}");
    }
}

/// The result of reading a packed file that was cut: what can be unpacked, and a failure.
struct CutPack<'a>(&'a [u8]);

impl Read for CutPack<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            len => Ok(len),
        }
    }
}

/// Wherever a dump is cut, packed or not: the check before anything is written has the same outcome
/// as loading it, and a dump that cannot be loaded leaves nothing behind.
#[test]
fn a_dump_that_was_cut_anywhere_is_taken_as_far_as_it_goes_or_leaves_nothing() {
    let place = Place::new();
    let store = place.create("store");
    let rules = TableRules::new(KeyCodec::Utf8).value(ValueCodec::Utf8);
    for table in ["t", "u"] {
        let table = store.create_bytes_table(table, rules.clone()).expect("a table");
        table.write(WriteOp::Put, b"a", b"1").expect("written");
        table.write(WriteOp::Put, b"b", b"2").expect("written");
    }
    let text = dump(&store)
        .replace("{\"key\":\"b\",\"value\":\"2\"}", "{\"key\":\"b\",\"long\":2}\n{\"piece\":\"0x3132\"}");
    let start = text.find('\n').expect("a line") + 1;
    let (partial, loaded) = (LoadOptions::default().partial(true), place.create("loaded"));
    for len in 0..text.rfind("{\"end\"").expect("an end") {
        let cut = &text.as_bytes()[..len];
        let checked = Store::check_dump(&mut &*cut, &partial, &options());
        assert_eq!(checked.is_ok(), len >= start, "{len}: {checked:?}");
        let packed = BufReader::new(CutPack(cut));
        for mut dump in [Box::new(cut) as Box<dyn BufRead>, Box::new(packed)] {
            match (loaded.load(&mut dump, &partial), &checked) {
                (Ok(report), Ok(checked)) => {
                    let of =
                        |report: &LoadReport| (report.tables, report.records, report.skipped, report.whole);
                    assert_eq!(of(&report), of(checked), "{len}");
                    assert_eq!(report.loaded + report.skipped, report.records, "{len}");
                }
                (Err(loaded), Err(checked)) => assert_eq!(loaded.message(), checked.message(), "{len}"),
                other => panic!("{len}: {other:?}"),
            }
            let tables = loaded.tables();
            assert_eq!(tables.len() as u64, checked.as_ref().map_or(0, |report| report.tables), "{len}");
            tables.iter().for_each(|name| loaded.drop_table(name).expect("it goes"));
            // Where that is not asked for, nothing is left behind.
            let refused = loaded.load(&mut &*cut, &LoadOptions::default()).expect_err("it was cut");
            assert_eq!(
                (refused.kind(), loaded.tables().len()),
                (ErrorKind::InvalidInput, 0),
                "{len}: {refused}"
            );
        }
    }
}

/// Impossible rules are found before anything is written.
#[test]
fn rules_that_cannot_be_are_found_by_the_check_of_a_dump() {
    let place = Place::new();
    let store = place.create("store");
    store.create_bytes_table("t", TableRules::default()).expect("a table");
    let text = dump(&store);
    let end = text.rfind("{\"end\"").expect("an end");
    for (what, other) in [
        ("\"fold=replace\"", "\"fold=summ\""),
        ("\"fold=replace\"", "\"fold=nobody@1\""),
        ("\"block_bytes=4096\"", "\"block_bytes=1\""),
        ("\"table\":\"t\"", "\"table\":\"\""),
        ("\"rules 1\"", "\"rules 99\""),
    ] {
        assert!(text.contains(what), "{what}");
        let changed = text[..end].replace(what, other);
        let partial = LoadOptions::default().partial(true);
        let refused = Store::check_dump(&mut changed.as_bytes(), &partial, &options());
        let refused = refused.expect_err(other);
        assert!(refused.message().starts_with("line 2 of the dump: "), "{other}: {refused}");
    }
}
