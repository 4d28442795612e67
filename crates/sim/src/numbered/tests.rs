use folddb::{Durability, Options};

use super::*;

#[test]
fn the_sums_are_those_of_counting() {
    let mut counted = BTreeMap::new();
    assert_eq!(sums_after(0), counted);
    for i in 1..=100u64 {
        *counted.entry(i % SUM_KEYS).or_default() += i;
        assert_eq!(sums_after(i), counted);
    }
}

#[test]
fn a_batch_that_is_missing_or_doubled_shows() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), Options::default()).unwrap();
    let numbered = Numbered::open(&store).unwrap();
    let mut batch = store.batch();
    let mut commit = |i| {
        numbered.fill(&mut batch, i);
        batch.commit(Durability::Process).unwrap();
        numbered.last()
    };
    assert_eq!(commit(1), Ok(1));
    assert_eq!(commit(2), Ok(2));
    assert!(commit(4).is_err(), "3 is missing");
    assert!(commit(4).is_err());
    assert!(commit(3).is_err(), "4 is there twice");
}
