use super::*;

fn sum(rows: &[(u64, u64)]) -> RowSum {
    let mut sum = RowSum::default();
    rows.iter().for_each(|&(key, value)| sum.add(key, value));
    sum
}

#[test]
fn the_sum_knows_rows_but_not_their_order() {
    let right = sum(&[(1, 10), (2, 20), (3, 30)]);
    assert_eq!(right, sum(&[(3, 30), (1, 10), (2, 20)]));
    assert_ne!(right, sum(&[(1, 10), (2, 20)]), "a row is missing");
    assert_ne!(right, sum(&[(1, 10), (2, 20), (3, 31)]), "a value is wrong");
    assert_ne!(right, sum(&[(1, 20), (2, 10), (3, 30)]), "two values are swapped");
    assert_ne!(right, sum(&[(1, 10), (2, 20), (4, 30)]), "a key is wrong");
}

#[test]
fn keys_that_repeat_or_fall_are_seen() {
    let ascend = |keys: &[u64]| {
        let mut ascending = Ascending::default();
        keys.iter().for_each(|&key| ascending.next(key));
        ascending.holds()
    };
    assert!(ascend(&[]) && ascend(&[5]) && ascend(&[0, 1, 7]));
    assert!(!ascend(&[1, 1]) && !ascend(&[2, 1]));
}

#[test]
fn the_sum_is_what_it_always_was() {
    assert_eq!(sum(&[(1, 10), (2, 20), (3, 30)]).sum, 5_361_519_572_267_898_823);
}
