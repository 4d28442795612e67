//! How two ops on one key become one.
//!
//! Every op is a function on states in the normal form ⟨result on absent | action on a present x⟩ (see
//! `folddb_base::op`), and [`FoldRules::compose`] computes the normal form of "first the older, then the
//! newer". Function composition is associative, so merges may happen in any order, and each branch is made
//! of the same products in another bracketing, so the bytes are the same too:
//!
//! ```text
//!   older \ newer    Delete   Set w   Insert w         Fold n               InsertFold b n
//!   Delete           Delete   Set w   Set w            Set n                Set b
//!   Set v            Delete   Set w   Set v            Set v·n              Set v·n
//!   Insert v         Delete   Set w   Insert v         InsertFold v·n n     InsertFold v·n n
//!   Fold m           Delete   Set w   Fold m           Fold m·n             Fold m·n
//!   InsertFold a m   Delete   Set w   InsertFold a m   InsertFold a·n m·n   InsertFold a·n m·n
//! ```
//!
//! It mends HugeDB's draft of the same idea: an insert under a delta needs no search on disk, a delete
//! followed by an insert does not bring an old value back, and a delete followed by a delta is the delta.
//!
//! `compose` may *decline*: the two ops then stay two records, and whoever reads applies them one by one.
//! It declines when the user's function fails or panics, when the fold is not at hand, next to an
//! `Insert` where a state may turn out to be deleted, and where a fold's `Delete` outcome leaves a function
//! that has no normal form; and where the result would be longer than a record may be, since folding grows values without
//! bound. Nothing is lost by it but space.
//!
//! `SetSeparated`, `InsertSeparated` and `FoldSeparated` compose as `Set`, `Insert` and `Fold` do wherever no value is looked at. Where folding is joining,
//! separated values are joined as lists of pieces, and no value is looked at either (`rope.rs`). Else a later operand has nothing to
//! be folded onto while the value is separated, so these two decline; who reads loads the value and folds. A separated value
//! never counts as deleted: tables that ask values about that keep all of them inline.
//!
//! In tables whose values expire ops have stamps; `expiry.rs` says what these make of the table above.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use folddb_base::limits::FOLDED_BYTES_MAX;
use folddb_base::rope::ROPE_BYTES_MAX;
use folddb_base::{Op, OpBuf, OpKind};

use crate::fold::{Fold, FoldFailure, Outcome};
use crate::rope::Joins;

/// A function of a key and a value that answers yes or no.
pub type Predicate = Arc<dyn Fn(&[u8], &[u8]) -> bool + Send + Sync>;

/// The fold of a table with its short-circuit and delete rules: all that composing needs.
#[derive(Clone)]
pub struct FoldRules {
    fold: Option<Arc<dyn Fold>>,
    spec: String,
    version: u32,
    delete: Option<Predicate>,
    short_circuit: Option<Predicate>,
    has_delete: bool,
    joins: Option<Joins>,
    has_stamps: bool,
}

/// What came of composing two ops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Composed {
    /// The older op stands, as it is.
    Older,
    /// The newer op's payload stands, under this kind (`Delete` has no payload).
    Newer(OpKind),
    /// The result is in the output buffer.
    Out,
    /// Both stay, side by side: declined.
    Both(Decline),
}

/// Why two ops did not become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decline {
    /// By the algebra: the result has no normal form.
    NoNormalForm,
    /// The table's fold is not at hand.
    FoldMissing,
    /// The user's function failed or panicked.
    Failed(FoldFailure),
    /// One of the values lies in the value log.
    Separated,
    /// The result is longer than a record may be: whoever reads folds the two.
    TooLong,
}

/// What a key has, where nothing older exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// This value.
    Value(&'a [u8]),
    /// The value that this pointer leads to.
    Separated(&'a [u8]),
}

impl<'a> State<'a> {
    /// The op that gives any key this state.
    pub fn as_set(self) -> Op<'a> {
        match self {
            State::Value(value) => Op::Set(value),
            State::Separated(pointer) => Op::SetSeparated(pointer),
        }
    }
}

