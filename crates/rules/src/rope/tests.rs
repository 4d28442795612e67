use std::sync::Arc;

use folddb_base::{Piece, Pointer, ValuePlace};
use proptest::prelude::*;

use super::*;
use crate::resolve::Resolver;
use crate::{Composed, FoldRules, State, folds};

const HEAD_BYTES: usize = 5;

fn rules() -> FoldRules {
    FoldRules::new(folds::parse("append:,").unwrap()).with_head_bytes(Some(HEAD_BYTES))
}

/// The op with its value separated, at the unit that is its index in the history.
fn separated(op: &OpBuf, at: usize) -> OpBuf {
    let kind = match op.kind {
        OpKind::Set => OpKind::SetSeparated,
        OpKind::Insert => OpKind::InsertSeparated,
        OpKind::Fold => OpKind::FoldSeparated,
        other => return OpBuf { kind: other, payload: op.payload.clone() },
    };
    let place = ValuePlace { segment: 1, unit: at as u32 };
    let head = &op.payload[..op.payload.len().min(HEAD_BYTES)];
    let mut payload = Vec::new();
    let time_ms = 1000 + at as u64 % 3;
    Pointer { place, time_ms, hash: at as u32, len: op.payload.len() as u64, head }.put(&mut payload);
    OpBuf { kind, payload }
}

fn value_of(rope: &[u8], history: &[OpBuf]) -> Vec<u8> {
    let rope = Rope::decode(rope).unwrap();
    let mut value = Vec::new();
    for piece in rope.iter() {
        match piece {
            Piece::Inline(bytes) => value.extend_from_slice(bytes),
            Piece::Separated { place, .. } => value.extend_from_slice(&history[place.unit as usize].payload),
        }
    }
    assert_eq!(rope.len, value.len() as u64);
    assert_eq!(rope.head, &value[..value.len().min(HEAD_BYTES)]);
    value
}

fn history() -> impl Strategy<Value = Vec<(OpBuf, bool)>> {
    let op = (0..12_u8, proptest::collection::vec(any::<u8>(), 0..9), any::<bool>()).prop_map(
        |(kind, payload, is_separated)| match kind {
            _ if is_separated && payload.is_empty() => (OpBuf { kind: OpKind::Fold, payload }, false),
            0 => (OpBuf { kind: OpKind::Delete, payload: Vec::new() }, false),
            1 => (OpBuf { kind: OpKind::Set, payload }, is_separated),
            2 => (OpBuf { kind: OpKind::Insert, payload }, is_separated),
            _ => (OpBuf { kind: OpKind::Fold, payload }, is_separated),
        },
    );
    proptest::collection::vec(op, 1..9)
}

