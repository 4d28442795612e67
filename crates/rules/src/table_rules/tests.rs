use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::ErrorKind;
use proptest::prelude::*;

use super::*;
use crate::codec::{KeyCodec, ValueCodec};
use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};
use crate::order::CustomOrder;
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

struct Last(u32);

impl Fold for Last {
    fn spec(&self) -> String {
        "last".to_owned()
    }
    fn version(&self) -> u32 {
        self.0
    }
    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
}

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

fn custom() -> Custom {
    let mut custom = Custom::default();
    custom.add_fold(Arc::new(Last(2)));
    custom.add_order(Arc::new(ByLength));
    custom.add_predicate("empty", Arc::new(|_, value| value.is_empty()));
    custom
}

#[test]
fn the_text_of_default_rules() {
    let text = "rules 1\nblock_bytes=4096\ncompression=none\ndelete=never\nfilter_bits=10\nfold=replace\n\
                key=bytes\nkind=sorted\norder=bytewise\nshort_circuit=never\nvalue=bytes\n";
    assert_eq!(TableRules::default().to_string(), text);
    assert_eq!(TableRules::from_stored(text).unwrap(), TableRules::default());
}

#[test]
fn a_log_that_is_kept_is_said_and_asked_for() {
    let (kept, not) = (TableRules::default().archive_log(true), TableRules::default());
    assert!(kept.to_string().contains("\narchive_log=on\n"));
    assert_eq!(TableRules::from_stored(&kept.to_string()).unwrap(), kept);
    assert_eq!(kept.diff(&not), None);
    assert_eq!(not.diff(&kept).unwrap(), "it archives its log as long as it is needed, not forever");
    let hashed = TableRules::hashed(KeyCodec::Bytes).archive_log(true).validate(&custom()).unwrap_err();
    assert!(hashed.message().contains("a hashed table is rebuilt from its values"), "{hashed}");
    assert!(TableRules::from_stored(&kept.to_string().replace("=on", "=yes")).is_err());
}

/// Stores of earlier versions say `log=forever`, and `place` for `value_placement`.
#[test]
fn words_of_earlier_versions_are_read_and_written_as_they_are_called_now() {
    let rules = TableRules::default().archive_log(true).separate(512).value_placement(ValuePlacement::Files);
    let now = rules.to_string();
    let then = now.replace("archive_log=on\n", "log=forever\n").replace("value_placement=", "place=");
    assert!(then.contains("\nlog=forever\n") && then.contains("\nplace=files\n"), "{then}");
    assert_eq!(TableRules::from_stored(&then).unwrap(), rules);
    assert_eq!(then.parse::<TableRules>().unwrap().to_string(), now);
    let wrong = "log=on".parse::<TableRules>().unwrap_err().to_string();
    assert!(wrong.contains("`archive_log=on`"), "{wrong}");
    let newer = TableRules::from_stored(&then.replace("forever", "on")).unwrap_err();
    assert_eq!(newer.kind(), ErrorKind::NewerFormat);
}

#[test]
fn custom_names_and_any_bytes_survive() {
    let rules = TableRules::new("tuple(text,int?)".parse::<KeyCodec>().unwrap())
        .custom_fold("l\u{e4}st\n=%", 7)
        .order("by-length")
        .delete_when(b"\0=%\n\xff")
        .short_circuit_by("empty");
    let text = rules.to_string();
    assert!(
        text.is_ascii()
            && text.contains("custom_fold=l%c3%a4st%0a=%25\n")
            && text.contains("fold_version=7\n")
    );
    assert!(text.contains("delete=equal:%00=%25%0a%ff\n"));
    assert_eq!(TableRules::from_stored(&text).unwrap(), rules);
}

#[test]
fn ready_made_rules_are_whole() {
    for (name, _) in READY_MADE {
        let rules = TableRules::ready_made(name).unwrap();
        rules.validate(&Custom::default()).unwrap();
        assert_eq!(TableRules::from_stored(&rules.to_string()).unwrap(), rules);
    }
    assert_eq!(TableRules::ready_made("other"), None);
}

