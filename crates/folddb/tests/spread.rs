//! Work over many rows: scans split into pieces, folds on several threads, digests.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::maintenance::{LoadOptions, SyncOptions};
use folddb::table_rules::{Compression, TableKind, TableRules};
use folddb::time::moment;
use folddb::{
    BackgroundWork, BytesScan, BytesTable, ErrorKind, Expire, Keep, Lifetime, Options, Rules, Store, Table,
    Transaction, WriteOp,
};

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.part_bytes(64 << 10))
        .background(BackgroundWork::Manual)
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key + round) as u8; 100 + (key * 37 % 400) as usize]
}

/// A store whose values are separated from `separate` bytes on, written in an order of its own,
/// with some keys written twice.
fn filled(
    separate: Option<u32>,
    order: impl Iterator<Item = u64>,
) -> (tempfile::TempDir, Store, Table<u64, Vec<u8>>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>();
    let rules = match separate {
        Some(from) => rules.separate(from),
        None => rules,
    };
    let table = store.table("t", rules).unwrap();
    for (number, key) in order.enumerate() {
        if key % 3 == 0 {
            table.put(&key, &blob(key, 9)).unwrap();
        }
        table.put(&key, &blob(key, 0)).unwrap();
        if number % 4000 == 3999 {
            store.flush().unwrap();
        }
    }
    while store.background_step().unwrap().is_some() {}
    (dir, store, table)
}

const KEYS: u64 = 10_000;

fn rows(table: &BytesTable) -> Vec<(Vec<u8>, Vec<u8>)> {
    table.scan().into_iter().map(|row| row.unwrap()).collect()
}

#[test]
fn pieces_follow_one_another_and_see_one_snapshot() {
    let (_dir, store, table) = filled(None, 0..KEYS);
    let all = rows(table.as_bytes());
    for pieces in [1, 2, 5, 16] {
        let split = table.as_bytes().scan().split(pieces).unwrap();
        assert_eq!(split.len(), pieces);
        table.delete(&(pieces as u64)).unwrap();
        let counts: Vec<usize> = split.iter().map(|piece| piece.clone().into_iter().count()).collect();
        let even = all.len() / pieces;
        assert!(counts.iter().all(|count| *count > even / 3 && *count < even * 3), "{counts:?}");
        let joined: Vec<_> = split.into_iter().flatten().map(|row| row.unwrap()).collect();
        assert_eq!(joined, all, "what is deleted after the cut is there in every piece");
        table.put(&(pieces as u64), &blob(pieces as u64, 0)).unwrap();
    }
    store.flush().unwrap();
    let back = table.as_bytes().scan().reverse().split(7).unwrap();
    let joined: Vec<_> = back.into_iter().flatten().map(|row| row.unwrap()).collect();
    assert!(joined.iter().eq(all.iter().rev()));
}

#[test]
fn a_fold_over_rows_is_the_same_on_any_number_of_threads() {
    let (_dir, store, table) = filled(Some(256), 0..KEYS);
    let table = table.as_bytes();
    let keys: Vec<Vec<u8>> = rows(table).into_iter().map(|row| row.0).collect();
    let bytes: usize = rows(table).iter().map(|row| row.1.len()).sum();
    for threads in [0, 1, 2, 5] {
        let gathered = table.scan().fold_rows(
            threads,
            || (Vec::new(), 0),
            |(keys, bytes), key, value| {
                keys.push(key.to_vec());
                *bytes += value.len();
                ControlFlow::Continue(())
            },
            |(mut keys, bytes), (more, others)| {
                keys.extend(more);
                (keys, bytes + others)
            },
        );
        assert_eq!(gathered.unwrap(), (keys.clone(), bytes), "{threads} threads");
    }
    let read = store.stats().reads.values;
    let sized = table.scan().fold_heads(
        3,
        || 0,
        |sum, _, head| {
            *sum += head.size_bytes as usize;
            ControlFlow::Continue(())
        },
        |a, b| a + b,
    );
    assert_eq!(sized.unwrap(), bytes);
    assert_eq!(store.stats().reads.values, read, "a fold over heads reads no value");
}

