use super::*;
use crate::codec::KeyCodec;
use crate::table_rules::{Custom, TableRules};

fn broken(rules: &TableRules, rule: &str) -> Option<TermsBroken> {
    let table = rules.bind(&Custom::default()).unwrap();
    let extractor = Extractor::new(&rule.parse::<TermRule>().unwrap(), &table, None);
    match check_terms(&table, &extractor, &[]) {
        Ok(()) => None,
        Err(TermsDoubt::Broken(case)) => Some(case),
        Err(doubt) => panic!("{rule}: {doubt}"),
    }
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
        "folding makes a term that is in neither value, so it would not be found: 1 and 1 have 2 together"
    );
}

/// Folded statistics, sketches and counters are in neither of two values; extremes and choices are.
#[test]
fn derived_parts_of_values_break_the_law_and_extremes_keep_it() {
    let fold = |spec: &str| TableRules::new(KeyCodec::Utf8).fold(spec);
    let breaking =
        [("stats:f64", "count sum mean variance"), ("quantiles", "count p50 p90 p99"), ("counters", "a")];
    for (spec, names) in breaking {
        for name in names.split(' ') {
            assert!(broken(&fold(spec), &format!("field:{name}")).is_some(), "{name} of {spec}");
        }
    }
    let keeping =
        [("stats:f64", "min max"), ("quantiles", "min max"), ("lww:ts", "ts value"), ("json-merge", "a")];
    for (spec, names) in keeping {
        for name in names.split(' ') {
            assert_eq!(broken(&fold(spec), &format!("field:{name}")), None, "{name} of {spec}");
        }
    }
    let case = broken(&fold("stats:f64"), "field:count").unwrap();
    assert_eq!(case.term, Datum::Int(2));
}

#[test]
fn edits_and_what_is_put_together_of_pieces_break_the_law() {
    let fold = |spec: &str| TableRules::new(KeyCodec::Utf8).fold(spec);
    for (spec, rule) in [
        ("patch", "value"),
        ("append", "json:/a"),
        ("append", "json:/a/b"),
        ("append:\",\"", "json:/a"),
        ("append:\"\\n\"", "json:"),
        ("append", "tuple:1"),
        ("hll:12", "value"),
    ] {
        assert!(broken(&fold(spec), rule).is_some(), "{rule} of {spec}");
    }
    for (spec, rule) in
        [("append", "tuple:0"), ("json-merge", "json:/a/b"), ("max:bytes", "json:/a"), ("bitmap", "value")]
    {
        assert_eq!(broken(&fold(spec), rule), None, "{rule} of {spec}");
    }
    let headed = |spec: &str, head: HeadRule| fold(spec).head(head);
    assert!(broken(&headed("sum:u64", HeadRule::First(8)), "head").is_some());
    assert!(broken(&headed("{n: sum:u64}", HeadRule::First(8)), "head").is_some());
    assert!(broken(&headed("matmul:2:i64", HeadRule::First(8)), "head").is_some());
    assert_eq!(broken(&headed("json-merge", HeadRule::Json("/a".into())), "head:/b"), None);
}

struct Sealed;

impl crate::fold::Fold for Sealed {
    fn spec(&self) -> String {
        "sealed".to_owned()
    }

    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        _: &mut Vec<u8>,
    ) -> Result<Outcome, crate::fold::FoldFailure> {
        match earlier.starts_with(b"seal") && later.starts_with(b"seal") {
            true => Ok(Outcome::KeepLater),
            false => Err(crate::fold::FoldFailure::new("no seal")),
        }
    }
}

/// A user's fold that takes no made-up value: only records show whether the law holds.
#[test]
fn where_no_two_values_fold_the_index_is_refused_until_there_are_records() {
    let mut custom = Custom::default();
    custom.add_fold(std::sync::Arc::new(Sealed));
    let rules = TableRules::new(KeyCodec::Utf8).custom_fold("sealed", 1);
    let table = rules.bind(&custom).unwrap();
    let extractor = Extractor::new(&TermRule::Value, &table, None);
    assert_eq!(check_terms(&table, &extractor, &[]), Err(TermsDoubt::NotTried));
    let record = (b"k".to_vec(), b"sealed".to_vec());
    assert_eq!(check_terms(&table, &extractor, &[record]), Ok(()));
}
