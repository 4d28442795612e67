//! Key codecs by name: what a table stores about its keys, and what the command line and other
//! languages use to encode, check and show them.
//!
//! ```text
//!   bytes              the key as it is
//!   utf8               text
//!   u32 u64 i64        4 or 8 bytes, big-endian, the sign bit flipped
//!   tuple              a tuple of any elements (see `tuple`)
//!   tuple(text,int?)   a tuple of just these: any bytes text int float double bool uuid versionstamp
//!                      tuple tuple(...), each with a ? where null is allowed
//! ```
//!
//! All of them keep the order of what they encode.

use folddb_base::counted;
use std::fmt;
use std::str::FromStr;

use folddb_base::bytes::Reader;

use super::CodecError;
use super::given::{
    read_bool, read_bytes, read_float, read_int, read_number, read_stamp, read_text, read_uuid, wrong,
};
use super::range::KeyRange;
use super::text::{Token, is_list, parse_token};
use super::tuple;
use crate::datum::{Datum, from_hex, hex, parse_float, unwrapped};
use crate::parse_error::{ParseError, nearest};

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
    /// A nested tuple of any elements.
    AnyTuple,
    /// A nested tuple of exactly these elements.
    Tuple(Vec<ElementType>),
    /// This, or null.
    Optional(Box<ElementType>),
}

// ---- names --------------------------------------------------------------------------------------

impl fmt::Display for KeyCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyCodec::Bytes => f.write_str("bytes"),
            KeyCodec::Utf8 => f.write_str("utf8"),
            KeyCodec::U32 => f.write_str("u32"),
            KeyCodec::U64 => f.write_str("u64"),
            KeyCodec::I64 => f.write_str("i64"),
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
            "utf8" => return Ok(KeyCodec::Utf8),
            "u32" => return Ok(KeyCodec::U32),
            "u64" => return Ok(KeyCodec::U64),
            "i64" => return Ok(KeyCodec::I64),
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
const ELEMENTS: [&str; 10] =
    ["any", "bytes", "text", "int", "float", "double", "bool", "uuid", "versionstamp", "tuple"];
const KEYS: [&str; 6] = ["bytes", "utf8", "u32", "u64", "i64", "tuple"];

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
        "text" | "string" | "str" => "utf8",
        "int" | "integer" | "int64" | "long" => "i64",
        "blob" | "binary" => "bytes",
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

// ---- checking and showing -----------------------------------------------------------------------

