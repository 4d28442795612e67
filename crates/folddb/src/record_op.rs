//! What a record does to its key, for those who look at the records of a key one by one.

use folddb_base::{Op, OpKind, Rope};
use folddb_rules::FoldRules;

/// What a record does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordOp {
    /// The value, whatever was there.
    Put(RecordValue),
    /// The value where nothing was there.
    PutIfAbsent(RecordValue),
    /// The value folded onto what was there.
    Fold(RecordValue),
    /// Both in one: `absent` where nothing was there, else `present` folded onto it.
    PutIfAbsentFold {
        /// The value of a key that was absent.
        absent: Vec<u8>,
        /// What is folded onto a value that was there.
        present: Vec<u8>,
    },
    /// Nothing is there any more.
    Delete,
    /// It cannot be read: its bytes.
    Unreadable(Vec<u8>),
}

/// What a record brings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordValue {
    /// These bytes, beside the key.
    Inline(Vec<u8>),
    /// A value in the value log.
    Separated {
        /// Its length in bytes.
        bytes: u64,
        /// In how many pieces it lies.
        pieces: u32,
        /// The segments of the value log in which they lie, rising.
        segments: Vec<u32>,
        /// Where in its segment the one piece begins, in bytes; none of several.
        offset: Option<u64>,
    },
}

impl RecordOp {
    /// The op of a record as its table stores it.
    pub(crate) fn stored(kind: OpKind, payload: &[u8], fold: &FoldRules) -> RecordOp {
        RecordOp::of(kind, payload, |payload| fold.value_in(payload))
    }

    /// The op of a record whose payload is but its value.
    pub(crate) fn plain(kind: OpKind, payload: &[u8]) -> RecordOp {
        RecordOp::of(kind, payload, |payload| payload)
    }

    fn of(kind: OpKind, payload: &[u8], value_in: impl Fn(&[u8]) -> &[u8]) -> RecordOp {
        let inline = |payload| RecordValue::Inline(value_in(payload).to_vec());
        match Op::from_parts(kind, payload) {
            Ok(Op::Delete) => RecordOp::Delete,
            Ok(Op::Set(payload)) => RecordOp::Put(inline(payload)),
            Ok(Op::Insert(payload)) => RecordOp::PutIfAbsent(inline(payload)),
            Ok(Op::Fold(payload)) => RecordOp::Fold(inline(payload)),
            Ok(Op::InsertFold { absent, present }) => {
                RecordOp::PutIfAbsentFold { absent: absent.to_vec(), present: present.to_vec() }
            }
            Ok(Op::SetSeparated(rope)) => separated(rope, RecordOp::Put),
            Ok(Op::InsertSeparated(rope)) => separated(rope, RecordOp::PutIfAbsent),
            Ok(Op::FoldSeparated(rope)) => separated(rope, RecordOp::Fold),
            Err(_) => RecordOp::Unreadable(payload.to_vec()),
        }
    }

    /// The name of the op, as those who write it know it.
    pub fn name(&self) -> &'static str {
        match self {
            RecordOp::Put(_) => "put",
            RecordOp::PutIfAbsent(_) => "put-if-absent",
            RecordOp::Fold(_) => "fold",
            RecordOp::PutIfAbsentFold { .. } => "put-if-absent, fold",
            RecordOp::Delete => "delete",
            RecordOp::Unreadable(_) => "unreadable",
        }
    }

    /// The values and operands that it brings and that are inline.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        let (first, second) = match self {
            RecordOp::Put(value) | RecordOp::PutIfAbsent(value) | RecordOp::Fold(value) => match value {
                RecordValue::Inline(value) => (Some(value), None),
                RecordValue::Separated { .. } => (None, None),
            },
            RecordOp::PutIfAbsentFold { absent, present } => (Some(absent), Some(present)),
            RecordOp::Delete | RecordOp::Unreadable(_) => (None, None),
        };
        first.into_iter().chain(second).map(Vec::as_slice)
    }
}

fn separated(payload: &[u8], op: impl FnOnce(RecordValue) -> RecordOp) -> RecordOp {
    let Ok(rope) = Rope::decode(payload) else { return RecordOp::Unreadable(payload.to_vec()) };
    let mut segments: Vec<u32> = rope.pointers().map(|pointer| pointer.place.segment).collect();
    segments.sort_unstable();
    segments.dedup();
    let offset = rope.as_pointer().map(|pointer| pointer.place.offset());
    op(RecordValue::Separated { bytes: rope.len, pieces: rope.pieces, segments, offset })
}
