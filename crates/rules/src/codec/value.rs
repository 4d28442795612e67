//! Values: how Rust types are encoded, and how tables that replace show their values.
//!
//! ```text
//!   Vec<u8>  [u8; N]         bytes      as they are
//!   String                   utf8       text
//!   u8 .. u128  i8 .. i128   u8 ...     little-endian, as the folds of numbers keep them
//!   f32  f64                 f32  f64   little-endian
//!   bool                     bool       one byte, 0 or 1
//!   i64                      time       microseconds since 1970, see time_text.rs
//!   Json<T>, serde_json::Value   json   text, see json.rs
//! ```
//!
//! JSON text is kept as it was written, with every digit of its numbers, and shown with them.
//!
//! Values and operands of a fold have one type, so the operand types of [`crate::folds`] are values
//! too; their fold shows them, and their value codec is `bytes`.

use std::fmt;
use std::str::FromStr;

use super::CodecError;
use super::given::{read_bool, read_bytes, read_float, read_int, read_number, read_text, read_time};
use super::key::{fixed, show_bytes, utf8};
use crate::datum::json_text::{self, Node};
use crate::datum::{Datum, json};
use crate::fold::Fold;
use crate::folds::{FoldSpec, replace};
use crate::parse_error::{ParseError, nearest};
use crate::time_text;

/// Deepest nesting of JSON that is a value: as deep as `serde_json` reads.
const DEPTH_MAX: usize = 127;

/// How the values of a table are encoded, for showing and typing them if the fold does not do that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueCodec {
    /// As they are; shown as text if they are text that does not look like bytes.
    #[default]
    Bytes,
    /// Text.
    Utf8,
    /// A whole number of this width, little-endian.
    U8,
    /// As [`ValueCodec::U8`].
    U16,
    /// As [`ValueCodec::U8`].
    U32,
    /// As [`ValueCodec::U8`].
    U64,
    /// As [`ValueCodec::U8`].
    U128,
    /// As [`ValueCodec::U8`].
    I8,
    /// As [`ValueCodec::U8`].
    I16,
    /// As [`ValueCodec::U8`].
    I32,
    /// As [`ValueCodec::U8`].
    I64,
    /// As [`ValueCodec::U8`].
    I128,
    /// 4 bytes, little-endian.
    F32,
    /// 8 bytes, little-endian.
    F64,
    /// One byte, 0 or 1.
    Bool,
    /// A time: microseconds since 1970, 8 bytes as [`ValueCodec::I64`].
    Time,
    /// JSON text.
    Json,
}

impl fmt::Display for ValueCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ValueCodec {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<ValueCodec, ParseError> {
        let wanted = if name.trim() == "text" { "utf8" } else { name.trim() }; // as keys may call it
        let found = ValueCodec::ALL.into_iter().find(|codec| codec.name() == wanted);
        found.ok_or_else(|| {
            let message = format!(
                "`{name}` is not a type of values: use bytes, utf8, u8 to u128, i8 to i128, f32, f64, bool, time or json"
            );
            let near = || nearest(name, ValueCodec::ALL.iter().map(|codec| codec.name()));
            let meant = elsewhere(name).or_else(near);
            ParseError::of(name, message).suggest(meant.map(str::to_owned))
        })
    }
}

/// What other languages call the types of values.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "string" | "str" => "utf8",
        "int" | "integer" | "int64" | "long" => "i64",
        "float" | "double" | "float64" => "f64",
        "blob" | "binary" => "bytes",
        "timestamp" | "datetime" | "date" => "time",
        _ => return None,
    })
}

/// Calls a macro with the number type of this codec.
macro_rules! of_whole_numbers {
    ($codec:expr, $type:ident => $whole:expr, $other:expr) => {
        of_whole_numbers!(@ $codec, $type, $whole, $other,
            U8 u8, U16 u16, U32 u32, U64 u64, U128 u128, I8 i8, I16 i16, I32 i32, I64 i64, I128 i128)
    };
    (@ $codec:expr, $type:ident, $whole:expr, $other:expr, $($name:ident $number:ident),+) => {
        match $codec {
            $(ValueCodec::$name => {
                type $type = $number;
                $whole
            })+
            _ => $other,
        }
    };
}

