//! Deadlines, and values that are too long for an event.

use folddb::time::{moment, unix_ms};
use folddb::{Expire, FeedChange, FeedEvent, FeedOptions, Keep, Lifetime, Rules, Store, Table, WriteOp};

use crate::replica::{blobs, options, texts};

#[test]
fn deadlines_come_with_rows_and_ops() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().expire(folddb::Expire::ByWrite).separate(50);
    let table = store.table("t", rules).unwrap();
    let far = unix_ms(store.now()) + 3_600_000;
    let put = |key: u64, bytes: usize| {
        let table = table.with_lifetime(Lifetime::Until(moment(far)));
        table.put(&key, &vec![7; bytes]).unwrap();
    };
    put(1, 10);
    put(2, 100);
    let hashed = store.table("h", Rules::hashed::<u64, Vec<u8>>().expire(folddb::Expire::ByWrite)).unwrap();
    let put_hashed = |key: u64, bytes: usize| {
        let table = hashed.with_lifetime(Lifetime::Until(moment(far)));
        table.put(&key, &vec![8; bytes]).unwrap();
    };
    put_hashed(1, 30);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    put(3, 10);
    put(4, 100);
    put_hashed(2, 40);
    let mut found = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        match event {
            FeedEvent::Row(row) => found.push((row.value.unwrap().len(), row.deadline.map(unix_ms))),
            FeedEvent::Batch(batch) => {
                assert!(batch.written.is_some());
                for op in batch.ops {
                    let FeedChange::Put(value) = op.change else { panic!("{op:?}") };
                    found.push((value.len(), op.deadline.map(unix_ms)));
                }
            }
            _ => {}
        }
    }
    assert_eq!(found, [30, 10, 100, 10, 100, 40].map(|bytes| (bytes, Some(far))));
}

/// Streams a value of this many bytes.
fn stream(table: &Table<u64, Vec<u8>>, op: WriteOp, key: u64, bytes: usize) {
    let mut writer = table.as_bytes().writer(op, &key.to_be_bytes()).unwrap();
    for piece in vec![key as u8; bytes].chunks(1 << 20) {
        std::io::Write::write_all(&mut writer, piece).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn rows_and_batches_give_the_length_of_long_values_and_read_nothing() {
    const LONG: usize = (16 << 20) + 1;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().fold("append:\"\"").separate(100);
    let tables = [store.table("joins", rules).unwrap(), texts(&store), blobs(&store)];
    for table in &tables {
        stream(table, WriteOp::Put, 1, LONG);
        stream(table, WriteOp::Put, 2, LONG - 1);
        table.put(&3, &vec![3; 10]).unwrap();
    }
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    let mut rows = Vec::new();
    loop {
        let reads = store.stats().reads.values;
        match feed.poll().unwrap().unwrap() {
            FeedEvent::Row(row) => {
                let key = row.key[7];
                assert_eq!(row.long.is_none(), row.value.is_some());
                if let Some(head) = &row.long {
                    let table = store.bytes_table(&row.table.name).unwrap();
                    assert_eq!(Some(head), table.head(&row.key).unwrap().as_ref());
                    assert!(row.table.name == "blobs" || store.stats().reads.values == reads);
                }
                let len = row.value.map(|value| value.len());
                rows.push((row.table.name.clone(), key, len, row.long.map(|head| head.size_bytes as usize)));
            }
            FeedEvent::RowsEnd => break,
            _ => {}
        }
    }
    rows.sort();
    let of = |name: &str| {
        let row = |key, value, long| (name.to_owned(), key, value, long);
        [row(1, None, Some(LONG)), row(2, Some(LONG - 1), None), row(3, Some(10), None)]
    };
    assert_eq!(rows, ["blobs", "joins", "texts"].map(of).concat());

    for table in &tables[..2] {
        stream(table, WriteOp::Put, 4, LONG);
        stream(table, WriteOp::Put, 5, LONG - 1);
        stream(table, WriteOp::PutIfAbsent, 6, LONG);
    }
    stream(&tables[2], WriteOp::Put, 4, LONG);
    stream(&tables[0], WriteOp::Fold, 4, LONG);
    let mut told = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        let FeedEvent::Batch(batch) = event else { panic!("{event:?}") };
        told.extend(batch.ops.into_iter().map(|op| match op.change {
            FeedChange::Put(value) => FeedChange::PutLong(value.len() as u64),
            change => change,
        }));
    }
    let len = LONG as u64;
    let set = [FeedChange::PutLong(len), FeedChange::PutLong(len - 1), FeedChange::PutIfAbsentLong(len)];
    let rest = [FeedChange::PutLong(len), FeedChange::FoldLong(len)];
    assert_eq!(told, [&set[..], &set, &rest].concat());
}

#[test]
fn writes_of_long_values_are_given_with_their_deadlines() {
    const UNTIL_MS: u64 = 4_000_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let options = options().tuning(|t| t.stream_piece_bytes(16 << 10));
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let lasting = Rules::sorted::<u64, Vec<u8>>().separate(100).expire(Expire::ByWrite);
    let tables = [
        store.table("lasting", lasting).unwrap(),
        store.table("hashed", Rules::hashed().expire(Expire::ByWrite)).unwrap(),
        store.table("versions", Rules::hashed().keep(Keep::Versions(2))).unwrap(),
    ];
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    while feed.poll().unwrap().unwrap() != FeedEvent::RowsEnd {}
    // Too long to be held in memory; in pieces that are held together; at once.
    let lens = [(16 << 20) + 1, 200_000, 1_000];
    for table in &tables {
        let lasts = table.name() != "versions";
        for (key, len) in (0_u64..).zip(lens) {
            let lifetime = if lasts { Lifetime::Until(moment(UNTIL_MS)) } else { Lifetime::Default };
            let mut writer = table.with_lifetime(lifetime).writer(&key).unwrap();
            writer.write_from(&mut &vec![key as u8; len][..]).unwrap();
            writer.finish().unwrap();
        }
    }
    let mut told = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        let FeedEvent::Batch(batch) = event else { panic!("{event:?}") };
        told.extend(
            batch.ops.into_iter().map(|op| (op.table.name.clone(), op.change, op.deadline.map(unix_ms))),
        );
    }
    let of = |name: &str| {
        let deadline_ms = (name != "versions").then_some(UNTIL_MS);
        let held = |key: u8, len| FeedChange::Put(vec![key; len]);
        [FeedChange::PutLong(lens[0] as u64), held(1, lens[1]), held(2, lens[2])]
            .map(|change| (name.to_owned(), change, deadline_ms))
    };
    assert!(told == ["lasting", "hashed", "versions"].map(of).concat(), "what was written is not told so");
}
