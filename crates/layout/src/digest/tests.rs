use super::*;

fn row(number: u64) -> ([u8; 8], u64, u32) {
    (number.to_be_bytes(), number % 7, (number * 31) as u32)
}

fn digest(depth: u8, rows: impl IntoIterator<Item = u64>) -> Digest {
    let mut made = Digest::new(depth, 9);
    for number in rows {
        let (key, size_bytes, hash) = row(number);
        made.take(&key, size_bytes, hash);
    }
    made
}

#[test]
fn rows_come_in_any_order_and_in_several_goes() {
    for depth in 0..=3 {
        let all = digest(depth, 0..1000);
        assert_eq!(digest(depth, (0..1000).rev()), all);
        let mut half = digest(depth, (0..1000).step_by(2));
        half.join(&digest(depth, (1..1000).step_by(2))).unwrap();
        assert_eq!(half, all);
        assert_eq!(all.keys(), 1000);
    }
}

#[test]
fn what_differs_is_found_down_the_tree_and_nothing_else_is() {
    let (mine, mut theirs) = (digest(3, 0..1000), digest(3, 0..1000));
    assert_eq!(mine.root(), theirs.root());
    assert_eq!(mine.differing(&theirs), Ok(vec![]));
    let (key, size_bytes, hash) = row(5000);
    theirs.take(&key, size_bytes, hash);
    let leaf = theirs.leaf_of(&key);
    assert_eq!(mine.differing(&theirs), Ok(vec![leaf]));
    for level in 0..=3 {
        let pairs = mine.level(level).into_iter().zip(theirs.level(level)).enumerate();
        let differing: Vec<usize> = pairs.filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
        assert_eq!(differing, [leaf >> (4 * (3 - level))], "level {level}");
    }
}

#[test]
fn size_hash_and_key_all_count() {
    let of = |key: &[u8], size_bytes, hash| {
        let mut made = Digest::new(2, 0);
        made.take(key, size_bytes, hash);
        made.root()
    };
    let one = of(b"a", 1, 1);
    for other in [of(b"b", 1, 1), of(b"a", 2, 1), of(b"a", 1, 2), Digest::new(2, 0).root()] {
        assert_ne!(one, other);
    }
}

#[test]
fn digests_of_other_ranges_or_depths_do_not_compare() {
    let mine = Digest::new(2, 1);
    for other in [Digest::new(3, 1), Digest::new(2, 2)] {
        assert_eq!(mine.differing(&other), Err(Malformed::Bounds));
        assert_eq!(mine.clone().join(&other), Err(Malformed::Bounds));
    }
}

#[test]
fn the_bytes_come_back_and_no_damage_passes() {
    for depth in 0..=2 {
        let made = digest(depth, 0..100);
        let bytes = made.to_bytes();
        assert_eq!(Digest::from_bytes(&bytes), Ok(made));
        for cut in 0..bytes.len() {
            assert!(Digest::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Digest::from_bytes(&damaged).is_err(), "byte {at}");
        }
    }
}
