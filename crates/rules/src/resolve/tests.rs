use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::fold::{Fold, FoldFailure, Outcome};
use crate::folds::append::Append;
use folddb_base::{Pointer, ValuePlace};

/// Concatenates; fails when an operand starts with `!`, so that some histories decline.
struct Concat;
impl Fold for Concat {
    fn spec(&self) -> String {
        "concat".into()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        if earlier.starts_with(b"!") {
            return Err(FoldFailure::new("starts with !"));
        }
        out.extend_from_slice(earlier);
        out.extend_from_slice(later);
        Ok(Outcome::Value)
    }
    fn is_deleted(&self, _: &[u8], value: &[u8]) -> bool {
        value.is_empty()
    }
    fn has_delete(&self) -> bool {
        true
    }
}

fn op() -> impl Strategy<Value = OpBuf> {
    let value =
        proptest::collection::vec(prop_oneof![5 => Just(b'a'), 5 => Just(b'b'), 1 => Just(b'!')], 0..3);
    (0u8..4, value).prop_map(|(kind, value)| match kind {
        0 => OpBuf::from_op(Op::Delete),
        1 if value.is_empty() => OpBuf::from_op(Op::Delete),
        1 => OpBuf::from_op(Op::Set(&value)),
        2 => OpBuf::from_op(Op::Insert(&value)),
        _ => OpBuf::from_op(Op::Fold(&value)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Both ways of feeding give the result of applying one by one, and so does stopping early.
    #[test]
    fn newest_first_and_oldest_first_agree_with_one_by_one(
        mut history in proptest::collection::vec(op(), 0..8),
        are_long in any::<bool>(),
    ) {
        if are_long {
            let longer = |op: &mut OpBuf| op.payload = op.payload.iter().flat_map(|byte| [*byte; 2000]).collect();
            history.iter_mut().for_each(longer);
        }
        let rules = FoldRules::new(Arc::new(Concat));
        let mut state = None;
        let applied = history.iter().try_for_each(|op| rules.apply(b"k", &mut state, op.op().unwrap()));

        let mut newest_first = Resolver::new();
        for op in history.iter().rev() {
            if newest_first.feed_older(&rules, b"k", op.kind, &op.payload).unwrap() {
                break;
            }
        }
        let mut oldest_first = Resolver::new();
        for op in &history {
            oldest_first.feed_newer(&rules, b"k", op.kind, &op.payload).unwrap();
        }
        let mirrored = oldest_first.finish(&rules, b"k").map(|value| value.map(<[u8]>::to_vec));
        if applied.is_ok() {
            prop_assert_eq!(newest_first.finish(&rules, b"k").unwrap(), state.as_deref());
            prop_assert_eq!(mirrored.unwrap(), state);
        } else if let Ok(value) = newest_first.finish(&rules, b"k") {
            // A failure below an absorbing op is never met.
            prop_assert_eq!(value.map(<[u8]>::to_vec), mirrored.unwrap());
        }
    }
}

#[test]
fn a_thousand_operands_leave_one_op() {
    let rules = FoldRules::new(Arc::new(Concat));
    let mut resolver = Resolver::new();
    for _ in 0..1000 {
        assert!(!resolver.feed_older(&rules, b"k", OpKind::Fold, b"x").unwrap());
    }
    assert_eq!(resolver.operands().len(), 1);
    assert_eq!(resolver.visited(), 1000);
    assert_eq!(resolver.finish(&rules, b"k").unwrap().unwrap().len(), 1000);
}

#[test]
fn long_operands_are_composed_with_their_like() {
    let rules = FoldRules::new(Arc::new(Concat));
    let mut resolver = Resolver::new();
    let mut expected = Vec::new();
    for number in 0..3000u32 {
        let operand = [b'a' + (number % 26) as u8; 100];
        expected.splice(0..0, operand);
        assert!(!resolver.feed_older(&rules, b"k", OpKind::Fold, &operand).unwrap());
        assert!(resolver.operands().len() <= 16, "they wait for as many as are as long");
    }
    resolver.settle(&rules, b"k").unwrap();
    assert_eq!(resolver.operands().len(), 1);
    assert_eq!(resolver.finish(&rules, b"k").unwrap(), Some(&expected[..]));
}

/// Concatenates, and counts the bytes that it writes.
#[derive(Default)]
struct Counted(std::sync::atomic::AtomicUsize);
impl Fold for Counted {
    fn spec(&self) -> String {
        "counted".into()
    }
    fn fold(
        &self,
        key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        self.0.fetch_add(earlier.len() + later.len(), std::sync::atomic::Ordering::Relaxed);
        Concat.fold(key, earlier, later, out)
    }
}

#[test]
fn what_is_copied_of_many_operands_grows_little_faster_than_they_do() {
    const OPERANDS: usize = 20_000;
    let operand = [b'x'; 72];
    for oldest_first in [false, true] {
        let counted = Arc::new(Counted::default());
        let (rules, mut resolver) = (FoldRules::new(Arc::clone(&counted) as _), Resolver::new());
        for _ in 0..OPERANDS {
            if oldest_first {
                resolver.feed_newer(&rules, b"k", OpKind::Fold, &operand).unwrap();
            } else {
                resolver.feed_older(&rules, b"k", OpKind::Fold, &operand).unwrap();
            }
        }
        assert_eq!(resolver.finish(&rules, b"k").unwrap().unwrap().len(), OPERANDS * 72);
        let copied = counted.0.load(std::sync::atomic::Ordering::Relaxed);
        assert!(copied < OPERANDS * 72 * 32, "{copied} bytes, oldest first: {oldest_first}");
    }
}

/// Concatenates, always.
struct Joined;
impl Fold for Joined {
    fn spec(&self) -> String {
        "joined".into()
    }
    fn fold(&self, _: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.extend_from_slice(a);
        out.extend_from_slice(b);
        Ok(Outcome::Value)
    }
}

/// The same op with its value separated: the pointer's unit is the index of the value in the
/// history.
fn separated(op: &OpBuf, at: usize) -> OpBuf {
    let kind = match op.kind {
        OpKind::Set => OpKind::SetSeparated,
        OpKind::Insert => OpKind::InsertSeparated,
        _ => return op.clone(),
    };
    let place = ValuePlace { segment: 1, unit: at as u32 };
    let mut payload = Vec::new();
    Pointer { place, time_ms: 0, hash: 0, len: op.payload.len() as u64, head: &[] }.put(&mut payload);
    OpBuf { kind, payload }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Which values are separated makes no difference to what is read, in either direction; and a
    /// value is loaded before the state is known only if something was folded onto it.
    #[test]
    fn separated_values_give_what_inline_ones_do(
        mut history in proptest::collection::vec((op(), any::<bool>()), 0..8),
    ) {
        // Without a delete rule, the fold takes any value.
        history.iter_mut().for_each(|(op, _)| if op.kind == OpKind::Fold { op.payload.push(b'f') });
        let rules = FoldRules::new(Arc::new(Joined));
        let mut state = None;
        for (op, _) in &history {
            prop_assert!(rules.apply(b"k", &mut state, op.op().unwrap()).is_ok());
        }
        let stored: Vec<OpBuf> =
            history.iter().enumerate().map(|(at, (op, is_separated))| if *is_separated { separated(op, at) } else { op.clone() }).collect();
        let value = |pointer: &[u8]| history[Pointer::decode(pointer).unwrap().place.unit as usize].0.payload.clone();
        for is_newest_first in [true, false] {
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
            resolver.load(&rules, b"k", |pointer, out| {
                out.extend_from_slice(&value(pointer));
                Ok::<(), ()>(())
            }).unwrap();
            let found = match resolver.state(&rules, b"k").unwrap() {
                None => None,
                Some(State::Value(found)) => Some(found.to_vec()),
                Some(State::Separated(pointer)) => Some(value(pointer)),
            };
            prop_assert_eq!(found, state.clone());
        }
    }
}

/// Concatenates; fails if a side contains `!`, in any bracketing of the operands.
struct Brittle;
impl Fold for Brittle {
    fn spec(&self) -> String {
        "brittle".into()
    }
    fn fold(&self, _: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        if a.contains(&b'!') || b.contains(&b'!') {
            return Err(FoldFailure::new("contains !"));
        }
        out.extend_from_slice(a);
        out.extend_from_slice(b);
        Ok(Outcome::Value)
    }
}

/// What a key has if values expire, computed naively: a value or a failure, and until when.
#[derive(Clone, Debug, PartialEq)]
enum Lasting {
    Value(Vec<u8>, u64),
    Failed(u64),
}

fn lasting_on(state: Option<Lasting>, (kind, value): (OpKind, &[u8]), stamp: Stamp) -> Option<Lasting> {
    let until = stamp.deadline_ms;
    let met = state.filter(|state| {
        let (Lasting::Value(_, until) | Lasting::Failed(until)) = state;
        *until > stamp.write_ms
    });
    match (kind, met) {
        (OpKind::Delete, _) => None,
        (OpKind::Insert, Some(met)) => Some(met),
        (OpKind::Fold, Some(Lasting::Failed(_))) => Some(Lasting::Failed(until)),
        (OpKind::Fold, Some(Lasting::Value(met, _))) => {
            let folded = [&met[..], value].concat();
            Some(if folded.contains(&b'!') { Lasting::Failed(until) } else { Lasting::Value(folded, until) })
        }
        _ => Some(Lasting::Value(value.to_vec(), until)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// A state on which the fold has failed lasts as long as a value would: what is written after
    /// its deadline meets nothing, and is read.
    #[test]
    fn a_failed_fold_lasts_until_its_deadline_and_no_longer(
        history in proptest::collection::vec((op(), 0u64..6, 1u64..9), 0..8),
        read_after_ms in 0u64..10,
    ) {
        let rules = FoldRules::new(Arc::new(Brittle)).with_stamps(true);
        let (mut now_ms, mut state, mut ops) = (100, None, Vec::new());
        for (op, after_ms, lasts_ms) in &history {
            now_ms += after_ms;
            let stamp = Stamp { write_ms: now_ms, deadline_ms: now_ms + lasts_ms };
            state = lasting_on(state, (op.kind, &op.payload), stamp);
            let payload = match op.kind {
                OpKind::Delete => Vec::new(),
                _ => [&stamp.bytes()[..], &op.payload].concat(),
            };
            ops.push(OpBuf { kind: op.kind, payload });
        }
        now_ms += read_after_ms;
        let expected = match state {
            Some(Lasting::Value(value, until)) if until > now_ms => Ok(Some(value)),
            Some(Lasting::Failed(until)) if until > now_ms => Err(()),
            _ => Ok(None),
        };
        for is_newest_first in [true, false] {
            let mut resolver = Resolver::new();
            resolver.read_at(now_ms);
            if is_newest_first {
                for op in ops.iter().rev() {
                    if resolver.feed_older(&rules, b"k", op.kind, &op.payload).unwrap() {
                        break;
                    }
                }
            } else {
                ops.iter().for_each(|op| resolver.feed_newer(&rules, b"k", op.kind, &op.payload).unwrap());
            }
            let found = resolver.finish(&rules, b"k").map(|found| found.map(<[u8]>::to_vec)).map_err(drop);
            prop_assert_eq!(&found, &expected, "newest first: {}", is_newest_first);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Values that are concatenated at once, at the end, are those that are folded one by one.
    #[test]
    fn concatenated_at_once_is_folded_one_by_one(
        history in proptest::collection::vec((op(), 0usize..3), 0..12),
        separator in prop::sample::select(vec!["", ", "]),
        has_delete in prop::bool::weighted(0.2),
    ) {
        let mut rules = FoldRules::new(Arc::new(Append { separator: separator.into() }));
        if has_delete && separator.is_empty() {
            rules = rules.with_delete(Arc::new(|_, value: &[u8]| value.is_empty()));
        }
        let longer = |(op, length): &(OpBuf, usize)| {
            let payload: Vec<u8> =
                op.payload.iter().flat_map(|byte| [*byte].repeat([1, 900, 2000][*length])).collect();
            let kind = rules.normalize(b"k", op.kind, &payload);
            OpBuf { kind, payload: if kind == OpKind::Delete { Vec::new() } else { payload } }
        };
        let history: Vec<OpBuf> = history.iter().map(longer).collect();
        let mut state = None;
        for op in &history {
            prop_assert!(rules.apply(b"k", &mut state, op.op().unwrap()).is_ok());
        }
        let mut resolver = Resolver::new();
        for round in 0..2 {
            resolver.clear();
            for op in history.iter().rev() {
                if resolver.feed_older(&rules, b"k", op.kind, &op.payload).unwrap() {
                    break;
                }
            }
            prop_assert_eq!(resolver.finish(&rules, b"k").unwrap(), state.as_deref(), "round {}", round);
        }
    }
}

#[test]
fn what_is_concatenated_is_copied_once_up_to_the_longest_record() {
    let rules = FoldRules::new(Arc::new(Append { separator: b";".to_vec() }));
    let mut resolver = Resolver::new();
    let operand = vec![b'x'; FOLDED_BYTES_MAX / 5];
    for _ in 0..7 {
        assert!(!resolver.feed_older(&rules, b"k", OpKind::Fold, &operand).unwrap());
    }
    assert_eq!(resolver.operands().len(), 7, "they wait");
    resolver.settle(&rules, b"k").unwrap();
    let lengths: Vec<usize> = resolver.operands().iter().map(|op| op.payload.len()).collect();
    let len = operand.len();
    assert_eq!(lengths, [4 * len + 3, 3 * len + 2], "newest first; five with their separators are too long");
    assert_eq!(resolver.finish(&rules, b"k").unwrap().unwrap().len(), 7 * len + 6);
}
