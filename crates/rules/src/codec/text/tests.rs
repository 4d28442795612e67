use proptest::prelude::*;

use super::*;
use crate::datum::Datum;

fn bare(word: &str) -> Token {
    Token::Bare(word.to_owned())
}

fn quoted(text: &str) -> Token {
    Token::Quoted(text.to_owned())
}

#[test]
fn lists_of_all_kinds() {
    let list = parse_token(r#" [ "U\"A", 7,[null , 0x00ff], [],  two words ] "#).unwrap();
    let inner = Token::List(vec![bare("null"), bare("0x00ff")]);
    let all = vec![quoted("U\"A"), bare("7"), inner, Token::List(vec![]), bare("two words")];
    assert_eq!(list, Token::List(all));
    assert_eq!(parse_token("x").unwrap(), bare("x"));
    assert!(is_list(" [1] ") && !is_list("[1"));
}

#[test]
fn escapes_of_both_kinds() {
    let token = parse_token(r#""\n\r\t\b\f\0\"\\\/\'\u00e9\u{1f525}\ud83d\udd25""#).unwrap();
    assert_eq!(token, quoted("\n\r\t\u{8}\u{c}\0\"\\/'\u{e9}\u{1f525}\u{1f525}"));
}

#[test]
fn what_does_not_fit_is_refused() {
    for text in ["", "[", "[1", "[1,", "[,]", "[1 [2]]", "]", r#""a"#, r#""a"b"#, "[1]2", "[1,]"] {
        assert!(parse_token(text).is_err(), "{text} is accepted");
    }
    for escape in
        [r"\x", r"\u12", r"\u{}", r"\u{110000}", r"\ud83d", r"\ud83dxx0025", r"\udd25", r"\u{1234567}"]
    {
        assert!(parse_token(&format!("\"{escape}\"")).is_err(), "{escape} is accepted");
    }
    assert!(parse_token(&"[".repeat(100_000)).is_err());
}

proptest! {
    #[test]
    fn what_is_shown_can_be_typed_again(
        texts in prop::collection::vec("\\PC*|[\0\"\\\\\n\u{7f},\\[\\]]{0,5}", 0..4),
    ) {
        let shown = Datum::List(texts.iter().cloned().map(Datum::Text).collect()).to_string();
        let tokens = texts.iter().map(|text| quoted(text)).collect();
        prop_assert_eq!(parse_token(&shown).unwrap(), Token::List(tokens));
    }

    #[test]
    fn json_text_can_be_typed(text in any::<String>()) {
        prop_assert_eq!(parse_token(&serde_json::to_string(&text).unwrap()).unwrap(), quoted(&text));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]\", \\\\u{}0-9a-f]{0,20}") {
        let _ = parse_token(&text);
    }
}