/// A value that folding gave: in the output buffer, one of the two operands, or nothing.
pub(crate) enum Product {
    Out,
    Earlier,
    Later,
    Deleted,
}

impl FoldRules {
    /// The rules of a fold, with the short-circuit and delete laws that it declares itself.
    pub fn new(fold: Arc<dyn Fold>) -> FoldRules {
        let (spec, version, has_delete) = (fold.spec(), fold.version(), fold.has_delete());
        let joins = fold.joins_with().map(Joins::with);
        FoldRules {
            fold: Some(fold),
            spec,
            version,
            delete: None,
            short_circuit: None,
            has_delete,
            joins,
            has_stamps: false,
        }
    }

    /// The rules of a table whose fold is not at hand: operands stay apart.
    pub fn missing(spec: impl Into<String>, version: u32) -> FoldRules {
        let spec = spec.into();
        FoldRules {
            fold: None,
            spec,
            version,
            delete: None,
            short_circuit: None,
            has_delete: false,
            joins: None,
            has_stamps: false,
        }
    }

    /// How separated values are joined, where they can be.
    pub fn joins(&self) -> Option<&Joins> {
        self.joins.as_ref()
    }

    /// Says how many bytes of the beginning of a value are its head; none where its head is something else, and values that lie
    /// apart are not joined.
    pub fn with_head_bytes(mut self, head_bytes: Option<usize>) -> FoldRules {
        self.joins = self.joins.and_then(|joins| Some(joins.with_head_bytes(head_bytes?)));
        self
    }

    /// Adds the table's own delete predicate: a complete state for which it holds is absent.
    pub fn with_delete(mut self, delete: Predicate) -> FoldRules {
        self.delete = Some(delete);
        self.has_delete = true;
        self
    }

    /// Adds the table's own short-circuit: nothing earlier than a value for which it holds matters.
    pub fn with_short_circuit(mut self, short_circuit: Predicate) -> FoldRules {
        self.short_circuit = Some(short_circuit);
        self
    }

    /// The rules of a table whose ops have stamps, or have none. Values with stamps are not joined while they are separated.
    pub fn with_stamps(mut self, has_stamps: bool) -> FoldRules {
        self.has_stamps = has_stamps;
        self.joins = self.joins.filter(|_| !has_stamps);
        self
    }

    /// True when the ops of the table have stamps: its values may expire.
    #[inline]
    pub fn has_stamps(&self) -> bool {
        self.has_stamps
    }

    /// The fold, unless it is missing.
    pub fn fold(&self) -> Option<&Arc<dyn Fold>> {
        self.fold.as_ref()
    }

    /// The spec string or name of the fold, also of a missing one.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The version of the fold.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// True when a complete state may mean that the key is absent.
    pub fn has_delete(&self) -> bool {
        self.has_delete
    }

    /// True when a complete state of `value` means that the key is absent.
    #[inline]
    pub fn is_deleted(&self, key: &[u8], value: &[u8]) -> bool {
        self.has_delete && self.asks_delete(key, value)
    }

    /// True when a complete state with this payload, stamp and all, means that the key is absent.
    #[inline]
    pub fn is_deleted_state(&self, key: &[u8], payload: &[u8]) -> bool {
        self.has_delete && self.asks_delete(key, self.value_in(payload))
    }