impl KeyCodec {
    /// The length of every key in bytes, if it is fixed.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            KeyCodec::U32 => Some(4),
            KeyCodec::U64 | KeyCodec::I64 => Some(8),
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
            KeyCodec::U64 | KeyCodec::I64 => fixed::<8>(bytes).map(|_| ()),
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
        Ok(tuple::unpack(bytes)?.iter().map(tuple::Element::show).collect())
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
    /// True when an element with this code is of the type; the contents of a nested tuple are not
    /// examined.
    fn admits(&self, code: u8) -> bool {
        match self {
            ElementType::Any => true,
            ElementType::Bytes => code == tuple::BYTES,
            ElementType::Text => code == tuple::TEXT,
            ElementType::Int => (tuple::INT_LONG_NEGATIVE..=tuple::INT_LONG).contains(&code),
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

fn wrong_count(types: &[ElementType], found: &str) -> CodecError {
    let elements = counted(types.len() as u64, "element");
    CodecError::new(format!("{} has {elements}, found {found}", KeyCodec::TypedTuple(types.to_vec())))
}

fn in_element(types: &[ElementType], index: usize, error: &CodecError) -> CodecError {
    CodecError::new(format!("element {} of {}: {error}", index + 1, KeyCodec::TypedTuple(types.to_vec())))
}

// ---- from data and from text --------------------------------------------------------------------

impl KeyCodec {
    /// Encodes a key; a tuple is given as the list of its elements. Numbers, bools, uuids
    /// and bytes (`0x...`) may also be given as text. Appends the bytes to `out`, which is
    /// unchanged after an error.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn encode(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = out.len();
        self.encode_parts(datum, out).inspect_err(|_| out.truncate(start))
    }

    fn encode_parts(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            KeyCodec::Bytes => out.extend_from_slice(&read_bytes(datum)?),
            KeyCodec::Utf8 => out.extend_from_slice(read_text(datum)?.as_bytes()),
            KeyCodec::U32 => out.extend_from_slice(&read_int::<u32>(datum, "u32")?.to_be_bytes()),
            KeyCodec::U64 => out.extend_from_slice(&read_int::<u64>(datum, "u64")?.to_be_bytes()),
            KeyCodec::I64 => out.extend_from_slice(&encode_i64(read_int(datum, "i64")?)),
            KeyCodec::Tuple => match datum {
                Datum::List(items) => {
                    items.iter().try_for_each(|item| put_datum(out, &ElementType::Any, item, false, 0))?;
                }
                one => put_datum(out, &ElementType::Any, one, false, 0)?,
            },
            KeyCodec::TypedTuple(types) => {
                let items = match datum {
                    Datum::List(items) => items.as_slice(),
                    one => std::slice::from_ref(one),
                };
                if items.len() != types.len() {
                    return Err(wrong_count(types, &items.len().to_string()));
                }
                put_items(types, items, out)?;
            }
        }
        Ok(())
    }

    /// Encodes a key that a person typed, or that was in the columns of a file.
    ///
    /// A tuple comes in as many parts as it has elements, or in one: `UA,EWR`, or the form in which
    /// it is shown, `["UA", "EWR"]`. A part given separately is taken literally where text is
    /// expected. In an untyped tuple, whole numbers, numbers with a point, `true`, `false`, `null`,
    /// `0x...` and `"quoted text"` are what they look like; anything else is text. An empty part of
    /// an optional element that is neither text nor bytes is null.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_text(&self, parts: &[&str]) -> Result<Vec<u8>, CodecError> {
        let mut key = Vec::new();
        match self {
            KeyCodec::Tuple | KeyCodec::TypedTuple(_) => {
                self.encode(&Datum::List(self.read_elements(parts)?), &mut key)?;
            }
            _ => self.encode(&Datum::Text(self.only_part(parts)?.to_owned()), &mut key)?,
        }
        Ok(key)
    }

    /// The keys that start with what a person typed: the first elements of a tuple, given as in
    /// [`KeyCodec::parse_text`], or the beginning of text or bytes.
    ///
    /// # Errors
    /// Says what was expected; whole numbers have no prefixes.
    pub fn parse_prefix(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        match self {
            KeyCodec::Tuple | KeyCodec::TypedTuple(_) => {
                Ok(tuple::packed_prefix_range(self.parse_first_elements(parts)?))
            }
            KeyCodec::Bytes | KeyCodec::Utf8 => Ok(KeyRange::prefix(self.parse_text(parts)?)),
            KeyCodec::U32 | KeyCodec::U64 | KeyCodec::I64 => {
                Err(CodecError::new(format!("keys of type {self} have no prefixes; give a range")))
            }
        }
    }

    /// The keys that count as equal to a bound that a person typed: all tuples that start with the
    /// elements given, or the one key. An inclusive bound includes them, an exclusive one excludes
    /// them.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_bound(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        if self.is_tuple() { self.parse_prefix(parts) } else { Ok(KeyRange::one(self.parse_text(parts)?)) }
    }

    fn only_part<'a>(&self, parts: &[&'a str]) -> Result<&'a str, CodecError> {
        match parts {
            [part] => Ok(part),
            _ => Err(CodecError::new(format!("a key of type {self} has one part, found {}", parts.len()))),
        }
    }

    fn parse_first_elements(&self, parts: &[&str]) -> Result<Vec<u8>, CodecError> {
        let items = self.read_elements(parts)?;
        let mut packed = Vec::new();
        match self {
            KeyCodec::TypedTuple(types) => put_items(types, &items, &mut packed)?,
            _ => self.encode(&Datum::List(items), &mut packed)?,
        }
        Ok(packed)
    }

    /// What the given parts of a tuple mean, by the types of its elements.
    fn read_elements(&self, parts: &[&str]) -> Result<Vec<Datum>, CodecError> {
        let types = self.element_types();
        let literals = match parts {
            [one] if is_list(one) => return read_list(types, parse_token(one)?),
            [one] if types.is_none_or(|types| types.len() > 1) => split_commas(one, types.is_none()),
            several => several.to_vec(),
        };
        check_count(types, literals.len())?;
        let read = |(index, part)| read_part(type_at(types, index), part);
        literals.into_iter().enumerate().map(read).collect()
    }
}

