use std::collections::BTreeSet;
use std::ops::Range;

use folddb_base::checksum::key_hash;
use proptest::prelude::*;

use super::*;

/// What a part of these keys keeps.
fn kept(keys: Range<u64>) -> Vec<u64> {
    let mut hashes: Vec<u64> = keys.map(|key| key_hash(&key.to_be_bytes())).collect();
    hashes.sort_unstable();
    hashes.truncate(PART_HASHES_MAX);
    hashes
}

fn sketch(keys: Range<u64>) -> Sketch {
    Sketch::of_part(&kept(keys))
}

fn near(estimate: f64, truth: f64, tolerance: f64) -> bool {
    (estimate - truth).abs() <= truth * tolerance
}

#[test]
fn small_sets_are_counted_exactly() {
    assert_eq!(Sketch::default().distinct(), 0.0);
    assert_eq!(sketch(0..255).distinct(), 255.0);
    assert_eq!(Sketch::of_part(&[3, 1, 3]).distinct(), 2.0);
    assert_eq!(Sketch::union([&sketch(0..100), &sketch(50..150)]).distinct(), 150.0);
}

#[test]
fn large_sets_are_estimated() {
    for keys in [1_000, 30_000, 300_000] {
        let estimate = sketch(0..keys).distinct();
        assert!(near(estimate, keys as f64, 0.2), "{estimate} of {keys}");
    }
    let parts: Vec<Vec<u64>> = (0..20).map(|part| kept(part * 5_000..(part + 1) * 5_000)).collect();
    let run = Sketch::of_run(parts.iter().map(Vec::as_slice));
    assert!(run.hashes.len() <= RUN_HASHES_MAX);
    assert!(near(run.distinct(), 100_000.0, 0.1), "{}", run.distinct());
}

#[test]
fn sets_without_a_common_key_never_show_repetition() {
    let sets: Vec<Sketch> = (0..10).map(|run| sketch(run * 10_000..(run + 1) * 10_000)).collect();
    let overlap = Overlap::between(sets.iter().map(|set| (set, 1.0)));
    assert_eq!((overlap.obsolete, overlap.ratio(), overlap.share()), (0.0, 0.0, 0.0));
    assert_eq!(Overlap::between([]).share(), 0.0);
}

#[test]
fn repetition_is_estimated_and_weighed() {
    // The newer set repeats the older half; a key of the older one weighs three times as much.
    let (newer, older) = (sketch(0..20_000), sketch(10_000..30_000));
    let overlap = Overlap::between([(&newer, 1.0), (&older, 3.0)]);
    assert!(near(overlap.ratio(), 30_000.0 / 50_000.0, 0.25), "{overlap:?}");
    assert!(near(overlap.share(), 3.0 / 8.0, 0.25), "{overlap:?}");
}

proptest! {
    #[test]
    fn a_union_keeps_exactly_what_is_below_its_threshold(
        sets in prop::collection::vec(prop::collection::vec(0u64..2000, 0..600), 0..6),
    ) {
        let sets: Vec<BTreeSet<u64>> = sets
            .into_iter()
            .map(|set| set.into_iter().map(|key| key_hash(&key.to_be_bytes())).collect())
            .collect();
        let sketches: Vec<Sketch> = sets
            .iter()
            .map(|set| Sketch::of_part(&set.iter().copied().take(PART_HASHES_MAX).collect::<Vec<_>>()))
            .collect();
        let union = Sketch::union(&sketches);
        let all: BTreeSet<u64> = sets.iter().flatten().copied().collect();
        let expected: Vec<u64> = all.iter().copied().filter(|&hash| hash <= union.threshold()).collect();
        prop_assert_eq!(union.below(u64::MAX), &expected[..]);
        prop_assert_eq!(Sketch::union([&union, &union]), union);
    }
}
