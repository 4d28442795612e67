//! Sorting agrees with comparing whole keys, and reports correctly whether prefixes decide.

use folddb_base::OpKind;
use proptest::prelude::*;

use super::*;
use crate::chunk::tests::{any_key, any_order};
use crate::packed;

/// Enough keys for buckets: of one length, of one length with few distinct bytes, random, or
/// awkward.
fn any_keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let few = || prop::sample::select(vec![0u8, 1, 0xff]);
    let sizes = || 0usize..400;
    prop_oneof![
        (0usize..14)
            .prop_flat_map(move |len| { prop::collection::vec(prop::collection::vec(few(), len), sizes()) }),
        (0usize..14).prop_flat_map(move |len| {
            prop::collection::vec(prop::collection::vec(any::<u8>(), len), sizes())
        }),
        prop::collection::vec(any::<u16>().prop_map(|n| format!("user/{n}").into_bytes()), sizes()),
        prop::collection::vec(any_key(), sizes()),
        prop::collection::vec(0u64..1 << 20, sizes()).prop_map(|mut numbers| {
            numbers.sort_unstable();
            numbers.iter().map(|number| number.to_be_bytes().to_vec()).collect()
        }),
    ]
}

proptest! {
    #[test]
    fn it_is_the_total_order(order in any_order(), keys in any_keys()) {
        let mut arena = Vec::new();
        let mut records = Vec::new();
        for (seq_delta, key) in (0u32..).zip(&keys) {
            records.push((arena.len() as u32, seq_delta));
            packed::put(&mut arena, OpKind::Set, key, b"payload");
        }
        let mut scratch = SortScratch::default();
        let sorted = sort_records(&order, &arena, records.iter().copied(), &mut scratch);

        let mut expected: Vec<usize> = (0..keys.len()).collect();
        expected.sort_by(|&a, &b| order.compare(&keys[a], &keys[b]).then(b.cmp(&a)));
        let found: Vec<usize> = scratch.keys.iter().map(|key| key.seq_delta() as usize).collect();
        prop_assert_eq!(found, expected);
        for pair in scratch.keys.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|key| &keys[key.seq_delta() as usize]);
            prop_assert_eq!(&a[..sorted.skip], &b[..sorted.skip]);
            prop_assert!(!sorted.exact || (pair[0].prefix() == pair[1].prefix()) == (a == b));
        }
        for key in &scratch.keys {
            prop_assert_eq!(key.prefix(), order.prefix(&keys[key.seq_delta() as usize], sorted.skip));
            prop_assert_eq!(key.offset(), records[key.seq_delta() as usize].0);
        }
    }
}
