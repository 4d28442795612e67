//! From the records of one key to its value.
//!
//! A [`Resolver`] takes the ops of one key, either newest first (a get, a forward scan) or oldest first (a
//! backward scan), composes them as they come, and says when older ones cannot matter any more. It never
//! holds more than one op but for those that declined to compose. Gets, scans and snapshots all use it.

use folddb_base::bytes::Malformed;
use folddb_base::{Op, OpBuf, OpKind};

use crate::algebra::{Composed, Decline, FoldRules};

/// Folds the ops of one key; reused from key to key.
#[derive(Debug, Default)]
pub struct Resolver {
    /// Newest first. One op, unless some declined to compose.
    ops: Vec<OpBuf>,
    used: usize,
    scratch: OpBuf,
    state: Option<Vec<u8>>,
    visited: usize,
}

impl Resolver {
    /// A resolver that has seen nothing.
    pub fn new() -> Resolver {
        Resolver::default()
    }

    /// Forgets the key, keeping the buffers.
    pub fn clear(&mut self) {
        self.used = 0;
        self.visited = 0;
    }

    /// How many ops it was fed since it was cleared.
    pub fn visited(&self) -> usize {
        self.visited
    }

    /// Takes the next *older* op. True when nothing older can matter: stop looking.
    ///
    /// # Errors
    /// When the payload is not one of its kind.
    pub fn feed_older(
        &mut self,
        rules: &FoldRules,
        key: &[u8],
        kind: OpKind,
        payload: &[u8],
    ) -> Result<bool, Malformed> {
        self.visited += 1;
        let older = Op::from_parts(kind, payload)?;
        if self.used == 0 {
            self.push(kind, payload);
            return Ok(kind.absorbs());
        }
        let newer = &mut self.ops[self.used - 1];
        match rules.compose(key, older, newer.op()?, &mut self.scratch) {
            Composed::Newer(kind) => set_kind(newer, kind),
            Composed::Older => newer.assign(older),
            Composed::Out => std::mem::swap(newer, &mut self.scratch),
            Composed::Both(_) => self.push(kind, payload),
        }
        Ok(self.ops[self.used - 1].kind.absorbs())
    }

    /// Takes the next *newer* op.
    ///
    /// # Errors
    /// When the payload is not one of its kind.
    pub fn feed_newer(
        &mut self,
        rules: &FoldRules,
        key: &[u8],
        kind: OpKind,
        payload: &[u8],
    ) -> Result<(), Malformed> {
        self.visited += 1;
        let newer = Op::from_parts(kind, payload)?;
        if self.used == 0 || kind.absorbs() {
            self.used = 0;
            self.push(kind, payload);
            return Ok(());
        }
        let older = &mut self.ops[0];
        match rules.compose(key, older.op()?, newer, &mut self.scratch) {
            Composed::Older => {}
            Composed::Newer(kind) => {
                older.assign(newer);
                set_kind(older, kind);
            }
            Composed::Out => std::mem::swap(older, &mut self.scratch),
            Composed::Both(_) => {
                self.push(kind, payload);
                self.ops[..self.used].rotate_right(1);
            }
        }
        if self.ops[0].kind.absorbs() {
            self.used = 1;
        }
        Ok(())
    }

    fn push(&mut self, kind: OpKind, payload: &[u8]) {
        if self.used == self.ops.len() {
            self.ops.push(OpBuf::default());
        }
        let slot = &mut self.ops[self.used];
        slot.kind = kind;
        slot.payload.clear();
        slot.payload.extend_from_slice(payload);
        self.used += 1;
    }

    /// The value of the key, given that nothing older exists.
    ///
    /// # Errors
    /// When ops that could not be composed cannot be applied one by one either.
    pub fn finish(&mut self, rules: &FoldRules, key: &[u8]) -> Result<Option<&[u8]>, Decline> {
        let damaged = |_| Decline::NoNormalForm; // cannot happen: every op was decoded when it was fed
        match self.used {
            0 => Ok(None),
            1 => Ok(rules.at_bottom(key, self.ops[0].op().map_err(damaged)?)),
            _ => {
                self.state = None;
                for op in self.ops[..self.used].iter().rev() {
                    rules.apply(key, &mut self.state, op.op().map_err(damaged)?)?;
                }
                Ok(self.state.as_deref())
            }
        }
    }

    /// The ops as far as they would compose, newest first: what a reader without the fold gets.
    pub fn operands(&self) -> &[OpBuf] {
        &self.ops[..self.used]
    }
}

fn set_kind(op: &mut OpBuf, kind: OpKind) {
    op.kind = kind;
    if kind == OpKind::Delete {
        op.payload.clear();
    }
}

#[cfg(test)]
#[path = "resolve/tests.rs"]
mod tests;
