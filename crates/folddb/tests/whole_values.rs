//! A value of any length, written in any way, is the same after every way of export and import.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::ops::ControlFlow;
use std::path::Path;

use folddb::codec::KeyCodec;
use folddb::folds::ByteSet;
use folddb::limits::VALUE_BYTES_MAX;
use folddb::maintenance::{BackupOptions, LoadOptions, RepairOptions, RestoreOptions, SyncOptions};
use folddb::table_rules::TableRules;
use folddb::time::{moment, unix_ms};
use folddb::{
    BackgroundWork, BytesTable, ErrorKind, Expire, FeedChange, FeedEvent, FeedOptions, Keep, Lifetime,
    Options, Store, WriteOp,
};

const MIB: usize = 1 << 20;

/// Far away.
const UNTIL_MS: u64 = 4_000_000_000_000;

fn options() -> Options {
    Options::default().memory_bytes(32 << 20).background(BackgroundWork::Manual)
}

/// How a value is made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Put,
    /// By folding this many bytes at a time.
    Fold(usize),
    /// The same, of members of a set.
    Members,
    Stream,
}

/// A table, and its values: of this many bytes (for a set, about), each made in this way.
struct Shape {
    name: &'static str,
    rules: TableRules,
    lens: &'static [(usize, Way)],
    lasts: bool,
}

fn shapes() -> Vec<Shape> {
    use Way::{Fold, Members, Put, Stream};
    let sorted = || TableRules::new(KeyCodec::U64);
    let shape = |name, rules, lens| Shape { name, rules, lens, lasts: false };
    vec![
        shape(
            "inline",
            sorted().fold("append"),
            &[
                (0, Put),
                (1, Fold(1)),
                (64 << 10, Fold(50)),
                (16 * MIB - 1, Put),
                (16 * MIB, Fold(MIB + 7)),
                (16 * MIB + 1, Fold(16 * MIB)),
                (40 * MIB, Fold(MIB)),
            ],
        ),
        shape("lines", sorted().fold("append:\";\""), &[(1, Put), (16 * MIB + 1, Fold(3 * MIB))]),
        shape("members", sorted().fold("set"), &[(1, Members), (36 * MIB, Members)]),
        shape(
            "separated",
            sorted().fold("append").separate(Some(4096)),
            &[(0, Stream), (100, Fold(10)), (16 * MIB + 1, Fold(5 * MIB))],
        ),
        shape(
            "blobs",
            TableRules::ready_made("blob").unwrap().key(KeyCodec::U64),
            &[(0, Stream), (1, Put), (64 << 10, Put), (16 * MIB, Put), (16 * MIB + 1, Stream)],
        ),
        shape(
            "hashed",
            TableRules::ready_made("blobs").unwrap().key(KeyCodec::U64),
            &[(1, Put), (16 * MIB + 1, Stream)],
        ),
        Shape {
            lasts: true,
            ..shape(
                "lasting",
                sorted().fold("append").expire(Expire::ByWrite),
                &[(1, Put), (16 * MIB + 1, Fold(4 * MIB))],
            )
        },
        // A cache of blobs with a time to live.
        Shape {
            lasts: true,
            ..shape(
                "cached",
                TableRules::ready_made("blob").unwrap().key(KeyCodec::U64).expire(Expire::ByWrite),
                &[(0, Stream), (64 << 10, Put), (16 * MIB + 1, Stream)],
            )
        },
        Shape {
            lasts: true,
            ..shape(
                "cached hashed",
                TableRules::ready_made("blobs").unwrap().key(KeyCodec::U64).expire(Expire::ByWrite),
                &[(0, Stream), (16 * MIB, Stream), (16 * MIB + 1, Stream)],
            )
        },
        shape(
            "hashed versions",
            TableRules::ready_made("blobs").unwrap().key(KeyCodec::U64).keep(Keep::Versions(2)),
            &[(1, Put), (16 * MIB - 12, Put), (16 * MIB + 1, Stream)],
        ),
    ]
}

