use std::sync::Arc;

use folddb_base::{Op, OpKind};
use proptest::prelude::*;

use super::*;
use crate::algebra::{FoldRules, Predicate};
use crate::fold::Outcome;
use crate::folds;
use crate::resolve::Resolver;

const SPECS: [&str; 10] = [
    "sum:i64", "sum:u64", "min:i64", "max:i64", "min:u64", "max:u64", "min:f64", "max:f64", "min:time",
    "max:time",
];

fn rules_of(spec: &str) -> FoldRules {
    FoldRules::new(folds::parse(spec).unwrap())
}

/// Numbers at which folds overflow, short-circuit, or see zeros and NaN.
fn number() -> impl Strategy<Value = u64> {
    let edges = [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, f64::NAN.to_bits()];
    let floats = [0.0f64, -0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY].map(f64::to_bits);
    prop_oneof![
        prop::sample::select(edges.to_vec()),
        prop::sample::select(floats.to_vec()),
        any::<u64>(),
        0u64..4
    ]
}

/// An op as it is stored: normalized.
fn op(rules: &FoldRules, kind: OpKind, number: u64) -> (OpKind, Vec<u8>) {
    match rules.normalize(b"key", kind, &number.to_le_bytes()) {
        OpKind::Delete => (OpKind::Delete, Vec::new()),
        kind => (kind, number.to_le_bytes().to_vec()),
    }
}

fn kind() -> impl Strategy<Value = OpKind> {
    let all = [OpKind::Fold, OpKind::Fold, OpKind::Fold, OpKind::Set, OpKind::Insert, OpKind::Delete];
    prop::sample::select(all.to_vec())
}

/// The value that the ops have, given in this order: by words as far as these go, then by a
/// resolver.
fn by_words(rules: &FoldRules, ops: &[(OpKind, Vec<u8>)], is_forward: bool) -> Option<Vec<u8>> {
    let (mut words, mut resolver) = (rules.words().map(WordOps::new), Resolver::new());
    for (kind, payload) in ops {
        let took = words.as_mut().map_or(Took::Refused, |words| match is_forward {
            true => words.take_older(*kind, payload),
            false => words.take_newer(*kind, payload),
        });
        match took {
            Took::Folded => continue,
            Took::Enough => break,
            Took::Refused => {}
        }
        if let Some((kind, word)) = words.take().and_then(|words| words.held()) {
            resolver.feed_newer(rules, b"key", kind, &word).unwrap();
        }
        match is_forward {
            true if resolver.feed_older(rules, b"key", *kind, payload).unwrap() => break,
            true => {}
            false => resolver.feed_newer(rules, b"key", *kind, payload).unwrap(),
        }
    }
    match words.and_then(|words| words.held()) {
        Some((_, word)) => Some(word.to_vec()),
        None => resolver.finish(rules, b"key").unwrap().map(<[u8]>::to_vec),
    }
}

proptest! {
    #[test]
    fn words_fold_as_bytes_do(spec in prop::sample::select(SPECS.to_vec()), a in number(), b in number()) {
        let fold = folds::parse(spec).unwrap();
        let words = fold.words().expect("a fold of words");
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        let mut out = Vec::new();
        let bytes = match fold.fold(b"key", &a, &b, &mut out).unwrap() {
            Outcome::Value => out,
            Outcome::KeepEarlier => a.to_vec(),
            Outcome::KeepLater => b.to_vec(),
            Outcome::Delete => unreachable!("no such fold"),
        };
        let total = words.of(&a, &b).unwrap();
        prop_assert_eq!(&total.to_le_bytes()[..], &bytes[..]);
        prop_assert_eq!(words.kind_of(total) == OpKind::Set, fold.short_circuit(b"key", &bytes));
        prop_assert_eq!(words.of(&a[..7], &b), None);
    }

    #[test]
    fn the_value_of_a_key_is_what_a_resolver_says(
        spec in prop::sample::select(SPECS.to_vec()),
        ops in prop::collection::vec((kind(), number()), 0..8),
        is_forward: bool,
    ) {
        let rules = rules_of(spec);
        let mut ops: Vec<_> = ops.into_iter().map(|(kind, number)| op(&rules, kind, number)).collect();
        let mut state = None;
        for (kind, payload) in &ops {
            rules.apply(b"key", &mut state, Op::from_parts(*kind, payload).unwrap()).unwrap();
        }
        if is_forward {
            ops.reverse();
        }
        prop_assert_eq!(by_words(&rules, &ops, is_forward), state);
    }
}

#[test]
fn what_is_no_word_is_refused_and_changes_nothing() {
    let mut ops = WordOps::new(rules_of("sum:u64").words().unwrap());
    assert_eq!(ops.take_older(OpKind::Delete, b""), Took::Refused, "a resolver counts it");
    assert_eq!(ops.take_older(OpKind::Fold, &5u64.to_le_bytes()), Took::Folded);
    for (kind, payload) in [
        (OpKind::Fold, &[1u8; 7][..]),
        (OpKind::Set, &[1; 9][..]),
        (OpKind::Insert, &[1; 8][..]),
        (OpKind::InsertFold, &[1; 8][..]),
        (OpKind::SetSeparated, &[1; 8][..]),
        (OpKind::Delete, &[1; 8][..]),
    ] {
        assert_eq!(ops.take_older(kind, payload), Took::Refused, "{kind:?}");
        assert_eq!(ops.held(), Some((OpKind::Fold, 5u64.to_le_bytes())));
    }
    assert_eq!(ops.take_older(OpKind::Delete, b""), Took::Enough);
    assert_eq!(ops.held(), Some((OpKind::Set, 5u64.to_le_bytes())), "nothing older is added");
}

#[test]
fn a_set_replaces_what_is_older() {
    let words = rules_of("sum:u64").words().unwrap();
    let mut ops = WordOps::new(words);
    for (kind, number) in [(OpKind::Fold, 1u64), (OpKind::Set, 20), (OpKind::Fold, 3), (OpKind::Fold, 4)] {
        assert_eq!(ops.take_newer(kind, &number.to_le_bytes()), Took::Folded);
    }
    assert_eq!(ops.held(), Some((OpKind::Set, 27u64.to_le_bytes())));
    let mut ops = WordOps::new(words);
    for (kind, number) in [(OpKind::Fold, 4u64), (OpKind::Fold, 3)] {
        assert_eq!(ops.take_older(kind, &number.to_le_bytes()), Took::Folded);
    }
    assert_eq!(ops.take_older(OpKind::Set, &20u64.to_le_bytes()), Took::Enough);
    assert_eq!(ops.held(), Some((OpKind::Set, 27u64.to_le_bytes())));
}

#[test]
fn rules_that_delete_or_have_stamps_are_not_folded_by_word() {
    assert!(rules_of("sum:u64").words().is_some());
    assert!(rules_of("sum:i128").words().is_none());
    assert!(rules_of("replace").words().is_none());
    assert!(rules_of("sum:u64").with_stamps(true).words().is_none());
    let zero: Predicate = Arc::new(|_: &[u8], value: &[u8]| value == [0; 8]);
    assert!(rules_of("sum:u64").with_delete(zero.clone()).words().is_none());
    assert!(rules_of("sum:u64").with_short_circuit(zero).words().is_none());
}
