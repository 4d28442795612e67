//! A value as people and programs read it: what the command line prints and other languages
//! receive.
//!
//! Folds and codecs know their own bytes; they show them as a [`Datum`] and read one back.

pub(crate) mod json_text;
pub mod json;
pub mod plain;

use std::fmt;

/// A value without its encoding: these kinds are all that JSON, tuples and folds have.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Nothing.
    Null,
    /// A bool.
    Bool(bool),
    /// A whole number; wide enough for both `u64` and `i64`.
    Int(i128),
    /// A floating-point number.
    Float(f64),
    /// A JSON number with a text that neither of these two would print: `1.10`, `1e400`, or a
    /// number of more than 128 bits.
    Number(String),
    /// Text.
    Text(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// A sequence.
    List(Vec<Datum>),
    /// Named values, in order.
    Map(Vec<(String, Datum)>),
}

impl Datum {
    /// Text if the bytes are UTF-8, even with control characters; bytes otherwise. This is how
    /// folds show their contents. A text that looks like [`wrapped`] bytes is shown as bytes, so
    /// that no text is ever taken for bytes.
    pub fn text_or_bytes(bytes: &[u8]) -> Datum {
        match std::str::from_utf8(bytes) {
            Ok(text) if unwrapped_text(text).is_none() => Datum::Text(text.to_owned()),
            _ => Datum::Bytes(bytes.to_vec()),
        }
    }

    /// Text if the bytes are UTF-8 without control characters, bytes otherwise. This is how codecs
    /// of bytes show values, since text is what people type, and how indexes keep their terms.
    pub fn from_bytes(bytes: &[u8]) -> Datum {
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => Datum::Text(text.to_owned()),
            _ => Datum::Bytes(bytes.to_vec()),
        }
    }

    /// A named field of a map.
    pub fn field(&self, name: &str) -> Option<&Datum> {
        match self {
            Datum::Map(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// The name that marks bytes in places where text may appear, too: `{"$hex":"00ff"}`.
const WRAPPED_NAME: &str = "$hex";

/// Bytes in a form that no text has, for JSON, and as JSON for CSV: `{"$hex":"00ff"}`.
pub fn wrapped(bytes: &[u8]) -> Datum {
    Datum::Map(vec![(WRAPPED_NAME.to_owned(), Datum::Text(hex(bytes)[2..].to_owned()))])
}

/// The bytes in the form that [`wrapped`] gives them; none if this is anything else.
pub fn unwrapped(datum: &Datum) -> Option<Vec<u8>> {
    let Datum::Map(fields) = datum else { return None };
    match fields.as_slice() {
        [(name, Datum::Text(digits))] if name == WRAPPED_NAME && !digits.starts_with("0x") => {
            from_hex(digits)
        }
        _ => None,
    }
}

/// As [`unwrapped`], for the JSON of the datum.
pub fn unwrapped_text(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("{\"$hex\":\"")?.strip_suffix("\"}")?;
    if digits.starts_with("0x") { None } else { from_hex(digits) }
}

/// Bytes as `0x` and lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::from("0x"), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads what [`hex`] writes, with or without the `0x`.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |digit: u8| (digit as char).to_digit(16).map(|n| n as u8);
    digits.chunks_exact(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

/// Parses a floating-point number. Digits of a number beyond all doubles are refused: an infinity
/// must be written as `inf`.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let (text, has_digits) = (text.trim(), text.contains(|letter: char| letter.is_ascii_digit()));
    text.parse().ok().filter(|value: &f64| value.is_finite() || !has_digits)
}

/// One line, for people: text bare at the top and quoted inside, maps as `name=value`.
impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Null => f.write_str("null"),
            Datum::Bool(value) => write!(f, "{value}"),
            Datum::Int(value) => write!(f, "{value}"),
            Datum::Float(value) => write!(f, "{value}"),
            Datum::Number(text) | Datum::Text(text) => f.write_str(text),
            Datum::Bytes(bytes) => f.write_str(&hex(bytes)),
            Datum::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { ", " } else { "" }, Quoted(item))?;
                }
                f.write_str("]")
            }
            Datum::Map(fields) if fields.is_empty() => f.write_str("{}"),
            Datum::Map(fields) => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}={}", if index > 0 { " " } else { "" }, Quoted(value))?;
                }
                Ok(())
            }
        }
    }
}

pub(crate) struct Quoted<'a>(pub(crate) &'a Datum);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Datum::Text(text) => write!(f, "{text:?}"),
            Datum::Map(fields) if !fields.is_empty() => write!(f, "{{{}}}", self.0),
            other => write!(f, "{other}"),
        }
    }
}