impl ValueCodec {
    const ALL: [ValueCodec; 17] = [
        ValueCodec::Bytes,
        ValueCodec::Utf8,
        ValueCodec::U8,
        ValueCodec::U16,
        ValueCodec::U32,
        ValueCodec::U64,
        ValueCodec::U128,
        ValueCodec::I8,
        ValueCodec::I16,
        ValueCodec::I32,
        ValueCodec::I64,
        ValueCodec::I128,
        ValueCodec::F32,
        ValueCodec::F64,
        ValueCodec::Bool,
        ValueCodec::Time,
        ValueCodec::Json,
    ];

    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            ValueCodec::Bytes => "bytes",
            ValueCodec::Utf8 => "utf8",
            ValueCodec::U8 => "u8",
            ValueCodec::U16 => "u16",
            ValueCodec::U32 => "u32",
            ValueCodec::U64 => "u64",
            ValueCodec::U128 => "u128",
            ValueCodec::I8 => "i8",
            ValueCodec::I16 => "i16",
            ValueCodec::I32 => "i32",
            ValueCodec::I64 => "i64",
            ValueCodec::I128 => "i128",
            ValueCodec::F32 => "f32",
            ValueCodec::F64 => "f64",
            ValueCodec::Bool => "bool",
            ValueCodec::Time => "time",
            ValueCodec::Json => "json",
        }
    }

    /// The codec with the same bytes that knows no times: that of a Rust type.
    pub(crate) fn without_times(self) -> ValueCodec {
        if self == ValueCodec::Time { ValueCodec::I64 } else { self }
    }

    /// The length of every value in bytes, if it is fixed.
    pub fn fixed_len(self) -> Option<usize> {
        match self {
            ValueCodec::Bytes | ValueCodec::Utf8 | ValueCodec::Json => None,
            ValueCodec::F64 | ValueCodec::Time => Some(8),
            ValueCodec::F32 => Some(4),
            ValueCodec::Bool => Some(1),
            whole => of_whole_numbers!(whole, N => Some(size_of::<N>()), None),
        }
    }

    /// Whether values are whole numbers.
    pub fn is_whole_number(self) -> bool {
        of_whole_numbers!(self, N => size_of::<N>() > 0, false)
    }

    /// Checks that the bytes are a value of this codec.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn check(self, bytes: &[u8]) -> Result<(), CodecError> {
        match (self, self.fixed_len()) {
            (ValueCodec::Utf8, _) => utf8(bytes).map(|_| ()),
            (ValueCodec::Bool, _) => bool::decode(bytes).map(|_| ()),
            (ValueCodec::Json, _) => parse_json(bytes).map(|_| ()),
            (_, Some(len)) if bytes.len() != len => {
                Err(CodecError::new(format!("expected {len} bytes, found {}", bytes.len())))
            }
            (_, _) => Ok(()),
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
            ValueCodec::F32 => Datum::Float(f64::from(f32::decode(bytes)?)),
            ValueCodec::F64 => Datum::Float(f64::decode(bytes)?),
            ValueCodec::Bool => Datum::Bool(bool::decode(bytes)?),
            ValueCodec::Time => time_text::shown(i64::decode(bytes)?),
            ValueCodec::Json => json::datum_of(parse_json(bytes)?, false),
            ValueCodec::U128 => {
                let number = u128::decode(bytes)?;
                i128::try_from(number).map_or_else(|_| Datum::Number(number.to_string()), Datum::Int)
            }
            whole => of_whole_numbers!(whole, N => {
                #[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion, reason = "of each type")]
                i128::try_from(N::decode(bytes)?).map_or(Datum::Null, Datum::Int)
            }, Datum::Null),
        })
    }

    /// Encodes a value; numbers and bytes (`0x...`) may also be given as text, JSON as text of
    /// JSON. Appends the bytes to `out`, which is unchanged after an error.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn encode(self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            ValueCodec::Bytes => out.extend_from_slice(&read_bytes(datum)?),
            ValueCodec::Utf8 => out.extend_from_slice(read_text(datum)?.as_bytes()),
            ValueCodec::F32 => AsValue::<f32>::encode(&read_float(datum, "f32")?, out),
            ValueCodec::F64 => AsValue::<f64>::encode(&read_number(datum, "f64")?, out),
            ValueCodec::Bool => AsValue::<bool>::encode(&read_bool(datum)?, out),
            ValueCodec::Time => AsValue::<i64>::encode(&read_time(datum)?, out),
            ValueCodec::U128 => AsValue::<u128>::encode(&read_u128(datum)?, out),
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
            whole => of_whole_numbers!(whole, N => {
                AsValue::<N>::encode(&read_int::<N>(datum, whole.name())?, out);
            }, ()),
        }
        Ok(())
    }

    /// Encodes what a person typed, or what was in a column of a file.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_text(self, text: &str) -> Result<Vec<u8>, CodecError> {
        let mut value = Vec::new();
        self.encode(&Datum::Text(text.to_owned()), &mut value)?;
        Ok(value)
    }
}

