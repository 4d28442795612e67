//! Transactions: what was read still holds, or nothing is written.
#![allow(clippy::unwrap_used)]

mod occasion;

use std::sync::Arc;
use std::time::Duration;

use folddb::codec::KeyCodec;
use folddb::table_rules::TableKind;
use folddb::table_rules::TableRules;
use folddb::{
    BackgroundWork, BytesScan, BytesTable, Durability, ErrorKind, Expire, Fold, FoldFailure, Options,
    Outcome, Rules, Store, Table, Transaction, WriteOp,
};
use occasion::Occasion;

const PROCESS: Durability = Durability::Process;

fn fresh(background: BackgroundWork) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options::default().memory_bytes(4 << 20).tuning(|t| t.part_bytes(64 << 10)).background(background);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    (dir, store)
}

fn sums(store: &Store, name: &str) -> Table<u64, u64> {
    store.table(name, Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap()
}

fn conflicts(transaction: Transaction) -> bool {
    match transaction.commit(PROCESS) {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::Conflict => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_transaction_sees_one_snapshot_and_what_it_has_written_itself() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let table = sums(&store, "t");
    table.put(&1, &10).unwrap();
    let (mut transaction, other) = (store.transaction(), store.transaction());
    table.fold(&2, &5).unwrap();
    assert_eq!(transaction.get(&table, &1).unwrap(), Some(10));
    assert_eq!(other.snapshot().get(&table, &2).unwrap(), None, "written after it began");
    transaction.fold(&table, &1, &1).put_if_absent(&table, &1, &99).put_if_absent(&table, &3, &7);
    assert_eq!(transaction.get(&table, &1).unwrap(), Some(11));
    assert_eq!(transaction.fold_and_get(&table, &3, &1).unwrap(), Some(8));
    transaction.delete(&table, &1);
    assert_eq!(transaction.get(&table, &1).unwrap(), None);
    transaction.put(&table, &1, &4);
    assert_eq!(transaction.get(&table, &1).unwrap(), Some(4));
    assert_eq!(table.get(&1).unwrap(), Some(10), "nobody else sees it yet");
    transaction.commit(PROCESS).unwrap();
    assert_eq!((table.get(&1).unwrap(), table.get(&3).unwrap()), (Some(4), Some(8)));
}

#[test]
fn a_transaction_reads_what_it_has_written_to_a_table_whose_values_expire() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let rules = Rules::sorted::<u64, u64>().fold("sum:u64").expire(Expire::After(Duration::from_secs(3600)));
    let table = store.table("t", rules).unwrap();
    table.put(&1, &10).unwrap();
    let mut transaction = store.transaction();
    assert_eq!(transaction.fold_and_get(&table, &1, &5).unwrap(), Some(15));
    assert_eq!(transaction.fold_and_get(&table, &2, &7).unwrap(), Some(7));
    transaction.put(&table, &3, &4);
    assert_eq!(transaction.get(&table, &3).unwrap(), Some(4));
    transaction.commit(PROCESS).unwrap();
    assert_eq!((table.get(&1).unwrap(), table.get(&2).unwrap()), (Some(15), Some(7)));
}

/// Joins, and fails on `!`.
struct Brittle;

impl Fold for Brittle {
    fn spec(&self) -> String {
        "brittle".to_owned()
    }
    fn fold(&self, _: &[u8], one: &[u8], other: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.extend([one, other].concat());
        if out.contains(&b'!') { Err(FoldFailure::new("it met `!`")) } else { Ok(Outcome::Value) }
    }
}

#[test]
fn that_a_fold_fails_is_read_too_and_a_value_that_is_set_over_it_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(BackgroundWork::Manual).custom_fold(Arc::new(Brittle));
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let table =
        store.create_bytes_table("t", TableRules::new(KeyCodec::Bytes).custom_fold("brittle", 1)).unwrap();
    let fold = |value: &[u8]| table.write(WriteOp::Fold, b"k", value).unwrap();
    for operand in [b"a", b"!"] {
        fold(operand);
    }
    let failing = || {
        let mut transaction = store.transaction();
        let failed = transaction.get(&table, b"k").unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::FoldFailed);
        transaction.write(&table, WriteOp::Put, b"broken", b"k");
        transaction
    };
    assert!(!conflicts(failing()));
    let overtaken = failing();
    let mut mending = failing();
    mending.write(&table, WriteOp::Put, b"k", b"b").write(&table, WriteOp::Fold, b"k", b"c");
    assert_eq!(mending.get(&table, b"k").unwrap(), Some(b"bc".to_vec()));
    assert!(!conflicts(mending));
    assert!(conflicts(overtaken));
}

