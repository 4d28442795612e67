//! Expiry against ops applied one at a time, by a model of its own, over all small semigroups.

use std::sync::Arc;

use folddb_base::stamp::NEVER;
use folddb_base::{Op, OpBuf, OpKind, Stamp};
use proptest::prelude::*;

use crate::algebra::tests::{Semigroup, compose_lists, semigroups};
use crate::algebra::{Composed, Decline, FoldRules, State};
use crate::resolve::Resolver;

const KEY: &[u8] = b"k";

/// An op as a user writes it.
#[derive(Clone, Copy, Debug)]
struct Written {
    kind: OpKind,
    value: u8,
    write_ms: u64,
    deadline_ms: u64,
}

/// The state of a key: a value and its deadline.
type Present = Option<(u8, u64)>;

impl Written {
    fn op(&self, rules: &FoldRules) -> OpBuf {
        let kind = rules.normalize(KEY, self.kind, &[self.value]);
        let stamp = Stamp { write_ms: self.write_ms, deadline_ms: self.deadline_ms };
        let payload =
            if kind == OpKind::Delete { Vec::new() } else { [&stamp.bytes()[..], &[self.value]].concat() };
        OpBuf { kind, payload }
    }

    /// The meaning, computed naively.
    fn on(&self, state: Present, semigroup: &Semigroup) -> Present {
        let met = state.filter(|(_, deadline_ms)| *deadline_ms > self.write_ms);
        let (value, deadline_ms) = match (self.kind, met) {
            (OpKind::Delete, _) => return None,
            (OpKind::Insert, Some(met)) => return Some(met),
            (OpKind::Fold, Some((met, _))) => (semigroup.times(met, self.value), self.deadline_ms),
            _ => (self.value, self.deadline_ms),
        };
        (semigroup.deleted != Some(value)).then_some((value, deadline_ms))
    }
}

fn one_by_one(history: &[Written], start: Present, semigroup: &Semigroup) -> Present {
    history.iter().fold(start, |state, written| written.on(state, semigroup))
}

/// The result of ops on a first state, by the rules.
fn applied(rules: &FoldRules, ops: &[OpBuf], start: Present) -> Present {
    let stamped = |(value, deadline_ms)| [&Stamp { write_ms: 0, deadline_ms }.bytes()[..], &[value]].concat();
    let mut state = start.map(stamped);
    for op in ops {
        rules.apply(KEY, &mut state, op.op().unwrap()).unwrap();
    }
    state.map(|payload| Stamp::split(&payload).map(|(stamp, value)| (value[0], stamp.deadline_ms)).unwrap())
}

fn starts(semigroup: &Semigroup) -> impl Iterator<Item = Present> {
    let values = (0..semigroup.order).filter(|value| semigroup.deleted != Some(*value));
    let deadlines = [2, 4, 6, NEVER];
    let present = values.flat_map(move |value| deadlines.map(|deadline_ms| Some((value, deadline_ms))));
    std::iter::once(None).chain(present.collect::<Vec<_>>())
}

fn bracket(rules: &FoldRules, ops: &[OpBuf], cuts: &mut dyn Iterator<Item = usize>) -> Vec<OpBuf> {
    if ops.len() < 2 {
        return ops.to_vec();
    }
    let cut = 1 + cuts.next().unwrap_or(0) % (ops.len() - 1);
    let older = bracket(rules, &ops[..cut], cuts);
    let newer = bracket(rules, &ops[cut..], cuts);
    compose_lists(rules, &older, &newer)
}

fn rules_of(semigroup: &Semigroup) -> FoldRules {
    FoldRules::new(Arc::new(semigroup.clone())).with_stamps(true)
}

const KINDS: [OpKind; 4] = [OpKind::Set, OpKind::Insert, OpKind::Fold, OpKind::Delete];

#[test]
fn composing_two_ops_means_applying_both_at_all_times() {
    for semigroup in (1..=3).flat_map(semigroups) {
        let rules = rules_of(&semigroup);
        let written = |write_ms: u64| {
            let values = move |kind| (0..semigroup.order).map(move |value| (kind, value));
            let all = KINDS.into_iter().flat_map(values);
            all.flat_map(move |(kind, value)| {
                [2, 4, NEVER].map(|lasts| Written {
                    kind,
                    value,
                    write_ms,
                    deadline_ms: if lasts == NEVER { NEVER } else { write_ms + lasts },
                })
            })
            .collect::<Vec<_>>()
        };
        for f in written(2) {
            for g in [3, 4, 5, 7].into_iter().flat_map(written) {
                let ops = [f.op(&rules), g.op(&rules)];
                let composed = compose_lists(&rules, &ops[..1], &ops[1..]);
                for start in starts(&semigroup) {
                    let expected = one_by_one(&[f, g], start, &semigroup);
                    assert_eq!(applied(&rules, &composed, start), expected, "{f:?} {g:?} on {start:?}");
                }
            }
        }
    }
}

fn written() -> impl Strategy<Value = (usize, u8, u64, u64)> {
    (0..KINDS.len(), 0u8..3, 0u64..4, 0u64..8)
}

