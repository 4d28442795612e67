use folddb_rules::codec::tuple::{Element, pack};

use super::*;

/// What a partition of these keys learns: how many elements, and the hashes in ascending order.
fn learned(most: usize, keys: &[Vec<u8>]) -> (u8, Vec<u64>) {
    let mut leading = LeadingHashes::new(most);
    keys.iter().enumerate().for_each(|(number, key)| leading.push(key, number + 1));
    let mut hashes = Vec::new();
    let known = leading.finish(&mut hashes);
    hashes.sort_unstable();
    (known, hashes)
}

/// The hashes of these prefixes, each once.
fn hashes_of(prefixes: impl IntoIterator<Item = Vec<u8>>) -> Vec<u64> {
    let mut hashes: Vec<u64> = prefixes.into_iter().map(|prefix| leading_hash(&prefix)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn numbers(elements: &[i64]) -> Vec<u8> {
    pack(&elements.iter().map(|number| Element::from(*number)).collect::<Vec<_>>())
}

#[test]
fn equal_neighbors_are_hashed_once() {
    let keys: Vec<Vec<u8>> = (0..1_000).map(|n| numbers(&[n / 100, n / 10, n])).collect();
    let prefixes = (0..1_000).flat_map(|n| [numbers(&[n / 100]), numbers(&[n / 100, n / 10])]);
    assert_eq!(learned(2, &keys), (2, hashes_of(prefixes)));
    assert_eq!(learned(1, &keys), (1, hashes_of((0..10).map(|n| numbers(&[n])))));
}

#[test]
fn a_partition_forgets_what_it_knows_of_the_last_partition() {
    let mut leading = LeadingHashes::new(1);
    for _ in 0..2 {
        let mut hashes = Vec::new();
        leading.push(&numbers(&[7, 1]), 1);
        leading.push(&numbers(&[7, 2]), 2);
        assert_eq!((leading.finish(&mut hashes), hashes.len()), (1, 1));
    }
}

#[test]
fn elements_that_are_nearly_as_many_as_keys_are_not_learned_except_the_first() {
    let keys: Vec<Vec<u8>> = (0..5_000).map(|n| numbers(&[n / 50, n, n])).collect();
    let (known, hashes) = learned(2, &keys);
    assert_eq!((known, hashes), (1, hashes_of((0..100).map(|n| numbers(&[n])))));
    let keys: Vec<Vec<u8>> = (0..5_000).map(|n| numbers(&[n, n])).collect();
    assert_eq!(learned(2, &keys), (1, hashes_of((0..5_000).map(|n| numbers(&[n])))));
}

#[test]
fn a_string_that_continues_the_last_one_is_another_element() {
    let texts = ["a", "a\0", "a\0b", "b"];
    let keys: Vec<Vec<u8>> = texts
        .iter()
        .flat_map(|text| [1i64, 2].map(|n| pack(&[Element::from(*text), Element::from(n)])))
        .collect();
    assert!(keys.is_sorted());
    let prefixes = texts.map(|text| pack(&[Element::from(text)]));
    assert_eq!(learned(1, &keys), (1, hashes_of(prefixes)));
}

#[test]
fn keys_with_fewer_elements_have_those_that_they_have() {
    let keys =
        [vec![], numbers(&[1]), numbers(&[1, 2]), numbers(&[1, 2, 3]), b"\xffx".to_vec(), b"\xffy".to_vec()];
    assert_eq!(learned(2, &keys), (2, hashes_of([numbers(&[1]), numbers(&[1, 2])])));
}
