//! Whether entries of an index are stale: a walk along the table says the same as a look at each
//! key.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::{OpKind, Record, RecordSink, Seq};
use folddb_engine::background::stale::{Entries, Looks, Tell, is_walk_cheaper};
use folddb_engine::state::snapshots::HeldFor;
use folddb_rules::codec::tuple::Element;
use folddb_rules::terms::{pack_term, put_entry};
use folddb_rules::{Extractor, Fold, FoldFailure, Outcome};

use crate::snapshot::Snapshot;
use crate::{BackgroundWork, BytesTable, Options, Rules, Store, Table};

/// Keeps the later value; fails on one of one byte.
struct Fails;

impl Fold for Fails {
    fn spec(&self) -> String {
        "fails".to_owned()
    }
    fn fold(
        &self,
        _: &[u8],
        _: &[u8],
        later: &[u8],
        _: &mut Vec<u8>,
    ) -> std::result::Result<Outcome, FoldFailure> {
        if later.len() == 1 { Err(FoldFailure::new("one byte")) } else { Ok(Outcome::KeepLater) }
    }
}

fn table_of(keys: std::ops::Range<u64>) -> (tempfile::TempDir, Store, Table<u64, Vec<u8>>) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().custom_fold(Arc::new(Fails)).background(BackgroundWork::Manual);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().custom_fold(&Fails).index("i", "value");
    let table = store.table("t", rules).unwrap();
    for key in keys.clone().filter(|key| key % 6 != 0) {
        table.put(&key, &b"first".to_vec()).unwrap();
    }
    store.flush().unwrap();
    for key in keys {
        match key % 6 {
            1 => table.put(&key, &b"second".to_vec()).map(drop).unwrap(),
            2 => table.delete(&key).map(drop).unwrap(),
            3 => table.fold(&key, &b"x".to_vec()).map(drop).unwrap(), // which fails
            4 => table.fold(&key, &b"third".to_vec()).map(drop).unwrap(),
            _ => {}
        }
    }
    (dir, store, table)
}

/// An entry of each of these terms for each key, as an index holds them: in the order of terms.
fn entries_of(
    extractor: &Extractor,
    keys: &[u64],
    terms: &[&str],
    seq: Seq,
) -> (Entries, Vec<(u64, String)>) {
    let (mut entries, mut of) = (Entries::default(), Vec::new());
    for term in terms {
        for key in keys {
            let mut entry = Vec::new();
            put_entry(
                &mut entry,
                &pack_term(&extractor.ask_prefix(Element::from(*term)).unwrap()),
                &key.to_be_bytes(),
            );
            entries.push(Record { key: &entry, seq, kind: OpKind::Set, payload: b"" }).unwrap();
            of.push((*key, (*term).to_owned()));
        }
    }
    (entries, of)
}

/// The result of a way of looking up keys: the entries that it calls stale, and how many keys it
/// examined.
fn told(way: impl FnOnce(&[&[usize]], Tell<'_>), entries: &Entries) -> (BTreeMap<usize, bool>, usize) {
    let mut order: Vec<usize> = (0..entries.count()).collect();
    order.sort_by_key(|&at| entries.key(at));
    let of_keys: Vec<&[usize]> = order.chunk_by(|&a, &b| entries.key(a) == entries.key(b)).collect();
    let (mut stale, mut keys) = (BTreeMap::new(), 0);
    way(&of_keys, &mut |same_key, terms| {
        keys += 1;
        for &at in same_key {
            stale.insert(at, !terms.is_some_and(|terms| terms.has(entries.term(at))));
        }
    });
    (stale, keys)
}

#[test]
fn a_walk_along_the_table_finds_what_a_lookup_of_each_key_finds() {
    let (_dir, store, table) = table_of(0..600);
    let (table, engine) = (table.as_bytes().core(), store.engine());
    let extractor = table.indexes()[0].extractor.clone().unwrap();
    let held = Snapshot::take(engine, HeldFor::Work).into_held();
    let looks = Looks { engine, table, extractor: &extractor, at: held.at };
    for every in [1, 7, 50] {
        let keys: Vec<u64> = (3..700).step_by(every).collect(); // beyond the last key of the table, too
        let (entries, of) = entries_of(&extractor, &keys, &["first", "second", "third"], 1);
        let (walked, told_by_walk) = told(|of_keys, tell| looks.walk(&entries, of_keys, tell), &entries);
        let (looked, told_by_looks) =
            told(|of_keys, tell| looks.look_at_each(&entries, of_keys, tell), &entries);
        assert_eq!((&walked, told_by_walk), (&looked, told_by_looks));
        let failing = keys.iter().filter(|key| **key % 6 == 3 && **key < 600).count();
        assert_eq!(told_by_walk, keys.len() - failing, "nothing is told of keys whose fold fails");
        for (at, (key, term)) in of.iter().enumerate() {
            let has = match key % 6 {
                _ if *key >= 600 => "",
                1 => "second",
                4 => "third",
                5 => "first",
                _ => "",
            };
            let expected = (*key >= 600 || key % 6 != 3).then_some(has != term);
            assert_eq!(walked.get(&at).copied(), expected, "{key} {term}");
        }
        let stale = looks.stale(&entries);
        assert!(
            stale.iter().enumerate().all(|(at, stale)| *stale == walked.get(&at).copied().unwrap_or(false))
        );
    }
}

#[test]
fn an_entry_that_is_newer_than_the_look_stays() {
    let (_dir, store, table) = table_of(0..60);
    let (table, engine) = (table.as_bytes().core(), store.engine());
    let extractor = table.indexes()[0].extractor.clone().unwrap();
    let held = Snapshot::take(engine, HeldFor::Work).into_held();
    let looks = Looks { engine, table, extractor: &extractor, at: held.at };
    let (of_now, _) = entries_of(&extractor, &[1, 2], &["gone"], held.at.seq);
    let (newer, _) = entries_of(&extractor, &[1, 2], &["gone"], held.at.seq + 1);
    assert_eq!((looks.stale(&of_now), looks.stale(&newer)), (vec![true; 2], vec![false; 2]));
}

#[test]
fn few_keys_of_a_large_table_or_with_separated_values_are_looked_up_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::create(dir.path().join("s.folddb"), Options::default().background(BackgroundWork::Manual))
            .unwrap();
    let inline = store.table("inline", Rules::sorted::<u64, Vec<u8>>().index("i", "value")).unwrap();
    let separated = Rules::sorted::<u64, Vec<u8>>().separate(64).index("i", "value").index("k", "key:0");
    let separated = store.table("separated", separated).unwrap();
    for key in 0..320u64 {
        inline.put(&key, &vec![7; 100]).unwrap();
        separated.put(&key, &vec![7; 100]).unwrap();
    }
    let walks = |table: &BytesTable, index: usize, keys| {
        let extractor = table.core().indexes()[index].extractor.clone().unwrap();
        is_walk_cheaper(table.core(), &extractor, keys)
    };
    assert_eq!([19, 20].map(|keys| walks(inline.as_bytes(), 0, keys)), [false, true]);
    assert_eq!([0, 1].map(|index| walks(separated.as_bytes(), index, 320)), [false, true]);
}
