use super::*;
use crate::table_rules::{Custom, TableRules};
use std::sync::Arc;

fn bound(rules: &TableRules) -> BoundRules {
    rules.bind(&Custom::default()).unwrap()
}

fn shown(terms: &Terms) -> Vec<String> {
    terms.iter().map(|term| crate::terms::show_term(term).to_string()).collect()
}

fn terms_of(rules: &TableRules, rule: &str, key: &[u8], value: &[u8]) -> Vec<String> {
    let table = bound(rules);
    let extractor = Extractor::new(&rule.parse::<TermRule>().unwrap(), &table, None);
    let mut terms = Terms::default();
    extractor.take(&table, key, value, &mut terms);
    terms.settle();
    shown(&terms)
}

#[test]
fn json_gives_the_piece_at_the_pointer() {
    let rules = TableRules::replace();
    let of = |rule: &str, value: &str| terms_of(&rules, rule, b"k", value.as_bytes());
    let value = r#"{"city":"Berlin","at":{"x":[1,2.5,-0.0]},"tags":["b","a","b",null,{"c":1},["d"]],"a/b":true,"city2":"\u00fc"}"#;
    assert_eq!(of("json:/city", value), ["Berlin"]);
    assert_eq!(of("json:/city2", value), ["ü"]);
    assert_eq!(of("json:/at/x/1", value), ["2.5"]);
    assert_eq!(of("json:/at/x", value), ["0", "1", "2.5"]);
    assert_eq!(of("json:/tags", value), ["a", "b"]);
    assert_eq!(of("json:/a~1b", value), ["true"]);
    for nothing in ["json:/at", "json:/none", "json:/tags/9", "json:/tags/01", "json:/city/x", "json:"] {
        assert_eq!(of(nothing, value), [""; 0], "{nothing}");
    }
    assert_eq!(of("json:", "[3,1]"), ["1", "3"]);
    assert_eq!(of("json:/a", r#"{"a":1,"a":2}"#), ["2"], "of repeated names the last counts");
    for broken in [r#"{"city":"Berlin"} x"#, r#"{"city":"Berlin""#, r#"{"city":"Berlin","x":}"#, "", "\u{0}"]
    {
        assert_eq!(of("json:/city", broken), [""; 0], "{broken}");
    }
}

#[test]
fn finding_a_place_gives_what_the_whole_tree_has_there() {
    let texts = [r#"{"a":{"b":[1,{"c":"x"}]},"d":null}"#, "[[],{},[1]]", "7", r#"{"":{"":5}}"#];
    for text in texts {
        for pointer in ["", "/a", "/a/b", "/a/b/1/c", "/0", "/2/0", "/", "//", "/d"] {
            let mut whole = Vec::new();
            json_text::put_at(text.as_bytes(), pointer, &mut whole);
            let found = json_text::find(text, &json_text::steps(pointer), false)
                .map(|node| node.into_text().into_owned());
            assert_eq!(found.unwrap_or_default().into_bytes(), whole, "{text} at {pointer}");
        }
    }
}

#[test]
fn an_operand_of_json_merge_has_the_terms_of_what_it_sets() {
    let rules = TableRules::replace().fold("json-merge");
    assert_eq!(terms_of(&rules, "json:/a/b", b"", br#"{"a":{"$set":{"b":"x"}}}"#), ["x"]);
    assert_eq!(terms_of(&rules, "json:/a/b", b"", br#"{"$set":{"a":{"b":"x"}}}"#), ["x"]);
    assert_eq!(terms_of(&rules, "json:/a", b"", br#"{"a":null}"#), [""; 0]);
}

#[test]
fn values_of_each_kind_are_terms() {
    let kinds = [
        (TableRules::replace(), &b"\x00\xff"[..], vec!["0x00ff"]),
        (TableRules::replace().value(ValueCodec::Utf8), b"text", vec!["text"]),
        (TableRules::replace().value(ValueCodec::U64), &7u64.to_le_bytes(), vec!["7"]),
        (TableRules::replace().value(ValueCodec::F64), &2.5f64.to_le_bytes(), vec!["2.5"]),
        (TableRules::replace().value(ValueCodec::Json), b"[1,2]", vec!["1", "2"]),
        (TableRules::replace().value(ValueCodec::U64), b"short", vec![]),
    ];
    for (rules, value, expected) in kinds {
        assert_eq!(terms_of(&rules, "value", b"k", value), expected);
    }
    let table = bound(&TableRules::postings());
    let mut set = Vec::new();
    table.read_value(&Datum::List(vec![Datum::Text("b".into()), Datum::Text("a".into())]), &mut set).unwrap();
    assert_eq!(terms_of(&TableRules::postings(), "value", b"k", &set), ["a", "b"]);
}

#[test]
fn keys_tuples_fields_and_heads_give_terms() {
    let rules = TableRules::new("tuple(text,int)".parse::<KeyCodec>().unwrap());
    let key = tuple::pack(&["UA".into(), 7i64.into()]);
    assert_eq!(terms_of(&rules, "key:0", &key, b""), ["UA"]);
    assert_eq!(terms_of(&rules, "key:1", &key, b""), ["7"]);
    assert_eq!(terms_of(&rules, "key:2", &key, b""), [""; 0]);
    assert_eq!(terms_of(&rules, "tuple:1", b"", &key), ["7"]);
    assert_eq!(terms_of(&TableRules::new(KeyCodec::Utf8), "key:0", b"whole", b""), ["whole"]);
    let nested = tuple::pack(&[Element::Nested(vec!["x".into(), Element::Null, "y".into()]), Element::Null]);
    assert_eq!(terms_of(&rules, "tuple:0", b"", &nested), ["x", "y"]);
    assert_eq!(terms_of(&rules, "tuple:1", b"", &nested), [""; 0]);

    let rules = TableRules::new(KeyCodec::Utf8).fold("{high: max:u64, tails: set}");
    let mut record = Vec::new();
    let row = Datum::Map(vec![("high".into(), Datum::Int(5)), ("tails".into(), Datum::Text("N1".into()))]);
    bound(&rules).read_value(&row, &mut record).unwrap();
    assert_eq!(terms_of(&rules, "field:high", b"k", &record), ["5"]);
    assert_eq!(terms_of(&rules, "field:tails", b"k", &record), ["N1"]);
    assert_eq!(terms_of(&rules, "field:none", b"k", &record), [""; 0]);

    let heads = TableRules::replace().head(crate::head::HeadRule::Json("/meta".into()));
    assert_eq!(terms_of(&heads, "head:/kind", b"k", br#"{"meta":{"kind":"x"},"body":1}"#), ["x"]);
    let first = TableRules::replace().head(crate::head::HeadRule::First(3));
    assert_eq!(terms_of(&first, "head", b"k", b"abcdef"), ["abc"]);
}

#[test]
fn a_function_of_the_user_gives_terms_and_its_panic_gives_none() {
    let table = bound(&TableRules::replace());
    let rule = "custom:words@1".parse::<TermRule>().unwrap();
    let words = |_: &[u8], value: &[u8], out: &mut Terms| {
        assert!(value != b"?", "as a test");
        value.split(|byte| *byte == b' ').for_each(|word| out.push(&Element::from(word)));
    };
    let extractor = Extractor::new(&rule, &table, Some(Arc::new(words)));
    let mut terms = Terms::default();
    terms.push_text("before");
    extractor.take(&table, b"k", b"to be", &mut terms);
    assert_eq!(shown(&terms), ["before", "to", "be"]);
    terms.clear();
    extractor.take(&table, b"k", b"?", &mut terms);
    assert!(terms.is_empty());
}

/// Indexes keep their terms forever, even if the way values are shown changes: text with control
/// characters is bytes as a term.
#[test]
fn terms_are_what_they_were_however_values_are_shown() {
    let rules = TableRules::new(KeyCodec::Utf8).fold("{s: set, a: append, w: max:bytes}");
    let table = bound(&rules);
    let text = |text: &str| Datum::Text(text.to_owned());
    for (field, member, is_text) in [
        ("s", "a\nb", false),
        ("s", "ab", true),
        ("a", "\u{0}", false),
        ("w", "{\"$hex\":\"ff\"}", true),
        ("w", "é", true),
    ] {
        let mut value = Vec::new();
        table.read_value(&Datum::Map(vec![(field.to_owned(), text(member))]), &mut value).unwrap();
        let rule = format!("field:{field}").parse::<TermRule>().unwrap();
        let mut terms = Terms::default();
        Extractor::new(&rule, &table, None).take(&table, b"k", &value, &mut terms);
        terms.settle();
        let element = if is_text { Element::from(member) } else { Element::from(member.as_bytes()) };
        assert_eq!(terms.iter().collect::<Vec<_>>(), [&tuple::pack(&[element])[..]], "{member:?}");
    }
}

/// A document that is a text is shown with quotes, its term has none; a null has no term.
#[test]
fn terms_of_documents_are_what_they_say_and_not_how_they_are_shown() {
    let table = bound(&TableRules::new(KeyCodec::Utf8).fold("{n: sum:u64, j: json-merge}"));
    let rule = "field:j".parse::<TermRule>().unwrap();
    let extractor = Extractor::new(&rule, &table, None);
    let wanted = [
        ("\"abc\"", vec![Element::from("abc")]),
        ("\"5\"", vec![Element::from("5")]),
        ("5", vec![Element::Int(5)]),
        ("true", vec![Element::Bool(true)]),
        ("null", vec![]),
        ("{\"a\":1}", vec![]),
    ];
    for (document, elements) in wanted {
        let mut value = Vec::new();
        let record = Datum::Map(vec![
            ("n".to_owned(), Datum::Int(1)),
            ("j".to_owned(), Datum::Text(document.to_owned())),
        ]);
        table.read_value(&record, &mut value).unwrap();
        let mut terms = Terms::default();
        extractor.take(&table, b"k", &value, &mut terms);
        terms.settle();
        let packed: Vec<Vec<u8>> = elements.into_iter().map(|element| tuple::pack(&[element])).collect();
        assert_eq!(terms.iter().collect::<Vec<_>>(), packed, "{document}");
    }
}
