//! The algebra of ops without stamps: the table of `algebra.rs`, branch by branch.

use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb_base::rope::ROPE_BYTES_MAX;
use folddb_base::{Op, OpBuf, OpKind};

use super::fold_rules::{Composed, Decline, FoldRules, Product};

#[inline]
fn put_word(kind: OpKind, word: u64, out: &mut OpBuf) -> Composed {
    out.kind = kind;
    out.payload.clear();
    out.payload.extend_from_slice(&word.to_le_bytes());
    Composed::Out
}

impl FoldRules {
    /// As [`FoldRules::compose`], for ops without stamps.
    pub(crate) fn compose_plain(
        &self,
        key: &[u8],
        older: Op<'_>,
        newer: Op<'_>,
        out: &mut OpBuf,
    ) -> Composed {
        let older = match older {
            Op::Set(v) if self.is_deleted(key, v) => Op::Delete,
            other => other,
        };
        match (older, newer) {
            (_, Op::Delete) => Composed::Newer(OpKind::Delete),
            (_, Op::Set(_)) => Composed::Newer(OpKind::Set),

            (Op::Delete, Op::Insert(w) | Op::Fold(w)) => Composed::Newer(self.normalize_set(key, w)),
            (Op::Delete, Op::InsertFold { absent, .. }) => {
                out.assign(Op::Set(absent));
                self.settle_set(key, out);
                Composed::Out
            }

            (Op::Set(_), Op::Insert(_)) => Composed::Older,
            (Op::Set(v), Op::Fold(n) | Op::InsertFold { present: n, .. }) => {
                self.compose_onto_set(key, v, n, out)
            }

            // A state that these reach may count as deleted, which an `Insert` would see.
            (_, Op::Insert(_) | Op::InsertFold { .. }) if self.has_delete => {
                Composed::Both(Decline::NoNormalForm)
            }
            (_, Op::Insert(_)) => Composed::Older,

            (Op::Insert(v), Op::Fold(n) | Op::InsertFold { present: n, .. }) => {
                self.compose_onto_insert(key, v, n, out)
            }
            (Op::Fold(m), Op::Fold(n) | Op::InsertFold { present: n, .. }) => {
                self.compose_operands(key, m, n, out)
            }
            (Op::InsertFold { absent, present }, Op::Fold(n) | Op::InsertFold { present: n, .. }) => {
                self.compose_onto_insert_fold(key, absent, present, n, out)
            }
            (Op::SetSeparated(_) | Op::InsertSeparated(_) | Op::FoldSeparated(_), _)
            | (_, Op::SetSeparated(_) | Op::InsertSeparated(_) | Op::FoldSeparated(_)) => {
                self.compose_separated(older, newer, out)
            }
        }
    }

    /// Composes two ops if the value of either is separated. No value is examined.
    #[cold]
    fn compose_separated(&self, older: Op<'_>, newer: Op<'_>, out: &mut OpBuf) -> Composed {
        match (older, newer) {
            (_, Op::Delete) => Composed::Newer(OpKind::Delete),
            (_, Op::Set(_)) => Composed::Newer(OpKind::Set),
            (_, Op::SetSeparated(_)) | (Op::Delete, Op::InsertSeparated(_) | Op::FoldSeparated(_)) => {
                Composed::Newer(OpKind::SetSeparated)
            }
            (Op::Set(_) | Op::SetSeparated(_), Op::Insert(_) | Op::InsertSeparated(_)) => Composed::Older,
            (_, Op::Insert(_) | Op::InsertSeparated(_)) if self.has_delete => {
                Composed::Both(Decline::NoNormalForm)
            }
            (_, Op::Insert(_) | Op::InsertSeparated(_)) => Composed::Older,
            (_, Op::Fold(_) | Op::FoldSeparated(_) | Op::InsertFold { .. }) => {
                let joined =
                    self.joins.as_ref().and_then(|joins| joins.join(older, newer, ROPE_BYTES_MAX, out));
                if joined.is_some() { Composed::Out } else { Composed::Both(Decline::Separated) }
            }
        }
    }

    /// Two operands that are words as one, and its kind: without a call that may panic.
    #[inline]
    fn compose_words(&self, earlier: &[u8], later: &[u8]) -> Option<(OpKind, u64)> {
        let words = self.words.as_ref()?;
        let total = words.of(earlier, later)?;
        Some((words.kind_of(total), total))
    }

    /// `Set v` then `Fold n`: `Set v·n`.
    fn compose_onto_set(&self, key: &[u8], v: &[u8], n: &[u8], out: &mut OpBuf) -> Composed {
        if let Some((_, total)) = self.compose_words(v, n) {
            return put_word(OpKind::Set, total, out);
        }
        match self.product(key, v, n, &mut out.payload) {
            Err(decline) => Composed::Both(decline),
            Ok(Product::Earlier) => Composed::Older,
            Ok(Product::Deleted) => Composed::Newer(OpKind::Delete),
            Ok(product) => {
                product.settle_later(n, &mut out.payload);
                self.settle_set(key, out);
                Composed::Out
            }
        }
    }

