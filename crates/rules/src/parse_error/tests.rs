//! Every text form of the crate, in one place: what is written is read, and a mistake names its
//! place, what is allowed, and what may have been meant.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use proptest::prelude::*;

use super::ParseError;
use crate::codec::{KeyCodec, ValueCodec};
use crate::folds::{Columns, FoldSpec, Record, SPECS};
use crate::head::HeadRule;
use crate::table_rules::{Compression, PredicateRule, READY_MADE, TableKind, TableRules};
use crate::terms::{IndexRule, TermRule};
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

/// Checks the text of one type: it is refused with its place, or what it means is written as a text
/// that means the same. True if it is read.
type Check = fn(&str) -> bool;

fn check<T: FromStr<Err = ParseError> + Display + Debug>(text: &str) -> bool {
    match text.parse::<T>() {
        Ok(read) => {
            let written = read.to_string();
            let again = written.parse::<T>().unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!((again.to_string(), format!("{again:?}")), (written, format!("{read:?}")), "{text:?}");
            true
        }
        Err(error) => {
            check_error(text, &error);
            false
        }
    }
}

fn check_error(text: &str, error: &ParseError) {
    assert!(error.at() <= error.text().len() && error.text().is_char_boundary(error.at()), "{error:?}");
    assert!(!error.message().is_empty() && text.contains(error.text()), "{text:?}: {error:?}");
    assert!(error.to_string().starts_with(error.message()), "{error}");
}

/// Each type, and texts of it in the form in which they are written.
const FORMS: [(&str, Check, &[&str]); 14] = [
    ("Compression", check::<Compression>, &["none", "lz4", "zstd"]),
    ("Expire", check::<Expire>, &["never", "by-write", "50ms", "15m", "2w"]),
    ("FoldSpec", check::<FoldSpec>, &SPECS),
    ("HeadRule", check::<HeadRule>, &["none", "first:1024", "json:", "json:/a/b~1c", "named:mine"]),
    (
        "IndexRule",
        check::<IndexRule>,
        &[
            "a:json:/city",
            "a:json:",
            "a:value",
            "a:field:f",
            "a:tuple:0",
            "a:key:3",
            "a:head",
            "a:custom:m@7",
        ],
    ),
    ("Keep", check::<Keep>, &["latest", "versions:7", "window:90s", "window:1500ms", "forever"]),
    (
        "KeyCodec",
        check::<KeyCodec>,
        &["bytes", "utf8", "u32", "u64", "i64", "tuple", "tuple(text?,int,tuple(any,uuid)?)"],
    ),
    ("PredicateRule", check::<PredicateRule>, &["never", "equal:", "equal:%00 x%25%ff", "named:%c3%a4 b "]),
    ("Record", check::<Record>, &["{a: sum:u64}", "{\"a b\": stats:f64, c: {d: append:\",\"}}"]),
    (
        "Columns",
        check::<Columns>,
        &[
            "sum:u64",
            "sum:u64 = n",
            "append:\"x\" = `a, b`",
            "{a: sum:u64 = \"1\", b: set = \"x\\n\", c: append:\",\"}",
        ],
    ),
    ("TableKind", check::<TableKind>, &["sorted", "hashed"]),
    (
        "TermRule",
        check::<TermRule>,
        &["json:/a", "value", "field:a b", "head", "head:", "head:/a", "custom:a@b@1"],
    ),
    ("ValueCodec", check::<ValueCodec>, &["bytes", "utf8", "u8", "i128", "f32", "bool", "json"]),
    ("ValuePlacement", check::<ValuePlacement>, &["segments", "files"]),
];

