use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::codec::KeyRange;

fn codec(name: &str) -> KeyCodec {
    name.parse::<KeyCodec>().unwrap()
}

fn key(name: &str, parts: &[&str]) -> Vec<u8> {
    codec(name).parse_text(parts).unwrap()
}

fn shown(name: &str, key: &[u8]) -> String {
    codec(name).show(key).unwrap().to_string()
}

#[test]
fn names() {
    for name in [
        "bytes",
        "utf8",
        "u32",
        "u64",
        "i64",
        "time",
        "tuple",
        "tuple(text)",
        "tuple(any,bytes,text,int,float,double,bool,uuid,versionstamp,time,tuple)",
        "tuple(text?,tuple(int,tuple(bool?)?)?)",
    ] {
        assert_eq!(codec(name).name(), name);
    }
    assert_eq!(codec(" tuple ( text , int ? ) ").name(), "tuple(text,int?)");
    for name in [
        "",
        "u65",
        "Text",
        "tuple()",
        "tuple(",
        "tuple(text",
        "tuple(text,)",
        "tuple(text) x",
        "tuple?",
        "tuple(Text)",
    ] {
        let error = name.parse::<KeyCodec>().unwrap_err();
        assert!(error.message().contains("use bytes, utf8"), "{name}: {error}");
    }
    assert!("tuple(".repeat(100_000).parse::<KeyCodec>().is_err());
}

