#![allow(clippy::unwrap_used)]

use super::*;
use crate::folds::SPECS;

#[test]
fn a_fold_of_values_is_that_of_its_spec() {
    let folds: [(FoldSpec, &str); 19] = [
        (replace::<String>().into(), "replace"),
        (first::<String>().into(), "first"),
        (sum::<i64>().into(), "sum:i64"),
        (sum::<u64>().into(), "sum:u64"),
        (sum::<i128>().into(), "sum:i128"),
        (sum::<ExactSum>().into(), "sum:f64"),
        (min::<i64>().into(), "min:i64"),
        (max::<u64>().into(), "max:u64"),
        (min::<f64>().into(), "min:f64"),
        (max::<String>().into(), "max:bytes"),
        (stats().into(), "stats:f64"),
        (append::<String>("").into(), "append"),
        (append::<Vec<u8>>(", ").into(), "append:, "),
        (set().into(), "set"),
        (intersect().into(), "intersect"),
        (bitmap().into(), "bitmap"),
        (counters().into(), "counters"),
        (json_merge().into(), "json-merge"),
        (patch().into(), "patch"),
    ];
    for (fold, spec) in folds {
        let parsed: FoldSpec = spec.parse().unwrap();
        assert_eq!(fold, parsed);
        assert_eq!(fold.to_string().parse::<FoldSpec>().unwrap(), parsed);
    }
}

#[test]
fn each_spec_is_parsed_and_a_wrong_one_is_pointed_at() {
    for spec in SPECS {
        assert_eq!(spec.parse::<FoldSpec>().unwrap().to_string(), spec);
    }
    let wrong = "{a: sum:i64, b: sum:i65}".parse::<FoldSpec>().unwrap_err();
    assert_eq!(wrong.at(), 20);
    assert!(wrong.to_string().contains("\n                      ^ did you mean"), "{wrong}");
}
