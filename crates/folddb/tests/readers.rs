//! Reading through the one trait: the present, a snapshot, a transaction; several keys at once; and
//! deletes of prefixes, which all handles for writes have.

#![allow(clippy::unwrap_used)]

use folddb::{Durability, ErrorKind, Options, Reader, Rules, Store, WriteOp};

const PROCESS: Durability = Durability::Process;

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), Options::default()).unwrap();
    (dir, store)
}

/// A word that is long enough to be separated.
fn word(word: &str) -> String {
    format!("{word:-<40}")
}

/// All answers of a reader about a table of words: each key in a way of its own.
fn said(words: &impl Reader<Key = String, Value = String>) -> Vec<String> {
    let shown = |(key, value): (String, String)| format!("{key}={}", value.replace('-', ""));
    let mut said = Vec::new();
    for key in ["a", "b", "ba", "c"] {
        let value = words.get(key).unwrap();
        assert_eq!(words.contains(key).unwrap(), value.is_some(), "{key}");
        let head = words.head(key).unwrap();
        assert_eq!(head.map(|head| head.size_bytes as usize), value.as_ref().map(String::len), "{key}");
        let mut read = String::new();
        if let Some(mut reader) = words.read(key).unwrap() {
            std::io::Read::read_to_string(&mut reader, &mut read).unwrap();
        }
        assert_eq!(read, value.clone().unwrap_or_default(), "{key}");
        let mut located = Vec::new();
        if let Some(at) = words.locate(key, folddb::Locate::default()).unwrap() {
            at.write_to(&mut located).unwrap();
        }
        assert_eq!(located, read.as_bytes(), "{key}");
        said.extend(value.map(|value| shown((key.to_owned(), value))));
    }
    let scanned: Vec<String> = words.scan().into_iter().map(|row| shown(row.unwrap())).collect();
    assert_eq!(scanned, said);
    assert_eq!(words.first().unwrap().map(shown).as_ref(), said.first());
    assert_eq!(words.last().unwrap().map(shown).as_ref(), said.last());
    assert_eq!(words.is_empty().unwrap(), said.is_empty());
    assert_eq!(words.aggregate().unwrap().rows, said.len() as u64);
    said
}

#[test]
fn a_table_is_read_alike_now_at_a_snapshot_and_in_a_transaction() {
    for separate in [None, Some(32)] {
        let (_dir, store) = store();
        let rules = Rules::sorted::<String, String>().fold("append");
        let rules = if let Some(bytes) = separate { rules.separate(bytes) } else { rules };
        let words = store.table("words", rules).unwrap();
        words.put("a", &word("one")).unwrap();
        words.put("b", &word("two")).unwrap();
        let past = store.snapshot();
        words.put("ba", &word("three")).unwrap();
        words.fold("a", "!").unwrap();
        assert_eq!(said(&words), ["a=one!", "b=two", "ba=three"]);
        assert_eq!(said(&past.table(&words)), ["a=one", "b=two"]);
        let mut transaction = store.transaction();
        let inside = transaction.table(&words);
        assert_eq!(said(&inside), said(&words));
        transaction.fold(&words, "a", "?").put(&words, "c", &word("four")).delete_prefix(&words, "b");
        assert_eq!(said(&inside), ["a=one!?", "c=four"]);
        assert_eq!(said(&transaction.snapshot().table(&words)), ["a=one!", "b=two", "ba=three"]);
        transaction.fold(&words, "b", "new");
        assert_eq!(said(&inside), ["a=one!?", "b=new", "c=four"]);
        transaction.delete_range(&words, "a", "bb").put_if_absent(&words, "ba", "again");
        assert_eq!(said(&inside), ["ba=again", "c=four"]);
        assert_eq!(transaction.get(&words, "a").unwrap(), None);
        transaction.commit(PROCESS).unwrap();
        assert_eq!(said(&words), ["ba=again", "c=four"]);
        assert_eq!(said(&past.table(&words)), ["a=one", "b=two"], "the snapshot is as it was");
    }
}