#[test]
fn what_was_read_of_a_table_that_is_dropped_holds_no_more() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let (table, other) = (sums(&store, "t"), sums(&store, "other"));
    table.put(&1, &10).unwrap();
    let mut transaction = store.transaction();
    assert_eq!(transaction.get(&table, &1).unwrap(), Some(10));
    transaction.fold(&other, &1, &1);
    store.drop_table("t").unwrap();
    sums(&store, "t").put(&1, &11).unwrap();
    let refused = transaction.commit(PROCESS).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
    assert!(refused.to_string().contains("table `t` has been dropped"), "{refused}");
    assert_eq!(other.get(&1).unwrap(), None);
}

/// The operation between the others' write and the commit.
type Between = fn(&Store, &Table<u64, u64>);

const BETWEENS: [(&str, Between); 4] = [
    ("it is in the memtable", |_, _| {}),
    ("it is in a chunk", |_, table| (1000..6000).for_each(|key| assert!(table.fold(&key, &1).is_ok()))),
    ("it is in a run", |store, _| store.flush().unwrap()),
    ("it is merged", |store, table| {
        store.flush().unwrap();
        table.compact().unwrap();
    }),
];

#[test]
fn a_read_key_that_others_wrote_to_is_a_conflict_wherever_the_write_is_by_then() {
    type Write = fn(&Table<u64, u64>);
    let writes: [Write; 4] = [
        |table| assert!(table.fold(&7, &1).is_ok()),
        |table| assert!(table.put(&7, &1).is_ok()),
        |table| assert!(table.delete(&7).is_ok()),
        |table| assert!(table.delete_range(&5, &9).is_ok()),
    ];
    for (what, between) in BETWEENS {
        for (number, write) in writes.iter().enumerate() {
            let (_dir, store) = fresh(BackgroundWork::Manual);
            let (table, log) = (sums(&store, "t"), sums(&store, "log"));
            (0..100).for_each(|key| assert!(table.put(&key, &key).is_ok()));
            let begin = |key: u64| {
                let mut transaction = store.transaction();
                assert_eq!(transaction.get(&table, &key).unwrap(), Some(key));
                transaction.fold(&log, &key, &1);
                transaction
            };
            let (of_seven, of_twenty) = (begin(7), begin(20));
            write(&table);
            between(&store, &table);
            assert!(conflicts(of_seven), "write {number}, {what}");
            assert!(!conflicts(of_twenty), "write {number}, {what}");
            assert_eq!((log.get(&7).unwrap(), log.get(&20).unwrap()), (None, Some(1)));
        }
    }
}

/// An older run has the key, too, as it was read, next to others that were written since.
#[test]
fn a_conflict_in_a_run_is_one_whatever_older_runs_have() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let table = sums(&store, "t");
    (0..100).for_each(|key| assert!(table.put(&key, &key).is_ok()));
    let begin = |key: u64| {
        let mut transaction = store.transaction();
        assert_eq!(transaction.get(&table, &key).unwrap(), Some(key));
        transaction.fold(&table, &200, &1);
        transaction
    };
    let (of_seven, of_twenty) = (begin(7), begin(20));
    for key in [50, 7, 60] {
        table.fold(&key, &1).unwrap();
        store.flush().unwrap();
    }
    assert!(conflicts(of_seven));
    assert!(!conflicts(of_twenty));
}

/// A store in which something happens while a commit checks the keys that were read from table
/// `slow`: once it has checked `first`, and before it checks `last`.
struct Looked {
    _dir: tempfile::TempDir,
    store: Store,
    occasion: Arc<Occasion>,
    first: BytesTable,
    slow: BytesTable,
    last: BytesTable,
}