/// The parts between the commas. In an untyped tuple, commas in quoted text do not separate parts.
fn split_commas(text: &str, quotes: bool) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let is_comma = |letter: char| {
        let ends = letter == ',' && !quoted;
        quoted ^= quotes && letter == '"' && !escaped;
        escaped = quoted && letter == '\\' && !escaped;
        ends
    };
    text.split(is_comma).collect()
}

fn type_at(types: Option<&[ElementType]>, index: usize) -> &ElementType {
    types.and_then(|types| types.get(index)).unwrap_or(&ElementType::Any)
}

fn check_count(types: Option<&[ElementType]>, found: usize) -> Result<(), CodecError> {
    match types {
        Some(types) if found > types.len() => Err(wrong_count(types, &found.to_string())),
        _ => Ok(()),
    }
}

fn read_list(types: Option<&[ElementType]>, token: Token) -> Result<Vec<Datum>, CodecError> {
    let Token::List(tokens) = token else {
        return Err(CodecError::new("expected a list in brackets"));
    };
    check_count(types, tokens.len())?;
    let read = |(index, token)| read_token(type_at(types, index), token);
    tokens.into_iter().enumerate().map(read).collect()
}

/// A part that is given separately, for instance a column of a file.
fn read_part(element: &ElementType, part: &str) -> Result<Datum, CodecError> {
    match element {
        ElementType::Optional(inner) => match **inner {
            ElementType::Text | ElementType::Bytes => read_part(inner, part),
            _ if part.is_empty() || part == "null" => Ok(Datum::Null),
            _ => read_part(inner, part),
        },
        ElementType::Any if part.starts_with('"') || is_list(part) => read_token(element, parse_token(part)?),
        ElementType::Any => Ok(guess(part)),
        ElementType::Tuple(_) | ElementType::AnyTuple => read_token(element, parse_token(part)?),
        _ => Ok(Datum::Text(part.to_owned())),
    }
}

/// A piece of a list.
fn read_token(element: &ElementType, token: Token) -> Result<Datum, CodecError> {
    match (element, token) {
        (ElementType::Optional(_), Token::Bare(word)) if word == "null" => Ok(Datum::Null),
        (ElementType::Optional(inner), token) => read_token(inner, token),
        (ElementType::Tuple(types), token) => Ok(Datum::List(read_list(Some(types), token)?)),
        (ElementType::AnyTuple | ElementType::Any, token @ Token::List(_)) => {
            Ok(Datum::List(read_list(None, token)?))
        }
        (ElementType::Any, Token::Bare(word)) => Ok(guess(&word)),
        (_, Token::Bare(text) | Token::Quoted(text)) => Ok(Datum::Text(text)),
        (element, Token::List(_)) => Err(CodecError::new(format!("expected {element}, found a list"))),
    }
}

/// What a word without a type looks like.
fn guess(word: &str) -> Datum {
    match word {
        "null" => return Datum::Null,
        "true" => return Datum::Bool(true),
        "false" => return Datum::Bool(false),
        _ => {}
    }
    if word.starts_with("0x")
        && let Some(bytes) = from_hex(word)
    {
        return Datum::Bytes(bytes);
    }
    if let Ok(value) = word.parse::<i128>()
        && value.to_string() == word
    {
        return Datum::Int(value);
    }
    match parse_float(word) {
        Some(value) if word.contains('.') => Datum::Float(value),
        _ => Datum::Text(word.to_owned()),
    }
}

