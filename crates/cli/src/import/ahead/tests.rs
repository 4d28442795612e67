use std::collections::BTreeMap;

use folddb::Options;
use folddb::codec::KeyCodec;
use folddb::folds::FoldSpec;
use folddb::table_rules::TableRules;
use folddb::{Datum, Outcome};
use proptest::prelude::*;

use super::by_key::{FOLDED_BYTES_MAX, SETTLE_BYTES};
use super::*;

fn fold_of(spec: &str) -> std::sync::Arc<dyn Fold> {
    spec.parse::<FoldSpec>().unwrap().as_fold().clone()
}

fn operand(fold: &dyn Fold, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    fold.read(&Datum::Text(text.to_owned()), &mut bytes).unwrap();
    bytes
}

/// All operands of each key, folded one after the other.
fn by_one(fold: &dyn Fold, rows: &[(Vec<u8>, Vec<u8>)]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut values: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (key, value) in rows {
        let Some(earlier) = values.get_mut(key) else {
            values.insert(key.clone(), value.clone());
            continue;
        };
        let mut out = Vec::new();
        match fold.fold(key, earlier, value, &mut out).unwrap() {
            Outcome::Value => *earlier = out,
            Outcome::KeepLater => *earlier = value.clone(),
            Outcome::KeepEarlier => {}
            Outcome::Delete => panic!("none of these folds deletes"),
        }
    }
    values
}

proptest! {
    /// Rows in groups of any size, folded within and across groups, are as rows one by one.
    #[test]
    fn folded_rows_are_as_rows_one_by_one(
        rows in prop::collection::vec((0u32..300, 0u32..5000), 0..600),
        keys in 1u32..300,
        group in 1usize..400,
        which in 0usize..8,
    ) {
        let specs = [
            "sum:u64", "stats:f64", "hll:12", "set", "quantiles", "top:3", "first", "{n: sum:u64, s: set}",
        ];
        let spec = specs[which];
        let fold = fold_of(spec);
        let text = |n: u32| match spec {
            "top:3" => format!("[{n}, \"x{n}\"]"),
            "{n: sum:u64, s: set}" => format!("{{\"n\": {n}, \"s\": [\"x{n}\"]}}"),
            _ => n.to_string(),
        };
        let read = |n: u32| {
            let mut bytes = Vec::new();
            let datum = crate::keys::value_datum(spec, &text(n)).unwrap();
            fold.read(&datum, &mut bytes).unwrap();
            bytes
        };
        let rows: Vec<(Vec<u8>, Vec<u8>)> =
            rows.iter().map(|&(key, n)| (format!("key {}", key % keys).into_bytes(), read(n))).collect();
        let mut all = Folded::default();
        for rows in rows.chunks(group) {
            let mut some = Folded::default();
            rows.iter().for_each(|(key, value)| some.push(Some(&*fold), key, value));
            match group % 2 {
                0 => some.settle(Some(&*fold), 1),
                _ => some.settle_if_many(Some(&*fold)),
            }
            all.add(Some(&*fold), some, 3);
        }
        all.settle(Some(&*fold), 3);
        let held: BTreeMap<Vec<u8>, Vec<u8>> =
            all.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        prop_assert_eq!(held.len(), all.iter().count(), "one operand for each key");
        prop_assert_eq!(held, by_one(&*fold, &rows));
    }
}

#[test]
fn much_is_folded_on_threads_in_the_same_order() {
    let fold = fold_of("{n: sum:u64, first: first}");
    let read = |text: String| operand(&*fold, &text);
    let mut all = Folded::default();
    for piece in 0..4 {
        let mut some = Folded::default();
        for key in 0..40_000 {
            let value = read(format!("{{\"n\": 1, \"first\": \"{piece}\"}}"));
            some.push(Some(&*fold), format!("key {key}").as_bytes(), &value);
        }
        some.settle(Some(&*fold), 1);
        let held_bytes = some.held_bytes();
        assert!(held_bytes >= 2 * OF_THREAD_BYTES, "it is little: {held_bytes}");
        all.add(Some(&*fold), some, 3);
    }
    all.settle(Some(&*fold), 3);
    let whole = read("{\"n\": 4, \"first\": \"0\"}".to_owned());
    assert_eq!(all.iter().count(), 40_000);
    assert!(
        (0..).zip(all.iter()).all(|(n, (key, value))| key == format!("key {n}").as_bytes() && value == whole)
    );
}

#[test]
fn keys_that_hardly_repeat_in_a_piece_are_told_apart_afterwards() {
    let fold = fold_of("{n: sum:u64, first: first}");
    let read = |row: u32| operand(&*fold, &format!("{{\"n\": 1, \"first\": \"{row}\"}}"));
    // In a piece a key repeats after 9,001 rows; most parts are lists then, all of those of the
    // first one.
    let rows: Vec<(Vec<u8>, Vec<u8>)> =
        (0..50_000).map(|row| (format!("key {}", row * 7_919 % 9_001).into_bytes(), read(row))).collect();
    let mut all = Folded::default();
    for (number, rows) in rows.chunks(12_500).enumerate() {
        let mut some = Folded::default();
        rows.iter().for_each(|(key, value)| some.push(Some(&*fold), key, value));
        some.settle_if_many(Some(&*fold));
        assert!(number > 0 || some.parts.iter().all(ByKey::is_list));
        all.add(Some(&*fold), some, 3);
    }
    all.settle(Some(&*fold), 3);
    let held: BTreeMap<Vec<u8>, Vec<u8>> =
        all.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(held.len(), all.iter().count(), "one operand for each key");
    assert_eq!(held, by_one(&*fold, &rows));
    let first = all.iter().next().map(|(key, _)| key.to_vec());
    assert_eq!(first, Some(rows[0].0.clone()), "keys are in the order of their first rows");
}

