//! The algebra of values that expire: as `algebra.rs`, for values that last until a deadline.
//!
//! A state is a value and its deadline. An op is written at a time w and brings a deadline e;
//! whether the state that it meets has expired is decided *when the op is written*: a state with a
//! deadline that is not after w is absent for it. The result of a fold has the deadline of the
//! fold, so each fold extends the life of the value; an insert that meets a value leaves it and its
//! deadline alone.
//!
//! ```text
//!   older, deadline e1, not after w2     as if the older were a Delete
//!   Set v,  w1 e1     Fold n, w2 e2      Set v·n,  w1 e2
//!   Fold m, w1 e1     Fold n, w2 e2      Fold m·n, w1 e2        the first write time, the last deadline
//!   Set, Fold         Insert             the older
//!   Insert            Insert, Fold       decline: what the older leaves may have any deadline
//! ```
//!
//! So there is never an `InsertFold`. Composing reads no clock: a state stays a state after its
//! deadline, until it is written or read. Called if the rules say that records have stamps.

use folddb_base::{Op, OpBuf, OpKind, Stamp};

use super::fold_rules::{Composed, Decline, FoldRules};

impl FoldRules {
    /// As [`FoldRules::compose`], for ops with stamps.
    #[cold]
    pub(crate) fn compose_stamped(
        &self,
        key: &[u8],
        older: Op<'_>,
        newer: Op<'_>,
        out: &mut OpBuf,
    ) -> Composed {
        if newer.kind().absorbs() {
            return Composed::Newer(newer.kind());
        }
        let (Ok((older_stamp, older)), Ok((newer_stamp, newer))) = (Stamp::take(older), Stamp::take(newer))
        else {
            return Composed::Both(Decline::NoNormalForm);
        };
        let Some(newer_stamp) = newer_stamp else { return Composed::Newer(OpKind::Delete) };
        let Some(older_stamp) = older_stamp else { return self.on_absent(key, newer) };
        match older {
            // The state that it leaves may be even older, with a deadline of its own.
            Op::Insert(_) | Op::InsertSeparated(_) => return Composed::Both(Decline::NoNormalForm),
            Op::Set(v) if self.is_deleted(key, v) => return self.on_absent(key, newer),
            _ if older_stamp.is_over_at(newer_stamp.write_ms) => return self.on_absent(key, newer),
            _ => {}
        }
        let composed = self.compose_plain(key, older, newer, out);
        if !matches!(newer, Op::Fold(_)) {
            return composed;
        }
        let kept = match (composed, older) {
            (Composed::Out, _) => None,
            (Composed::Older, Op::Set(v) | Op::Fold(v)) => Some((older.kind(), v)),
            (other, _) => return other,
        };
        if let Some((kind, value)) = kept {
            out.kind = kind;
            out.payload.clear();
            out.payload.extend_from_slice(value);
        }
        if out.kind != OpKind::Delete {
            let stamp = Stamp { write_ms: older_stamp.write_ms, deadline_ms: newer_stamp.deadline_ms };
            out.payload.splice(..0, stamp.bytes());
        }
        Composed::Out
    }

    /// The result of an op on an absent key: its payload, with its stamp.
    fn on_absent(&self, key: &[u8], newer: Op<'_>) -> Composed {
        match newer {
            Op::Insert(value) | Op::Fold(value) if self.is_deleted(key, value) => {
                Composed::Newer(OpKind::Delete)
            }
            Op::Insert(_) | Op::Fold(_) => Composed::Newer(OpKind::Set),
            Op::InsertSeparated(_) => Composed::Newer(OpKind::SetSeparated),
            _ => Composed::Both(Decline::NoNormalForm),
        }
    }

    /// As [`FoldRules::apply`], for an op with a stamp and a state with one.
    pub(crate) fn apply_stamped(
        &self,
        key: &[u8],
        state: &mut Option<Vec<u8>>,
        op: Op<'_>,
    ) -> Result<(), Decline> {
        let no_stamp = |_| Decline::NoNormalForm; // cannot happen: every op was checked when it was fed
        let (stamp, op) = Stamp::take(op).map_err(no_stamp)?;
        let Some(stamp) = stamp else {
            *state = None;
            return Ok(());
        };
        let met = match state.as_deref().map(Stamp::split).transpose().map_err(no_stamp)? {
            Some((met, _)) if met.is_over_at(stamp.write_ms) => None,
            met => met,
        };
        let (mut value, mut write_ms) = (met.map(|(_, value)| value.to_vec()), stamp.write_ms);
        match (met, op) {
            (Some(_), Op::Insert(_) | Op::InsertSeparated(_)) => return Ok(()),
            (Some((met, _)), Op::Fold(_)) => write_ms = met.write_ms,
            _ => {}
        }
        self.apply_unstamped(key, &mut value, op)?;
        let stamp = Stamp { write_ms, ..stamp };
        *state = value.map(|value| [&stamp.bytes()[..], &value].concat());
        Ok(())
    }
}

#[cfg(test)]
#[path = "expiry/tests.rs"]
mod tests;
