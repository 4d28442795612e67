//! Tuples as bytes whose order is the order of the tuples: FoundationDB's tuple layer.
//!
//! The encoding is that of FoundationDB's `design/tuple.md`, so keys are exchanged with every language that
//! has a binding of it. A tuple is its elements one after the other, each with a code in front:
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
//! A code is never ff, and all that may follow a terminating 00 is a code, 00 or the end: that is why
//! escaping keeps the order. Decoding is strict: equal tuples are equal bytes, which folding relies on. So
//! an integer must be in its shortest form (the Python binding writes ±(2^64-1) in the long form, against
//! the specification; that one form is refused), and integers beyond `i128` are refused.
//!
//! The `put_*` and `take_*` functions are what typed keys use; they allocate nothing of their own.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

use folddb_base::bytes::{Reader, prefix_u64};

use super::CodecError;
use super::range::KeyRange;
use crate::datum::Datum;

/// Tuples nest at most so deep.
pub const DEPTH_MAX: usize = 32;

pub(super) const NULL: u8 = 0x00;
pub(super) const BYTES: u8 = 0x01;
pub(super) const TEXT: u8 = 0x02;
pub(super) const NESTED: u8 = 0x05;
pub(super) const INT_LONG_NEGATIVE: u8 = 0x0b;
pub(super) const INT_ZERO: u8 = 0x14;
pub(super) const INT_LONG: u8 = 0x1d;
pub(super) const FLOAT: u8 = 0x20;
pub(super) const DOUBLE: u8 = 0x21;
pub(super) const FALSE: u8 = 0x26;
pub(super) const TRUE: u8 = 0x27;
pub(super) const UUID: u8 = 0x30;
pub(super) const STAMP_80: u8 = 0x32;
pub(super) const STAMP_96: u8 = 0x33;
const ESCAPE: u8 = 0xff;

/// One element of a tuple. Decoding borrows from the key where nothing was escaped.
///
/// Elements order as FoundationDB says: by type in the order of the variants, then by value; floating-point
/// numbers in IEEE total order, so that NaN equals itself and -0.0 is less than 0.0.
#[derive(Clone, Debug)]
pub enum Element<'a> {
    /// Nothing.
    Null,
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// Text.
    Text(Cow<'a, str>),
    /// A tuple in the tuple; at most [`DEPTH_MAX`] deep.
    Nested(Vec<Element<'a>>),
    /// An integer.
    Int(i128),
    /// A number of 32 bits.
    Float(f32),
    /// A number of 64 bits.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// An RFC 4122 identifier.
    Uuid([u8; 16]),
    /// A version stamp of 80 bits.
    Stamp80([u8; 10]),
    /// A version stamp of 96 bits.
    Stamp96([u8; 12]),
}

impl Element<'_> {
    /// The same element, owning its bytes.
    pub fn into_owned(self) -> Element<'static> {
        match self {
            Element::Null => Element::Null,
            Element::Bytes(bytes) => Element::Bytes(Cow::Owned(bytes.into_owned())),
            Element::Text(text) => Element::Text(Cow::Owned(text.into_owned())),
            Element::Nested(items) => Element::Nested(items.into_iter().map(Element::into_owned).collect()),
            Element::Int(value) => Element::Int(value),
            Element::Float(value) => Element::Float(value),
            Element::Double(value) => Element::Double(value),
            Element::Bool(value) => Element::Bool(value),
            Element::Uuid(bytes) => Element::Uuid(bytes),
            Element::Stamp80(bytes) => Element::Stamp80(bytes),
            Element::Stamp96(bytes) => Element::Stamp96(bytes),
        }
    }

    /// The element as people read it. Byte strings stay bytes, so that they differ from text.
    pub fn show(&self) -> Datum {
        match self {
            Element::Null => Datum::Null,
            Element::Bytes(bytes) => Datum::Bytes(bytes.to_vec()),
            Element::Text(text) => Datum::Text(text.to_string()),
            Element::Nested(items) => Datum::List(items.iter().map(Element::show).collect()),
            Element::Int(value) => Datum::Int(*value),
            Element::Float(value) => Datum::Float(f64::from(*value)),
            Element::Double(value) => Datum::Float(*value),
            Element::Bool(value) => Datum::Bool(*value),
            Element::Uuid(bytes) => Datum::Text(uuid_text(bytes)),
            Element::Stamp80(bytes) => Datum::Bytes(bytes.to_vec()),
            Element::Stamp96(bytes) => Datum::Bytes(bytes.to_vec()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Element::Null => NULL,
            Element::Bytes(_) => BYTES,
            Element::Text(_) => TEXT,
            Element::Nested(_) => NESTED,
            Element::Int(_) => INT_ZERO,
            Element::Float(_) => FLOAT,
            Element::Double(_) => DOUBLE,
            Element::Bool(_) => FALSE,
            Element::Uuid(_) => UUID,
            Element::Stamp80(_) => STAMP_80,
            Element::Stamp96(_) => STAMP_96,
        }
    }
}

