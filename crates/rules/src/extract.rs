//! How the terms of an index are taken out of records, by the rule that `terms.rs` tells.
//!
//! Called by the engine for every record that is written to a table with indexes, and by who finds and checks. The same record
//! gives the same terms whenever it is asked: what cannot be read as the rule wants it gives none.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::codec::tuple::{self, Element};
use crate::codec::{ElementType, KeyCodec, ValueCodec};
use crate::datum::{Datum, from_hex};
use crate::folds::json_text::{self, Node};
use crate::table_rules::BoundRules;
use crate::terms::{TermFunction, TermRule, Terms};

/// Of what kind the terms of an index are, as far as its rule tells: how a term that is asked for is to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// As JSON has them: text, numbers as doubles, truth values.
    Json,
    /// Byte strings.
    Bytes,
    /// Text.
    Text,
    /// Integers.
    Int,
    /// Doubles.
    Double,
    /// Whatever they are.
    Any,
}

/// A rule with its function.
#[derive(Clone)]
pub struct Extractor {
    rule: TermRule,
    kind: TermKind,
    function: Option<TermFunction>,
    /// Of a pointer into JSON.
    steps: Vec<String>,
    /// In values of `json-merge` an object that replaces stands under a name of its own.
    sees_through_set: bool,
}

impl std::fmt::Debug for Extractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Extractor({}, {:?})", self.rule, self.kind)
    }
}

impl Extractor {
    /// The extractor of a rule of a table.
    pub fn new(rule: &TermRule, table: &BoundRules, function: Option<TermFunction>) -> Extractor {
        let sees_through_set = table.rules.fold.spec().starts_with("json-merge");
        let steps = match rule {
            TermRule::Json(pointer) | TermRule::Head(Some(pointer)) => json_text::steps(pointer),
            _ => Vec::new(),
        };
        Extractor { rule: rule.clone(), kind: kind_of(rule, table), function, steps, sees_through_set }
    }

    /// The rule.
    pub fn rule(&self) -> &TermRule {
        &self.rule
    }

    /// Of what kind its terms are.
    pub fn kind(&self) -> TermKind {
        self.kind
    }

    /// Whether keys alone give the terms.
    pub fn is_of_key(&self) -> bool {
        matches!(self.rule, TermRule::Key(_))
    }

    /// Whether heads alone give the terms: of a value that lies apart no more need be read.
    pub fn is_of_head(&self) -> bool {
        matches!(self.rule, TermRule::Head(_))
    }

    /// Adds the terms of a record.
    pub fn take(&self, table: &BoundRules, key: &[u8], value: &[u8], out: &mut Terms) {
        match &self.rule {
            TermRule::Key(number) => take_key(table.rules.key_codec(), *number, key, out),
            TermRule::Tuple(number) => {
                let elements = tuple::unpack(value).unwrap_or_default();
                elements.get(*number as usize).iter().for_each(|element| push_element(out, element));
            }
            TermRule::Json(_) => self.take_json(value, out),
            TermRule::Head(_) => {
                let mut head = Vec::new();
                table.heads.put(key, value, &mut head);
                self.take_head(&head, out);
            }
            TermRule::Value => self.take_value(table, value, out),
            TermRule::Field(name) => {
                let shown = table.show_value(value).ok();
                shown.as_ref().and_then(|value| value.field(name)).iter().for_each(|d| push_datum(out, d));
            }
            TermRule::Custom { .. } => {
                let Some(take) = &self.function else { return };
                let mut own = Terms::default(); // of its own: whoever takes them may do with it as it likes
                if catch_unwind(AssertUnwindSafe(|| take(key, value, &mut own))).is_ok() {
                    let base = out.bytes.len();
                    out.bytes.extend_from_slice(&own.bytes);
                    out.ends.extend(own.ends.iter().map(|end| base + end));
                }
            }
        }
    }

    /// Adds the terms of a head.
    pub fn take_head(&self, head: &[u8], out: &mut Terms) {
        match &self.rule {
            _ if head.is_empty() => {}
            TermRule::Head(None) => out.push(&Element::from(head)),
            TermRule::Head(Some(_)) => self.take_json(head, out),
            _ => {}
        }
    }

    fn take_json(&self, text: &[u8], out: &mut Terms) {
        let text = std::str::from_utf8(text).ok();
        let found = text.and_then(|text| json_text::find(text, &self.steps, self.sees_through_set));
        match found {
            Some(Node::Array(items)) => items.iter().for_each(|item| push_json(out, item)),
            Some(node) => push_json(out, &node),
            None => {}
        }
    }

    fn take_value(&self, table: &BoundRules, value: &[u8], out: &mut Terms) {
        match table.opaque_codec() {
            Some(ValueCodec::Bytes) => out.push(&Element::from(value)),
            Some(ValueCodec::Json) => self.take_json(value, out),
            _ if self.kind == TermKind::Json => self.take_json(value, out),
            _ => match (table.show_value(value), self.kind) {
                (Ok(Datum::List(members)), TermKind::Bytes) => {
                    members.iter().for_each(|member| push_bytes(out, member));
                }
                (Ok(datum), TermKind::Bytes) => push_bytes(out, &datum),
                (Ok(datum), _) => push_datum(out, &datum),
                (Err(_), _) => {}
            },
        }
    }

