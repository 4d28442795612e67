//! Key codecs: what a table stores about its keys, and what the command line and other languages
//! use to check and show them. How they are named, encoded and parsed is in the files beside this.
//!
//! ```text
//!   bytes              the key as it is
//!   utf8               text
//!   u32 u64 i64        4 or 8 bytes, big-endian, the sign bit flipped
//!   time               the microseconds since 1970, as i64 (see `time_text`)
//!   tuple              a tuple of any elements (see `tuple`)
//!   tuple(text,int?)   a tuple of just these: any bytes text int float double bool uuid versionstamp
//!                      time (as int) tuple tuple(...), each with a ? where null is allowed
//! ```
//!
//! All of them keep the order of what they encode.

use folddb_base::bytes::Reader;
use folddb_base::counted;

use super::CodecError;
use super::tuple;
use crate::datum::{Datum, hex};
use crate::time_text;

/// How the keys of a table look as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyCodec {
    /// As they are.
    #[default]
    Bytes,
    /// Text.
    Utf8,
    /// 4 bytes.
    U32,
    /// 8 bytes.
    U64,
    /// 8 bytes.
    I64,
    /// A time: microseconds since 1970, 8 bytes as [`KeyCodec::I64`].
    Time,
    /// A tuple of any elements.
    Tuple,
    /// A tuple of exactly these elements.
    TypedTuple(Vec<ElementType>),
}

/// What an element of a tuple may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementType {
    /// Anything.
    Any,
    /// A byte string.
    Bytes,
    /// Text.
    Text,
    /// An integer of at most 128 bits.
    Int,
    /// A number of 32 bits.
    Float,
    /// A number of 64 bits.
    Double,
    /// A bool.
    Bool,
    /// An RFC 4122 identifier.
    Uuid,
    /// A version stamp of 80 or 96 bits.
    Stamp,
    /// A time: microseconds since 1970, an integer of 64 bits.
    Time,
    /// A nested tuple of any elements.
    AnyTuple,
    /// A nested tuple of exactly these elements.
    Tuple(Vec<ElementType>),
    /// This, or null.
    Optional(Box<ElementType>),
}

impl KeyCodec {
    /// The length of every key in bytes, if it is fixed.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            KeyCodec::U32 => Some(4),
            KeyCodec::U64 | KeyCodec::I64 | KeyCodec::Time => Some(8),
            _ => None,
        }
    }

    /// The types of the elements of a typed tuple.
    pub fn element_types(&self) -> Option<&[ElementType]> {
        match self {
            KeyCodec::TypedTuple(types) => Some(types),
            _ => None,
        }
    }

    /// True when the keys are tuples.
    pub fn is_tuple(&self) -> bool {
        matches!(self, KeyCodec::Tuple | KeyCodec::TypedTuple(_))
    }

    /// Checks that the bytes are a key of this codec. Allocates nothing when they are.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn check(&self, bytes: &[u8]) -> Result<(), CodecError> {
        match self {
            KeyCodec::Bytes => Ok(()),
            KeyCodec::Utf8 => utf8(bytes).map(|_| ()),
            KeyCodec::U32 => fixed::<4>(bytes).map(|_| ()),
            KeyCodec::U64 | KeyCodec::I64 | KeyCodec::Time => fixed::<8>(bytes).map(|_| ()),
            KeyCodec::Tuple => tuple::check(bytes),
            KeyCodec::TypedTuple(types) => check_tuple(types, bytes),
        }
    }

    /// A key as people read it: a list for a tuple.
    ///
    /// # Errors
    /// When the bytes are not a key of this codec.
    pub fn show(&self, bytes: &[u8]) -> Result<Datum, CodecError> {
        Ok(match self {
            KeyCodec::Bytes => show_bytes(bytes),
            KeyCodec::Utf8 => Datum::Text(utf8(bytes)?.to_owned()),
            KeyCodec::U32 => Datum::Int(decode_u32(bytes)?.into()),
            KeyCodec::U64 => Datum::Int(decode_u64(bytes)?.into()),
            KeyCodec::I64 => Datum::Int(decode_i64(bytes)?.into()),
            KeyCodec::Time => time_text::shown(decode_i64(bytes)?),
            KeyCodec::Tuple | KeyCodec::TypedTuple(_) => Datum::List(self.columns(bytes)?),
        })
    }

    /// A key on one line, for messages; bytes that are not a key of this codec as hexadecimal
    /// digits.
    pub fn show_line(&self, bytes: &[u8]) -> String {
        match self.show(bytes) {
            Ok(Datum::Text(text)) if text.is_empty() || text.chars().any(char::is_control) => {
                format!("{text:?}")
            }
            Ok(datum) => datum.to_string(),
            Err(_) => hex(bytes),
        }
    }

    /// A key as the columns of a row: the elements of a tuple, or the one key.
    ///
    /// # Errors
    /// As [`KeyCodec::show`].
    pub fn columns(&self, bytes: &[u8]) -> Result<Vec<Datum>, CodecError> {
        if !self.is_tuple() {
            return Ok(vec![self.show(bytes)?]);
        }
        self.check(bytes)?;
        let elements = tuple::unpack(bytes)?;
        Ok(match self.element_types() {
            Some(types) => {
                types.iter().zip(&elements).map(|(of, element)| show_element(of, element)).collect()
            }
            None => elements.iter().map(tuple::Element::show).collect(),
        })
    }

    /// The codec with the same bytes that knows no times: that of a Rust type.
    pub(crate) fn without_times(&self) -> KeyCodec {
        match self {
            KeyCodec::Time => KeyCodec::I64,
            KeyCodec::TypedTuple(types) => {
                KeyCodec::TypedTuple(types.iter().map(ElementType::without_times).collect())
            }
            other => other.clone(),
        }
    }
}