#[test]
fn many_keys_are_read_in_the_order_asked_and_as_of_one_moment() {
    let (_dir, store) = store();
    let sorted = store.table("sorted", Rules::sorted::<u64, u64>()).unwrap();
    let hashed = store.table("hashed", Rules::hashed::<u64, u64>()).unwrap();
    for table in [&sorted, &hashed] {
        for key in 0..100 {
            table.put(&key, &(key * 2)).unwrap();
        }
        let asked = [7, 200, 3, 7, 99];
        let found = [Some(14), None, Some(6), Some(14), Some(198)];
        assert_eq!(table.get_many(&asked).unwrap(), found, "{}", table.name());
        assert_eq!(table.get_many(&[0u64; 0]).unwrap(), []);
        let past = store.snapshot();
        table.delete(&3).unwrap();
        assert_eq!(past.table(table).get_many(&asked).unwrap(), found);
        let mut transaction = store.transaction();
        assert_eq!(transaction.table(table).get_many(&asked).unwrap()[2], None);
        table.put(&200, &1).unwrap();
        transaction.put(table, &1, &1);
        assert_eq!(transaction.commit(PROCESS).unwrap_err().kind(), ErrorKind::Conflict, "it has read 200");
    }

    // A transfer keeps the sum of all accounts, which a reader of many keys sees at any moment.
    for key in 0..10 {
        sorted.put(&key, &100).unwrap();
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..2000u64 {
                let (from, to, sum) = (round % 10, (round * 7 + 1) % 10, round % 50);
                let moved = store.transact(PROCESS, |transaction| {
                    let (a, b) = (transaction.get(&sorted, &from)?, transaction.get(&sorted, &to)?);
                    if let (Some(a), Some(b), true) = (a, b, from != to) {
                        transaction.put(&sorted, &from, &a.wrapping_sub(sum));
                        transaction.put(&sorted, &to, &b.wrapping_add(sum));
                    }
                    Ok(())
                });
                moved.unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let accounts: Vec<u64> = (0..10).rev().collect();
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let found = sorted.get_many(&accounts).unwrap();
            assert_eq!(found.into_iter().flatten().fold(0, u64::wrapping_add), 1000);
        }
    });
}

