//! Joining separated values, for folds that write one operand after the other: then their pieces
//! are in one list, and no body is read or written.
//!
//! ```text
//!   SetSeparated p, FoldSeparated q    SetSeparated  p sep q
//!   Set v, FoldSeparated q             SetSeparated  v sep q     v and the separator, inline
//!   FoldSeparated p, Fold m            FoldSeparated p sep m
//! ```
//!
//! An `Insert` with a later operand stays side by side with it, until what is before it is known.
//! So do two ropes that would be longer together than composing may make one: readers join them, to
//! any length.
//!
//! The head of a joined value is known if the rules say that it is the beginning: the head of a
//! shorter value is all of it, and the next piece continues it. Other heads would be unknown; such
//! tables join nothing.
//!
//! Called by `algebra` and `resolve`, only where a value is separated.

use folddb_base::{Op, OpBuf, OpKind, Rope, RopeBuilder};

/// How the values of a table are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joins {
    separator: Vec<u8>,
    /// This many bytes of the beginning are the head.
    head_bytes: usize,
}

/// A rope under way.
#[derive(Default)]
struct Joined {
    pieces: RopeBuilder,
    time_ms: u64,
    head: Vec<u8>,
    is_begun: bool,
}

impl Joins {
    pub(crate) fn with(separator: &[u8]) -> Joins {
        Joins { separator: separator.to_vec(), head_bytes: 0 }
    }

    pub(crate) fn with_head_bytes(self, head_bytes: usize) -> Joins {
        Joins { head_bytes, ..self }
    }

    /// Composes "first the older, then the newer", where at least one of the two is separated. None
    /// if they stay two ops.
    pub(crate) fn join(&self, older: Op<'_>, newer: Op<'_>, bytes_max: usize, out: &mut OpBuf) -> Option<()> {
        let kind = joined_kind(older)?;
        let mut joined = Joined::default();
        self.add(older, &mut joined)?;
        self.add(newer, &mut joined)?;
        if joined.pieces.encoded_bytes() + joined.head.len() > bytes_max {
            return None;
        }
        put(joined, kind, out);
        Some(())
    }

    /// Composes all these ops, oldest first, where at least one is separated. None if they cannot
    /// be joined.
    pub(crate) fn join_all(&self, ops: &[Op<'_>], out: &mut OpBuf) -> Option<()> {
        // A reader has found everything, so nothing older exists and an insert is a set.
        let kind = match ops.first()? {
            Op::Insert(_) | Op::InsertSeparated(_) => OpKind::SetSeparated,
            older => joined_kind(*older)?,
        };
        let mut joined = Joined::default();
        ops.iter().try_for_each(|op| self.add(*op, &mut joined))?;
        put(joined, kind, out);
        Some(())
    }

    /// Appends the value of an op.
    fn add(&self, op: Op<'_>, joined: &mut Joined) -> Option<()> {
        let is_first = !std::mem::replace(&mut joined.is_begun, true); // it may be empty
        match op {
            Op::Set(_) | Op::SetSeparated(_) | Op::Insert(_) | Op::InsertSeparated(_) if !is_first => {
                return None;
            }
            _ if is_first => {}
            _ => self.add_bytes(&self.separator, joined),
        }
        match op {
            Op::Set(v) | Op::Insert(v) | Op::Fold(v) | Op::InsertFold { present: v, .. } => {
                self.add_bytes(v, joined);
            }
            Op::SetSeparated(rope) | Op::InsertSeparated(rope) | Op::FoldSeparated(rope) => {
                let rope = Rope::decode(rope).ok()?;
                self.add_head(rope.head, joined);
                rope.iter().for_each(|piece| joined.pieces.push(piece));
                joined.time_ms = joined.time_ms.max(rope.time_ms);
            }
            Op::Delete => return None,
        }
        Some(())
    }

    fn add_bytes(&self, bytes: &[u8], joined: &mut Joined) {
        self.add_head(bytes, joined);
        joined.pieces.push_inline(bytes);
    }

    /// Continues the head, which is the whole value as long as it is short.
    fn add_head(&self, next: &[u8], joined: &mut Joined) {
        if joined.head.len() as u64 == joined.pieces.len() {
            let room = self.head_bytes.saturating_sub(joined.head.len());
            joined.head.extend_from_slice(&next[..next.len().min(room)]);
        }
    }
}

/// What an op becomes when an operand is joined to it.
fn joined_kind(older: Op<'_>) -> Option<OpKind> {
    match older {
        Op::Set(_) | Op::SetSeparated(_) => Some(OpKind::SetSeparated),
        Op::Fold(_) | Op::FoldSeparated(_) => Some(OpKind::FoldSeparated),
        Op::Delete | Op::Insert(_) | Op::InsertSeparated(_) | Op::InsertFold { .. } => None,
    }
}

fn put(joined: Joined, kind: OpKind, out: &mut OpBuf) {
    out.kind = kind;
    out.payload.clear();
    joined.pieces.put(joined.time_ms, &joined.head, &mut out.payload);
}

#[cfg(test)]
#[path = "rope/tests.rs"]
mod tests;