/// A table of such rules could be created, and its store could not be opened again.
#[test]
fn times_that_would_not_be_read_back_are_refused() {
    let years = |years: u64| Duration::from_secs(years * 365 * 86_400);
    let keeps = [
        (
            Keep::Window(Duration::from_millis(50)),
            Some("in keep: there is no rule `window:50ms`; the choices are"),
        ),
        (Keep::Window(Duration::ZERO), Some("in keep: `0w` is too short a time")),
        (Keep::Window(Duration::from_micros(1_500_500)), Some("in keep: `1.5005s` is not a time")),
        (Keep::Window(years(1001)), Some("too long a time: write 365000d")),
        (Keep::Window(Duration::from_secs(u64::MAX)), Some("too long a time")),
        (Keep::Versions(0), Some("in keep: there is no rule `versions:0`")),
        (Keep::Window(Duration::from_secs(1)), None),
        (Keep::Window(years(1000)), None),
        (Keep::Versions(1), None),
    ];
    let expires = [
        (Expire::After(Duration::ZERO), Some("in expire: `0w` is too short a time")),
        (Expire::After(Duration::from_nanos(1)), Some("in expire: `1ns` is not a time")),
        (Expire::After(years(1001)), Some("too long a time")),
        (Expire::After(Duration::from_millis(1)), None),
    ];
    let rules = || TableRules::new(KeyCodec::Bytes);
    let all = keeps.map(|(keep, why)| (rules().keep(keep), why)).into_iter();
    for (rules, why) in all.chain(expires.map(|(expire, why)| (rules().expire(expire), why))) {
        let is_read_back = TableRules::from_stored(&rules.to_string()).is_ok_and(|read| read == rules);
        match (rules.validate(&Custom::default()), why) {
            (Ok(()), None) => assert!(is_read_back, "{rules:?}"),
            (Err(error), Some(why)) => {
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.message().contains(why) && !is_read_back, "{error}");
            }
            (found, why) => panic!("{rules:?}: {found:?}, not {why:?}"),
        }
    }
}

#[test]
fn what_only_a_newer_version_means_is_refused() {
    let text = TableRules::default().to_string();
    let kind = |text: &str| TableRules::from_stored(text).unwrap_err().kind();
    let newer = [
        text.replace("rules 1", "rules 2"),
        format!("{text}expiry=7\n"),
        text.replace("kind=sorted", "kind=braided"),
        text.replace("none", "brotli"),
        text.replace("key=bytes", "key=dates"),
        text.replace("delete=never", "delete=sometimes"),
        text.replace("10", "1000"),
    ];
    for text in newer {
        assert_eq!(kind(&text), ErrorKind::NewerFormat, "{text}");
    }
    let malformed = [
        String::new(),
        "rules\n".to_owned(),
        format!("{text}x\n"),
        format!("{text}=x\n"),
        format!("{text}?x=%0\n"),
        format!("{text}?x=\u{e4}\n"),
        format!("{text}kind=sorted\n"),
        format!("{text}custom_fold=x\n"),
        text.replace("fold=replace\n", ""),
        text.replace("fold=replace", "fold=%ff"),
    ];
    for text in malformed {
        assert_eq!(kind(&text), ErrorKind::Corruption, "{text}");
    }
}

#[test]
fn what_may_be_ignored_is_kept() {
    let text = TableRules::default().to_string().replace("block_bytes", "?hint=%ff1\nblock_bytes");
    let rules = TableRules::from_stored(&text).unwrap();
    assert_eq!(rules.to_string(), text);
    assert_eq!(rules.diff(&TableRules::default()), None);
}

#[test]
fn names_of_keys_are_kept_and_change_no_meaning() {
    let rules = TableRules::new("tuple(text,int)".parse::<KeyCodec>().unwrap());
    assert_eq!(rules.names_of_key().count(), 0);
    let named = rules.clone().key_names(["carrier, code", "ye\u{e4}r"]);
    assert!(named.to_string().contains("?key_names=carrier, code%0aye%c3%a4r\n"));
    let read = TableRules::from_stored(&named.to_string()).unwrap();
    assert_eq!(read.names_of_key().collect::<Vec<_>>(), ["carrier, code", "ye\u{e4}r"]);
    assert_eq!(rules.diff(&read), None);
}

#[test]
fn differences_are_named() {
    let has = TableRules::counter();
    assert_eq!(has.diff(&has.clone().block_bytes(8192).compression(Compression::Lz4).filter_bits(0)), None);
    assert_eq!(has.diff(&has.clone().fold(" sum:i64 ")), None);
    assert_eq!(has.diff(&has.clone().value(ValueCodec::F64)), None, "the fold knows");
    let wants = TableRules::new(KeyCodec::U64).fold("set").order("reversed").delete_when(&[0]);
    let words = "its keys are utf8, not u64; its order is bytewise, not reversed; it folds by `sum:i64`, not \
                 `set`; it deletes never, not when equal to 0x00";
    assert_eq!(has.diff(&wants).unwrap(), words);
    let custom = has.clone().custom_fold("sum:i64", 1);
    assert_eq!(has.diff(&custom).unwrap(), "it folds by `sum:i64`, not the custom `sum:i64` version 1");
    let text = TableRules::replace().value(ValueCodec::Utf8);
    assert_eq!(text.diff(&TableRules::replace()), None, "bytes are at home anywhere");
    assert_eq!(text.diff(&text.clone().value(ValueCodec::U64)).unwrap(), "its values are utf8, not u64");
}

