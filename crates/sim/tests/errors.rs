//! The response to bad input: a clear error that names the thing and what to do, and nothing is
//! lost. Damaged files are in `damage.rs`, a full disk in `full_disk.rs`.

use std::sync::Arc;

use folddb::limits::{KEY_BYTES_MAX, TABLE_NAME_BYTES_MAX, VALUE_BYTES_MAX};
use folddb::table_rules::TableRules;
use folddb::{BackgroundWork, Durability, Error, ErrorKind, Options, Rules, Store, WriteOp};
use folddb_host::Host;
use folddb_sim::faulty_files::{Call, Fault, FaultyFiles};
use folddb_sim::place::Place;

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

/// The error, of this kind, whose message contains all of this.
fn assert_refused<T>(result: folddb::Result<T>, kind: ErrorKind, says: &[&str]) -> Error {
    let error = result.map(|_| ()).expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{error}");
    for part in says {
        assert!(error.to_string().contains(part), "{part:?} is not in: {error}");
    }
    error
}

#[test]
fn a_mistyped_path_creates_nothing() {
    let place = Place::new();
    let path = place.path();
    let refused = Store::open(&path, options());
    assert_refused(refused, ErrorKind::StoreNotFound, &[&path.display().to_string(), "create"]);
    assert!(!path.exists());
    std::fs::create_dir(&path).unwrap();
    assert_refused(Store::open(&path, options()), ErrorKind::StoreNotFound, &[]);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "an empty directory stays empty");
    let file = place.dir().join("file");
    std::fs::write(&file, b"text").unwrap();
    assert_refused(Store::open(&file, options()), ErrorKind::StoreNotFound, &["file"]);
}

#[test]
fn a_store_is_not_created_over_something() {
    let place = Place::new();
    let store = place.create(options());
    store.table("t", Rules::sorted::<u64, u64>()).unwrap().put(&1, &2).unwrap();
    assert_refused(Store::create(place.path(), options()), ErrorKind::AlreadyExists, &["not empty"]);
    store.close().unwrap();
    assert_refused(Store::create(place.path(), options()), ErrorKind::AlreadyExists, &["not empty"]);
    let store = Store::open(place.path(), options()).unwrap();
    assert_eq!(store.table("t", Rules::sorted::<u64, u64>()).unwrap().get(&1).unwrap(), Some(2));
}

#[test]
fn an_unknown_table_is_answered_with_those_that_there_are() {
    let place = Place::new();
    let store = place.create(options());
    assert_refused(store.bytes_table("routes"), ErrorKind::TableNotFound, &["`routes`", "no tables yet"]);
    store.create_bytes_table("flights", TableRules::counter()).unwrap();
    store.create_bytes_table("delays", TableRules::stats()).unwrap();
    assert_refused(store.bytes_table("flight"), ErrorKind::TableNotFound, &["`flight`", "delays, flights"]);
    assert_refused(store.drop_table("flight"), ErrorKind::TableNotFound, &["`flight`"]);
    assert_refused(
        store.bytes_table("x").and_then(|table| table.compact()),
        ErrorKind::TableNotFound,
        &["`x`"],
    );
    assert_refused(
        store.bytes_table("x").and_then(|table| table.stats()),
        ErrorKind::TableNotFound,
        &["`x`"],
    );
}

#[test]
fn bad_table_names_and_a_name_twice_are_refused() {
    let place = Place::new();
    let store = place.create(options());
    let long = "n".repeat(TABLE_NAME_BYTES_MAX + 1);
    for name in ["", "a\nb", long.as_str()] {
        assert_refused(
            store.create_bytes_table(name, TableRules::counter()),
            ErrorKind::InvalidInput,
            &["name"],
        );
    }
    store.create_bytes_table("t", TableRules::counter()).unwrap();
    assert_refused(store.create_bytes_table("t", TableRules::counter()), ErrorKind::AlreadyExists, &["`t`"]);
    assert_eq!(store.tables(), ["t"]);
}

