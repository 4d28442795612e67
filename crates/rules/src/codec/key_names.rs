//! Names of key codecs and of the elements of tuples, as stored and typed: `tuple(text,int?)`.
//!
//! A name that is displayed is parsed as the same codec. What is wrong in another name is said with
//! its place, and with the name that was probably meant.

use std::fmt;
use std::str::FromStr;

use super::key::{ElementType, KeyCodec};
use super::tuple;
use crate::parse_error::{ParseError, nearest};

impl fmt::Display for KeyCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyCodec::Bytes => f.write_str("bytes"),
            KeyCodec::Utf8 => f.write_str("utf8"),
            KeyCodec::U32 => f.write_str("u32"),
            KeyCodec::U64 => f.write_str("u64"),
            KeyCodec::I64 => f.write_str("i64"),
            KeyCodec::Time => f.write_str("time"),
            KeyCodec::Tuple => f.write_str("tuple"),
            KeyCodec::TypedTuple(types) => write_types(f, types),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElementType::Any => "any",
            ElementType::Bytes => "bytes",
            ElementType::Text => "text",
            ElementType::Int => "int",
            ElementType::Float => "float",
            ElementType::Double => "double",
            ElementType::Bool => "bool",
            ElementType::Uuid => "uuid",
            ElementType::Stamp => "versionstamp",
            ElementType::Time => "time",
            ElementType::AnyTuple => "tuple",
            ElementType::Tuple(types) => return write_types(f, types),
            ElementType::Optional(inner) => return write!(f, "{inner}?"),
        })
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, types: &[ElementType]) -> fmt::Result {
    f.write_str("tuple(")?;
    for (index, element) in types.iter().enumerate() {
        write!(f, "{}{element}", if index > 0 { "," } else { "" })?;
    }
    f.write_str(")")
}

impl KeyCodec {
    /// The name that the store keeps.
    pub fn name(&self) -> String {
        self.to_string()
    }
}

impl FromStr for KeyCodec {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<KeyCodec, ParseError> {
        match name.trim() {
            "bytes" => return Ok(KeyCodec::Bytes),
            "utf8" | "text" => return Ok(KeyCodec::Utf8), // as elements of tuples call it
            "u32" => return Ok(KeyCodec::U32),
            "u64" => return Ok(KeyCodec::U64),
            "i64" => return Ok(KeyCodec::I64),
            "time" => return Ok(KeyCodec::Time),
            _ => {}
        }
        let mut rest = name;
        match parse_type(&mut rest, 0) {
            Some(ElementType::AnyTuple) if rest.trim().is_empty() => Ok(KeyCodec::Tuple),
            Some(ElementType::Tuple(types)) if rest.trim().is_empty() => Ok(KeyCodec::TypedTuple(types)),
            _ => Err(no_key(name, name.len() - rest.len())),
        }
    }
}

/// Names of elements, and of keys that are no tuples.
const ELEMENTS: [&str; 11] =
    ["any", "bytes", "text", "int", "float", "double", "bool", "uuid", "versionstamp", "time", "tuple"];
const KEYS: [&str; 7] = ["bytes", "utf8", "u32", "u64", "i64", "time", "tuple"];

/// Why a name is not that of a key codec. Reading stopped at byte `at`.
fn no_key(name: &str, at: usize) -> ParseError {
    let message = format!(
        "`{name}` is not a type of keys: use {}, or tuple(...) of {}(...), with a ? where null is allowed",
        KEYS.join(", "),
        ELEMENTS.join(", ")
    );
    let (before, rest) = name.split_at(at);
    let word_len = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(word_len);
    let near = match before.contains('(') {
        true => nearest(word, ELEMENTS.into_iter()),
        false => elsewhere(word).or_else(|| nearest(word, KEYS.into_iter())),
    };
    let whole = near.map(|near| format!("{before}{near}{behind}"));
    let suggestion = whole.filter(|whole| whole != name && whole.parse::<KeyCodec>().is_ok());
    match before.is_empty() {
        true => ParseError::of(name, message).suggest(suggestion),
        false => ParseError::at_byte(name, at, message).suggest(suggestion),
    }
}

/// What other languages, and elements, call the types of keys.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "string" | "str" => "utf8",
        "int" | "integer" | "int64" | "long" => "i64",
        "blob" | "binary" => "bytes",
        "timestamp" | "datetime" | "date" => "time",
        _ => return None,
    })
}

/// Reads one type from the front of `rest`. If there is none, `rest` begins with what is not a
/// type.
fn parse_type(rest: &mut &str, depth: usize) -> Option<ElementType> {
    *rest = rest.trim_start();
    let word_len = rest.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(rest.len());
    let start = *rest;
    let (word, tail) = rest.split_at(word_len);
    *rest = tail.trim_start();
    let mut element = match word {
        "any" => ElementType::Any,
        "bytes" => ElementType::Bytes,
        "text" => ElementType::Text,
        "int" => ElementType::Int,
        "float" => ElementType::Float,
        "double" => ElementType::Double,
        "bool" => ElementType::Bool,
        "uuid" => ElementType::Uuid,
        "versionstamp" => ElementType::Stamp,
        "time" => ElementType::Time,
        "tuple" => match rest.strip_prefix('(') {
            Some(inside) => {
                *rest = inside;
                ElementType::Tuple(parse_types(rest, depth)?)
            }
            None => ElementType::AnyTuple,
        },
        _ => {
            *rest = start;
            return None;
        }
    };
    if let Some(tail) = rest.strip_prefix('?') {
        *rest = tail;
        element = ElementType::Optional(Box::new(element));
    }
    Some(element)
}

/// Reads types up to the closing bracket; at least one.
fn parse_types(rest: &mut &str, depth: usize) -> Option<Vec<ElementType>> {
    if depth >= tuple::DEPTH_MAX {
        return None;
    }
    let mut types = Vec::new();
    loop {
        types.push(parse_type(rest, depth + 1)?);
        *rest = rest.trim_start();
        let mut letters = rest.chars();
        let letter = letters.next().filter(|letter| matches!(letter, ',' | ')'))?;
        *rest = letters.as_str();
        if letter == ')' {
            return Some(types);
        }
    }
}
