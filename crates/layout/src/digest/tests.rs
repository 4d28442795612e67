use super::*;

const MEANING: &str = "key utf8, order bytewise, fold sum:i64";

fn row(number: u64) -> ([u8; 8], u64, u32) {
    (number.to_be_bytes(), number % 7, (number * 31) as u32)
}

fn digest(depth: u8, rows: impl IntoIterator<Item = u64>) -> Digest {
    let mut made = Digest::new(depth, 9, MEANING);
    for number in rows {
        let (key, size_bytes, hash) = row(number);
        add_row(&mut made, &key, size_bytes, hash, number.checked_sub(500));
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
    assert!(mine.differing(&theirs).unwrap().is_empty());
    let (key, size_bytes, hash) = row(5000);
    add_row(&mut theirs, &key, size_bytes, hash, None);
    let leaf = theirs.leaf_of(&key);
    assert_eq!(mine.differing(&theirs).unwrap(), [leaf]);
    for level in 0..=3 {
        let pairs = mine.level(level).into_iter().zip(theirs.level(level)).enumerate();
        let differing: Vec<usize> = pairs.filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
        assert_eq!(differing, [leaf >> (4 * (3 - level))], "level {level}");
    }
}

#[test]
fn key_size_hash_deadline_and_meaning_all_count() {
    let of = |key: &[u8], size_bytes, hash, deadline_ms, meaning| {
        let mut made = Digest::new(2, 0, meaning);
        add_row(&mut made, key, size_bytes, hash, deadline_ms);
        made.root()
    };
    let one = of(b"a", 1, 1, Some(1), MEANING);
    let others = [
        of(b"b", 1, 1, Some(1), MEANING),
        of(b"a", 2, 1, Some(1), MEANING),
        of(b"a", 1, 2, Some(1), MEANING),
        of(b"a", 1, 1, Some(2), MEANING),
        of(b"a", 1, 1, None, MEANING),
        of(b"a", 1, 1, Some(1), "fold sum:u64"),
        Digest::new(2, 0, MEANING).root(),
    ];
    assert!(!others.contains(&one));
    assert_ne!(Digest::new(2, 0, MEANING).root(), Digest::new(2, 0, "fold sum:u64").root(), "of no rows");
}

#[test]
fn digests_of_other_ranges_depths_or_meanings_do_not_compare() {
    let mine = Digest::new(2, 1, MEANING);
    let others = [
        (Digest::new(3, 1, MEANING), "depths"),
        (Digest::new(2, 2, MEANING), "ranges"),
        (Digest::new(2, 1, "fold sum:u64"), "meanings of their bytes"),
    ];
    for (other, differs) in others {
        let said = format!("two digests with different {differs} do not compare");
        assert_eq!(mine.differing(&other).unwrap_err().message(), said);
        assert_eq!(mine.clone().join(&other).unwrap_err().message(), said);
    }
    assert!(mine.is_of_range(&Digest::new(2, 1, "fold sum:u64")));
}

/// A digest of version 1, which has no deadlines and no rules, as it was written.
#[test]
fn one_of_another_version_is_refused_by_that() {
    let mut old = b"FDDIGEST\x01\x00".to_vec();
    old.extend_from_slice(&[0; 24]); // scope, keys, one leaf
    old.extend_from_slice(&hash64(0, &old).to_le_bytes());
    assert_eq!(Digest::version_of(&old), Some(1));
    let refused = Digest::from_bytes(&old).unwrap_err();
    assert_eq!(refused.message(), "a digest of version 1 does not compare with 2");
    assert_eq!(Digest::version_of(&digest(0, 0..1).to_bytes()), Some(DIGEST_VERSION));
    assert_eq!(Digest::version_of(b"key,value"), None);
}

#[test]
fn the_bytes_come_back_and_no_damage_passes() {
    for depth in 0..=2 {
        let made = digest(depth, 0..100);
        let bytes = made.to_bytes();
        assert_eq!(Digest::from_bytes(&bytes).unwrap(), made);
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
