//! A stream that begins with the front of a tail equals the stream of the whole tail from the same
//! place on.

use folddb_base::OpKind;
use folddb_base::Record;
use proptest::prelude::*;

use super::*;
use crate::chunk::tests::{any_key, any_order};
use crate::tail::Appender;

fn raw_of(keys: &[Vec<u8>]) -> RawTail {
    let mut tail = Appender::default();
    for (key, seq) in keys.iter().zip(1..) {
        tail.push(Record { key, seq, kind: OpKind::Set, payload: &[seq as u8] });
    }
    tail.tail().copy_of(0..tail.len())
}

fn listed(chunk: &Chunk, skip: usize) -> Vec<(Vec<u8>, u64)> {
    let records = chunk.entries[skip..].iter().map(|entry| chunk.record(entry));
    records.map(|record| (record.key.to_vec(), record.seq)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_front_and_its_rest_are_what_the_whole_is(
        order in any_order(),
        some in prop::collection::vec(any_key(), 1..20),
        many in prop::collection::vec(any::<(u8, u16)>(), 0..1500),
        from in any_key(),
        is_excluded in any::<bool>(),
        share in any::<bool>(),
    ) {
        let mut keys = some;
        let short = if share { 0 } else { 3 };
        keys.extend(many.iter().map(|(a, b)| [&b"key"[short..], &[*a % 3][..], &b.to_be_bytes()[..]].concat()));
        let bound = if is_excluded { Bound::Excluded(&from[..]) } else { Bound::Included(&from[..]) };
        let whole = Chunk::from_raw(&order, raw_of(&keys));
        let expected = listed(&whole, whole.count_before(&order, bound));
        let found = match front_of(&order, raw_of(&keys), bound) {
            None => Vec::new(),
            Some((front, rest)) => {
                prop_assert!(rest.is_none() || front.len() > RECORDS);
                let mut found = listed(&front, front.count_before(&order, bound));
                found.extend(rest.into_iter().flat_map(|rest| listed(&rest.sort(), 0)));
                found
            }
        };
        prop_assert_eq!(found, expected);
    }
}
