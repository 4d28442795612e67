#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

type Document = (String, Option<u64>, Vec<(f32, bool)>, BTreeMap<String, i64>);

fn encoded<T: Serialize>(value: &Json<T>) -> Vec<u8> {
    let mut out = vec![7];
    value.encode(&mut out);
    out.split_off(1)
}

proptest! {
    #[test]
    fn what_is_written_is_json_and_comes_back(
        text in any::<String>(),
        number in any::<Option<u64>>(),
        pairs in prop::collection::vec((-1e30f32..1e30, any::<bool>()), 0..3),
        map in any::<BTreeMap<String, i64>>(),
    ) {
        let document: Json<Document> = Json((text, number, pairs, map));
        let bytes = encoded(&document);
        prop_assert_eq!(ValueCodec::Json.check(&bytes), Ok(()));
        prop_assert_eq!(Json::<Document>::decode(&bytes).unwrap(), document);
    }
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Color {
    Red,
    Blue,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
enum Shape {
    Nothing,
    Circle(f64),
    Line(i8, u128),
    Text { text: String, size: Option<f32> },
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Meters(f64);

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Common {
    unit: (),
    letter: char,
    whole: i64,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Everything {
    shapes: Vec<Shape>,
    length: Meters,
    wide: i128,
    by_number: BTreeMap<i16, bool>,
    by_truth: BTreeMap<bool, Option<()>>,
    by_color: BTreeMap<Color, Vec<Color>>,
    #[serde(flatten)]
    common: Common,
    #[serde(default)]
    later: Option<u8>,
}

fn everything(float: f64, single: f32, text: String, wide: i128, key: i16) -> Everything {
    Everything {
        shapes: vec![
            Shape::Nothing,
            Shape::Circle(float),
            Shape::Line(i8::MIN, u128::MAX),
            Shape::Text { text, size: Some(single) },
        ],
        length: Meters(-float),
        wide,
        by_number: [(key, true)].into(),
        by_truth: [(true, None), (false, None)].into(),
        by_color: [(Color::Blue, vec![Color::Red])].into(),
        common: Common { unit: (), letter: '\u{1f4a7}', whole: (wide >> 64) as i64 },
        later: None,
    }
}

proptest! {
    #[test]
    fn whatever_serde_knows_comes_back_to_the_bit(
        float in any::<f64>().prop_filter("JSON has it", |float| float.is_finite()),
        single in any::<f32>().prop_filter("JSON has it", |single| single.is_finite()),
        text in any::<String>(),
        wide in any::<i128>(),
        key in any::<i16>(),
    ) {
        let document = Json(everything(float, single, text, wide, key));
        let bytes = encoded(&document);
        prop_assert_eq!(Json::<Everything>::decode(&bytes).unwrap(), document);
        let seen: serde_json::Value = Value::decode(&bytes).unwrap();
        prop_assert_eq!(seen["shapes"][1]["Circle"].as_f64().unwrap().to_bits(), float.to_bits());
    }
}

#[test]
fn a_document_is_read_as_serde_json_reads_it() {
    for text in [
        "null",
        "-0",
        "0",
        "-5",
        "1e3",
        "1.50",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "true",
        r#""a\u00e9\n""#,
        "[]",
        "{}",
        r#"{"b": [1, {"a": null}], "a": "", "b": 2}"#,
        " [1 , 2.5e-3 ,\n\"x\"] ",
    ] {
        let read: serde_json::Value = Value::decode(text.as_bytes()).unwrap();
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(text).unwrap(), "{text}");
    }
    let kept: serde_json::Value = Value::decode(b"123456789.12345678901234567890").unwrap();
    assert_eq!(kept, json!(123456789.12345679));
}

#[test]
fn what_is_of_another_type_is_refused_and_says_why() {
    fn refused<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        decode::<T>(text.as_bytes()).unwrap_err().0
    }
    assert!(refused::<u8>("256").contains("expected u8"), "{}", refused::<u8>("256"));
    assert!(refused::<bool>("1").contains("expected a boolean"));
    assert!(refused::<(u8, u8)>("[1,2,3]").contains("expected 2 elements"));
    assert!(refused::<Common>(r#"{"unit":null}"#).contains("missing field `letter`"));
    assert!(refused::<Shape>(r#""Square""#).contains("unknown variant `Square`"));
    assert!(refused::<Shape>("{}").contains("expected enum Shape"));
    assert!(refused::<BTreeMap<u8, u8>>(r#"{"x":1}"#).contains("expected u8"));
    assert!(refused::<f64>("1e999").contains("beyond all numbers"));
    assert!(refused::<f64>("{").contains("not JSON"));
}

#[test]
fn what_json_cannot_say_does_not_decode() {
    let by_pairs: BTreeMap<(u8, u8), u8> = [((1, 2), 3)].into();
    assert!(Json::<BTreeMap<(u8, u8), u8>>::decode(&encoded(&Json(by_pairs))).is_err());
    assert!(Json::<f64>::decode(&encoded(&Json(f64::NAN))).is_err());
}
