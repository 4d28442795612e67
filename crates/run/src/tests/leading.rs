//! Filters that know leading elements: a part is passed over only if it has no key of the range.

use folddb_rules::codec::leading::{LEADING_MAX, Leading};
use folddb_rules::codec::range::KeyRange;
use folddb_rules::codec::tuple::{self, Element, pack};

use super::*;

fn knowing(leading: usize) -> WriteOptions {
    WriteOptions { leading, ..WriteOptions::default() }
}

fn numbers(elements: &[i64]) -> Vec<u8> {
    pack(&elements.iter().map(|number| Element::from(*number)).collect::<Vec<_>>())
}

fn records_of(keys: impl IntoIterator<Item = Vec<u8>>) -> Vec<OwnedRecord> {
    keys.into_iter().enumerate().map(|(n, key)| record(&key, n as u64 + 1, OpKind::Set, b"value")).collect()
}

fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.low.as_ref().map(Vec::as_slice), range.high.as_ref().map(Vec::as_slice))
}

/// What the filters of a part say to a range in the order of its keys.
fn may_have(part: &Part, range: &KeyRange) -> Option<bool> {
    let (low, high) = bounds(range);
    let leading = match part.order() {
        KeyOrder::Reversed => Leading::of_range(high, low, LEADING_MAX),
        _ => Leading::of_range(low, high, LEADING_MAX),
    };
    part.may_have(Rank::Young, &PrefixRange::new((low, high), &leading)?)
}

fn may_begin_with(part: &Part, elements: &[i64]) -> Option<bool> {
    may_have(part, &tuple::packed_prefix_range(numbers(elements)))
}

/// Of a thousand ranges, how many the filters let pass.
fn passes(part: &Part, range: impl Fn(i64) -> KeyRange) -> usize {
    (0..1000).filter(|n| may_have(part, &range(*n)) == Some(true)).count()
}

#[test]
fn an_absent_prefix_is_passed_over_without_reading_and_a_present_one_never() {
    let world = World::new(16 << 20, 4);
    // Even prefixes, 10 keys each: several partitions.
    let keys = (0..40_000).map(|n| numbers(&[n / 100 * 2, n / 10 * 2, n]));
    let part = world.part(1, &knowing(2), &records_of(keys));
    verify(&part).unwrap();
    part.warm();
    let before = world.shared.stats();
    for n in 0..400 {
        assert_ne!(may_begin_with(&part, &[2 * n]), Some(false), "{n}");
    }
    for n in 0..4_000 {
        assert_eq!(may_begin_with(&part, &[n / 10 * 2, 2 * n]), Some(true), "{n}");
    }
    let absent = passes(&part, |n| tuple::packed_prefix_range(numbers(&[n % 400 * 2 + 1])));
    let deeper = passes(&part, |n| tuple::packed_prefix_range(numbers(&[n / 10 * 2, 2 * n + 1])));
    assert!(absent < 50 && deeper < 50, "{absent} and {deeper} of 1000 absent prefixes pass");
    assert_eq!(world.shared.stats().pieces_read, before.pieces_read);
}

#[test]
fn gets_are_as_sure_as_without_prefixes_even_if_each_key_has_its_own() {
    let world = World::new(16 << 20, 4);
    let keys = || records_of((0..30_000).map(|n| numbers(&[2 * n, n])));
    let false_passes = |part: &Arc<Part>| {
        let before = world.shared.stats().filter_passes;
        for n in 0..10_000 {
            let key = numbers(&[2 * n, n + 1]);
            assert!(get_all(part, &key, u64::MAX).is_empty());
        }
        world.shared.stats().filter_passes - before
    };
    let (with, without) = (world.part(1, &knowing(1), &keys()), world.part(2, &knowing(0), &keys()));
    let (with, without) = (false_passes(&with), false_passes(&without));
    assert!(with < without * 3 / 2 + 20, "{with} of 10,000 pass, and {without} without prefixes");
}

#[test]
fn filters_grow_by_the_prefixes_that_they_know() {
    let world = World::new(16 << 20, 4);
    let mut number = 0;
    let mut filter_bytes = |leading, keys: &dyn Fn(i64) -> Vec<u8>| {
        number += 1;
        let part = world.part(number, &knowing(leading), &records_of((0..40_000).map(keys)));
        part.frame().top.filters.iter().map(|place| u64::from(place.len_bytes)).sum::<u64>()
    };
    let plain = filter_bytes(0, &|n| numbers(&[n / 10, n]));
    let tenth = filter_bytes(1, &|n| numbers(&[n / 10, n]));
    let each = filter_bytes(1, &|n| numbers(&[n, n]));
    let percent = |bytes: u64| bytes * 100 / plain;
    assert!((108..113).contains(&percent(tenth)), "{} % with 10 keys a prefix", percent(tenth));
    assert!((195..205).contains(&percent(each)), "{} % with a prefix for each key", percent(each));
    let costly = filter_bytes(3, &|n| numbers(&[n / 1000, n, n, n]));
    assert!((100..110).contains(&percent(costly)), "{} % where only the first element pays", percent(costly));
}

