use std::collections::HashSet;

use super::*;

#[test]
fn random_rows_are_distinct_and_repeat_by_seed() {
    let rows = RandomRows::new(7);
    let keys: HashSet<u64> = (0..10_000).map(|index| rows.key(index)).collect();
    assert_eq!(keys.len(), 10_000);
    assert!((0..100).all(|index| RandomRows::new(7).key(index) == rows.key(index)));
    assert_ne!(RandomRows::new(8).key(0), rows.key(0));
}

#[test]
fn zipf_hits_rank_r_as_often_as_one_over_r() {
    let (zipf, mut chance) = (Zipf::new(1000), Chance::new(3));
    let draws = 400_000;
    let mut hits = vec![0u64; 1001];
    for _ in 0..draws {
        hits[zipf.rank(&mut chance) as usize] += 1;
    }
    let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
    for rank in [1, 2, 3, 10, 50] {
        let expected = f64::from(draws) / (rank as f64 * harmonic);
        let off = (hits[rank] as f64 - expected).abs() / expected;
        assert!(off < 0.1, "rank {rank}: {} hits, {expected:.0} expected", hits[rank]);
    }
    assert!(hits[1000] > 0, "the last rank is hit too");
    assert_eq!(hits[0], 0);
}

#[test]
fn zipf_of_one_key_is_that_key() {
    let (zipf, mut chance) = (Zipf::new(1), Chance::new(1));
    assert!((0..100).all(|_| zipf.rank(&mut chance) == 1));
}

#[test]
fn every_rank_has_a_key_of_its_own() {
    for keys in [1, 2, 10, 999, 1000] {
        let writes = ZipfWrites::new(1, keys);
        let hit: HashSet<u64> = (0..keys).map(|rank| rank * writes.stride % keys).collect();
        assert_eq!(hit.len() as u64, keys);
    }
}

#[test]
fn user_keys_sort_as_their_numbers_and_read_back() {
    assert_eq!(UserKey::new(1234).text(), "user:0000001234");
    assert_eq!(UserKey::parse(UserKey::new(9_876_543_210).text()), Some(9_876_543_210));
    assert_eq!(UserKey::parse("user:12"), None);
}

#[test]
fn the_data_is_what_it_always_was() {
    let mut chance = Chance::new(1);
    assert_eq!(mix(1), 12_994_781_566_227_106_604);
    assert_eq!(
        [chance.next(), chance.next(), chance.below(1000)],
        [535_513_398_857_852_421, 13_391_895_387_612_781_944, 255]
    );
    let rows = RandomRows::new(1);
    assert_eq!(
        [rows.key(0), rows.key(1), rows.value(rows.key(0))],
        [3_386_738_095_288_643_496, 10_511_343_961_244_550_642, 7_195_528_151_741_270_824]
    );
    let mut writes = ZipfWrites::new(1, 1000);
    let drawn: Vec<(u64, u64)> = (0..6).map(|_| (writes.next_key(), writes.next_operand())).collect();
    assert_eq!(drawn, [(676, 73), (993, 10), (82, 98), (47, 45), (520, 65), (95, 33)]);
}
