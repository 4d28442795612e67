//! The leading elements of keys that are tuples: what filters know in addition to whole keys.
//!
//! An element is found by its structure alone, and what it holds is not checked: so any bytes have
//! leading elements, also those that are no tuple, which may be none. Where an element ends depends
//! only on its own bytes and, for one that ends with 00, on whether ff follows (`tuple.rs`). That
//! is why the leading elements of a range are those of all keys in it: see [`Leading::of_range`].
//!
//! Called by writers of runs for each key, and by readers of ranges.

use std::ops::Bound;

use folddb_base::bytes::common_prefix_len;

use super::tuple::{
    BYTES, DOUBLE, ESCAPE, FALSE, FLOAT, INT_LONG, INT_LONG_NEGATIVE, INT_ZERO, NESTED, NULL, STAMP_80,
    STAMP_96, TEXT, TRUE, UUID, zero_at,
};

/// How many leading elements of a key are known at most.
pub const LEADING_MAX: usize = 4;

/// Some leading elements of a key, or the ones that all keys of a range share.
#[derive(Clone, Copy, Debug)]
pub struct Leading<'k> {
    key: &'k [u8],
    /// Where each of them ends.
    ends: [usize; LEADING_MAX],
    count: usize,
}

impl<'k> Leading<'k> {
    /// The first `most` elements of a key, and of these at most [`LEADING_MAX`]; fewer if it has
    /// fewer.
    #[inline]
    pub fn of(key: &'k [u8], most: usize) -> Leading<'k> {
        let mut leading = Leading { key, ends: [0; LEADING_MAX], count: 0 };
        let mut start = 0;
        while leading.count < most.min(LEADING_MAX) {
            let Some(end) = element_end(key, start) else { break };
            leading.ends[leading.count] = end;
            leading.count += 1;
            start = end;
        }
        leading
    }

    /// The elements, at most `most`, with which every key begins that is between the bounds in
    /// bytewise order. `Leading::of` finds them in each of these keys.
    pub fn of_range(low: Bound<&'k [u8]>, high: Bound<&[u8]>, most: usize) -> Leading<'k> {
        let (Some(first), Some(last)) = (key_of(low), key_of(high)) else { return Leading::of(&[], 0) };
        let mut leading = Leading::of(first, most);
        // Keys up to the end of a prefix begin with all of it, although that end does not.
        let is_prefix = matches!(high, Bound::Excluded(end) if is_prefix_end(first, end));
        let shared = if is_prefix { first.len() } else { common_prefix_len(first, last) };
        // Every key of the range begins with these bytes. In some of them a string may continue
        // with an escaped zero where that of the first key ends.
        let may_continue = |end: usize| match last.get(end) {
            _ if is_prefix => end == first.len(),
            None => false,
            Some(&next) => next == ESCAPE && !(matches!(high, Bound::Excluded(_)) && last.len() == end + 1),
        };
        while let Some(end) = leading.len_bytes() {
            if end <= shared && !(leading.is_last_open() && may_continue(end)) {
                break;
            }
            leading.count -= 1;
        }
        leading
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bytes of the first `count` of them, which are at most as many as there are.
    #[inline]
    pub fn first(&self, count: usize) -> &'k [u8] {
        let last = count.min(self.count).checked_sub(1);
        last.and_then(|last| self.key.get(..self.ends[last])).unwrap_or(&[])
    }

    /// The bytes of all of them.
    fn len_bytes(&self) -> Option<usize> {
        self.count.checked_sub(1).map(|last| self.ends[last])
    }

    /// Whether ff behind the last of them would be a part of it.
    fn is_last_open(&self) -> bool {
        let start = self.count.checked_sub(2).map_or(0, |before| self.ends[before]);
        matches!(self.key.get(start), Some(&(BYTES | TEXT | NESTED)))
    }
}

fn key_of(bound: Bound<&[u8]>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Whether the keys from `prefix` up to `end` are exactly those that begin with it: see
/// [`prefix_end`](super::range::prefix_end).
fn is_prefix_end(prefix: &[u8], end: &[u8]) -> bool {
    let Some((&last, shared)) = end.split_last() else { return false };
    let Some((begins, rest)) = prefix.split_at_checked(shared.len()) else { return false };
    let Some((&raised, greatest)) = rest.split_first() else { return false };
    begins == shared && raised.checked_add(1) == Some(last) && greatest.iter().all(|&byte| byte == 0xff)
}

/// Where the element that begins at `start` ends; none if there is no whole element.
#[inline]
fn element_end(key: &[u8], start: usize) -> Option<usize> {
    let code = *key.get(start)?;
    let end = match code {
        BYTES | TEXT => return string_end(key, start + 1),
        NESTED => return nested_end(key, start + 1),
        NULL => start + 1,
        _ => plain_end(key, start, code)?,
    };
    (end <= key.len()).then_some(end)
}

/// Where an element ends whose code tells its length.
#[inline]
fn plain_end(key: &[u8], start: usize, code: u8) -> Option<usize> {
    let long = |flip: u8| key.get(start + 1).map(|&len| 1 + usize::from(len ^ flip));
    let after_code = match code {
        INT_LONG_NEGATIVE => long(0xff)?,
        INT_LONG => long(0)?,
        _ if (INT_LONG_NEGATIVE..INT_LONG).contains(&code) => usize::from(code.abs_diff(INT_ZERO)),
        FLOAT => 4,
        DOUBLE => 8,
        FALSE | TRUE => 0,
        UUID => 16,
        STAMP_80 => 10,
        STAMP_96 => 12,
        _ => return None,
    };
    Some(start + 1 + after_code)
}

/// Where a string ends whose bytes begin at `at`: behind the first zero that is not escaped.
#[inline]
fn string_end(key: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let zero = at + zero_at(key.get(at..)?)?;
        if key.get(zero + 1) != Some(&ESCAPE) {
            return Some(zero + 1);
        }
        at = zero + 2;
    }
}

/// Where a nested tuple ends whose elements begin at `at`.
fn nested_end(key: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 1;
    while depth > 0 {
        let code = *key.get(at)?;
        at = match code {
            NULL if key.get(at + 1) == Some(&ESCAPE) => at + 2,
            NULL => {
                depth -= 1;
                at + 1
            }
            NESTED => {
                depth += 1;
                at + 1
            }
            BYTES | TEXT => string_end(key, at + 1)?,
            _ => plain_end(key, at, code)?,
        };
    }
    Some(at)
}

#[cfg(test)]
#[path = "leading/tests.rs"]
mod tests;
