//! Folds many records of one key: neighbors of equal weight first, like a binary counter.
//!
//! If n values that grow (lists, sets) are folded one after the other, about n² bytes are copied;
//! this copies about n log n. The fold is associative, so the result is the same. Two records that
//! decline to compose both stay.
//!
//! ```text
//!   stack, oldest first, after seven records:   [4][2][1]     the eighth carries all the way: [8]
//! ```

use folddb_base::{Op, OpBuf, OpKind, Seq};
use folddb_rules::{Composed, FoldRules};

use crate::packed::Place;

/// A record on its way into a chunk: which arena it is in, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) prefix: u64,
    pub(crate) seq: Seq,
    pub(crate) source: u32,
    pub(crate) offset: u32,
}

/// The result of folding some neighboring records of one key.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) seq: Seq,
    pub(crate) kind: OpKind,
    weight: u32,
    /// Arena and offset of its payload, unless it was composed.
    placed: Option<(u32, u32)>,
    composed: OpBuf,
}

/// Weight of a partial that has declined: `push` composes nothing more with it.
const DECLINED: u32 = u32::MAX;

/// A buffer longer than this many bytes is not kept for the next key.
const KEPT_BYTES_MAX: usize = 64 << 10;

impl Partial {
    fn empty() -> Partial {
        Partial { seq: 0, kind: OpKind::Delete, weight: 0, placed: None, composed: OpBuf::default() }
    }

    /// Its payload.
    #[inline]
    pub(crate) fn payload<'a>(&'a self, arenas: &[&'a [u8]]) -> &'a [u8] {
        match self.placed {
            _ if self.kind == OpKind::Delete => &[],
            None => &self.composed.payload,
            Some((source, offset)) => {
                let arena = arenas[source as usize];
                Place::at(arena, offset).payload(arena)
            }
        }
    }

    /// Its op; none if the payload is invalid for its kind. Such a record composes with nothing.
    #[inline]
    fn op<'a>(&'a self, arenas: &[&'a [u8]]) -> Option<Op<'a>> {
        Op::from_parts(self.kind, self.payload(arenas)).ok()
    }
}

/// See the module. Its buffers are kept from key to key.
#[derive(Debug, Default)]
pub(crate) struct FoldStack {
    /// Oldest first. Those from `used` on are free, kept for their buffers.
    partials: Vec<Partial>,
    used: usize,
    out: OpBuf,
}

impl FoldStack {
    /// Takes the next newer record, and composes neighbors of equal weight.
    pub(crate) fn push(&mut self, rules: &FoldRules, arenas: &[&[u8]], key: &[u8], record: &Incoming) {
        if self.used == self.partials.len() {
            self.partials.push(Partial::empty());
        }
        let partial = &mut self.partials[self.used];
        partial.seq = record.seq;
        partial.kind = Place::at(arenas[record.source as usize], record.offset).kind();
        partial.weight = 0;
        partial.placed = Some((record.source, record.offset));
        self.used += 1;
        while self.carry(rules, arenas, key) {}
    }

    /// Composes the two newest if they weigh the same. False when there is nothing more to carry.
    fn carry(&mut self, rules: &FoldRules, arenas: &[&[u8]], key: &[u8]) -> bool {
        let [.., older, newer] = &self.partials[..self.used] else { return false };
        if older.weight != newer.weight || older.weight == DECLINED {
            return false;
        }
        let composed = self.compose_newest(rules, arenas, key);
        if !composed {
            self.partials[self.used - 2].weight = DECLINED;
        }
        composed
    }

    /// Composes what can still be composed, then takes out the newest partial and returns it; none
    /// if there are no more.
    pub(crate) fn pop(&mut self, rules: &FoldRules, arenas: &[&[u8]], key: &[u8]) -> Option<&Partial> {
        while self.compose_newest(rules, arenas, key) {}
        self.used = self.used.checked_sub(1)?;
        Some(&self.partials[self.used])
    }

    /// Composes the two newest partials into one. False if they decline: then nothing changes.
    fn compose_newest(&mut self, rules: &FoldRules, arenas: &[&[u8]], key: &[u8]) -> bool {
        let [.., older, newer] = &mut self.partials[..self.used] else { return false };
        let (Some(first), Some(second)) = (older.op(arenas), newer.op(arenas)) else { return false };
        let composed = rules.compose(key, first, second, &mut self.out);
        let (seq, weight) = (newer.seq, older.weight.max(newer.weight).saturating_add(1));
        match composed {
            Composed::Both(_) => return false,
            Composed::Older => {}
            Composed::Newer(kind) => {
                std::mem::swap(older, newer);
                older.kind = kind;
            }
            Composed::Out => {
                std::mem::swap(&mut older.composed, &mut self.out);
                (older.kind, older.placed) = (older.composed.kind, None);
            }
        }
        (older.seq, older.weight) = (seq, weight);
        self.used -= 1;
        true
    }

    /// Frees the memory of long values.
    pub(crate) fn trim(&mut self) {
        let buffers = self.partials.iter_mut().map(|partial| &mut partial.composed);
        for buffer in buffers.chain([&mut self.out]) {
            if buffer.payload.capacity() > KEPT_BYTES_MAX {
                *buffer = OpBuf::default();
            }
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let buffers: usize = self.partials.iter().map(|partial| partial.composed.payload.capacity()).sum();
        self.partials.capacity() * size_of::<Partial>() + buffers + self.out.payload.capacity()
    }
}