#[test]
fn every_text_form_is_written_as_it_is_read() {
    fn same<T: FromStr<Err = ParseError> + Display>(texts: &[&str]) {
        for text in texts {
            let read = text.parse::<T>().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read.to_string(), *text);
        }
    }
    let of = |name: &str| FORMS.iter().find(|form| form.0 == name).expect(name).2;
    same::<Compression>(of("Compression"));
    same::<Expire>(of("Expire"));
    same::<FoldSpec>(of("FoldSpec"));
    same::<HeadRule>(of("HeadRule"));
    same::<IndexRule>(of("IndexRule"));
    same::<Keep>(of("Keep"));
    same::<KeyCodec>(of("KeyCodec"));
    same::<PredicateRule>(of("PredicateRule"));
    same::<Record>(of("Record"));
    same::<Columns>(of("Columns"));
    same::<TableKind>(of("TableKind"));
    same::<TermRule>(of("TermRule"));
    same::<ValueCodec>(of("ValueCodec"));
    same::<ValuePlacement>(of("ValuePlacement"));
    for (name, _) in READY_MADE {
        let rules = name.parse::<TableRules>().expect(name);
        assert_eq!(rules.to_string().parse::<TableRules>().as_ref(), Ok(&rules));
    }
}

#[test]
fn a_mistake_offers_what_may_have_been_meant() {
    fn said<T: FromStr<Err = ParseError>>(text: &str) -> String {
        text.parse::<T>().err().expect(text).to_string()
    }
    assert_eq!(
        said::<TableKind>("hashd"),
        "there is no kind `hashd`; the choices are sorted, hashed; did you mean `hashed`?"
    );
    assert_eq!(
        said::<Compression>("gzip"),
        "there is no compression `gzip`; the choices are none, lz4, zstd"
    );
    for (text, suggestion) in [
        (said::<ValuePlacement>("file"), "files"),
        (said::<Keep>("version:3"), "versions:3"),
        (said::<Keep>("forevr"), "forever"),
        (said::<Expire>("by-writ"), "by-write"),
        (said::<HeadRule>("frst:9"), "first:9"),
        (said::<TermRule>("jsn:/a"), "json:/a"),
        (said::<PredicateRule>("equals:0"), "equal:0"),
        (said::<KeyCodec>("string"), "utf8"),
        (said::<KeyCodec>("u46"), "u64"),
        (said::<ValueCodec>("double"), "f64"),
        (said::<ValueCodec>("jsn"), "json"),
    ] {
        assert!(text.ends_with(&format!("; did you mean `{suggestion}`?")), "{text}");
    }
    let element = said::<KeyCodec>("tuple(text,itn)");
    assert!(
        element.ends_with("\n  tuple(text,itn)\n             ^ did you mean `tuple(text,int)`?"),
        "{element}"
    );
    let rule = said::<IndexRule>("a:vale");
    assert!(rule.ends_with("\n  a:vale\n    ^ did you mean `value`?"), "{rule}");
}

#[test]
fn text_is_the_same_type_as_in_a_tuple() {
    assert_eq!("text".parse::<KeyCodec>().unwrap(), KeyCodec::Utf8);
    assert_eq!("text".parse::<ValueCodec>().unwrap(), ValueCodec::Utf8);
}

#[test]
fn a_mistake_within_a_longer_text_keeps_its_place() {
    let line = "value_placement=file";
    let error = "file".parse::<ValuePlacement>().unwrap_err().within(line, 16);
    assert_eq!((error.text(), error.at(), error.suggestion()), (line, 16, Some("files")));
    assert!(
        error.to_string().ends_with("\n  value_placement=file\n                  ^ did you mean `files`?")
    );
}

proptest! {
    #[test]
    fn any_text_of_any_form_round_trips_or_is_refused(
        form in prop::sample::select(FORMS.to_vec()),
        text in "[a-z0-9:{}(), =\"\\\\x`é/@~.?%-]{0,24}|\\PC{0,12}",
    ) {
        form.1(&text);
    }

    #[test]
    fn a_text_with_a_letter_changed_round_trips_or_is_refused(
        form in prop::sample::select(FORMS.to_vec()),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        letters in "[a-z0-9:{}(), =\"\\\\`/@?%]{0,2}",
    ) {
        let mut text = which.get(form.2).to_string();
        prop_assert!(form.1(&text), "{}: {text}", form.0);
        let at = at.index(text.len() + 1).min(text.len());
        let end = (at + 1).min(text.len());
        text.replace_range(at..end, &letters);
        form.1(&text);
    }
}