#[test]
fn a_step_that_breaks_ends_the_work_of_all() {
    let (_dir, _store, table) = filled(None, 0..KEYS);
    let seen = table.as_bytes().scan().fold_rows(
        1,
        || 0,
        |count, _, _| {
            *count += 1;
            if *count == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        |a, b| a + b,
    );
    assert_eq!(seen.unwrap(), 10);
    let limited = table.as_bytes().scan().limit(3);
    let refused = limited.fold_rows(1, || (), |(), _, _| ControlFlow::Continue(()), |(), ()| ());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_flag_ends_work_over_a_range_from_outside() {
    let (_dir, store, table) = filled(None, 0..KEYS);
    let sums = store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64").summaries(true)).unwrap();
    let hashed = store.table("hashed", Rules::hashed::<u64, u64>()).unwrap();
    (0..100).for_each(|key| {
        sums.fold(&key, &1).unwrap();
        hashed.put(&key, &1).unwrap();
    });
    let (table, flag) = (table.as_bytes(), Arc::new(AtomicBool::new(false)));
    let scan = |table: &BytesTable| table.scan().stopped_by(&flag);
    let compare = |first: BytesScan| first.compare(table.scan(), |_| ControlFlow::Continue(()));
    type Work<'w> = (&'w str, &'w dyn Fn() -> folddb::Result<()>);
    let works: [Work<'_>; 7] = [
        ("count", &|| scan(table).count().map(drop)),
        ("count summaries", &|| scan(sums.as_bytes()).count().map(drop)),
        ("count a hashed table", &|| scan(hashed.as_bytes()).count().map(drop)),
        ("aggregate", &|| scan(sums.as_bytes()).aggregate().map(drop)),
        ("digest", &|| scan(table).digest(1, 2).map(drop)),
        ("compare", &|| compare(scan(table)).map(drop)),
        ("compare with", &|| table.scan().compare(scan(table), |_| ControlFlow::Continue(())).map(drop)),
    ];
    for is_raised in [false, true] {
        flag.store(is_raised, Relaxed);
        for (what, work) in works {
            let ended = work().map_err(|error| error.kind());
            assert_eq!(ended, if is_raised { Err(ErrorKind::Stopped) } else { Ok(()) }, "{what}");
        }
    }

    flag.store(false, Relaxed);
    let seen = AtomicU64::new(0);
    let step = |(): &mut (), _: &[u8], _: &[u8]| {
        flag.store(seen.fetch_add(1, Relaxed) == 9, Relaxed);
        ControlFlow::Continue(())
    };
    let stopped = scan(table).fold_rows(1, || (), step, |(), ()| ());
    assert_eq!((stopped.unwrap_err().kind(), seen.into_inner()), (ErrorKind::Stopped, 10));
}

#[test]
fn two_stores_with_the_same_content_have_the_same_digest_however_it_came_there() {
    let (_dir, mine, table) = filled(Some(256), 0..KEYS);
    let (_other_dir, _theirs, other) = filled(None, (0..KEYS).rev());
    let (table, other) = (table.as_bytes(), other.as_bytes());
    let read = mine.stats().reads.values;
    let digest = |table: &BytesTable, threads| table.scan().digest(3, threads).unwrap();
    assert_eq!(digest(table, 1), digest(other, 4));
    assert_eq!(digest(table, 3).keys(), KEYS);
    assert_eq!(mine.stats().reads.values, read, "a digest reads no value");

    let changed = rows(table)[1234].0.clone();
    other.write(WriteOp::Put, &changed, &blob(1234, 1)).unwrap();
    let (a, b) = (digest(table, 2), digest(other, 2));
    assert_ne!(a.root(), b.root());
    assert_eq!(a.differing(&b).unwrap(), [a.leaf_of(&changed)]);
    let before = other.scan().before(&changed).digest(3, 2).unwrap();
    assert_eq!(before, table.scan().before(&changed).digest(3, 1).unwrap());
    assert!(a.differing(&before).is_err(), "digests of other ranges do not compare");
}

// ---- digests: rules and deadlines ---------------------------------------------------------------

/// A deadline this many hours after a time that no test reaches.
fn until(hours: u64) -> Lifetime {
    Lifetime::Until(moment(4_000_000_000_000 + hours * 3_600_000))
}

#[test]
fn the_same_bytes_under_other_rules_are_not_the_same_digest() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let plain = || TableRules::new(KeyCodec::U64);
    let sum = || plain().fold("sum:u64");
    let value = 7u64.to_le_bytes();
    let digest = |name: &str, rules: TableRules| {
        let table = store.create_bytes_table(name, rules).unwrap();
        table.write(WriteOp::Put, &1u64.to_be_bytes(), &value).unwrap();
        table.scan().digest(1, 1).unwrap()
    };
    let mine = digest("sum:u64", sum());
    let others = [
        ("sum:i64", plain().fold("sum:i64")),
        ("max:u64", plain().fold("max:u64")),
        ("a key of another kind", TableRules::new(KeyCodec::Bytes).fold("sum:u64")),
        ("another order", sum().order("reversed")),
        ("a delete rule", sum().delete_when(&[0; 8])),
        ("a short-circuit", sum().short_circuit_when(&[0xff; 8])),
        ("no fold", plain()),
    ];
    for (what, rules) in others {
        let other = digest(what, rules);
        assert!(!mine.compares_with(&other) && mine.differing(&other).is_err(), "{what}");
        assert_ne!(mine.root(), other.root(), "{what}");
    }
    let values = |codec| digest(&format!("values {codec:?}"), plain().value(codec));
    assert_ne!(
        values(ValueCodec::U64).root(),
        values(ValueCodec::I64).root(),
        "nothing else says what they are"
    );

    let alike = [
        ("blocks", sum().block_bytes(512).filter_bits(0).compression(Compression::Lz4)),
        ("a codec that the fold does not ask", sum().value(ValueCodec::U64)),
        ("values that may expire, and do not", sum().expire(Expire::ByWrite)),
        ("a past", sum().keep(Keep::Forever)),
        ("no order", sum().kind(TableKind::Hashed)),
        ("names", sum().key_names(["id"])),
    ];
    for (what, rules) in alike {
        assert_eq!(mine, digest(what, rules), "{what}");
    }
}

#[test]
fn the_same_rows_with_another_deadline_are_not_the_same_digest() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let kinds = [
        ("sorted", Rules::sorted::<u64, String>()),
        ("separated", Rules::sorted::<u64, String>().separate(32)),
        ("hashed", Rules::hashed::<u64, String>()),
    ];
    for (kind, rules) in kinds {
        let rules = rules.expire(Expire::ByWrite);
        let filled = |name: &str, lifetime: Lifetime| {
            let table = store.table(&format!("{kind} {name}"), rules.clone()).unwrap();
            let value = "a value that is separated".repeat(2);
            for key in 0..20 {
                table.with_lifetime(until(1)).put(&key, &value).unwrap();
            }
            table.with_lifetime(lifetime).put(&7, &value).unwrap();
            table
        };
        let tables = [("first", until(1)), ("other", until(2)), ("forever", Lifetime::Forever)];
        let [first, other, forever] = tables.map(|(name, lifetime)| filled(name, lifetime));
        let digest = |table: &Table<u64, String>| table.as_bytes().scan().digest(2, 2).unwrap();
        let leaf = vec![digest(&first).leaf_of(&7u64.to_be_bytes())];
        for different in [&other, &forever] {
            assert_eq!(digest(&first).differing(&digest(different)).unwrap(), leaf, "{kind}");
            assert_ne!(digest(&first).root(), digest(different).root(), "{kind}");
        }
        other.with_lifetime(until(1)).put(&7, &first.get(&7).unwrap().unwrap()).unwrap();
        assert_eq!(digest(&first), digest(&other), "{kind}");
    }
}

