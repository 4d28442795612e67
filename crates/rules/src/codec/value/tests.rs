use proptest::prelude::*;

use super::*;

fn encode<V: Value>(value: &(impl AsValue<V> + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

fn shown(codec: ValueCodec, text: &str) -> String {
    codec.show(&codec.parse_text(text).unwrap()).unwrap().to_string()
}

#[test]
fn borrowed_values_stand_for_values() {
    assert_eq!(encode::<String>("United"), b"United");
    assert_eq!(encode::<String>(&"United"), b"United");
    assert_eq!(encode::<Vec<u8>>(b"x"), b"x");
    assert_eq!(encode::<Vec<u8>>("x"), b"x");
    assert_eq!(encode::<u64>(&258), [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encode::<[u8; 1]>(&[7]), [7]);
    let document = serde_json::json!({"b": 1, "a": [null]});
    assert_eq!(encode::<serde_json::Value>(&document), document.to_string().as_bytes());
}

#[test]
fn values_of_another_type_are_refused() {
    assert!(u64::decode(&[0; 7]).is_err() && i64::decode(&[]).is_err() && f64::decode(&[0; 9]).is_err());
    assert!(String::decode(&[0xff]).is_err());
    assert!(<[u8; 2]>::decode(&[0]).is_err());
    assert!(serde_json::Value::decode(b"{").is_err());
}

#[test]
fn names() {
    for codec in ValueCodec::ALL {
        assert_eq!(codec.name().parse::<ValueCodec>(), Ok(codec));
    }
    assert!("u65".parse::<ValueCodec>().unwrap_err().message().contains("use bytes, utf8"));
    assert_eq!(String::codec(), ValueCodec::Utf8);
    assert_eq!(Vec::<u8>::codec(), ValueCodec::Bytes);
}

#[test]
fn text_and_back() {
    assert_eq!(shown(ValueCodec::Bytes, "ab"), "ab");
    assert_eq!(shown(ValueCodec::Bytes, "0x00ff"), "0x00ff");
    // Text that looks like bytes is shown as bytes, so that it is not read back as other bytes.
    assert_eq!(ValueCodec::Bytes.show(b"0x41").unwrap(), Datum::Bytes(b"0x41".to_vec()));
    assert_eq!(shown(ValueCodec::Bytes, "0x30783431"), "0x30783431");
    assert_eq!(shown(ValueCodec::U64, "18446744073709551615"), "18446744073709551615");
    assert_eq!(shown(ValueCodec::I64, "-5"), "-5");
    assert_eq!(shown(ValueCodec::F64, "-2.5"), "-2.5");
    assert_eq!(shown(ValueCodec::U128, &u128::MAX.to_string()), u128::MAX.to_string());
    assert_eq!(shown(ValueCodec::I128, &i128::MIN.to_string()), i128::MIN.to_string());
    assert_eq!(shown(ValueCodec::I8, "-128"), "-128");
    assert_eq!(shown(ValueCodec::F32, "0.5"), "0.5");
    assert_eq!(shown(ValueCodec::Bool, "true"), "true");
    assert!(ValueCodec::U8.parse_text("256").is_err() && ValueCodec::F32.parse_text("1e40").is_err());
    assert!(ValueCodec::Bool.check(&[2]).is_err() && ValueCodec::U16.check(&[1]).is_err());
    assert_eq!(shown(ValueCodec::Json, r#"{"b": 1, "a": [null, "x"]}"#), r#"b=1 a=[null, "x"]"#);
    for (codec, text) in
        [(ValueCodec::U64, "-1"), (ValueCodec::F64, "x"), (ValueCodec::Json, "{"), (ValueCodec::Bytes, "0x0")]
    {
        assert!(codec.parse_text(text).is_err(), "{codec} takes {text}");
    }
}

#[test]
fn json_from_data() {
    let mut out = Vec::new();
    let data =
        Datum::Map(vec![("a".into(), Datum::Int(1)), ("b".into(), Datum::List(vec![Datum::Float(0.5)]))]);
    ValueCodec::Json.encode(&data, &mut out).unwrap();
    assert_eq!(out, br#"{"a":1,"b":[0.5]}"#);
    assert!(ValueCodec::Json.encode(&Datum::Float(f64::NAN), &mut out).is_err());
    out.clear();
    ValueCodec::Json.encode(&Datum::Bytes(vec![1]), &mut out).unwrap();
    assert_eq!(out, br#"{"$hex":"01"}"#);
}

#[test]
fn json_is_shown_to_the_letter() {
    let text = r#"[170141183460469231731687303715884105727,1e2,1.10,{"$hex":"31"},-0,1e-999]"#;
    let shown = ValueCodec::Json.show(&ValueCodec::Json.parse_text(text).unwrap()).unwrap();
    assert_eq!(crate::datum::json::text_of(&shown), text);
    let error = ValueCodec::Json.parse_text("[1e400]").unwrap_err();
    assert_eq!(
        error.0,
        "1e400 is beyond all numbers of JSON readers (±1.8e308); write it as text: \"1e400\""
    );
}

proptest! {
    #[test]
    fn numbers_and_text_are_read_back(
        a in any::<u64>(),
        b in any::<i64>(),
        c in any::<u64>(),
        d in any::<String>(),
    ) {
        prop_assert_eq!(u64::decode(&encode::<u64>(&a)), Ok(a));
        prop_assert_eq!(i64::decode(&encode::<i64>(&b)), Ok(b));
        prop_assert_eq!(f64::decode(&encode::<f64>(&f64::from_bits(c))).unwrap().to_bits(), c);
        prop_assert_eq!(String::decode(&encode::<String>(&d)), Ok(d));
    }

    #[test]
    fn a_value_passes_its_check_exactly_when_it_can_be_shown(
        which in 0usize..6,
        bytes in prop_oneof![
            any::<Vec<u8>>(),
            any::<[u8; 8]>().prop_map(|word| word.to_vec()),
            "[\\[\\]{}\",:0-9a]{0,8}".prop_map(String::into_bytes),
        ],
    ) {
        let codec = ValueCodec::ALL[which];
        prop_assert_eq!(codec.check(&bytes).is_ok(), codec.show(&bytes).is_ok());
    }
}