/// A number that may be beyond those of a [`Datum::Int`].
fn read_u128(datum: &Datum) -> Result<u128, CodecError> {
    let wide = match datum {
        Datum::Text(text) | Datum::Number(text) => text.trim().parse().ok(),
        _ => None,
    };
    wide.map_or_else(|| read_int(datum, "u128"), Ok)
}

/// Reads JSON text, in which no number is beyond all doubles: programs could not read it.
pub(super) fn parse_json(bytes: &[u8]) -> Result<Node<'_>, CodecError> {
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

/// Whether it contains a number that JSON cannot express.
fn has_no_json(datum: &Datum) -> bool {
    match datum {
        Datum::Float(value) => !value.is_finite(),
        Datum::List(items) => items.iter().any(has_no_json),
        Datum::Map(fields) => fields.iter().any(|(_, value)| has_no_json(value)),
        _ => false,
    }
}

/// How values of a Rust type fit a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// All of them are operands, and all results of folding are values of the type: nothing is
    /// checked.
    Always,
    /// Some may be: each is checked when it is written.
    Sometimes,
    /// None are, or folding gives results that are not values of the type.
    Never,
}

/// A type of values of tables. It can be used as itself, see [`AsValue`].
///
/// A type of your own needs [`Value::decode`] and, for tools that show its values,
/// [`Value::codec`]. What it encodes is checked when it is written: the fold of the table must take
/// it, and it must decode again.
pub trait Value: Sized + AsValue<Self> {
    /// How tables that replace show their values of this type; folds show their own.
    fn codec() -> ValueCodec {
        ValueCodec::Bytes
    }

    /// The fold of a table of these values if its rules name none: the one that the type is made
    /// for, or `replace`.
    fn default_fold() -> FoldSpec {
        replace::<Self>().into()
    }

    /// How values of this type fit a built-in fold other than `replace` and `first`.
    fn fit(fold: &dyn Fold) -> Fit {
        match fit_by_codec(Self::codec(), fold) {
            Fit::Always if !Self::ENCODES_SURELY => Fit::Sometimes,
            fit => fit,
        }
    }

    /// Whether everything that [`AsValue::encode`] gives is a value of [`Value::codec`] that
    /// decodes again, and needs no check.
    #[doc(hidden)]
    const ENCODES_SURELY: bool = false;

    /// The value of these bytes.
    ///
    /// # Errors
    /// When the bytes are not a value of this type.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;

    // ---- as a field of a typed record, see record.rs ----

    /// The length of every value of its own fold, if that is fixed.
    #[doc(hidden)]
    const FIELD_LEN: Option<usize> = None;

    /// The fold of a field of this type.
    #[doc(hidden)]
    fn field_fold() -> FoldSpec {
        Self::default_fold()
    }