impl Ord for Element<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Bytes(a), Element::Bytes(b)) => a.cmp(b),
            (Element::Text(a), Element::Text(b)) => a.cmp(b),
            (Element::Nested(a), Element::Nested(b)) => a.cmp(b),
            (Element::Int(a), Element::Int(b)) => a.cmp(b),
            (Element::Float(a), Element::Float(b)) => a.total_cmp(b),
            (Element::Double(a), Element::Double(b)) => a.total_cmp(b),
            (Element::Bool(a), Element::Bool(b)) => a.cmp(b),
            (Element::Uuid(a), Element::Uuid(b)) => a.cmp(b),
            (Element::Stamp80(a), Element::Stamp80(b)) => a.cmp(b),
            (Element::Stamp96(a), Element::Stamp96(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element<'_> {}

impl<'a> From<&'a str> for Element<'a> {
    fn from(text: &'a str) -> Self {
        Element::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Element<'static> {
    fn from(text: String) -> Self {
        Element::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Element<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Element::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<i32> for Element<'static> {
    fn from(value: i32) -> Self {
        Element::Int(i128::from(value))
    }
}

impl From<u32> for Element<'static> {
    fn from(value: u32) -> Self {
        Element::Int(i128::from(value))
    }
}

impl From<i64> for Element<'static> {
    fn from(value: i64) -> Self {
        Element::Int(i128::from(value))
    }
}

impl From<u64> for Element<'static> {
    fn from(value: u64) -> Self {
        Element::Int(i128::from(value))
    }
}

impl From<f64> for Element<'static> {
    fn from(value: f64) -> Self {
        Element::Double(value)
    }
}

impl From<bool> for Element<'static> {
    fn from(value: bool) -> Self {
        Element::Bool(value)
    }
}

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
/// This is not the same as the keys that start with its bytes: the tuple ("a\0b") does, and is not meant.
pub fn prefix_range(elements: &[Element<'_>]) -> KeyRange {
    packed_prefix_range(pack(elements))
}

/// The keys of all tuples that start with these elements and have more: FoundationDB's `range`.
pub fn inside_range(elements: &[Element<'_>]) -> KeyRange {
    let packed = pack(elements);
    let range = packed_prefix_range(packed.clone());
    KeyRange { low: Bound::Excluded(packed), ..range }
}

/// The keys of all tuples that start with these elements, where of the last one, a text or byte string, only
/// the beginning is given. `None` when the last one is something else, or there is none.
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

/// As [`prefix_range`], of a tuple that is packed already.
pub fn packed_prefix_range(packed: Vec<u8>) -> KeyRange {
    let mut to = Vec::with_capacity(packed.len() + 1);
    to.extend_from_slice(&packed);
    to.push(ESCAPE);
    KeyRange { low: Bound::Included(packed), high: Bound::Excluded(to) }
}

// ---- writing --------------------------------------------------------------------------------------------

/// Appends an element; `nested` says whether it stands inside another one.
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

/// Appends a truth value.
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
pub(super) fn put_partial(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
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
    // A copy of fixed length and a cut cost less than a copy of a length known only now.
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

// ---- reading --------------------------------------------------------------------------------------------

/// The next element; `nested` says whether it stands inside another one, `depth` how deep.
fn take_element<'a>(reader: &mut Reader<'a>, nested: bool, depth: usize) -> Result<Element<'a>, CodecError> {
    let code = reader.u8()?;
    Ok(match code {
        NULL => {
            finish_null(reader, nested)?;
            Element::Null
        }
        BYTES => Element::Bytes(take_escaped(reader)?),
        TEXT => Element::Text(take_utf8(reader)?),
        NESTED => Element::Nested(take_nested(reader, depth)?),
        INT_LONG_NEGATIVE..=INT_LONG => Element::Int(finish_int(reader, code)?),
        FLOAT => Element::Float(finish_float(reader)?),
        DOUBLE => Element::Double(finish_double(reader)?),
        FALSE | TRUE => Element::Bool(code == TRUE),
        UUID => Element::Uuid(take_array(reader)?),
        STAMP_80 => Element::Stamp80(take_array(reader)?),
        STAMP_96 => Element::Stamp96(take_array(reader)?),
        _ => return Err(unknown_code(code)),
    })
}

fn take_nested<'a>(reader: &mut Reader<'a>, depth: usize) -> Result<Vec<Element<'a>>, CodecError> {
    check_depth(depth)?;
    let mut items = Vec::new();
    while !take_nested_end(reader)? {
        items.push(take_element(reader, true, depth + 1)?);
    }
    Ok(items)
}

