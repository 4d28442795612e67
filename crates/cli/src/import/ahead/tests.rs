use std::collections::BTreeMap;

use folddb::Datum;
use folddb::Options;
use folddb::codec::KeyCodec;
use folddb::folds::FoldSpec;
use folddb::table_rules::TableRules;
use proptest::prelude::*;

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
        which in 0usize..6,
    ) {
        let specs = ["sum:u64", "stats:f64", "hll:12", "set", "quantiles", "top:3"];
        let spec = specs[which];
        let fold = fold_of(spec);
        let text = |n: u32| if spec == "top:3" { format!("[{n}, \"x{n}\"]") } else { n.to_string() };
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
            some.settle(Some(&*fold));
            all.add(Some(&*fold), &some);
        }
        all.settle(Some(&*fold));
        let held: BTreeMap<Vec<u8>, Vec<u8>> =
            all.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        prop_assert_eq!(held.len(), all.len(), "one operand for each key");
        prop_assert_eq!(held, by_one(&*fold, &rows));
    }
}

#[test]
fn without_a_fold_all_rows_stay_in_their_order() {
    let mut all = Folded::default();
    for value in ["1", "2", "3"] {
        let mut some = Folded::default();
        some.push(None, b"k", value.as_bytes());
        all.add(None, &some);
    }
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
    let held: Vec<(&[u8], &[u8])> = all.iter().collect();
    assert_eq!(held[0], (&b"k"[..], &one[..]));
    assert_eq!(held[1], (&b"k"[..], &b"no sum"[..]));
    assert_eq!(held[2], (&b"k"[..], &one[..]));
    all.clear();
    assert_eq!(all.len(), 0);
    all.push(Some(&*fold), b"k", &one);
    assert_eq!(all.len(), 1, "what was forgotten is not found");
}

#[test]
fn a_value_that_becomes_long_is_left_and_another_one_begins() {
    let fold = fold_of("set");
    let mut all = Folded::default();
    for n in 0..20_000 {
        all.push(Some(&*fold), b"k", &operand(&*fold, &format!("member {n}")));
    }
    all.settle(Some(&*fold));
    assert!(all.len() > 1 && all.len() < 20, "{}", all.len());
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

/// Rows after a long value are folded with one another before they are folded onto it; one that
/// does not fold comes after them.
#[test]
fn rows_after_a_long_value_keep_their_order() {
    let fold = fold_of("hll:12");
    let mut all = Folded::default();
    let member = |n: u32| operand(&*fold, &format!("m{n}"));
    (0..1000).for_each(|n| all.push(Some(&*fold), b"k", &member(n)));
    all.push(Some(&*fold), b"k", b"no sketch at all");
    (1000..2000).for_each(|n| all.push(Some(&*fold), b"k", &member(n)));
    all.settle(Some(&*fold));
    let held: Vec<Vec<u8>> = all.iter().map(|(_, value)| value.to_vec()).collect();
    let rows = |from, to| (from..to).map(|n| (b"k".to_vec(), member(n))).collect::<Vec<_>>();
    let one = |from, to| by_one(&*fold, &rows(from, to))[&b"k"[..]].clone();
    assert_eq!(held.len(), 3);
    assert_eq!(held[0], one(0, 1000));
    assert_eq!(held[1], b"no sketch at all");
    assert_eq!(held[2], one(1000, 2000));
}