#[test]
fn a_wrong_fold_is_refused_with_both_named() {
    let place = Place::new();
    let store = place.create(options());
    let sums = store.table("t", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    sums.fold("k", &1).unwrap();
    let refused = store.table("t", Rules::sorted::<String, u64>().fold("max:u64"));
    assert_refused(refused, ErrorKind::RulesMismatch, &["`t`", "sum:u64", "max:u64"]);
    let refused = store.table("u", Rules::sorted::<String, u64>().fold("summ:u64"));
    let error = assert_refused(refused, ErrorKind::InvalidInput, &["summ"]);
    assert!(error.message().contains("`u`"), "{error}");
    assert_eq!(store.tables(), ["t"]);
    assert_eq!(sums.get("k").unwrap(), Some(1));
}

#[test]
fn a_wrong_key_type_or_order_is_refused_with_both_named() {
    let place = Place::new();
    let store = place.create(options());
    store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    let refused = store.table("t", Rules::sorted::<String, u64>());
    assert_refused(refused, ErrorKind::RulesMismatch, &["`t`", "u64", "utf8"]);
    let refused = store.table("t", Rules::sorted::<u64, u64>().reversed());
    assert_refused(refused, ErrorKind::RulesMismatch, &["`t`", "bytewise", "reversed"]);
    let refused = store.table("v", Rules::sorted::<u64, u64>().order("nobody-knows"));
    assert_refused(refused, ErrorKind::InvalidInput, &["`v`", "nobody-knows"]);
}

#[test]
fn bytes_that_are_no_key_or_value_of_the_table_are_refused() {
    let place = Place::new();
    let store = place.create(options());
    let table = store.create_bytes_table("t", TableRules::counter()).unwrap();
    assert_refused(table.write(WriteOp::Fold, b"\xff", &[0; 8]), ErrorKind::InvalidInput, &["`t`", "key"]);
    assert_refused(table.write(WriteOp::Fold, b"k", &[0; 7]), ErrorKind::InvalidInput, &["`t`", "value"]);
    for (key, value) in [(&b"\xff"[..], &[0; 8][..]), (b"k", &[0; 7])] {
        let mut batch = store.batch();
        batch.write(&table, WriteOp::Fold, b"good", &[0; 8]).write(&table, WriteOp::Fold, key, value);
        assert_refused(batch.commit(Durability::Process), ErrorKind::InvalidInput, &["`t`"]);
    }
    assert_eq!(table.scan().count().unwrap(), 0, "nothing of those batches was written");
}

#[test]
fn oversized_keys_values_and_batches_are_refused_whole() {
    let place = Place::new();
    let store = place.create(options());
    let table = store.table("t", Rules::sorted::<Vec<u8>, Vec<u8>>()).unwrap();
    let key = vec![1u8; KEY_BYTES_MAX + 1];
    let says = ["`t`", "65536 bytes", "65535"];
    assert_refused(table.put(&key, b"v"), ErrorKind::InvalidInput, &says);
    assert_refused(table.delete(&key), ErrorKind::InvalidInput, &says);
    assert_refused(table.delete_range(&b"a"[..], &key[..]), ErrorKind::InvalidInput, &[]);
    table.put(&key[1..], b"the longest key").unwrap();
    assert_eq!(table.get(&key[1..]).unwrap().unwrap(), b"the longest key");
    assert_eq!(table.get(&key).unwrap(), None, "asking for it is no mistake");

    let value = vec![2u8; VALUE_BYTES_MAX + 1];
    assert_refused(table.put(b"k", &value), ErrorKind::InvalidInput, &["`t`", "16777217 bytes"]);
    let mut batch = store.batch();
    batch.put(&table, b"small", b"v").put(&table, b"k", &value);
    assert_refused(batch.commit(Durability::Process), ErrorKind::InvalidInput, &["`t`"]);
    assert_eq!(table.get(b"small").unwrap(), None);
    for at in 0..3u8 {
        batch.put(&table, &[at][..], &value[1..]);
    }
    assert_refused(batch.commit(Durability::Process), ErrorKind::InvalidInput, &["batch", "several"]);
    assert_eq!(table.scan().count().unwrap(), 1);
    store.flush().unwrap();
    assert_eq!(table.get(&key[1..]).unwrap().unwrap(), b"the longest key");
}

#[test]
fn the_largest_value_is_stored_where_a_segment_holds_it() {
    let place = Place::new();
    let store = Store::create(place.path(), options().tuning(|t| t.segment_bytes(64 << 20))).unwrap();
    let table = store.table("t", Rules::sorted::<Vec<u8>, Vec<u8>>()).unwrap();
    let value: Vec<u8> = (0..VALUE_BYTES_MAX).map(|at| (at / 7) as u8).collect();
    table.put(b"k", &value).unwrap();
    assert!(table.get(b"k").unwrap().unwrap() == value);
    store.flush().unwrap();
    assert!(table.get(b"k").unwrap().unwrap() == value);
    drop((table, store));
    let store = Store::open(place.path(), options()).unwrap();
    let table = store.table("t", Rules::sorted::<Vec<u8>, Vec<u8>>()).unwrap();
    assert!(table.get(b"k").unwrap().unwrap() == value);
}

#[test]
fn a_batch_that_no_segment_holds_is_refused_and_others_go_on() {
    let place = Place::new();
    let store = place.create(options()); // segments of 1 MiB
    let table = store.table("t", Rules::sorted::<Vec<u8>, Vec<u8>>()).unwrap();
    table.put(b"a", b"1").unwrap();
    assert!(
        table.put(b"b", &vec![0; 3 << 20]).is_err()
            || table.get(b"b").unwrap().is_some_and(|v| v.len() == 3 << 20)
    );
    table.put(b"c", b"3").unwrap();
    assert!(store.stats().poisoned_by.is_none());
    assert_eq!(table.get(b"c").unwrap().unwrap(), b"3");
}

#[test]
fn a_range_upside_down_and_a_snapshot_of_another_store_are_refused() {
    let (place, other_place) = (Place::new(), Place::new());
    let (store, other) = (place.create(options()), other_place.create(options()));
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    let foreign = other.table("t", Rules::sorted::<u64, u64>()).unwrap();
    assert_refused(table.delete_range(&5, &5), ErrorKind::InvalidInput, &["`t`"]);
    assert_refused(table.delete_range(&5, &4), ErrorKind::InvalidInput, &["`t`"]);
    let past = store.snapshot();
    assert_refused(past.get(&foreign, &1), ErrorKind::InvalidInput, &["own store"]);
    assert_refused(past.scan(&foreign).count(), ErrorKind::InvalidInput, &["own store"]);
    let mut batch = store.batch();
    batch.put(&table, &1, &1).put(&foreign, &1, &1);
    assert_refused(batch.commit(Durability::Process), ErrorKind::InvalidInput, &["own store"]);
    assert_eq!((table.get(&1).unwrap(), foreign.get(&1).unwrap()), (None, None));
}

#[test]
fn a_store_that_is_open_is_not_opened_again() {
    let place = Place::new();
    let store = place.create(options());
    let path = place.path().display().to_string();
    assert_refused(Store::open(place.path(), options()), ErrorKind::Locked, &[&path, "close"]);
    assert_refused(Store::open_read_only(place.path(), options()), ErrorKind::Locked, &[&path]);
    drop(store);
    let reader = Store::open_read_only(place.path(), options()).unwrap();
    let second = Store::open_read_only(place.path(), options()).unwrap();
    assert_refused(Store::open(place.path(), options()), ErrorKind::Locked, &[&path]);
    drop((reader, second));
    Store::open(place.path(), options()).unwrap();
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_as_it_is() {
    let place = Place::new();
    place.create(options()).close().unwrap();
    let format = place.path().join("FORMAT");
    let version = b"folddb format 1000 and all after it has changed\n";
    std::fs::write(&format, version).unwrap();
    assert_refused(Store::open(place.path(), options()), ErrorKind::NewerFormat, &["1000", "version"]);
    assert_refused(Store::open_read_only(place.path(), options()), ErrorKind::NewerFormat, &["1000"]);
    assert_eq!(std::fs::read(&format).unwrap(), version);
}

#[test]
fn a_file_without_permission_is_named() {
    let place = Place::new();
    place.create(options()).close().unwrap();
    const EACCES: i32 = 13;
    for (call, name) in [
        (Call::Open, "FORMAT"),
        (Call::Lock, "LOCK"),
        (Call::Create, "MANIFEST"),
        (Call::CreateAppend, ".log"),
    ] {
        let files = FaultyFiles::new(Host::real().files);
        files.break_on(Fault { name: name.to_owned(), os_error: EACCES, ..Fault::on(&[call]) });
        let host = Host { files: Arc::new(files), ..Host::real() };
        assert_refused(
            Store::open(place.path(), options().host(host)),
            ErrorKind::Permission,
            &[name, "owner"],
        );
    }
    Store::open(place.path(), options()).unwrap();
}

#[test]
fn a_store_opened_for_reading_writes_nothing() {
    let place = Place::new();
    let store = place.create(options());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    table.put(&1, &1).unwrap();
    drop((table, store));
    let files = || {
        let mut names: Vec<_> = std::fs::read_dir(place.path())
            .unwrap()
            .flatten()
            .map(|entry| (entry.file_name(), entry.metadata().unwrap().len()))
            .collect();
        names.sort();
        names
    };
    let before = files();
    let store = Store::open_read_only(place.path(), options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(1));
    assert_refused(table.put(&1, &2), ErrorKind::ReadOnly, &["reading"]);
    assert_refused(table.delete(&1), ErrorKind::ReadOnly, &[]);
    assert_refused(store.drop_table("t"), ErrorKind::ReadOnly, &[]);
    assert_refused(store.create_bytes_table("u", TableRules::counter()), ErrorKind::ReadOnly, &[]);
    assert_refused(store.flush(), ErrorKind::ReadOnly, &[]);
    assert_refused(store.bytes_table("t").and_then(|table| table.compact()), ErrorKind::ReadOnly, &[]);
    assert_refused(store.table("u", Rules::sorted::<u64, u64>()), ErrorKind::TableNotFound, &["`u`"]);
    store.close().unwrap();
    assert_eq!(files(), before);
}

#[test]
fn handles_of_a_closed_store_and_of_a_dropped_table_say_so() {
    let place = Place::new();
    let store = place.create(options());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    let gone = store.table("gone", Rules::sorted::<u64, u64>()).unwrap();
    let mut batch = store.batch();
    batch.put(&gone, &1, &1).put(&table, &1, &1);
    store.drop_table("gone").unwrap();
    assert_refused(gone.get(&1), ErrorKind::Closed, &["`gone`", "dropped"]);
    assert_refused(gone.put(&1, &1), ErrorKind::Closed, &["`gone`"]);
    assert_refused(batch.commit(Durability::Process), ErrorKind::Closed, &["`gone`"]);
    assert_eq!(table.get(&1).unwrap(), None, "nothing of the batch was written");
    let clone = store.clone();
    store.close().unwrap();
    assert_refused(table.put(&1, &1), ErrorKind::Closed, &["closed"]);
    assert_refused(table.get(&1), ErrorKind::Closed, &["closed"]);
    assert_refused(clone.create_bytes_table("u", TableRules::counter()), ErrorKind::Closed, &["closed"]);
    assert_refused(clone.flush(), ErrorKind::Closed, &["closed"]);
}