    /// A term that somebody asks for, as the terms of this index are.
    pub fn understand<'t>(&self, term: Element<'t>) -> Element<'t> {
        match (self.kind, term) {
            (TermKind::Json | TermKind::Double, Element::Int(value)) => Element::Double(value as f64),
            (TermKind::Json | TermKind::Double, Element::Float(value)) => Element::Double(f64::from(value)),
            (TermKind::Bytes, Element::Text(text)) => Element::Bytes(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
            (_, term) => term,
        }
    }

    /// A term that a person typed. Quotes make a text of what would be something else without.
    pub fn read_term(&self, typed: &str) -> Element<'static> {
        let quoted = match json_text::parse(typed) {
            Ok(Node::Text(text)) => Some(Element::from(text.into_owned())),
            _ => None,
        };
        let number = |typed: &str| typed.parse::<f64>().ok().filter(|number| number.is_finite());
        let term = quoted.unwrap_or_else(|| match self.kind {
            TermKind::Text => Element::from(typed.to_owned()),
            TermKind::Bytes => match typed.strip_prefix("0x").and_then(from_hex) {
                Some(bytes) => Element::Bytes(Cow::Owned(bytes)),
                None => Element::Bytes(Cow::Owned(typed.as_bytes().to_vec())),
            },
            _ => match (typed, typed.parse::<i128>(), number(typed)) {
                ("true" | "false", _, _) => Element::Bool(typed == "true"),
                (_, Ok(whole), _) => Element::Int(whole),
                (_, _, Some(number)) => Element::Double(number),
                _ => Element::from(typed.to_owned()),
            },
        });
        self.understand(term)
    }
}

/// Of what kind the terms of a rule are.
fn kind_of(rule: &TermRule, table: &BoundRules) -> TermKind {
    let fold = table.rules.fold.spec();
    match rule {
        TermRule::Json(_) | TermRule::Head(Some(_)) => TermKind::Json,
        TermRule::Head(None) => TermKind::Bytes,
        TermRule::Key(number) => kind_of_key(table.rules.key_codec(), *number),
        TermRule::Value => match table.opaque_codec() {
            Some(ValueCodec::Bytes) => TermKind::Bytes,
            Some(ValueCodec::Utf8) => TermKind::Text,
            Some(ValueCodec::U64 | ValueCodec::I64) => TermKind::Int,
            Some(ValueCodec::F64) => TermKind::Double,
            Some(ValueCodec::Json) => TermKind::Json,
            None if fold.starts_with("json-merge") => TermKind::Json,
            None if ["set", "intersect", "append"].iter().any(|of| fold.starts_with(of)) => TermKind::Bytes,
            None if fold.ends_with(":bytes") => TermKind::Bytes,
            None => TermKind::Any,
        },
        TermRule::Field(_) | TermRule::Tuple(_) | TermRule::Custom { .. } => TermKind::Any,
    }
}

fn kind_of_key(codec: &KeyCodec, number: u32) -> TermKind {
    let of_element = |element: &ElementType| match element {
        ElementType::Text => TermKind::Text,
        ElementType::Bytes => TermKind::Bytes,
        ElementType::Int => TermKind::Int,
        ElementType::Double => TermKind::Double,
        _ => TermKind::Any,
    };
    match codec {
        KeyCodec::Bytes => TermKind::Bytes,
        KeyCodec::Utf8 => TermKind::Text,
        KeyCodec::U32 | KeyCodec::U64 | KeyCodec::I64 => TermKind::Int,
        KeyCodec::Tuple => TermKind::Any,
        KeyCodec::TypedTuple(types) => types.get(number as usize).map_or(TermKind::Any, of_element),
    }
}

fn take_key(codec: &KeyCodec, number: u32, key: &[u8], out: &mut Terms) {
    if codec.is_tuple() {
        let elements = tuple::unpack(key).unwrap_or_default();
        elements.get(number as usize).iter().for_each(|element| push_element(out, element));
    } else if number == 0 {
        match (codec, codec.show(key)) {
            (KeyCodec::Bytes, _) => out.push(&Element::from(key)),
            (_, Ok(datum)) => push_datum(out, &datum),
            (_, Err(_)) => {}
        }
    }
}

/// Of a nested tuple each element; of nothing none.
fn push_element(out: &mut Terms, element: &Element<'_>) {
    match element {
        Element::Null => {}
        Element::Nested(items) => items
            .iter()
            .filter(|item| !matches!(item, Element::Null | Element::Nested(_)))
            .for_each(|item| out.push(item)),
        element => out.push(element),
    }
}

fn push_datum(out: &mut Terms, datum: &Datum) {
    match datum {
        Datum::List(items) => items.iter().for_each(|item| push_scalar(out, item)),
        datum => push_scalar(out, datum),
    }
}

fn push_scalar(out: &mut Terms, datum: &Datum) {
    match datum {
        Datum::Null | Datum::List(_) | Datum::Map(_) => {}
        Datum::Bool(value) => out.push(&Element::Bool(*value)),
        Datum::Int(value) => out.push(&Element::Int(*value)),
        Datum::Float(value) => out.push(&Element::Double(*value)),
        Datum::Text(text) => out.push_text(text),
        Datum::Bytes(bytes) => out.push(&Element::from(&bytes[..])),
    }
}

/// What is shown as text or as bytes, as bytes.
fn push_bytes(out: &mut Terms, datum: &Datum) {
    match datum {
        Datum::Text(text) => out.push(&Element::from(text.as_bytes())),
        Datum::Bytes(bytes) => out.push(&Element::from(&bytes[..])),
        _ => {}
    }
}

fn push_json(out: &mut Terms, node: &Node<'_>) {
    match node {
        Node::Text(text) => out.push_text(text),
        Node::Word("null") => {}
        Node::Word(word @ ("true" | "false")) => out.push(&Element::Bool(*word == "true")),
        Node::Word(number) => {
            if let Some(number) = number.parse::<f64>().ok().filter(|number| number.is_finite()) {
                out.push(&Element::Double(if number == 0.0 { 0.0 } else { number })); // there is one zero
            }
        }
        Node::Array(_) | Node::Object(_) => {}
    }
}

#[cfg(test)]
#[path = "extract/tests.rs"]
mod tests;
