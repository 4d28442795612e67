use proptest::prelude::*;

use super::read::zero_at;
use super::*;
use crate::datum::{from_hex, hex};

fn text(text: &str) -> Element<'_> {
    Element::from(text)
}

fn bytes(bytes: &[u8]) -> Element<'_> {
    Element::from(bytes)
}

fn int(value: i128) -> Element<'static> {
    Element::Int(value)
}

fn nested<'a>(items: &[Element<'a>]) -> Element<'a> {
    Element::Nested(items.to_vec())
}

/// The vectors of FoundationDB's `design/tuple.md` and of its bindings' tests.
fn published_vectors() -> Vec<(Vec<Element<'static>>, &'static str)> {
    let one = |element: Element<'static>, hex| (vec![element], hex);
    vec![
        (vec![], ""),
        one(Element::Null, "00"),
        one(bytes(b"foo\0bar"), "01666f6f00ff62617200"),
        one(text("F\u{d4}O\0bar"), "0246c3944f00ff62617200"),
        one(nested(&[bytes(b"foo\0bar"), Element::Null, nested(&[])]), "0501666f6f00ff6261720000ff050000"),
        one(nested(&[]), "0500"),
        one(nested(&[Element::Null]), "0500ff00"),
        one(int(0), "14"),
        one(int(1), "1501"),
        one(int(-1), "13fe"),
        one(int(255), "15ff"),
        one(int(-255), "1300"),
        one(int(256), "160100"),
        one(int(-256), "12feff"),
        one(int(65_536), "17010000"),
        one(int(-65_536), "11feffff"),
        one(int(-5_551_212), "11ab4b93"),
        one(int(i64::MAX.into()), "1c7fffffffffffffff"),
        one(int(1 << 63), "1c8000000000000000"),
        one(int((1 << 64) - 1), "1cffffffffffffffff"),
        one(int(1 << 64), "1d09010000000000000000"),
        one(int(-((1 << 32) - 1)), "1000000000"),
        one(int(i128::from(i64::MIN) + 2), "0c8000000000000001"),
        one(int(i128::from(i64::MIN) + 1), "0c8000000000000000"),
        one(int(i64::MIN.into()), "0c7fffffffffffffff"),
        one(int(i128::from(i64::MIN) - 1), "0c7ffffffffffffffe"),
        one(int(1 - (1 << 64)), "0c0000000000000000"),
        one(int(-(1 << 64)), "0bf6feffffffffffffffff"),
        one(int(i128::MAX), "1d107fffffffffffffffffffffffffffffff"),
        one(int(i128::MIN), "0bef7fffffffffffffffffffffffffffffff"),
        one(Element::Float(-42.0), "203dd7ffff"),
        one(Element::Float(314.0 / 100.0), "20c048f5c3"),
        one(Element::Float(-314.0 / 100.0), "203fb70a3c"),
        one(Element::Double(314.0 / 100.0), "21c0091eb851eb851f"),
        one(Element::Double(-314.0 / 100.0), "213ff6e147ae147ae0"),
        one(Element::Float(0.0), "2080000000"),
        one(Element::Float(-0.0), "207fffffff"),
        one(Element::Double(0.0), "218000000000000000"),
        one(Element::Double(-0.0), "217fffffffffffffff"),
        one(Element::Float(f32::INFINITY), "20ff800000"),
        one(Element::Float(f32::NEG_INFINITY), "20007fffff"),
        one(Element::Double(f64::INFINITY), "21fff0000000000000"),
        one(Element::Double(f64::NEG_INFINITY), "21000fffffffffffff"),
        one(Element::Float(f32::from_bits(0x7fff_ffff)), "20ffffffff"),
        one(Element::Double(f64::from_bits(u64::MAX)), "210000000000000000"),
        one(bytes(b""), "0100"),
        one(bytes(&[1, 2, 3]), "0101020300"),
        one(bytes(&[0, 0, 0, 4]), "0100ff00ff00ff0400"),
        one(text(""), "0200"),
        one(text("hello"), "0268656c6c6f00"),
        one(text("\u{4e2d}\u{6587}"), "02e4b8ade6968700"),
        one(text("\u{1f525}"), "02f09f94a500"),
        one(text("\u{10ffff}"), "02f48fbfbf00"),
        one(nested(&[Element::Null, text("hello")]), "0500ff0268656c6c6f0000"),
        one(nested(&[Element::Null, text("hell\0")]), "0500ff0268656c6c00ff0000"),
        (
            vec![nested(&[Element::Null]), text("hello"), bytes(&[1, 0]), bytes(b"")],
            "0500ff000268656c6c6f00010100ff000100",
        ),
        one(
            Element::Uuid(uuid("ffffffff-ba5e-ba11-0000-00005ca1ab1e")),
            "30ffffffffba5eba11000000005ca1ab1e",
        ),
        one(Element::Bool(false), "26"),
        one(Element::Bool(true), "27"),
        one(
            Element::Stamp96([0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0, 1, 2, 3, 0, 0]),
            "33aabbccddeeff000102030000",
        ),
        one(Element::Stamp96([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2, 0x91]), "330102030405060708090a0291"),
        one(Element::Stamp80([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), "320102030405060708090a"),
    ]
}

fn uuid(text: &str) -> [u8; 16] {
    parse_uuid(text).unwrap()
}

#[test]
fn published_vectors_pass_both_ways() {
    for (elements, expected) in published_vectors() {
        let packed = pack(&elements);
        assert_eq!(hex(&packed)[2..], *expected, "{elements:?}");
        assert_eq!(unpack(&packed).unwrap(), elements, "{expected}");
        assert_eq!(check(&packed), Ok(()), "{expected}");
    }
}

#[test]
fn published_malformed_sequences_are_refused() {
    let sequences = [
        "01deadc0de",
        "01dead00ffc0de",
        "0268656c6c6f",
        "0268656c00ff6c6f",
        "02757466088000",
        "0275746608c00100",
        "0275746610eda0bd00",
        "0275746610edb4a500",
        "0275746610eda0bdedb4a500",
        "050268656c6c6f00",
        "050268656c6c6f0000ff02746865726500",
        "1601",
        "1201",
        "1d090102030405060708",
        "0bf60102030405060708",
        "20010203",
        "2101020304050607",
        "300102030405060708090a0b0c0d0e",
        "330102030405060708090a0b",
        "ff",
        // Not in the only form, or with codes that have no meaning.
        "1500",
        "13ff",
        "160001",
        "12ff00",
        "1d08ffffffffffffffff",
        "1d0900ffffffffffffffff",
        "0bf70000000000000000",
        "1d1080000000000000000000000000000000",
        "0bef7ffffffffffffffffffffffffffffffe",
        "1d11010000000000000000000000000000000000",
        "1d00",
        "03",
        "0a",
        "1e",
        "25",
        "40",
    ];
    for sequence in sequences {
        let bytes = from_hex(sequence).unwrap();
        assert!(unpack(&bytes).is_err(), "{sequence} is accepted");
        assert!(check(&bytes).is_err(), "{sequence} is accepted");
    }
}

#[test]
fn depth_is_bounded() {
    let nest = |depth: usize| {
        let mut bytes = vec![NESTED; depth];
        bytes.resize(2 * depth, NULL);
        bytes
    };
    assert!(unpack(&nest(DEPTH_MAX)).is_ok() && check(&nest(DEPTH_MAX)).is_ok());
    assert!(unpack(&nest(DEPTH_MAX + 1)).is_err() && check(&nest(DEPTH_MAX + 1)).is_err());
    assert!(unpack(&vec![NESTED; 100_000]).is_err());
}

#[test]
fn ranges_of_tuples() {
    let tuples = [
        vec![],
        vec![text("UA")],
        vec![text("UA"), Element::Null],
        vec![text("UA"), text("EWR")],
        vec![text("UA"), text("EWR"), int(1)],
        vec![text("UA"), text("EWRX")],
        vec![text("UA\0b")],
        vec![text("UB")],
        vec![bytes(b"UA")],
    ];
    let held = |range: KeyRange| -> Vec<usize> {
        (0..tuples.len()).filter(|&index| range.contains(&pack(&tuples[index]))).collect()
    };
    assert_eq!(held(prefix_range(&[text("UA")])), [1, 2, 3, 4, 5]);
    assert_eq!(held(inside_range(&[text("UA")])), [2, 3, 4, 5]);
    assert_eq!(held(prefix_range(&[])), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(held(partial_range(&[text("UA"), text("EW")]).unwrap()), [3, 4, 5]);
    assert_eq!(held(partial_range(&[text("U")]).unwrap()), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(held(partial_range(&[text("UA\0")]).unwrap()), [6]);
    assert_eq!(partial_range(&[int(1)]), None);
    assert_eq!(partial_range(&[]), None);
}

#[test]
fn uuids_as_text() {
    let text = "ba5eba11-5ca1-ab1e-0123-456789abcdef";
    assert_eq!(uuid_text(&uuid(text)), text);
    assert_eq!(parse_uuid("ba5eba115ca1ab1e0123456789abcdef"), Some(uuid(text)));
    assert_eq!(parse_uuid("ba5eba11"), None);
    assert_eq!(parse_uuid("+a5eba115ca1ab1e0123456789abcdef"), None);
}

fn integer() -> impl Strategy<Value = i128> {
    // Every width, both signs, and the boundaries between widths.
    prop_oneof![
        (any::<i128>(), 0u32..128).prop_map(|(value, shift)| value >> shift),
        (0u32..127, -1i128..=1, any::<bool>()).prop_map(|(bit, by, negative)| {
            let value = (1i128 << bit) + by;
            if negative { -value } else { value }
        }),
        Just(i128::MIN),
        Just(i128::MAX),
    ]
}

pub(super) fn element() -> impl Strategy<Value = Element<'static>> {
    let letters = || prop::sample::select(vec![0u8, 0, 1, 0x61, 0x7f, 0xfe, 0xff]);
    let leaf = prop_oneof![
        Just(Element::Null),
        prop::collection::vec(letters(), 0..5).prop_map(|bytes| Element::Bytes(bytes.into())),
        "[\0\u{1}ab\u{ff}\u{1f525}]{0,4}".prop_map(Element::from),
        integer().prop_map(Element::Int),
        any::<u32>().prop_map(|bits| Element::Float(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Element::Double(f64::from_bits(bits))),
        any::<f64>().prop_map(Element::Double),
        any::<bool>().prop_map(Element::Bool),
        any::<[u8; 16]>().prop_map(Element::Uuid),
        any::<[u8; 10]>().prop_map(Element::Stamp80),
        any::<[u8; 12]>().prop_map(Element::Stamp96),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Element::Nested))
}

pub(super) fn elements() -> impl Strategy<Value = Vec<Element<'static>>> {
    prop::collection::vec(element(), 0..4)
}

#[test]
fn integers_that_do_not_fit_are_refused() {
    let wide = |value: i128| pack(&[int(value)]);
    for value in [i128::from(i64::MIN) - 1, i128::from(i64::MAX) + 1, i128::MIN, i128::MAX] {
        assert!(take_i64(&mut Reader::new(&wide(value))).is_err(), "{value}");
    }
    for value in [-1, i128::from(u64::MAX) + 1, i128::MIN] {
        assert!(take_u64(&mut Reader::new(&wide(value))).is_err(), "{value}");
    }
    assert_eq!(take_i64(&mut Reader::new(&wide(i64::MIN.into()))), Ok(i64::MIN));
    assert_eq!(take_u64(&mut Reader::new(&wide(u64::MAX.into()))), Ok(u64::MAX));
    for other in ["1500", "13ff", "15", "26", "0a", "1e"] {
        assert!(take_i64(&mut Reader::new(&from_hex(other).unwrap())).is_err(), "{other}");
        assert!(take_u64(&mut Reader::new(&from_hex(other).unwrap())).is_err(), "{other}");
    }
}

proptest! {
    #[test]
    fn zeros_are_found(
        before in prop::collection::vec(prop::sample::select(vec![1u8, 0x7f, 0x80, 0xff]), 0..20),
        after in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x80]), 0..10),
    ) {
        let bytes = [before, after].concat();
        prop_assert_eq!(zero_at(&bytes), bytes.iter().position(|&byte| byte == 0));
    }

    #[test]
    fn unpacking_gives_back_what_was_packed(tuple in elements()) {
        let packed = pack(&tuple);
        prop_assert_eq!(&unpack(&packed).unwrap(), &tuple);
        prop_assert_eq!(check(&packed), Ok(()));
        let owned: Vec<_> = unpack(&packed).unwrap().into_iter().map(Element::into_owned).collect();
        prop_assert_eq!(owned, tuple);
    }

    #[test]
    fn bytes_order_as_the_tuples_do(a in elements(), b in elements()) {
        prop_assert_eq!(pack(&a).cmp(&pack(&b)), a.cmp(&b));
    }

    #[test]
    fn neighbors_order_too(shared in elements(), a in elements(), b in elements()) {
        let join = |tail: &[Element<'static>]| [shared.as_slice(), tail].concat();
        prop_assert_eq!(pack(&join(&a)).cmp(&pack(&join(&b))), a.cmp(&b));
        let deep = |tail: &[Element<'static>]| vec![Element::Nested(join(tail)), Element::Null];
        prop_assert_eq!(pack(&deep(&a)).cmp(&pack(&deep(&b))), a.cmp(&b));
    }

    #[test]
    fn integers_order(a in integer(), b in integer()) {
        prop_assert_eq!(pack(&[int(a)]).cmp(&pack(&[int(b)])), a.cmp(&b));
    }

    #[test]
    fn integers_of_each_width_have_one_form(value in any::<i64>(), shift in 0u32..64) {
        let value = value >> shift;
        let mut short = Vec::new();
        put_i64(&mut short, value);
        prop_assert_eq!(&short, &pack(&[int(value.into())]));
        let mut unsigned = Vec::new();
        put_u64(&mut unsigned, value.unsigned_abs());
        prop_assert_eq!(&unsigned, &pack(&[int(value.unsigned_abs().into())]));
        // With and without bytes after it.
        for behind in [0, 9] {
            short.resize(short.len() + behind, 0xff);
            unsigned.resize(unsigned.len() + behind, 0xff);
            prop_assert_eq!(take_i64(&mut Reader::new(&short)), Ok(value));
            prop_assert_eq!(take_u64(&mut Reader::new(&unsigned)), Ok(value.unsigned_abs()));
        }
    }

    #[test]
    fn a_prefix_range_holds_exactly_the_tuples_that_start_so(
        prefix in elements(),
        tail in elements(),
        other in elements(),
    ) {
        let range = prefix_range(&prefix);
        prop_assert!(range.contains(&pack(&[prefix.clone(), tail.clone()].concat())));
        prop_assert_eq!(range.contains(&pack(&other)), other.starts_with(&prefix));
        let inside = inside_range(&prefix);
        prop_assert_eq!(inside.contains(&pack(&other)), other.starts_with(&prefix) && other != prefix);
        prop_assert_eq!(inside.contains(&pack(&[prefix, tail.clone()].concat())), !tail.is_empty());
    }

    #[test]
    fn a_partial_range_holds_exactly_the_texts_that_start_so(
        start in "[\0a\u{ff}]{0,2}",
        whole in "[\0a\u{ff}]{0,4}",
        tail in elements(),
    ) {
        let range = partial_range(&[int(7), text(&start)]).unwrap();
        let key = pack(&[vec![int(7), text(&whole)], tail].concat());
        prop_assert_eq!(range.contains(&key), whole.starts_with(&start));
    }

    #[test]
    fn any_bytes_are_refused_or_are_the_only_form(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        match unpack(&bytes) {
            Ok(tuple) => prop_assert_eq!(pack(&tuple), bytes.clone()),
            Err(_) => prop_assert!(check(&bytes).is_err()),
        }
        prop_assert_eq!(unpack(&bytes).is_ok(), check(&bytes).is_ok());
    }

    #[test]
    fn nearly_right_bytes_are_refused_or_are_the_only_form(
        tuple in elements(),
        at in any::<prop::sample::Index>(),
        by in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = pack(&tuple);
        bytes.push(NULL);
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = by }
        prop_assert_eq!(unpack(&bytes).is_ok(), check(&bytes).is_ok());
        if let Ok(tuple) = unpack(&bytes) {
            prop_assert_eq!(pack(&tuple), bytes.clone());
        }
    }
}