#[test]
fn scalars_from_text_and_back() {
    assert_eq!(key("bytes", &["ab"]), b"ab");
    assert_eq!(key("bytes", &["0x00ff"]), [0, 0xff]);
    assert_eq!(key("utf8", &["0x00ff"]), b"0x00ff");
    assert_eq!(key("u32", &["258"]), [0, 0, 1, 2]);
    assert_eq!(key("u64", &["258"]), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(key("i64", &["-1"]), [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(shown("i64", &key("i64", &["-9223372036854775808"])), "-9223372036854775808");
    assert_eq!(shown("bytes", b"ab"), "ab");
    assert_eq!(shown("bytes", b"0x41"), "0x30783431");
    assert_eq!(shown("bytes", &[0]), "0x00");
    for (name, part) in [("u32", "-1"), ("u32", "4294967296"), ("u64", "x"), ("i64", ""), ("bytes", "0xabc")]
    {
        assert!(codec(name).parse_text(&[part]).is_err(), "{name} takes {part}");
    }
    assert!(codec("utf8").parse_text(&["a", "b"]).is_err());
    assert!(codec("utf8").parse_text(&[]).is_err());
}

#[test]
fn keys_on_one_line() {
    assert_eq!(codec("utf8").show_line(b"ab"), "ab");
    assert_eq!(codec("utf8").show_line(b"a\nb"), r#""a\nb""#);
    assert_eq!(codec("utf8").show_line(b""), r#""""#);
    assert_eq!(codec("u64").show_line(b"ab"), "0x6162");
    assert_eq!(codec("tuple").show_line(b"\x02a\nb\0"), r#"["a\nb"]"#);
}

#[test]
fn typed_tuples_from_text() {
    let expected = tuple::pack(&["UA".into(), 7i64.into()]);
    let name = "tuple(text,int)";
    assert_eq!(key(name, &["UA", "7"]), expected);
    assert_eq!(key(name, &["UA,7"]), expected);
    assert_eq!(key(name, &[r#"["UA", 7]"#]), expected);
    assert_eq!(shown(name, &expected), r#"["UA", 7]"#);
    // A part given separately is taken literally.
    assert_eq!(key("tuple(text)", &[r#""7",null"#]), tuple::pack(&[r#""7",null"#.into()]));
    assert_eq!(key("tuple(text?,int?)", &["null", ""]), tuple::pack(&["null".into(), tuple::Element::Null]));
    assert_eq!(key("tuple(text?)", &["[null]"]), tuple::pack(&[tuple::Element::Null]));
    let uuid = "ba5eba11-5ca1-ab1e-0123-456789abcdef";
    let all = key(
        "tuple(double,bool,uuid,versionstamp,bytes,tuple(int,text))",
        &["1.5", "true", uuid, "0x0102030405060708090a", "0x00", "[1, x]"],
    );
    let text = shown("tuple(double,bool,uuid,versionstamp,bytes,tuple(int,text))", &all);
    assert_eq!(text, format!(r#"[1.5, true, "{uuid}", 0x0102030405060708090a, 0x00, [1, "x"]]"#));
    for parts in [&["UA"][..], &["UA", "7", "8"], &["UA", "x"], &["[UA]"], &["[UA, [7]]"]] {
        assert!(codec(name).parse_text(parts).is_err(), "{parts:?} is accepted");
    }
}

#[test]
fn untyped_tuples_are_what_they_look_like() {
    let parts = ["UA", "7", "-7", "007", "1.5", "true", "null", "0x00", r#""7,""#, "[1, [a]]", "1e5"];
    let all = key("tuple", &parts);
    let text = r#"["UA", 7, -7, "007", 1.5, true, null, 0x00, "7,", [1, ["a"]], "1e5"]"#;
    assert_eq!(shown("tuple", &all), text);
    assert_eq!(key("tuple", &[text]), all);
    assert_eq!(key("tuple", &[r#"UA,"7,\",",8"#]), tuple::pack(&["UA".into(), "7,\",".into(), 8i64.into()]));
}

#[test]
fn errors_name_the_element() {
    let error = codec("tuple(text,int)").parse_text(&["UA", "x"]).unwrap_err();
    assert_eq!(error.0, r#"element 2 of tuple(text,int): expected int, found "x""#);
    let error = codec("tuple(text,int)").check(&tuple::pack(&["UA".into(), "x".into()])).unwrap_err();
    assert_eq!(error.0, "element 2 of tuple(text,int): expected int in a tuple, found text");
    let error = codec("tuple(text,int)").check(&tuple::pack(&["UA".into()])).unwrap_err();
    assert_eq!(error.0, "tuple(text,int) has 2 elements, found 1");
}

#[test]
fn prefixes_and_bounds() {
    let range = codec("tuple(text,text)").parse_prefix(&["UA"]).unwrap();
    assert!(range.contains(&key("tuple(text,text)", &["UA", "EWR"])));
    assert!(!range.contains(&key("tuple(text,text)", &["UB", "EWR"])));
    assert!(codec("tuple(text)").parse_prefix(&["a", "b"]).is_err());
    let range = codec("tuple").parse_prefix(&["UA,7"]).unwrap();
    assert!(range.contains(&key("tuple", &["UA", "7"])) && range.contains(&key("tuple", &["UA", "7", "x"])));
    let range = codec("utf8").parse_prefix(&["ab"]).unwrap();
    assert!(range.contains(b"ab") && range.contains(b"abc") && !range.contains(b"ac"));
    assert!(codec("u64").parse_prefix(&["1"]).is_err());
    let range = codec("utf8").parse_bound(&["ab"]).unwrap();
    assert!(range.contains(b"ab") && !range.contains(b"abc"));
    let range = codec("u64").parse_bound(&["1"]).unwrap();
    assert!(range.contains(&1u64.to_be_bytes()) && !range.contains(&2u64.to_be_bytes()));
}

#[test]
fn times_are_whole_numbers_that_are_shown_as_such() {
    let at = "2026-11-22T08:30:00Z";
    assert_eq!(key("time", &[at]), key("i64", &["1795336200000000"]));
    assert_eq!(key("tuple(text,time)", &["a", at]), key("tuple(text,int)", &["a", "1795336200000000"]));
    assert_eq!(shown("time", &key("time", &["2026-11-22 09:30+01:00"])), at);
    assert_eq!(shown("tuple(text,time?)", &key("tuple(text,time?)", &["a", ""])), r#"["a", null]"#);
    let nested = key("tuple(tuple(time,int))", &[r#"[["2026-11-22T08:30:00Z", 7]]"#]);
    assert_eq!(shown("tuple(tuple(time,int))", &nested), r#"[["2026-11-22T08:30:00Z", 7]]"#);
    for (name, wrong) in [("time", "noon"), ("time", "2026"), ("tuple(time)", "20261122"), ("time", "")] {
        let error = codec(name).parse_text(&[wrong]).unwrap_err();
        assert!(error.message().contains("expected a time, such as 2026-11-22T08:30:00Z"), "{error}");
    }
    // No integer of more than 64 bits is a time.
    assert!(codec("tuple(time)").check(&key("tuple(int)", &["9223372036854775808"])).is_err());
    assert!(codec("tuple(time)").check(&key("tuple(text)", &["a"])).is_err());
}

#[test]
fn a_part_of_a_time_is_a_range_of_keys() {
    let (name, before) = ("tuple(text,time,int)", ["a", "2026-11-21T23:59:59.999999Z", "7"]);
    let (first, last) = (["a", "2026-11-22T00:00:00Z", "-7"], ["a", "2026-11-22T23:59:59.999999Z", "7"]);
    let after = ["a", "2026-11-23T00:00:00Z", "-7"];
    let day = codec(name).parse_prefix(&["a", "2026-11-22"]).unwrap();
    let has = |range: &KeyRange, parts: &[&str]| range.contains(&key(name, parts));
    assert!(has(&day, &first) && has(&day, &last) && !has(&day, &before) && !has(&day, &after));
    assert_eq!(codec(name).parse_bound(&["a", "2026-11-22"]).unwrap(), day);
    let behind = KeyRange { low: day.clone().after(), high: Bound::Unbounded };
    assert!(has(&behind, &after) && !has(&behind, &last));
    // A whole time is a prefix as all other elements are, and so is what is before it.
    let whole = codec(name).parse_prefix(&["a", "2026-11-22T00:00:00Z"]).unwrap();
    assert!(has(&whole, &first) && !has(&whole, &last));
    let of_a = codec(name).parse_prefix(&["a"]).unwrap();
    assert!(has(&of_a, &before) && has(&of_a, &after));
    let hour = codec("time").parse_prefix(&["2026-11-22T08"]).unwrap();
    let at = |text: &str| hour.contains(&key("time", &[text]));
    assert!(at("2026-11-22T08:00") && at("2026-11-22T08:59:59.999999"));
    assert!(!at("2026-11-22T09:00") && !at("2026-11-22T07:59:59.999999"));
    assert!(codec("time").parse_prefix(&["noon"]).is_err());
    assert!(codec(name).parse_prefix(&["a", "noon"]).is_err());
}

#[test]
fn keys_may_be_typed_in_a_zone() {
    let (name, codec) = ("tuple(time,tuple(time))", codec("tuple(time,tuple(time))"));
    let berlin = |clock: i64| Ok(clock - 3_600_000_000);
    let typed =
        codec.typed_in(&berlin).parse_text(&["2026-11-22T09:30", r#"["2026-11-22T08:30Z"]"#]).unwrap();
    assert_eq!(shown(name, &typed), r#"["2026-11-22T08:30:00Z", ["2026-11-22T08:30:00Z"]]"#);
    let day = codec.typed_in(&berlin).parse_prefix(&["2026-11-22"]).unwrap();
    assert!(day.contains(&key(name, &["2026-11-21T23:00Z", r#"["2026-11-22"]"#])));
    assert!(!day.contains(&key(name, &["2026-11-22T23:00Z", r#"["2026-11-22"]"#])));
}

#[test]
fn a_failed_encode_leaves_the_output_alone() {
    let mut out = vec![1];
    let list = Datum::List(vec![Datum::Text("a".into()), Datum::Map(vec![])]);
    assert!(codec("tuple(text,int)").encode(&list, &mut out).is_err());
    assert!(codec("tuple").encode(&list, &mut out).is_err());
    assert_eq!(out, [1]);
}

#[test]
fn depth_is_bounded() {
    let deep = (0..10_000).fold(Datum::Null, |inner, _| Datum::List(vec![inner]));
    assert!(codec("tuple").encode(&deep, &mut Vec::new()).is_err());
    // Taken apart by hand: dropping so deep a list recurses.
    let mut rest = deep;
    while let Datum::List(mut items) = rest {
        rest = items.pop().unwrap();
    }
}

/// Types of elements. Without `untyped`, only those that say what every part of them is.
fn element_type(untyped: bool) -> impl Strategy<Value = ElementType> {
    let mut leaves = vec![
        ElementType::Bytes,
        ElementType::Text,
        ElementType::Int,
        ElementType::Float,
        ElementType::Double,
        ElementType::Bool,
        ElementType::Uuid,
        ElementType::Stamp,
        ElementType::Time,
    ];
    if untyped {
        leaves.extend([ElementType::Any, ElementType::AnyTuple]);
    }
    let leaf = (prop::sample::select(leaves), any::<bool>()).prop_map(|(inner, null)| optional(inner, null));
    leaf.prop_recursive(2, 8, 3, |inner| {
        (prop::collection::vec(inner, 1..3), any::<bool>())
            .prop_map(|(types, null)| optional(ElementType::Tuple(types), null))
    })
}

fn optional(inner: ElementType, null: bool) -> ElementType {
    if null { ElementType::Optional(Box::new(inner)) } else { inner }
}

fn key_codec() -> impl Strategy<Value = KeyCodec> {
    prop_oneof![
        prop::sample::select(vec![
            KeyCodec::Bytes,
            KeyCodec::Utf8,
            KeyCodec::U32,
            KeyCodec::U64,
            KeyCodec::I64,
            KeyCodec::Time,
            KeyCodec::Tuple
        ]),
        prop::collection::vec(element_type(true), 1..4).prop_map(KeyCodec::TypedTuple),
    ]
}

/// Data of any shape, often one that a type wants.
fn datum() -> impl Strategy<Value = Datum> {
    let leaf = prop_oneof![
        Just(Datum::Null),
        any::<bool>().prop_map(Datum::Bool),
        any::<i128>().prop_map(Datum::Int),
        any::<i32>().prop_map(|value| Datum::Int(value.into())),
        any::<i64>().prop_map(time_text::shown),
        prop::num::f32::NORMAL.prop_map(|value| Datum::Float(value.into())),
        "[\0\"\\\\a-z,]{0,4}".prop_map(Datum::Text),
        prop::collection::vec(any::<u8>(), 0..4).prop_map(Datum::Bytes),
        any::<[u8; 10]>().prop_map(|bytes| Datum::Bytes(bytes.to_vec())),
        any::<[u8; 16]>().prop_map(|bytes| Datum::Text(tuple::uuid_text(&bytes))),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..4).prop_map(Datum::List))
}

/// Data that a type takes.
fn datum_of(element: &ElementType) -> BoxedStrategy<Datum> {
    match element {
        ElementType::Any => datum().boxed(),
        ElementType::Bytes => prop::collection::vec(any::<u8>(), 0..4).prop_map(Datum::Bytes).boxed(),
        ElementType::Text => "[\0\"\\\\a-z,\\[\\]]{0,4}".prop_map(Datum::Text).boxed(),
        ElementType::Int => any::<i128>().prop_map(Datum::Int).boxed(),
        ElementType::Float | ElementType::Double => {
            prop::num::f32::NORMAL.prop_map(|value| Datum::Float(value.into())).boxed()
        }
        ElementType::Bool => any::<bool>().prop_map(Datum::Bool).boxed(),
        ElementType::Uuid => any::<[u8; 16]>().prop_map(|b| Datum::Text(tuple::uuid_text(&b))).boxed(),
        ElementType::Stamp => any::<[u8; 12]>().prop_map(|bytes| Datum::Bytes(bytes.to_vec())).boxed(),
        ElementType::Time => any::<i64>().prop_map(time_text::shown).boxed(),
        ElementType::AnyTuple => prop::collection::vec(datum(), 0..3).prop_map(Datum::List).boxed(),
        ElementType::Tuple(types) => {
            types.iter().map(datum_of).collect::<Vec<_>>().prop_map(Datum::List).boxed()
        }
        ElementType::Optional(inner) => prop_oneof![Just(Datum::Null), datum_of(inner)].boxed(),
    }
}

fn typed(untyped: bool) -> impl Strategy<Value = (KeyCodec, Datum)> {
    prop::collection::vec(element_type(untyped), 1..4).prop_flat_map(|types| {
        let data = types.iter().map(datum_of).collect::<Vec<_>>().prop_map(Datum::List);
        (Just(KeyCodec::TypedTuple(types)), data)
    })
}

fn encoded(codec: &KeyCodec, datum: &Datum) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::new();
    codec.encode(datum, &mut out).map(|()| out)
}

proptest! {
    #[test]
    fn names_are_read_back(codec in key_codec()) {
        prop_assert_eq!(codec.name().parse::<KeyCodec>(), Ok(codec));
    }

    #[test]
    fn typed_keys_are_shown_as_they_were_given((codec, datum) in typed(true)) {
        let key = encoded(&codec, &datum).unwrap();
        prop_assert_eq!(codec.check(&key), Ok(()));
        prop_assert_eq!(&codec.show(&key).unwrap(), &datum);
        prop_assert_eq!(KeyCodec::Tuple.check(&key), Ok(()));
    }

    #[test]
    fn what_is_encoded_is_well_formed(codec in key_codec(), datum in datum()) {
        if let Ok(key) = encoded(&codec, &datum) {
            prop_assert_eq!(codec.check(&key), Ok(()));
            prop_assert!(codec.fixed_len().is_none_or(|len| len == key.len()));
            let shown = codec.show(&key).unwrap();
            prop_assert_eq!(encoded(&codec, &shown), Ok(key));
        }
    }

    #[test]
    fn shown_keys_can_be_typed_again((codec, datum) in typed(false)) {
        // An element without a type is left out: there, a whole double is shown like an integer.
        let key = encoded(&codec, &datum).unwrap();
        let shown = codec.show(&key).unwrap().to_string();
        prop_assert_eq!(codec.parse_text(&[&shown]), Ok(key), "{}", shown);
    }

    #[test]
    fn times_keep_their_order(a in any::<i64>(), b in any::<i64>()) {
        let time = |micros: i64| encoded(&KeyCodec::Time, &time_text::shown(micros)).unwrap();
        prop_assert_eq!(time(a).cmp(&time(b)), a.cmp(&b));
        let tuple = |micros| encoded(&codec("tuple(time)"), &time_text::shown(micros)).unwrap();
        prop_assert_eq!(tuple(a).cmp(&tuple(b)), a.cmp(&b));
    }

    #[test]
    fn i64_keys_keep_their_order(a in any::<i64>(), b in any::<i64>()) {
        prop_assert_eq!(encode_i64(a).cmp(&encode_i64(b)), a.cmp(&b));
        prop_assert_eq!(decode_i64(&encode_i64(a)), Ok(a));
    }

    #[test]
    fn a_key_passes_its_check_exactly_when_it_can_be_shown(
        codec in key_codec(),
        bytes in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        prop_assert_eq!(codec.check(&bytes).is_ok(), codec.show(&bytes).is_ok());
    }

    #[test]
    fn a_typed_check_finds_what_encoding_as_that_type_finds(codec in key_codec(), other in datum()) {
        // A well-formed tuple of any elements passes only if it shows as data that the codec takes.
        let Ok(key) = encoded(&KeyCodec::Tuple, &other) else { return Ok(()) };
        if codec.is_tuple() && codec.check(&key).is_ok() {
            prop_assert_eq!(encoded(&codec, &codec.show(&key).unwrap()), Ok(key));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(
        codec in key_codec(),
        parts in prop::collection::vec("[0-9a-f\\[\\]\",\\-.x\\\\]{0,6}|\\PC{0,4}", 0..3),
    ) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if let Ok(key) = codec.parse_text(&parts) {
            prop_assert_eq!(codec.check(&key), Ok(()));
            prop_assert!(codec.parse_bound(&parts).unwrap().contains(&key));
        }
        let _ = codec.parse_prefix(&parts);
    }
}
