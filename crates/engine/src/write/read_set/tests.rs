use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;

fn key(number: u8) -> Vec<u8> {
    vec![number]
}

fn bounds() -> Vec<Bound<Vec<u8>>> {
    let at = [Included, Excluded].into_iter().flat_map(|bound| (0..5).map(move |number| bound(key(number))));
    std::iter::once(Unbounded).chain(at).collect()
}

#[test]
fn joined_ranges_have_the_keys_that_the_ranges_have_and_no_others() {
    for order in [KeyOrder::Bytewise, KeyOrder::Reversed] {
        let bounds = bounds();
        let all: Vec<Range> =
            bounds.iter().flat_map(|low| bounds.iter().map(|high| (low.clone(), high.clone()))).collect();
        let has = |(low, high): &Range, key: &[u8]| is_above(&order, low, key) && is_below(&order, high, key);
        for (at, one) in all.iter().enumerate() {
            for step in [1, 7, 31] {
                let few =
                    [one.clone(), all[(at + step) % all.len()].clone(), all[(at * step) % all.len()].clone()];
                let joined = Ranges::of(&order, few.to_vec());
                for number in 0..6 {
                    let expected = few.iter().any(|range| has(range, &key(number)));
                    assert_eq!(joined.have(&order, &key(number)), expected, "{few:?} of {number}");
                }
                let from_low = joined.0.windows(2).all(|two| !is_range(&order, &two[1].0, &two[0].1));
                assert!(from_low, "{:?}", joined.0);
            }
        }
    }
}

#[test]
fn a_range_delete_touches_what_has_a_key_of_it() {
    let order = KeyOrder::Bytewise;
    for low in bounds() {
        for high in bounds() {
            let ranges = Ranges::of(&order, vec![(low.clone(), high.clone())]);
            for (from, to) in (0..5).flat_map(|from| (from + 1..6).map(move |to| (from, to))) {
                if (from..to).any(|number| ranges.have(&order, &key(number))) {
                    assert!(ranges.touch(&order, &key(from), &key(to)), "{low:?} {high:?} {from} {to}");
                }
            }
            assert!(!ranges.touch(&order, &key(8), &key(9)) || !matches!(high, Included(_) | Excluded(_)));
        }
    }
}
