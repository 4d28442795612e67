use super::*;

#[test]
fn appends_are_short_and_repeat_by_seed() {
    let (mut one, mut other) = (Appends::new(3, 100), Appends::new(3, 100));
    let (mut bytes, mut lens) = (0, std::collections::HashSet::new());
    for _ in 0..10_000 {
        let (document, operand) = one.next();
        assert!(document < 100 && (4..=24).contains(&operand.len()));
        assert_eq!((document, operand), other.next());
        bytes += operand.len();
        lens.insert(operand.len());
    }
    assert_eq!(lens.len(), 21);
    assert!((135_000..145_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn an_object_is_its_own_and_no_other() {
    let objects = Objects::new(1, 20, 90);
    let mut value = Vec::new();
    for (key, version) in [(0, 0), (7, 0), (7, 1), (u64::MAX, 3)] {
        objects.fill(key, version, &mut value);
        assert_eq!(value.len(), objects.len_bytes(key, version));
        assert_eq!(objects.read(&value), Some((key, version)));
        for place in 0..value.len() {
            value[place] ^= 1;
            assert_ne!(objects.read(&value), Some((key, version)), "byte {place}");
            value[place] ^= 1;
        }
        assert_eq!(objects.read(&value[..value.len() - 1]), None);
    }
    assert_eq!(objects.read(b"short"), None);
    let lens: Vec<usize> = (0..2000).map(|key| objects.len_bytes(key, 0)).collect();
    assert_eq!((lens.iter().min(), lens.iter().max()), (Some(&20), Some(&90)));
}

#[test]
fn objects_of_one_size_have_it() {
    let objects = Objects::new(1, 8192, 8192);
    assert!((0..100).all(|key| objects.len_bytes(key, key) == 8192));
    assert_eq!(Objects::new(1, 1, 1).len_bytes(5, 5), 16, "the stamp has room");
}

#[test]
fn a_fifth_of_the_numbers_gets_four_fifths_of_the_hits() {
    let (pareto, mut chance) = (Pareto::new(1000), Chance::new(5));
    let numbers: Vec<u64> = (0..100_000).map(|_| pareto.number(&mut chance)).collect();
    let below = |bound| numbers.iter().filter(|number| **number < bound).count();
    assert!((79_000..81_000).contains(&below(200)), "{}", below(200));
    assert!((63_000..65_000).contains(&below(40)), "{}", below(40));
    assert_eq!(below(1000), 100_000);
    assert_eq!(Pareto::new(1).number(&mut chance), 0);
}
