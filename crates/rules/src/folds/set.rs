//! `set` and `intersect`: sets of byte strings under union and intersection.
//!
//! ```text
//!   [length varint][member] ...      strictly ascending by bytes; the empty set is no bytes
//! ```
//!
//! Union and intersection are associative, and a sorted list without repetition is the one form of
//! a set. Nothing before an empty set matters to `intersect`.

use std::borrow::Cow;
use std::cmp::Ordering;

use folddb_base::bytes::{Malformed, Reader, put_slice};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, malformed, plain_bytes, rows_of_entries};

const WHAT: &str = "a set of byte strings";

/// Which members of two sets stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    All,
    Common,
}

/// `set` and `intersect`.
pub(crate) struct SetFold {
    pub(crate) keeps: Keeps,
}

/// Reads the length of the next member; none at the end.
#[inline]
fn next(reader: &mut Reader<'_>) -> Result<Option<usize>, Malformed> {
    if reader.is_empty() {
        return Ok(None);
    }
    reader.length().map(Some)
}

/// Walks two sets in step and appends the members that stay.
fn combine(a: &[u8], b: &[u8], keeps: Keeps, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut left = Members::new(a)?;
    let mut right = Members::new(b)?;
    while let (Some(x), Some(y)) = (left.current, right.current) {
        let order = x.cmp(y);
        if keeps == Keeps::All || order == Ordering::Equal {
            put_slice(out, if order.is_le() { x } else { y });
        }
        if order.is_le() {
            left.advance()?;
        }
        if order.is_ge() {
            right.advance()?;
        }
    }
    if keeps == Keeps::All {
        out.extend_from_slice(left.rest);
        out.extend_from_slice(right.rest);
    }
    Ok(())
}

/// The members of an encoded set, in order. `rest` begins with the current one.
struct Members<'a> {
    rest: &'a [u8],
    current: Option<&'a [u8]>,
    after: &'a [u8],
}

impl<'a> Members<'a> {
    fn new(bytes: &'a [u8]) -> Result<Members<'a>, Malformed> {
        let mut members = Members { rest: bytes, current: None, after: bytes };
        members.advance()?;
        Ok(members)
    }

    #[inline]
    fn advance(&mut self) -> Result<(), Malformed> {
        self.rest = self.after;
        let mut reader = Reader::new(self.rest);
        self.current = match next(&mut reader)? {
            Some(len) => Some(reader.take(len)?),
            None => None,
        };
        self.after = reader.rest();
        Ok(())
    }
}

impl Fold for SetFold {
    fn spec(&self) -> String {
        match self.keeps {
            Keeps::All => "set",
            Keeps::Common => "intersect",
        }
        .to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        combine(a, b, self.keeps, out).map_err(malformed(WHAT))?;
        Ok(Outcome::Value)
    }

    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        self.keeps == Keeps::Common && value.is_empty()
    }

    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let is_union = self.keeps == Keeps::All;
        is_union.then(|| rows_of_entries(value, bytes_max, |entry| entry.slice().map(drop)))?
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        ByteSet::from_bytes(value).map(|_| ())
    }

    /// A list of the members.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::List(ByteSet::from_bytes(value)?.iter().map(Datum::text_or_bytes).collect()))
    }

    /// A member, or a list of members: text, bytes, and numbers and bools as they are
    /// written.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let member = |item| plain_bytes(item).map(Cow::into_owned);
        let set: ByteSet = match datum {
            Datum::List(items) => items.iter().map(member).collect::<Result<_, _>>()?,
            one => ByteSet::of(member(one)?),
        };
        set.put(out);
        Ok(())
    }
}

impl BuiltIn for SetFold {}

/// A set of byte strings: the value type of `set` and `intersect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteSet {
    members: Vec<Vec<u8>>,
}

impl ByteSet {
    /// A set of one member.
    pub fn of(member: impl Into<Vec<u8>>) -> ByteSet {
        ByteSet { members: vec![member.into()] }
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(Vec::as_slice)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// True for the empty set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// True when `member` is one.
    pub fn contains(&self, member: &[u8]) -> bool {
        self.members.binary_search_by(|have| have.as_slice().cmp(member)).is_ok()
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        for member in &self.members {
            put_slice(out, member);
        }
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not a set with its members in ascending order.
    pub fn from_bytes(value: &[u8]) -> Result<ByteSet, FoldFailure> {
        let mut walk = Members::new(value).map_err(malformed(WHAT))?;
        let mut members: Vec<Vec<u8>> = Vec::new();
        while let Some(member) = walk.current {
            if members.last().is_some_and(|last| last.as_slice() >= member) {
                return Err(malformed(WHAT)(Malformed::Order));
            }
            members.push(member.to_vec());
            walk.advance().map_err(malformed(WHAT))?;
        }
        Ok(ByteSet { members })
    }
}

impl FromIterator<Vec<u8>> for ByteSet {
    fn from_iter<I: IntoIterator<Item = Vec<u8>>>(members: I) -> ByteSet {
        let mut members: Vec<Vec<u8>> = members.into_iter().collect();
        members.sort_unstable();
        members.dedup();
        ByteSet { members }
    }
}
