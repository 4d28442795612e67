//! Rules with the functions that they name: what the engine uses.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind};

use super::choices::{FoldName, PredicateRule, TableKind};
use super::custom::Custom;
use super::data::TableRules;
use crate::algebra::{FoldRules, Predicate};
use crate::codec::leading::LEADING_MAX;
use crate::codec::{CodecError, KeyCodec, ValueCodec};
use crate::datum::Datum;
use crate::fold::Fold;
use crate::folds;
use crate::head::{HeadRule, Heads};
use crate::order::KeyOrder;

/// Rules with the functions that they name: what the engine uses.
#[derive(Clone)]
pub struct BoundRules {
    /// The rules as they are stored.
    pub rules: TableRules,
    /// The order of keys.
    pub order: KeyOrder,
    /// How values fold. Its fold is missing if anything that folding needs is not available.
    pub fold: FoldRules,
    /// What is not available, in words. The table is then read-only, and reads do not fold.
    pub missing: Option<String>,
    /// How heads are taken; none if the function is not available.
    pub heads: Heads,
    /// The codec of values, if the fold does not say what they are.
    opaque: Option<ValueCodec>,
}

impl TableRules {
    /// Gives the names in the rules their functions.
    ///
    /// A missing fold or predicate leaves rules that do not fold, see [`BoundRules::missing`].
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] if the order or the compression is not available: without them
    /// nothing can be found.
    pub(crate) fn bind(&self, custom: &Custom) -> Result<BoundRules, Error> {
        self.check_compression()?;
        let order = self.bind_order(custom)?;
        let (fold, missing) = match self.bind_fold(custom) {
            Ok(fold) => (fold, None),
            Err(missing) => (FoldRules::missing(self.fold.spec(), self.fold.version()), Some(missing)),
        };
        // Records of a hashed table have their times outside the value, where folds do not see
        // them.
        let fold = fold.with_stamps(self.expire.has_stamps() && self.kind == TableKind::Sorted);
        let opaque = self.fold.is_opaque().then_some(self.value);
        let (heads, missing) = match self.bind_heads(custom) {
            Ok(heads) => (heads, missing),
            Err(no_head) => (Heads::None, missing.or(Some(no_head))),
        };
        let head_bytes = match &heads {
            Heads::None => Some(0),
            Heads::First(bytes) => Some(*bytes),
            Heads::Json(_) | Heads::Function(_) => None,
        };
        let fold = fold.with_head_bytes(head_bytes);
        Ok(BoundRules { rules: self.clone(), order, fold, missing, heads, opaque })
    }

    fn check_compression(&self) -> Result<(), Error> {
        let asked = [Some(self.compression), self.bottom_compression];
        let Some(lacking) = asked.into_iter().flatten().find(|asked| !asked.is_available()) else {
            return Ok(());
        };
        let message = format!(
            "its blocks are compressed by `{lacking}`: that needs the feature `{lacking}` of folddb, \
             which is off"
        );
        Err(Error::new(ErrorKind::RulesMismatch, message))
    }

    fn bind_order(&self, custom: &Custom) -> Result<KeyOrder, Error> {
        for known in [KeyOrder::Bytewise, KeyOrder::Reversed] {
            if known.name() == self.order {
                return Ok(known);
            }
        }
        let found = custom.orders.get(&self.order).cloned().map(KeyOrder::Custom);
        found.ok_or_else(|| {
            let message = format!(
                "the keys are in the custom order `{}`, which this program does not have",
                self.order
            );
            Error::new(ErrorKind::RulesMismatch, message)
        })
    }

    fn bind_heads(&self, custom: &Custom) -> Result<Heads, String> {
        Ok(match &self.head {
            HeadRule::None => Heads::None,
            HeadRule::First(bytes) => Heads::First(*bytes as usize),
            HeadRule::Json(pointer) => Heads::Json(pointer.clone()),
            HeadRule::Named(name) => Heads::Function(custom.heads.get(name).cloned().ok_or_else(|| {
                format!("heads are taken by the custom `{name}`, which this program does not have")
            })?),
        })
    }

    /// The fold with its predicates, or what is missing.
    fn bind_fold(&self, custom: &Custom) -> Result<FoldRules, String> {
        let mut bound = FoldRules::new(self.find_fold(custom)?);
        if let Some(delete) = self.delete.bind(custom)? {
            bound = bound.with_delete(delete);
        }
        if let Some(short_circuit) = self.short_circuit.bind(custom)? {
            bound = bound.with_short_circuit(short_circuit);
        }
        Ok(bound)
    }

    fn find_fold(&self, custom: &Custom) -> Result<Arc<dyn Fold>, String> {
        match &self.fold {
            FoldName::BuiltIn(spec) => folds::parse(spec).map_err(|error| {
                format!("the table folds by `{spec}`, which this program does not have: {error}")
            }),
            FoldName::Custom { name, version } => match custom.folds.get(name) {
                Some(fold) if fold.version() == *version => Ok(Arc::clone(fold)),
                Some(fold) => Err(format!(
                    "the table folds by {}; this program has `{name}` version {}",
                    self.fold,
                    fold.version()
                )),
                None => Err(format!("the table folds by {}, which this program does not have", self.fold)),
            },
        }
    }
}