#[test]
fn equal_stores_have_one_digest_after_merges_dump_and_load_and_sync() {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str| Store::create(dir.path().join(name), options()).unwrap();
    let rules =
        Rules::sorted::<u64, u64>().fold("sum:u64").expire(Expire::After(Duration::from_millis(1 << 40)));
    let digest = |store: &Store| store.bytes_table("t").unwrap().scan().digest(2, 2).unwrap();
    let store = create("store");
    let table = store.table("t", rules.clone()).unwrap();
    for round in 0..5 {
        for key in 0..500 {
            table.with_lifetime(until(key % 7 + round)).fold(&key, &round).unwrap();
        }
        store.flush().unwrap();
    }
    let before = digest(&store);
    assert_eq!(before.keys(), 500);
    store.bytes_table("t").unwrap().compact().unwrap();
    assert_eq!(digest(&store), before, "merged");

    let (mut dump, loaded) = (Vec::new(), create("loaded"));
    store.dump(&[], &mut dump).unwrap();
    loaded.load(&mut &dump[..], &LoadOptions::default()).unwrap();
    assert_eq!(digest(&loaded), before, "dumped and loaded");

    let synced = create("synced");
    let theirs = synced.table("t", rules).unwrap();
    theirs.with_lifetime(until(9)).fold(&3, &1).unwrap();
    let (to, from) = (theirs.as_bytes().scan(), table.as_bytes().scan());
    assert_ne!(digest(&synced), before);
    synced.synchronize(to, from, &SyncOptions::default()).unwrap();
    assert_eq!(digest(&synced), before, "synced");
}

