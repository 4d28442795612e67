//! The fold of a table with its short-circuit and delete rules, and the outcome of calling it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use folddb_base::limits::FOLDED_BYTES_MAX;
use folddb_base::stamp::STAMP_BYTES;
use folddb_base::{Op, OpKind};

use crate::fold::{Fold, FoldFailure, Outcome};
use crate::rope::Joins;
use crate::words::WordFold;

/// A function of a key and a value that answers yes or no.
pub type Predicate = Arc<dyn Fn(&[u8], &[u8]) -> bool + Send + Sync>;

/// The fold of a table with its short-circuit and delete rules: all that composing needs.
#[derive(Clone)]
pub struct FoldRules {
    pub(super) fold: Option<Arc<dyn Fold>>,
    spec: String,
    version: u32,
    delete: Option<Predicate>,
    short_circuit: Option<Predicate>,
    pub(super) has_delete: bool,
    pub(super) joins: Option<Joins>,
    pub(super) has_stamps: bool,
    /// The fold as a function of words, if no other rule looks at what it gives.
    pub(super) words: Option<WordFold>,
}

/// The result of composing two ops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Composed {
    /// The older op stays unchanged.
    Older,
    /// The newer op's payload stays, under this kind (`Delete` has no payload).
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
    /// The table's fold is not available.
    FoldMissing,
    /// The user's function failed or panicked.
    Failed(FoldFailure),
    /// One of the values is in the value log.
    Separated,
    /// The result is longer than a record may be: readers fold the two.
    TooLong,
}

/// The state of a key if nothing older exists.
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

/// The result of folding: in the output buffer, one of the two operands, or nothing.
pub(crate) enum Product {
    Out,
    Earlier,
    Later,
    Deleted,
}

impl Product {
    /// Copies the later operand to the output if it is the product. It may be only a part of a
    /// payload (of an `InsertFold`), so the newer op cannot stay as it is.
    pub(super) fn settle_later(&self, later: &[u8], out: &mut Vec<u8>) {
        if let Product::Later = self {
            out.clear();
            out.extend_from_slice(later);
        }
    }

    pub(super) fn bytes<'a>(&self, earlier: &'a [u8], later: &'a [u8], out: &'a [u8]) -> &'a [u8] {
        match self {
            Product::Out => out,
            Product::Earlier => earlier,
            Product::Later => later,
            Product::Deleted => &[],
        }
    }
}

impl FoldRules {
    /// The rules of a fold, with the short-circuit and delete laws that it declares itself.
    pub fn new(fold: Arc<dyn Fold>) -> FoldRules {
        let (spec, version, has_delete) = (fold.spec(), fold.version(), fold.has_delete());
        let joins = fold.joins_with().map(Joins::with);
        let words = fold.words().filter(|_| !has_delete);
        FoldRules {
            fold: Some(fold),
            spec,
            version,
            delete: None,
            short_circuit: None,
            has_delete,
            joins,
            has_stamps: false,
            words,
        }
    }

    /// The rules of a table without an available fold: operands stay separate records.
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
            words: None,
        }
    }

    /// How separated values are joined, if they can be.
    pub fn joins(&self) -> Option<&Joins> {
        self.joins.as_ref()
    }

    /// The separator, if the fold of several operands is all of them one after the other, whatever
    /// other rules the table has.
    #[inline]
    pub(crate) fn concatenates(&self) -> Option<&[u8]> {
        let is_bare = !self.has_delete && self.short_circuit.is_none() && !self.has_stamps;
        self.fold.as_ref().filter(|_| is_bare)?.joins_with()
    }

    /// Sets how many bytes at the beginning of a value are its head. With none, the head is
    /// something else, and separated values are not joined.
    pub fn with_head_bytes(mut self, head_bytes: Option<usize>) -> FoldRules {
        self.joins = self.joins.and_then(|joins| Some(joins.with_head_bytes(head_bytes?)));
        self
    }

    /// Adds the table's own delete predicate: a complete state for which it holds is absent.
    pub fn with_delete(mut self, delete: Predicate) -> FoldRules {
        self.delete = Some(delete);
        self.has_delete = true;
        self.words = None;
        self
    }

    /// Adds the table's own short-circuit: where it holds for a value, nothing earlier matters.
    pub fn with_short_circuit(mut self, short_circuit: Predicate) -> FoldRules {
        self.short_circuit = Some(short_circuit);
        self.words = None;
        self
    }

    /// The rules of a table whose ops have stamps, or have none. Values with stamps are not joined
    /// while they are separated.
    pub fn with_stamps(mut self, has_stamps: bool) -> FoldRules {
        self.has_stamps = has_stamps;
        self.joins = self.joins.filter(|_| !has_stamps);
        self
    }

    /// True if the ops of the table have stamps: its values may expire.
    #[inline]
    pub fn has_stamps(&self) -> bool {
        self.has_stamps
    }

    /// The fold as a function of words, if payloads are values, without stamps, and no rule of the
    /// table looks at what it gives. See [`crate::words::WordOps`].
    #[inline]
    pub fn words(&self) -> Option<WordFold> {
        self.words.filter(|_| !self.has_stamps)
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

    /// The value in the payload of an op: without the stamp, if there is one.
    #[inline]
    pub fn value_in<'p>(&self, payload: &'p [u8]) -> &'p [u8] {
        if self.has_stamps() { payload.get(STAMP_BYTES..).unwrap_or(payload) } else { payload }
    }

    fn asks_delete(&self, key: &[u8], value: &[u8]) -> bool {
        let ask = || {
            self.fold.as_ref().is_some_and(|fold| fold.is_deleted(key, value))
                || self.delete.as_ref().is_some_and(|delete| delete(key, value))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(false)
    }

    pub(super) fn short_circuits(&self, key: &[u8], value: &[u8]) -> bool {
        let ask = || {
            self.fold.as_ref().is_some_and(|fold| fold.short_circuit(key, value))
                || self.short_circuit.as_ref().is_some_and(|stop| stop(key, value))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(false)
    }

    /// The kind under which an op is written: a `Fold` that short-circuits is a `Set`, a `Set` of a
    /// deleted state is a `Delete` (then with an empty payload). Every op is normalized before it
    /// is stored.
    #[inline]
    pub fn normalize(&self, key: &[u8], kind: OpKind, payload: &[u8]) -> OpKind {
        match kind {
            OpKind::Fold if self.short_circuits(key, payload) => self.normalize_set(key, payload),
            OpKind::Set => self.normalize_set(key, payload),
            other => other,
        }
    }

    #[inline]
    pub(super) fn normalize_set(&self, key: &[u8], value: &[u8]) -> OpKind {
        if self.is_deleted(key, value) { OpKind::Delete } else { OpKind::Set }
    }

    /// Calls the user's function. A panic becomes a failure.
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

    /// The state that an op gives when nothing older exists, as after a `Delete`: the op's payload,
    /// with its stamp if it has one.
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
    pub(super) fn value_at_bottom(&self, key: &[u8], op: Op<'_>) -> Result<Option<Vec<u8>>, Decline> {
        match op {
            Op::Delete => Ok(None),
            Op::SetSeparated(_) | Op::InsertSeparated(_) | Op::FoldSeparated(_) => Err(Decline::Separated),
            Op::Set(v) | Op::Insert(v) | Op::Fold(v) | Op::InsertFold { absent: v, .. } => {
                Ok((!self.is_deleted(key, v)).then(|| v.to_vec()))
            }
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
            Decline::NoNormalForm => f.write_str("the two operations do not combine into one"),
            Decline::FoldMissing => f.write_str("this program does not have the fold function of the table"),
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
