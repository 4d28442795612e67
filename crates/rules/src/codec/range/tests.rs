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
    fn an_intersection_holds_what_both_hold(a in key(), b in key(), c in key(), d in key(), k in key()) {
        let x = KeyRange { from: a, to: Some(b) };
        let y = KeyRange { from: c, to: (!d.is_empty()).then_some(d) };
        let both = x.clone().intersect(y.clone());
        prop_assert_eq!(both.contains(&k), x.contains(&k) && y.contains(&k));
        prop_assert!(!(both.is_empty() && both.contains(&k)));
    }
}

#[test]
fn prefixes_without_an_end() {
    assert_eq!(prefix_end(b""), None);
    assert_eq!(prefix_end(&[0xff, 0xff]), None);
    assert_eq!(prefix_end(&[0x61, 0xff]), Some(vec![0x62]));
    assert!(KeyRange::all().contains(b""));
    assert!(!KeyRange::all().is_empty());
}
