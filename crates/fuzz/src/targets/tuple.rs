//! Tuples: what decodes encodes to the same, and the order of the bytes is the order of the tuples.
//!
//! ```text
//!   an input     one tuple: a piece | another: the rest
//! ```

use folddb_rules::codec::tuple::{
    DEPTH_MAX, Element, check, inside_range, pack, parse_uuid, partial_range, prefix_range, unpack, uuid_text,
};

use crate::carve::{Carver, pieces};
use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    // An element in memory takes 48 bytes, one of a tuple as little as one; the checks hold a few
    // copies.
    Target::new("tuple", tuple, tuple_seeds).heap(1024, 64 << 10),
];

fn tuple(input: &[u8]) {
    let mut carver = Carver::new(input);
    let (a, b) = (carver.piece(), carver.rest());
    let (first, second) = (decoded(a), decoded(b));
    let (Some(first), Some(second)) = (first, second) else { return };
    assert_eq!(a.cmp(b), first.cmp(&second), "bytes and tuples differ in order");
    let starts = second.len() >= first.len() && second[..first.len()] == first[..];
    assert_eq!(prefix_range(&first).contains(b), starts);
    assert_eq!(inside_range(&first).contains(b), starts && second.len() > first.len());
    if let Some(range) = partial_range(&first) {
        assert!(range.contains(a));
        assert_eq!(range.contains(b), starts_partly(&first, &second));
    }
}

/// The elements, checked to be the one form of these bytes.
fn decoded(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let elements = unpack(bytes);
    assert_eq!(check(bytes).is_ok(), elements.is_ok());
    let elements = elements.ok()?;
    assert_eq!(pack(&elements), bytes);
    let owned: Vec<Element<'static>> = elements.iter().cloned().map(Element::into_owned).collect();
    assert!(owned == elements && depth(&elements) <= DEPTH_MAX);
    for element in &elements {
        let _ = element.show().to_string();
        if let Element::Uuid(bytes) = element {
            assert_eq!(parse_uuid(&uuid_text(bytes)), Some(*bytes));
        }
    }
    Some(elements)
}

fn depth(elements: &[Element<'_>]) -> usize {
    let below = elements.iter().map(|element| match element {
        Element::Nested(items) => 1 + depth(items),
        _ => 0,
    });
    below.max().unwrap_or(0)
}

/// True when `tuple` starts with the elements of `start`, where of the last one, text or bytes,
/// only the beginning counts.
fn starts_partly(start: &[Element<'_>], tuple: &[Element<'_>]) -> bool {
    let Some((last, before)) = start.split_last() else { return false };
    if tuple.len() < start.len() || tuple[..before.len()] != *before {
        return false;
    }
    match (last, &tuple[before.len()]) {
        (Element::Text(part), Element::Text(whole)) => whole.starts_with(&**part),
        (Element::Bytes(part), Element::Bytes(whole)) => whole.starts_with(part),
        _ => false,
    }
}

fn tuple_seeds() -> Vec<Vec<u8>> {
    let all = [
        Element::Null,
        Element::from(&b"by\0tes"[..]),
        Element::from("te\0xt"),
        Element::Nested(vec![Element::Null, Element::from("in"), Element::Nested(vec![Element::from(7u64)])]),
        Element::Int(0),
        Element::Int(-1),
        Element::Int(i128::from(u64::MAX) + 1),
        Element::Int(i128::MIN),
        Element::from(i64::MIN),
        Element::Float(1.5),
        Element::Double(-0.0),
        Element::Bool(true),
        Element::Bool(false),
        Element::Uuid([9; 16]),
        Element::Stamp80([1; 10]),
        Element::Stamp96([2; 12]),
    ];
    let ints: Vec<Element<'_>> = (0..20).map(|bits| Element::Int((1i128 << (6 * bits)) - 1 - bits)).collect();
    let nested = (0..DEPTH_MAX).fold(Element::Nested(Vec::new()), |inner, depth| {
        if depth + 1 < DEPTH_MAX { Element::Nested(vec![inner]) } else { inner }
    });
    vec![
        pieces(&[&pack(&all), &pack(&all[..3])]),
        pieces(&[&pack(&ints), &pack(&ints[1..])]),
        pieces(&[&pack(&[nested]), &pack(&all[3..4])]),
        pieces(&[
            &pack(&[Element::from("UA"), Element::from("E")]),
            &pack(&[Element::from("UA"), Element::from("EWR")]),
        ]),
        pieces(&[&[], &pack(&all[9..])]),
    ]
}
