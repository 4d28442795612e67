use super::*;
use crate::folds;

fn rules(spec: &str) -> FoldRules {
    FoldRules::new(folds::parse(spec).unwrap())
}

fn aggregate(rules: &FoldRules, values: &[&[u8]]) -> Aggregate {
    let mut sum = Aggregate::default();
    values.iter().for_each(|value| sum.push(rules, value).unwrap());
    sum
}

#[test]
fn values_of_keys_fold_in_their_order_however_they_are_cut() {
    let rules = rules("append");
    let whole = aggregate(&rules, &[b"a", b"b", b"c", b"d"]);
    let (mut first, mut second) = (aggregate(&rules, &[b"a", b"b", b"c"]), aggregate(&rules, &[b"d"]));
    assert_eq!(whole.value(), Some(&b"abcd"[..]));
    let mut both = aggregate(&rules, &[&first.take().unwrap()]);
    both.push(&rules, &second.take().unwrap()).unwrap();
    assert_eq!(both.value(), whole.value());
    assert_eq!(first.value(), None, "it begins anew");
}

#[test]
fn a_failure_leaves_what_was_there() {
    let rules = rules("sum:u64");
    let mut sum = aggregate(&rules, &[&3u64.to_le_bytes()]);
    assert!(sum.push(&rules, b"short").is_err());
    assert_eq!(sum.value(), Some(&3u64.to_le_bytes()[..]));
}
