use std::sync::Arc;

use folddb_rules::order::CustomOrder;
use proptest::prelude::*;

use super::*;

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

fn orders() -> impl Strategy<Value = KeyOrder> {
    let custom = KeyOrder::Custom(Arc::new(ByLength));
    prop_oneof![Just(KeyOrder::Bytewise), Just(KeyOrder::Reversed), Just(custom)]
}

/// Keys that share much or little. Some differ only in zeros at their end.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![Just(&b""[..]), Just(&b"user:1"[..]), Just(&b"a-rather-long-prefix/"[..])];
    let tail = prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..11);
    (head, tail).prop_map(|(head, tail)| [head, &tail].concat())
}

fn in_order(order: &KeyOrder, mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    keys.sort_by(|a, b| order.compare(a, b));
    keys.dedup();
    keys
}

proptest! {
    #[test]
    fn a_bound_is_what_counting_gives(
        order in orders(),
        keys in prop::collection::vec(keys(), 0..40),
        others in prop::collection::vec(keys(), 1..20),
    ) {
        let keys = in_order(&order, keys);
        let separators = Separators::of(keys.iter().map(|key| &key[..]), &order);
        for key in others.iter().chain(&keys) {
            let before = keys.iter().filter(|other| order.compare(other, key).is_lt()).count();
            prop_assert_eq!(separators.bound(&order, key, false), before, "{:?}", key);
            let is_there = usize::from(keys.contains(key));
            prop_assert_eq!(separators.bound(&order, key, true), before + is_there, "{:?}", key);
        }
    }

    #[test]
    fn a_key_is_found_in_the_one_span_that_has_it(
        order in orders(),
        ends in prop::collection::vec(keys(), 2..20),
        is_one: bool,
        others in prop::collection::vec(keys(), 1..20),
    ) {
        let ends = in_order(&order, ends);
        let two = ends.chunks_exact(2).map(|ends| (&ends[0][..], &ends[1][..]));
        // The first of them may be of a single key.
        let one = is_one.then(|| (&ends[0][..], &ends[0][..]));
        let spans: Vec<(&[u8], &[u8])> = one.into_iter().chain(two.skip(usize::from(is_one))).collect();
        let found = Spans::of(spans.iter().copied(), &order);
        for key in others.iter().chain(&ends) {
            let has = |(low, high): &(&[u8], &[u8])| {
                order.compare(low, key).is_le() && order.compare(key, high).is_le()
            };
            prop_assert_eq!(found.find(&order, key), spans.iter().position(has), "{:?}", key);
        }
    }
}

#[test]
fn numbers_are_distinguished_without_their_common_prefix() {
    let numbers: Vec<[u8; 8]> = (0..16u64).map(|n| (0xab << 56 | n).to_be_bytes()).collect();
    let separators = Separators::of(numbers.iter().map(|key| &key[..]), &KeyOrder::Bytewise);
    assert_eq!(separators.skip, 0);
    let texts = ["a long beginning: x", "a long beginning: y"];
    let separators = Separators::of(texts.iter().map(|key| key.as_bytes()), &KeyOrder::Bytewise);
    assert_eq!(separators.skip, 18);
}
