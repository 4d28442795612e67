//! The algebra against ops applied one at a time: exhaustive over small semigroups, and every
//! bracketing.

use std::sync::Arc;

use folddb_base::OpKind;

use super::*;
use crate::fold::{Fold, FoldFailure, Outcome};
use proptest::prelude::*;

/// A semigroup on {0, .., n-1} given by its multiplication table; values are one byte.
#[derive(Clone, Debug)]
pub(crate) struct Semigroup {
    pub(crate) order: u8,
    table: Vec<u8>,
    pub(crate) deleted: Option<u8>,
    stops: bool,
}

impl Semigroup {
    pub(crate) fn times(&self, a: u8, b: u8) -> u8 {
        self.table[(a * self.order + b) as usize]
    }

    fn is_associative(&self) -> bool {
        let n = self.order;
        (0..n).all(|a| {
            (0..n).all(|b| (0..n).all(|c| self.times(self.times(a, b), c) == self.times(a, self.times(b, c))))
        })
    }

    fn is_left_identity(&self, d: u8) -> bool {
        (0..self.order).all(|y| self.times(d, y) == y)
    }

    fn is_right_zero(&self, v: u8) -> bool {
        (0..self.order).all(|x| self.times(x, v) == v)
    }
}

impl Fold for Semigroup {
    fn spec(&self) -> String {
        "test-semigroup".into()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        // Both ways of answering are met: by value, and by saying which operand it is.
        match self.times(earlier[0], later[0]) {
            product if self.stops && product == later[0] => Ok(Outcome::KeepLater),
            product if self.stops && product == earlier[0] => Ok(Outcome::KeepEarlier),
            product => {
                out.push(product);
                Ok(Outcome::Value)
            }
        }
    }
    fn short_circuit(&self, _: &[u8], value: &[u8]) -> bool {
        self.stops && self.is_right_zero(value[0])
    }
    fn is_deleted(&self, _: &[u8], value: &[u8]) -> bool {
        self.deleted == Some(value[0])
    }
    fn has_delete(&self) -> bool {
        self.deleted.is_some()
    }
}

/// All semigroups of the given order, with and without a delete predicate and short-circuit where
/// lawful.
pub(crate) fn semigroups(order: u8) -> Vec<Semigroup> {
    let cells = u32::from(order) * u32::from(order);
    let tables = (0..u64::from(order).pow(cells)).map(|mut code| {
        let mut table = Vec::new();
        for _ in 0..cells {
            table.push((code % u64::from(order)) as u8);
            code /= u64::from(order);
        }
        Semigroup { order, table, deleted: None, stops: false }
    });
    let mut all = Vec::new();
    for plain in tables.filter(Semigroup::is_associative) {
        all.push(Semigroup { stops: true, ..plain.clone() });
        for d in (0..order).filter(|&d| plain.is_left_identity(d)) {
            all.push(Semigroup { deleted: Some(d), ..plain.clone() });
            all.push(Semigroup { deleted: Some(d), stops: true, ..plain.clone() });
        }
        all.push(plain);
    }
    all
}

/// Every op that can be written or composed over the values {0, .., n-1}, normalized.
fn ops(rules: &FoldRules, order: u8) -> Vec<OpBuf> {
    let mut ops = vec![OpBuf::from_op(Op::Delete)];
    for v in 0..order {
        ops.extend([Op::Set(&[v]), Op::Insert(&[v]), Op::Fold(&[v])].map(OpBuf::from_op));
        ops.extend((0..order).map(|m| OpBuf::from_op(Op::InsertFold { absent: &[v], present: &[m] })));
    }
    for op in &mut ops {
        let kind = rules.normalize(b"k", op.kind, &op.payload);
        if kind == OpKind::Delete {
            op.payload.clear();
        }
        op.kind = kind;
        let both_branches_stop = |m: &[u8]| op.payload == [1, m[0], m[0]] && rules.short_circuits(b"k", m);
        if op.kind == OpKind::InsertFold && both_branches_stop(&[op.payload[2]]) {
            *op = OpBuf::from_op(Op::Set(&[op.payload[2]])); // how composing would have written it
        }
    }
    ops.dedup();
    ops
}