/// An element of this type as people read it.
fn show_element(of: &ElementType, element: &tuple::Element<'_>) -> Datum {
    match (of, element) {
        (ElementType::Time, tuple::Element::Int(micros)) => {
            i64::try_from(*micros).map_or(Datum::Int(*micros), time_text::shown)
        }
        (ElementType::Optional(inner), element) => show_element(inner, element),
        (ElementType::Tuple(types), tuple::Element::Nested(items)) => {
            Datum::List(types.iter().zip(items).map(|(of, item)| show_element(of, item)).collect())
        }
        (_, element) => element.show(),
    }
}

/// Text if it is text that does not look like bytes.
pub(super) fn show_bytes(bytes: &[u8]) -> Datum {
    match Datum::from_bytes(bytes) {
        Datum::Text(text) if text.starts_with("0x") => Datum::Bytes(bytes.to_vec()),
        other => other,
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, CodecError> {
    std::str::from_utf8(bytes).map_err(|_| CodecError::new("the bytes are not UTF-8 text"))
}

pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CodecError> {
    bytes.try_into().map_err(|_| CodecError::new(format!("expected {N} bytes, found {}", bytes.len())))
}

#[inline]
pub(super) fn encode_i64(value: i64) -> [u8; 8] {
    (value.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

#[inline]
pub(super) fn decode_u32(bytes: &[u8]) -> Result<u32, CodecError> {
    Ok(u32::from_be_bytes(fixed(bytes)?))
}

#[inline]
pub(super) fn decode_u64(bytes: &[u8]) -> Result<u64, CodecError> {
    Ok(u64::from_be_bytes(fixed(bytes)?))
}

#[inline]
pub(super) fn decode_i64(bytes: &[u8]) -> Result<i64, CodecError> {
    Ok((decode_u64(bytes)? ^ (1 << 63)).cast_signed())
}

fn check_tuple(types: &[ElementType], bytes: &[u8]) -> Result<(), CodecError> {
    let mut reader = Reader::new(bytes);
    for (index, element) in types.iter().enumerate() {
        if reader.is_empty() {
            return Err(wrong_count(types, &index.to_string()));
        }
        check_element(&mut reader, element, false, 0).map_err(|error| in_element(types, index, &error))?;
    }
    if reader.is_empty() { Ok(()) } else { Err(wrong_count(types, "more")) }
}

fn check_element(
    reader: &mut Reader<'_>,
    element: &ElementType,
    nested: bool,
    depth: usize,
) -> Result<(), CodecError> {
    match element {
        ElementType::Optional(inner) => {
            if tuple::take_null(reader, nested)? {
                return Ok(());
            }
            check_element(reader, inner, nested, depth)
        }
        ElementType::Tuple(types) => check_nested(reader, types, depth),
        ElementType::Time => tuple::take_i64(reader).map(drop),
        _ => {
            let code = tuple::skip_element(reader, nested, depth)?;
            if element.admits(code) { Ok(()) } else { Err(tuple::mismatch(&element.to_string(), code)) }
        }
    }
}

fn check_nested(reader: &mut Reader<'_>, types: &[ElementType], depth: usize) -> Result<(), CodecError> {
    tuple::check_depth(depth)?;
    tuple::take_nested_begin(reader)?;
    for (index, element) in types.iter().enumerate() {
        if tuple::take_nested_end(reader)? {
            return Err(wrong_count(types, &index.to_string()));
        }
        check_element(reader, element, true, depth + 1)?;
    }
    if tuple::take_nested_end(reader)? { Ok(()) } else { Err(wrong_count(types, "more")) }
}

impl ElementType {
    fn without_times(&self) -> ElementType {
        match self {
            ElementType::Time => ElementType::Int,
            ElementType::Tuple(types) => {
                ElementType::Tuple(types.iter().map(ElementType::without_times).collect())
            }
            ElementType::Optional(inner) => ElementType::Optional(Box::new(inner.without_times())),
            other => other.clone(),
        }
    }

    /// True when an element with this code is of the type; the contents of a nested tuple are not
    /// examined.
    fn admits(&self, code: u8) -> bool {
        match self {
            ElementType::Any => true,
            ElementType::Bytes => code == tuple::BYTES,
            ElementType::Text => code == tuple::TEXT,
            ElementType::Int | ElementType::Time => {
                (tuple::INT_LONG_NEGATIVE..=tuple::INT_LONG).contains(&code)
            }
            ElementType::Float => code == tuple::FLOAT,
            ElementType::Double => code == tuple::DOUBLE,
            ElementType::Bool => code == tuple::FALSE || code == tuple::TRUE,
            ElementType::Uuid => code == tuple::UUID,
            ElementType::Stamp => code == tuple::STAMP_80 || code == tuple::STAMP_96,
            ElementType::AnyTuple | ElementType::Tuple(_) => code == tuple::NESTED,
            ElementType::Optional(inner) => code == tuple::NULL || inner.admits(code),
        }
    }
}

pub(super) fn wrong_count(types: &[ElementType], found: &str) -> CodecError {
    let elements = counted(types.len() as u64, "element");
    CodecError::new(format!("{} has {elements}, found {found}", KeyCodec::TypedTuple(types.to_vec())))
}

pub(super) fn in_element(types: &[ElementType], index: usize, error: &CodecError) -> CodecError {
    CodecError::new(format!("element {} of {}: {error}", index + 1, KeyCodec::TypedTuple(types.to_vec())))
}

#[cfg(test)]
#[path = "key/tests.rs"]
mod tests;