impl Looked {
    fn new() -> Looked {
        let dir = tempfile::tempdir().unwrap();
        let occasion = Arc::new(Occasion::default());
        let options = Options::default().background(BackgroundWork::Manual).custom_order(occasion.clone());
        let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
        let rules = || TableRules::new(KeyCodec::Bytes);
        let create = |name, rules| store.create_bytes_table(name, rules).unwrap();
        let (first, slow) = (create("first", rules()), create("slow", rules().order(occasion::NAME)));
        let last = create("last", rules());
        for table in [&first, &slow, &last] {
            table.write(WriteOp::Put, b"k", b"old").unwrap();
        }
        Looked { _dir: dir, store, occasion, first, slow, last }
    }

    /// Commits a transaction that has read `k` of all three tables, after `before` and with
    /// `meanwhile` in between; returns the outcome.
    fn commit(&self, before: fn(&Looked), meanwhile: fn(&Store, &BytesTable)) -> Option<ErrorKind> {
        let mut transaction = self.store.transaction();
        for table in [&self.first, &self.slow, &self.last] {
            assert_eq!(transaction.get(table, b"k").unwrap().as_deref(), Some(&b"old"[..]));
        }
        transaction.write(&self.first, WriteOp::Put, b"written", b"");
        before(self);
        self.slow.write(WriteOp::Put, b"other", b"").unwrap();
        self.store.flush().unwrap(); // the newer record in `slow` is in a run, to be compared with
        let (store, first) = (self.store.clone(), self.first.clone());
        self.occasion.then(move || meanwhile(&store, &first));
        let committed = transaction.commit(PROCESS);
        assert!(self.occasion.is_over(), "the others had their occasion");
        let is_there = self.first.get(b"written").unwrap().is_some();
        assert_eq!(is_there, committed.is_ok());
        committed.err().map(|error| error.kind())
    }
}

#[test]
fn a_write_during_the_check_of_a_commit_is_a_conflict_wherever_it_is_by_then() {
    let looked = |meanwhile| Looked::new().commit(|_| {}, meanwhile);
    assert_eq!(looked(|_, _| {}), None);
    assert_eq!(looked(|_, first| assert!(first.write(WriteOp::Put, b"i", b"").is_ok())), None);
    let conflict = Some(ErrorKind::Conflict);
    assert_eq!(looked(|_, first| assert!(first.write(WriteOp::Put, b"k", b"new").is_ok())), conflict);
    assert_eq!(looked(|_, first| assert!(first.delete_range(b"a", b"z").is_ok())), conflict);
    let flushed = |store: &Store, first: &BytesTable| {
        first.write(WriteOp::Put, b"k", b"new").unwrap();
        store.flush().unwrap();
    };
    assert_eq!(looked(flushed), conflict);
}

/// As long as there is a reader below it, a delete remains where a commit can find it; and that
/// reader lives until the commit has checked.
#[test]
fn a_delete_that_is_merged_while_the_commit_looks_is_found() {
    let deleted = |looked: &Looked| assert!(looked.last.write(WriteOp::Delete, b"k", b"").is_ok());
    let merged = |store: &Store, _: &BytesTable| {
        store.bytes_table("last").unwrap().compact().unwrap();
    };
    assert_eq!(Looked::new().commit(deleted, merged), Some(ErrorKind::Conflict));
}

#[test]
fn folds_that_were_not_read_do_not_conflict() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let table = sums(&store, "t");
    let (mut a, mut b) = (store.transaction(), store.transaction());
    a.fold(&table, &1, &10);
    b.fold(&table, &1, &100);
    table.fold(&1, &1).unwrap();
    assert!(!conflicts(a) && !conflicts(b));
    assert_eq!(table.get(&1).unwrap(), Some(111));
    let absent = |key: u64| {
        let mut transaction = store.transaction();
        assert_eq!(transaction.get(&table, &key).unwrap(), None);
        transaction.put(&table, &50, &1);
        transaction
    };
    let (first, second) = (absent(2), absent(3));
    table.put(&2, &1).unwrap();
    assert!(conflicts(first), "that a key is absent is read, too");
    assert!(!conflicts(second));
}