/// Composes into a list: one op, or two where it declined.
pub(crate) fn compose_lists(rules: &FoldRules, older: &[OpBuf], newer: &[OpBuf]) -> Vec<OpBuf> {
    let (Some(last), Some(first)) = (older.last(), newer.first()) else {
        return [older, newer].concat();
    };
    let mut out = OpBuf::default();
    let middle = match rules.compose(b"k", last.op().unwrap(), first.op().unwrap(), &mut out) {
        Composed::Older => last.clone(),
        Composed::Newer(kind) => {
            OpBuf { kind, payload: if kind == OpKind::Delete { vec![] } else { first.payload.clone() } }
        }
        Composed::Out => out,
        Composed::Both(_) => return [older, newer].concat(),
    };
    let (head, tail) = (&older[..older.len() - 1], &newer[1..]);
    compose_lists(rules, &compose_lists(rules, head, &[middle]), tail)
}

fn run(rules: &FoldRules, ops: &[OpBuf], start: Option<u8>) -> Option<Vec<u8>> {
    let mut state = start.map(|x| vec![x]).filter(|x| !rules.is_deleted(b"k", x));
    for op in ops {
        rules.apply(b"k", &mut state, op.op().unwrap()).unwrap();
    }
    state
}

fn starts(order: u8) -> impl Iterator<Item = Option<u8>> {
    std::iter::once(None).chain((0..order).map(Some))
}