    /// Appends the value as a field; false if it is absent.
    #[doc(hidden)]
    fn put_field(&self, out: &mut Vec<u8>) -> bool {
        self.encode(out);
        true
    }

    /// Appends the identity, in a field of fixed length.
    #[doc(hidden)]
    fn put_nothing(out: &mut Vec<u8>) {
        out.resize(out.len() + Self::FIELD_LEN.unwrap_or(0), 0);
    }

    /// The value of a field: its bytes, and whether its record has only fields of fixed length.
    #[doc(hidden)]
    fn take_field(field: Option<(&[u8], bool)>) -> Result<Self, CodecError> {
        match field {
            Some((bytes, _)) => Self::decode(bytes),
            None => {
                Self::nothing().ok_or_else(|| CodecError::new("it is absent, which only an `Option` can say"))
            }
        }
    }

    /// The identity, if there is one.
    #[doc(hidden)]
    fn nothing() -> Option<Self> {
        None
    }
}

/// How values of a codec fit a fold.
fn fit_by_codec(codec: ValueCodec, fold: &dyn Fold) -> Fit {
    let spec = fold.spec();
    let (name, of) = spec.split_once(':').unwrap_or((&spec, ""));
    let is_sum_or_extreme = matches!(name, "sum" | "min" | "max");
    match (codec, name, of) {
        (_, "replace" | "first", _) => Fit::Always,
        (ValueCodec::Bytes, "append", _) | (ValueCodec::Bytes | ValueCodec::Utf8, "min" | "max", "bytes") => {
            Fit::Always
        }
        (ValueCodec::Bytes, _, _) => Fit::Sometimes,
        (ValueCodec::Utf8, "append", _) => match fold.joins_with().map(std::str::from_utf8) {
            Some(Ok(_)) => Fit::Always,
            _ => Fit::Never,
        },
        (ValueCodec::Utf8, "json-merge", _) => Fit::Sometimes,
        (ValueCodec::Json, "json-merge", _) => Fit::Always,
        (ValueCodec::U64, _, "u64") | (ValueCodec::I64, _, "i64") | (ValueCodec::I128, _, "i128")
            if is_sum_or_extreme =>
        {
            Fit::Always
        }
        (ValueCodec::I64, "min" | "max", "time") => Fit::Always,
        (ValueCodec::F64, "min" | "max", "f64") => Fit::Always, // a sum of doubles is longer than one
        _ => Fit::Never,
    }
}

/// A type that can be used as a value of type `V`: `str` for `String`.
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
    const ENCODES_SURELY: bool = true;

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(bytes.to_vec())
    }
}

impl Value for String {
    const ENCODES_SURELY: bool = true;

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
    const ENCODES_SURELY: bool = true;

    fn fit(fold: &dyn Fold) -> Fit {
        match (fold.spec().as_str(), fold.fixed_len()) {
            ("min:bytes" | "max:bytes", _) => Fit::Always,
            (_, Some(len)) if len == N => Fit::Sometimes,
            _ => Fit::Never, // folding gives other lengths
        }
    }

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
            const ENCODES_SURELY: bool = true;

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

number_value!(u8, ValueCodec::U8);
number_value!(u16, ValueCodec::U16);
number_value!(u32, ValueCodec::U32);
number_value!(u64, ValueCodec::U64);
number_value!(u128, ValueCodec::U128);
number_value!(i8, ValueCodec::I8);
number_value!(i16, ValueCodec::I16);
number_value!(i32, ValueCodec::I32);
number_value!(i64, ValueCodec::I64);
number_value!(i128, ValueCodec::I128);
number_value!(f32, ValueCodec::F32);
number_value!(f64, ValueCodec::F64);

impl AsValue<bool> for bool {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Value for bool {
    const ENCODES_SURELY: bool = true;

    fn codec() -> ValueCodec {
        ValueCodec::Bool
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(CodecError::new("expected a bool, one byte that is 0 or 1")),
        }
    }
}

#[cfg(test)]
#[path = "value/tests.rs"]
mod tests;