    fn asks_delete(&self, key: &[u8], value: &[u8]) -> bool {
        let ask = || {
            self.fold.as_ref().is_some_and(|fold| fold.is_deleted(key, value))
                || self.delete.as_ref().is_some_and(|delete| delete(key, value))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(false)
    }

    fn short_circuits(&self, key: &[u8], value: &[u8]) -> bool {
        let ask = || {
            self.fold.as_ref().is_some_and(|fold| fold.short_circuit(key, value))
                || self.short_circuit.as_ref().is_some_and(|stop| stop(key, value))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(false)
    }

    /// The kind under which an op is written: a `Fold` that short-circuits is a `Set`, a `Set` of a deleted
    /// state a `Delete` (whose payload is then empty). Every op is normalised before it is stored.
    #[inline]
    pub fn normalise(&self, key: &[u8], kind: OpKind, payload: &[u8]) -> OpKind {
        match kind {
            OpKind::Fold if self.short_circuits(key, payload) => self.normalise_set(key, payload),
            OpKind::Set => self.normalise_set(key, payload),
            other => other,
        }
    }

    #[inline]
    fn normalise_set(&self, key: &[u8], value: &[u8]) -> OpKind {
        if self.is_deleted(key, value) { OpKind::Delete } else { OpKind::Set }
    }

    /// Composes two neighbouring ops of one key. On [`Composed::Out`] the result is in `out`, whose former
    /// content is lost either way. Both ops must have been normalised.
    #[inline]
    pub fn compose(&self, key: &[u8], older: Op<'_>, newer: Op<'_>, out: &mut OpBuf) -> Composed {
        let composed = match self.has_stamps {
            false => self.compose_plain(key, older, newer, out),
            true => self.compose_stamped(key, older, newer, out),
        };
        match composed {
            Composed::Out if out.payload.len() > FOLDED_BYTES_MAX => Composed::Both(Decline::TooLong),
            composed => composed,
        }
    }

    /// The same of ops without stamps.
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

            (Op::Delete, Op::Insert(w) | Op::Fold(w)) => Composed::Newer(self.normalise_set(key, w)),
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

    /// Composes where one of the values is separated: no value is looked at.
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

    /// `Set v` then `Fold n`: `Set v·n`.
    fn compose_onto_set(&self, key: &[u8], v: &[u8], n: &[u8], out: &mut OpBuf) -> Composed {
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

    /// `Fold m` then `Fold n`: `Fold m·n`, or `Set m·n` where that short-circuits.
    fn compose_operands(&self, key: &[u8], m: &[u8], n: &[u8], out: &mut OpBuf) -> Composed {
        match self.product(key, m, n, &mut out.payload) {
            Err(decline) => Composed::Both(decline),
            Ok(Product::Earlier) => Composed::Older,
            Ok(Product::Deleted) => Composed::Newer(OpKind::Delete),
            Ok(product) => {
                product.settle_later(n, &mut out.payload);
                out.kind = self.normalise(key, OpKind::Fold, &out.payload);
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

    /// Operands of at most `bytes_max` bytes each that come to this value when they are written one after the other, the first as a
    /// `Set`: see [`Fold::pieces`]. They have been folded to see that.
    pub fn pieces(&self, key: &[u8], value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let fold = self.fold.as_ref()?;
        let pieces = catch_unwind(AssertUnwindSafe(|| fold.pieces(value, bytes_max))).ok()??;
        let mut state = None;
        for (index, piece) in pieces.iter().enumerate() {
            let kind = if index == 0 { OpKind::Set } else { OpKind::Fold };
            let op = match self.normalise(key, kind, piece) {
                _ if piece.len() > bytes_max => return None,
                OpKind::Delete => Op::Delete,
                OpKind::Set => Op::Set(piece),
                _ => Op::Fold(piece),
            };
            self.apply_unstamped(key, &mut state, op).ok()?;
        }
        (state.as_deref() == Some(value)).then_some(pieces)
    }

    /// The output buffer holds a complete state: a `Set`, or a `Delete` where the table says so.
    fn settle_set(&self, key: &[u8], out: &mut OpBuf) {
        out.kind = self.normalise_set(key, &out.payload);
        if out.kind == OpKind::Delete {
            out.payload.clear();
        }
    }

    /// `InsertFold a m`; but where m short-circuits, both branches are m, which is `Set m`.
    fn settle_insert_fold(&self, key: &[u8], a: &[u8], m: &[u8], out: &mut OpBuf) {
        if a == m && self.short_circuits(key, m) {
            out.assign(Op::Set(m));
            self.settle_set(key, out);
        } else {
            out.assign(Op::InsertFold { absent: a, present: m });
        }
    }

    /// Calls the user's function, contained.
    #[inline]
    pub(crate) fn product(
        &self,
        key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Product, Decline> {
        let Some(fold) = &self.fold else { return Err(Decline::FoldMissing) };
        out.clear();
        match catch_unwind(AssertUnwindSafe(|| fold.fold(key, earlier, later, out))) {
            Ok(Ok(Outcome::Value)) => Ok(Product::Out),
            Ok(Ok(Outcome::KeepEarlier)) => Ok(Product::Earlier),
            Ok(Ok(Outcome::KeepLater)) => Ok(Product::Later),
            Ok(Ok(Outcome::Delete)) => Ok(Product::Deleted),
            Ok(Err(failure)) => Err(Decline::Failed(failure)),
            Err(panic) => Err(Decline::Failed(panic_failure(&*panic))),
        }
    }

    /// The state that an op gives when nothing older exists: the row «nothing older» of the table. Its payload stands, with its
    /// stamp where it has one.
    #[inline]
    pub fn at_bottom<'a>(&self, key: &[u8], op: Op<'a>) -> Option<State<'a>> {
        let state = match op {
            Op::Delete => return None,
            Op::SetSeparated(pointer) | Op::InsertSeparated(pointer) | Op::FoldSeparated(pointer) => {
                return Some(State::Separated(pointer));
            }
            Op::Set(v) | Op::Insert(v) | Op::Fold(v) | Op::InsertFold { absent: v, .. } => v,
        };
        if self.is_deleted_state(key, state) { None } else { Some(State::Value(state)) }
    }

    /// The value that an op without a stamp gives when nothing older exists.
    fn value_at_bottom(&self, key: &[u8], op: Op<'_>) -> Result<Option<Vec<u8>>, Decline> {
        match op {
            Op::Delete => Ok(None),
            Op::SetSeparated(_) | Op::InsertSeparated(_) | Op::FoldSeparated(_) => Err(Decline::Separated),
            Op::Set(v) | Op::Insert(v) | Op::Fold(v) | Op::InsertFold { absent: v, .. } => {
                Ok((!self.is_deleted(key, v)).then(|| v.to_vec()))
            }
        }
    }

    /// Applies one op to a state, in place: what composing must agree with.
    ///
    /// # Errors
    /// When the fold is missing or fails, or the value of the op is separated; the state is then unchanged.
    pub fn apply(&self, key: &[u8], state: &mut Option<Vec<u8>>, op: Op<'_>) -> Result<(), Decline> {
        match self.has_stamps {
            false => self.apply_unstamped(key, state, op),
            true => self.apply_stamped(key, state, op),
        }
    }

    /// The same of an op without a stamp on a value without one, as users know both; also where records have stamps.
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
}

impl Product {
    /// Copies the later operand out where that is the product. (It may be a piece of a payload only, that of an
    /// `InsertFold`, so the newer op cannot simply stand.)
    fn settle_later(&self, later: &[u8], out: &mut Vec<u8>) {
        if let Product::Later = self {
            out.clear();
            out.extend_from_slice(later);
        }
    }

    fn bytes<'a>(&self, earlier: &'a [u8], later: &'a [u8], out: &'a [u8]) -> &'a [u8] {
        match self {
            Product::Out => out,
            Product::Earlier => earlier,
            Product::Later => later,
            Product::Deleted => &[],
        }
    }
}

fn panic_failure(panic: &(dyn std::any::Any + Send)) -> FoldFailure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    FoldFailure(format!("the fold function panicked: {text}"))
}

impl std::fmt::Display for Decline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Decline::NoNormalForm => f.write_str("the two operations have no single form"),
            Decline::FoldMissing => f.write_str("the fold function of the table is not at hand"),
            Decline::Failed(failure) => write!(f, "{failure}"),
            Decline::Separated => f.write_str("a value is separated, and was not loaded"),
            Decline::TooLong => write!(f, "folding gives more than {FOLDED_BYTES_MAX} bytes"),
        }
    }
}

impl std::fmt::Debug for FoldRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FoldRules({})", self.spec)
    }
}

#[cfg(test)]
#[path = "algebra/tests.rs"]
pub(crate) mod tests;
