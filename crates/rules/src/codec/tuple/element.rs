//! One element of a tuple: its order, and how people read it.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::codes::{BYTES, DOUBLE, FALSE, FLOAT, INT_ZERO, NESTED, NULL, STAMP_80, STAMP_96, TEXT, UUID};
use crate::datum::Datum;

/// One element of a tuple, of the types of FoundationDB's specification and no others. Decoding
/// borrows from the key if nothing was escaped.
///
/// Elements order as FoundationDB says: by type in the order of the variants, then by value;
/// floating-point numbers in IEEE total order, so that NaN equals itself and -0.0 is less than 0.0.
#[derive(Clone, Debug)]
pub enum Element<'a> {
    /// Nothing.
    Null,
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// Text.
    Text(Cow<'a, str>),
    /// A tuple in the tuple; at most [`DEPTH_MAX`](super::DEPTH_MAX) deep.
    Nested(Vec<Element<'a>>),
    /// An integer.
    Int(i128),
    /// A number of 32 bits.
    Float(f32),
    /// A number of 64 bits.
    Double(f64),
    /// A bool.
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
    #[must_use]
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
