//! Ops: what a record does to the value of its key.
//!
//! Every op is a function on states (a value, or absent) with a result on an absent key and an
//! action on a present value x:
//!
//! ```text
//!   op               on absent   on x      stored payload
//!   Delete           absent      absent    (empty)
//!   Set v            v           v         v
//!   Insert v         v           x         v
//!   Fold m           m           x·m       m
//!   InsertFold a m   a           x·m       varint(len a) a m
//!   SetSeparated p       v           v         pointer to v
//!   InsertSeparated p    v           x         pointer to v
//!   FoldSeparated p      m           x·m       pointer to m
//! ```
//!
//! The last three are `Set`, `Insert` and `Fold` with a *separated* value, in the value log: in one
//! piece, see `pointer.rs`, or in several, see `rope.rs`.
//!
//! `folddb-rules` composes two of them; this file only defines their form.

use crate::bytes::{Malformed, Reader, put_slice, varint_len};
use crate::rope::Rope;

/// The kind of an op; its number is stored on disk. Never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// Makes the key absent.
    Delete = 0,
    /// Sets the value, whatever it was.
    Set = 1,
    /// Gives an absent key this value; leaves a present one alone.
    Insert = 2,
    /// Folds this operand onto the value, or makes it the value of an absent key.
    Fold = 3,
    /// The result of composing an `Insert` with a later `Fold`; users do not write it.
    InsertFold = 4,
    /// As `Set`, with its value in the value log. (5 is the range delete of the log.)
    SetSeparated = 6,
    /// As `Insert`, with its value in the value log.
    InsertSeparated = 7,
    /// As `Fold`, with its operand in the value log.
    FoldSeparated = 8,
}

impl OpKind {
    /// The kind with this number.
    #[inline]
    pub fn from_u8(number: u8) -> Result<OpKind, Malformed> {
        Ok(match number {
            0 => OpKind::Delete,
            1 => OpKind::Set,
            2 => OpKind::Insert,
            3 => OpKind::Fold,
            4 => OpKind::InsertFold,
            _ => return OpKind::separated_from_u8(number),
        })
    }

    /// A separate function, so that the kinds with inline values stay a range without a gap.
    #[cold]
    fn separated_from_u8(number: u8) -> Result<OpKind, Malformed> {
        match number {
            6 => Ok(OpKind::SetSeparated),
            7 => Ok(OpKind::InsertSeparated),
            8 => Ok(OpKind::FoldSeparated),
            _ => Err(Malformed::Tag),
        }
    }

    /// True when nothing older than this op can matter: the search for a value stops here.
    #[inline]
    pub fn absorbs(self) -> bool {
        matches!(self, OpKind::Delete | OpKind::Set | OpKind::SetSeparated)
    }

    /// True when its payload points to a value in the value log.
    #[inline]
    pub fn is_separated(self) -> bool {
        matches!(self, OpKind::SetSeparated | OpKind::InsertSeparated | OpKind::FoldSeparated)
    }

    /// The kind of the same op with its value separated, for kinds that have one.
    #[inline]
    pub fn separated(self) -> OpKind {
        match self {
            OpKind::Set => OpKind::SetSeparated,
            OpKind::Insert => OpKind::InsertSeparated,
            OpKind::Fold => OpKind::FoldSeparated,
            other => other,
        }
    }

    /// The kind of the same op with its value in its payload.
    #[inline]
    pub fn inline(self) -> OpKind {
        match self {
            OpKind::SetSeparated => OpKind::Set,
            OpKind::InsertSeparated => OpKind::Insert,
            OpKind::FoldSeparated => OpKind::Fold,
            other => other,
        }
    }
}

