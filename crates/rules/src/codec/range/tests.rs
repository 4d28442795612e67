use proptest::prelude::*;

use super::*;

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few letters, with both ends of the alphabet, so that prefixes happen.
    prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x61, 0xfe, 0xff]), 0..5)
}

proptest! {
    #[test]
    fn a_prefix_range_holds_exactly_the_keys_with_the_prefix(prefix in key(), k in key()) {
        prop_assert_eq!(KeyRange::prefix(prefix.clone()).contains(&k), k.starts_with(&prefix));
    }

    #[test]
    fn a_range_of_one_key_holds_only_it(one in key(), k in key()) {
        prop_assert_eq!(KeyRange::one(one.clone()).contains(&k), k == one);
    }

    #[test]
    fn bounds_at_a_range_split_the_keys(one in key(), k in key(), as_prefix in any::<bool>()) {
        let prefix = [b"a".as_slice(), &one].concat();
        let span = if as_prefix { KeyRange::prefix(prefix) } else { KeyRange::one(one) };
        let Bound::Included(first) = &span.low else { panic!("{span:?} begins with a key") };
        let above = |low| KeyRange { low, high: Bound::Unbounded }.contains(&k);
        let below = |high| KeyRange { low: Bound::Unbounded, high }.contains(&k);
        prop_assert_eq!(above(span.clone().from()), k >= *first);
        prop_assert_eq!(above(span.clone().after()), k >= *first && !span.contains(&k));
        prop_assert_eq!(below(span.clone().before()), k < *first);
        prop_assert_eq!(below(span.clone().through()), k < *first || span.contains(&k));
    }
}

#[test]
fn prefixes_without_an_end() {
    assert_eq!(prefix_end(b""), None);
    assert_eq!(prefix_end(&[0xff, 0xff]), None);
    assert_eq!(prefix_end(&[0x61, 0xff]), Some(vec![0x62]));
    assert_eq!(KeyRange::prefix(vec![]), KeyRange::all());
    assert!(KeyRange::all().contains(b""));
}

#[test]
fn a_mirrored_range_is_turned_round() {
    let range = KeyRange::prefix(b"a".to_vec());
    assert_eq!(range.clone().mirrored().low, range.high);
    assert_eq!(range.clone().mirrored().high, range.low);
}
