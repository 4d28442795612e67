//! The filter: it rejects nothing that was put in, and most other keys.

use super::*;
use crate::hash::key_hash;

fn hashes(numbers: std::ops::Range<u64>) -> Vec<u32> {
    numbers.map(|number| key_hash(&number.to_be_bytes())).collect()
}

#[test]
fn what_was_put_in_is_held() {
    for count in [0, 1, 7, 4096, 100_000] {
        let inside = hashes(0..count);
        let filter = Filter::of(&inside);
        assert!(inside.iter().all(|&hash| filter.may_hold(hash)));
    }
}

#[test]
fn few_others_pass() {
    for count in [4096, 300_000] {
        let filter = Filter::of(&hashes(0..count));
        let passed = hashes(1_000_000..1_100_000).iter().filter(|&&hash| filter.may_hold(hash)).count();
        assert!(passed < 2_500, "{passed} of 100,000 pass a filter of {count}");
    }
}

#[test]
fn the_empty_filter_turns_nothing_away() {
    assert!(hashes(0..100).iter().all(|&hash| Filter::none().may_hold(hash)));
    assert!(!Filter::of(&[]).may_hold(17));
}

#[test]
fn hashes_of_similar_keys_differ() {
    let mut seen = std::collections::HashSet::new();
    let text = b"abcdefghijklmnopqrstuvwxyz";
    for len in 0..text.len() {
        assert!(seen.insert(key_hash(&text[..len])), "length {len}");
    }
    for len in 1..20usize {
        assert!(seen.insert(key_hash(&vec![0u8; len])), "{len} zeros");
    }
}