/// Passes over the next element, which stands at the top, checking it.
///
/// # Errors
/// When what stands there is none.
pub fn skip(reader: &mut Reader<'_>) -> Result<(), CodecError> {
    skip_element(reader, false, 0).map(|_| ())
}

/// Passes over the next element, checking it, and returns its code.
pub(super) fn skip_element(reader: &mut Reader<'_>, nested: bool, depth: usize) -> Result<u8, CodecError> {
    let code = reader.u8()?;
    match code {
        NULL => finish_null(reader, nested)?,
        BYTES => skip_escaped(reader, |_| Ok(()))?,
        TEXT => skip_escaped(reader, |piece| utf8(piece).map(|_| ()))?,
        NESTED => {
            check_depth(depth)?;
            while !take_nested_end(reader)? {
                skip_element(reader, true, depth + 1)?;
            }
        }
        INT_LONG_NEGATIVE..=INT_LONG => {
            finish_int(reader, code)?;
        }
        FALSE | TRUE => {}
        FLOAT | DOUBLE | UUID | STAMP_80 | STAMP_96 => {
            reader.take(fixed_len(code))?;
        }
        _ => return Err(unknown_code(code)),
    }
    Ok(code)
}

fn fixed_len(code: u8) -> usize {
    match code {
        FLOAT => 4,
        DOUBLE => 8,
        UUID => 16,
        STAMP_80 => 10,
        _ => 12,
    }
}

pub(super) fn check_depth(depth: usize) -> Result<(), CodecError> {
    if depth < DEPTH_MAX {
        return Ok(());
    }
    Err(CodecError::new(format!("a tuple nests deeper than {DEPTH_MAX}")))
}

