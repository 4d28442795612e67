//! Tuples as bytes. The order of the bytes is the order of the tuples: FoundationDB's tuple layer.
//!
//! The encoding is that of FoundationDB's `design/tuple.md`, so keys are exchanged with every
//! language that has a binding of it. A tuple is its elements one after the other, each with a code
//! in front:
//!
//! ```text
//!   00                        null; 00 ff inside a nested tuple
//!   01 bytes... 00            byte string, each 00 in it written as 00 ff
//!   02 utf-8... 00            text, the same way
//!   05 elements... 00         nested tuple
//!   0b ~n n bytes             negative integer of 9 bytes and more, ones' complement
//!   0c..13 8..1 bytes         negative integer, ones' complement, big-endian
//!   14                        zero
//!   15..1c 1..8 bytes         positive integer, big-endian
//!   1d n n bytes              positive integer of 9 bytes and more
//!   20 4 bytes  21 8 bytes    float, double: big-endian; all bits flipped if negative, else the sign only
//!   26  27                    false, true
//!   30 16 bytes               uuid
//!   32 10 bytes  33 12 bytes  version stamps
//! ```
//!
//! A code is never ff, and only a code, 00 or the end may follow a terminating 00: that is why
//! escaping keeps the order. Decoding is strict: equal tuples are equal bytes, which folding relies
//! on. So an integer must be in its shortest form (the Python binding writes ±(2^64-1) in the long
//! form, against the specification; that one form is refused), and integers beyond `i128` are
//! refused.
//!
//! The `put_*` and `take_*` functions are what typed keys use; they allocate nothing of their own.

mod codes;
mod element;
mod write;
mod read;

use std::ops::Bound;

use folddb_base::bytes::Reader;

use super::CodecError;
use super::range::KeyRange;

pub use codes::DEPTH_MAX;
pub(super) use codes::{
    BYTES, DOUBLE, ESCAPE, FALSE, FLOAT, INT_LONG, INT_LONG_NEGATIVE, INT_ZERO, NESTED, NULL, STAMP_80,
    STAMP_96, TEXT, TRUE, UUID, mismatch,
};
pub use element::{Element, parse_uuid, uuid_text};
pub(super) use read::{check_depth, skip_element, take_nested_end, zero_at};
pub use read::{
    skip, take_bool, take_bytes, take_double, take_float, take_i64, take_int, take_nested_begin, take_null,
    take_text, take_u64,
};
pub(super) use write::put_partial;
pub use write::{
    begin_nested, end_nested, put_bool, put_bytes, put_double, put_element, put_float, put_i64, put_i128,
    put_null, put_text, put_u64,
};

use read::take_element;

/// The tuple of these elements as bytes.
pub fn pack(elements: &[Element<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(elements.len() * 9);
    pack_into(elements, &mut out);
    out
}

/// Appends the tuple of these elements to `out`.
pub fn pack_into(elements: &[Element<'_>], out: &mut Vec<u8>) {
    elements.iter().for_each(|element| put_element(out, element, false));
}

/// The elements of a tuple.
///
/// # Errors
/// When the bytes are not exactly one tuple in its only form, or nest deeper than [`DEPTH_MAX`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<Element<'_>>, CodecError> {
    let mut reader = Reader::new(bytes);
    let mut elements = Vec::new();
    while !reader.is_empty() {
        elements.push(take_element(&mut reader, false, 0)?);
    }
    Ok(elements)
}

/// Checks that the bytes are a tuple, without building it.
///
/// # Errors
/// As [`unpack`].
pub fn check(bytes: &[u8]) -> Result<(), CodecError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        skip_element(&mut reader, false, 0)?;
    }
    Ok(())
}

/// The keys of all tuples that start with these elements, the tuple of just these included.
///
/// This is not the same as the keys that start with its bytes: the tuple ("a\0b") starts with the
/// bytes of ("a"), but is not in the range.
pub fn prefix_range(elements: &[Element<'_>]) -> KeyRange {
    packed_prefix_range(pack(elements))
}

/// The keys of all tuples that start with these elements and have more: FoundationDB's `range`.
pub fn inside_range(elements: &[Element<'_>]) -> KeyRange {
    let packed = pack(elements);
    let range = packed_prefix_range(packed.clone());
    KeyRange { low: Bound::Excluded(packed), ..range }
}

/// The keys of all tuples that start with these elements, where the last one, a text or byte
/// string, is itself only a beginning. `None` when the last one is something else, or there is
/// none.
pub fn partial_range(elements: &[Element<'_>]) -> Option<KeyRange> {
    let (last, before) = elements.split_last()?;
    let mut from = pack(before);
    match last {
        Element::Text(text) => put_partial(&mut from, TEXT, text.as_bytes()),
        Element::Bytes(bytes) => put_partial(&mut from, BYTES, bytes),
        _ => return None,
    }
    Some(KeyRange::prefix(from))
}

/// As [`prefix_range`], for a tuple that is packed already.
pub fn packed_prefix_range(packed: Vec<u8>) -> KeyRange {
    let mut to = Vec::with_capacity(packed.len() + 1);
    to.extend_from_slice(&packed);
    to.push(ESCAPE);
    KeyRange { low: Bound::Included(packed), high: Bound::Excluded(to) }
}

#[cfg(test)]
#[path = "tuple/tests.rs"]
mod tests;