/// Bytes that show where they belong: mostly text, so that they are shown as text.
fn bytes(key: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| b'a' + ((at ^ (at >> 9) ^ (at >> 17)) + key) as u8 % 23).collect()
}

/// Members of 64 KiB, until they add up to this many bytes, in an order of their own.
fn members(key: u64, len: usize) -> Vec<ByteSet> {
    const MEMBER: usize = 64 << 10;
    let member = |at: u64| bytes(key + at, MEMBER - 8).into_iter().chain((at * 7 % 1013).to_be_bytes());
    (0..len.div_ceil(MEMBER) as u64).map(|at| ByteSet::of(member(at).collect::<Vec<u8>>())).collect()
}

fn expected(shape: &Shape, key: u64, (len, way): (usize, Way)) -> Vec<u8> {
    match way {
        Way::Members => {
            let all =
                members(key, len).iter().flat_map(|set| set.iter().map(<[u8]>::to_vec)).collect::<ByteSet>();
            all.to_bytes()
        }
        Way::Fold(piece) if shape.name == "lines" => {
            bytes(key, len).chunks(piece).collect::<Vec<_>>().join(&b';')
        }
        _ => bytes(key, len),
    }
}

fn make(shape: &Shape, table: &BytesTable, key: u64, (len, way): (usize, Way)) {
    let lifetime = if shape.lasts { Lifetime::Until(moment(UNTIL_MS)) } else { Lifetime::Default };
    let table = table.with_lifetime(lifetime);
    let write = |op, value: &[u8]| {
        table.write(op, &key.to_be_bytes(), value).unwrap();
    };
    let value = bytes(key, len);
    match way {
        Way::Put => write(WriteOp::Put, &value),
        Way::Fold(piece) => value.chunks(piece).for_each(|piece| write(WriteOp::Fold, piece)),
        Way::Members => {
            members(key, len).iter().for_each(|set| write(WriteOp::Fold, &set.to_bytes()));
        }
        Way::Stream => {
            let mut writer = table.writer(WriteOp::Put, &key.to_be_bytes()).unwrap();
            writer.write_from(&mut &value[..]).unwrap();
            writer.finish().unwrap();
        }
    }
}

fn fill(store: &Store) {
    for shape in shapes() {
        let table = store.create_bytes_table(shape.name, shape.rules.clone()).unwrap();
        for (key, &made) in (0..).zip(shape.lens) {
            make(&shape, &table, key, made);
        }
    }
}

/// All of it, by every way of reading; only of these tables.
fn check(store: &Store, of: &[&str], by: &str) {
    for shape in shapes().iter().filter(|shape| of.is_empty() || of.contains(&shape.name)) {
        let table = store.bytes_table(shape.name).unwrap();
        for (key, &made) in (0..).zip(shape.lens) {
            let (expected, at) = (expected(shape, key, made), format!("{by}: {} {made:?}", shape.name));
            let key = u64::to_be_bytes(key);
            let mut read = Vec::new();
            table.read(&key).unwrap().unwrap_or_else(|| panic!("{at}")).read_to_end(&mut read).unwrap();
            assert!(read == expected, "{at}: {} bytes", read.len());
            let head = table.head(&key).unwrap().unwrap();
            assert_eq!(head.size_bytes, expected.len() as u64, "{at}");
            assert_eq!(head.deadline.map(unix_ms), shape.lasts.then_some(UNTIL_MS), "{at}");
        }
        assert_eq!(table.scan().keys_only().into_iter().count(), shape.lens.len(), "{by}: {}", shape.name);
    }
}

fn background(store: &Store) {
    while store.background_step().unwrap().is_some() {}
}

fn settle(store: &Store) {
    store.flush().unwrap();
    for shape in shapes() {
        store.bytes_table(shape.name).unwrap().compact().unwrap();
    }
    background(store);
}

