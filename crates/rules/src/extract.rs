//! How the terms of an index are taken out of records, by the rule in `terms.rs`.
//!
//! Called by the engine for every record that is written to a table with indexes, by queries, and
//! by verify. The same record always gives the same terms: what cannot be read as the rule requires
//! gives none.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::codec::tuple::{self, Element};
use crate::codec::{KeyCodec, ValueCodec};
use crate::datum::json_text::{self, Node};
use crate::datum::{Datum, json};
use crate::folds::Record;
use crate::head::HeadRule;
use crate::table_rules::BoundRules;
use crate::term_kind::{TermKind, kind_of};
use crate::terms::{TermFunction, TermRule, Terms};
use crate::time_text;

/// A rule with its function.
#[derive(Clone)]
pub struct Extractor {
    rule: TermRule,
    kind: TermKind,
    function: Option<TermFunction>,
    /// The steps of a pointer into JSON.
    steps: Vec<String>,
    /// In values of `json-merge`, an object that replaces is below `$set`.
    sees_through_set: bool,
    /// Terms are heads, and these are JSON.
    heads_are_json: bool,
    /// The field is a JSON document; if that is a text, it is shown with its quotes.
    field_is_document: bool,
    /// The field belongs to a value that is JSON: whole numbers of more than 64 bits are doubles.
    field_is_json: bool,
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
        let heads_are_json = *rule == TermRule::Head(None) && matches!(table.rules.head, HeadRule::Json(_));
        let kind = kind_of(rule, table);
        let field_is_document =
            matches!(rule, TermRule::Field(name) if is_document(table.rules.fold.spec(), name));
        let field_is_json =
            matches!(rule, TermRule::Field(_)) && table.opaque_codec() == Some(ValueCodec::Json);
        Extractor {
            rule: rule.clone(),
            kind,
            function,
            steps,
            sees_through_set,
            heads_are_json,
            field_is_document,
            field_is_json,
        }
    }

    /// The rule.
    pub fn rule(&self) -> &TermRule {
        &self.rule
    }

    /// The kind of its terms.
    pub fn kind(&self) -> TermKind {
        self.kind
    }

    /// Whether terms are the JSON of heads: texts in quotes, as bytes.
    pub(crate) fn heads_are_json(&self) -> bool {
        self.heads_are_json
    }

    /// Whether the terms hold this whole number as the nearest double.
    pub(crate) fn is_widened(&self, value: i128) -> bool {
        self.field_is_json && !is_narrow(value)
    }

    /// Whether keys alone give the terms.
    pub fn is_of_key(&self) -> bool {
        matches!(self.rule, TermRule::Key(_))
    }

    /// Whether heads alone give the terms: then nothing else of a separated value must be read.
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
                match (shown.as_ref().and_then(|value| value.field(name)), table.opaque_codec()) {
                    (Some(field), Some(ValueCodec::Json)) => push_datum(out, &narrow(field), self.kind),
                    (Some(field), _) if self.field_is_document => {
                        push_datum(out, &unquoted(field), self.kind)
                    }
                    (Some(field), _) => push_datum(out, field, self.kind),
                    (None, _) => {}
                }
            }
            TermRule::Custom { .. } => {
                let Some(take) = &self.function else { return };
                let mut own = Terms::default(); // fresh: the function may change it
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
                (Ok(datum), kind) => push_datum(out, &datum, kind),
                (Err(_), _) => {}
            },
        }
    }
}

fn take_key(codec: &KeyCodec, number: u32, key: &[u8], out: &mut Terms) {
    if codec.is_tuple() {
        let elements = tuple::unpack(key).unwrap_or_default();
        elements.get(number as usize).iter().for_each(|element| push_element(out, element));
    } else if number == 0 {
        match (codec, codec.show(key)) {
            (KeyCodec::Bytes, _) => out.push(&Element::from(key)),
            (KeyCodec::Time, Ok(datum)) => push_datum(out, &datum, TermKind::Time),
            (_, Ok(datum)) => push_datum(out, &datum, TermKind::Any),
            (_, Err(_)) => {}
        }
    }
}

/// Each element of a nested tuple; nothing for a null.
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

fn push_datum(out: &mut Terms, datum: &Datum, kind: TermKind) {
    match datum {
        Datum::List(items) => items.iter().for_each(|item| push_scalar(out, item, kind)),
        datum => push_scalar(out, datum, kind),
    }
}

fn push_scalar(out: &mut Terms, datum: &Datum, kind: TermKind) {
    match datum {
        // Terms are stored: they stay as they were when text with control characters was shown as
        // bytes.
        Datum::Text(text) if kind == TermKind::TextOrBytes => push_shown(out, text.as_bytes()),
        Datum::Bytes(bytes) if kind == TermKind::TextOrBytes => push_shown(out, bytes),
        Datum::Text(text) if kind == TermKind::Time => {
            if let Ok(Some(micros)) = time_text::parse(text, &Ok) {
                out.push(&Element::from(micros));
            }
        }
        Datum::Null | Datum::List(_) | Datum::Map(_) => {}
        Datum::Bool(value) => out.push(&Element::Bool(*value)),
        Datum::Int(value) => out.push(&Element::Int(*value)),
        Datum::Float(value) => out.push(&Element::Double(*value)),
        Datum::Number(text) => match (text.parse(), text.parse()) {
            (Ok(value), _) => out.push(&Element::Int(value)),
            (_, Ok(value)) => out.push(&Element::Double(value)),
            _ => {}
        },
        Datum::Text(text) => out.push_text(text),
        Datum::Bytes(bytes) => out.push(&Element::from(&bytes[..])),
    }
}

fn push_shown(out: &mut Terms, bytes: &[u8]) {
    match Datum::from_bytes(bytes) {
        Datum::Text(text) => out.push_text(&text),
        _ => out.push(&Element::from(bytes)),
    }
}

/// Whether a field of this name, of values with this fold, is a JSON document.
fn is_document(spec: &str, name: &str) -> bool {
    let Ok(record) = spec.parse::<Record>() else { return false };
    let folds = (0..).map_while(|index| record.field_fold(index));
    record.names().zip(folds).any(|(of, fold)| of == name && fold.spec().starts_with("json-merge"))
}

/// A shown document in the form of its terms: a text without its quotes, nothing for null.
fn unquoted(shown: &Datum) -> Datum {
    let Datum::Text(text) = shown else { return shown.clone() };
    json::parse(text).unwrap_or_else(|_| shown.clone())
}

fn is_narrow(value: i128) -> bool {
    i64::try_from(value).is_ok() || u64::try_from(value).is_ok()
}

/// A field of JSON in the form of its terms: numbers of more than 64 bits, and -0, are doubles.
fn narrow(datum: &Datum) -> Datum {
    match datum {
        Datum::Int(value) if !is_narrow(*value) => Datum::Float(*value as f64),
        Datum::Number(text) => text.parse().map_or(Datum::Null, Datum::Float),
        Datum::List(items) => Datum::List(items.iter().map(narrow).collect()),
        other => other.clone(),
    }
}

/// The bytes of something that is shown as text or as bytes.
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
