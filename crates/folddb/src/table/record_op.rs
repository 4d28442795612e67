//! The effect of a record on its key, for examining the records of a key one by one.

use folddb_base::{Op, OpKind, Rope};
use folddb_rules::FoldRules;

/// The effect of a record on its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordOp {
    /// Sets the value.
    Put(RecordValue),
    /// Sets the value of an absent key.
    PutIfAbsent(RecordValue),
    /// Folds the value onto the present one.
    Fold(RecordValue),
    /// Both in one: sets `absent` if the key is absent, otherwise folds `present` onto its value.
    PutIfAbsentFold {
        /// The value of a key that was absent.
        absent: Vec<u8>,
        /// The operand for a present value.
        present: Vec<u8>,
    },
    /// Makes the key absent.
    Delete,
    /// It cannot be read: its bytes.
    Unreadable(Vec<u8>),
}

/// The value of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordValue {
    /// These bytes, inline.
    Inline(Vec<u8>),
    /// A value in the value log.
    Separated {
        /// Its length in bytes.
        bytes: u64,
        /// How many pieces it has.
        pieces: u32,
        /// Their segments in the value log, ascending.
        segments: Vec<u32>,
        /// The offset of a single piece in its segment, in bytes; none for several.
        offset: Option<u64>,
    },
}

impl RecordOp {
    /// The op of a record as its table stores it.
    pub(crate) fn stored(kind: OpKind, payload: &[u8], fold: &FoldRules) -> RecordOp {
        RecordOp::of(kind, payload, |payload| fold.value_in(payload))
    }

    /// The op of a record whose payload is only its value.
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

    /// The name of the op, as in the API.
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

    /// Its inline values and operands.
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