#[test]
fn values_of_every_length_come_back_by_every_way_out_and_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let source = Store::create(path("source"), options()).unwrap();
    let mut feed = source.feed("all", FeedOptions::default().bytes_max(Some(8 << 30))).unwrap();
    fill(&source);
    check(&source, &[], "as written");
    settle(&source);
    check(&source, &[], "merged");
    // A key that is folded onto further when its value is in several records.
    let inline = source.bytes_table("inline").unwrap();
    inline.write(WriteOp::Put, &6_u64.to_be_bytes(), b"").unwrap();
    make(&shapes()[0], &inline, 6, shapes()[0].lens[6]);
    settle(&source);
    check(&source, &[], "merged again");

    dumped_and_loaded(&source, dir.path());
    synced(&source, dir.path());
    fed(&source, &mut feed, dir.path());
    drop(feed);
    source.backup(path("backups"), &BackupOptions::default()).unwrap();
    Store::restore(path("backups"), path("restored"), &RestoreOptions::default(), &options()).unwrap();
    check(&Store::open(path("restored"), options()).unwrap(), &[], "backup and restore");
    std::fs::remove_dir_all(path("restored")).unwrap();
    std::fs::remove_dir_all(path("backups")).unwrap();
    // Half of it in the log.
    for (key, &made) in (0..).zip(shapes()[3].lens) {
        let separated = source.bytes_table("separated").unwrap();
        separated.write(WriteOp::Put, &u64::to_be_bytes(key), b"").unwrap();
        make(&shapes()[3], &separated, key, made);
    }
    source.sync().unwrap();
    drop((inline, source));
    let report =
        Store::repair(path("source"), path("mended"), &RepairOptions::default(), &options()).unwrap();
    assert_eq!(report.lost().count(), 0, "{:?}", report.findings);
    let mended = Store::open(path("mended"), options()).unwrap();
    check(&mended, &[], "repair");
    settle(&mended);
    check(&mended, &[], "repair, merged");
}

fn dumped_and_loaded(source: &Store, dir: &Path) {
    let text = dir.join("dump");
    let dumped = source.dump(&[], &mut BufWriter::new(File::create(&text).unwrap())).unwrap();
    let again = || BufReader::with_capacity(1 << 20, File::open(&text).unwrap());
    assert_eq!(
        Store::check_dump(&mut again(), &LoadOptions::default(), &options()).unwrap().records,
        dumped.records
    );
    let store = Store::create(dir.join("loaded"), options()).unwrap();
    assert_eq!(store.load(&mut again(), &LoadOptions::default()).unwrap().records, dumped.records);
    check(&store, &[], "dump and load");
    drop(store);
    std::fs::remove_dir_all(dir.join("loaded")).unwrap();
    std::fs::remove_file(text).unwrap();
}

fn synced(source: &Store, dir: &Path) {
    let store = Store::create(dir.join("synced"), options()).unwrap();
    for shape in shapes().iter().filter(|shape| !shape.name.contains("hashed")) {
        let table = store.create_bytes_table(shape.name, shape.rules.clone()).unwrap();
        let from = || source.bytes_table(shape.name).unwrap().scan();
        // An existing value is replaced, and not folded onto.
        make(shape, &table, 1, (30, if shape.name == "members" { Way::Members } else { Way::Put }));
        table.write(WriteOp::Put, &0_u64.to_be_bytes(), b"").unwrap();
        let report = store.synchronize(table.scan(), from(), &SyncOptions::default()).unwrap();
        assert!(report.put as usize >= shape.lens.len() - 2, "{}: {report:?}", shape.name);
        let compared = from().compare(table.scan(), |_| ControlFlow::Continue(())).unwrap();
        assert!(compared.is_same(), "{}: {compared:?}", shape.name);
        check(&store, &[shape.name], "sync");
    }
    drop(store);
    std::fs::remove_dir_all(dir.join("synced")).unwrap();
}