fn history_of(drawn: &[(usize, u8, u64, u64)], order: u8) -> Vec<Written> {
    let mut write_ms = 0;
    let one = |&(kind, value, later, lasts): &(usize, u8, u64, u64)| {
        write_ms += later;
        let deadline_ms = if lasts == 7 { NEVER } else { write_ms + lasts };
        Written { kind: KINDS[kind], value: value % order, write_ms, deadline_ms }
    };
    drawn.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn every_bracketing_of_a_history_with_deadlines_means_the_same(
        pick: usize,
        drawn in proptest::collection::vec(written(), 1..10),
        cuts in proptest::collection::vec(any::<usize>(), 20),
    ) {
        thread_local!(static ALL: Vec<Semigroup> = semigroups(3));
        let semigroup = ALL.with(|all| all[pick % all.len()].clone());
        let rules = rules_of(&semigroup);
        let history = history_of(&drawn, semigroup.order);
        let ops: Vec<OpBuf> = history.iter().map(|written| written.op(&rules)).collect();
        let folded = bracket(&rules, &ops, &mut cuts.into_iter());
        for start in starts(&semigroup) {
            let expected = one_by_one(&history, start, &semigroup);
            prop_assert_eq!(applied(&rules, &folded, start), expected, "{:?} on {:?}", history, start);
        }
    }

    #[test]
    fn a_resolver_hides_what_has_expired_when_it_reads(
        pick: usize,
        drawn in proptest::collection::vec(written(), 1..10),
        now_ms in 0u64..40,
        from_the_oldest: bool,
    ) {
        thread_local!(static ALL: Vec<Semigroup> = semigroups(3));
        let semigroup = ALL.with(|all| all[pick % all.len()].clone());
        let rules = rules_of(&semigroup);
        let history = history_of(&drawn, semigroup.order);
        let mut resolver = Resolver::new();
        resolver.read_at(now_ms);
        let ops: Vec<OpBuf> = history.iter().map(|written| written.op(&rules)).collect();
        if from_the_oldest {
            for op in &ops {
                resolver.feed_newer(&rules, KEY, op.kind, &op.payload).unwrap();
            }
        } else {
            for op in ops.iter().rev() {
                if resolver.feed_older(&rules, KEY, op.kind, &op.payload).unwrap() {
                    break;
                }
            }
        }
        let expected = one_by_one(&history, None, &semigroup);
        let value = match resolver.state(&rules, KEY).unwrap() {
            Some(State::Value(value)) => Some(value[0]),
            _ => None,
        };
        prop_assert_eq!(value, expected.filter(|(_, deadline_ms)| *deadline_ms > now_ms).map(|(value, _)| value));
        if let (Some(_), Some((_, deadline_ms))) = (value, expected) {
            prop_assert_eq!(resolver.deadline_ms(), (deadline_ms < NEVER).then_some(deadline_ms));
        }
        prop_assert_eq!(resolver.has_expired(), expected.is_some_and(|(_, deadline_ms)| deadline_ms <= now_ms));
    }
}

#[test]
fn what_is_separated_lets_go_of_its_value_once_it_has_expired() {
    let rules = FoldRules::new(crate::folds::parse("replace").unwrap()).with_stamps(true);
    let mut pointer = Vec::new();
    folddb_base::Pointer { place: Default::default(), time_ms: 5, hash: 0, len: 99, head: b"" }
        .put(&mut pointer);
    pointer.extend_from_slice(&10u64.to_le_bytes());
    let operand = |write_ms| [&Stamp { write_ms, deadline_ms: 50 }.bytes()[..], b"new"].concat();
    let mut out = OpBuf::default();
    let mut onto =
        |write_ms| rules.compose(KEY, Op::SetSeparated(&pointer), Op::Fold(&operand(write_ms)), &mut out);
    assert_eq!(onto(9), Composed::Both(Decline::Separated));
    assert_eq!(onto(10), Composed::Newer(OpKind::Set));

    let mut resolver = Resolver::new();
    resolver.feed_older(&rules, KEY, OpKind::Fold, &operand(9)).unwrap();
    resolver.feed_older(&rules, KEY, OpKind::SetSeparated, &pointer).unwrap();
    let load = |_: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(b"old");
        Ok::<_, ()>(())
    };
    resolver.load(&rules, KEY, load).unwrap();
    assert_eq!(resolver.finish(&rules, KEY), Ok(Some(&b"new"[..])));
    assert_eq!(resolver.deadline_ms(), Some(50));
}

#[test]
fn what_fails_to_fold_lasts_as_long_as_a_value_would() {
    let sum = crate::folds::parse("sum:u64").expect("a fold that comes with it");
    let rules = FoldRules::new(sum).with_stamps(true);
    let stamped =
        |write_ms, deadline_ms, value: &[u8]| [&Stamp { write_ms, deadline_ms }.bytes()[..], value].concat();
    let ops = [
        (OpKind::Set, stamped(1, 50, &7u64.to_le_bytes())),
        (OpKind::Fold, stamped(2, 30, b"no number")),
        (OpKind::Insert, stamped(3, 90, &1u64.to_le_bytes())),
    ];
    let mut resolver = Resolver::new();
    for (now_ms, is_there) in [(29, true), (30, false), (60, false)] {
        resolver.clear();
        resolver.read_at(now_ms);
        for (kind, payload) in ops.iter().rev() {
            resolver.feed_older(&rules, KEY, *kind, payload).expect("an op");
        }
        assert_eq!(resolver.finish(&rules, KEY).is_err(), is_there, "at {now_ms}");
        assert_eq!(resolver.has_expired(), !is_there);
    }
}
