#![allow(clippy::unwrap_used)]

use super::*;
use crate::codec::KeyCodec;
use crate::folds;
use crate::table_rules::{Custom, TableRules};

fn fit<V: Value>(spec: &str) -> Result<Fit, String> {
    let rules = TableRules::new(KeyCodec::Bytes).value(V::codec()).fold(spec);
    rules.bind(&Custom::default()).unwrap().fit::<V>().map_err(|cause| cause.0)
}

/// What is trusted unseen is what the fold would have taken.
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
    trusts::<i64>("max:i64", &[i64::MIN, -1]);
    trusts::<f64>("min:f64", &[f64::NAN, 1.0]);
    trusts::<String>("append", &["text".to_owned()]);
    trusts::<Vec<u8>>("replace", &[vec![255]]);
    trusts::<String>("replace", &["text".to_owned()]);
    trusts::<u64>("first", &[7]);
    let stats = [folds::Stats::of(1.5), folds::Stats::of(f64::NAN), folds::Stats::of(f64::INFINITY)];
    trusts("stats:f64", &stats);
    trusts("set", &[folds::ByteSet::default()]);
    trusts("counters", &[folds::Counters::default()]);
}

#[test]
fn a_type_that_the_fold_reads_as_another_is_refused_and_told_what_fits() {
    let refused = [
        ("String on sum:i64", fit::<String>("sum:i64"), "i64"),
        ("i64 on sum:u64", fit::<i64>("sum:u64"), "u64"),
        ("u64 on sum:i64", fit::<u64>("sum:i64"), "i64"),
        ("u64 on max:f64", fit::<u64>("max:f64"), "f64"),
        ("i64 on sum:f64", fit::<i64>("sum:f64"), "f64"),
        ("f64 on sum:u64", fit::<f64>("sum:u64"), "u64"),
        ("u64 on json-merge", fit::<u64>("json-merge"), "json"),
        ("u64 on sum:i128", fit::<u64>("sum:i128"), "operands"),
    ];
    for (what, fit, takes) in refused {
        let refused = fit.unwrap_err();
        assert!(refused.contains(takes) && refused.contains("`Vec<u8>`"), "{what}: {refused}");
    }
}

#[test]
fn what_may_fit_is_looked_at_when_it_is_written() {
    assert_eq!(fit::<Vec<u8>>("sum:i64"), Ok(Fit::Sometimes));
    assert_eq!(fit::<[u8; 8]>("sum:i64"), Ok(Fit::Sometimes));
    assert_eq!(fit::<String>("json-merge"), Ok(Fit::Sometimes));
    assert_eq!(fit::<folds::Stats>("sum:i64"), Ok(Fit::Sometimes));
}
