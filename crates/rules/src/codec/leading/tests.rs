use proptest::prelude::*;

use super::*;
use crate::codec::range::{KeyRange, prefix_end};
use crate::codec::tuple::{self, Element, pack, unpack};

fn texts(elements: &[&str]) -> Vec<u8> {
    pack(&elements.iter().map(|text| Element::from(*text)).collect::<Vec<_>>())
}

/// The bounds of a range as they are borrowed.
fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.low.as_ref().map(Vec::as_slice), range.high.as_ref().map(Vec::as_slice))
}

fn shared_by(range: &KeyRange) -> Vec<u8> {
    let (low, high) = bounds(range);
    let leading = Leading::of_range(low, high, LEADING_MAX);
    leading.first(leading.count()).to_vec()
}

#[test]
fn the_elements_of_a_key_are_found_one_by_one_and_at_most_four() {
    let key = texts(&["a", "b\0c", "d", "e", "f"]);
    let leading = Leading::of(&key, usize::MAX);
    assert_eq!(leading.count(), LEADING_MAX);
    for count in 1..=LEADING_MAX {
        assert_eq!(leading.first(count), texts(&["a", "b\0c", "d", "e"][..count]));
    }
    assert_eq!(Leading::of(&key, 2).count(), 2);
    assert_eq!(Leading::of(&key, 0).first(1), b"");
    assert_eq!(Leading::of(b"", 4).count(), 0);
}

#[test]
fn bytes_that_are_no_tuple_have_the_elements_that_they_begin_with() {
    let key = [&texts(&["a"])[..], b"\xff\xff"].concat();
    assert_eq!(Leading::of(&key, 4).count(), 0, "the zero is escaped, and the string does not end");
    let key = [&pack(&[Element::Int(7)])[..], b"\xff\xff"].concat();
    assert_eq!(Leading::of(&key, 4).first(4), pack(&[Element::Int(7)]));
    for cut in 1..9 {
        assert_eq!(Leading::of(&pack(&[Element::Double(1.5)])[..cut], 4).count(), 0, "{cut} bytes");
    }
}

#[test]
fn a_prefix_of_elements_is_shared_by_its_range() {
    let prefix = [Element::from("a"), Element::Int(5)];
    assert_eq!(shared_by(&tuple::prefix_range(&prefix)), pack(&prefix));
    assert_eq!(shared_by(&tuple::inside_range(&prefix)), pack(&prefix));
    assert_eq!(shared_by(&tuple::prefix_range(&prefix[..1])), pack(&prefix[..1]));
    let partial = tuple::partial_range(&[Element::from("a"), Element::from("b")]).unwrap();
    assert_eq!(shared_by(&partial), texts(&["a"]));
    let between = KeyRange {
        low: Bound::Included(texts(&["a", "b", "c"])),
        high: Bound::Excluded(texts(&["a", "b", "d"])),
    };
    assert_eq!(shared_by(&between), texts(&["a", "b"]));
}

#[test]
fn a_prefix_of_bytes_is_shared_where_its_last_element_cannot_continue() {
    let number = pack(&[Element::from("a"), Element::Int(5)]);
    assert_eq!(shared_by(&KeyRange::prefix(number.clone())), number);
    // It has the key of ("a\0b"), too.
    assert_eq!(shared_by(&KeyRange::prefix(texts(&["a"]))), b"");
    assert_eq!(shared_by(&KeyRange::prefix(texts(&["a", "b"]))), texts(&["a"]));
    assert_eq!(shared_by(&KeyRange::all()), b"");
    let greatest = pack(&[Element::Int(255)]);
    assert_eq!(shared_by(&KeyRange::prefix(greatest.clone())), greatest);
}

#[test]
fn a_range_beyond_the_end_of_a_string_shares_no_more_than_what_is_before_it() {
    let begin = texts(&["a", "b"]);
    let through = |end: &[u8]| KeyRange {
        low: Bound::Included(begin.clone()),
        high: Bound::Included([&begin[..], end].concat()),
    };
    assert_eq!(shared_by(&through(b"")), begin);
    assert_eq!(shared_by(&through(&texts(&["c"]))), begin);
    assert_eq!(shared_by(&through(b"\xff")), texts(&["a"]), "it has what `b` and a zero begin");
    assert_eq!(shared_by(&through(b"\xffz")), texts(&["a"]));
}