#[test]
fn without_a_fold_all_rows_stay_in_their_order() {
    let mut all = Folded::default();
    for value in ["1", "2", "3"] {
        let mut some = Folded::default();
        some.push(None, b"k", value.as_bytes());
        all.add(None, some, 3);
    }
    all.settle(None, 1);
    let values: Vec<&[u8]> = all.iter().map(|(_, value)| value).collect();
    assert_eq!(values, [b"1", b"2", b"3"]);
}

#[test]
fn what_does_not_fold_stays_apart_in_order() {
    let fold = fold_of("sum:u64");
    let one = operand(&*fold, "1");
    let mut all = Folded::default();
    all.push(Some(&*fold), b"k", &one);
    all.push(Some(&*fold), b"k", b"no sum");
    all.push(Some(&*fold), b"k", &one);
    all.push(Some(&*fold), b"other", &one);
    all.settle(Some(&*fold), 1);
    let held: Vec<(&[u8], &[u8])> = all.iter().filter(|(key, _)| *key == b"k").collect();
    assert_eq!(held[0], (&b"k"[..], &one[..]));
    assert_eq!(held[1], (&b"k"[..], &b"no sum"[..]));
    assert_eq!(held[2], (&b"k"[..], &one[..]));
    all.clear();
    assert_eq!(all.iter().count(), 0);
    all.push(Some(&*fold), b"k", &one);
    assert_eq!(all.iter().count(), 1, "what was forgotten is not found");
}

#[test]
fn a_value_that_becomes_long_is_left_and_another_one_begins() {
    let fold = fold_of("set");
    let mut all = Folded::default();
    for n in 0..300_000 {
        all.push(Some(&*fold), b"k", &operand(&*fold, &format!("member {n}")));
    }
    all.settle(Some(&*fold), 1);
    let count = all.iter().count();
    assert!(count > 1 && count < 20, "{count}");
    assert!(all.iter().all(|(_, value)| value.len() <= FOLDED_BYTES_MAX));
}

#[test]
fn it_is_done_where_only_the_value_of_a_key_is_kept() {
    let folds = |rules: TableRules| folds(&DynamicRules::new(&rules, &Options::default()).unwrap());
    let sums = || TableRules::new(KeyCodec::Utf8).fold("sum:u64");
    assert!(folds(sums()));
    assert!(folds(TableRules::new(KeyCodec::Utf8).fold("{n: sum:u64, s: stats:f64}")));
    assert!(!folds(TableRules::new(KeyCodec::Utf8)), "values replace");
    assert!(!folds(sums().keep("forever".parse().unwrap())), "each row is an event of the past");
    assert!(!folds(sums().delete_when(&0u64.to_le_bytes())));
    assert!(!folds(TableRules::new(KeyCodec::Utf8).fold("append")), "operands are joined by the store");
}

/// What was gathered is settled on the way, as often as it has doubled.
#[test]
fn what_is_gathered_stays_small_where_keys_are_few() {
    let fold = fold_of("stats:f64");
    let mut all = Folded::default();
    let one = operand(&*fold, "0.1");
    for row in 0..1_000_000 {
        all.push(Some(&*fold), format!("k{}", row % 100).as_bytes(), &one);
        assert!(all.parts.iter().all(|part| part.memory_bytes() <= SETTLE_BYTES + 1000));
    }
    assert!(0 < all.settled_bytes() && all.settled_bytes() < 1 << 16, "{}", all.settled_bytes());
    all.settle(Some(&*fold), 1);
    assert_eq!(all.iter().count(), 100);
    let shown = fold.show(all.iter().next().unwrap().1).unwrap();
    assert_eq!(shown.field("count"), Some(&Datum::Int(10_000)));
}

#[test]
fn rows_around_one_that_does_not_fold_keep_their_order() {
    let fold = fold_of("hll:12");
    let mut all = Folded::default();
    let member = |n: u32| operand(&*fold, &format!("m{n}"));
    (0..1000).for_each(|n| all.push(Some(&*fold), b"k", &member(n)));
    all.push(Some(&*fold), b"k", b"no sketch at all");
    (1000..2000).for_each(|n| all.push(Some(&*fold), b"k", &member(n)));
    all.settle(Some(&*fold), 1);
    let held: Vec<Vec<u8>> = all.iter().map(|(_, value)| value.to_vec()).collect();
    let rows = |from, to| (from..to).map(|n| (b"k".to_vec(), member(n))).collect::<Vec<_>>();
    let one = |from, to| by_one(&*fold, &rows(from, to))[&b"k"[..]].clone();
    assert_eq!(held.len(), 3);
    assert_eq!(held[0], one(0, 1000));
    assert_eq!(held[1], b"no sketch at all");
    assert_eq!(held[2], one(1000, 2000));
}
