use super::*;
use crate::codec::{KeyCodec, ValueCodec};
use crate::head::HeadRule;
use crate::table_rules::{Custom, TableRules};
use crate::terms::TermRule;
use std::ops::RangeBounds;

fn extractor(rules: &TableRules, rule: &str) -> Extractor {
    let table = rules.bind(&Custom::default()).unwrap();
    Extractor::new(&rule.parse::<TermRule>().unwrap(), &table, None)
}

fn fold(spec: &str) -> TableRules {
    TableRules::new(KeyCodec::Utf8).fold(spec)
}

/// Which of these terms match, in the order in which they are found.
fn found(ranges: Result<Vec<TermRange<'_>>, String>, terms: &[Element<'static>]) -> Vec<String> {
    let mut hits = Vec::new();
    for range in ranges.unwrap() {
        hits.extend(terms.iter().filter(|term| range.contains(*term)).map(|term| format!("{term:?}")));
    }
    hits
}

fn typed(extractor: &Extractor, term: &str, terms: &[Element<'static>]) -> usize {
    found(extractor.ask_typed(Bound::Included(term), Bound::Included(term)), terms).len()
}

/// The single term of a query.
fn lone(extractor: &Extractor, term: &str) -> Element<'static> {
    match extractor.ask_typed(Bound::Included(term), Bound::Included(term)).unwrap().pop().unwrap() {
        (Bound::Included(low), Bound::Included(high)) if low == high => low,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_person_types_is_understood_as_the_terms_are() {
    let json = extractor(&TableRules::replace(), "json:/a");
    assert_eq!(lone(&json, "5"), 5.0.into());
    assert_eq!(lone(&json, "9007199254740993"), 9007199254740992.0.into());
    assert_eq!(lone(&json, "\"5\""), "5".into());
    assert_eq!(lone(&json, "Berlin"), "Berlin".into());
    assert_eq!(lone(&json, "true"), true.into());
    assert_eq!(lone(&json, "inf"), "inf".into());
    let text = extractor(&TableRules::new(KeyCodec::Utf8), "key:0");
    assert_eq!(lone(&text, "5"), "5".into());
    let bytes = extractor(&TableRules::postings(), "value");
    assert_eq!(lone(&bytes, "a"), Element::from(&b"a"[..]));
    assert_eq!(lone(&bytes, "0x00ff"), Element::from(&[0u8, 255][..]));
    let member = extractor(&fold("{t: set}"), "field:t");
    assert_eq!(lone(&member, "123"), "123".into(), "members that are digits are text");
    assert_eq!(lone(&member, "0x00ff"), Element::from(&[0u8, 255][..]));
    assert_eq!(lone(&member, "0x61"), "a".into());
    let number = extractor(&TableRules::replace().value(ValueCodec::U64), "value");
    assert_eq!(lone(&number, "5"), 5i64.into());
}

#[test]
fn a_number_finds_what_it_is_whatever_its_type() {
    let peaks = extractor(&fold("max:f64"), "value");
    let doubles = [(-0.0).into(), 0.0.into(), 3.0.into(), 3.5.into(), f64::INFINITY.into()];
    for (term, count) in
        [("3", 1), ("3.0", 1), ("3.5", 1), ("0", 2), ("-0", 2), ("-0.0", 2), ("inf", 1), ("4", 0)]
    {
        assert_eq!(typed(&peaks, term, &doubles), count, "{term}");
    }
    let whole = extractor(&fold("max:i64"), "value");
    let ints = [2i64, 3, 4].map(Element::from);
    for (term, count) in [("3", 1), ("3.0", 1), ("3.5", 0), ("1e300", 0), ("nan", 0)] {
        assert_eq!(typed(&whole, term, &ints), count, "{term}");
    }
    let any = extractor(&TableRules::replace(), "tuple:0");
    let mixed =
        ["a".into(), 3i64.into(), 4i64.into(), Element::Float(3.0), 3.0.into(), 3.25.into(), true.into()];
    for (term, count) in [("3", 3), ("3.0", 3), ("3.25", 1), ("4", 1), ("a", 1), ("true", 1)] {
        assert_eq!(typed(&any, term, &mixed), count, "{term}");
    }
    let short = extractor(&TableRules::new("tuple(float)".parse::<KeyCodec>().unwrap()), "key:0");
    assert_eq!(typed(&short, "0.1", &[Element::Float(0.1)]), 1);
}

#[test]
fn bounds_between_whole_numbers_go_to_the_next_inside() {
    let whole = extractor(&fold("max:i64"), "value");
    let ints = [-1i64, 0, 1, 2, 3, 4].map(Element::from);
    let count = |low: Bound<&str>, high: Bound<&str>| found(whole.ask_typed(low, high), &ints).len();
    use Bound::{Excluded, Included, Unbounded};
    assert_eq!(count(Included("1.5"), Unbounded), 3);
    assert_eq!(count(Excluded("1.5"), Unbounded), 3);
    assert_eq!(count(Included("2.0"), Unbounded), 3);
    assert_eq!(count(Excluded("2.0"), Unbounded), 2);
    assert_eq!(count(Unbounded, Included("-0.5")), 1);
    assert_eq!(count(Unbounded, Excluded("3.5")), 5);
    assert_eq!(count(Unbounded, Excluded("3.0")), 4);
    assert_eq!(count(Included("-inf"), Included("inf")), 6);
    assert_eq!(count(Included("inf"), Unbounded), 0);
    assert_eq!(count(Unbounded, Included("-1e300")), 0);

    let any = extractor(&TableRules::replace(), "tuple:0");
    let mixed = [1i64.into(), 9007199254740993i64.into(), 1.5.into(), 9007199254740992.0.into(), true.into()];
    let count = |low: Bound<&str>, high: Bound<&str>| found(any.ask_typed(low, high), &mixed).len();
    assert_eq!(count(Included("1.5"), Excluded("1e300")), 3);
    assert_eq!(count(Included("9007199254740993"), Excluded("1e300")), 1, "the double is less");
    assert_eq!(count(Included("2"), Unbounded), 3, "true comes behind all numbers");
    assert_eq!(count(Unbounded, Included("a")), 0);
    assert_eq!(count(Included("true"), Included("5")), 0);
}

#[test]
fn what_is_no_number_is_one_term_whatever_its_bits() {
    let values = extractor(&TableRules::replace().value(ValueCodec::F64), "value");
    let other = f64::from_bits(f64::NAN.to_bits() | 5);
    let terms = [f64::NAN, -f64::NAN, other, 1.0, f64::INFINITY].map(Element::from);
    assert_eq!(typed(&values, "nan", &terms), 3);
    assert_eq!(
        found(values.ask(Bound::Included(f64::NAN.into()), Bound::Included(f64::NAN.into())), &terms).len(),
        3
    );
    assert_eq!(found(values.ask_typed(Bound::Excluded("inf"), Bound::Unbounded), &terms).len(), 2);
}

#[test]
fn a_term_that_an_index_cannot_have_is_a_mistake() {
    let refused = |extractor: &Extractor, term: &str| {
        extractor.ask_typed(Bound::Included(term), Bound::Unbounded).unwrap_err()
    };
    let doubles = extractor(&TableRules::replace().value(ValueCodec::F64), "value");
    assert_eq!(refused(&doubles, "abc"), "has numbers, and \"abc\" is none");
    assert_eq!(refused(&doubles, "true"), "has numbers, and \"true\" is none");
    let ints = extractor(&TableRules::new("tuple(text,int)".parse::<KeyCodec>().unwrap()), "key:1");
    assert_eq!(refused(&ints, "abc"), "has whole numbers, and \"abc\" is none");
    assert!(ints.ask(Bound::Unbounded, Bound::Excluded("x".into())).is_err());
}

#[test]
fn prefixes_are_text_or_bytes() {
    let bytes = extractor(&TableRules::postings(), "value");
    assert_eq!(bytes.ask_typed_prefix("0x00ff").unwrap(), Element::from(&[0u8, 255][..]));
    assert_eq!(bytes.ask_typed_prefix("ab").unwrap(), Element::from(&b"ab"[..]));
    let json = extractor(&TableRules::replace(), "json:/a");
    assert_eq!(json.ask_typed_prefix("53").unwrap(), "53".into(), "what begins is text");
    assert_eq!(json.ask_typed_prefix("\"53\"").unwrap(), "53".into());
    assert!(json.ask_prefix(5i64.into()).is_err());
    let ints = extractor(&TableRules::replace().value(ValueCodec::U64), "value");
    assert_eq!(
        ints.ask_typed_prefix("5").unwrap_err(),
        "has whole numbers, which have no prefixes: ask for a range"
    );
}

#[test]
fn heads_that_are_json_are_asked_for_as_json() {
    let rules = TableRules::replace().value(ValueCodec::Json).head(HeadRule::Json("/c".into()));
    let heads = extractor(&rules, "head");
    let bytes = |text: &str| Element::Bytes(Cow::Owned(text.as_bytes().to_vec()));
    assert_eq!(lone(&heads, "Berlin"), bytes("\"Berlin\""));
    assert_eq!(lone(&heads, "\"Berlin\""), bytes("\"Berlin\""));
    assert_eq!(lone(&heads, "30"), bytes("30"));
    assert_eq!(lone(&heads, r#"{"b": 1, "a": [2]}"#), bytes(r#"{"a":[2],"b":1}"#));
    assert_eq!(heads.ask_typed_prefix("Ber").unwrap(), bytes("\"Ber"));
    assert_eq!(heads.ask_typed_prefix("0x7b").unwrap(), bytes("{"), "any bytes, of documents, too");
    assert_eq!(lone(&heads, "0x37"), bytes("7"));
    let inner = extractor(&rules, "head:");
    assert_eq!(lone(&inner, "30"), 30.0.into());
}

#[test]
fn times_are_asked_for_as_they_are_shown_and_a_part_of_one_is_all_of_it() {
    let key = TableRules::new("tuple(text,time)".parse::<KeyCodec>().unwrap());
    let of_fold = fold("{last: max:time}");
    let of_value = TableRules::new(KeyCodec::Time).value(ValueCodec::Time);
    let rules = [(&key, "key:1"), (&of_fold, "field:last"), (&of_value, "value"), (&of_value, "key:0")];
    for (rules, rule) in rules {
        let extractor = extractor(rules, rule);
        assert_eq!(extractor.kind(), TermKind::Time, "{rule}");
        let terms =
            [1_795_305_600_000_000i64, 1_795_336_200_000_000, 1_795_392_000_000_000].map(Element::from);
        assert_eq!(typed(&extractor, "2026-11-22", &terms), 2, "{rule}");
        assert_eq!(typed(&extractor, "2026-11-22T08:30:00Z", &terms), 1, "{rule}");
        assert_eq!(typed(&extractor, "\"2026-11-22T09:30:00+01:00\"", &terms), 1, "{rule}");
        let after = extractor.ask_typed(Bound::Excluded("2026-11-22"), Bound::Unbounded);
        assert_eq!(found(after, &terms).len(), 1, "{rule}");
        let before = extractor.ask_typed(Bound::Unbounded, Bound::Excluded("2026-11-22T08:30"));
        assert_eq!(found(before, &terms).len(), 1, "{rule}");
        let wrong = extractor.ask_typed(Bound::Included("noon"), Bound::Unbounded).unwrap_err();
        assert_eq!(wrong, "has times, and \"noon\" is none");
        assert!(extractor.ask_typed_prefix("2026").unwrap_err().contains("no prefixes"), "{rule}");
    }
}
