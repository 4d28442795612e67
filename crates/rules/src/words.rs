//! Folds of numbers of eight bytes, as functions of words.
//!
//! Most hot keys are counters and extremes. Folding two of them is one instruction; what costs is
//! everything around it: two calls that may panic, an output buffer, a copy of the payload. A
//! [`WordFold`] is the fold without these. [`WordOps`] folds all ops of a key in a register, as
//! long as all their values are words: scans use it before they ask a resolver (`resolve.rs`),
//! which gives the same value.

use folddb_base::OpKind;

/// A fold of numbers of eight bytes.
#[derive(Clone, Copy, Debug)]
pub struct WordFold {
    /// Of the earlier and the later number, as they are stored: little-endian.
    pub fold: fn(u64, u64) -> u64,
    /// The number with which the fold short-circuits, if there is one.
    pub strongest: Option<u64>,
}

impl WordFold {
    /// Two values of eight bytes as one; none if one of them has another length.
    #[inline]
    pub(crate) fn of(&self, earlier: &[u8], later: &[u8]) -> Option<u64> {
        Some((self.fold)(word_of(earlier)?, word_of(later)?))
    }

    /// The kind of the op that folding an operand onto another one gives.
    #[inline]
    pub(crate) fn kind_of(&self, total: u64) -> OpKind {
        if self.strongest == Some(total) { OpKind::Set } else { OpKind::Fold }
    }
}

#[inline]
fn word_of(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_le_bytes)
}

/// What became of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// It was folded in.
    Folded,
    /// The same, and nothing that comes after it matters.
    Enough,
    /// It is no op on words that this can fold. Nothing has changed.
    Refused,
}

/// The ops of one key so far, as one op: a `Set` or a `Fold`.
#[derive(Clone, Copy, Debug)]
pub struct WordOps {
    words: WordFold,
    held: Option<(OpKind, u64)>,
}

impl WordOps {
    /// Of a key without ops so far, in a table without a rule of its own that deletes values.
    #[inline]
    pub fn new(words: WordFold) -> WordOps {
        WordOps { words, held: None }
    }

    /// What the ops are together; none if there was none.
    #[inline]
    pub fn held(&self) -> Option<(OpKind, [u8; 8])> {
        self.held.map(|(kind, word)| (kind, word.to_le_bytes()))
    }

    /// Takes the next *older* op.
    #[inline]
    pub fn take_older(&mut self, kind: OpKind, payload: &[u8]) -> Took {
        match (kind, word_of(payload), self.held) {
            (OpKind::Set, Some(older), None) => self.hold(OpKind::Set, older, Took::Enough),
            (OpKind::Fold, Some(older), None) => self.hold(OpKind::Fold, older, Took::Folded),
            (OpKind::Set, Some(older), Some((_, newer))) => {
                self.hold(OpKind::Set, (self.words.fold)(older, newer), Took::Enough)
            }
            (OpKind::Fold, Some(older), Some((_, newer))) => {
                let total = (self.words.fold)(older, newer);
                match self.words.kind_of(total) {
                    OpKind::Set => self.hold(OpKind::Set, total, Took::Enough),
                    kind => self.hold(kind, total, Took::Folded),
                }
            }
            (OpKind::Delete, _, Some((_, newer))) if payload.is_empty() => {
                self.hold(OpKind::Set, newer, Took::Enough)
            }
            _ => Took::Refused,
        }
    }

    /// Takes the next *newer* op.
    #[inline]
    pub fn take_newer(&mut self, kind: OpKind, payload: &[u8]) -> Took {
        match (kind, word_of(payload), self.held) {
            (OpKind::Set, Some(newer), _) => self.hold(OpKind::Set, newer, Took::Folded),
            (OpKind::Fold, Some(newer), None) => self.hold(OpKind::Fold, newer, Took::Folded),
            (OpKind::Fold, Some(newer), Some((OpKind::Set, older))) => {
                self.hold(OpKind::Set, (self.words.fold)(older, newer), Took::Folded)
            }
            (OpKind::Fold, Some(newer), Some((_, older))) => {
                let total = (self.words.fold)(older, newer);
                self.hold(self.words.kind_of(total), total, Took::Folded)
            }
            _ => Took::Refused,
        }
    }

    #[inline]
    fn hold(&mut self, kind: OpKind, word: u64, took: Took) -> Took {
        self.held = Some((kind, word));
        took
    }
}

#[cfg(test)]
#[path = "words/tests.rs"]
mod tests;
