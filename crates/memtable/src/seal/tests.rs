//! Sealing: what is folded, what stays separate, and in which order folding calls the user's
//! function.

use std::sync::Arc;

use folddb_base::{OpKind, Record};
use folddb_rules::{Fold, FoldFailure, Outcome};

use super::*;
use crate::tail::Appender;

/// Joins; refuses to join a `!` on its left to anything.
struct Join;

impl Fold for Join {
    fn spec(&self) -> String {
        "join".to_owned()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        if earlier.ends_with(b"!") {
            return Err(FoldFailure::new("!"));
        }
        out.extend_from_slice(earlier);
        out.extend_from_slice(later);
        Ok(Outcome::Value)
    }
}

/// Seals a script such as `a+1 a=2 b- a+3`, with seqs from 1, and prints the chunk.
fn sealed(script: &str, boundaries: &[Seq]) -> String {
    let mut tail = Appender::default();
    for (word, seq) in script.split_whitespace().zip(1..) {
        let (key, op) = word.split_at(1);
        let (op, payload) = op.split_at(1);
        let kind = match op {
            "-" => OpKind::Delete,
            "=" => OpKind::Set,
            "?" => OpKind::Insert,
            _ => OpKind::Fold,
        };
        tail.push(Record { key: key.as_bytes(), seq, kind, payload: payload.as_bytes() });
    }
    let rules = FoldRules::new(Arc::new(Join));
    let mut scratch = SealScratch::default();
    let chunk = seal_tail(&KeyOrder::Bytewise, &rules, boundaries, tail.tail(), &mut scratch);
    let print = |entry: &Entry| {
        let record = chunk.record(entry);
        let (key, payload) = (String::from_utf8_lossy(record.key), String::from_utf8_lossy(record.payload));
        format!("{key}@{} {:?} {payload}", record.seq, record.kind).trim_end().to_owned()
    };
    chunk.entries.iter().map(print).collect::<Vec<_>>().join(", ")
}

#[test]
fn equal_keys_fold_in_the_order_in_which_they_came() {
    assert_eq!(sealed("b+1 a+1 a+2 b+2 a+3", &[]), "a@5 Fold 123, b@4 Fold 12");
    assert_eq!(sealed("a+1 a+2 a+3 a+4 a+5 a+6 a+7", &[]), "a@7 Fold 1234567");
}

#[test]
fn nothing_older_than_an_absorbing_op_stays() {
    assert_eq!(sealed("a+1 a=2 a+3 a+4", &[]), "a@4 Set 234");
    assert_eq!(sealed("a+1 a+2 a-", &[]), "a@3 Delete");
    assert_eq!(sealed("a=1 a- a?2", &[]), "a@3 Set 2");
}

#[test]
fn no_boundary_is_crossed() {
    assert_eq!(sealed("a+1 a+2 a+3 a+4", &[2]), "a@4 Fold 34, a@2 Fold 12");
    assert_eq!(sealed("a+1 a+2 a+3 a=4", &[1, 3]), "a@4 Set 4, a@3 Fold 23, a@1 Fold 1");
    assert_eq!(sealed("a+1 a+2 a+3 a+4", &[0, 4, 9]), "a@4 Fold 1234");
}

#[test]
fn what_declines_stays_side_by_side() {
    assert_eq!(sealed("a+1 a+! a+3 a+4", &[]), "a@4 Fold 34, a@2 Fold 1!");
    assert_eq!(sealed("a+! a+! a+! a+1 a+2", &[]), "a@5 Fold 12, a@3 Fold !, a@2 Fold !, a@1 Fold !");
}

#[test]
fn stripes_are_counted_by_boundaries_below() {
    assert_eq!([1, 2, 3, 4].map(|seq| stripe_of(&[2, 3], seq)), [0, 0, 1, 2]);
    assert_eq!(stripe_of(&[], 7), 0);
}

#[test]
fn folding_a_long_chain_copies_little() {
    let mut tail = Appender::default();
    for seq in 1..=4096 {
        tail.push(Record { key: b"hot", seq, kind: OpKind::Fold, payload: &[seq as u8 | 0x80; 8] });
    }
    let rules = FoldRules::new(Arc::new(Join));
    let mut scratch = SealScratch::default();
    let chunk = seal_tail(&KeyOrder::Bytewise, &rules, &[], tail.tail(), &mut scratch);
    let expected: Vec<u8> = (1..=4096u64).flat_map(|seq| [seq as u8 | 0x80; 8]).collect();
    assert!(chunk.record(&chunk.entries[0]).payload == expected);
    assert_eq!(chunk.len(), 1);
    let kept = scratch.bytes();
    assert!(kept < 400 << 10, "long values are not kept in the scratch: {kept} bytes");
}
