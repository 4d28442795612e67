#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::folds::{ByteSet, First, Hll, Max, Min, Record, Stats, Sum};

fn encoded<V: Value>(value: &V) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Folds two values by the fold of their type.
fn folded<V: Value>(a: &V, b: &V) -> V {
    let fold = V::default_fold();
    let (a, b, mut out) = (encoded(a), encoded(b), Vec::new());
    fold.as_fold().check(&a).unwrap();
    fold.as_fold().fold(b"", &a, &b, &mut out).unwrap();
    fold.as_fold().check(&out).unwrap();
    V::decode(&out).unwrap()
}

#[test]
fn a_tuple_folds_field_by_field_and_its_fold_is_that_of_its_fields() {
    type Flight = (Sum<u64>, Stats, Option<Hll<4>>);
    assert_eq!(Flight::default_fold().to_string(), "{0: sum:u64, 1: stats:f64, 2: hll:4}");
    let one: Flight = (Sum(1), Stats::of(12.5), Some(Hll::of("N1")));
    let (flights, delay, tails) = folded(&one, &(Sum(2), Stats::of(7.5), None));
    assert_eq!((flights, delay.mean(), tails), (Sum(3), 10.0, one.2));

    assert_eq!(<(String, u64)>::default_fold().to_string(), "replace");
    assert_eq!(<(Sum<u64>, (Max<i64>,))>::default_fold().to_string(), "{0: sum:u64, 1: {0: max:i64}}");
}

#[test]
fn a_field_that_another_program_left_out_reads_as_nothing_or_is_an_error() {
    let shape = "{flights: sum:u64, delay: stats:f64, carrier: first}".parse::<Record>().unwrap();
    let mut empty = Vec::new();
    shape.put(&[], &mut empty).unwrap();
    let read = <(Sum<u64>, Stats, Option<First<String>>)>::decode(&empty).unwrap();
    assert_eq!(read, (Sum(0), Stats::default(), None));
    let refused = <(Sum<u64>, Stats, First<String>)>::decode(&empty).unwrap_err();
    assert_eq!(refused.0, "field `2`: it is absent, which only an `Option` can say");
    let mut more_fields = empty.clone();
    more_fields[0] |= 1 << 3;
    assert!(<(Sum<u64>, Stats, Option<First<String>>)>::decode(&more_fields).is_err());
}

#[test]
fn in_a_record_of_fixed_length_nothing_is_what_changes_nothing() {
    type Extremes = (Option<Min<u64>>, Option<Max<f64>>, Option<Sum<i128>>);
    let none: Extremes = (None, None, None);
    assert_eq!(encoded(&none).len(), 32);
    assert_eq!(Extremes::decode(&encoded(&none)), Ok(none));
    let some: Extremes = (Some(Min(7)), Some(Max(1.5)), Some(Sum(-1)));
    assert_eq!(folded(&none, &some), some);
    assert_eq!(folded(&some, &none), some);
}

/// The bytes are those of the record fold.
fn is_record<V: Value>(value: &V, fields: &[Option<Vec<u8>>]) {
    let shape = V::default_fold().to_string().parse::<Record>().unwrap();
    let fields: Vec<Option<&[u8]>> = fields.iter().map(Option::as_deref).collect();
    let mut expected = Vec::new();
    shape.put(&fields, &mut expected).unwrap();
    assert_eq!(encoded(value), expected);
}

proptest! {
    #[test]
    fn tuples_encode_as_records_do_and_come_back(
        number in any::<u64>(),
        least in any::<Option<i64>>(),
        text in any::<String>(),
        members in prop::collection::vec(any::<Vec<u8>>(), 0..4),
        doubles in any::<[f64; 2]>(),
    ) {
        let set: ByteSet = members.into_iter().collect();
        let value = (Sum(number), least.map(Min), text.clone(), set.clone());
        is_record(&value, &[
            Some(encoded(&number)), least.as_ref().map(encoded), Some(encoded(&text)), Some(encoded(&set)),
        ]);
        prop_assert_eq!(<(Sum<u64>, Option<Min<i64>>, String, ByteSet)>::decode(&encoded(&value)), Ok(value));

        let fixed = (Sum(number), Max(doubles[0]), Min(doubles[1]));
        is_record(&fixed, &[Some(encoded(&number)), Some(encoded(&doubles[0])), Some(encoded(&doubles[1]))]);
        prop_assert_eq!(encoded(&fixed).len(), 24);

        let plain = (text, Some(number), None::<bool>);
        prop_assert_eq!(<(String, Option<u64>, Option<bool>)>::decode(&encoded(&plain)), Ok(plain));
    }

    #[test]
    fn no_bytes_make_a_tuple_panic(bytes in any::<Vec<u8>>()) {
        let _ = <(Sum<u64>, Stats, Option<Hll<4>>)>::decode(&bytes);
        let _ = <(Sum<u64>, Option<Max<f64>>)>::decode(&bytes);
        let _ = <Option<(String, u8)>>::decode(&bytes);
    }
}
