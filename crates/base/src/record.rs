//! A record: one op on one key, with its place in the history.

use crate::bytes::Malformed;
use crate::ids::Seq;
use crate::op::{Op, OpKind};

/// One op on one key, borrowed from its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The user's key, encoded.
    pub key: &'a [u8],
    /// Its place in the history. A record that was folded from several has the newest one's.
    pub seq: Seq,
    /// What it does.
    pub kind: OpKind,
    /// The values of the op, encoded as `op.rs` says.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// A record of `op`; `scratch` holds the payload of an `InsertFold`.
    pub fn new(key: &'a [u8], seq: Seq, op: Op<'a>, scratch: &'a mut Vec<u8>) -> Record<'a> {
        let payload = match op {
            Op::Delete => &[][..],
            Op::Set(v)
            | Op::Insert(v)
            | Op::Fold(v)
            | Op::SetSeparated(v)
            | Op::InsertSeparated(v)
            | Op::FoldSeparated(v) => v,
            Op::InsertFold { .. } => {
                scratch.clear();
                op.put_payload(scratch);
                &scratch[..]
            }
        };
        Record { key, seq, kind: op.kind(), payload }
    }

    /// The op, decoded.
    #[inline]
    pub fn op(&self) -> Result<Op<'a>, Malformed> {
        Op::from_parts(self.kind, self.payload)
    }
}
