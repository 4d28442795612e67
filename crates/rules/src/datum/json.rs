//! A datum as JSON text, and back: the one pair of converters.
//!
//! ```text
//!   Null Bool Text List Map     as JSON has them
//!   Int                         a number, with all of its digits
//!   Float                       the shortest number that reads back as it; "NaN", "inf", "-inf" as text
//!   Number                      as it was written
//!   Bytes                       {"$hex":"00ff"}, which no text is
//! ```
//!
//! What is printed reads back as it was, and what is read prints as it was, except for white space,
//! escapes and repeated names. Of repeated names the last counts. Only what JSON cannot express,
//! NaN and infinities, comes back as text. Numbers are not rounded: one that neither an `Int` nor a
//! `Float` would print stays as it was written, and the fold or codec that takes it reads or
//! refuses it.

use super::json_text::{self, Node};
use super::{Datum, from_hex, wrapped};

/// Deepest nesting that is read: of a document, and of what contains it.
const DEPTH_MAX: usize = json_text::DEPTH_MAX + 64;

/// Appends the datum as JSON, on one line.
pub fn put(datum: &Datum, out: &mut String) {
    let mut bytes = std::mem::take(out).into_bytes();
    put_bytes(datum, &mut bytes);
    *out = String::from_utf8(bytes).unwrap_or_default(); // it was text, and text is what was appended
}

/// The datum as JSON, on one line.
pub fn text_of(datum: &Datum) -> String {
    let mut text = String::new();
    put(datum, &mut text);
    text
}

/// Appends an object with these fields, on one line.
pub fn put_object<'a>(fields: impl Iterator<Item = (&'a str, &'a Datum)>, out: &mut String) {
    let mut bytes = std::mem::take(out).into_bytes();
    json_text::put_value_file(&mut bytes, fields, put_bytes);
    *out = String::from_utf8(bytes).unwrap_or_default(); // as in `put`
}

/// As [`put`], to bytes.
pub(crate) fn put_bytes(datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => out.extend_from_slice(b"null"),
        Datum::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Datum::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Datum::Float(value) if value.is_finite() => out.extend_from_slice(float_text(*value).as_bytes()),
        Datum::Float(value) => json_text::put_text(&value.to_string(), out),
        Datum::Number(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Text(text) => json_text::put_text(text, out),
        Datum::Bytes(bytes) => put_bytes(&wrapped(bytes), out),
        Datum::List(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                put_bytes(item, out);
            }
            out.push(b']');
        }
        Datum::Map(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
            json_text::put_value_file(out, fields, put_bytes);
        }
    }
}

/// Reads one JSON text.
///
/// # Errors
/// Says what was expected, and at which byte.
pub fn parse(text: &str) -> Result<Datum, String> {
    json_text::parse_in_order(text, DEPTH_MAX).map(|node| datum_of(node, true))
}

/// A piece of JSON as a datum; [`wrapped`] bytes become bytes if `unwraps`.
pub(crate) fn datum_of(node: Node<'_>, unwraps: bool) -> Datum {
    match node {
        Node::Word("null") => Datum::Null,
        Node::Word("true") => Datum::Bool(true),
        Node::Word("false") => Datum::Bool(false),
        Node::Word(number) => number_of(number),
        Node::Text(text) => Datum::Text(text.into_owned()),
        Node::Array(items) => Datum::List(items.into_iter().map(|item| datum_of(item, unwraps)).collect()),
        Node::Object(fields) => {
            if let ([(name, Node::Text(digits))], true) = (fields.as_slice(), unwraps)
                && let Some(bytes) = bytes_of(name, digits)
            {
                return Datum::Bytes(bytes);
            }
            let field =
                |(name, node): (std::borrow::Cow<'_, str>, _)| (name.into_owned(), datum_of(node, unwraps));
            Datum::Map(fields.into_iter().map(field).collect())
        }
    }
}

/// The bytes that [`wrapped`] prints in this form. Other spellings stay maps, so that they print as
/// they were written.
fn bytes_of(name: &str, digits: &str) -> Option<Vec<u8>> {
    let is_own =
        name == super::WRAPPED_NAME && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if is_own { from_hex(digits) } else { None }
}

/// A number, as the datum that prints exactly the same text.
fn number_of(text: &str) -> Datum {
    if let Some(value) = text.parse::<i128>().ok().filter(|_| text != "-0") {
        return Datum::Int(value);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && float_text(value) == text => Datum::Float(value),
        _ => Datum::Number(text.to_owned()),
    }
}

/// The shortest number that reads back as this one, which has a fraction or an exponent: as
/// `serde_json` prints it.
pub(crate) fn float_text(value: f64) -> String {
    match value.is_finite() {
        true => zmij::Buffer::new().format_finite(value).to_owned(),
        false => value.to_string(),
    }
}

#[cfg(test)]
#[path = "json/tests.rs"]
mod tests;