/// Streamed, joined or set at once: the same bytes are the same value.
#[test]
fn a_digest_minds_bytes_and_not_how_they_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str, piece_bytes| {
        let options = options().tuning(|t| t.stream_piece_bytes(piece_bytes));
        Store::create(dir.path().join(name), options).unwrap()
    };
    let rules = || TableRules::new(KeyCodec::Bytes).fold("append").separate(Some(32));
    let value: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    let fill = |store: &Store, put: &dyn Fn(&BytesTable)| {
        let table = store.create_bytes_table("t", rules()).unwrap();
        put(&table);
        store.flush().unwrap();
        table
    };
    let stream = |table: &BytesTable| {
        let mut writer = table.writer(WriteOp::Put, b"k").unwrap();
        writer.write_from(&mut &value[..]).unwrap();
        writer.finish().unwrap();
    };
    let join = |table: &BytesTable| {
        value.chunks(1000).for_each(|piece| {
            table.write(WriteOp::Fold, b"k", piece).unwrap();
        });
    };
    let set = |table: &BytesTable| {
        table.write(WriteOp::Put, b"k", &value).unwrap();
    };
    type Put<'p> = (&'p str, usize, &'p dyn Fn(&BytesTable));
    let puts: [Put<'_>; 4] = [
        ("set", 1 << 20, &set),
        ("in small pieces", 4 << 10, &stream),
        ("in others", 64 << 10, &stream),
        ("joined", 64 << 10, &join),
    ];
    let digests = puts.map(|(name, piece_bytes, put)| {
        let store = create(name, piece_bytes);
        let table = fill(&store, put);
        let pieces = table.head(b"k").unwrap().unwrap().pieces;
        assert_eq!(pieces > 1, name != "set", "{name}: {pieces}");
        table.scan().digest(1, 1).unwrap()
    });
    for ((name, ..), digest) in puts.iter().zip(&digests) {
        assert_eq!(digest, &digests[0], "{name}");
    }
}

/// Its writes get their deadline from the time of the commit, and no digest knows that.
#[test]
fn a_transaction_makes_no_digest_of_deadlines_that_are_not_settled() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::hashed::<u64, String>().expire(Expire::ByWrite);
    let table = store.table("t", rules).unwrap();
    table.with_lifetime(until(1)).put(&1, "one").unwrap();
    let mut transaction = store.transaction();
    let inside = |transaction: &Transaction| transaction.scan(table.as_bytes()).digest(1, 1);
    assert_eq!(inside(&transaction).unwrap(), table.as_bytes().scan().digest(1, 1).unwrap());
    transaction.put(&table, &2, "two");
    let refused = inside(&transaction).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::InvalidInput && refused.to_string().contains("commit first"),
        "{refused}"
    );
}
