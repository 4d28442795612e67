//! JSON for the types that serde knows: passes what the one reader of JSON has read to serde.
//!
//! Numbers are parsed by the type that takes them, so that each `f64` and `f32` reads back with the
//! same bits. Keys of maps may be numbers and bools: JSON has them as text.

use std::borrow::Cow;

use serde_core::de::value::{
    CowStrDeserializer, Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer,
};
use serde_core::de::{Deserializer, IntoDeserializer, Visitor};
use serde_core::forward_to_deserialize_any;

use crate::datum::json_text::Node;

/// A piece of JSON.
pub(super) struct Piece<'de>(pub(super) Node<'de>);

/// The name of a member.
struct Name<'de>(Cow<'de, str>);

impl<'de> IntoDeserializer<'de, Error> for Piece<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> IntoDeserializer<'de, Error> for Name<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, Error> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

/// A number for a type that takes any: of 64 bits if it is whole, else the nearest double.
fn visit_number<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, Error> {
    if let Ok(number) = text.parse() {
        return visitor.visit_u64(number);
    }
    match text.parse() {
        Ok(number) if text != "-0" => visitor.visit_i64(number),
        _ => visitor.visit_f64(text.parse().unwrap_or(f64::NAN)), // each number of JSON is one of Rust
    }
}

fn members<'de>(
    fields: Vec<(Cow<'de, str>, Node<'de>)>,
) -> MapDeserializer<'de, impl Iterator<Item = (Name<'de>, Piece<'de>)>, Error> {
    MapDeserializer::new(fields.into_iter().map(|(name, node)| (Name(name), Piece(node))))
}

/// The type says which number it takes; anything that is not a number is visited as itself.
macro_rules! numbers {
    ($($deserialize:ident $visit:ident)+) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.as_number().and_then(|number| number.parse().ok()) {
                Some(number) => visitor.$visit(number),
                None => self.deserialize_any(visitor),
            }
        }
    )+};
}

impl Piece<'_> {
    fn as_number(&self) -> Option<&str> {
        match &self.0 {
            Node::Word(word) => Some(word),
            _ => None,
        }
    }
}

impl Name<'_> {
    fn as_number(&self) -> Option<&str> {
        Some(&self.0)
    }
}

impl<'de> Deserializer<'de> for Piece<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Word("null") => visitor.visit_unit(),
            Node::Word("true") => visitor.visit_bool(true),
            Node::Word("false") => visitor.visit_bool(false),
            Node::Word(number) => visit_number(number, visitor),
            Node::Text(text) => visit_text(text, visitor),
            Node::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Piece));
                let value = visitor.visit_seq(&mut items)?;
                items.end().map(|()| value)
            }
            Node::Object(fields) => {
                let mut members = members(fields);
                let value = visitor.visit_map(&mut members)?;
                members.end().map(|()| value)
            }
        }
    }

    numbers! { deserialize_i128 visit_i128 deserialize_u128 visit_u128 deserialize_f32 visit_f32 deserialize_f64 visit_f64 }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Word("null") => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_bytes(text.as_bytes()),
            Node::Text(Cow::Owned(text)) => visitor.visit_byte_buf(text.into_bytes()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A variant without fields is its name, one with fields an object of that one name.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Node::Text(name) => visitor.visit_enum(CowStrDeserializer::new(name)),
            Node::Object(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(members(fields)))
            }
            _ => self.deserialize_any(visitor), // says what it is instead
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 char str string unit unit_struct seq tuple tuple_struct map struct
        identifier
    }
}

impl<'de> Deserializer<'de> for Name<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visit_text(self.0, visitor)
    }

    numbers! {
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32 deserialize_i64 visit_i64
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32 deserialize_u64 visit_u64
        deserialize_i128 visit_i128 deserialize_u128 visit_u128 deserialize_f32 visit_f32 deserialize_f64 visit_f64
        deserialize_bool visit_bool
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(CowStrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