#[test]
fn composing_two_ops_means_applying_both_for_all_small_semigroups() {
    for order in 1..=3 {
        for semigroup in semigroups(order) {
            let rules = FoldRules::new(Arc::new(semigroup.clone()));
            let ops = ops(&rules, order);
            for f in &ops {
                for g in &ops {
                    let one_by_one = [f.clone(), g.clone()];
                    let composed = compose_lists(&rules, &one_by_one[..1], &one_by_one[1..]);
                    for start in starts(order) {
                        assert_eq!(
                            run(&rules, &composed, start),
                            run(&rules, &one_by_one, start),
                            "{semigroup:?}: {f:?} then {g:?} on {start:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn composing_is_associative_to_the_byte_for_all_small_semigroups_without_delete() {
    for order in 1..=3 {
        for semigroup in semigroups(order).into_iter().filter(|s| s.deleted.is_none()) {
            let rules = FoldRules::new(Arc::new(semigroup));
            let ops = ops(&rules, order);
            for f in &ops {
                for g in &ops {
                    let fg = compose_lists(&rules, std::slice::from_ref(f), std::slice::from_ref(g));
                    for h in &ops {
                        let h = std::slice::from_ref(h);
                        let gh = compose_lists(&rules, std::slice::from_ref(g), h);
                        let left = compose_lists(&rules, &fg, h);
                        assert_eq!(left, compose_lists(&rules, std::slice::from_ref(f), &gh));
                        assert_eq!(left.len(), 1, "nothing declines without a delete predicate");
                    }
                }
            }
        }
    }
}

/// Folds a sequence by a random bracketing.
fn bracket(rules: &FoldRules, ops: &[OpBuf], cuts: &mut dyn Iterator<Item = usize>) -> Vec<OpBuf> {
    if ops.len() < 2 {
        return ops.to_vec();
    }
    let cut = 1 + cuts.next().unwrap_or(0) % (ops.len() - 1);
    let older = bracket(rules, &ops[..cut], cuts);
    let newer = bracket(rules, &ops[cut..], cuts);
    compose_lists(rules, &older, &newer)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_bracketing_of_a_history_means_the_same(
        pick: usize,
        history in proptest::collection::vec(any::<usize>(), 1..10),
        cuts in proptest::collection::vec(any::<usize>(), 20),
    ) {
        thread_local!(static ALL: Vec<Semigroup> = semigroups(3));
        let semigroup = ALL.with(|all| all[pick % all.len()].clone());
        let rules = FoldRules::new(Arc::new(semigroup));
        let ops = ops(&rules, 3);
        let history: Vec<OpBuf> = history.iter().map(|&index| ops[index % ops.len()].clone()).collect();
        let folded = bracket(&rules, &history, &mut cuts.into_iter());
        for start in starts(3) {
            prop_assert_eq!(run(&rules, &folded, start), run(&rules, &history, start));
        }
    }
}

/// Sums bytes; fails over 200, panics on 255.
struct Touchy;
impl Fold for Touchy {
    fn spec(&self) -> String {
        "touchy".into()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        match earlier[0].checked_add(later[0]) {
            None => panic!("too large"),
            Some(sum) if sum > 200 => Err(FoldFailure::new("over 200")),
            Some(0) => Ok(Outcome::Delete),
            Some(sum) if later[0] == 0 => {
                assert_eq!(sum, earlier[0]);
                Ok(Outcome::KeepEarlier)
            }
            Some(_) if earlier[0] == 0 => Ok(Outcome::KeepLater),
            Some(sum) => {
                out.push(sum);
                Ok(Outcome::Value)
            }
        }
    }
}

#[test]
fn failures_and_panics_of_a_fold_decline_and_lose_nothing() {
    let rules = FoldRules::new(Arc::new(Touchy));
    let mut out = OpBuf::default();
    let failed = rules.compose(b"k", Op::Fold(&[150]), Op::Fold(&[100]), &mut out);
    assert_eq!(failed, Composed::Both(Decline::Failed(FoldFailure::new("over 200"))));
    let Composed::Both(Decline::Failed(panicked)) =
        rules.compose(b"k", Op::Fold(&[255]), Op::Fold(&[100]), &mut out)
    else {
        panic!("a panicking fold must decline")
    };
    assert!(panicked.to_string().contains("too large"));
}

#[test]
fn outcomes_of_a_fold_keep_and_delete() {
    let rules = FoldRules::new(Arc::new(Touchy));
    let mut out = OpBuf::default();
    let mut compose = |older, newer| rules.compose(b"k", older, newer, &mut out);
    assert_eq!(compose(Op::Fold(&[7]), Op::Fold(&[0])), Composed::Older);
    assert_eq!(compose(Op::Fold(&[0]), Op::Fold(&[7])), Composed::Out);
    assert_eq!(compose(Op::Fold(&[0]), Op::Fold(&[0])), Composed::Newer(OpKind::Delete));
    assert_eq!(compose(Op::Insert(&[0]), Op::Fold(&[0])), Composed::Both(Decline::NoNormalForm));
    assert_eq!(compose(Op::Set(&[0]), Op::InsertFold { absent: &[9], present: &[7] }), Composed::Out);
    assert_eq!(out, OpBuf::from_op(Op::Set(&[7])));
}

#[test]
fn a_missing_fold_keeps_operands_separate_and_still_lets_sets_win() {
    let rules = FoldRules::missing("mine", 3);
    let mut out = OpBuf::default();
    assert_eq!(
        rules.compose(b"k", Op::Fold(&[1]), Op::Fold(&[2]), &mut out),
        Composed::Both(Decline::FoldMissing)
    );
    assert_eq!(rules.compose(b"k", Op::Fold(&[1]), Op::Set(&[2]), &mut out), Composed::Newer(OpKind::Set));
}

#[test]
fn what_hugedb_drafted_is_mended() {
    let sum = Semigroup { order: 3, table: vec![0, 1, 2, 1, 2, 0, 2, 0, 1], deleted: None, stops: false };
    let rules = FoldRules::new(Arc::new(sum));
    let list = |ops: &[Op<'_>]| {
        let ops: Vec<OpBuf> = ops.iter().map(|&op| OpBuf::from_op(op)).collect();
        compose_lists(&rules, &ops[..1], &ops[1..])
    };
    // An insert under a delta needs no look at older records.
    assert_eq!(
        list(&[Op::Insert(&[1]), Op::Fold(&[1])]),
        [OpBuf::from_op(Op::InsertFold { absent: &[2], present: &[1] })]
    );
    // A delete followed by an insert hides what was there before.
    assert_eq!(list(&[Op::Delete, Op::Insert(&[1])]), [OpBuf::from_op(Op::Set(&[1]))]);
    // A delete followed by a delta is the delta.
    assert_eq!(list(&[Op::Delete, Op::Fold(&[2])]), [OpBuf::from_op(Op::Set(&[2]))]);
}