#[test]
fn parts_without_prefixes_say_nothing() {
    let world = World::new(16 << 20, 4);
    let keys = || records_of((0..100).map(|n| numbers(&[n, n])));
    let bare = WriteOptions { filter_bits: 0, ..knowing(1) };
    for (number, options) in [(1, knowing(0)), (2, bare)] {
        let part = world.part(number, &options, &keys());
        assert_eq!(may_begin_with(&part, &[1000]), None);
    }
    let part = world.part(3, &knowing(1), &keys());
    assert_eq!(
        may_have(&part, &KeyRange { low: Bound::Included(numbers(&[3])), high: Bound::Unbounded }),
        None
    );
    assert_eq!(may_begin_with(&part, &[1000]), Some(false), "it is behind the last key");
}

#[test]
fn a_filter_that_cannot_be_read_says_nothing() {
    let world = World::new(16 << 20, 4);
    let part = world.part(1, &knowing(1), &records_of((0..100).map(|n| numbers(&[2 * n, n]))));
    let place = part.frame().top.filters[0];
    let mut bytes = world.memory.bytes(part.path());
    bytes[place.offset as usize] ^= 1;
    world.memory.put(part.path(), bytes);
    let part = world.open(1, &KeyOrder::Bytewise).unwrap();
    assert_eq!(may_begin_with(&part, &[7]), None);
    assert!(verify(&part).is_err());
}

#[test]
fn verify_finds_a_filter_that_does_not_know_the_prefixes_that_it_should() {
    let world = World::new(16 << 20, 4);
    let records = records_of((0..100).map(|n| numbers(&[n, n])));
    let part = world.part(1, &knowing(1), &records);
    verify(&part).unwrap();
    // The filter of a part without prefixes, which says that it knows one element.
    let plain = world.part(2, &knowing(0), &records);
    assert_eq!(plain.frame().meta.leading, b"");
    let mut meta = plain.frame().meta.clone();
    meta.leading = vec![1];
    let bytes = world.memory.bytes(plain.path());
    let mut forged = bytes[..plain.frame().footer.meta.offset as usize].to_vec();
    let offset = forged.len() as u64;
    meta.put(&mut forged, folddb_base::checksum::place_seed(2, offset));
    let place = folddb_layout::block::Place { offset, len_bytes: (forged.len() as u64 - offset) as u32 };
    let file_bytes = forged.len() as u64 + folddb_layout::part::FOOTER_BYTES as u64;
    folddb_layout::part::Footer { meta: place, file_bytes, ..plain.frame().footer }.put(&mut forged);
    world.memory.put(plain.path(), forged);
    let forged = world.open(2, &KeyOrder::Bytewise).unwrap();
    let fault = verify(&forged).unwrap_err();
    assert!(fault.message().contains("does not know the leading elements"), "{fault}");
}

/// Few codes and few bytes, so that keys share beginnings and are nearly tuples.
fn nearly_tuple() -> impl Strategy<Value = Vec<u8>> {
    let byte = proptest::sample::select(&b"\0\0\x01\x02\x05\x14\x15a\xff"[..]);
    let scraps = proptest::collection::vec(byte, 0..4);
    let element = prop_oneof![
        proptest::sample::select(vec!["", "a", "a\0", "a\0b"]).prop_map(Element::from),
        (-1i64..4).prop_map(Element::from),
        Just(Element::Nested(vec![Element::Null])),
    ];
    let packed = proptest::collection::vec(element, 0..4).prop_map(|elements| pack(&elements));
    prop_oneof![4 => packed.clone(), 1 => (packed, scraps).prop_map(|(packed, scraps)| [packed, scraps].concat())]
}

fn bound(key: Vec<u8>, included: bool) -> Bound<Vec<u8>> {
    if included { Bound::Included(key) } else { Bound::Excluded(key) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_part_that_is_passed_over_has_no_key_of_the_range(
        mut keys in proptest::collection::vec(nearly_tuple(), 1..60),
        asked in proptest::collection::vec((nearly_tuple(), nearly_tuple(), any::<[bool; 2]>()), 40),
        reversed in any::<bool>(),
        leading in 1..=LEADING_MAX,
    ) {
        let order = order(u8::from(reversed));
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup();
        let world = World::new(16 << 20, 4);
        let options = WriteOptions { order: order.clone(), block_bytes: 64, ..knowing(leading) };
        let part = world.part(1, &options, &records_of(keys.clone()));
        verify(&part).unwrap();
        for (a, b, [low_in, high_in]) in asked {
            let (low, high) = if order.compare(&a, &b).is_le() { (a.clone(), b) } else { (b, a.clone()) };
            let prefix = |range: KeyRange| if reversed { range.mirrored() } else { range };
            let ranges = [
                KeyRange { low: bound(low, low_in), high: bound(high, high_in) },
                prefix(tuple::packed_prefix_range(a.clone())),
                prefix(KeyRange::prefix(a.clone())),
                KeyRange { low: bound(a.clone(), low_in), ..prefix(tuple::packed_prefix_range(a)) },
            ];
            for range in ranges {
                if may_have(&part, &range) == Some(false) {
                    let bytewise = if reversed { range.clone().mirrored() } else { range.clone() };
                    let inside: Vec<_> = keys.iter().filter(|key| bytewise.contains(key)).collect();
                    prop_assert!(inside.is_empty(), "{inside:02x?} in {range:02x?}");
                }
            }
        }
    }
}
