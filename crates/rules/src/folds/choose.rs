//! Folds that choose one of the two: `replace`, `first`, `lww:ts`, `min:bytes` and `max:bytes`.
//!
//! Each is *the best of a total order* (by place in the history, by time, by bytes), and choosing
//! the best is associative. They write nothing: the outcome names the side that stays.
//!
//! ```text
//!   replace, first, min:bytes, max:bytes    the bytes themselves, any
//!   lww:ts                                  [time i64 little-endian][payload ...]
//! ```

use std::cmp::Ordering;

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, integer_i64, plain_bytes, unexpected, wrong_length};

/// `replace`: the later wins. Nothing before a value matters.
pub(crate) struct Replace;

impl Fold for Replace {
    fn spec(&self) -> String {
        "replace".to_owned()
    }
    fn fold(&self, _key: &[u8], _a: &[u8], _b: &[u8], _out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
    fn short_circuit(&self, _key: &[u8], _value: &[u8]) -> bool {
        true
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::text_or_bytes(value))
    }
}

impl BuiltIn for Replace {}

/// `first`: the earlier wins, as with the op `Insert`.
pub(crate) struct First;

impl Fold for First {
    fn spec(&self) -> String {
        "first".to_owned()
    }
    fn fold(&self, _key: &[u8], _a: &[u8], _b: &[u8], _out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepEarlier)
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::text_or_bytes(value))
    }
}

impl BuiltIn for First {}

/// `min:bytes` and `max:bytes`: the smallest or largest by the order of the bytes.
pub(crate) struct ExtremeBytes {
    pub(crate) largest: bool,
}

impl Fold for ExtremeBytes {
    fn spec(&self) -> String {
        if self.largest { "max:bytes" } else { "min:bytes" }.to_owned()
    }
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], _out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(if (a >= b) == self.largest { Outcome::KeepEarlier } else { Outcome::KeepLater })
    }
    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        !self.largest && value.is_empty()
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::text_or_bytes(value))
    }
}

impl BuiltIn for ExtremeBytes {}

/// `lww:ts`: the value with the latest time of its own wins, in any order of the writes; of equal
/// times the one with the larger payload.
pub(crate) struct LastWriter;

impl Fold for LastWriter {
    fn spec(&self) -> String {
        "lww:ts".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], _out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (a, b) = (TimedBytes::from_bytes(a)?, TimedBytes::from_bytes(b)?);
        Ok(match a.cmp(&b) {
            Ordering::Less => Outcome::KeepLater,
            Ordering::Equal | Ordering::Greater => Outcome::KeepEarlier,
        })
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        TimedBytes::from_bytes(value).map(|_| ())
    }

    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let TimedBytes { time, payload } = TimedBytes::from_bytes(value)?;
        Ok(Datum::Map(vec![
            ("ts".to_owned(), Datum::Int(time.into())),
            ("value".to_owned(), Datum::text_or_bytes(payload)),
        ]))
    }

    /// A map `{ts, value}`, a list `[ts, value]`, or the text `TS VALUE`.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let wanted = "a time and a value, as in `1700000000 hello`";
        let (time, payload) = match datum {
            Datum::List(items) if items.len() == 2 => (integer_i64(&items[0])?, plain_bytes(&items[1])?),
            Datum::Map(fields) if fields.len() == 2 => match (datum.field("ts"), datum.field("value")) {
                (Some(time), Some(value)) => (integer_i64(time)?, plain_bytes(value)?),
                _ => return unexpected(wanted, datum),
            },
            Datum::Text(text) => match text.split_once(' ') {
                Some((time, value)) => (integer_i64(&Datum::Text(time.to_owned()))?, value.as_bytes().into()),
                None => return unexpected(wanted, datum),
            },
            _ => return unexpected(wanted, datum),
        };
        TimedBytes { time, payload: &payload }.put(out);
        Ok(())
    }
}

impl BuiltIn for LastWriter {}

/// A value, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimedBytes<'a> {
    /// The time, in whatever unit the table's writers agree on.
    pub(crate) time: i64,
    /// The payload.
    pub(crate) payload: &'a [u8],
}

impl<'a> TimedBytes<'a> {
    /// Reads a value.
    ///
    /// # Errors
    /// When there are fewer than eight bytes.
    #[inline]
    pub(crate) fn from_bytes(value: &'a [u8]) -> Result<TimedBytes<'a>, FoldFailure> {
        match value.split_first_chunk::<8>() {
            Some((time, payload)) => Ok(TimedBytes { time: i64::from_le_bytes(*time), payload }),
            None => Err(wrong_length(8, value.len())),
        }
    }

    /// Appends the value.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(self.payload);
    }
}

/// A value of `lww:ts`: a payload with a time; the latest time wins. It has no other fields, and
/// never will.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::Timed;
/// let seen = Timed { time: 1_700_000_000, value: "Berlin".to_owned() };
/// assert!(seen < Timed { time: 1_700_000_001, value: "Aachen".to_owned() });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timed<V> {
    /// The time, in whatever unit the table's writers agree on.
    pub time: i64,
    /// The payload.
    pub value: V,
}
