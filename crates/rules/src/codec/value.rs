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
//! JSON text is kept as it was written, with every digit of its numbers. Shown, it has them too; a
//! `serde_json::Value` rounds what is neither of 64 bits nor a double, as that crate does.
//!
//! Values and operands of a fold have one type, so the operand types of [`crate::folds`] are values too;
//! their fold shows them, and their value codec is `bytes`.

use std::fmt;

use super::CodecError;
use super::key::{fixed, read_bytes, read_int, read_number, read_text, show_bytes, utf8};
use crate::datum::json_text::{self, Node};
use crate::datum::{Datum, json};

/// Deepest nesting of JSON that is a value: as deep as `serde_json` reads.
const DEPTH_MAX: usize = 127;

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
            ValueCodec::Json => json::datum_of(parse_json(bytes)?, false),
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
                other if has_no_json(other) => {
                    return Err(CodecError::new(format!("{other} cannot be written as JSON")));
                }
                other => {
                    let start = out.len();
                    json::put_bytes(other, out);
                    if let Err(error) = parse_json(&out[start..]).map(|_| ()) {
                        out.truncate(start);
                        return Err(error);
                    }
                }
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

/// Reads JSON text, in which no number is beyond all doubles: programs could not read it.
fn parse_json(bytes: &[u8]) -> Result<Node<'_>, CodecError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| CodecError::new("not JSON: the bytes are not UTF-8 text"))?;
    let node = json_text::parse_in_order(text, DEPTH_MAX)
        .map_err(|error| CodecError::new(format!("not JSON: {error}")))?;
    match beyond_doubles(&node) {
        Some(number) => {
            let place = "is beyond all numbers of JSON readers (±1.8e308)";
            Err(CodecError::new(format!("{number} {place}; write it as text: \"{number}\"")))
        }
        None => Ok(node),
    }
}

/// A number in JSON that programs would read as infinite.
fn beyond_doubles<'n>(node: &Node<'n>) -> Option<&'n str> {
    match node {
        Node::Word("null" | "true" | "false") | Node::Text(_) => None,
        Node::Word(number) => Some(*number).filter(|number| number.parse().is_ok_and(f64::is_infinite)),
        Node::Array(items) => items.iter().find_map(beyond_doubles),
        Node::Object(fields) => fields.iter().find_map(|(_, node)| beyond_doubles(node)),
    }
}

/// Whether there is a number in it that JSON cannot say.
fn has_no_json(datum: &Datum) -> bool {
    match datum {
        Datum::Float(value) => !value.is_finite(),
        Datum::List(items) => items.iter().any(has_no_json),
        Datum::Map(fields) => fields.iter().any(|(_, value)| has_no_json(value)),
        _ => false,
    }
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
        serde_json::from_slice(bytes).map_err(|error| CodecError::new(format!("not JSON: {error}")))
    }
}

#[cfg(test)]
#[path = "value/tests.rs"]
mod tests;
