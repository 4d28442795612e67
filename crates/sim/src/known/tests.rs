//! A judgment skipped because of an equal state must not hide a broken promise.

use folddb_base::stamp::NEVER;

use super::*;
use crate::tables::{Kind, Order};

fn write(known: &mut Known, value: u8, durability: Durability) -> Seq {
    let op = ModelOp::Set(vec![value], vec![value]);
    known.written(vec![("t".to_owned(), op, Stamp { write_ms: 1, deadline_ms: NEVER })], durability);
    known.model.last_seq()
}

#[test]
fn a_store_that_stood_before_a_promise_does_not_keep_it() {
    let mut known = Known::default();
    known.model.create_table("t", Shape::small(Kind::Replace, Order::Bytewise));
    let ends = [Durability::Buffered, Durability::Process, Durability::Sync, Durability::Buffered]
        .map(|durability| write(&mut known, 1, durability));
    let stood = |end| Stood { last_seq: end, end, print: 0 };
    assert_eq!(ends.map(|end| known.is_kept_by(&stood(end))), [false, false, true, true]);
    assert!(!known.is_kept_by(&stood(ends[3] + 1)), "no batch ends there");
}

#[test]
fn the_fingerprint_of_a_moment_covers_everything_except_later_writes() {
    let mut known = Known::default();
    known.model.create_table("t", Shape::small(Kind::Replace, Order::Bytewise));
    let first = write(&mut known, 1, Durability::Sync);
    let (before, mut other) = (known.print(first), known.clone());
    write(&mut known, 2, Durability::Sync);
    assert_eq!(known.print(first), before);
    assert_ne!(known.print(first + 1), before);
    other.doubt_dropped("t");
    assert_ne!(other.print(first), before);
}
