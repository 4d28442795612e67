//! Your own folds with operands of another type than the values: updates that are applied later.
//!
//! An update is a function of an item that may be absent, `f(Option<Item>) -> Item`. Writing one
//! reads nothing; reads and merges apply it (RocksDB calls that a full merge). A key has an item,
//! or the updates that wait for one:
//!
//! ```text
//!   00 [item]
//!   01 [length varint][update] ...      at least one
//! ```
//!
//! Associative for any function: updates that meet are appended to each other, and those that meet
//! an item are applied to it in order. The bytes do not depend on when merges happen, provided that
//! the function is deterministic and items have one form as bytes. [`Updated::check_law`] checks
//! that on samples.

use std::marker::PhantomData;
use std::sync::Arc;

use folddb_base::bytes::{Reader, put_slice};

use crate::codec::{AsValue, CodecError, Fit, Value};
use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};
use crate::folds::FoldSpec;
use crate::law::{self, LawReport};

const ITEM: u8 = 0;
const UPDATES: u8 = 1;

/// A function that changes an item, as a value that is stored until it is applied.
///
/// The table has values [`Updated<Self>`]; the options of the store must know the fold
/// ([`Updated::as_fold`]).
pub trait Update: Value + 'static {
    /// What is updated.
    type Item: Value;

    /// The name of the fold, which tables keep.
    const NAME: &'static str;

    /// Its version; a function that does something else is another version.
    const VERSION: u32 = 1;

    /// The new item, given this one or none. Must be deterministic; a panic is an error of the key.
    fn apply(self, item: Option<Self::Item>) -> Self::Item;
}

/// A value of a table of updates: an item, or updates that wait for one.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::codec::{AsValue, CodecError, Value};
/// use folddb::{Update, Updated};
///
/// /// Raises a price by this many percent, to at least 1.
/// struct Raise(u64);
///
/// impl AsValue<Raise> for Raise {
///     fn encode(&self, out: &mut Vec<u8>) {
///         AsValue::<u64>::encode(&self.0, out);
///     }
/// }
///
/// impl Value for Raise {
///     fn decode(bytes: &[u8]) -> Result<Raise, CodecError> {
///         u64::decode(bytes).map(Raise)
///     }
/// }
///
/// impl Update for Raise {
///     type Item = u64;
///     const NAME: &'static str = "raise";
///     fn apply(self, price: Option<u64>) -> u64 {
///         (price.unwrap_or(0) * (100 + self.0) / 100).max(1)
///     }
/// }
///
/// assert_eq!(Updated::by(Raise(10)).into_item(), 1);
/// assert!(Updated::check_law(&[100, 0], [Raise(10), Raise(3)]).holds());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Updated<U: Update> {
    /// The item, or the updates that wait for one: the first, and more.
    state: Result<U::Item, (U, Vec<U>)>,
}

impl<U: Update> Updated<U> {
    /// An item: what is put.
    pub fn item(item: U::Item) -> Updated<U> {
        Updated { state: Ok(item) }
    }

    /// An update: what is folded.
    pub fn by(update: U) -> Updated<U> {
        Updated { state: Err((update, Vec::new())) }
    }

    /// The item that was read, with all updates applied.
    pub fn into_item(self) -> U::Item {
        match self.state {
            Ok(item) => item,
            Err((first, more)) => {
                more.into_iter().fold(first.apply(None), |item, update| update.apply(Some(item)))
            }
        }
    }

    /// The fold, for the options of the store.
    pub fn as_fold() -> Arc<dyn Fold> {
        Arc::new(UpdateFold::<U>(PhantomData))
    }

