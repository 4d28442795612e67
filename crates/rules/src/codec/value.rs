//! Values: how those of Rust types look as bytes, and how tables that replace show theirs.
//!
//! ```text
//!   Vec<u8>  [u8; N]   bytes    as they are
//!   String             utf8     text
//!   u64  i64  f64      u64 ...  8 bytes, little-endian, as the folds of numbers keep them
//!   i128               bytes    16 bytes, little-endian, as `sum:i128` keeps them
//!   serde_json::Value  json     text
//! ```
//!
//! Values and operands of a fold have one type, so the operand types of [`crate::folds`] are values too;
//! their fold shows them, and their value codec is `bytes`.

use std::fmt;

use super::CodecError;
use super::key::{fixed, read_bytes, read_int, read_number, read_text, show_bytes, utf8};
use crate::datum::Datum;

/// How the values of a table look as bytes, for showing and typing them where the fold does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueCodec {
    /// As they are; shown as text where they are text that does not look like bytes.
    #[default]
    Bytes,
    /// Text.
    Utf8,
    /// 8 bytes, little-endian.
    U64,
    /// 8 bytes, little-endian.
    I64,
    /// 8 bytes, little-endian.
    F64,
    /// JSON text.
    Json,
}

impl fmt::Display for ValueCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ValueCodec {
    const ALL: [ValueCodec; 6] = [
        ValueCodec::Bytes,
        ValueCodec::Utf8,
        ValueCodec::U64,
        ValueCodec::I64,
        ValueCodec::F64,
        ValueCodec::Json,
    ];

    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            ValueCodec::Bytes => "bytes",
            ValueCodec::Utf8 => "utf8",
            ValueCodec::U64 => "u64",
            ValueCodec::I64 => "i64",
            ValueCodec::F64 => "f64",
            ValueCodec::Json => "json",
        }
    }

    /// The codec with this name.
    ///
    /// # Errors
    /// When there is none; the message lists what there is.
    pub fn parse(name: &str) -> Result<ValueCodec, CodecError> {
        let found = ValueCodec::ALL.into_iter().find(|codec| codec.name() == name.trim());
        found.ok_or_else(|| {
            CodecError::new(format!(
                "{name:?} is not a type of values: use bytes, utf8, u64, i64, f64 or json"
            ))
        })
    }

    /// The length of every value in bytes, where it is fixed.
    pub fn fixed_len(self) -> Option<usize> {
        matches!(self, ValueCodec::U64 | ValueCodec::I64 | ValueCodec::F64).then_some(8)
    }

    /// Checks that the bytes are a value of this codec.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn check(self, bytes: &[u8]) -> Result<(), CodecError> {
        match self {
            ValueCodec::Bytes => Ok(()),
            ValueCodec::Utf8 => utf8(bytes).map(|_| ()),
            ValueCodec::U64 | ValueCodec::I64 | ValueCodec::F64 => fixed::<8>(bytes).map(|_| ()),
            ValueCodec::Json => parse_json(bytes).map(|_| ()),
        }
    }

    /// A value as people read it.
    ///
    /// # Errors
    /// When the bytes are not a value of this codec.
    pub fn show(self, bytes: &[u8]) -> Result<Datum, CodecError> {
        Ok(match self {
            ValueCodec::Bytes => show_bytes(bytes),
            ValueCodec::Utf8 => Datum::Text(utf8(bytes)?.to_owned()),
            ValueCodec::U64 => Datum::Int(u64::decode(bytes)?.into()),
            ValueCodec::I64 => Datum::Int(i64::decode(bytes)?.into()),
            ValueCodec::F64 => Datum::Float(f64::decode(bytes)?),
            ValueCodec::Json => json_datum(parse_json(bytes)?),
        })
    }

    /// Encodes a value; numbers and bytes (`0x...`) may also be given as text, JSON as text of JSON. Appends
    /// the bytes to `out`, which is unchanged after an error.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn encode(self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            ValueCodec::Bytes => out.extend_from_slice(&read_bytes(datum)?),
            ValueCodec::Utf8 => out.extend_from_slice(read_text(datum)?.as_bytes()),
            ValueCodec::U64 => AsValue::<u64>::encode(&read_int::<u64>(datum, "u64")?, out),
            ValueCodec::I64 => AsValue::<i64>::encode(&read_int::<i64>(datum, "i64")?, out),
            ValueCodec::F64 => AsValue::<f64>::encode(&read_number(datum, "f64")?, out),
            ValueCodec::Json => match datum {
                Datum::Text(text) => {
                    parse_json(text.as_bytes())?;
                    out.extend_from_slice(text.as_bytes());
                }
                other => out.extend_from_slice(datum_json(other)?.to_string().as_bytes()),
            },
        }
        Ok(())
    }

    /// Encodes what a person typed, or what stood in a column of a file.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_text(self, text: &str) -> Result<Vec<u8>, CodecError> {
        let mut value = Vec::new();
        self.encode(&Datum::Text(text.to_owned()), &mut value)?;
        Ok(value)
    }
}