#[test]
fn money_moves_between_accounts_on_several_threads_and_none_is_lost() {
    let (_dir, store) = fresh(BackgroundWork::default());
    let rules = || Rules::sorted::<u64, u64>();
    let (accounts, moves) = (store.table("accounts", rules()).unwrap(), sums(&store, "moves"));
    (0..8).for_each(|account| assert!(accounts.put(&account, &1000).is_ok()));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (store, accounts, moves) = (&store, &accounts, &moves);
            scope.spawn(move || {
                for step in 0..500u64 {
                    let (from, to) = ((thread + step) % 8, (thread * 3 + step * 5 + 1) % 8);
                    if from == to {
                        continue;
                    }
                    let moved = store.transact(PROCESS, |transaction| {
                        let (mine, yours) = (
                            transaction.get(accounts, &from)?.unwrap(),
                            transaction.get(accounts, &to)?.unwrap(),
                        );
                        let amount = mine.min(step % 17);
                        transaction.put(accounts, &from, &(mine - amount)).put(
                            accounts,
                            &to,
                            &(yours + amount),
                        );
                        transaction.fold(moves, &0, &1);
                        Ok(amount)
                    });
                    assert!(moved.unwrap() < 17);
                    if step % 100 == 99 {
                        store.flush().unwrap();
                    }
                }
            });
        }
    });
    let sum: u64 = accounts.scan().into_iter().map(|row| row.unwrap().1).sum();
    assert_eq!(sum, 8000);
    assert!(moves.get(&0).unwrap().unwrap() > 1000);
}

