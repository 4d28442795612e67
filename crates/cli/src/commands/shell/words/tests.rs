use folddb::table_rules::TableRules;
use folddb::{Options, WriteOp};

use super::*;
use crate::keys;

fn wanted(line: &str) -> Wanted {
    let (before, word) = line.rsplit_once(' ').unwrap_or(("", line));
    let words: Vec<String> = before.split_whitespace().map(str::to_owned).collect();
    super::wanted(&words, word, |word| word == "t")
}

#[test]
fn what_is_offered_depends_on_what_is_typed() {
    let key = |before: &[&str]| Wanted::Key {
        table: "t".to_owned(),
        before: before.iter().map(|word| (*word).to_owned()).collect(),
    };
    for (line, offered) in [
        ("ge", Wanted::Verb),
        ("help ", Wanted::Verb),
        ("get ", Wanted::Table),
        ("scan t --pre", Wanted::Option),
        ("get t k", key(&[])),
        ("get t UA ", key(&["UA"])),
        ("scan t --reverse --prefix UA ", key(&["UA"])),
        ("index drop t", Wanted::Table),
        ("import t ", Wanted::File),
        ("scan t > ", Wanted::File),
        ("export t --to ", Wanted::File),
        ("load ", Wanted::File),
        ("use ", Wanted::File),
        ("scan t --sort ", Wanted::Column("t".to_owned())),
        ("scan t --limit 3 --columns a,b", Wanted::Column("t".to_owned())),
        ("aggregate t --by ", Wanted::Column("t".to_owned())),
        ("find t ", Wanted::Index("t".to_owned())),
        ("index drop t ", Wanted::Index("t".to_owned())),
    ] {
        assert_eq!(wanted(line), offered, "{line}");
    }
}

#[test]
fn an_option_of_words_has_its_own() {
    let program = Cli::command();
    let values = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        values(&program, &words)
    };
    let formats = values("scan t --format").unwrap();
    assert!(formats.contains(&"csv".to_owned()), "{formats:?}");
    assert_eq!(values("scan t --limit"), Some(vec![]));
    for line in
        ["scan t --prefix", "scan t --columns", "scan t", "scan t --reverse", "no t --format", "get t --"]
    {
        assert_eq!(values(line), None, "{line}");
    }
}

#[test]
fn columns_follow_those_that_are_typed() {
    let names = || vec!["a".to_owned(), "b.c".to_owned()];
    assert_eq!(behind_commas(names(), ""), ["a", "b.c"]);
    assert_eq!(behind_commas(names(), "b.c,"), ["b.c,a", "b.c,b.c"]);
}

#[test]
fn elements_of_keys_are_those_that_are_there() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::create(place.path().join("s"), Options::default()).unwrap();
    let rules = TableRules::new("tuple(text,text)".parse().unwrap()).fold("sum:u64");
    let table = store.create_bytes_table("t", rules).unwrap();
    for (carrier, origin) in [("UA", "EWR"), ("UA", "LGA"), ("US", "LGA"), ("AA", "New York")] {
        let key = keys::key(&table, &[carrier.to_owned(), origin.to_owned()], false).unwrap();
        table.write(WriteOp::Put, &key, &keys::value(&table, "1").unwrap()).unwrap();
    }
    let elements = |before: &[&str], typed: &str| {
        let before: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        elements(&table, &before, typed).unwrap()
    };
    assert_eq!(elements(&[], ""), ["AA", "UA", "US"]);
    assert_eq!(elements(&[], "U"), ["UA", "US"]);
    assert_eq!(elements(&["UA"], ""), ["EWR", "LGA"]);
    assert_eq!(elements(&["AA"], "N"), ["New York"]);
    assert!(super::elements(&table, &["UA".to_owned(), "EWR".to_owned()], "").is_none());
    assert_eq!(quoted("New York"), "'New York'");
    assert_eq!(quoted("it's"), "'it'\\''s'");
}