/// An op with its values, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// See [`OpKind::Delete`].
    Delete,
    /// See [`OpKind::Set`].
    Set(&'a [u8]),
    /// See [`OpKind::Insert`].
    Insert(&'a [u8]),
    /// See [`OpKind::Fold`].
    Fold(&'a [u8]),
    /// See [`OpKind::InsertFold`].
    InsertFold {
        /// The value on an absent key.
        absent: &'a [u8],
        /// The operand on a present one.
        present: &'a [u8],
    },
    /// See [`OpKind::SetSeparated`].
    SetSeparated(&'a [u8]),
    /// See [`OpKind::InsertSeparated`].
    InsertSeparated(&'a [u8]),
    /// See [`OpKind::FoldSeparated`].
    FoldSeparated(&'a [u8]),
}

impl<'a> Op<'a> {
    /// Decodes an op from its kind and payload.
    #[inline]
    pub fn from_parts(kind: OpKind, payload: &'a [u8]) -> Result<Op<'a>, Malformed> {
        Ok(match kind {
            OpKind::Delete if payload.is_empty() => Op::Delete,
            OpKind::Delete => return Err(Malformed::Bounds),
            OpKind::Set => Op::Set(payload),
            OpKind::Insert => Op::Insert(payload),
            OpKind::Fold => Op::Fold(payload),
            OpKind::InsertFold => {
                let mut reader = Reader::new(payload);
                Op::InsertFold { absent: reader.slice()?, present: reader.rest() }
            }
            separated => {
                check_pointer(payload)?;
                match separated {
                    OpKind::SetSeparated => Op::SetSeparated(payload),
                    OpKind::InsertSeparated => Op::InsertSeparated(payload),
                    _ => Op::FoldSeparated(payload),
                }
            }
        })
    }

    /// True for `SetSeparated`, `InsertSeparated` and `FoldSeparated`.
    #[inline]
    pub fn is_separated(&self) -> bool {
        matches!(self, Op::SetSeparated(_) | Op::InsertSeparated(_) | Op::FoldSeparated(_))
    }

    /// Its kind.
    #[inline]
    pub fn kind(&self) -> OpKind {
        match self {
            Op::Delete => OpKind::Delete,
            Op::Set(_) => OpKind::Set,
            Op::Insert(_) => OpKind::Insert,
            Op::Fold(_) => OpKind::Fold,
            Op::InsertFold { .. } => OpKind::InsertFold,
            Op::SetSeparated(_) => OpKind::SetSeparated,
            Op::InsertSeparated(_) => OpKind::InsertSeparated,
            Op::FoldSeparated(_) => OpKind::FoldSeparated,
        }
    }

    /// Appends the payload.
    #[inline]
    pub fn put_payload(&self, out: &mut Vec<u8>) {
        match *self {
            Op::Delete => {}
            Op::Set(v)
            | Op::Insert(v)
            | Op::Fold(v)
            | Op::SetSeparated(v)
            | Op::InsertSeparated(v)
            | Op::FoldSeparated(v) => {
                out.extend_from_slice(v);
            }
            Op::InsertFold { absent, present } => {
                put_slice(out, absent);
                out.extend_from_slice(present);
            }
        }
    }

    /// Bytes that [`Op::put_payload`] appends.
    #[inline]
    pub fn payload_len(&self) -> usize {
        match *self {
            Op::Delete => 0,
            Op::Set(v)
            | Op::Insert(v)
            | Op::Fold(v)
            | Op::SetSeparated(v)
            | Op::InsertSeparated(v)
            | Op::FoldSeparated(v) => v.len(),
            Op::InsertFold { absent, present } => {
                varint_len(absent.len() as u64) + absent.len() + present.len()
            }
        }
    }
}

/// A separate function, without an op in its result, so that decoding other ops stays short.
#[cold]
fn check_pointer(payload: &[u8]) -> Result<(), Malformed> {
    Rope::decode(payload).map(drop)
}

/// An op that owns its bytes: a kind and an encoded payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpBuf {
    /// The kind of the op.
    pub kind: OpKind,
    /// Its payload, encoded as the table above says.
    pub payload: Vec<u8>,
}

impl Default for OpBuf {
    fn default() -> Self {
        OpBuf { kind: OpKind::Delete, payload: Vec::new() }
    }
}

impl OpBuf {
    /// An owned copy of `op`.
    pub fn from_op(op: Op<'_>) -> OpBuf {
        let mut buf = OpBuf::default();
        buf.assign(op);
        buf
    }

    /// Becomes `op`, and keeps its allocation.
    #[inline]
    pub fn assign(&mut self, op: Op<'_>) {
        self.kind = op.kind();
        self.payload.clear();
        op.put_payload(&mut self.payload);
    }

    /// Borrows the op. An `OpBuf` made outside of this module may hold a payload that is not one.
    #[inline]
    pub fn op(&self) -> Result<Op<'_>, Malformed> {
        Op::from_parts(self.kind, &self.payload)
    }
}