fn parse_json(bytes: &[u8]) -> Result<serde_json::Value, CodecError> {
    serde_json::from_slice(bytes).map_err(|error| CodecError::new(format!("not JSON: {error}")))
}

fn json_datum(value: serde_json::Value) -> Datum {
    match value {
        serde_json::Value::Null => Datum::Null,
        serde_json::Value::Bool(value) => Datum::Bool(value),
        serde_json::Value::Number(number) => match number.as_i128() {
            Some(value) => Datum::Int(value),
            None => Datum::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Datum::Text(text),
        serde_json::Value::Array(items) => Datum::List(items.into_iter().map(json_datum).collect()),
        serde_json::Value::Object(fields) => {
            Datum::Map(fields.into_iter().map(|(name, value)| (name, json_datum(value))).collect())
        }
    }
}

fn datum_json(datum: &Datum) -> Result<serde_json::Value, CodecError> {
    let no_json = || CodecError::new(format!("{datum} cannot be written as JSON"));
    Ok(match datum {
        Datum::Null => serde_json::Value::Null,
        Datum::Bool(value) => (*value).into(),
        Datum::Int(value) => serde_json::Number::from_i128(*value).ok_or_else(no_json)?.into(),
        Datum::Float(value) => serde_json::Number::from_f64(*value).ok_or_else(no_json)?.into(),
        Datum::Text(text) => text.as_str().into(),
        Datum::Bytes(_) => return Err(no_json()),
        Datum::List(items) => items.iter().map(datum_json).collect::<Result<Vec<_>, _>>()?.into(),
        Datum::Map(fields) => {
            let field = |(name, value): &(String, Datum)| Ok((name.clone(), datum_json(value)?));
            serde_json::Value::Object(fields.iter().map(field).collect::<Result<_, CodecError>>()?)
        }
    })
}

/// A type whose values are values of tables. It encodes by standing for itself, see [`AsValue`].
pub trait Value: Sized + AsValue<Self> {
    /// How tables that replace show their values of this type; folds show their own.
    fn codec() -> ValueCodec {
        ValueCodec::Bytes
    }

    /// Whether all values of this type are operands of the built-in fold with this spec, as those of [`crate::folds`] are of theirs.
    /// Where they are not known to be, each is checked when it is written. A type of your own leaves it at that.
    fn is_operand_of(_spec: &str) -> bool {
        false
    }

    /// The value of these bytes.
    ///
    /// # Errors
    /// When the bytes are not a value of this type.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;
}

/// Something that may stand for a value of type `V` without being one: `str` for `String`.
pub trait AsValue<V> {
    /// Appends the value as bytes.
    fn encode(&self, out: &mut Vec<u8>);
}

impl<V, T: AsValue<V> + ?Sized> AsValue<V> for &T {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

macro_rules! bytes_as_value {
    ($value:ty: $($stand_in:ty $([$($generics:tt)*])?),+) => {$(
        impl $(<$($generics)*>)? AsValue<$value> for $stand_in {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let bytes: &[u8] = self.as_ref();
                out.extend_from_slice(bytes);
            }
        }
    )+};
}

bytes_as_value!(Vec<u8>: Vec<u8>, [u8], [u8; N] [const N: usize], str, String);
bytes_as_value!(String: String, str);

impl Value for Vec<u8> {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(bytes.to_vec())
    }
}

impl Value for String {
    fn codec() -> ValueCodec {
        ValueCodec::Utf8
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        utf8(bytes).map(str::to_owned)
    }
}

impl<const N: usize> AsValue<[u8; N]> for [u8; N] {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// Stored as plain `bytes`; a value of another length fails to decode.
impl<const N: usize> Value for [u8; N] {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        fixed(bytes)
    }
}

macro_rules! number_value {
    ($number:ty, $codec:expr) => {
        impl AsValue<$number> for $number {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }

        impl Value for $number {
            fn codec() -> ValueCodec {
                $codec
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                Ok(<$number>::from_le_bytes(fixed(bytes)?))
            }
        }
    };
}

number_value!(u64, ValueCodec::U64);
number_value!(i64, ValueCodec::I64);
number_value!(f64, ValueCodec::F64);
number_value!(i128, ValueCodec::Bytes); // the fold `sum:i128` shows it

impl AsValue<serde_json::Value> for serde_json::Value {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }
}

impl Value for serde_json::Value {
    fn codec() -> ValueCodec {
        ValueCodec::Json
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        parse_json(bytes)
    }
}

#[cfg(test)]
#[path = "value/tests.rs"]
mod tests;
