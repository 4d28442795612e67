#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::{Datum, parse, text_of};
use crate::datum::unwrapped;

fn of(value: f64) -> Datum {
    Datum::Float(value)
}

/// Any datum; but the names of a map differ, and no map is the form of bytes.
fn datum() -> impl Strategy<Value = Datum> {
    let text = prop_oneof![
        any::<String>(),
        Just("\u{0}\u{8}\u{1f}\"\\\n\u{7f}".to_owned()),
        Just("0xff".to_owned())
    ];
    let ints = prop_oneof![
        any::<i128>(),
        any::<i64>().prop_map(i128::from),
        prop::sample::select(vec![i128::MIN, i128::MAX, u64::MAX.into(), i64::MIN.into(), (1 << 53) + 1, 0]),
    ];
    let floats = prop_oneof![
        any::<u64>().prop_map(f64::from_bits).prop_filter("JSON has it", |value| value.is_finite()),
        prop::sample::select(vec![-0.0, 0.0, 1.0, 1e23, f64::MAX, f64::MIN_POSITIVE, 5e-324]),
    ];
    let numbers = vec!["-0", "1.10", "1e400", "1E2", "-1e-999", "170141183460469231731687303715884105728"];
    let leaf = prop_oneof![
        Just(Datum::Null),
        any::<bool>().prop_map(Datum::Bool),
        ints.prop_map(Datum::Int),
        floats.prop_map(Datum::Float),
        prop::sample::select(numbers).prop_map(|number| Datum::Number(number.to_owned())),
        text.clone().prop_map(Datum::Text),
        any::<Vec<u8>>().prop_map(Datum::Bytes),
    ];
    leaf.prop_recursive(5, 32, 4, move |inner| {
        let fields = prop::collection::btree_map(text.clone(), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Datum::List),
            fields.prop_map(|fields| Datum::Map(fields.into_iter().rev().collect())),
        ]
    })
    .prop_filter("is no form of bytes", |datum| unwrapped(datum).is_none())
}

#[test]
fn forms() {
    assert_eq!(text_of(&of(f64::NAN)), r#""NaN""#);
    assert_eq!(text_of(&of(f64::NEG_INFINITY)), r#""-inf""#);
    assert_eq!(text_of(&Datum::Int(i128::MAX)), i128::MAX.to_string());
    assert_eq!(text_of(&Datum::Bytes(vec![0, 255])), r#"{"$hex":"00ff"}"#);
    let map = vec![("b".to_owned(), Datum::Null), ("a".to_owned(), Datum::List(vec![Datum::Bool(true)]))];
    assert_eq!(text_of(&Datum::Map(map)), r#"{"b":null,"a":[true]}"#);
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "[1,]", "nul", "1 2", "01", "\"\\ud800\"", "+1", ".5", "1."] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse(&"[".repeat(1 << 20)).is_err());
}

#[test]
fn the_last_of_repeated_names_counts_in_the_place_of_the_first() {
    assert_eq!(
        text_of(&parse(r#"{"b":1,"a":2,"b":3,"c":4,"a":5,"b":6}"#).unwrap()),
        r#"{"b":6,"a":5,"c":4}"#
    );
}

#[test]
fn bytes_are_read_in_the_one_form_that_is_written() {
    assert_eq!(parse(r#" { "$hex" : "00ff" } "#), Ok(Datum::Bytes(vec![0, 255])));
    for text in [
        r#"{"$hex":"zz"}"#,
        r#"{"$hex":"0"}"#,
        r#"{"$hex":"FF"}"#,
        r#"{"$hex":"0xff"}"#,
        r#"{"$hex":"00","a":1}"#,
    ] {
        let read = parse(text).unwrap();
        assert!(matches!(read, Datum::Map(_)), "{text}");
        assert_eq!(text_of(&read), text);
    }
}

/// A double as `serde_json` prints it, which keeps its digits whatever its features are.
fn as_others_print_it(value: f64) -> String {
    serde_json::Number::from_f64(value).unwrap().to_string()
}

#[test]
fn a_double_at_each_power_of_two_and_of_ten_is_printed_as_others_print_it() {
    let of_two =
        (1..0x7ff_u64).flat_map(|exponent| [(exponent << 52) - 1, exponent << 52, (exponent << 52) + 1]);
    let of_ten = (-330..309).filter_map(|exponent| format!("1e{exponent}").parse::<f64>().ok());
    for value in
        of_two.map(f64::from_bits).chain(of_ten.flat_map(|ten| [ten.next_down(), ten, ten.next_up()]))
    {
        for value in [value, -value] {
            assert_eq!(super::float_text(value), as_others_print_it(value), "{:x}", value.to_bits());
        }
    }
}

proptest! {
    #[test]
    fn a_double_is_printed_as_others_print_it(bits in any::<u64>(), digits in any::<i32>(), exponent in -40i32..40) {
        let short = format!("{digits}e{exponent}").parse::<f64>().unwrap();
        for value in [f64::from_bits(bits), short].into_iter().filter(|value| value.is_finite()) {
            prop_assert_eq!(super::float_text(value), as_others_print_it(value));
        }
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_it_was(datum in datum()) {
        let text = text_of(&datum);
        let back = parse(&text);
        prop_assert_eq!(back.as_ref(), Ok(&datum), "{}", text);
        // Zero has a sign, which equality ignores.
        prop_assert_eq!(text_of(&back.unwrap()), text);
    }

    #[test]
    fn numbers_print_as_they_stood(text in "-?(0|[1-9][0-9]{0,45})(\\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?") {
        prop_assert_eq!(text_of(&parse(&text).unwrap()), text);
    }

    #[test]
    fn no_text_panics(text: String, jsonish in "[\\[\\]{}\",:0-9a.e\\\\u$-]{0,24}") {
        let _ = parse(&text);
        if let Ok(datum) = parse(&jsonish) {
            prop_assert_eq!(parse(&text_of(&datum)), Ok(datum));
        }
    }
}