#[test]
fn mistakes_are_reported_by_the_commit_and_nothing_is_written() {
    let ((_dir, store), (_other_dir, other)) = (fresh(BackgroundWork::Manual), fresh(BackgroundWork::Manual));
    let (table, theirs) = (sums(&store, "t"), sums(&other, "t"));
    let mut transaction = store.transaction();
    transaction.put(&table, &1, &1).put(&theirs, &1, &1);
    assert_eq!(transaction.get(&theirs, &1).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(transaction.commit(PROCESS).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(table.get(&1).unwrap(), None);
    let given_up: folddb::Result<()> = store.transact(PROCESS, |transaction| {
        transaction.put(&table, &1, &1);
        Err(transaction.get(&theirs, &1).unwrap_err())
    });
    assert_eq!(given_up.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(table.get(&1).unwrap(), None);
}

type Scanned = fn(&Transaction, &BytesTable) -> BytesScan;

/// Ways to scan in a transaction: with its own writes, and at its snapshot.
const WAYS: [Scanned; 2] =
    [|transaction, table| transaction.scan(table), |transaction, table| transaction.snapshot().scan(table)];

/// Two are on call, and each leaves if another one stays.
#[test]
fn two_transactions_that_scan_and_leave_do_not_both_leave() {
    for scanned in WAYS {
        for kind in [TableKind::Sorted, TableKind::Hashed] {
            let (_dir, store) = fresh(BackgroundWork::Manual);
            let shifts =
                store.create_bytes_table("shifts", TableRules::new(KeyCodec::Bytes).kind(kind)).unwrap();
            for name in [b"ann", b"bob"] {
                shifts.write(WriteOp::Put, name, b"on call").unwrap();
            }
            let leave = |name: &[u8]| {
                let mut transaction = store.transaction();
                assert_eq!(scanned(&transaction, &shifts).count().unwrap(), 2);
                transaction.write(&shifts, WriteOp::Delete, name, b"");
                transaction
            };
            let (ann, bob) = (leave(b"ann"), leave(b"bob"));
            assert!(!conflicts(ann) && conflicts(bob), "{kind:?}");
            assert_eq!(shifts.scan().count().unwrap(), 1);
        }
    }
}

#[test]
fn those_on_call_leave_on_several_threads_and_one_always_stays() {
    let (_dir, store) = fresh(BackgroundWork::default());
    let sorted = store.create_bytes_table("sorted", TableRules::new(KeyCodec::U64)).unwrap();
    let hashed = TableRules::new(KeyCodec::U64).kind(TableKind::Hashed);
    let hashed = store.create_bytes_table("hashed", hashed).unwrap();
    for table in [&sorted, &hashed] {
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (store, me) = (&store, thread.to_be_bytes());
                scope.spawn(move || {
                    for step in 0..150 {
                        let change = |transaction: &mut Transaction| {
                            let mut on_call = 0;
                            for row in transaction.scan(table) {
                                on_call += 1;
                                row?;
                            }
                            match transaction.get(table, &me)? {
                                None => transaction.write(table, WriteOp::Put, &me, b"on call"),
                                Some(_) if on_call > 1 => transaction.write(table, WriteOp::Delete, &me, b""),
                                Some(_) => transaction,
                            };
                            Ok(on_call)
                        };
                        let on_call = store.transact(PROCESS, change).unwrap();
                        assert!(on_call > 0 || step == 0, "somebody is on call once somebody was");
                        assert!(step == 0 || table.scan().count().unwrap() > 0);
                        if step % 50 == 49 {
                            store.flush().unwrap();
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_scanned_range_that_others_wrote_to_is_a_conflict_wherever_the_write_is_by_then() {
    type Write = fn(&Table<u64, u64>);
    let writes: [Write; 5] = [
        |table| assert!(table.fold(&14, &1).is_ok()),
        |table| assert!(table.put_if_absent(&15, &1).is_ok()), // a key that was not there
        |table| assert!(table.put(&14, &1).is_ok()),
        |table| assert!(table.delete(&14).is_ok()),
        |table| assert!(table.delete_range(&13, &16).is_ok()),
    ];
    for (what, between) in BETWEENS {
        for (number, write) in writes.iter().enumerate() {
            for (way, scanned) in WAYS.iter().enumerate() {
                let (_dir, store) = fresh(BackgroundWork::Manual);
                let (table, log) = (sums(&store, "t"), sums(&store, "log"));
                (0..100).for_each(|key| assert!(table.put(&(2 * key), &key).is_ok()));
                let begin = |low: u64, high: u64, limit: usize, reverse: bool| {
                    let mut transaction = store.transaction();
                    let scan = scanned(&transaction, table.as_bytes());
                    let scan = scan.from(&low.to_be_bytes()).before(&high.to_be_bytes());
                    let scan = if reverse { scan.reverse() } else { scan };
                    scan.limit(limit).into_iter().for_each(|row| assert!(row.is_ok()));
                    transaction.fold(&log, &low, &1);
                    transaction
                };
                // Up to its last row, or to its end if it reached that.
                let overtaken = [
                    begin(10, 20, 9, false),
                    begin(10, 20, 9, true),
                    begin(10, 50, 4, false),
                    begin(0, 20, 4, true),
                    begin(0, 1000, 1000, false),
                ];
                let untouched = [
                    begin(16, 60, 99, false),
                    begin(0, 13, 99, true),
                    begin(6, 90, 4, false), // 6, 8, 10, 12
                    begin(6, 24, 4, true),  // 22, 20, 18, 16
                    begin(14, 16, 0, false),
                ];
                write(&table);
                between(&store, &table);
                for (at, transaction) in overtaken.into_iter().enumerate() {
                    assert!(conflicts(transaction), "{at}: write {number}, {what}, way {way}");
                }
                for (at, transaction) in untouched.into_iter().enumerate() {
                    assert!(!conflicts(transaction), "{at}: write {number}, {what}, way {way}");
                }
            }
        }
    }
}

#[test]
fn a_scan_in_a_transaction_shows_what_it_has_written_itself() {
    for order in ["bytewise", "reversed", "hashed"] {
        let (_dir, store) = fresh(BackgroundWork::Manual);
        let rules = TableRules::new(KeyCodec::Bytes).fold("append");
        let rules = match order {
            "reversed" => rules.order("reversed"),
            "hashed" => rules.kind(TableKind::Hashed),
            _ => rules,
        };
        let table = store.create_bytes_table("t", rules).unwrap();
        for key in [b"b", b"d", b"f"] {
            table.write(WriteOp::Put, key, b"old").unwrap();
        }
        let mut transaction = store.transaction();
        for (op, key, value) in [
            (WriteOp::Put, b"a", &b"new"[..]),
            (WriteOp::Fold, b"b", b"+"),
            (WriteOp::PutIfAbsent, b"c", b"new"),
            (WriteOp::Delete, b"d", b""),
            (WriteOp::PutIfAbsent, b"f", b"not"),
            (WriteOp::Put, b"g", b"new"),
            (WriteOp::Delete, b"g", b""),
            (WriteOp::Fold, b"h", b"new"),
        ] {
            transaction.write(&table, op, key, value);
        }
        let row = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
        let all =
            [row("a", "new"), row("b", "old+"), row("c", "new"), row("f", "old"), row("h", "new")].to_vec();
        let rows = |scan: BytesScan| scan.into_iter().map(|row| row.unwrap()).collect::<Vec<_>>();
        let mut found = rows(transaction.scan(&table));
        if order == "reversed" {
            found.reverse();
        }
        found.sort_by(|a, b| if order == "hashed" { a.cmp(b) } else { std::cmp::Ordering::Equal });
        assert_eq!(found, all, "{order}");
        assert_eq!(transaction.scan(&table).count().unwrap(), 5, "{order}");
        let heads: Vec<_> = transaction.scan(&table).heads().map(|head| head.unwrap()).collect();
        assert_eq!(heads.iter().map(|(_, head)| head.size_bytes).sum::<u64>(), 16, "{order}");
        if order == "bytewise" {
            assert_eq!(rows(transaction.scan(&table).from(b"b").before(b"g").reverse()), {
                let mut some = all[1..4].to_vec();
                some.reverse();
                some
            });
            let told = transaction.scan(&table).aggregate().unwrap();
            assert_eq!((told.rows, told.value), (5, Some(b"newold+newoldnew".to_vec())));
        }
        assert_eq!(rows(transaction.snapshot().scan(&table)).len(), 3, "{order}");
        transaction.commit(PROCESS).unwrap();
        let mut committed = rows(table.scan());
        committed.sort();
        assert_eq!(committed, all, "{order}");
    }
}

#[test]
fn a_key_of_a_hashed_table_that_was_read_and_written_to_by_others_is_a_conflict() {
    type Write = fn(&BytesTable);
    let writes: [(&str, Write, bool); 5] = [
        ("set", |table| assert!(table.write(WriteOp::Put, b"k", b"new").is_ok()), true),
        ("folded", |table| assert!(table.write(WriteOp::Fold, b"k", b"new").is_ok()), true),
        ("deleted", |table| assert!(table.write(WriteOp::Delete, b"k", b"").is_ok()), true),
        ("inserted in vain", |table| assert!(table.write(WriteOp::PutIfAbsent, b"k", b"new").is_ok()), false),
        ("left alone", |table| assert!(table.write(WriteOp::Put, b"other", b"new").is_ok()), false),
    ];
    for (what, write, overtakes) in writes {
        let (_dir, store) = fresh(BackgroundWork::Manual);
        let rules = TableRules::new(KeyCodec::Bytes).kind(TableKind::Hashed).fold("append");
        let table = store.create_bytes_table("t", rules).unwrap();
        table.write(WriteOp::Put, b"k", b"old").unwrap();
        let mut transaction = store.transaction();
        assert_eq!(transaction.get(&table, b"k").unwrap().as_deref(), Some(&b"old"[..]));
        transaction.write(&table, WriteOp::Fold, b"k", b"+");
        assert_eq!(transaction.get(&table, b"k").unwrap().as_deref(), Some(&b"old+"[..]));
        write(&table);
        store.flush().unwrap();
        store.bytes_table("t").unwrap().compact().unwrap();
        assert_eq!(conflicts(transaction), overtakes, "{what}");
    }
}

#[test]
fn a_find_at_the_snapshot_of_a_transaction_is_checked_as_what_it_asks_for() {
    type Write = fn(&Table<u64, String>);
    let writes: [(&str, Write, bool); 4] = [
        ("a hit changes", |table| assert!(table.put(&1, "blue").is_ok()), true),
        ("a hit comes", |table| assert!(table.put(&9, "red").is_ok()), true),
        ("a hit goes", |table| assert!(table.delete_range(&0, &2).is_ok()), true),
        ("another comes", |table| assert!(table.put(&8, "green").is_ok()), false),
    ];
    for (what, write, overtakes) in writes {
        let (_dir, store) = fresh(BackgroundWork::Manual);
        let table: Table<u64, String> = store.table("t", Rules::sorted().index("color", "value")).unwrap();
        for (key, color) in [(1, "red"), (2, "blue"), (3, "red")] {
            table.put(&key, color).unwrap();
        }
        let mut transaction = store.transaction();
        let find = transaction.table(&table).find("color").unwrap().term("red");
        assert_eq!(find.keys().count(), 2);
        transaction.put(&table, &100, "none");
        write(&table);
        assert_eq!(conflicts(transaction), overtakes, "{what}");
    }
}

/// People by name: 1 ann, 2 bob, 3 ann, 4 cid.
fn named(store: &Store) -> Table<u64, String> {
    let people = store.table("people", Rules::sorted::<u64, String>().index("by_name", "value")).unwrap();
    for (key, name) in [(1, "ann"), (2, "bob"), (3, "ann"), (4, "cid")] {
        people.put(&key, name).unwrap();
    }
    people
}

#[test]
fn a_find_in_a_transaction_has_its_writes_in_the_order_of_the_index() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let people = named(&store);
    let mut transaction = store.transaction();
    let find = |transaction: &Transaction| transaction.table(&people).find("by_name").unwrap();
    let before = find(&transaction);
    transaction
        .put(&people, &1, "bob") // another term
        .put(&people, &5, "ann") // another key
        .put(&people, &6, "zoe")
        .delete(&people, &2)
        .put_if_absent(&people, &3, "no")
        .delete_range(&people, &4, &6)
        .put(&people, &5, "abe");
    let all = [("abe", 5), ("ann", 3), ("bob", 1), ("zoe", 6)];
    let hits = |find: folddb::Find<u64, String>| -> Vec<(String, u64)> {
        find.hits().map(|hit| hit.map(|(_, key, name)| (name, key)).unwrap()).collect()
    };
    let expected =
        |of: &[(&str, u64)]| of.iter().map(|(name, key)| ((*name).to_owned(), *key)).collect::<Vec<_>>();
    assert_eq!(hits(find(&transaction)), expected(&all));
    assert_eq!(hits(before), expected(&all), "what is written before the iteration begins");
    let mut reversed = all;
    reversed.reverse();
    assert_eq!(hits(find(&transaction).reverse()), expected(&reversed));
    assert_eq!(hits(find(&transaction).limit(2)), expected(&all[..2]));
    assert_eq!(hits(find(&transaction).prefix("a")), expected(&all[..2]));
    assert_eq!(hits(find(&transaction).range("ann".."zoe")), expected(&all[1..3]));
    assert_eq!(find(&transaction).term("cid").count().unwrap(), 0);
    let heads: Vec<_> = find(&transaction).heads().map(|hit| hit.unwrap()).collect();
    assert!(heads.iter().all(|(_, head)| head.size_bytes == 3), "{heads:?}");
    let keys = |sum: &mut Vec<u64>, key: u64| {
        sum.push(key);
        std::ops::ControlFlow::Continue(())
    };
    let joined = |mut one: Vec<u64>, mut next: Vec<u64>| {
        one.append(&mut next);
        one
    };
    assert_eq!(find(&transaction).fold_keys(3, Vec::new, keys, joined).unwrap(), [5, 3, 1, 6]);
    transaction.commit(PROCESS).unwrap();
    assert_eq!(hits(people.find("by_name").unwrap()), expected(&all), "what is committed is the same");
}

#[test]
fn a_find_that_took_something_of_the_snapshot_for_its_writes_is_checked_for_it() {
    type Write = for<'t> fn(&'t mut Transaction, &Table<u64, String>) -> &'t mut Transaction;
    let writes: [(&str, Write, bool); 4] = [
        ("a value is set", |transaction, people| transaction.put(people, &2, "dora"), false),
        ("a key is deleted", |transaction, people| transaction.delete(people, &2), false),
        ("what was there stays", |transaction, people| transaction.put_if_absent(people, &2, "no"), true),
        ("it is a hit", |transaction, _| transaction, true),
    ];
    for (what, write, overtaken) in writes {
        let (_dir, store) = fresh(BackgroundWork::Manual);
        let people = named(&store);
        let mut transaction = store.transaction();
        write(&mut transaction, &people);
        let term = if overtaken && what == "it is a hit" { "bob" } else { "dora" };
        transaction.table(&people).find("by_name").unwrap().term(term).count().unwrap();
        transaction.put(&people, &100, "none");
        people.put(&2, "bert").unwrap();
        assert_eq!(conflicts(transaction), overtaken, "{what}");
    }
}

#[test]
fn a_key_whose_fold_fails_in_a_transaction_is_an_error_where_a_find_meets_its_terms() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(BackgroundWork::Manual).custom_fold(Arc::new(Brittle));
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let by_key = "by_key:key:0".parse::<folddb::IndexRule>().unwrap();
    let rules = TableRules::new(KeyCodec::Bytes).custom_fold("brittle", 1).index(by_key);
    let table = store.create_bytes_table("t", rules).unwrap();
    for key in [b"a", b"b"] {
        table.write(WriteOp::Put, key, b"x").unwrap();
    }
    let mut transaction = store.transaction();
    transaction.write(&table, WriteOp::Fold, b"a", b"!").write(&table, WriteOp::Fold, b"c", b"y");
    let found = |low: &'static [u8]| -> Vec<Result<Vec<u8>, ErrorKind>> {
        let find = transaction.table(&table).find("by_key").unwrap().range(low..);
        find.keys().map(|key| key.map_err(|error| error.kind())).collect()
    };
    assert_eq!(found(b"a"), [Err(ErrorKind::FoldFailed), Ok(b"b".to_vec()), Ok(b"c".to_vec())]);
    assert_eq!(found(b"b"), [Ok(b"b".to_vec()), Ok(b"c".to_vec())]);
}

#[test]
fn what_is_taken_is_deleted_and_one_of_many_takes_it() {
    let (_dir, store) = fresh(BackgroundWork::Threads);
    let table = sums(&store, "t");
    let before = store.snapshot().seq();
    assert_eq!(table.take(&1).unwrap(), None);
    assert_eq!(store.snapshot().seq(), before, "nothing is written for an absent key");
    table.fold(&1, &3).unwrap();
    table.fold(&1, &4).unwrap();
    assert_eq!(table.take(&1).unwrap(), Some(7));
    assert_eq!(table.get(&1).unwrap(), None);
    let texts = store.table("texts", Rules::sorted::<Vec<u8>, Vec<u8>>()).unwrap();
    texts.put(&b"a"[..], &b"b"[..]).unwrap();
    assert_eq!(texts.as_bytes().take(b"a").unwrap(), Some(b"b".to_vec()));
    assert_eq!(texts.as_bytes().take(b"a").unwrap(), None);

    // Two add one at a time, two take: what was taken and what is left is all that was added.
    const ADDED: u64 = 2_000;
    let taken: u64 = std::thread::scope(|scope| {
        let add = || (0..ADDED).for_each(|i| _ = table.fold(&(i % 3), &1).unwrap());
        let take = || (0..ADDED).filter_map(|i| table.take(&(i % 3)).unwrap()).sum::<u64>();
        let adders = [scope.spawn(add), scope.spawn(add)];
        let takers = [scope.spawn(take), scope.spawn(take)];
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    let left: u64 = (0..3).filter_map(|key| table.get(&key).unwrap()).sum();
    assert_eq!(taken + left, 2 * ADDED);
}

#[test]
fn a_transaction_that_took_what_was_overtaken_deletes_nothing() {
    let (_dir, store) = fresh(BackgroundWork::Manual);
    let table = sums(&store, "t");
    table.put(&1, &10).unwrap();
    let mut transaction = store.transaction();
    assert_eq!(transaction.take(&table, &1).unwrap(), Some(10));
    assert_eq!(transaction.take(&table, &1).unwrap(), None, "it sees its own delete");
    table.fold(&1, &5).unwrap();
    assert!(conflicts(transaction));
    assert_eq!(table.get(&1).unwrap(), Some(15));
}
