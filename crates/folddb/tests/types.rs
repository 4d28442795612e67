//! What is written through a typed handle is a value of its table, or refused, as through a handle of bytes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use folddb::codec::Value;
use folddb::folds::{Counters, Stats};
use folddb::{
    BackgroundWork, Durability, ErrorKind, Expire, Fold, FoldFailure, Lifetime, Options, Outcome, Rules,
    Store, Table, WriteOp,
};

fn fresh(options: Options) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::create(dir.path().join("s.folddb"), options.background(BackgroundWork::Manual)).unwrap();
    (dir, store)
}

#[test]
fn a_table_whose_values_cannot_be_those_of_its_fold_is_refused_by_name_and_not_made() {
    let (_dir, store) = fresh(Options::default());
    fn refused<V: Value>(store: &Store, name: &str, fold: &str) -> String {
        let refused = store.table(name, Rules::sorted::<String, V>().fold(fold)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        assert!(refused.to_string().contains(&format!("`{name}`")), "{refused}");
        assert!(refused.to_string().contains(fold), "{refused}");
        refused.to_string()
    }
    assert!(refused::<String>(&store, "a", "sum:i64").contains("values of type i64"));
    assert!(refused::<i64>(&store, "b", "sum:u64").contains("values of type u64"));
    assert!(refused::<f64>(&store, "c", "max:i64").contains("values of type i64"));
    assert!(refused::<u64>(&store, "d", "json-merge").contains("values of type json"));
    assert_eq!(store.tables(), [""; 0]);
    // One that is there, made by hand, is no better.
    store
        .create_bytes_table("e", Rules::sorted::<String, i64>().fold("sum:u64").as_table_rules().clone())
        .unwrap();
    refused::<i64>(&store, "e", "sum:u64");
}

/// Writes a value in every way there is, and says whether all were refused, or none.
fn is_refused(store: &Store, table: &Table<u64, Vec<u8>>, value: &Vec<u8>) -> bool {
    let for_ever = Lifetime::Forever;
    let mut batches: Vec<_> = (0..6).map(|_| store.batch()).collect();
    batches[0].put(table, &1, value);
    batches[1].put_if_absent(table, &1, value);
    batches[2].fold(table, &1, value);
    batches[3].put_expiring(table, &1, value, for_ever);
    batches[4].put_if_absent_expiring(table, &1, value, for_ever);
    batches[5].fold_expiring(table, &1, value, for_ever);
    let singles = [
        table.as_bytes().check(WriteOp::Put, &1u64.to_be_bytes(), value).map(|()| 0),
        table.put(&1, value),
        table.put_if_absent(&1, value),
        table.fold(&1, value),
        table.put_expiring(&1, value, for_ever),
        table.put_if_absent_expiring(&1, value, for_ever),
        table.fold_expiring(&1, value, for_ever),
        store.transact(Durability::Process, |transaction| {
            transaction.fold(table, &1, value);
            Ok(0)
        }),
    ];
    let of_batches = batches.iter_mut().map(|batch| batch.commit(Durability::Process));
    let refused: Vec<bool> = singles
        .into_iter()
        .chain(of_batches)
        .map(|written| match written {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::InvalidInput => true,
            Err(error) => panic!("{error}"),
        })
        .collect();
    assert!(refused.windows(2).all(|two| two[0] == two[1]), "{value:?}: {refused:?}");
    refused[0]
}

#[test]
fn typed_handles_and_batches_take_what_a_handle_of_bytes_takes_and_nothing_else() {
    let encoded = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        bytes
    };
    use folddb::codec::AsValue;
    let values = [
        b"hello".to_vec(),
        Vec::new(),
        vec![0; 8],
        vec![1; 16],
        b"{}".to_vec(),
        vec![0xff; 33],
        encoded(&|out| Stats::of(1.5).encode(out)),
        encoded(&|out| Counters::default().encode(out)),
    ];
    let mut refusals = 0;
    for (at, fold) in [
        "sum:i64",
        "sum:u64",
        "max:f64",
        "sum:f64",
        "stats:f64",
        "set",
        "counters",
        "json-merge",
        "append",
        "replace",
    ]
    .iter()
    .enumerate()
    {
        let (_dir, store) = fresh(Options::default());
        let rules = Rules::sorted::<u64, Vec<u8>>().fold(fold).expire(Expire::ByWrite);
        let table = store.table(&format!("t{at}"), rules).unwrap();
        for value in &values {
            refusals += usize::from(is_refused(&store, &table, value));
            if let Err(error) = table.get(&1) {
                panic!("{fold}, {value:?}: what was taken is read back: {error}");
            }
            table.delete(&1).unwrap();
        }
        store.flush().unwrap();
    }
    assert!(refusals > 20, "{refusals}");
}

/// Takes anything, until it is told to be strict.
struct Lately(Arc<AtomicBool>);

impl Fold for Lately {
    fn spec(&self) -> String {
        "lately".to_owned()
    }
    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        match self.0.load(Ordering::SeqCst) && value == b"hello" {
            true => Err(FoldFailure::new("it says hello")),
            false => Ok(()),
        }
    }
}

#[test]
fn verify_says_that_a_program_wrote_what_is_whole_and_no_value() {
    let is_strict = Arc::new(AtomicBool::new(false));
    let lately = Arc::new(Lately(is_strict.clone()));
    let options = || Options::default().custom_fold(lately.clone());
    let (dir, store) = fresh(options());
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().custom_fold(&*lately)).unwrap();
    table.fold(&1, &b"hello"[..]).unwrap();
    store.close().unwrap();
    is_strict.store(true, Ordering::SeqCst);
    let report = Store::verify(dir.path().join("s.folddb"), &options(), true, |_, _| {}).unwrap();
    let found: Vec<&str> = report.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(
        found.iter().any(|what| what.contains("it says hello") && what.contains("a program wrote it")),
        "{found:?}"
    );
}
