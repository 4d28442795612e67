//! `counters`: a map from byte strings to whole numbers, which add up.
//!
//! ```text
//!   [length varint][name][count, zigzag varint] ...      strictly ascending by name; no count is zero
//! ```
//!
//! The map is a total function that is zero almost everywhere: an entry of zero is left out, and a
//! name disappears when its counts cancel. Counts **wrap** at 2^63. Adding functions point by point
//! is associative, and the sorted list of what is not zero is the one form of such a function.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use folddb_base::bytes::{Malformed, Reader, put_slice, put_varint};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, integer_i64, malformed, plain_bytes, rows_of_entries, unexpected};

const WHAT: &str = "a map of counters";

fn put_entry(out: &mut Vec<u8>, name: &[u8], count: i64) {
    if count != 0 {
        put_slice(out, name);
        put_varint(out, ((count << 1) ^ (count >> 63)) as u64);
    }
}

/// The entries of an encoded map, in order. `rest` begins with the current one.
struct Entries<'a> {
    rest: &'a [u8],
    current: Option<(&'a [u8], i64)>,
    after: &'a [u8],
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8]) -> Result<Entries<'a>, Malformed> {
        let mut entries = Entries { rest: bytes, current: None, after: bytes };
        entries.advance()?;
        Ok(entries)
    }

    #[inline]
    fn advance(&mut self) -> Result<(), Malformed> {
        self.rest = self.after;
        let mut reader = Reader::new(self.rest);
        self.current = None;
        if !reader.is_empty() {
            let name = reader.slice()?;
            let zigzag = reader.varint()?;
            self.current = Some((name, (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)));
        }
        self.after = reader.rest();
        Ok(())
    }
}

fn combine(a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (mut left, mut right) = (Entries::new(a)?, Entries::new(b)?);
    while let (Some((x, m)), Some((y, n))) = (left.current, right.current) {
        let order = x.cmp(y);
        match order {
            Ordering::Less => put_entry(out, x, m),
            Ordering::Greater => put_entry(out, y, n),
            Ordering::Equal => put_entry(out, x, m.wrapping_add(n)),
        }
        if order.is_le() {
            left.advance()?;
        }
        if order.is_ge() {
            right.advance()?;
        }
    }
    out.extend_from_slice(left.rest);
    out.extend_from_slice(right.rest);
    Ok(())
}

/// `counters`.
pub(crate) struct CountersFold;

impl Fold for CountersFold {
    fn spec(&self) -> String {
        "counters".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        combine(a, b, out).map_err(malformed(WHAT))?;
        Ok(Outcome::Value)
    }

    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        rows_of_entries(value, bytes_max, |entry| {
            entry.slice()?;
            entry.varint().map(drop)
        })
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        Counters::from_bytes(value).map(|_| ())
    }

    /// A map; a list of pairs if a name is not text, or has control characters.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let counters = Counters::from_bytes(value)?;
        let named = |(name, count): (&[u8], i64)| match Datum::from_bytes(name) {
            Datum::Text(text) => Some((text, Datum::Int(count.into()))),
            _ => None,
        };
        if let Some(fields) = counters.iter().map(named).collect() {
            return Ok(Datum::Map(fields));
        }
        let pair = |(name, count): (&[u8], i64)| {
            Datum::List(vec![Datum::text_or_bytes(name), Datum::Int(count.into())])
        };
        Ok(Datum::List(counters.iter().map(pair).collect()))
    }

    /// A map; a list of pairs and of names; or any text, which is a name that counts one more: a
    /// column of addresses has names like `/search?q=7`.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let mut counters = Counters::default();
        match datum {
            Datum::Map(fields) => {
                for (name, count) in fields {
                    counters.add(name.as_bytes(), integer_i64(count)?);
                }
            }
            Datum::List(items) => {
                for item in items {
                    match item {
                        Datum::List(pair) if pair.len() == 2 => {
                            counters.add(&plain_bytes(&pair[0])?, integer_i64(&pair[1])?);
                        }
                        Datum::List(_) | Datum::Map(_) => return unexpected("a name and a count", item),
                        name => counters.add(&plain_bytes(name)?, 1),
                    }
                }
            }
            name => counters.add(&plain_bytes(name)?, 1),
        }
        counters.put(out);
        Ok(())
    }
}

impl BuiltIn for CountersFold {}

/// A map from byte strings to sums: the value type of `counters`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    counts: BTreeMap<Vec<u8>, i64>,
}

impl Counters {
    /// One name with a count.
    pub fn of(name: impl Into<Vec<u8>>, count: i64) -> Counters {
        let mut counters = Counters::default();
        counters.add(&name.into(), count);
        counters
    }

    /// Adds to the count of a name, wrapping.
    pub fn add(&mut self, name: &[u8], count: i64) {
        let total = self.get(name).wrapping_add(count);
        if total == 0 {
            self.counts.remove(name);
        } else {
            self.counts.insert(name.to_vec(), total);
        }
    }

    /// The count of a name; zero if there is none.
    pub fn get(&self, name: &[u8]) -> i64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Names and counts, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.counts.iter().map(|(name, count)| (name.as_slice(), *count))
    }

    /// How many names have a count.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// True when no name has a count.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        for (name, count) in self.iter() {
            put_entry(out, name, count);
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
    /// When the bytes are not a map in ascending order without zeros.
    pub fn from_bytes(value: &[u8]) -> Result<Counters, FoldFailure> {
        let mut walk = Entries::new(value).map_err(malformed(WHAT))?;
        let mut counts = BTreeMap::new();
        let mut last: Option<&[u8]> = None;
        while let Some((name, count)) = walk.current {
            if last.is_some_and(|last| last >= name) || count == 0 {
                return Err(malformed(WHAT)(Malformed::Order));
            }
            counts.insert(name.to_vec(), count);
            last = Some(name);
            walk.advance().map_err(malformed(WHAT))?;
        }
        Ok(Counters { counts })
    }
}