/// Appends these elements, at most as many as there are types.
fn put_items(types: &[ElementType], items: &[Datum], out: &mut Vec<u8>) -> Result<(), CodecError> {
    for (index, (element, item)) in types.iter().zip(items).enumerate() {
        put_datum(out, element, item, false, 0).map_err(|error| in_element(types, index, &error))?;
    }
    Ok(())
}

fn put_datum(
    out: &mut Vec<u8>,
    element: &ElementType,
    datum: &Datum,
    nested: bool,
    depth: usize,
) -> Result<(), CodecError> {
    match element {
        ElementType::Any => put_any(out, datum, nested, depth)?,
        ElementType::Bytes => tuple::put_bytes(out, &read_bytes(datum)?),
        ElementType::Text => tuple::put_text(out, read_text(datum)?),
        ElementType::Int => tuple::put_i128(out, read_int(datum, "int")?),
        ElementType::Float => tuple::put_float(out, read_float(datum, "float")?),
        ElementType::Double => tuple::put_double(out, read_number(datum, "double")?),
        ElementType::Bool => tuple::put_bool(out, read_bool(datum)?),
        ElementType::Uuid => tuple::put_element(out, &read_uuid(datum)?, nested),
        ElementType::Stamp => tuple::put_element(out, &read_stamp(datum)?, nested),
        ElementType::AnyTuple => match datum {
            Datum::List(_) => put_any(out, datum, nested, depth)?,
            other => return Err(wrong("a list", other)),
        },
        ElementType::Tuple(types) => put_nested(out, types, datum, depth)?,
        ElementType::Optional(_) if *datum == Datum::Null => tuple::put_null(out, nested),
        ElementType::Optional(inner) => put_datum(out, inner, datum, nested, depth)?,
    }
    Ok(())
}

/// An element that is what it looks like.
fn put_any(out: &mut Vec<u8>, datum: &Datum, nested: bool, depth: usize) -> Result<(), CodecError> {
    match datum {
        Datum::Null => tuple::put_null(out, nested),
        Datum::Bool(value) => tuple::put_bool(out, *value),
        Datum::Int(value) => tuple::put_i128(out, *value),
        Datum::Float(value) => tuple::put_double(out, *value),
        Datum::Number(text) if text.contains(['.', 'e', 'E']) || text == "-0" => {
            tuple::put_double(out, read_number(datum, "double")?);
        }
        Datum::Number(_) => return Err(wrong("a whole number of 128 bits", datum)),
        Datum::Text(text) => tuple::put_text(out, text),
        Datum::Bytes(bytes) => tuple::put_bytes(out, bytes),
        Datum::List(items) => {
            tuple::check_depth(depth)?;
            tuple::begin_nested(out);
            items.iter().try_for_each(|item| put_any(out, item, true, depth + 1))?;
            tuple::end_nested(out);
        }
        Datum::Map(_) => match unwrapped(datum) {
            Some(bytes) => tuple::put_bytes(out, &bytes),
            None => return Err(wrong("an element of a tuple", datum)),
        },
    }
    Ok(())
}

fn put_nested(
    out: &mut Vec<u8>,
    types: &[ElementType],
    datum: &Datum,
    depth: usize,
) -> Result<(), CodecError> {
    let Datum::List(items) = datum else { return Err(wrong("a list", datum)) };
    if items.len() != types.len() {
        return Err(wrong_count(types, &items.len().to_string()));
    }
    tuple::check_depth(depth)?;
    tuple::begin_nested(out);
    for (element, item) in types.iter().zip(items) {
        put_datum(out, element, item, true, depth + 1)?;
    }
    tuple::end_nested(out);
    Ok(())
}

#[cfg(test)]
#[path = "key/tests.rs"]
mod tests;
