//! What the terms of a record are, and rules of terms that are refused.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use folddb::codec::tuple::Element;
use folddb::codec::{KeyCodec, ValueCodec};
use folddb::table_rules::TableRules;
use folddb::{ErrorKind, IndexRule, Options, Rules, Store, Table, TermRule, WriteOp};

use crate::common::manual;
use crate::people::{People, fresh, in_city, on, rule};

#[test]
fn an_index_that_folding_would_deceive_is_refused_with_a_counter_example() {
    let (_world, store) = fresh(manual());
    let sums = Rules::sorted::<String, u64>().fold("sum:u64");
    let refused = store.table("sums", sums.clone().index("by_sum", "value")).unwrap_err();
    assert!(refused.message().contains("1 and 1 have 2 together"), "{refused}");
    for (name, fold, field) in
        [("v", "stats:f64", "sum"), ("c", "stats:f64", "count"), ("q", "quantiles", "count")]
    {
        let rules = Rules::sorted::<String, Vec<u8>>().fold(fold).index("by_part", &format!("field:{field}"));
        let refused = store.table(name, rules).unwrap_err();
        assert!(refused.message().contains("folding makes a term"), "{refused}");
    }
    let table = store.table("sums", sums).unwrap();
    table.fold("a", &7).unwrap();
    assert!(
        store.bytes_table("sums").and_then(|table| table.add_index_with(&rule("by_sum:value"), on)).is_err()
    );
    let peaks = Rules::sorted::<String, u64>().fold("max:u64").index("by_peak", "value");
    let peaks = store.table("peaks", peaks).unwrap();
    for (key, value) in [("a", 5), ("b", 9), ("a", 12), ("b", 2)] {
        peaks.fold(key, &value).unwrap();
    }
    let top: Vec<_> = peaks.find("by_peak").unwrap().reverse().keys().map(Result::unwrap).collect();
    assert_eq!(top, ["a", "b"]);
    assert_eq!(peaks.find("by_peak").unwrap().term(5).count().unwrap(), 0);
}