/// True, and the end is read, when a nested tuple ends here.
#[inline]
pub(super) fn take_nested_end(reader: &mut Reader<'_>) -> Result<bool, CodecError> {
    match reader.rest() {
        [] => Err(CodecError::new("a nested tuple does not end")),
        [NULL, ESCAPE, ..] => Ok(false),
        [NULL, ..] => {
            reader.u8()?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// True, and the null is read, when the next element is null.
#[inline]
pub fn take_null(reader: &mut Reader<'_>, nested: bool) -> Result<bool, CodecError> {
    match (nested, reader.rest()) {
        (false, [NULL, ..]) => {
            reader.u8()?;
            Ok(true)
        }
        (true, [NULL, ESCAPE, ..]) => {
            reader.take(2)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The next element, which must be a byte string.
#[inline]
pub fn take_bytes<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, CodecError> {
    expect_code(reader, BYTES)?;
    take_escaped(reader)
}

/// The next element, which must be text.
#[inline]
pub fn take_text<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, CodecError> {
    expect_code(reader, TEXT)?;
    take_utf8(reader)
}

/// Reads the code of a nested tuple.
#[inline]
pub fn take_nested_begin(reader: &mut Reader<'_>) -> Result<(), CodecError> {
    expect_code(reader, NESTED)
}

/// The next element, which must be an integer.
#[inline]
pub fn take_int(reader: &mut Reader<'_>) -> Result<i128, CodecError> {
    match reader.u8()? {
        code @ INT_LONG_NEGATIVE..=INT_LONG => finish_int(reader, code),
        code => Err(mismatch("an integer", code)),
    }
}

/// The next element, which must be an integer that fits.
#[inline]
pub fn take_i64(reader: &mut Reader<'_>) -> Result<i64, CodecError> {
    let code = reader.u8()?;
    let value = match code {
        INT_ZERO..INT_LONG => i64::try_from(finish_short_int(reader, code)?).ok(),
        INT_LONG_NEGATIVE | INT_LONG => None,
        INT_LONG_NEGATIVE..INT_ZERO => 0i64.checked_sub_unsigned(finish_short_int(reader, code)?),
        _ => return Err(mismatch("an integer", code)),
    };
    value.ok_or_else(|| does_not_fit("i64"))
}

/// The next element, which must be an integer that fits.
#[inline]
pub fn take_u64(reader: &mut Reader<'_>) -> Result<u64, CodecError> {
    match reader.u8()? {
        code @ INT_ZERO..INT_LONG => finish_short_int(reader, code),
        INT_LONG_NEGATIVE..=INT_LONG => Err(does_not_fit("u64")),
        code => Err(mismatch("an integer", code)),
    }
}

/// The next element, which must be a float.
#[inline]
pub fn take_float(reader: &mut Reader<'_>) -> Result<f32, CodecError> {
    expect_code(reader, FLOAT)?;
    finish_float(reader)
}

/// The next element, which must be a double.
#[inline]
pub fn take_double(reader: &mut Reader<'_>) -> Result<f64, CodecError> {
    expect_code(reader, DOUBLE)?;
    finish_double(reader)
}

/// The next element, which must be a truth value.
#[inline]
pub fn take_bool(reader: &mut Reader<'_>) -> Result<bool, CodecError> {
    match reader.u8()? {
        FALSE => Ok(false),
        TRUE => Ok(true),
        code => Err(mismatch("true or false", code)),
    }
}

#[inline]
fn expect_code(reader: &mut Reader<'_>, expected: u8) -> Result<(), CodecError> {
    match reader.u8()? {
        code if code == expected => Ok(()),
        code => Err(mismatch(code_name(expected), code)),
    }
}

/// What an element with this code is called.
pub(super) fn code_name(code: u8) -> &'static str {
    match code {
        NULL => "null",
        BYTES => "bytes",
        TEXT => "text",
        NESTED => "a nested tuple",
        INT_LONG_NEGATIVE..=INT_LONG => "an integer",
        FLOAT => "a float",
        DOUBLE => "a double",
        FALSE | TRUE => "true or false",
        UUID => "a uuid",
        STAMP_80 | STAMP_96 => "a version stamp",
        _ => "something unknown",
    }
}

#[cold]
pub(super) fn mismatch(expected: &str, code: u8) -> CodecError {
    CodecError::new(format!("expected {expected} in a tuple, found {}", code_name(code)))
}

#[cold]
fn unknown_code(code: u8) -> CodecError {
    CodecError::new(format!("{code:#04x} does not begin an element of a tuple"))
}

fn finish_null(reader: &mut Reader<'_>, nested: bool) -> Result<(), CodecError> {
    if nested && reader.u8()? != ESCAPE {
        return Err(CodecError::new("a null in a nested tuple is not marked as one"));
    }
    Ok(())
}

fn finish_float(reader: &mut Reader<'_>) -> Result<f32, CodecError> {
    let bits = u32::from_be_bytes(take_array(reader)?);
    let mask = if bits >> 31 == 0 { u32::MAX } else { 1 << 31 };
    Ok(f32::from_bits(bits ^ mask))
}

fn finish_double(reader: &mut Reader<'_>) -> Result<f64, CodecError> {
    let bits = u64::from_be_bytes(take_array(reader)?);
    let mask = if bits >> 63 == 0 { u64::MAX } else { 1 << 63 };
    Ok(f64::from_bits(bits ^ mask))
}

fn take_array<const N: usize>(reader: &mut Reader<'_>) -> Result<[u8; N], CodecError> {
    let mut array = [0u8; N];
    array.copy_from_slice(reader.take(N)?);
    Ok(array)
}

/// The integer after its code, which is one of `INT_LONG_NEGATIVE..=INT_LONG`.
#[inline]
fn finish_int(reader: &mut Reader<'_>, code: u8) -> Result<i128, CodecError> {
    if code == INT_LONG || code == INT_LONG_NEGATIVE {
        return finish_long_int(reader, code == INT_LONG_NEGATIVE);
    }
    let magnitude = i128::from(finish_short_int(reader, code)?);
    Ok(if code < INT_ZERO { -magnitude } else { magnitude })
}

/// The magnitude of an integer of at most 8 bytes; its sign is in the code.
#[inline]
fn finish_short_int(reader: &mut Reader<'_>, code: u8) -> Result<u64, CodecError> {
    let len = usize::from(code.abs_diff(INT_ZERO));
    if len == 0 {
        return Ok(0);
    }
    let unused = 64 - 8 * len as u32;
    let flip = if code < INT_ZERO { u64::MAX } else { 0 };
    // Eight bytes at once, where there are as many, cost less than a copy of a length known only now.
    let word = match reader.rest().first_chunk::<8>() {
        Some(word) => u64::from_be_bytes(*word),
        None => prefix_u64(reader.rest(), 0),
    };
    reader.take(len)?;
    let magnitude = (word ^ flip) >> unused;
    if magnitude.leading_zeros() >= unused + 8 { Err(not_shortest()) } else { Ok(magnitude) }
}

fn finish_long_int(reader: &mut Reader<'_>, negative: bool) -> Result<i128, CodecError> {
    let flip = if negative { 0xff } else { 0 };
    let len = usize::from(reader.u8()? ^ flip);
    let bytes = reader.take(len)?;
    if len <= 8 || bytes[0] ^ flip == 0 {
        return Err(not_shortest());
    }
    if len > 16 {
        return Err(too_wide());
    }
    let mut word = [flip; 16];
    word[16 - len..].copy_from_slice(bytes);
    let bits = u128::from_be_bytes(word);
    let value = if negative { 0i128.checked_sub_unsigned(!bits) } else { i128::try_from(bits).ok() };
    value.ok_or_else(too_wide)
}

#[cold]
fn does_not_fit(number: &str) -> CodecError {
    CodecError::new(format!("an integer in a tuple does not fit {number}"))
}

#[cold]
fn not_shortest() -> CodecError {
    CodecError::new("an integer in a tuple is not in its shortest form")
}

#[cold]
fn too_wide() -> CodecError {
    CodecError::new("an integer in a tuple has more than 128 bits")
}

#[inline]
fn take_utf8<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, CodecError> {
    Ok(match take_escaped(reader)? {
        Cow::Borrowed(bytes) => Cow::Borrowed(utf8(bytes)?),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).map_err(|_| not_utf8())?),
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, CodecError> {
    std::str::from_utf8(bytes).map_err(|_| not_utf8())
}

#[cold]
fn not_utf8() -> CodecError {
    CodecError::new("text in a tuple is not UTF-8")
}

/// The bytes up to the end of a string, unescaped; copies only what was escaped.
#[inline]
fn take_escaped<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, CodecError> {
    let (piece, escaped) = take_piece(reader)?;
    if !escaped {
        return Ok(Cow::Borrowed(piece));
    }
    let mut bytes = piece.to_vec();
    loop {
        bytes.push(NULL);
        let (piece, escaped) = take_piece(reader)?;
        bytes.extend_from_slice(piece);
        if !escaped {
            return Ok(Cow::Owned(bytes));
        }
    }
}

/// Shows `look` the pieces between the zeros of a string. Text may be checked by pieces, since a zero is a
/// whole character.
fn skip_escaped(
    reader: &mut Reader<'_>,
    look: impl Fn(&[u8]) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    loop {
        let (piece, escaped) = take_piece(reader)?;
        look(piece)?;
        if !escaped {
            return Ok(());
        }
    }
}

/// The bytes up to the next zero, and whether that one is escaped and more of the string follows.
#[inline]
fn take_piece<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], bool), CodecError> {
    let rest = reader.rest();
    let Some(len) = zero_at(rest) else {
        return Err(CodecError::new("a string in a tuple does not end"));
    };
    let escaped = rest.get(len + 1) == Some(&ESCAPE);
    reader.take(len + 1 + usize::from(escaped))?;
    Ok((&rest[..len], escaped))
}

/// Where the first zero byte stands. Eight bytes at a time: the lowest set bit of `word - 1s & !word & 0x80s`
/// marks the first zero of a little-endian word (Warren, Hacker's Delight, 6-1).
#[inline]
fn zero_at(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(8 * index + zeros.trailing_zeros() as usize / 8);
        }
    }
    tail.iter().position(|&byte| byte == NULL).map(|at| 8 * words.len() + at)
}

/// A uuid as people write it, with hyphens.
pub fn uuid_text(bytes: &[u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*bytes));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Reads what [`uuid_text`] writes, with or without the hyphens.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|&letter| letter != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
#[path = "tuple/tests.rs"]
mod tests;
