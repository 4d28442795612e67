use folddb_base::checksum::key_hash;

use super::*;

fn sketch(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut builder = SketchBuilder::default();
    numbers.for_each(|number| builder.push(key_hash(&number.to_be_bytes())));
    builder.finish()
}

#[test]
fn keeps_the_smallest_hashes() {
    let mut all: Vec<u64> = (0..5000u64).map(|number| key_hash(&number.to_be_bytes())).collect();
    all.sort_unstable();
    assert_eq!(sketch(0..5000), all[..SKETCH_HASHES]);
    assert_eq!(sketch(0..10).len(), 10);
}

#[test]
fn predicts_how_many_keys_a_union_has() {
    let parts = [sketch(0..100_000), sketch(50_000..150_000), sketch(0..10)];
    let keys = estimate_keys(parts.iter().map(Vec::as_slice));
    assert!((125_000..175_000).contains(&keys), "{keys} for 150,000");
    let few = [sketch(0..100), sketch(50..120)];
    assert_eq!(estimate_keys(few.iter().map(Vec::as_slice)), 120);
    assert_eq!(estimate_keys(std::iter::empty()), 0);
}