#[test]
fn sets_are_found_by_their_members_and_documents_by_what_is_merged_into_them() {
    let (_world, store) = fresh(manual());
    let words = store
        .create_bytes_table("words", folddb::table_rules::TableRules::postings().index(rule("by_doc:value")))
        .unwrap();
    let write = |word: &str, doc: &str| {
        let mut operand = Vec::new();
        words.rules().read_value(&folddb::Datum::Text(doc.to_owned()), &mut operand).unwrap();
        words.write(WriteOp::Fold, word.as_bytes(), &operand).unwrap();
    };
    for (word, doc) in [("apple", "d1"), ("pear", "d1"), ("apple", "d2")] {
        write(word, doc);
    }
    store.flush().unwrap();
    let of = |doc: &str| -> Vec<_> {
        words.find("by_doc").unwrap().term(doc).keys().map(Result::unwrap).collect()
    };
    assert_eq!(of("d1"), [b"apple".to_vec(), b"pear".to_vec()]);
    assert_eq!(of("d2"), [b"apple".to_vec()]);

    let docs = Rules::sorted::<String, Vec<u8>>().fold("json-merge").index("by_city", "json:/home/city");
    let docs: People = store.table("docs", docs).unwrap();
    docs.fold("ann", br#"{"home":{"city":"Berlin"}}"#.as_slice()).unwrap();
    docs.fold("ann", br#"{"name":"Ann"}"#.as_slice()).unwrap();
    assert_eq!(in_city(&docs, "Berlin"), ["ann"]);
    docs.fold("ann", br#"{"home":{"$set":{"city":"Rome"}}}"#.as_slice()).unwrap();
    assert_eq!((in_city(&docs, "Berlin").len(), in_city(&docs, "Rome").len()), (0, 1));
    docs.fold("ann", br#"{"home":null}"#.as_slice()).unwrap();
    assert_eq!(in_city(&docs, "Rome").len(), 0);
}

#[test]
fn a_table_whose_terms_are_taken_by_a_function_is_written_only_where_that_is_at_hand() {
    let with = |version| {
        manual().custom_terms("initial", version, |key, _value, terms| {
            key.first().iter().for_each(|first| terms.push(&Element::from(&[**first][..])));
        })
    };
    let (world, store) = fresh(with(1));
    let rules = || Rules::sorted::<String, u64>().index("initial", "custom:initial@1");
    let table = store.table("t", rules()).unwrap();
    table.put("ann", &1).unwrap();
    table.put("bob", &1).unwrap();
    let of =
        |table: &Table<String, u64>, initial: &[u8]| table.find("initial").unwrap().term(initial).count();
    assert_eq!(of(&table, b"a").unwrap(), 1);
    drop((table, store));
    for options in [manual(), with(2)] {
        let store = Store::open(&world.path, options).unwrap();
        let table = store.table("t", rules()).unwrap();
        assert_eq!(table.get("ann").unwrap(), Some(1));
        for refused in [table.put("cid", &1).unwrap_err(), of(&table, b"a").unwrap_err()] {
            assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
            assert!(refused.message().contains("custom `initial` version 1"), "{refused}");
        }
    }
    let store = Store::open(&world.path, with(1)).unwrap();
    let table = store.table("t", rules()).unwrap();
    table.put("abe", &1).unwrap();
    assert_eq!(of(&table, b"a").unwrap(), 2);
    let other = store.table("t", Rules::sorted::<String, u64>().index("other", "value")).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::RulesMismatch);
}

#[test]
fn rules_of_run_time_open_their_table_again_by_the_indexes_that_it_has() {
    let (_world, store) = fresh(manual());
    let rules = |text: &str| text.parse::<TableRules>().unwrap();
    let open = |text: &str| store.open_or_create_bytes_table("docs", rules(text));
    let with_city = "value=json\nindex=city:json:/city";
    for _ in 0..2 {
        assert_eq!(open(with_city).unwrap().indexes().len(), 1);
    }
    open("value=json").unwrap(); // names none of them
    let other = open("value=json\nindex=city:json:/town").unwrap_err();
    assert_eq!(other.kind(), ErrorKind::RulesMismatch);
    assert!(other.message().contains("`docs`") && other.message().contains("city"), "{other}");
    open(with_city).unwrap().drop_index("city").unwrap();
    assert_eq!(open(with_city).unwrap_err().kind(), ErrorKind::RulesMismatch);
    open("value=json").unwrap();
    let impossible = store.open_or_create_bytes_table("d", rules("fold=sum:u64\nindex=x:head"));
    assert_eq!(impossible.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn an_index_whose_rule_can_never_give_a_term_is_refused() {
    let (_world, store) = fresh(manual());
    let rules = || Rules::sorted::<String, Vec<u8>>();
    for (rules, expected) in [
        (
            rules().index("x", "head"),
            "index `x` of table `t`: `head` never gives a term: the table has no heads",
        ),
        (rules().index("x", "key:7"), "no element 7 in keys that are utf8: they have key:0"),
        (
            rules().fold("{n: max:u64}").index("x", "field:nosuch"),
            "no field `nosuch`; fields with terms are n",
        ),
    ] {
        let error = store.table("t", rules).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains(expected), "{error}");
    }
    store.table("t", rules()).unwrap().put("k", b"v".as_slice()).unwrap();
    let error =
        store.bytes_table("t").and_then(|table| table.add_index_with(&rule("x:field:a"), on)).unwrap_err();
    assert!(error.message().contains("values are bytes, which have no fields"), "{error}");
    assert_eq!(store.bytes_table("t").unwrap().indexes(), []);
}

#[test]
fn numbers_are_found_by_what_they_are_and_what_an_index_cannot_have_is_refused() {
    let (_world, store) = fresh(manual());
    let rules = || Rules::sorted::<String, f64>().fold("max:f64").index("by_peak", "value");
    let peaks = store.table("peaks", rules()).unwrap();
    for (key, peak) in [("a", 3.0), ("b", 4.5), ("c", -0.0), ("d", f64::NAN)] {
        peaks.fold(key, &peak).unwrap();
    }
    let find = || peaks.find("by_peak").unwrap();
    let typed = |term: &str| {
        let term = term.to_owned();
        peaks.as_bytes().find("by_peak").unwrap().typed(term.clone()..=term).count().unwrap()
    };
    assert_eq!([typed("3"), typed("3.0"), typed("0"), typed("nan"), typed("5")], [1, 1, 1, 1, 0]);
    assert_eq!(find().term(3).count().unwrap(), 1);
    assert_eq!(find().range(..=3).count().unwrap(), 2);
    for refused in [find().term("abc").count(), find().range("abc"..).count(), find().prefix("a").count()] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let said = error.message();
        assert!(said.starts_with("index `by_peak` of table `peaks` has numbers, and \"a"), "{said}");
    }
    assert!(peaks.as_bytes().find("by_peak").unwrap().term("abc").split(4).is_err());
}

/// Fields of JSON that folds are whole numbers and others, which are in the index one after the
/// other.
#[test]
fn a_find_over_numbers_of_several_types_is_cut_and_turned_as_any() {
    let (_world, store) = fresh(manual());
    let rules = Rules::sorted::<String, Vec<u8>>().fold("json-merge").index("by_age", "field:age");
    let docs: People = store.table("docs", rules).unwrap();
    for age in 0..40u32 {
        let point = if age % 2 == 0 { "" } else { ".0" };
        docs.fold(&format!("p{age:02}"), format!("{{\"age\":{age}{point}}}").as_bytes()).unwrap();
    }
    docs.fold("half", br#"{"age":7.5}"#.as_slice()).unwrap();
    store.flush().unwrap();
    let find = || docs.find("by_age").unwrap();
    assert_eq!(find().term(7).keys().map(Result::unwrap).collect::<Vec<_>>(), ["p07"]);
    assert_eq!(find().term(8.0).keys().map(Result::unwrap).collect::<Vec<_>>(), ["p08"]);
    let ages: Vec<String> = find().range(5..9).keys().map(Result::unwrap).collect();
    assert_eq!(ages, ["p06", "p08", "p05", "p07", "half"]);
    let turned: Vec<String> = find().range(5..=8).reverse().keys().map(Result::unwrap).collect();
    assert_eq!(turned, ages.into_iter().rev().collect::<Vec<_>>());
    for threads in [1, 2, 5] {
        let count = find().range(5.5..).fold_keys(
            threads,
            || 0,
            |sum, _| {
                *sum += 1;
                ControlFlow::Continue(())
            },
            |a, b| a + b,
        );
        assert_eq!(count.unwrap(), 35, "on {threads} threads");
    }
}

/// By `json:` they are doubles; a field distinguishes numbers of 64 bits. Either way the hits
/// include what is asked for, and `find` with one end of a range includes the keys that have the
/// same double.
#[test]
fn numbers_beyond_a_double_are_found_together_and_none_is_missed() {
    let (_world, store) = fresh(manual());
    let rules = TableRules::new(KeyCodec::Utf8).value(ValueCodec::Json);
    let rules = rules.index(rule("exact:field:n")).index(rule("double:json:/n"));
    let table = store.create_bytes_table("t", rules).unwrap();
    const NUMBERS: [&str; 8] = [
        "9007199254740992",
        "9007199254740993",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        "1180591620717411303425",
        "170141183460469231731687303715884105729",
    ];
    for number in NUMBERS {
        table.write(WriteOp::Put, number.as_bytes(), format!("{{\"n\":{number}}}").as_bytes()).unwrap();
    }
    let found = |index: &str, low: &str, high: &str| -> BTreeSet<String> {
        let range = table.find(index).unwrap().typed(low.to_owned()..=high.to_owned());
        range.keys().map(|key| String::from_utf8(key.unwrap()).unwrap()).collect()
    };
    let is_of_64_bits = |number: &str| number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    let as_double = |number: &str| number.parse::<f64>().unwrap();
    for asked in NUMBERS {
        let alike: BTreeSet<String> = NUMBERS
            .iter()
            .filter(|number| as_double(number) == as_double(asked))
            .map(|number| (*number).to_owned())
            .collect();
        assert_eq!(found("double", asked, asked), alike, "{asked}");
        let exact = match is_of_64_bits(asked) {
            true => BTreeSet::from([asked.to_owned()]),
            false => alike.into_iter().filter(|number| !is_of_64_bits(number)).collect(),
        };
        assert_eq!(found("exact", asked, asked), exact, "{asked}");
        for index in ["double", "exact"] {
            assert!(found(index, asked, "1e300").contains(asked), "{index} from {asked}");
            assert!(found(index, "-1e300", asked).contains(asked), "{index} to {asked}");
        }
    }
}

/// The rules of a table are kept as text: a name that could not be read back would close the table.
#[test]
fn an_index_whose_text_cannot_be_read_back_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), Options::default()).unwrap();
    let rules = || TableRules::new(KeyCodec::Utf8).value(ValueCodec::Json);
    let table = store.create_bytes_table("people", rules()).unwrap();
    let pointer = || TermRule::Json("/a\nb".to_owned());
    for rule in [
        IndexRule::new("a:b", TermRule::Value),
        IndexRule::new("a b", TermRule::Value),
        IndexRule::new("", TermRule::Value),
        IndexRule::new("by_line", pointer()),
    ] {
        let refused = table.add_index(&rule).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{rule}: {refused}");
        let refused = store.create_bytes_table("others", rules().index(rule.clone())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{rule}: {refused}");
    }
}
