use proptest::prelude::*;

use super::{Datum, parse, put};

fn text_of(datum: &Datum) -> String {
    let mut text = String::new();
    put(datum, &mut text);
    text
}

#[test]
fn what_json_cannot_say_is_text() {
    assert_eq!(text_of(&Datum::Float(f64::NAN)), r#""NaN""#);
    assert_eq!(text_of(&Datum::Float(f64::NEG_INFINITY)), r#""-inf""#);
    assert_eq!(text_of(&Datum::Int(i128::MAX)), format!("\"{}\"", i128::MAX));
    assert_eq!(text_of(&Datum::Bytes(vec![0, 255])), r#""0x00ff""#);
    let map = vec![("b".to_owned(), Datum::Null), ("a".to_owned(), Datum::List(vec![Datum::Bool(true)]))];
    assert_eq!(text_of(&Datum::Map(map)), r#"{"b":null,"a":[true]}"#);
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "[1,]", "nul", "1 2"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn finite_numbers_come_back_bit_for_bit(bits: u64, int: u64, negative: i64, text: String) {
        let float = f64::from_bits(bits);
        if float.is_finite() {
            let back = parse(&text_of(&Datum::Float(float)));
            prop_assert!(matches!(back, Ok(Datum::Float(back)) if back.to_bits() == bits), "{float:?}: {back:?}");
        }
        for datum in [Datum::Int(int.into()), Datum::Int(negative.into()), Datum::Text(text)] {
            prop_assert_eq!(parse(&text_of(&datum)), Ok(datum));
        }
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = parse(&text);
    }
}