impl PredicateRule {
    fn bind(&self, custom: &Custom) -> Result<Option<Predicate>, String> {
        match self {
            PredicateRule::Never => Ok(None),
            PredicateRule::Equal(expected) => {
                let expected = expected.clone();
                Ok(Some(Arc::new(move |_key: &[u8], value: &[u8]| value == expected)))
            }
            PredicateRule::Named(name) => match custom.predicates.get(name) {
                Some(predicate) => Ok(Some(Arc::clone(predicate))),
                None => Err(format!(
                    "the table asks the custom predicate `{name}`, which this program does not have"
                )),
            },
        }
    }
}

impl BoundRules {
    /// The rules that decide what the bytes of keys and values mean, in words: two tables with the
    /// same text give equal bytes the same meaning. Digests keep it. It names the codec of values
    /// only if the fold does not say what they are.
    pub fn meaning(&self) -> String {
        let TableRules { delete, short_circuit, .. } = &self.rules;
        let mut meaning = format!("key {}, order {}", self.rules.key_codec().name(), self.order.name());
        if let Some(codec) = self.opaque {
            meaning.push_str(&format!(", value {}", codec.name()));
        }
        match self.rules.fold.canonical() {
            FoldName::BuiltIn(spec) => meaning.push_str(&format!(", fold {spec}")),
            FoldName::Custom { name, version } => {
                meaning.push_str(&format!(", custom fold {name} of version {version}"));
            }
        }
        for (what, rule) in [("delete when", delete), ("final", short_circuit)] {
            if *rule != PredicateRule::Never {
                meaning.push_str(&format!(", {what} {rule}"));
            }
        }
        meaning
    }

    /// How many leading elements of its keys the filters of its runs know at most: all but the last
    /// element of a tuple, the term of an entry of an index; 0 if keys have none. In a custom order
    /// keys that begin alike need not be neighbors.
    pub fn leading_in_filters(&self) -> usize {
        let most = match &self.rules.key {
            _ if !self.order.has_byte_prefixes() => 0,
            _ if self.rules.index_of.is_some() => 1,
            KeyCodec::Tuple => LEADING_MAX,
            KeyCodec::TypedTuple(types) => types.len().saturating_sub(1),
            _ => 0,
        };
        most.min(LEADING_MAX)
    }

    /// Checks that the table may be written.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`], naming what is not available.
    pub fn check_writable(&self) -> Result<(), Error> {
        match &self.missing {
            Some(missing) => Err(Error::new(ErrorKind::RulesMismatch, missing.as_str())),
            None => Ok(()),
        }
    }

    /// Checks that the bytes are a value, or an operand, of the table.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn check_value(&self, value: &[u8]) -> Result<(), CodecError> {
        match (self.opaque, self.fold.fold()) {
            (Some(codec), _) => codec.check(value),
            (None, Some(fold)) => fold.check(value).map_err(|failure| CodecError(failure.0)),
            (None, None) => Ok(()),
        }
    }

    /// The codec of values, if the fold does not say what they are.
    pub fn opaque_codec(&self) -> Option<ValueCodec> {
        self.opaque
    }

    /// True when any bytes are a value, so that a value never has to be examined as a whole.
    pub fn takes_any_bytes(&self) -> bool {
        let has_head_of_bytes = matches!(self.heads, Heads::None | Heads::First(_));
        let joins = || self.fold.fold().is_some_and(|fold| fold.joins_with().is_some());
        self.opaque == Some(ValueCodec::Bytes) || (has_head_of_bytes && joins())
    }

    /// A value as people read it. Without the fold of the table, its bytes.
    ///
    /// # Errors
    /// When the bytes are not a value of the table.
    pub fn show_value(&self, value: &[u8]) -> Result<Datum, CodecError> {
        match (self.opaque, self.fold.fold()) {
            (Some(codec), _) => codec.show(value),
            (None, Some(fold)) => fold.show(value).map_err(|failure| CodecError(failure.0)),
            (None, None) => Ok(Datum::Bytes(value.to_vec())),
        }
    }

    /// Encodes what a person typed, or what was in a file, as a value or operand of the table.
    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn read_value(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match (self.opaque, self.fold.fold()) {
            (Some(codec), _) => codec.encode(datum, out),
            (None, Some(fold)) => fold.read(datum, out).map_err(|failure| CodecError(failure.0)),
            (None, None) => Err(CodecError::new("this program does not have the fold of the table")),
        }
    }
}

impl std::fmt::Debug for BoundRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundRules").field("rules", &self.rules).field("missing", &self.missing).finish()
    }
}