/// Composes neighbors in the order that `picks` says, as far as they compose. Returns what is
/// left, oldest first.
fn merged(rules: &FoldRules, mut ops: Vec<OpBuf>, picks: &[usize]) -> Vec<OpBuf> {
    let mut declined = Vec::new();
    for &pick in picks.iter().cycle().take(200) {
        let open: Vec<usize> = (1..ops.len()).filter(|at| !declined.contains(at)).collect();
        let Some(&at) = open.get(pick % open.len().max(1)) else { break };
        let mut out = OpBuf::default();
        let newer = ops[at].clone();
        let one = match rules.compose(b"k", ops[at - 1].op().unwrap(), newer.op().unwrap(), &mut out) {
            Composed::Both(_) => {
                declined.push(at);
                continue;
            }
            Composed::Older => ops[at - 1].clone(),
            Composed::Newer(OpKind::Delete) => OpBuf::default(),
            Composed::Newer(kind) => OpBuf { kind, payload: newer.payload },
            Composed::Out => out,
        };
        ops[at - 1] = one;
        ops.remove(at);
        declined.clear();
    }
    ops
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// No matter what is separated, and how ops were composed before, a reader sees the result of
    /// applying them one by one, and loads nothing unless an insert is in the way.
    #[test]
    fn a_reader_sees_the_operands_one_after_the_other(
        history in history(),
        picks in proptest::collection::vec(any::<usize>(), 1..12),
        is_newest_first in any::<bool>(),
    ) {
        let rules = rules();
        let (ops, _): (Vec<OpBuf>, Vec<bool>) = history.iter().cloned().unzip();
        let mut state = None;
        ops.iter().for_each(|op| rules.apply(b"k", &mut state, op.op().unwrap()).unwrap());
        let stored: Vec<OpBuf> = history
            .iter()
            .enumerate()
            .map(|(at, (op, is_separated))| if *is_separated { separated(op, at) } else { op.clone() })
            .collect();
        let stored = merged(&rules, stored, &picks);
        let mut resolver = Resolver::new();
        if is_newest_first {
            for op in stored.iter().rev() {
                if resolver.feed_older(&rules, b"k", op.kind, &op.payload).unwrap() {
                    break;
                }
            }
        } else {
            stored.iter().for_each(|op| resolver.feed_newer(&rules, b"k", op.kind, &op.payload).unwrap());
        }
        let mut loaded = 0;
        resolver.load(&rules, b"k", |rope, out| {
            out.extend_from_slice(&value_of(rope, &ops));
            loaded += 1;
            Ok::<(), ()>(())
        }).unwrap();
        let found = resolver.state(&rules, b"k").unwrap().map(|state| match state {
            State::Value(value) => value.to_vec(),
            State::Separated(rope) => value_of(rope, &ops),
        });
        prop_assert_eq!(found, state);
        prop_assert!(loaded == 0 || ops.iter().any(|op| op.kind == OpKind::Insert));
    }

    /// Operands without an insert become one op, and the same bytes in whatever order they are
    /// merged.
    #[test]
    fn joining_is_associative_to_the_byte(
        history in history(),
        picks in proptest::collection::vec(any::<usize>(), 1..12),
        other_picks in proptest::collection::vec(any::<usize>(), 1..12),
    ) {
        let rules = rules();
        let stored: Vec<OpBuf> = history
            .iter()
            .filter(|(op, _)| op.kind != OpKind::Insert)
            .enumerate()
            .map(|(at, (op, is_separated))| if *is_separated { separated(op, at) } else { op.clone() })
            .collect();
        prop_assume!(!stored.is_empty());
        let one = merged(&rules, stored.clone(), &picks);
        prop_assert_eq!(one.len(), 1);
        prop_assert_eq!(one, merged(&rules, stored, &other_picks));
    }
}

#[test]
fn ropes_that_would_be_too_long_stay_two_and_readers_join_them() {
    let rules = rules();
    let piece = |unit: u32| separated(&OpBuf { kind: OpKind::Fold, payload: vec![b'x'; 40] }, unit as usize);
    let mut ops = vec![piece(0)];
    for unit in 1..12_000 {
        let (newest, next) = (ops.last().unwrap().clone(), piece(unit));
        let mut out = OpBuf::default();
        match rules.compose(b"k", newest.op().unwrap(), next.op().unwrap(), &mut out) {
            Composed::Out => *ops.last_mut().unwrap() = out,
            Composed::Both(_) => ops.push(next),
            other => panic!("{other:?}"),
        }
    }
    assert!(
        (2..6).contains(&ops.len()) && ops.iter().all(|op| op.payload.len() <= 64 << 10),
        "{}",
        ops.len()
    );
    let mut resolver = Resolver::new();
    for op in ops.iter().rev() {
        resolver.feed_older(&rules, b"k", op.kind, &op.payload).unwrap();
    }
    resolver.load(&rules, b"k", |_, _| Err(())).expect("nothing is loaded");
    let Some(State::Separated(rope)) = resolver.state(&rules, b"k").unwrap() else {
        panic!("it is separated")
    };
    assert_eq!(Rope::decode(rope).unwrap().len, 12_000 * 41 - 1);
    assert_eq!(Rope::decode(rope).unwrap().pointers().count(), 12_000);
}

#[test]
fn values_whose_head_is_not_their_beginning_are_not_joined() {
    let rules = FoldRules::new(folds::parse("append").unwrap()).with_head_bytes(None);
    let one = separated(&OpBuf { kind: OpKind::Fold, payload: vec![1; 9] }, 0);
    let composed = rules.compose(b"k", one.op().unwrap(), one.op().unwrap(), &mut OpBuf::default());
    assert!(matches!(composed, Composed::Both(_)) && rules.joins().is_none());
    assert!(FoldRules::new(Arc::clone(folds::parse("set").as_ref().unwrap())).joins().is_none());
}
