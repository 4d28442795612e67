use proptest::prelude::*;

use super::*;

/// Keys of few different bytes, which are often neighbors.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, 0x7f, 0xfe, 0xff]), 0..4)
}

proptest! {
    #[test]
    fn the_keys_of_a_prefix_are_deleted_and_no_others(prefix in key(), tried in key()) {
        for order in [KeyOrder::Bytewise, KeyOrder::Reversed] {
            let deletes = PrefixDelete::of(&order, KeyRange::prefix(prefix.clone()));
            let is_in_range = deletes.range.as_ref().is_some_and(|(from, to)| {
                order.compare(from, &tried).is_le() && order.compare(&tried, to).is_lt()
            });
            let is_last = deletes.last.as_ref() == Some(&tried);
            prop_assert_eq!(is_in_range || is_last, tried.starts_with(&prefix), "{:?}", order);
        }
    }

    #[test]
    fn no_key_lies_between_one_and_the_next(one in key(), tried in key()) {
        let (next, earlier) = (behind(one.clone()).unwrap(), before(one.clone()));
        prop_assert!(tried <= one || tried >= next);
        prop_assert!(tried >= one || earlier.is_some_and(|earlier| tried <= earlier));
    }
}

#[test]
fn keys_of_the_greatest_length_have_neighbors_too() {
    let mut key = vec![0xff; KEY_BYTES_MAX];
    assert_eq!(behind(key.clone()), None);
    key[1] = 7;
    assert_eq!(behind(key.clone()), Some(vec![0xff, 8]));
    let earlier = before(key.clone()).unwrap();
    assert!(earlier < key && earlier.len() == KEY_BYTES_MAX);
}
