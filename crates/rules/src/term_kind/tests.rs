use super::*;
use crate::table_rules::{Custom, TableRules};

fn why(rules: &TableRules, rule: &str) -> Option<String> {
    why_no_terms(&rule.parse::<TermRule>().unwrap(), &rules.bind(&Custom::default()).unwrap())
}

fn fold(spec: &str) -> TableRules {
    TableRules::new(KeyCodec::Utf8).fold(spec)
}

#[test]
fn rules_that_can_never_give_a_term_are_refused_with_what_exists() {
    let keys = |codec: &str| TableRules::new(codec.parse::<KeyCodec>().unwrap());
    let json = TableRules::new(KeyCodec::Utf8).value(ValueCodec::Json);
    let cases = [
        (json.clone(), "head", "the table has no heads"),
        (json.clone(), "head:/a", "the table has no heads"),
        (json.clone(), "key:7", "no element 7 in keys that are utf8: they have key:0"),
        (keys("tuple(text,int)"), "key:2", "they have key:0 to key:1"),
        (json, "tuple:0", "values are json, which are not tuples"),
        (TableRules::replace().value(ValueCodec::U64), "json:/a", "values are u64, which are not JSON"),
        (TableRules::replace(), "field:a", "values are bytes, which have no fields"),
        (fold("{n: max:u64, s: stats:f64}"), "field:nosuch", "no field `nosuch`; fields with terms are n"),
        (fold("{n: max:u64, s: stats:f64}"), "field:s", "what is in field `s` has no terms"),
        (fold("{n: max:u64}"), "value", "a record has no terms itself; fields with terms are n"),
        (fold("sum:f64"), "field:a", "values are those of sum:f64, which have no fields"),
        (fold("stats:f64"), "value", "fields with terms are count, sum, min, max, mean, variance"),
        (fold("top:3"), "value", "which have no terms"),
        (fold("counters"), "value", "by field:NAME only"),
        (fold("set"), "json:/a", "which are not JSON"),
    ];
    for (rules, rule, expected) in cases {
        let why = why(&rules, rule).unwrap_or_default();
        assert!(why.contains(expected), "{rule}: {why}");
    }
}

/// The kinds of the fields of folds agree with what the folds show.
#[test]
fn rules_that_can_give_a_term_are_let_through() {
    let json = || TableRules::new(KeyCodec::Utf8).value(ValueCodec::Json);
    let headed = json().head(HeadRule::Json("/a".into()));
    for (rules, rule) in [
        (json(), "json:/a"),
        (json(), "value"),
        (json(), "field:a"),
        (json(), "key:0"),
        (headed.clone(), "head"),
        (headed, "head:/b"),
        (TableRules::new(KeyCodec::Tuple), "key:7"),
        (TableRules::replace(), "tuple:3"),
        (TableRules::replace().value(ValueCodec::Utf8), "json:/a"),
        (fold("json-merge"), "field:a"),
        (fold("json-merge"), "json:/a"),
        (fold("max:bytes"), "tuple:0"),
        (fold("append"), "json:/a"),
        (fold("bitmap"), "value"),
        (fold("{n: max:u64, t: set, j: json-merge}"), "field:j"),
        (TableRules::new(KeyCodec::Utf8).custom_fold("own", 1), "field:x"),
        (json(), "custom:f@1"),
    ] {
        assert_eq!(why(&rules, rule), None, "{rule}");
    }
    for spec in ["stats:f64", "quantiles", "lww:ts"] {
        let fold = crate::folds::parse(spec).unwrap();
        let mut value = Vec::new();
        let sample = if spec == "lww:ts" { "1 x" } else { "1" };
        fold.read(&crate::Datum::Text(sample.to_owned()), &mut value).unwrap();
        let crate::Datum::Map(shown) = fold.show(&value).unwrap() else { panic!("{spec}") };
        let Shape::Fields(told) = shape_of_fold(spec) else { panic!("{spec}") };
        let names: Vec<&String> = told.iter().map(|(name, _)| name).collect();
        assert_eq!(names, shown.iter().map(|(name, _)| name).collect::<Vec<_>>(), "{spec}");
    }
}

#[test]
fn fields_and_folds_of_numbers_have_kinds() {
    let kind = |rules: &TableRules, rule: &str| {
        kind_of(&rule.parse::<TermRule>().unwrap(), &rules.bind(&Custom::default()).unwrap())
    };
    for (rules, rule, expected) in [
        (fold("max:f64"), "value", TermKind::Double),
        (fold("min:i64"), "value", TermKind::Int),
        (fold("max:bytes"), "value", TermKind::Bytes),
        (fold("set"), "value", TermKind::Bytes),
        (fold("bitmap"), "value", TermKind::Int),
        (fold("stats:f64"), "field:max", TermKind::Double),
        (fold("{n: max:u64, t: set}"), "field:n", TermKind::Int),
        (fold("{n: max:u64, t: set}"), "field:t", TermKind::TextOrBytes),
        (fold("json-merge"), "field:a", TermKind::Any),
        (TableRules::new("tuple(int?,float)".parse::<KeyCodec>().unwrap()), "key:0", TermKind::Int),
        (TableRules::new("tuple(int?,float)".parse::<KeyCodec>().unwrap()), "key:1", TermKind::Float),
        (TableRules::replace(), "tuple:0", TermKind::Any),
    ] {
        assert_eq!(kind(&rules, rule), expected, "{rule} of {}", rules.fold);
    }
}
