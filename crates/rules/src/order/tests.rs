use super::*;
use proptest::prelude::*;

struct ByLength;
impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

fn orders() -> [KeyOrder; 3] {
    [KeyOrder::Bytewise, KeyOrder::Reversed, KeyOrder::Custom(Arc::new(ByLength))]
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(255u8), 0u8..4], 0..12)
}

proptest! {
    #[test]
    fn prefixes_agree_with_the_order(a in key(), b in key(), c in key()) {
        for order in orders() {
            let mut keys = [a.clone(), b.clone(), c.clone()];
            keys.sort_by(|x, y| order.compare(x, y));
            let skip = order.shared_prefix_len(&keys[0], &keys[2]);
            for pair in keys.windows(2) {
                prop_assert!(order.prefix(&pair[0], skip) <= order.prefix(&pair[1], skip));
            }
        }
    }

    #[test]
    fn separators_stand_between(a in key(), b in key()) {
        for order in orders() {
            let (low, high) = if order.compare(&a, &b).is_lt() { (&a, &b) } else { (&b, &a) };
            if low == high {
                continue;
            }
            let separator = order.separator(low, high);
            prop_assert!(order.compare(low, &separator).is_le());
            prop_assert!(order.compare(&separator, high).is_lt());
            prop_assert!(separator.len() <= low.len());
        }
    }

    #[test]
    fn keys_are_equal_exactly_when_their_bytes_are(a in key(), b in key()) {
        for order in orders() {
            prop_assert_eq!(order.compare(&a, &b).is_eq(), a == b);
        }
    }
}
