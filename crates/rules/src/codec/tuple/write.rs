//! Elements of tuples, as bytes. What typed keys use: it allocates nothing of its own.

use super::codes::{
    BYTES, DOUBLE, ESCAPE, FALSE, FLOAT, INT_LONG, INT_LONG_NEGATIVE, INT_ZERO, NESTED, NULL, STAMP_80,
    STAMP_96, TEXT, TRUE, UUID,
};
use super::element::Element;

/// Appends an element; `nested` says whether it is inside another one.
pub fn put_element(out: &mut Vec<u8>, element: &Element<'_>, nested: bool) {
    match element {
        Element::Null => put_null(out, nested),
        Element::Bytes(bytes) => put_bytes(out, bytes),
        Element::Text(text) => put_text(out, text),
        Element::Nested(items) => {
            begin_nested(out);
            items.iter().for_each(|item| put_element(out, item, true));
            end_nested(out);
        }
        Element::Int(value) => put_i128(out, *value),
        Element::Float(value) => put_float(out, *value),
        Element::Double(value) => put_double(out, *value),
        Element::Bool(value) => put_bool(out, *value),
        Element::Uuid(bytes) => put_coded(out, UUID, bytes),
        Element::Stamp80(bytes) => put_coded(out, STAMP_80, bytes),
        Element::Stamp96(bytes) => put_coded(out, STAMP_96, bytes),
    }
}

/// Appends a null.
#[inline]
pub fn put_null(out: &mut Vec<u8>, nested: bool) {
    out.push(NULL);
    if nested {
        out.push(ESCAPE);
    }
}

/// Appends a byte string.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_partial(out, BYTES, bytes);
    out.push(NULL);
}

/// Appends text.
#[inline]
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_partial(out, TEXT, text.as_bytes());
    out.push(NULL);
}

/// Opens a nested tuple: its elements follow, then [`end_nested`].
#[inline]
pub fn begin_nested(out: &mut Vec<u8>) {
    out.push(NESTED);
}

/// Closes a nested tuple.
#[inline]
pub fn end_nested(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// Appends an integer.
#[inline]
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_short_int(out, value.unsigned_abs(), value < 0);
}

/// Appends an integer.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    put_short_int(out, value, false);
}

/// Appends an integer.
pub fn put_i128(out: &mut Vec<u8>, value: i128) {
    match u64::try_from(value.unsigned_abs()) {
        Ok(magnitude) => put_short_int(out, magnitude, value < 0),
        Err(_) => put_long_int(out, value.unsigned_abs(), value < 0),
    }
}

/// Appends a float.
#[inline]
pub fn put_float(out: &mut Vec<u8>, value: f32) {
    let bits = value.to_bits();
    let mask = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
    put_coded(out, FLOAT, &(bits ^ mask).to_be_bytes());
}

/// Appends a double.
#[inline]
pub fn put_double(out: &mut Vec<u8>, value: f64) {
    let bits = value.to_bits();
    let mask = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    put_coded(out, DOUBLE, &(bits ^ mask).to_be_bytes());
}

/// Appends a bool.
#[inline]
pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { TRUE } else { FALSE });
}

#[inline]
fn put_coded(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    out.push(code);
    out.extend_from_slice(bytes);
}

/// A byte string or text without its end, so that longer ones start with the same bytes.
#[inline]
pub(in crate::codec) fn put_partial(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    out.push(code);
    if bytes.contains(&NULL) {
        return put_escaped(out, bytes);
    }
    out.extend_from_slice(bytes);
}

#[cold]
fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.push(byte);
        if byte == NULL {
            out.push(ESCAPE);
        }
    }
}

#[inline]
fn put_short_int(out: &mut Vec<u8>, magnitude: u64, negative: bool) {
    let len = 8 - magnitude.leading_zeros() as usize / 8;
    if len == 0 {
        return out.push(INT_ZERO);
    }
    let bits = if negative { !magnitude } else { magnitude };
    let mut image = [0u8; 9];
    image[0] = if negative { INT_ZERO - len as u8 } else { INT_ZERO + len as u8 };
    image[1..].copy_from_slice(&(bits << (64 - 8 * len)).to_be_bytes());
    // A copy of fixed length and a cut cost less than a copy with a length that is known only at
    // run time.
    let end = out.len() + 1 + len;
    out.extend_from_slice(&image);
    out.truncate(end);
}

fn put_long_int(out: &mut Vec<u8>, magnitude: u128, negative: bool) {
    let len = 16 - magnitude.leading_zeros() as usize / 8;
    let bits = if negative { !magnitude } else { magnitude };
    out.push(if negative { INT_LONG_NEGATIVE } else { INT_LONG });
    out.push(if negative { !(len as u8) } else { len as u8 });
    out.extend_from_slice(&bits.to_be_bytes()[16 - len..]);
}