    /// Looks for items and updates that break the laws of folds: a function that is not
    /// deterministic, items that do not decode as they were encoded.
    pub fn check_law(items: &[U::Item], updates: impl IntoIterator<Item = U>) -> LawReport {
        let mut samples = Vec::new();
        for item in items {
            let mut bytes = vec![ITEM];
            item.encode(&mut bytes);
            samples.push(bytes);
        }
        for update in updates {
            let mut bytes = Vec::new();
            Updated::by(update).encode(&mut bytes);
            samples.push(bytes);
        }
        law::check(&UpdateFold::<U>(PhantomData), b"", &samples)
    }
}

impl<U: Update> AsValue<Updated<U>> for Updated<U> {
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.state {
            Ok(item) => {
                out.push(ITEM);
                item.encode(out);
            }
            Err((first, more)) => {
                out.push(UPDATES);
                let mut bytes = Vec::new();
                for update in std::iter::once(first).chain(more) {
                    bytes.clear();
                    update.encode(&mut bytes);
                    put_slice(out, &bytes);
                }
            }
        }
    }
}

impl<U: Update> Value for Updated<U> {
    const ENCODES_SURELY: bool = U::ENCODES_SURELY && U::Item::ENCODES_SURELY;

    fn default_fold() -> FoldSpec {
        FoldSpec::custom(Updated::<U>::as_fold())
    }

    fn fit(_fold: &dyn Fold) -> Fit {
        Fit::Never
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let state = match bytes {
            [ITEM, item @ ..] => Ok(U::Item::decode(item)?),
            [UPDATES, updates @ ..] => {
                let mut reader = Reader::new(updates);
                let (first, mut more) = (U::decode(reader.slice()?)?, Vec::new());
                while !reader.is_empty() {
                    more.push(U::decode(reader.slice()?)?);
                }
                Err((first, more))
            }
            _ => return Err(CodecError::new("expected a byte that is 0 and an item, or 1 and updates")),
        };
        Ok(Updated { state })
    }
}

/// The fold of updates of this type.
struct UpdateFold<U>(PhantomData<fn() -> U>);

fn failed(cause: CodecError) -> FoldFailure {
    FoldFailure(cause.0)
}

impl<U: Update> Fold for UpdateFold<U> {
    fn spec(&self) -> String {
        U::NAME.to_owned()
    }

    fn version(&self) -> u32 {
        U::VERSION
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        match (a, b) {
            (_, [ITEM, ..]) => Ok(Outcome::KeepLater),
            ([UPDATES, ..], [UPDATES, later @ ..]) => {
                out.extend_from_slice(a);
                out.extend_from_slice(later);
                Ok(Outcome::Value)
            }
            ([ITEM, item @ ..], [UPDATES, updates @ ..]) => {
                let (mut item, mut reader) = (U::Item::decode(item).map_err(failed)?, Reader::new(updates));
                while !reader.is_empty() {
                    let update = reader.slice().map_err(|cause| failed(cause.into()))?;
                    item = U::decode(update).map_err(failed)?.apply(Some(item));
                }
                out.push(ITEM);
                item.encode(out);
                if !U::Item::ENCODES_SURELY {
                    U::Item::decode(&out[1..]).map_err(failed)?;
                }
                Ok(Outcome::Value)
            }
            _ => Err(FoldFailure::new("expected an item or updates")),
        }
    }

    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        value.first() == Some(&ITEM)
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        Updated::<U>::decode(value).map(drop).map_err(failed)
    }

    /// The item, with all updates applied.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let item = Updated::<U>::decode(value).map_err(failed)?.into_item();
        let mut bytes = Vec::new();
        item.encode(&mut bytes);
        match U::Item::default_fold() {
            fold if fold.to_string() == "replace" => U::Item::codec().show(&bytes).map_err(failed),
            fold => fold.as_fold().show(&bytes),
        }
    }

    /// An item.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.push(ITEM);
        match U::Item::default_fold() {
            fold if fold.to_string() == "replace" => U::Item::codec().encode(datum, out).map_err(failed),
            fold => fold.as_fold().read(datum, out),
        }
    }
}

#[cfg(test)]
#[path = "updates/tests.rs"]
mod tests;
