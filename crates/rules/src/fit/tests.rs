#![allow(clippy::unwrap_used)]

use super::*;
use crate::codec::KeyCodec;
use crate::folds;
use crate::table_rules::{Custom, TableRules};

fn fit<V: Value>(spec: &str) -> Result<Fit, String> {
    let rules = TableRules::new(KeyCodec::Bytes).value(V::codec()).fold(spec);
    rules.bind(&Custom::default()).unwrap().fit::<V>().map_err(|cause| cause.0)
}

/// The fold takes every value that is trusted without a check.
fn trusts<V: Value>(spec: &str, values: &[V]) {
    assert_eq!(fit::<V>(spec), Ok(Fit::Always), "{spec}");
    let rules = TableRules::new(KeyCodec::Bytes).value(V::codec()).fold(spec);
    let rules = rules.bind(&Custom::default()).unwrap();
    for value in values {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        rules.check_value(&bytes).unwrap();
    }
}

#[test]
fn the_type_of_a_fold_fits_always() {
    trusts::<u64>("sum:u64", &[0, u64::MAX]);
    trusts::<i64>("sum:i64", &[i64::MIN, -1]);
    trusts::<i128>("sum:i128", &[i128::MIN, -1]);
    trusts::<i64>("max:i64", &[i64::MIN, -1]);
    trusts::<f64>("min:f64", &[f64::NAN, 1.0]);
    trusts::<String>("append", &["text".to_owned()]);
    trusts::<String>("max:bytes", &["text".to_owned()]);
    trusts::<Vec<u8>>("replace", &[vec![255]]);
    trusts::<String>("replace", &["text".to_owned()]);
    trusts::<u64>("first", &[7]);
    trusts::<bool>("replace", &[true, false]);
    let stats = [folds::Stats::of(1.5), folds::Stats::of(f64::NAN), folds::Stats::of(f64::INFINITY)];
    trusts("stats:f64", &stats);
    trusts("sum:f64", &[folds::ExactSum::of(f64::NAN), folds::ExactSum::of(f64::MAX)]);
    trusts("set", &[folds::ByteSet::default()]);
    trusts("counters", &[folds::Counters::default()]);
}

#[test]
fn a_type_that_the_fold_reads_as_another_is_refused_with_what_fits() {
    let refused = [
        ("String on sum:i64", fit::<String>("sum:i64"), "type i64"),
        ("String on set", fit::<String>("set"), "type folddb::folds::ByteSet"),
        ("String joined by no text", fit::<String>("append:\\xff"), "Vec<u8>"),
        ("i64 on sum:u64", fit::<i64>("sum:u64"), "type u64"),
        ("u64 on sum:i64", fit::<u64>("sum:i64"), "type i64"),
        ("u64 on max:f64", fit::<u64>("max:f64"), "type f64"),
        ("i64 on sum:f64", fit::<i64>("sum:f64"), "type folddb::folds::ExactSum"),
        ("f64 on sum:f64", fit::<f64>("sum:f64"), "type folddb::folds::ExactSum"),
        ("f64 on sum:u64", fit::<f64>("sum:u64"), "type u64"),
        ("u64 on json-merge", fit::<u64>("json-merge"), "type serde_json::Value"),
        ("u64 on sum:i128", fit::<u64>("sum:i128"), "type i128"),
        ("Stats on sum:i64", fit::<folds::Stats>("sum:i64"), "made for the fold `stats:f64`"),
        ("eight bytes that are joined", fit::<[u8; 8]>("append"), "String or Vec<u8>"),
    ];
    for (what, fit, takes) in refused {
        let refused = fit.unwrap_err();
        assert!(refused.contains(takes) && refused.contains("`Vec<u8>`"), "{what}: {refused}");
    }
}

#[test]
fn a_type_that_may_fit_is_checked_when_it_is_written() {
    assert_eq!(fit::<Vec<u8>>("sum:i64"), Ok(Fit::Sometimes));
    assert_eq!(fit::<[u8; 8]>("sum:i64"), Ok(Fit::Sometimes));
    assert_eq!(fit::<String>("json-merge"), Ok(Fit::Sometimes));
    assert_eq!(fit::<folds::Patch>("patch"), Ok(Fit::Sometimes));
    // Documents may nest too deeply to be read again.
    assert_eq!(fit::<serde_json::Value>("json-merge"), Ok(Fit::Sometimes));
    assert_eq!(fit::<serde_json::Value>("replace"), Ok(Fit::Sometimes));
}

#[test]
fn a_table_that_replaces_is_not_read_as_values_of_another_type() {
    let of = |codec| TableRules::new(KeyCodec::Bytes).value(codec).bind(&Custom::default()).unwrap();
    assert!(of(ValueCodec::U64).fit::<i64>().unwrap_err().0.contains("its values are u64"));
    assert!(of(ValueCodec::Utf8).fit::<serde_json::Value>().is_err());
    assert_eq!(of(ValueCodec::Json).fit::<String>(), Ok(Fit::Sometimes));
    assert_eq!(of(ValueCodec::U64).fit::<Vec<u8>>(), Ok(Fit::Sometimes));
    assert_eq!(of(ValueCodec::Bytes).fit::<u64>(), Ok(Fit::Always));
}