#[test]
fn the_end_of_a_prefix_is_recognized() {
    for prefix in [&b"a"[..], b"a\xff", b"\xff\x01\xff\xff", b"\0"] {
        let end = prefix_end(prefix).unwrap();
        assert!(is_prefix_end(prefix, &end), "{prefix:?}");
        assert!(!is_prefix_end(prefix, &[&end[..], b"\0"].concat()), "{prefix:?}");
        assert!(!is_prefix_end(&[prefix, b"\0"].concat(), &end), "{prefix:?}");
    }
    assert!(!is_prefix_end(b"", b"") && !is_prefix_end(b"a", b"") && !is_prefix_end(b"", b"a"));
    assert!(!is_prefix_end(b"\xff", b"\0"));
}

/// Few codes and few bytes, so that keys share beginnings and are nearly tuples.
fn nearly_tuples() -> impl Strategy<Value = Vec<u8>> {
    let byte = proptest::sample::select(&b"\0\0\0\x01\x02\x05\x0b\x13\x14\x15\x1d\x20\x26a\xff\xff"[..]);
    let scraps = proptest::collection::vec(byte, 0..8);
    let element = prop_oneof![
        proptest::sample::select(vec!["", "a", "a\0", "a\0b", "\0"]).prop_map(Element::from),
        (-3i32..300).prop_map(Element::from),
        Just(Element::Null),
        Just(Element::Nested(vec![Element::Null, Element::from("a\0")])),
        Just(Element::Nested(vec![])),
        Just(Element::Bool(true)),
    ];
    let packed = proptest::collection::vec(element, 0..4).prop_map(|elements| pack(&elements));
    (packed, scraps).prop_map(|(packed, scraps)| [packed, scraps].concat())
}

fn bound_of(key: Vec<u8>, kind: u8) -> Bound<Vec<u8>> {
    match kind % 3 {
        0 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// What filters rely on: `Leading::of` finds what a range shares in each key of the range.
    #[test]
    fn every_key_of_a_range_begins_with_the_elements_that_the_range_shares(
        keys in proptest::collection::vec(nearly_tuples(), 2..12),
        kinds in (0u8..3, 0u8..3),
        beyond in 0usize..4,
    ) {
        let tail = [&b""[..], b"\xff", b"\0", b"\xff\xff"][beyond];
        let ranges = [
            KeyRange { low: bound_of(keys[0].clone(), kinds.0), high: bound_of([&keys[1][..], tail].concat(), kinds.1) },
            KeyRange { low: bound_of(keys[0].clone(), kinds.0), high: bound_of([&keys[0][..], tail].concat(), kinds.1) },
            KeyRange::prefix(keys[0].clone()),
            tuple::packed_prefix_range(keys[0].clone()),
        ];
        for range in &ranges {
            let (low, high) = bounds(range);
            let shared = Leading::of_range(low, high, LEADING_MAX);
            let suffixes = [&b""[..], b"\0", b"\x01", b"\xff", b"\xff\0", b"a\0"];
            let near = keys.iter().flat_map(|key| suffixes.map(|suffix| [&key[..], suffix].concat()));
            for key in near.filter(|key| range.contains(key)) {
                let of_key = Leading::of(&key, LEADING_MAX);
                for count in 1..=shared.count() {
                    prop_assert!(of_key.count() >= count, "{key:02x?} in {range:02x?}");
                    prop_assert_eq!(of_key.first(count), shared.first(count), "{:02x?} in {:02x?}", key, range);
                }
            }
        }
    }

    /// An element by its structure ends where the decoder says that it ends.
    #[test]
    fn elements_end_where_decoding_ends_them(keys in proptest::collection::vec(nearly_tuples(), 1..8)) {
        for key in keys {
            let Ok(elements) = unpack(&key) else { continue };
            let leading = Leading::of(&key, LEADING_MAX);
            prop_assert_eq!(leading.count(), elements.len().min(LEADING_MAX));
            for count in 1..=leading.count() {
                prop_assert_eq!(leading.first(count), pack(&elements[..count]));
            }
        }
    }
}
