//! Keys, beginnings of keys and bounds from text: as a person types them, or as the columns of a
//! file have them.

use std::fmt;
use std::ops::{Bound, Range};

use super::CodecError;
use super::key::{ElementType, KeyCodec, encode_i64, wrong_count};
use super::key_datum::put_items;
use super::range::KeyRange;
use super::text::{Token, is_list, parse_token};
use super::tuple;
use crate::datum::{Datum, from_hex, parse_float};
use crate::time_text::{self, UtcOf};

/// Keys as a person types them whose clock is of some zone: times without an offset are of it.
#[derive(Clone, Copy)]
pub struct TypedKeys<'a> {
    codec: &'a KeyCodec,
    utc_of: UtcOf<'a>,
}

impl fmt::Debug for TypedKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedKeys({})", self.codec)
    }
}

impl KeyCodec {
    /// Encodes a key that a person typed, or that was in the columns of a file.
    ///
    /// A tuple comes in as many parts as it has elements, or in one: `UA,EWR`, or the form in which
    /// it is shown, `["UA", "EWR"]`. A part given separately is taken literally where text is
    /// expected. In an untyped tuple, whole numbers, numbers with a point, `true`, `false`, `null`,
    /// `0x...` and `"quoted text"` are what they look like; anything else is text. An empty part of
    /// an optional element that is neither text nor bytes is null. A time without an offset is in
    /// UTC.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_text(&self, parts: &[&str]) -> Result<Vec<u8>, CodecError> {
        self.typed_in(&Ok).parse_text(parts)
    }

    /// The keys that start with what a person typed: the first elements of a tuple, given as in
    /// [`KeyCodec::parse_text`], the beginning of text or bytes, or a part of a time: a day is all
    /// moments of it.
    ///
    /// # Errors
    /// Says what was expected; whole numbers have no prefixes.
    pub fn parse_prefix(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        self.typed_in(&Ok).parse_prefix(parts)
    }

    /// The keys that count as equal to a bound that a person typed: all tuples that start with the
    /// elements given, all moments of a part of a time, or the one key. An inclusive bound includes
    /// them, an exclusive one excludes them.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_bound(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        self.typed_in(&Ok).parse_bound(parts)
    }

    /// Keys that are typed in a zone: `utc_of` makes the time of a clock there UTC, both in
    /// microseconds since 1970. It gives as an error the first moment that may be meant by a time
    /// which the clock shows twice, or never, as it is set back or forward: a date begins then, and
    /// a time of day is refused.
    pub fn typed_in<'a>(&'a self, utc_of: &'a dyn Fn(i64) -> Result<i64, i64>) -> TypedKeys<'a> {
        TypedKeys { codec: self, utc_of }
    }

    fn only_part<'a>(&self, parts: &[&'a str]) -> Result<&'a str, CodecError> {
        match parts {
            [part] => Ok(part),
            _ => Err(CodecError::new(format!("a key of type {self} has one part, found {}", parts.len()))),
        }
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

impl TypedKeys<'_> {
    /// As [`KeyCodec::parse_text`].
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_text(&self, parts: &[&str]) -> Result<Vec<u8>, CodecError> {
        let mut key = Vec::new();
        match self.codec {
            KeyCodec::Tuple | KeyCodec::TypedTuple(_) => {
                let mut items = self.codec.read_elements(parts)?;
                self.settle_all(self.codec.element_types().unwrap_or_default(), &mut items)?;
                self.codec.encode(&Datum::List(items), &mut key)?;
            }
            codec => {
                let mut datum = Datum::Text(codec.only_part(parts)?.to_owned());
                if *codec == KeyCodec::Time {
                    self.settle(&ElementType::Time, &mut datum)?;
                }
                codec.encode(&datum, &mut key)?;
            }
        }
        Ok(key)
    }

    /// As [`KeyCodec::parse_prefix`].
    ///
    /// # Errors
    /// Says what was expected; whole numbers have no prefixes.
    pub fn parse_prefix(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        match self.codec {
            KeyCodec::Tuple | KeyCodec::TypedTuple(_) => self.parse_first_elements(parts),
            KeyCodec::Bytes | KeyCodec::Utf8 => Ok(KeyRange::prefix(self.parse_text(parts)?)),
            KeyCodec::Time => match self
                .span_of(&ElementType::Time, &Datum::Text(self.codec.only_part(parts)?.to_owned()))?
            {
                Some(span) => Ok(KeyRange {
                    low: Bound::Included(encode_i64(span.start).into()),
                    high: Bound::Included(encode_i64(span.end - 1).into()),
                }),
                None => Ok(KeyRange::one(self.parse_text(parts)?)), // which says what is wrong
            },
            KeyCodec::U32 | KeyCodec::U64 | KeyCodec::I64 => {
                let codec = self.codec;
                Err(CodecError::new(format!("keys of type {codec} have no prefixes; give a range")))
            }
        }
    }

    /// As [`KeyCodec::parse_bound`].
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse_bound(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        match self.codec {
            KeyCodec::Tuple | KeyCodec::TypedTuple(_) | KeyCodec::Time => self.parse_prefix(parts),
            _ => Ok(KeyRange::one(self.parse_text(parts)?)),
        }
    }

    fn parse_first_elements(&self, parts: &[&str]) -> Result<KeyRange, CodecError> {
        let mut items = self.codec.read_elements(parts)?;
        let mut packed = Vec::new();
        let KeyCodec::TypedTuple(types) = self.codec else {
            self.codec.encode(&Datum::List(items), &mut packed)?;
            return Ok(tuple::packed_prefix_range(packed));
        };
        let last = items.len().saturating_sub(1);
        let span = match types.get(last).zip(items.last()) {
            Some((of, item)) => self.span_of(of, item)?,
            None => None,
        };
        self.settle_all(types, &mut items)?;
        let Some(span) = span else {
            put_items(types, &items, &mut packed)?;
            return Ok(tuple::packed_prefix_range(packed));
        };
        put_items(types, &items[..last], &mut packed)?;
        let mut last = packed.clone();
        tuple::put_i64(&mut packed, span.start);
        tuple::put_i64(&mut last, span.end - 1);
        Ok(KeyRange { low: Bound::Included(packed), high: tuple::packed_prefix_range(last).high })
    }

    /// The moments of a part of a time; none of anything else.
    fn span_of(&self, element: &ElementType, item: &Datum) -> Result<Option<Range<i64>>, CodecError> {
        match (element, item) {
            (ElementType::Time, Datum::Text(text)) => {
                time_text::parse_span(text, self.utc_of).map_err(CodecError::new)
            }
            (ElementType::Optional(inner), item) => self.span_of(inner, item),
            _ => Ok(None),
        }
    }

    /// Makes numbers of the texts of times. What is no time stays text, which is then refused.
    fn settle_all(&self, types: &[ElementType], items: &mut [Datum]) -> Result<(), CodecError> {
        types.iter().zip(items).try_for_each(|(element, item)| self.settle(element, item))
    }

    fn settle(&self, element: &ElementType, item: &mut Datum) -> Result<(), CodecError> {
        match (element, &mut *item) {
            (ElementType::Time, Datum::Text(text)) => {
                if let Some(micros) = time_text::parse(text, self.utc_of).map_err(CodecError::new)? {
                    *item = Datum::Int(micros.into());
                }
                Ok(())
            }
            (ElementType::Optional(inner), _) => self.settle(inner, item),
            (ElementType::Tuple(types), Datum::List(items)) => self.settle_all(types, items),
            _ => Ok(()),
        }
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
