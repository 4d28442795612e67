use super::*;
use crate::codec::KeyCodec;
use crate::table_rules::{Custom, TableRules};

fn broken(rules: &TableRules, rule: &str) -> Option<TermsBroken> {
    let table = rules.bind(&Custom::default()).unwrap();
    let extractor = Extractor::new(&TermRule::parse(rule).unwrap(), &table, None);
    check_terms(&table, &extractor, &[])
}

#[test]
fn sums_break_the_law_and_what_chooses_or_gathers_keeps_it() {
    let fold = |spec: &str| TableRules::new(KeyCodec::Utf8).fold(spec);
    for breaks in ["sum:u64", "sum:i64", "sum:f64", "append:\",\""] {
        assert!(broken(&fold(breaks), "value").is_some(), "{breaks}");
        assert_eq!(broken(&fold(breaks), "key:0"), None, "{breaks}");
    }
    for keeps in ["max:u64", "min:f64", "set", "intersect", "replace", "first", "json-merge"] {
        assert_eq!(broken(&fold(keeps), "value"), None, "{keeps}");
    }
    let record = fold("{n: sum:u64, high: max:u64, tails: set}");
    assert!(broken(&record, "field:n").is_some());
    assert_eq!(broken(&record, "field:high"), None);
    assert_eq!(broken(&record, "field:tails"), None);
    let message = broken(&fold("sum:u64"), "value").unwrap().to_string();
    assert_eq!(
        message,
        "folding brings about a term that is in neither value, so it would not be found: 1 and 1 have 2 together"
    );
}