#[test]
fn binding_finds_what_is_at_hand() {
    let rules = TableRules::replace().custom_fold("last", 2).order("by-length").delete_by("empty");
    rules.validate(&custom()).unwrap();
    let bound = rules.bind(&custom()).unwrap();
    assert_eq!((bound.order.name(), bound.fold.spec(), bound.fold.version()), ("by-length", "last", 2));
    assert!(bound.fold.is_deleted(b"k", b"") && !bound.fold.is_deleted(b"k", b"v"));
    assert!(bound.check_writable().is_ok());

    let bound =
        TableRules::counter().order("reversed").delete_when(&[0; 8]).bind(&Custom::default()).unwrap();
    assert_eq!((bound.order.name(), bound.fold.spec()), ("reversed", "sum:i64"));
    assert!(bound.fold.is_deleted(b"k", &[0; 8]) && !bound.fold.is_deleted(b"k", &[1; 8]));
}

#[test]
fn a_missing_fold_leaves_reading_unfolded() {
    let missing = |rules: &TableRules| {
        let bound = rules.bind(&custom()).unwrap();
        assert!(bound.fold.fold().is_none());
        assert_eq!(bound.check_writable().unwrap_err().kind(), ErrorKind::RulesMismatch);
        assert_eq!(rules.validate(&custom()).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(bound.show_value(b"x").unwrap(), Datum::Bytes(b"x".to_vec()));
        bound.missing.unwrap()
    };
    let rules = TableRules::replace();
    assert_eq!(
        missing(&rules.clone().custom_fold("best", 1)),
        "the table folds by the custom `best` version 1, which this program does not have"
    );
    assert_eq!(
        missing(&rules.clone().custom_fold("last", 1)),
        "the table folds by the custom `last` version 1; this program has `last` version 2"
    );
    assert!(missing(&rules.clone().fold("sum:u65")).starts_with("the table folds by `sum:u65`"));
    assert_eq!(
        missing(&rules.clone().custom_fold("last", 2).delete_by("zero")),
        "the table asks the custom predicate `zero`, which this program does not have"
    );
    let error = rules.order("by-size").bind(&custom()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RulesMismatch);
}

#[test]
fn settings_out_of_range_are_refused() {
    let rules = TableRules::replace();
    for rules in [rules.clone().block_bytes(511), rules.clone().block_bytes(65_537), rules.filter_bits(33)] {
        assert_eq!(rules.validate(&Custom::default()).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn values_are_shown_by_the_fold_or_by_the_codec() {
    let shown = |rules: TableRules, text: &str| {
        let bound = rules.bind(&Custom::default()).unwrap();
        let mut value = Vec::new();
        bound.read_value(&Datum::Text(text.to_owned()), &mut value).unwrap();
        bound.check_value(&value).unwrap();
        bound.show_value(&value).unwrap()
    };
    assert_eq!(shown(TableRules::replace().value(ValueCodec::F64), "1.5"), Datum::Float(1.5));
    assert_eq!(shown(TableRules::counter(), "-5"), Datum::Int(-5));
    assert_eq!(shown(TableRules::blob(), "text"), Datum::Text("text".to_owned()));
    let bound = TableRules::replace().value(ValueCodec::U64).bind(&Custom::default()).unwrap();
    assert!(bound.check_value(b"x").is_err() && bound.show_value(b"x").is_err());
    assert!(bound.read_value(&Datum::Text("x".to_owned()), &mut Vec::new()).is_err());
}

fn predicate() -> impl Strategy<Value = PredicateRule> {
    prop_oneof![
        Just(PredicateRule::Never),
        any::<Vec<u8>>().prop_map(PredicateRule::Equal),
        any::<String>().prop_map(PredicateRule::Named),
    ]
}

fn rules() -> impl Strategy<Value = TableRules> {
    let key = prop::sample::select(vec!["bytes", "utf8", "u64", "tuple", "tuple(text,tuple(int?,any))"]);
    let fold = prop_oneof![
        any::<String>().prop_map(FoldName::BuiltIn),
        (any::<String>(), any::<u32>()).prop_map(|(name, version)| FoldName::Custom { name, version }),
    ];
    let value = prop::sample::select(vec![ValueCodec::Bytes, ValueCodec::Json]);
    let storage = (any::<u32>(), any::<bool>(), any::<u8>());
    let unknown = prop::collection::btree_map("\\?[a-z]{1,3}", any::<Vec<u8>>(), 0..3);
    (key, any::<String>(), fold, value, predicate(), predicate(), storage, unknown).prop_map(
        |(key, order, fold, value, delete, short_circuit, (block_bytes, lz4, filter_bits), unknown)| {
            TableRules {
                order,
                value,
                fold,
                delete,
                short_circuit,
                block_bytes,
                compression: if lz4 { Compression::Lz4 } else { Compression::None },
                filter_bits,
                unknown,
                ..TableRules::new(key.parse::<KeyCodec>().unwrap())
            }
        },
    )
}

proptest! {
    #[test]
    fn rules_are_read_back(rules in rules()) {
        let text = rules.to_string();
        prop_assert_eq!(&TableRules::from_stored(&text).unwrap(), &rules);
        prop_assert_eq!(rules.diff(&rules), None);
    }

    #[test]
    fn any_text_is_refused_or_read(text in "(rules 1\n)?([a-z_?]{0,6}=[ -~]{0,9}\n){0,4}|\\PC{0,20}") {
        if let Ok(rules) = TableRules::from_stored(&text) {
            prop_assert_eq!(TableRules::from_stored(&rules.to_string()).unwrap(), rules);
        }
    }

    #[test]
    fn damaged_text_is_refused_or_read(
        rules in rules(),
        at in any::<prop::sample::Index>(),
        letter in "[ -~\n]",
    ) {
        let mut text = rules.to_string();
        let at = at.index(text.len());
        text.replace_range(at..=at, &letter);
        if let Ok(rules) = TableRules::from_stored(&text) {
            let _ = rules.bind(&Custom::default());
        }
    }
}

#[test]
fn rules_are_typed_as_lines_or_by_the_name_of_ready_made_ones() {
    let typed = |text: &str| text.parse::<TableRules>().unwrap();
    assert_eq!(typed(""), TableRules::default());
    assert_eq!(typed(" counter\n"), TableRules::counter());
    let rules = TableRules::new(KeyCodec::Utf8).fold("sum:u64").keep(Keep::Forever);
    assert_eq!(typed("key=utf8\n\n  fold=sum:u64\nkeep=forever"), rules);
    let every = rules.index("by_key:key:0".parse::<crate::IndexRule>().unwrap()).key_names(["a b"]);
    assert_eq!(typed(&every.to_string()), every, "what a store keeps can be typed");
    let spelled = TableRules::default().fold("{\"ä %\": append:\", \"}");
    assert_eq!(typed(&spelled.to_string()), spelled);
}

#[test]
fn a_mistake_in_typed_rules_names_its_line_and_the_place() {
    for (text, at, says) in [
        ("key=utf9", 4, "utf9"),
        ("key=utf8\nfold=sum:u65", 9, "sum:u64"),
        ("fold={a: sum:u64, b: summ:u64}", 21, ""),
        ("key", 0, "expected a rule"),
        ("countr", 0, "did you mean `counter`"),
        ("kye=utf8", 0, "did you mean `key=utf8`"),
        ("key=utf8\nkey=bytes", 0, "twice"),
        ("kind=sortd", 5, "sorted, hashed"),
        ("keep=window:5", 5, "window:TIME"),
        ("expire=90", 7, "by-write"),
        ("block_bytes=8K", 12, "whole number"),
        ("index=a:value%0ab=value", 16, "NAME:RULE"),
        ("index=a:value%0aa:key:0", 16, "two indexes"),
        ("delete=sometimes", 7, "equal:BYTES"),
        ("fold=replace\ncustom_fold=mine", 0, ""),
        ("order=ä", 6, "%XX"),
    ] {
        let error = text.parse::<TableRules>().unwrap_err();
        assert_eq!(error.at(), at, "{text:?}: {error}");
        assert!(error.to_string().contains(says) && error.to_string().contains('^'), "{text:?}: {error}");
        assert_eq!(folddb_base::Error::from(error).kind(), ErrorKind::InvalidInput);
    }
}