    /// `Fold m` then `Fold n`: `Fold m·n`, or `Set m·n` if that short-circuits.
    fn compose_operands(&self, key: &[u8], m: &[u8], n: &[u8], out: &mut OpBuf) -> Composed {
        if let Some((kind, total)) = self.compose_words(m, n) {
            return put_word(kind, total, out);
        }
        match self.product(key, m, n, &mut out.payload) {
            Err(decline) => Composed::Both(decline),
            Ok(Product::Earlier) => Composed::Older,
            Ok(Product::Deleted) => Composed::Newer(OpKind::Delete),
            Ok(product) => {
                product.settle_later(n, &mut out.payload);
                out.kind = self.normalize(key, OpKind::Fold, &out.payload);
                if out.kind == OpKind::Delete {
                    out.payload.clear();
                }
                Composed::Out
            }
        }
    }

    /// `Insert v` then `Fold n`: `InsertFold v·n n`.
    fn compose_onto_insert(&self, key: &[u8], v: &[u8], n: &[u8], out: &mut OpBuf) -> Composed {
        let mut absent = Vec::new();
        match self.product(key, v, n, &mut absent) {
            Err(decline) => Composed::Both(decline),
            Ok(Product::Deleted) => Composed::Both(Decline::NoNormalForm),
            Ok(product) => {
                self.settle_insert_fold(key, product.bytes(v, n, &absent), n, out);
                Composed::Out
            }
        }
    }

    /// `InsertFold a m` then `Fold n`: `InsertFold a·n m·n`.
    fn compose_onto_insert_fold(
        &self,
        key: &[u8],
        a: &[u8],
        m: &[u8],
        n: &[u8],
        out: &mut OpBuf,
    ) -> Composed {
        let (mut absent, mut present) = (Vec::new(), Vec::new());
        let products = (self.product(key, a, n, &mut absent), self.product(key, m, n, &mut present));
        match products {
            (Err(decline), _) | (_, Err(decline)) => Composed::Both(decline),
            (Ok(Product::Deleted), Ok(Product::Deleted)) => Composed::Newer(OpKind::Delete),
            (Ok(Product::Deleted), _) | (_, Ok(Product::Deleted)) => Composed::Both(Decline::NoNormalForm),
            (Ok(on_absent), Ok(on_present)) => {
                let (a, m) = (on_absent.bytes(a, n, &absent), on_present.bytes(m, n, &present));
                self.settle_insert_fold(key, a, m, out);
                Composed::Out
            }
        }
    }

    /// The output buffer holds a complete state: a `Set`, or a `Delete` if the table says so.
    fn settle_set(&self, key: &[u8], out: &mut OpBuf) {
        out.kind = self.normalize_set(key, &out.payload);
        if out.kind == OpKind::Delete {
            out.payload.clear();
        }
    }

    /// `InsertFold a m`; but if m short-circuits, both branches are m, which is `Set m`.
    fn settle_insert_fold(&self, key: &[u8], a: &[u8], m: &[u8], out: &mut OpBuf) {
        if a == m && self.short_circuits(key, m) {
            out.assign(Op::Set(m));
            self.settle_set(key, out);
        } else {
            out.assign(Op::InsertFold { absent: a, present: m });
        }
    }

    /// As [`FoldRules::apply`], for an op and a value without stamps: users see both like this,
    /// even if records have stamps.
    ///
    /// # Errors
    /// As [`FoldRules::apply`].
    pub fn apply_unstamped(
        &self,
        key: &[u8],
        state: &mut Option<Vec<u8>>,
        op: Op<'_>,
    ) -> Result<(), Decline> {
        let present = match (state.as_deref(), op) {
            (None, op) => {
                *state = self.value_at_bottom(key, op)?;
                return Ok(());
            }
            (Some(_), Op::Insert(_) | Op::InsertSeparated(_)) => return Ok(()),
            (Some(_), Op::FoldSeparated(_)) => return Err(Decline::Separated),
            (Some(_), Op::Delete) => {
                *state = None;
                return Ok(());
            }
            (Some(_), Op::Set(_) | Op::SetSeparated(_)) => {
                *state = self.value_at_bottom(key, op)?;
                return Ok(());
            }
            (Some(x), Op::Fold(m) | Op::InsertFold { present: m, .. }) => {
                let mut out = Vec::new();
                match self.product(key, x, m, &mut out)? {
                    Product::Deleted => None,
                    product => Some(product.bytes(x, m, &out).to_vec()),
                }
            }
        };
        *state = present.filter(|value| !self.is_deleted(key, value));
        Ok(())
    }

    /// Operands of at most `bytes_max` bytes each that fold to this value when they are written one
    /// after the other, the first as a `Set`: see [`Fold::pieces`](crate::fold::Fold::pieces). They
    /// have been folded to check that.
    pub fn pieces(&self, key: &[u8], value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let fold = self.fold.as_ref()?;
        let pieces = catch_unwind(AssertUnwindSafe(|| fold.pieces(value, bytes_max))).ok()??;
        let mut state = None;
        for (index, piece) in pieces.iter().enumerate() {
            let kind = if index == 0 { OpKind::Set } else { OpKind::Fold };
            let op = match self.normalize(key, kind, piece) {
                _ if piece.len() > bytes_max => return None,
                OpKind::Delete => Op::Delete,
                OpKind::Set => Op::Set(piece),
                _ => Op::Fold(piece),
            };
            self.apply_unstamped(key, &mut state, op).ok()?;
        }
        (state.as_deref() == Some(value)).then_some(pieces)
    }
}