/// The replica of a consumer that reads from the store the values which the feed only mentions.
fn fed(source: &Store, feed: &mut folddb::Feed, dir: &Path) {
    feed.begin_again().unwrap();
    let store = Store::create(dir.join("fed"), options()).unwrap();
    while let Some(event) = feed.poll().unwrap() {
        match event {
            FeedEvent::TableCreated(table) => {
                store
                    .create_bytes_table(&table.name, table.rules_text.parse::<TableRules>().unwrap())
                    .unwrap();
            }
            FeedEvent::Row(row) => {
                let table = store.bytes_table(&row.table.name).unwrap();
                let value = match (row.value, &row.long) {
                    (Some(value), None) => value,
                    (None, Some(long)) => {
                        let value =
                            source.bytes_table(&row.table.name).unwrap().get(&row.key).unwrap().unwrap();
                        assert_eq!(long.size_bytes, value.len() as u64);
                        value
                    }
                    other => panic!("{other:?}"),
                };
                let until = |ms| Lifetime::Until(moment(ms));
                let table = table.with_lifetime(row.deadline.map(unix_ms).map_or(Lifetime::Default, until));
                table.write_whole(WriteOp::Put, &row.key, &value).unwrap();
            }
            FeedEvent::Batch(batch) => {
                assert!(batch.ops.iter().all(|op| op.change == FeedChange::Delete), "{batch:?}");
            }
            _ => {}
        }
    }
    check(&store, &[], "feed");
    drop(store);
    std::fs::remove_dir_all(dir.join("fed")).unwrap();
}

#[test]
fn a_bulk_load_takes_what_a_record_holds_and_names_the_key_of_what_is_longer() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let mut load = store.bulk_load_bytes("loaded", TableRules::new(KeyCodec::U64).fold("append")).unwrap();
    let long = bytes(3, 16 * MIB);
    for (key, pieces) in [(1_u64, 1), (2, 2), (3, 2)] {
        for _ in 0..pieces {
            load.push(WriteOp::Fold, &key.to_be_bytes(), &long).unwrap();
        }
    }
    let refused = load.push(WriteOp::Fold, &3_u64.to_be_bytes(), &long).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.message().contains("key 3"), "{refused}");
    load.push(WriteOp::Fold, &4_u64.to_be_bytes(), b"goes on").unwrap();
    let table = load.finish().unwrap();
    let len = |key: u64| table.get_with(&key.to_be_bytes(), |value| value.map(<[u8]>::len)).unwrap();
    assert_eq!([1, 2, 3, 4].map(len), [Some(16 * MIB), Some(32 * MIB), Some(32 * MIB), Some(7)]);
}

#[test]
fn what_a_table_cannot_take_is_an_error_that_names_the_key_and_nothing_is_lost_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let store = |name: &str| Store::create(dir.path().join(name), options()).unwrap();
    let (from, to) = (store("from"), store("to"));
    let separated = TableRules::new(KeyCodec::U64).separate(Some(4096));
    let blobs = from.create_bytes_table("blobs", separated).unwrap();
    let mut writer = blobs.writer(WriteOp::Put, &7_u64.to_be_bytes()).unwrap();
    writer.write_from(&mut &bytes(7, VALUE_BYTES_MAX + 1)[..]).unwrap();
    writer.finish().unwrap();
    let mut text = Vec::new();
    from.dump(&[], &mut text).unwrap();
    // The same table, but its values are inline.
    let inline = to.create_bytes_table("blobs", TableRules::new(KeyCodec::U64)).unwrap();
    let named = |error: folddb::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("key 7"), "{error}");
    };
    named(to.synchronize(inline.scan(), blobs.scan(), &SyncOptions::default()).unwrap_err());
    named(
        inline.write_whole(WriteOp::Put, &7_u64.to_be_bytes(), &bytes(7, VALUE_BYTES_MAX + 1)).unwrap_err(),
    );
    named(inline.write(WriteOp::Put, &7_u64.to_be_bytes(), &bytes(7, VALUE_BYTES_MAX + 1)).unwrap_err());
    drop((inline, to));
    let lines = String::from_utf8(text).unwrap();
    let inline = lines
        .replace(",\"separate_from=4096\"", "")
        .replace("separate_from=4096\",\"", "")
        .replace(",\"separate=4096\"", "");
    assert_ne!(inline, lines, "the rules of the table say from where on values are separated");
    let to = store("again");
    let partial = LoadOptions::default().partial(true);
    named(to.load(&mut inline.as_bytes(), &partial).unwrap_err());
}