#[test]
fn a_prefix_is_deleted_in_tables_that_have_such_ranges_and_refused_in_others() {
    let (_dir, store) = store();
    for order in ["bytewise", "reversed"] {
        let rules = Rules::sorted::<(String, u64), u64>().order(order);
        let table = store.table(order, rules).unwrap();
        let rows = || -> Vec<(String, u64)> { table.scan().keys().map(Result::unwrap).collect() };
        for name in ["a", "ab", "b"] {
            for number in 0..3 {
                table.put(&(name, number), &1).unwrap();
            }
        }
        table.delete_prefix(&("a",)).unwrap();
        assert!(rows().iter().all(|(name, _)| name != "a") && rows().len() == 6, "{order}: {:?}", rows());
        let mut batch = store.batch();
        batch.delete_prefix(&table, &("ab",)).put(&table, &("ab", 7), &1);
        batch.commit(PROCESS).unwrap();
        assert_eq!(rows().len(), 4, "{order}: {:?}", rows());
        table.as_bytes().delete_prefix(b"").unwrap();
        assert!(table.is_empty().unwrap(), "{order}");
    }
    let hashed = store.table("hashed", Rules::hashed::<String, u64>()).unwrap();
    let refused = hashed.delete_prefix("a").unwrap_err();
    assert!(refused.message().contains("hashed"), "{refused}");
    let mut batch = store.batch();
    batch.delete_prefix(&hashed, "a");
    assert_eq!(batch.commit(PROCESS).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_verbs_of_writing_are_the_same_with_types_and_without_alone_and_gathered() {
    let (_dir, store) = store();
    let typed = store.table("t", Rules::sorted::<String, String>().fold("append")).unwrap();
    let bytes = store.bytes_table("t").unwrap();
    let expect = |said: &[&str]| {
        let rows: Vec<String> = typed.scan().into_iter().map(|row| row.unwrap().1).collect();
        assert_eq!(rows, said);
        typed.delete_prefix("").unwrap();
        assert!(bytes.is_empty().unwrap());
    };
    typed.put("a", "1").unwrap();
    typed.put_if_absent("a", "no").unwrap();
    typed.fold("a", "2").unwrap();
    typed.put("b", "gone").unwrap();
    typed.delete("b").unwrap();
    typed.put("c1", "gone").unwrap();
    typed.delete_range("c", "d").unwrap();
    expect(&["12"]);
    bytes.put(b"a", b"1").unwrap();
    bytes.put_if_absent(b"a", b"no").unwrap();
    bytes.fold(b"a", b"2").unwrap();
    bytes.put(b"b", b"gone").unwrap();
    bytes.delete(b"b").unwrap();
    bytes.put(b"c1", b"gone").unwrap();
    bytes.delete_range(b"c", b"d").unwrap();
    expect(&["12"]);
    let mut batch = store.batch();
    batch.put(&typed, "a", "1").put_if_absent(&typed, "a", "no").fold(&typed, "a", "2");
    batch
        .put(&typed, "b", "gone")
        .delete(&typed, "b")
        .put(&typed, "c1", "gone")
        .delete_range(&typed, "c", "d");
    batch.put(&bytes, "e", "1").put_if_absent(&bytes, b"e", b"no").fold(&bytes, &b"e"[..], "2");
    batch.put(&bytes, "f", "gone").delete(&bytes, "f").put(&bytes, "g1", "gone").delete_prefix(&bytes, "g");
    batch.write(&bytes, WriteOp::Fold, "e", "3");
    batch.commit(PROCESS).unwrap();
    expect(&["12", "123"]);
    let mut transaction = store.transaction();
    transaction.put(&typed, "a", "1").put_if_absent(&typed, "a", "no").fold(&typed, "a", "2");
    transaction
        .put(&bytes, "b", "gone")
        .delete(&bytes, "b")
        .put(&bytes, "g1", "gone")
        .delete_prefix(&bytes, "g");
    transaction.commit(PROCESS).unwrap();
    expect(&["12"]);
}

#[test]
fn a_find_in_a_transaction_finds_what_it_has_written_and_its_snapshot_does_not() {
    let (_dir, store) = store();
    let people = store.table("people", Rules::sorted::<u64, String>().index("by_name", "value")).unwrap();
    people.put(&1, "ann").unwrap();
    let mut transaction = store.transaction();
    assert_eq!(transaction.table(&people).find("by_name").unwrap().term("ann").count().unwrap(), 1);
    transaction.put(&people, &2, "ann");
    assert_eq!(transaction.table(&people).find("by_name").unwrap().term("ann").count().unwrap(), 2);
    assert_eq!(
        transaction.snapshot().table(&people).find("by_name").unwrap().term("ann").count().unwrap(),
        1
    );
}

#[test]
fn a_scan_ends_at_the_bounds_of_a_range_and_stays_at_its_end() {
    let (_dir, store) = store();
    let numbers = store.table("numbers", Rules::sorted::<u64, u64>()).unwrap();
    for key in 0..10 {
        numbers.put(&key, &key).unwrap();
    }
    let keys = |range: folddb::Scan<u64, u64>| range.keys().map(Result::unwrap).collect::<Vec<u64>>();
    assert_eq!(keys(numbers.scan().range(3..6)), [3, 4, 5]);
    assert_eq!(keys(numbers.scan().range(..=1)), [0, 1]);
    assert_eq!(keys(numbers.scan().range(8..).reverse()), [9, 8]);
    assert_eq!(numbers.scan().range(3..6).last().unwrap(), Some((5, 5)));
    assert!(numbers.scan().range(20..).is_empty().unwrap());
    let words = store.table("words", Rules::sorted::<String, u64>()).unwrap();
    words.put("b", &1).unwrap();
    assert_eq!(words.scan().range("a".."c").first().unwrap(), Some(("b".to_owned(), 1)));
    assert_eq!(words.as_bytes().scan().range("a".."b").first().unwrap(), None);
    let pairs = store.table("pairs", Rules::sorted::<(String, u64), u64>()).unwrap();
    pairs.put(&("UA", 1), &1).unwrap();
    pairs.put(&("UA", 2), &1).unwrap();
    assert_eq!(pairs.scan().range(("UA", 1)..=("UA", 1)).count().unwrap(), 1);
    let mut rows = numbers.scan().range(8..).into_iter();
    assert_eq!(rows.by_ref().count(), 2);
    assert!(rows.next().is_none() && rows.next().is_none());
}
