//! Converts what a person gave for a part of a key or value to the required type.

use super::CodecError;
use super::tuple;
use crate::datum::{Datum, Quoted, from_hex, parse_float, plain, unwrapped};
use crate::time_text;

pub(super) fn wrong(expected: &str, found: &Datum) -> CodecError {
    // So that its type is seen: texts in quotes, bytes with 0x.
    CodecError::new(format!("expected {expected}, found {}", Quoted(found)))
}

pub(super) fn read_bytes(datum: &Datum) -> Result<Vec<u8>, CodecError> {
    match datum {
        Datum::Bytes(bytes) => Ok(bytes.clone()),
        Datum::Text(text) if text.starts_with("0x") => {
            from_hex(text).ok_or_else(|| wrong("pairs of hexadecimal digits after 0x", datum))
        }
        Datum::Text(text) => Ok(text.as_bytes().to_vec()),
        other => unwrapped(other).ok_or_else(|| {
            plain::why_not_wrapped(other).map_or_else(|| wrong("bytes", other), CodecError::new)
        }),
    }
}

pub(super) fn read_text(datum: &Datum) -> Result<&str, CodecError> {
    match datum {
        Datum::Text(text) => Ok(text),
        other => Err(wrong("text", other)),
    }
}

pub(super) fn read_int<T: TryFrom<i128>>(datum: &Datum, name: &str) -> Result<T, CodecError> {
    let value = match datum {
        Datum::Int(value) => Some(*value),
        Datum::Text(text) | Datum::Number(text) => text.trim().parse().ok(),
        _ => None,
    };
    value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| wrong(name, datum))
}

/// A time as text, or as a number of microseconds.
pub(super) fn read_time(datum: &Datum) -> Result<i64, CodecError> {
    let read = time_text::of_datum(datum).map_err(CodecError::new)?;
    read.ok_or_else(|| wrong(time_text::EXPECTED, datum))
}

pub(super) fn read_number(datum: &Datum, name: &str) -> Result<f64, CodecError> {
    match datum {
        Datum::Float(value) => Ok(*value),
        Datum::Int(value) => Ok(*value as f64),
        Datum::Text(text) | Datum::Number(text) => parse_float(text).ok_or_else(|| wrong(name, datum)),
        other => Err(wrong(name, other)),
    }
}

/// The `f32` that is nearest to the given number; an error if that is beyond all of them.
pub(super) fn read_float(datum: &Datum, name: &str) -> Result<f32, CodecError> {
    let value = read_number(datum, name)?;
    let narrow = value as f32;
    if narrow.is_infinite() && value.is_finite() { Err(wrong(name, datum)) } else { Ok(narrow) }
}

pub(super) fn read_bool(datum: &Datum) -> Result<bool, CodecError> {
    match datum {
        Datum::Bool(value) => Ok(*value),
        Datum::Text(text) => text.trim().parse().map_err(|_| wrong("true or false", datum)),
        other => Err(wrong("true or false", other)),
    }
}

pub(super) fn read_uuid(datum: &Datum) -> Result<tuple::Element<'static>, CodecError> {
    let bytes = match datum {
        Datum::Text(text) => tuple::parse_uuid(text.trim()),
        Datum::Bytes(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    };
    bytes.map(tuple::Element::Uuid).ok_or_else(|| wrong("a uuid", datum))
}

pub(super) fn read_stamp(datum: &Datum) -> Result<tuple::Element<'static>, CodecError> {
    let bytes = read_bytes(datum)?;
    if let Ok(stamp) = bytes.as_slice().try_into() {
        return Ok(tuple::Element::Stamp80(stamp));
    }
    let stamp = bytes.as_slice().try_into().map_err(|_| wrong("a version stamp of 10 or 12 bytes", datum))?;
    Ok(tuple::Element::Stamp96(stamp))
}
